/* See the header; for git_ref_names.c and git_restore.c. */
#include "helper/name_list.h"

#include <stdlib.h>
#include <string.h>

int name_list_add(struct name_list *list, const char *name)
{
    if (list->count == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 64;
        char **items = realloc(list->items, cap * sizeof *items);
        if (!items)
            return -1;
        list->items = items;
        list->cap = cap;
    }
    char *copy = strdup(name);
    if (!copy)
        return -1;
    list->items[list->count++] = copy;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void name_list_sort(struct name_list *list)
{
    size_t kept = 0;
    if (list->count > 0)
        qsort(list->items, list->count, sizeof *list->items, by_name);
    for (size_t i = 0; i < list->count; i++) {
        if (kept > 0 && strcmp(list->items[kept - 1], list->items[i]) == 0)
            free(list->items[i]);
        else
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

void name_list_free(struct name_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct name_list){0};
}
