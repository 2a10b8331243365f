/* A signal as a client asks for it: by the name of a process, with what must never be hit, and with SIGKILL afterwards
 * where that was asked for, which comes whether the client is still there or not. Called by bind_proc_signal. */
#ifndef ABX_PRIM_PROCESS_SIGNAL_H
#define ABX_PRIM_PROCESS_SIGNAL_H

#include "base/err.h"
#include "base/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process_table;
struct signalling;

struct signal_request {
    int signal;
    bool tree; /* all that descends from it, too */
    bool escalates;
    unsigned escalate_ms; /* SIGKILL to the same after that long, if anything of it then lives */
};

/* Sends it. id: an entry's, or a decimal pid; the number that an ended entry had means that entry until another one has
 * it, never a newcomer. ERR_SIGNAL_NOT_ALLOWED, field "id", for pid 1, 0, negatives, the server, its ancestors, all in
 * their sessions, and trees that hold one of them; ERR_PROCESS_NOT_FOUND, ERR_ALREADY_EXITED, ERR_PERMISSION_DENIED.
 * Reads /proc as prim/process_tree does. The caller owns the result (signalling_free). */
struct signalling *process_signal_ask(struct process_table *table, const char *id, const struct signal_request *request,
                                      struct err *err);
/* What was promised still happens. Nothing is called any more. */
void signalling_free(struct signalling *signalling);

/* Calls fn once, from the loop, when SIGKILL was sent and had its effect or is not needed (where it was asked for), and
 * then the process itself has ended or wait_ms are over since this call. False: that is so already, and fn is not
 * called. */
bool signalling_wait(struct signalling *signalling, unsigned wait_ms, loop_fn fn, void *ctx);

struct signalling_report {
    char id[24]; /* of a process that was not started here: its pid */
    pid_t pid;
    size_t signalled; /* how many processes got the signal */
    bool escalated;
    bool ended;      /* the process itself */
    bool has_exit;   /* its exit is known: it ended and was started here */
    int exit_code;   /* 128+n for signal n */
    int exit_signal; /* 0: none */
    bool timed_out;
    char started_at[32]; /* RFC 3339 */
    uint64_t duration_ms;
};
void signalling_tell(const struct signalling *signalling, struct signalling_report *out);

#endif
