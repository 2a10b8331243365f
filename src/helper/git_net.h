/* One conversation with a remote: which one it is, callbacks, credentials, and what went wrong; for clone, fetch, pull
 * and push. */
#ifndef ABX_HELPER_GIT_NET_H
#define ABX_HELPER_GIT_NET_H

#include "helper/git_url.h"

#include <stdbool.h>

struct git_net {
    struct git_call *call;
    git_remote *remote;
    bool trusts;                     /* `trusted` is set: a remote that is a path gets no credentials */
    struct git_origin trusted;       /* whom the credentials are for */
    const char *username, *password; /* NULL: none were given; borrowed from the call's params */
    bool given;                      /* the password was handed out once */
    bool encrypted;                  /* the newest connection has a valid certificate */
    char host[256];                  /* of the newest connection */
    unsigned port;
    bool lists;     /* update_tips writes items of an open array into the call's result */
    char said[512]; /* the end of what the server said beside the data */
};

/* For a URL that was checked, with a remote that the caller makes afterwards (net->remote, which stays his). Takes the
 * call's `credentials`. Not to be copied, and to live as long as the remote is used. */
int git_net_init(struct git_net *net, struct git_call *call, const struct git_url *url, struct err *err) ABX_MUST_USE;
/* The remote of that name in the call's repository; where it really leads was checked against the rule, after
 * insteadOf and pushurl. ERR_REFERENCE_NOT_FOUND with field "remote". Frees with git_net_deinit. */
int git_net_open(struct git_net *net, struct git_call *call, const char *name, bool push, struct err *err) ABX_MUST_USE;
void git_net_deinit(struct git_net *net);

/* payload is the net. */
void git_net_callbacks(struct git_net *net, git_remote_callbacks *callbacks);
/* git_fail, but for what the network, the remote and its certificate are to blame for; git_net_fail.c. Always -1. */
int git_net_fail(struct git_net *net, int git_code, const char *what, struct err *err);

/* A member of params that is an array of strings, as libgit2 wants it: free(out->strings). */
int git_net_strings(const struct git_call *call, const char *name, git_strarray *out, struct err *err) ABX_MUST_USE;
/* {ref, old, new}; zeros are null. */
void git_net_out_update(struct json_out *out, const char *ref, const git_oid *old, const git_oid *new);

/* git_remote.c: the members of the config that tell where a branch comes from. */
int git_remote_track(git_repository *repo, const char *branch, const char *remote, const char *merge_ref) ABX_MUST_USE;

/* Operations that need a remote. */
int git_clone_operation(struct git_call *call, struct err *err) ABX_MUST_USE;
int git_fetch_operation(struct git_call *call, struct err *err) ABX_MUST_USE;
int git_pull_operation(struct git_call *call, struct err *err) ABX_MUST_USE;
int git_push_operation(struct git_call *call, struct err *err) ABX_MUST_USE;

/* git_fetch.c: connects and brings what refspecs name (none: those of the configuration), unless one of them would
 * change the branch that is checked out: ERR_INVALID_REQUEST. While net->lists, what changed is written. The heads of
 * the remote (git_remote_ls) stay to be asked for. */
int git_fetch_run(struct git_net *net, const git_strarray *refspecs, git_fetch_prune_t prune,
                  struct err *err) ABX_MUST_USE;
/* Afterwards, while the remote is still there: ERR_NON_FAST_FORWARD, with "refused":[{ref, reason}] in the call's
 * extra, where a refspec without + would have moved a reference to what does not follow it; libgit2 leaves those in
 * silence. */
int git_fetch_check(struct git_net *net, const git_strarray *refspecs, struct err *err) ABX_MUST_USE;

#endif
