/* Sets of process ids; called by the process table, its control groups and prim/process_tree. */
#include "prim/process_pids.h"

#include <stdlib.h>
#include <string.h>

int process_pids_append(struct process_pids *set, pid_t pid)
{
    if (set->count == set->cap) {
        size_t cap = set->cap > 0 ? set->cap * 2 : 64;
        pid_t *pids = realloc(set->pids, cap * sizeof(*pids));
        if (pids == NULL)
            return -1;
        set->pids = pids;
        set->cap = cap;
    }
    set->pids[set->count++] = pid;
    return 0;
}

static int compare_pids(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;
    return (left > right) - (left < right);
}

void process_pids_sort(struct process_pids *set)
{
    size_t kept = 0;
    if (set->count == 0)
        return;
    qsort(set->pids, set->count, sizeof(*set->pids), compare_pids);
    for (size_t i = 0; i < set->count; i++)
        if (kept == 0 || set->pids[kept - 1] != set->pids[i])
            set->pids[kept++] = set->pids[i];
    set->count = kept;
}

/* Where it is or would be. */
static size_t place_of(const struct process_pids *set, pid_t pid)
{
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->pids[middle] < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool process_pids_hold(const struct process_pids *set, pid_t pid)
{
    size_t place = place_of(set, pid);
    return place < set->count && set->pids[place] == pid;
}

void process_pids_insert(struct process_pids *set, pid_t pid)
{
    size_t place = place_of(set, pid);
    if ((place < set->count && set->pids[place] == pid) || process_pids_append(set, pid) != 0)
        return;
    memmove(&set->pids[place + 1], &set->pids[place], (set->count - 1 - place) * sizeof(*set->pids));
    set->pids[place] = pid;
}

void process_pids_remove(struct process_pids *set, pid_t pid)
{
    size_t place = place_of(set, pid);
    if (place == set->count || set->pids[place] != pid)
        return;
    set->count--;
    memmove(&set->pids[place], &set->pids[place + 1], (set->count - place) * sizeof(*set->pids));
}

void process_pids_deinit(struct process_pids *set)
{
    free(set->pids);
    *set = (struct process_pids){0};
}
