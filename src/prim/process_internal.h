/* What the files of the process table share among themselves; nobody else includes it.
 *   process.c         an entry: start, what it tells, references
 *   process_table.c   all entries: reaping, finding, what is kept of ended ones
 *   process_output.c  pipes into rings, readers and their pace, the drain at the end
 *   process_input.c   standard input as it drains
 *   process_signal.c  signals that clients ask for
 *   process_stop.c    time-outs, the end of trees */
#ifndef ABX_PRIM_PROCESS_INTERNAL_H
#define ABX_PRIM_PROCESS_INTERNAL_H

#include "prim/process.h"
#include "prim/process_cgroup.h"
#include "prim/process_pids.h"
#include "prim/process_tree.h"

struct process_output {
    struct process *process;
    enum process_stream stream;
    int fd; /* -1: every writer closed it */
    struct loop_fd *watch;
    struct ring ring;
    struct capture *capture;
    uint64_t exit_end; /* once reaped: where the program's own output ends */
    bool paused, widened;
};

struct process_input {
    int fd;                     /* -1: nothing (more) to write */
    struct loop_fd *watch;      /* as long as there is a descriptor; idle while nobody writes */
    struct list writes;         /* process_write, in their order */
    struct process_write first; /* what it was started with, as far as the pipe did not take it at once */
    char *bytes;                /* and the copy of that */
    enum process_stdin state;
};

struct process {
    struct list node;      /* in table->living or table->ended */
    struct list kind_node; /* in one of table->ended_by */
    struct process_table *table;
    int references; /* the table's while listed, one for each open output, one while it is being stopped, and the users'
                     */
    char id[16];
    enum process_kind kind;
    enum process_state state;
    char *cwd, *tag;
    struct command_line line; /* its bytes are owned */
    uid_t uid;
    bool dropped; /* no longer in the table */
    bool unseen;  /* and nobody holds it but its open pipes */

    pid_t pid;
    int pidfd;
    bool contained;                /* it was started in a control group: this one, until that is given back empty */
    struct process_cgroup *cgroup; /* else NULL */
    struct loop_defer give_back;   /* of the group */
    struct loop_fd *exit_watch;
    uint64_t started_ms;           /* since 1970 */
    uint64_t started_ns, ended_ns; /* monotonic */
    uint64_t reaped_ticks;         /* proc_ticks_now */
    int exit_code, exit_signal;
    bool timed_out;

    struct process_output outputs[2]; /* of a program on a terminal both are closed from the start */
    struct process_input input;
    struct process_terminal terminal; /* on_dropped is NULL where there is none, or nobody is to be told any more */
    size_t ended_bytes;               /* its part of table->ended_bytes */

    struct list waits, readers;
    struct loop_defer notify;
    size_t untold;                 /* readers that are still to be told */
    struct loop_timer stall_timer; /* runs while an output is paused: readers that take nothing stop counting */
    uint64_t held_until_ms;        /* spec.pace, before the first reader */

    struct loop_timer timeout;
    struct list stop_node; /* in table->stopping */
    int stop_signal;       /* what asks it to end: SIGTERM or SIGHUP */
    bool asked;            /* it had that */
    uint64_t kill_at_ms;   /* 0: not asked yet */
    unsigned kill_tries;

    void (*on_exit)(struct process *process, void *ctx);
    void *on_exit_ctx;
};

/* Ended entries of a kind that has a limit of its own, in order of their end. */
struct process_ended {
    struct list list;
    size_t count;
};

struct process_table {
    struct loop *loop;
    struct process_limits limits;
    struct env_overrides env;
    int null_fd;         /* /dev/null, the usual stdin */
    int child_signal_fd; /* SIGCHLD: ours end, and orphans that came to us */
    struct loop_fd *child_signal;
    struct loop_defer reap_defer;
    struct list living, ended;        /* ended: in order of their end */
    struct process_ended ended_by[2]; /* the same: programs, then shells */
    size_t ended_bytes;               /* of their output */
    struct list dropped;              /* found by nobody, but held by users or open pipes */
    size_t living_count;              /* all but terminals */
    size_t terminals_count;           /* living ones */
    struct process_pids running;      /* of those not reaped yet; one for which memory was out is missing */

    struct process_cgroups *cgroups; /* NULL: trees are found by a walk through /proc */
    struct list signallings;         /* of process_signal.c, */
    struct list due;                 /* and those among them that look or kill at the next turn */
    struct loop_defer due_defer;

    struct list stopping;
    struct loop_defer stop_defer;
    struct loop_timer stop_timer;

    bool ending;
    uint64_t end_term_at_ms; /* to terminals; 0: it was sent */
    uint64_t end_kill_at_ms;
    struct loop_timer end_timer;
    loop_fn end_done;
    void *end_ctx;
};

/* Takes it out of its list, and nothing on the loop leads to it any more. */
void process_detach(struct process *process);
void process_table_add(struct process_table *table, struct process *process);
/* The entry is PROCESS_DRAINED: moves it among the ended ones, or drops it. */
void process_table_ended(struct process_table *table, struct process *process);
/* Gives up what is over the limits, the oldest first. */
void process_table_trim(struct process_table *table);
/* For use by another program, where nothing lives in it any more: its control group. */
void process_give_back(void *process);
/* Collects the exit status if there is one. */
void process_reap(struct process *process);

/* Takes the reading end of a pipe. */
int process_output_open(struct process_output *output, int fd, size_t capture_bytes, struct err *err) ABX_MUST_USE;
/* Begins to read both. */
int process_output_watch(struct process *process, struct err *err) ABX_MUST_USE;
void process_output_close(struct process_output *output);
/* The program was reaped: reads what is in the pipes now, then goes to PROCESS_DRAINED. */
void process_output_drain(struct process *process);
void process_output_notify(struct process *process);

/* Takes the writing end of a pipe. Without keep it is closed once the pipe has taken the bytes. */
int process_input_open(struct process *process, int fd, const char *bytes, size_t len, bool keep,
                       struct err *err) ABX_MUST_USE;
/* Whoever still writes is told. */
void process_input_close(struct process *process);

void process_on_timeout(void *process);
struct process_tree process_tree_of(const struct process *process);
/* Promises to clients end with the server. */
void process_signal_forget_all(struct process_table *table);
/* Stops whatever the table still had in hand; trees being stopped are killed at once. */
void process_stop_all_now(struct process_table *table);

#endif
