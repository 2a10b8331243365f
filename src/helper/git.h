/* What the operations of `abxd-helper git` share. One process serves one call at a time; everything here may block.
 *   git_main.c        the loop: lines in, dispatch, lines out
 *   git_call.c        parameters
 *   git_fail.c        errors
 *   git_out.c         what results have in common; names of commits, authors
 *   git_guard.c       checkouts that write through no link, and to no protected path
 *   git_state.c       what is in progress in a repository
 *   git_racy.c        an index that the git program reads as we do
 *   git_repository.c  finding and opening a repository without leaving the base
 *   git_sandbox.c     Landlock, resource limits, libgit2's global options
 *   git_NAME.c        an operation, or a few that belong together */
#ifndef ABX_HELPER_GIT_H
#define ABX_HELPER_GIT_H

#include "base/buf.h"
#include "base/err.h"
#include "helper/json_out.h"
#include "prim/confine.h"

#include <cjson/cJSON.h>
#include <git2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct git_call {
    const struct confine *confine; /* the base; paths of clients go through it, never to libgit2 unseen */
    const char *path;              /* where the client points to: absolute, already seen to be inside the base */
    const cJSON *params;           /* the operation's own, checked for types and names by the tables */
    uint64_t deadline_ns;          /* loop_clock_ns; git_call_late tells when it is over */
    git_repository *repo;          /* opened by the dispatcher, unless the operation opens or makes it itself */
    char root[PATH_MAX];           /* of the answer: the working tree, or the bare repository */
    struct json_out result;        /* an open object: members of `result` are written into it */
    struct buf extra;              /* members for a problem reply besides code and detail, without braces:
                                    * "conflicts":[…] */
};

/* Serves calls on descriptor 3 until that closes, and answers the exit code. guards: protected paths inside the base,
 * each as confine_guard_word has it. Without landlock the guards in code stand alone (tests). */
int git_main(const char *base_dir, char *const *guards, size_t guard_count, bool landlock);

/* Confines this process to what git needs below base_dir, sets its limits and libgit2's global options; before any
 * thread is started. A kernel without Landlock is no failure. */
int git_sandbox_enter(const char *base_dir, bool landlock, struct err *err) ABX_MUST_USE;
/* The accesses that Landlock of that version is to watch over. 0: git cannot live with it, or there is none (-1). */
uint64_t git_sandbox_access(long abi);

/* An operation writes its result and answers 0, or -1 with *err. */
typedef int (*git_operation_fn)(struct git_call *call, struct err *err);

enum {
    GIT_OPENS_ITSELF = 1,   /* there may be no repository yet (init, clone) */
    GIT_NETWORK = 2,        /* runs in a process of its own, which may be killed at the deadline */
    GIT_NEEDS_WORKTREE = 4, /* ERR_INVALID_REQUEST in a bare repository */
};
struct git_operation {
    const char *name;
    git_operation_fn run;
    unsigned flags;
};
/* Each file git_NAME.c lists what it has; ends with a NULL name. git_main.c knows all lists. */
extern const struct git_operation git_basic_operations[];   /* status init add reset restore commit */
extern const struct git_operation git_history_operations[]; /* log show diff blame */
extern const struct git_operation git_refs_operations[];    /* branch tag checkout merge stash */
extern const struct git_operation git_remote_operations[];  /* remote clone fetch pull push */

/* --- parameters. Names are literals. Text has no NUL in it (the tables refuse that). */
const char *git_param_text(const struct git_call *call, const char *name); /* NULL: not given or null */
bool git_param_bool(const struct git_call *call, const char *name, bool otherwise);
int64_t git_param_int(const struct git_call *call, const char *name, int64_t otherwise);
/* `paths` and `paths_base64` (of any name), made relative to the working tree: taken as relative to call->path, or
 * absolute; ERR_PATH_OUTSIDE_BASE where they lead out of the working tree by their text or by a link in the way. An
 * empty list where none was given; "" is the whole working tree. Free it. */
struct git_paths {
    char **items;
    size_t count;
};
int git_param_paths(const struct git_call *call, const char *name, struct git_paths *out, struct err *err) ABX_MUST_USE;
void git_paths_free(struct git_paths *paths);
/* A pathspec that means exactly these, for the options DISABLE_PATHSPEC_MATCH; borrows them. Empty, which is
 * everything, where the whole working tree is among them. */
git_strarray git_paths_spec(const struct git_paths *paths);

/* --- errors */
/* Turns what libgit2 said last into *err: NOTFOUND, EXISTS, ECONFLICT, ELOCKED (ERR_BUSY), ENOSPC, network, ... `what`
 * begins the sentence. Credentials never get into it. Always -1. */
int git_fail(struct err *err, int git_code, const char *what);
/* Whether the time of the call is over, or it was cancelled. Callbacks of libgit2 ask, and answer git_stop. */
bool git_call_late(const struct git_call *call);
/* For callbacks of libgit2 that end the operation: keeps why for git_fail, and answers GIT_EUSER. NULL: the call is
 * late. */
int git_stop(const struct err *why);
/* For git_main: a call begins, with nothing kept; another thread cancels it. */
void git_stop_reset(void);
void git_stop_cancel(void);

/* --- results */
/* The commit that a client names (branch, tag, sha, HEAD~1 …): ERR_REFERENCE_NOT_FOUND with field `name`. NULL text
 * is HEAD. *out is to be freed. */
int git_resolve(const struct git_call *call, const char *name, const char *text, git_object **out,
                struct err *err) ABX_MUST_USE;
int git_resolve_commit(const struct git_call *call, const char *name, const char *text, git_commit **out,
                       struct err *err) ABX_MUST_USE;
void git_out_oid(struct json_out *out, const char *name, const git_oid *oid);
/* {name, email, time} */
void git_out_signature(struct json_out *out, const char *name, const git_signature *signature);
/* The members of a commit in answers: sha, parents, author, committer, message (lossy UTF-8). */
void git_out_commit(struct json_out *out, git_commit *commit);
/* The member `head`: {sha, summary, author, time}, or null while HEAD is unborn. */
void git_out_head(struct json_out *out, git_repository *repo);
/* Whoever commits: the params' `author` {name,email}, else user.name and user.email of the repository, else
 * "abxd <abxd@localhost>". Free it. */
int git_call_author(const struct git_call *call, const char *name, git_signature **out, struct err *err) ABX_MUST_USE;
/* Makes checkout options that never write through a link that stands where a tracked directory or file was (libgit2
 * does): the notify callback looks at each component. Forced, it removes such links, as git does; else the operation
 * ends with ERR_WORKTREE_DIRTY (by git_fail). A forced one is to change tracked files only: what is tracked is what the
 * index has. For every operation that writes into the working tree; called when checkout_strategy is set. The guard
 * lives as long as the options are used. */
struct git_guard {
    const struct git_call *call;
    bool force;
};
void git_guard_checkout(struct git_guard *guard, const struct git_call *call, git_checkout_options *options);
/* libgit2 removes files without a word, through links too: so these are to be asked first, with the guard of the
 * checkout. The files that a checkout of this tree removes, at these paths (by their exact names; NULL: all). */
int git_guard_tree(const struct git_guard *guard, git_tree *to, const git_strarray *paths,
                   struct err *err) ABX_MUST_USE;
/* The files that a diff from what there is to what there will be has as deleted. */
int git_guard_removals(const struct git_guard *guard, git_diff *diff, struct err *err) ABX_MUST_USE;
/* The paths of a checkout with DISABLE_PATHSPEC_MATCH, by their exact names; none: all. Free them afterwards. */
int git_checkout_paths(git_checkout_options *options, git_strarray paths, struct err *err) ABX_MUST_USE;
void git_checkout_paths_free(git_checkout_options *options);
/* Whether a path below the working tree leads to a protected one, or through it. */
bool git_is_guarded(const struct git_call *call, const char *path);
/* ERR_PERMISSION_DENIED in *err. Always -1. */
int git_refuse_guarded(const char *path, struct err *err);
/* The index has unmerged entries: "conflicts":[path…] into call->extra, ERR_MERGE_CONFLICT into *err. Always -1. */
int git_conflicts(struct git_call *call, git_index *index, struct err *err);

/* --- around an operation; git_racy.c. What the index is like before; and afterwards, where it was written: changes of
 * files that git would no longer see for their times are noted in it. No failure of the call. */
struct git_index_state {
    ino_t inode;
    off_t size;
    int64_t seconds, nanoseconds;
};
void git_racy_begin(const struct git_call *call, struct git_index_state *out);
void git_racy_end(const struct git_call *call, const struct git_index_state *before);

/* Ends what a commit, a reset or a forced checkout ends: a merge, a pick or a revert, with its message. Not a rebase, a
 * bisection or a series of picks, which go on (git_repository_state_cleanup ends all). git_state.c */
int git_state_end(const struct git_call *call, struct err *err) ABX_MUST_USE;

/* --- finding and opening; git_repository.c */
/* Looks for a repository at call->path and above it, up to the base, and opens it there and nowhere else: refuses what
 * leads out of the base (.git files, worktrees, commondir, core.worktree, links inside the git directory, alternates,
 * included configuration) with ERR_PATH_OUTSIDE_BASE, and ERR_REPOSITORY_NOT_FOUND. Fills repo and root. */
int git_call_open(struct git_call *call, struct err *err) ABX_MUST_USE;
/* The same checks for a repository at that absolute path itself (a remote that is a path). */
int git_repository_check(const struct confine *confine, const char *path, struct err *err) ABX_MUST_USE;

#endif
