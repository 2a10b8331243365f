/* The names of branches and tags in git's order; for their lists. */
#include "helper/git_refs.h"

int git_ref_names_list(struct git_call *call, const char *glob, struct name_list *out, struct err *err)
{
    git_reference_iterator *iterator;
    struct name_list names = {0};
    const char *name;
    int rc = git_reference_iterator_glob_new(&iterator, call->repo, glob);
    if (rc != 0)
        return git_fail(err, rc, "cannot list the references");
    bool full = false;
    while (!full && (rc = git_reference_next_name(&name, iterator)) == 0)
        full = name_list_add(&names, name) != 0;
    git_reference_iterator_free(iterator);
    if (full || rc != GIT_ITEROVER) {
        name_list_free(&names);
        return full ? err_set(err, ERR_INTERNAL, "out of memory") : git_fail(err, rc, "cannot list the references");
    }
    name_list_sort(&names);
    *out = names;
    return 0;
}
