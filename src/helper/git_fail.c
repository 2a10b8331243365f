/* Turns what libgit2 says into the contract's codes, for every operation; and keeps why a callback stopped one. */
#include "base/loop.h"
#include "helper/git.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { CONFLICTS_MAX_BYTES = 400 * 1024 };

/* One call at a time in a process. */
static struct err stopped_by;
static atomic_bool cancelled;

bool git_call_late(const struct git_call *call)
{
    return atomic_load(&cancelled) || loop_clock_ns() >= call->deadline_ns;
}

int git_stop(const struct err *why)
{
    if (why)
        stopped_by = *why;
    else
        err_set(&stopped_by, ERR_UPSTREAM_TIMEOUT, "the operation took longer than timeout_ms");
    return GIT_EUSER;
}

void git_stop_reset(void)
{
    stopped_by = (struct err){0};
    atomic_store(&cancelled, false);
}

void git_stop_cancel(void)
{
    atomic_store(&cancelled, true);
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* libgit2 keeps no errno, but its messages about system calls end in ": " and the system's own words, which are cut
 * off. */
static int take_errno(char *message)
{
    static const int known[] = {ENOSPC, EDQUOT, EACCES, EPERM, EROFS, ENOTDIR, EISDIR, ENAMETOOLONG, EFBIG};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char end[96];
        snprintf(end, sizeof end, ": %s", strerror(known[i]));
        if (!ends_with(message, end))
            continue;
        message[strlen(message) - strlen(end)] = '\0';
        return known[i];
    }
    return 0;
}

/* Somebody writes to a file that is read. */
static bool is_of_a_change(const char *message)
{
    return strcmp(message, "file changed before we could read it") == 0 ||
           strncmp(message, "error reading file for hashing", 30) == 0;
}

static enum err_code code_of_missing(int class)
{
    switch (class) {
    case GIT_ERROR_REPOSITORY:
        return ERR_REPOSITORY_NOT_FOUND;
    case GIT_ERROR_OS:
    case GIT_ERROR_FILESYSTEM:
    case GIT_ERROR_INDEX:
    case GIT_ERROR_TREE:
        return ERR_FILE_NOT_FOUND;
    default:
        return ERR_REFERENCE_NOT_FOUND;
    }
}

/* What is left: of the machine or of libgit2 (ours to answer for), or of a repository that is not as it should be. */
static enum err_code code_of_class(int class)
{
    switch (class) {
    case GIT_ERROR_NET:
    case GIT_ERROR_SSL:
    case GIT_ERROR_HTTP:
    case GIT_ERROR_SSH:
        return ERR_GIT_NETWORK;
    case GIT_ERROR_NONE:
    case GIT_ERROR_NOMEMORY:
    case GIT_ERROR_OS:
    case GIT_ERROR_THREAD:
    case GIT_ERROR_INTERNAL:
        return ERR_INTERNAL;
    default:
        return ERR_INVALID_REQUEST;
    }
}

static enum err_code code_of(int git_code, int class)
{
    switch (git_code) {
    case GIT_ENOTFOUND:
        return code_of_missing(class);
    case GIT_EUNBORNBRANCH:
        return ERR_REFERENCE_NOT_FOUND;
    case GIT_EEXISTS:
        return ERR_ALREADY_EXISTS;
    case GIT_EUNMERGED:
    case GIT_EMERGECONFLICT:
        return ERR_MERGE_CONFLICT;
    case GIT_ECONFLICT:
    case GIT_EUNCOMMITTED:
    case GIT_EINDEXDIRTY:
        return ERR_WORKTREE_DIRTY;
    case GIT_ENONFASTFORWARD:
        return ERR_NON_FAST_FORWARD;
    case GIT_ELOCKED:
    case GIT_EMODIFIED:
        return ERR_BUSY;
    case GIT_EAUTH:
    case GIT_ECERTIFICATE:
    case GIT_EEOF:
        return ERR_GIT_NETWORK;
    case GIT_EAMBIGUOUS:
    case GIT_EBAREREPO:
    case GIT_EINVALIDSPEC:
    case GIT_EINVALID:
    case GIT_EPEEL:
        return ERR_INVALID_REQUEST;
    case GIT_EDIRECTORY:
        return ERR_IS_A_DIRECTORY;
    case GIT_EOWNER:
        return ERR_PERMISSION_DENIED;
    default:
        return code_of_class(class);
    }
}

/* What stands between "://" and "@" may be a password. */
static void drop_credentials(char *text)
{
    for (char *scheme = strstr(text, "://"); scheme; scheme = strstr(scheme + 3, "://")) {
        char *authority = scheme + 3, *end = authority + strcspn(authority, "/ '\"\n");
        for (char *at = end; at-- > authority;) {
            if (*at != '@')
                continue;
            memmove(authority, at + 1, strlen(at + 1) + 1);
            break;
        }
    }
}

int git_fail(struct err *err, int git_code, const char *what)
{
    if (stopped_by.code != ERR_NONE) {
        *err = stopped_by;
        return -1;
    }
    const git_error *last = git_error_last();
    char reason[PATH_MAX + 256]; /* a path, and what is said of it */
    snprintf(reason, sizeof reason, "%s", last && last->message ? last->message : "no reason is known");
    drop_credentials(reason);
    int saved_errno = take_errno(reason);
    enum err_code code = code_of(git_code, last ? last->klass : GIT_ERROR_NONE);
    if (saved_errno != 0 && (code == ERR_INTERNAL || code == ERR_INVALID_REQUEST))
        code = saved_errno == EDQUOT || saved_errno == EFBIG ? ERR_NO_SPACE : err_from_errno(saved_errno);
    else if (is_of_a_change(reason) && (code == ERR_INTERNAL || code == ERR_INVALID_REQUEST))
        code = ERR_BUSY;
    return saved_errno != 0 ? err_set_errno(err, code, saved_errno, "%s: %s", what, reason)
                            : err_set(err, code, "%s: %s", what, reason);
}

int git_conflicts(struct git_call *call, git_index *index, struct err *err)
{
    git_index_conflict_iterator *iterator = NULL;
    int rc = git_index_conflict_iterator_new(&iterator, index);
    if (rc < 0)
        return git_fail(err, rc, "cannot list the conflicts");
    struct buf names;
    struct json_out list = {.buf = &call->extra, .comma = call->extra.len > 0};
    const git_index_entry *ancestor, *ours, *theirs;
    size_t count = 0;
    buf_init(&names, CONFLICTS_MAX_BYTES);
    for (; git_index_conflict_next(&ancestor, &ours, &theirs, iterator) == 0; count++) {
        const char *path = (ours ? ours : theirs ? theirs : ancestor)->path;
        if (!list.failed)
            list.failed = buf_append(&names, path, strlen(path) + 1) != 0;
    }
    git_index_conflict_iterator_free(iterator);
    json_out_names(&list, "conflicts", &names);
    buf_deinit(&names);
    const char *them = count == 1 ? "it" : "them";
    char files[48];
    snprintf(files, sizeof files, count == 1 ? "%zu file has conflicts" : "%zu files have conflicts", count);
    if (list.failed) {
        buf_reset(&call->extra);
        return err_set(err, ERR_MERGE_CONFLICT, "%s, too many to list", files);
    }
    return err_set(err, ERR_MERGE_CONFLICT, "%s: mend %s, add %s and commit, or give the merge up", files, them, them);
}
