/* A list of names that grows; for what git lists in no order. */
#ifndef ABX_HELPER_NAME_LIST_H
#define ABX_HELPER_NAME_LIST_H

#include "base/err.h"

#include <stddef.h>

/* Zeroed to begin. */
struct name_list {
    char **items; /* own copies */
    size_t count, cap;
};

/* -1: out of memory; the list is as it was. */
int name_list_add(struct name_list *list, const char *name) ABX_MUST_USE;
/* By their bytes, as git sorts; of equal ones one stays. */
void name_list_sort(struct name_list *list);
void name_list_free(struct name_list *list);

#endif
