/* Operations of `abxd-helper git` that only read: the list for git_main.c. */
#include "helper/git_history.h"

const struct git_operation git_history_operations[] = {
    {"log", git_log_operation, 0},
    {"show", git_show_operation, 0},
    {"diff", git_diff_operation, 0},
    {"blame", git_blame_operation, 0},
    {NULL, NULL, 0},
};
