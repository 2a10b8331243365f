/* One terminal at work: the master end of a pty, a ring of what the program printed, and the clients that are attached.
 * Knows nothing of sockets or frames. Everything here is for the thread of its loop (the terminal thread), but
 * terminal_new. Nothing blocks.
 *
 * The program is never held up by nobody being attached. With clients, the fastest one paces it: it may be 1 MiB behind
 * before the master is read no further. One that takes nothing for 30 s while bytes wait no longer counts, and whoever
 * falls out of the ring (4 MiB) is told of the gap. */
#ifndef ABX_PRIM_TERMINAL_H
#define ABX_PRIM_TERMINAL_H

#include "base/err.h"
#include "base/list.h"
#include "base/loop.h"
#include "prim/process.h"
#include "prim/terminal_size.h"
#include "prim/terminal_view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct terminal;
struct terminal_input; /* what the program has not taken yet of one client's input */

enum {
    TERMINAL_ID_MAX = 16,
    /* What one client may have waiting for the program before it should send no more (terminal_input_is_full). */
    TERMINAL_INPUT_MAX_BYTES = 2 * 1024 * 1024,
};

/* The end of its program, as clients are told it. */
struct terminal_exit {
    struct process_exit exit;
    uint64_t started_ms; /* since 1970 */
};

/* With one reference; takes the master, and a reference of its own to the view. May be called on another thread, before
 * terminal_run. on_drained is called once, when the exit status is known (terminal_ended) and the last byte was read:
 * from the loop. NULL: out of memory (the master stays the caller's). */
struct terminal *terminal_new(int master, struct terminal_view *view, loop_fn on_drained, void *ctx);
/* Begins to read. Where that fails it is as if the terminal had been closed: the program gets SIGHUP from the kernel.
 */
void terminal_run(struct terminal *terminal, struct loop *loop);
struct terminal *terminal_ref(struct terminal *terminal);
/* The last one closes the master, unless the exit has come before (terminal_exit): that hangs up whatever still has the
 * terminal open. */
void terminal_unref(struct terminal *terminal);
/* The program was reaped. What it printed is read to the end (EIO; a terminal that other processes hold open: until it
 * is empty and has been quiet for 100 ms, but of what they print no more than 1 MiB and 1 s), then the exit is there.
 * What others print after that is read and thrown away. */
void terminal_ended(struct terminal *terminal, const struct terminal_exit *exit);
/* Gives up the memory of what was printed; clients that have not read it all are told of the gap. */
void terminal_release(struct terminal *terminal);

struct terminal_size terminal_size(const struct terminal *terminal);
/* Where the next byte will be. */
uint64_t terminal_offset(const struct terminal *terminal);
/* NULL until the exit is known and every byte before it is in the ring. Borrowed. */
const struct terminal_exit *terminal_exit(const struct terminal *terminal);

/* --- clients */

struct terminal_client_events {
    void (*on_output)(void *ctx);  /* there is more to read, or terminal_exit is there */
    void (*on_resized)(void *ctx); /* by another client */
    void (*on_input)(void *ctx);   /* terminal_input_is_full is no longer true */
};

/* Embedded by its user; zero it, and set read_only, events and ctx. Events come from the loop, never from inside a
 * call of its own. */
struct terminal_client {
    bool read_only; /* its size and input are not for the program */
    const struct terminal_client_events *events;
    void *ctx;

    struct terminal *terminal; /* a reference; NULL: not attached */
    struct list node;
    uint64_t offset; /* of the next byte that terminal_read gives */
    uint64_t took_at_ms;
    struct terminal_input *input; /* NULL: nothing waits */
    unsigned due;                 /* the events that it is still to be told of */
};

enum { TERMINAL_SINCE_ALL = -2, TERMINAL_SINCE_NONE = -1 }; /* all of the ring; only what comes now */

/* Attaches it. since: an offset, or one of the above. At TERMINAL_SINCE_ALL and TERMINAL_SINCE_NONE it begins with a
 * whole character; at an offset exactly there, and where that is no longer kept terminal_read tells the gap. on_output
 * follows if there is anything to read. ERR_INVALID_REQUEST, field since, for an offset beyond what has come. */
int terminal_attach(struct terminal *terminal, struct terminal_client *client, int64_t since,
                    struct err *err) ABX_MUST_USE;
/* Whatever it has given as input and the program has not taken still arrives. Harmless where it is not attached. */
void terminal_detach(struct terminal_client *client);

struct terminal_gap {
    uint64_t from, to; /* equal: none */
};
/* What comes next for this client: copies up to max bytes (at least 4), moves its offset and counts as taking. Never
 * ends inside a character when the rest of it is there or may come at once (it is waited for up to 20 ms, then
 * on_output comes). Where bytes were lost first, *out_gap tells which, nothing is copied, and the offset is `to` now:
 * call again. 0 and no gap: nothing for now. */
size_t terminal_read(struct terminal_client *client, char *out, size_t max, struct terminal_gap *out_gap);
/* Whether terminal_read would give anything now. */
bool terminal_has_more(const struct terminal_client *client);

/* Input for the program: written now as far as the terminal takes it, the rest (copied) as the program reads, in the
 * order of the calls of all clients. Where the terminal takes nothing for 250 ms and a character is waiting that
 * interrupts (its VINTR, VQUIT or VSUSP, while ISIG is set), what waits before that is dropped, as a terminal's own
 * input queue is by such a character (unless NOFLSH is set), and the character gets through.
 * ERR_PERMISSION_DENIED for one that is read-only, ERR_ALREADY_EXITED, ERR_BUSY where 8 MiB of all clients wait
 * already, ERR_INTERNAL (out of memory); the bytes, or their rest, are dropped then. */
int terminal_input(struct terminal_client *client, const char *bytes, size_t len, struct err *err) ABX_MUST_USE;
bool terminal_input_is_full(const struct terminal_client *client);

/* The program's group gets SIGWINCH if it is another size, and the other clients on_resized. Of one that is read-only
 * it is ignored. The size was checked. */
void terminal_resize(struct terminal_client *client, struct terminal_size size);
/* To the foreground process group. SIGINT, SIGQUIT and SIGTSTP by the terminal itself (TIOCSIG, which takes no others),
 * the rest by kill() to the group that the terminal names at that moment. One that clients may send (prim/signals,
 * signals_for_client). ERR_PERMISSION_DENIED read-only or the group is not ours to signal, ERR_ALREADY_EXITED. */
int terminal_signal(struct terminal_client *client, int signal, struct err *err) ABX_MUST_USE;

#endif
