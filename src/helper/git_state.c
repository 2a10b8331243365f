/* Ends what is in progress in a repository, as far as the git program would; for the operations that finish or give up
 * a merge. */
#include "helper/git.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

int git_state_end(const struct git_call *call, struct err *err)
{
    static const char *const names[] = {"MERGE_HEAD", "MERGE_MODE",       "MERGE_MSG",  "AUTO_MERGE",
                                        "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[PATH_MAX];
        int len = snprintf(path, sizeof path, "%s%s", git_repository_path(call->repo), names[i]);
        if (len >= (int)sizeof path)
            return err_set(err, ERR_INVALID_PATH, "the repository's path is too long");
        if (unlink(path) != 0 && errno != ENOENT)
            return err_set_errno(err, err_from_errno(errno), errno, "cannot end what is in progress: %s", names[i]);
    }
    return 0;
}
