/* Keeps the index such that the git program sees every change too; for git_main, around each operation.
 *
 * Who compares whole seconds only, as git does, cannot tell a file from what it was earlier in the same second. The
 * index's own time helps: an entry that is not older than the index is looked at by content. That knowledge is lost
 * when the index is written again later, so the writer has to note it, by a size of 0. libgit2 does so too, but it
 * compares nanoseconds: what it can tell apart it leaves without a note. */
#include "helper/git.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static bool stat_index(const struct git_call *call, git_index **out, struct stat *found)
{
    if (!call->repo || git_repository_is_bare(call->repo) || git_repository_index(out, call->repo) != 0)
        return false;
    if (git_index_path(*out) && stat(git_index_path(*out), found) == 0)
        return true;
    git_index_free(*out);
    return false;
}

void git_racy_begin(const struct git_call *call, struct git_index_state *out)
{
    git_index *index = NULL;
    struct stat found;
    *out = (struct git_index_state){.seconds = time(NULL)}; /* no entry of a new index can be older */
    if (!stat_index(call, &index, &found))
        return;
    *out = (struct git_index_state){found.st_ino, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec};
    git_index_free(index);
}

static bool is_as_it_was(const struct git_index_state *before, const struct stat *now)
{
    return before->inode == now->st_ino && before->size == now->st_size && before->seconds == now->st_mtim.tv_sec &&
           before->nanoseconds == now->st_mtim.tv_nsec;
}

/* Whether the file is another than the entry tells, and only the parts of seconds show it. */
static bool is_hidden_change(const struct git_call *call, const git_index_entry *entry)
{
    char path[PATH_MAX];
    struct stat file;
    int len = snprintf(path, sizeof path, "%s/%s", call->root, entry->path);
    if (len >= (int)sizeof path || lstat(path, &file) != 0)
        return false;
    return entry->mtime.seconds == (int32_t)file.st_mtim.tv_sec && entry->file_size == (uint32_t)file.st_size &&
           (entry->mtime.nanoseconds != (uint32_t)file.st_mtim.tv_nsec ||
            entry->ctime.nanoseconds != (uint32_t)file.st_ctim.tv_nsec);
}

/* Whether there was anything to note. */
static bool smudge(const struct git_call *call, git_index *index, int64_t since)
{
    bool noted = false;
    for (size_t i = 0, count = git_index_entrycount(index); i < count; i++) {
        const git_index_entry *entry = git_index_get_byindex(index, i);
        if (entry->mtime.seconds < since || entry->file_size == 0 || entry->mode == GIT_FILEMODE_COMMIT ||
            !is_hidden_change(call, entry))
            continue;
        /* git_index_add would forget the trees above, which did not change. */
        ((git_index_entry *)entry)->file_size = 0;
        noted = true;
    }
    return noted;
}

void git_racy_end(const struct git_call *call, const struct git_index_state *before)
{
    git_index *index = NULL;
    struct stat now;
    if (!stat_index(call, &index, &now))
        return;
    /* Where another program holds the index now, that one has to note it. */
    if (!is_as_it_was(before, &now) && git_index_read(index, false) == 0 && smudge(call, index, before->seconds) &&
        git_index_write(index) != 0)
        git_error_clear();
    git_index_free(index);
}
