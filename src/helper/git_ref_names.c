/* The names of branches and tags in git's order; for their lists. */
#include "helper/git_refs.h"

#include <stdlib.h>
#include <string.h>

static int add(struct git_ref_names *names, const char *name)
{
    if (names->count == names->cap) {
        size_t cap = names->cap ? names->cap * 2 : 64;
        char **items = realloc(names->items, cap * sizeof *items);
        if (!items)
            return -1;
        names->items = items;
        names->cap = cap;
    }
    names->items[names->count] = strdup(name);
    return names->items[names->count++] ? 0 : -1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int git_ref_names_list(struct git_call *call, const char *glob, struct git_ref_names *out, struct err *err)
{
    git_reference_iterator *iterator;
    struct git_ref_names names = {0};
    const char *name;
    int rc = git_reference_iterator_glob_new(&iterator, call->repo, glob);
    if (rc != 0)
        return git_fail(err, rc, "cannot list the references");
    bool full = false;
    while (!full && (rc = git_reference_next_name(&name, iterator)) == 0)
        full = add(&names, name) != 0;
    git_reference_iterator_free(iterator);
    if (full || rc != GIT_ITEROVER) {
        git_ref_names_free(&names);
        return full ? err_set(err, ERR_INTERNAL, "out of memory") : git_fail(err, rc, "cannot list the references");
    }
    if (names.count > 0)
        qsort(names.items, names.count, sizeof *names.items, by_name);
    *out = names;
    return 0;
}

void git_ref_names_free(struct git_ref_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct git_ref_names){0};
}
