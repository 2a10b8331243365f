/* What the parts of a terminal share: terminal.c (its life), terminal_output.c, terminal_clients.c, terminal_input.c,
 * terminal_interrupt.c.
 */
#ifndef ABX_PRIM_TERMINAL_INTERNAL_H
#define ABX_PRIM_TERMINAL_INTERNAL_H

#include "prim/ring.h"
#include "prim/terminal.h"

enum terminal_due { TERMINAL_DUE_RESIZED = 1, TERMINAL_DUE_OUTPUT = 2, TERMINAL_DUE_INPUT = 4 };

struct terminal_output {
    struct ring ring;
    size_t withheld;          /* bytes at the ring's end: a character's beginning, whose rest may come at once */
    bool paused;              /* the fastest client is too far behind */
    bool hung_up;             /* nobody has the slave open, as far as we know */
    uint64_t after_exit;      /* bytes read since the exit was known */
    uint64_t exit_at_ms;      /* when that was */
    struct loop_timer stall;  /* while paused: the next client stops counting */
    struct loop_timer rest;   /* while bytes are withheld */
    struct loop_timer retry;  /* while hung up: the program may open its terminal again */
    struct loop_timer quiet;  /* after the exit: nothing has come for a while */
    struct loop_defer finish; /* after the exit: the first look */
};

/* What one client has waiting, shared by its chunks. */
struct terminal_input {
    struct terminal_client *client; /* NULL: it has gone */
    size_t waiting;
};

/* A piece of it; small ones of one client share one, so that there are never many. */
struct chunk {
    struct list node;
    struct terminal_input *input;
    size_t done, len, cap;
    size_t searched; /* up to here it holds nothing that interrupts */
    char bytes[];
};

/* The characters that interrupt, as the program has its terminal set. */
struct terminal_interrupts {
    bool any;            /* ISIG */
    unsigned char is[3]; /* VINTR, VQUIT, VSUSP */
};

struct terminal_queue {
    struct list chunks; /* struct chunk (terminal_input.c): the oldest first */
    size_t waiting;     /* bytes in them */
    struct terminal_interrupts searched_for;
    size_t unechoed; /* bytes written since all output there was had been read */
    uint64_t took_at_ms;
    struct loop_timer stall;
    char interrupt;   /* one that the kernel took last, */
    int unread_bytes; /* while so much was unread; more than 0 while the timer runs */
    struct loop_timer unheard;
};

struct terminal {
    int references;
    int master; /* -1: it could not be watched, or was hung up for good */
    struct terminal_view *view;
    loop_fn on_drained;
    void *ctx;
    struct loop *loop;     /* NULL until terminal_run */
    struct loop_fd *watch; /* of the master */
    struct terminal_exit exit;
    bool ended, drained; /* the exit status is known; and so is every byte before it */
    struct terminal_output output;
    struct terminal_queue queue;
    struct list clients;
    struct loop_defer tell;
};

/* --- terminal.c */

/* Watches the master for what the parts want now. */
void terminal_watch(struct terminal *terminal);

/* --- terminal_output.c */

void terminal_output_init(struct terminal_output *output);
void terminal_output_deinit(struct terminal_output *output);
bool terminal_output_wanted(const struct terminal *terminal);
/* Reads what there is (not while paused) and tells the clients. From the loop. */
void terminal_output_read(struct terminal *terminal);
/* The exit is known: read to the end. */
void terminal_output_finish(struct terminal *terminal);
/* After a client came, went or took something. */
void terminal_output_pace(struct terminal *terminal);
/* Up to where clients may read now. */
uint64_t terminal_output_end(const struct terminal *terminal);
/* The least offset that is kept and begins a character. */
uint64_t terminal_output_start(const struct terminal *terminal);
/* The end, or where the character begins that is incomplete there. */
uint64_t terminal_output_last_whole(const struct terminal *terminal);

/* --- terminal_clients.c */

bool terminal_client_is_waiting(const struct terminal_client *client);
/* Notes an event for one client, or for all (but one that may be NULL); they are told at the next turn. */
void terminal_note(struct terminal_client *client, enum terminal_due due);
void terminal_note_all(struct terminal *terminal, enum terminal_due due, const struct terminal_client *but);
/* Tells what is noted, now. From the loop; the caller holds a reference. */
void terminal_tell(void *ctx);

/* --- terminal_input.c */

void terminal_queue_init(struct terminal_queue *queue);
/* Drops all that waits. */
void terminal_queue_clear(struct terminal *terminal);
bool terminal_queue_wanted(const struct terminal *terminal);
/* Writes on. */
void terminal_queue_pump(struct terminal *terminal);
/* All output that there was has been read. */
void terminal_queue_echoed(struct terminal *terminal);
/* The oldest, or NULL. */
struct chunk *terminal_queue_first(const struct terminal_queue *queue);
/* So many bytes of it are written, or dropped; it is freed with the last one. */
void terminal_queue_advance(struct terminal_queue *queue, struct chunk *chunk, size_t len);
/* A client goes; what it gave still arrives. */
void terminal_queue_detach(struct terminal_client *client);

/* --- terminal_interrupt.c */

/* Nothing was taken for a while: a character that interrupts and waits in the queue gets through. */
void terminal_interrupt_stalled(struct terminal *terminal);
/* There is no room for these bytes. Where one of them interrupts it gets through (and all that waits is dropped): true.
 * With NOFLSH none does. */
bool terminal_interrupt_refused(struct terminal *terminal, const char *bytes, size_t len);
/* These bytes were written: where one of them interrupts and is not heard, it will be. */
void terminal_interrupt_watch(struct terminal *terminal, const char *bytes, size_t len);

#endif
