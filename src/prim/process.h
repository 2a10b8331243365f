/* The one process table: every program that abxd starts is an entry with an opaque id, a pidfd, a ring for each stream
 * and its exit. Main thread only; nothing here blocks but the spawn itself (about a millisecond) and the look through
 * /proc for a tree. The program must ignore SIGPIPE. */
#ifndef ABX_PRIM_PROCESS_H
#define ABX_PRIM_PROCESS_H

#include "base/err.h"
#include "base/list.h"
#include "base/loop.h"
#include "prim/capture.h"
#include "prim/command_line.h"
#include "prim/env_overrides.h"
#include "prim/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process_table;
struct process;

enum process_kind {
    PROCESS_SHELL,
    PROCESS_PROCESS,
    PROCESS_TERMINAL,
    PROCESS_CODE,
    PROCESS_GIT,
    PROCESS_BROWSER,
    PROCESS_HELPER
};
enum process_stream { PROCESS_STDOUT, PROCESS_STDERR };
enum process_state {
    PROCESS_RUNNING,
    PROCESS_EXITED,  /* reaped; what was in the pipes at that moment is still being read */
    PROCESS_DRAINED, /* the end as clients see it: exit fields and every byte up to it are there */
};

struct process_limits {
    size_t living_max;             /* 512 without terminals; past it ERR_TOO_MANY_PROCESSES */
    size_t terminals_max;          /* 256 living; past it ERR_TOO_MANY_TERMINALS */
    size_t ended_processes_max;    /* 256 */
    size_t ended_shells_max;       /* 64 */
    size_t ended_output_max_bytes; /* 64 MiB for all ended ones together */
};

/* Becomes the subreaper of its descendants and watches SIGCHLD: orphans are reaped, exit codes of entries never stolen.
 * envp is what children inherit (copied, less ABX_SERVER_*). NULL with *err. */
struct process_table *process_table_new(struct loop *loop, const struct process_limits *limits, char *const *envp,
                                        struct err *err);
/* SIGTERM to every tree, SIGKILL after grace_ms (shutdown); to those of terminals first SIGHUP, and SIGTERM to what is
 * left after a quarter of that time, followed by SIGHUP. done is called when no entry lives any more. */
void process_table_end_all(struct process_table *table, unsigned grace_ms, loop_fn done, void *ctx);
/* Frees all; entries still living are killed. Whoever still holds a reference can only give it back. */
void process_table_free(struct process_table *table);
/* The environment that a client's program gets (without ABX_PROCESS_ID): the server's own with what POST /env changed.
 * Whoever starts programs for clients (shells, terminals, code contexts, commands) begins with this one; borrowed,
 * valid until the next turn of the loop. */
const struct env_block *process_table_env(const struct process_table *table);
/* The same without those changes, for our own workers (helpers, git, the browser): no client changes how they work. */
const struct env_block *process_table_own_env(const struct process_table *table);
struct env_overrides *process_table_overrides(struct process_table *table);
/* Those that live: all but terminals, and terminals. */
size_t process_table_living(const struct process_table *table);
size_t process_table_living_terminals(const struct process_table *table);
/* Whether each program gets a control group of its own (prim/process_cgroup), or trees are found by a walk only. */
bool process_table_has_cgroups(const struct process_table *table);
/* By id ("p-...") or decimal pid of a living one; NULL. Borrowed. */
struct process *process_find(struct process_table *table, const char *id);
/* All that is kept: the living in the order of their start, then the ended in the order of their end. fn may take
 * references, and must not start or drop anything. */
void process_table_each(struct process_table *table, void (*fn)(struct process *process, void *ctx), void *ctx);

/* For a program on a terminal: its descriptors 0 to 2 are `slave`, which becomes its controlling terminal, and what it
 * prints is somebody else's, who is told here. Called from the loop. */
struct process_terminal {
    int slave; /* stays the caller's */
    void *ctx;
    void (*on_reaped)(void *ctx);          /* it has ended; process_terminal_drained must follow */
    size_t (*kept_bytes)(const void *ctx); /* the memory of what is kept of its output */
    void (*on_release)(void *ctx);         /* the table's limit on that is passed: the output is to be given up */
    void (*on_dropped)(void *ctx);         /* the table forgets the entry: the last of these calls, always made once */
};

struct process_spec {
    enum process_kind kind;
    const char *command; /* for /bin/bash -c, else /bin/sh -c; or NULL and argv */
    size_t command_len;
    const char *command_prefix;  /* shell text put before the command and not shown as part of it; NULL: none */
    char *const *argv;           /* NULL-terminated */
    int cwd_fd;                  /* an open directory; stays the caller's */
    const char *cwd;             /* its path, for display */
    const struct env_block *env; /* the whole environment less ABX_PROCESS_ID, which is added */
    const char *stdin_bytes;     /* copied; NULL: empty, end of file at once */
    size_t stdin_len;
    bool keep_stdin;                         /* it stays open after stdin_bytes, for process_write_start */
    int stdin_fd;                            /* -1, or a descriptor that becomes the child's stdin (helpers) */
    int channel_fd;                          /* 0, or a descriptor that becomes 3 of the program, close-on-exec here;
                                              * stays the caller's */
    size_t data_max_bytes;                   /* RLIMIT_DATA, 0: as the server's */
    unsigned fds_max;                        /* RLIMIT_NOFILE, 0: as the server's */
    unsigned timeout_ms;                     /* 0: none. SIGTERM to the tree, SIGKILL after 2 s */
    const char *tag;                         /* NULL: none */
    size_t capture_bytes;                    /* 0, or keep head and tail of each stream up to this (prim/capture) */
    const struct process_terminal *terminal; /* NULL: pipes. Copied */
    bool pace; /* a reader will attach at once: hold the program until it does (at most 30 s) */
};

/* Starts it. Errors: ERR_EXECUTABLE_NOT_FOUND, ERR_NOT_EXECUTABLE (argv only; a shell says 127 and 126 itself),
 * ERR_PAYLOAD_TOO_LARGE (E2BIG: arguments), ERR_TOO_MANY_PROCESSES, ERR_TOO_MANY_TERMINALS, ERR_INVALID_REQUEST (NUL
 * inside). The entry belongs to the table; a caller that keeps the pointer takes a reference. Where it fails, nothing
 * of spec->terminal is ever called. */
struct process *process_start(struct process_table *table, const struct process_spec *spec, struct err *err);
struct process *process_ref(struct process *process);
void process_unref(struct process *process);

const char *process_id(const struct process *process);
enum process_kind process_kind(const struct process *process);
const char *process_tag(const struct process *process); /* NULL: none */
pid_t process_pid(const struct process *process);
const char *process_cwd(const struct process *process);
/* What it was started with, as it was given: not masked yet. */
const struct command_line *process_command_line(const struct process *process);
uid_t process_uid(const struct process *process); /* whose it was at its start */
/* These and what stands above never change: with a reference, other threads may look at them, too. */
enum process_state process_state(const struct process *process);
uint64_t process_started_ms(const struct process *process); /* since 1970 */
uint64_t process_started_ns(const struct process *process); /* monotonic: by it they are in the order of their start */
/* Milliseconds since 1970 as RFC 3339 UTC with milliseconds. */
void process_format_time(uint64_t ms, char out[32]);
/* The start, in that form. */
void process_started_at(const struct process *process, char out[32]);

struct process_exit {
    int exit_code; /* 128+n for signal n */
    int signal;    /* 0: none */
    bool timed_out;
    uint64_t duration_ms;
};
/* 0, or -1 while it runs (then only duration_ms and timed_out are filled). */
int process_exit(const struct process *process, struct process_exit *out);

/* Sends a signal to the direct child, or to its whole tree (prim/process_tree). Never to pid 1, the server or its
 * ancestors. ERR_ALREADY_EXITED where nothing of it lives. */
int process_signal(struct process *process, int signal, bool tree, struct err *err) ABX_MUST_USE;
/* SIGTERM to the tree, SIGKILL after 2 s if anything of it still lives. */
void process_stop(struct process *process);
/* The same with SIGHUP (and SIGCONT) first: what ends an interactive shell, which ignores SIGTERM. */
void process_hang_up(struct process *process);
/* Of a program on a terminal: the last byte that it printed was read, and it becomes PROCESS_DRAINED. After on_reaped,
 * from the loop. */
void process_terminal_drained(struct process *process);

/* Reads what is in both pipes at this moment, also where readers pace the program; they are told at the next turn. What
 * a program printed before it said something in another way is there then. Not for a stream that is to be whole with a
 * slow reader: each call lets the program go on, and the ring may overrun; see process_output_ahead. A program that has
 * ended may become PROCESS_DRAINED here. */
void process_output_catch_up(struct process *process);
/* Where a stream ends with what is in the pipe at this moment: once a reader has come there, it has all that the
 * program printed before. Reads nothing. */
uint64_t process_output_ahead(const struct process *process, enum process_stream stream);

/* Called once, from the loop, when the process is PROCESS_DRAINED (at the next turn where it already is). Embedded by
 * its user; zero it first. */
struct process_wait {
    struct list node;
    struct loop_defer defer;
    loop_fn fn;
    void *ctx;
};
void process_wait_start(struct process *process, struct process_wait *wait, loop_fn fn, void *ctx);
void process_wait_stop(struct process_wait *wait);

/* Standard input of a program that was started with keep_stdin. */
enum process_stdin {
    PROCESS_STDIN_NOT_KEPT,
    PROCESS_STDIN_OPEN,
    PROCESS_STDIN_ENDED,  /* a writer closed it */
    PROCESS_STDIN_UNREAD, /* the program ended, or closed it */
};
enum process_stdin process_stdin(const struct process *process);

/* Bytes for it; the writers of one process take turns, in the order of their starts. Embedded by its user; zero it, and
 * fill in the first four. */
struct process_write {
    const char *bytes; /* borrowed while it waits */
    size_t len;
    bool eof; /* close it afterwards */
    void *ctx;

    size_t written; /* what the pipe took so far */
    enum {
        PROCESS_WRITE_WAITING,
        PROCESS_WRITE_DONE,
        PROCESS_WRITE_FAILED
    } state;                 /* failed: process_stdin tells why */
    struct process *process; /* while it waits */
    struct list node;
    struct loop_defer defer;
    loop_fn fn;
};
/* Writes what the pipe takes at once. Where the state is PROCESS_WRITE_WAITING then, the rest follows as the program
 * reads, and fn is called once at the end; else it is not. */
void process_write_start(struct process *process, struct process_write *write, loop_fn fn);
/* The rest is dropped, and the next writer has its turn; harmless on one that does not wait. */
void process_write_stop(struct process_write *write);

/* The ring of a stream; borrowed. At PROCESS_DRAINED, exit_end is where the output of the program itself ended (what a
 * grandchild writes later is read and thrown away). */
const struct ring *process_ring(const struct process *process, enum process_stream stream);
uint64_t process_exit_end(const struct process *process, enum process_stream stream);
/* Nothing more will come on this stream: every writer closed it. */
bool process_stream_closed(const struct process *process, enum process_stream stream);

#define PROCESS_NOT_READ UINT64_MAX
/* A reader of both streams: told when there is more, and the fastest one paces the program. One that takes nothing for
 * 30 s while bytes wait no longer counts. Embedded by its user; zero it first. */
struct process_reader {
    struct list node;
    struct process *process;
    uint64_t offset[2]; /* how far it has read, or PROCESS_NOT_READ: then it is told all the same, but paces nothing;
                         * the reader moves them and then calls process_reader_took */
    uint64_t took_at_ms;
    loop_fn fn; /* more bytes, a stream closed, or the state changed; from the loop */
    void *ctx;
};
void process_reader_attach(struct process *process, struct process_reader *reader, loop_fn fn, void *ctx);
void process_reader_took(struct process_reader *reader);
void process_reader_detach(struct process_reader *reader);

/* Head and tail of a stream as capture_bytes asked for (all empty without), up to the end that PROCESS_DRAINED marks.
 * Borrowed, valid until the next turn of the loop. */
void process_captured(struct process *process, enum process_stream stream, struct capture_view *out);
/* After a catch-up: begins new captures of both streams with what comes from now on. -1 out of memory: then there are
 * none. */
int process_capture_restart(struct process *process, size_t limit_bytes, struct err *err) ABX_MUST_USE;
/* Gives the capture's memory back (after the answer was made). */
void process_capture_free(struct process *process);

/* Called at PROCESS_DRAINED before the waiters: sessions collect their state here. One for each process; NULL takes it
 * back. */
void process_on_exit(struct process *process, void (*fn)(struct process *process, void *ctx), void *ctx);

#endif
