/* The output of a terminal: from the master into the ring, paced by the clients, and to its end when the program has
 * ended; part of prim/terminal. */
#include "base/utf8.h"
#include "prim/terminal_internal.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

enum {
    /* One turn's, and one frame's of a client that keeps up. The kernel gives 4,095 bytes a read at most. */
    TURN_BYTES = 64 * 1024,
    READ_MIN_BYTES = 4096,
    /* What the fastest client may be behind; far enough below the ring that it never meets a gap. */
    BACKLOG_MAX_BYTES = 1024 * 1024,
    STALL_MS = 30 * 1000,
    REST_MS = 20,         /* for the rest of a character */
    HUNG_UP_MS = 100,     /* between looks whether somebody opened the slave again */
    QUIET_MS = 100,       /* after the exit */
    AFTER_EXIT_MS = 1000, /* and no longer, however busy others are */
    AFTER_EXIT_BYTES = 1024 * 1024,
    CHARACTER_MAX = 4,
};

void terminal_output_init(struct terminal_output *output)
{
    ring_init(&output->ring, RING_MAX_BYTES);
}

void terminal_output_deinit(struct terminal_output *output)
{
    loop_timer_stop(&output->stall);
    loop_timer_stop(&output->rest);
    loop_timer_stop(&output->retry);
    loop_timer_stop(&output->quiet);
    loop_defer_stop(&output->finish);
    ring_deinit(&output->ring);
}

bool terminal_output_wanted(const struct terminal *terminal)
{
    return !terminal->output.paused && !terminal->output.hung_up;
}

/* --- whole characters */

static size_t incomplete_len(const struct ring *ring)
{
    char tail[CHARACTER_MAX - 1];
    uint64_t from = ring->end - ring->start > sizeof(tail) ? ring->end - sizeof(tail) : ring->start;
    size_t len = ring_copy(ring, from, tail, sizeof(tail));
    return len - utf8_whole_len(tail, len);
}

uint64_t terminal_output_end(const struct terminal *terminal)
{
    return terminal->output.ring.end - terminal->output.withheld;
}

uint64_t terminal_output_start(const struct terminal *terminal)
{
    const struct ring *ring = &terminal->output.ring;
    char head[CHARACTER_MAX];
    if (ring->start == 0)
        return 0; /* nothing was cut off */
    size_t len = ring_copy(ring, ring->start, head, sizeof(head));
    return ring->start + utf8_skip_len(head, len);
}

uint64_t terminal_output_last_whole(const struct terminal *terminal)
{
    const struct ring *ring = &terminal->output.ring;
    return ring->end - incomplete_len(ring);
}

static void on_rest_missing(void *ctx)
{
    struct terminal *terminal = terminal_ref(ctx);
    terminal->output.withheld = 0;
    terminal_note_all(terminal, TERMINAL_DUE_OUTPUT, NULL);
    terminal_tell(terminal);
    terminal_unref(terminal);
}

static void withhold_incomplete(struct terminal *terminal)
{
    struct terminal_output *output = &terminal->output;
    output->withheld = incomplete_len(&output->ring);
    if (output->withheld > 0)
        loop_timer_start(terminal->loop, &output->rest, REST_MS, on_rest_missing, terminal);
    else
        loop_timer_stop(&output->rest);
}

/* --- pace */

/* How far behind the fastest client that counts is; 0 where nobody does. */
static uint64_t backlog(const struct terminal *terminal, uint64_t now_ms)
{
    uint64_t end = terminal->output.ring.end, least = UINT64_MAX;
    LIST_EACH (&terminal->clients, node) {
        const struct terminal_client *client = LIST_ENTRY(node, struct terminal_client, node);
        if (terminal_client_is_waiting(client) && now_ms - client->took_at_ms >= STALL_MS)
            continue;
        uint64_t behind = end - client->offset;
        least = behind < least ? behind : least;
    }
    return least == UINT64_MAX ? 0 : least;
}

static void on_stall(void *ctx)
{
    terminal_output_pace(ctx);
}

void terminal_output_pace(struct terminal *terminal)
{
    struct terminal_output *output = &terminal->output;
    if (terminal->loop == NULL)
        return;
    uint64_t now_ms = loop_now_ms(terminal->loop);
    /* Half of it taken before the master is read again, or each small read would cost two epoll_ctl. */
    uint64_t bound = output->paused ? BACKLOG_MAX_BYTES / 2 : BACKLOG_MAX_BYTES;
    output->paused = !terminal->ended && backlog(terminal, now_ms) >= bound;
    terminal_watch(terminal);
    if (!output->paused) {
        loop_timer_stop(&output->stall);
        return;
    }
    uint64_t next_ms = now_ms + STALL_MS;
    LIST_EACH (&terminal->clients, node) {
        const struct terminal_client *client = LIST_ENTRY(node, struct terminal_client, node);
        uint64_t stalls_ms = client->took_at_ms + STALL_MS;
        if (stalls_ms > now_ms && stalls_ms < next_ms)
            next_ms = stalls_ms;
    }
    loop_timer_start(terminal->loop, &output->stall, next_ms - now_ms, on_stall, terminal);
}

/* --- reading */

enum end { END_MORE, END_EMPTY, END_HUNG_UP };

/* Fills `bytes` with what is there; *out_len may be more than 0 whatever it returns. */
static enum end read_master(int master, char bytes[TURN_BYTES], size_t *out_len)
{
    size_t len = 0;
    enum end end = END_MORE;
    while (end == END_MORE && TURN_BYTES - len >= READ_MIN_BYTES) {
        ssize_t got = read(master, bytes + len, TURN_BYTES - len);
        if (got > 0)
            len += (size_t)got;
        else if (got < 0 && errno == EAGAIN)
            end = END_EMPTY;
        else if (got == 0 || errno != EINTR)
            end = END_HUNG_UP; /* EIO */
    }
    *out_len = len;
    return end;
}

static void append(struct terminal *terminal, const char *bytes, size_t len)
{
    struct terminal_view *view = terminal->view;
    struct ring *ring = &terminal->output.ring;
    LIST_EACH (&terminal->clients, node) {
        struct terminal_client *client = LIST_ENTRY(node, struct terminal_client, node);
        if (!terminal_client_is_waiting(client))
            client->took_at_ms = loop_now_ms(terminal->loop);
    }
    ring_append(ring, bytes, len);
    withhold_incomplete(terminal);
    atomic_store_explicit(&view->offset, ring->end, memory_order_relaxed);
    atomic_store_explicit(&view->kept_bytes, ring->cap, memory_order_relaxed);
    terminal_view_touch(view);
    terminal_note_all(terminal, TERMINAL_DUE_OUTPUT, NULL);
}

static enum end read_turn(struct terminal *terminal)
{
    static char bytes[TURN_BYTES]; /* terminal thread only */
    size_t len = 0;
    if (terminal->master < 0)
        return END_HUNG_UP;
    enum end end = read_master(terminal->master, bytes, &len);
    if (len > 0)
        append(terminal, bytes, len);
    /* A whole turn is more than the kernel holds: what was there at its beginning has been read in any case. */
    terminal_queue_echoed(terminal);
    terminal->output.after_exit += terminal->ended ? len : 0;
    return end;
}

static void on_retry(void *ctx)
{
    struct terminal *terminal = terminal_ref(ctx);
    terminal->output.hung_up = false;
    terminal_output_read(terminal);
    terminal_queue_pump(terminal);
    terminal_watch(terminal);
    terminal_tell(terminal);
    terminal_unref(terminal);
}

/* Whoever still has the slave open is hung up on: nobody would read it. */
static void close_master(struct terminal *terminal)
{
    terminal->output.hung_up = true;
    loop_fd_free(terminal->watch);
    terminal->watch = NULL;
    if (terminal->master >= 0)
        close(terminal->master);
    terminal->master = -1;
}

static void drained(struct terminal *terminal)
{
    struct terminal_output *output = &terminal->output;
    terminal->drained = true;
    close_master(terminal);
    output->withheld = 0;
    loop_timer_stop(&output->rest);
    loop_timer_stop(&output->quiet);
    loop_defer_stop(&output->finish);
    terminal_note_all(terminal, TERMINAL_DUE_OUTPUT, NULL);
    terminal->on_drained(terminal->ctx);
}

static void on_quiet(void *ctx)
{
    struct terminal *terminal = terminal_ref(ctx);
    struct pollfd waiting = {.fd = terminal->master, .events = POLLIN};
    /* poll() waits for what is on its way through the kernel (n_tty_poll). */
    if (poll(&waiting, 1, 0) > 0)
        terminal_output_read(terminal);
    else
        drained(terminal);
    terminal_watch(terminal);
    terminal_tell(terminal);
    terminal_unref(terminal);
}

/* After the exit. The program's own bytes are all read at the first END_EMPTY; the rest is kindness to others. */
static void drain_on(struct terminal *terminal, enum end end)
{
    struct terminal_output *output = &terminal->output;
    uint64_t spent_ms = loop_now_ms(terminal->loop) - output->exit_at_ms;
    if (end == END_HUNG_UP || output->after_exit >= AFTER_EXIT_BYTES || spent_ms >= AFTER_EXIT_MS) {
        drained(terminal);
        return;
    }
    uint64_t wait_ms = AFTER_EXIT_MS - spent_ms;
    loop_timer_start(terminal->loop, &output->quiet, wait_ms < QUIET_MS ? wait_ms : QUIET_MS, on_quiet, terminal);
}

void terminal_output_read(struct terminal *terminal)
{
    struct terminal_output *output = &terminal->output;
    if (output->paused || output->hung_up)
        return;
    enum end end = read_turn(terminal);
    if (terminal->ended && !terminal->drained)
        drain_on(terminal, end);
    if (end == END_HUNG_UP) {
        /* It is level: epoll would tell for ever. A program that closed its terminal may open it again. */
        output->hung_up = true;
        if (!terminal->drained && terminal->master >= 0)
            loop_timer_start(terminal->loop, &output->retry, HUNG_UP_MS, on_retry, terminal);
    }
    terminal_output_pace(terminal);
}

void terminal_output_finish(struct terminal *terminal)
{
    struct terminal_output *output = &terminal->output;
    output->exit_at_ms = loop_now_ms(terminal->loop);
    loop_timer_stop(&output->retry);
    terminal_output_pace(terminal);
    loop_defer_start(terminal->loop, &output->finish, on_retry, terminal);
}
