/* The input of a terminal: what clients type and paste, written as the program reads; part of prim/terminal. */
#include "prim/terminal_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    /* Written before the output is read again. The kernel holds some 20 KB each way, and an echo that finds no room
     * there is dropped (n_tty's echo buffer), so no more may be under way than its echo has room for. */
    UNECHOED_MAX_BYTES = 4096,
    STALL_MS = 250,
    CHUNK_BYTES = 4096,
    QUEUE_MAX_BYTES = 8 * 1024 * 1024, /* of all clients, those that have left too */
};

struct chunk *terminal_queue_first(const struct terminal_queue *queue)
{
    return list_empty(&queue->chunks) ? NULL : LIST_ENTRY(queue->chunks.next, struct chunk, node);
}

void terminal_queue_init(struct terminal_queue *queue)
{
    list_init(&queue->chunks);
}

/* --- the queue */

void terminal_queue_advance(struct terminal_queue *queue, struct chunk *chunk, size_t len)
{
    struct terminal_input *input = chunk->input;
    struct terminal_client *client = input->client;
    bool was_full = input->waiting >= TERMINAL_INPUT_MAX_BYTES;
    chunk->done += len;
    queue->waiting -= len;
    input->waiting -= len;
    if (client != NULL && was_full && input->waiting < TERMINAL_INPUT_MAX_BYTES)
        terminal_note(client, TERMINAL_DUE_INPUT);
    if (chunk->done == chunk->len) {
        list_remove(&chunk->node);
        free(chunk);
    }
    if (input->waiting == 0) {
        if (client != NULL)
            client->input = NULL;
        free(input);
    }
}

void terminal_queue_clear(struct terminal *terminal)
{
    for (struct chunk *chunk = terminal_queue_first(&terminal->queue); chunk != NULL;
         chunk = terminal_queue_first(&terminal->queue))
        terminal_queue_advance(&terminal->queue, chunk, chunk->len - chunk->done);
    loop_timer_stop(&terminal->queue.stall);
    loop_timer_stop(&terminal->queue.unheard);
}

void terminal_queue_detach(struct terminal_client *client)
{
    if (client->input != NULL)
        client->input->client = NULL;
    client->input = NULL;
}

/* With room for len bytes of this client; NULL: out of memory. */
static struct chunk *last_chunk(struct terminal_client *client, size_t len)
{
    struct terminal_queue *queue = &client->terminal->queue;
    if (!list_empty(&queue->chunks)) {
        struct chunk *last = LIST_ENTRY(queue->chunks.prev, struct chunk, node);
        if (last->input == client->input && last->cap - last->len >= len)
            return last;
    }
    size_t cap = len > CHUNK_BYTES ? len : CHUNK_BYTES;
    struct chunk *chunk = malloc(sizeof(*chunk) + cap);
    struct terminal_input *input = client->input != NULL ? client->input : calloc(1, sizeof(*input));
    if (chunk == NULL || input == NULL) {
        free(chunk);
        if (input != client->input)
            free(input);
        return NULL;
    }
    input->client = client;
    client->input = input;
    *chunk = (struct chunk){.input = input, .cap = cap};
    list_append(&queue->chunks, &chunk->node);
    return chunk;
}

/* At the end of the queue. len is not 0. */
static int enqueue(struct terminal_client *client, const char *bytes, size_t len, struct err *err)
{
    struct terminal_queue *queue = &client->terminal->queue;
    if (queue->waiting + len > QUEUE_MAX_BYTES)
        return err_set(err, ERR_BUSY,
                       "%zu bytes of input wait already for a program that does not read; this is dropped",
                       queue->waiting);
    struct chunk *chunk = last_chunk(client, len);
    if (chunk == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory for input");
    memcpy(chunk->bytes + chunk->len, bytes, len);
    chunk->len += len;
    chunk->input->waiting += len;
    queue->waiting += len;
    return 0;
}

/* --- writing */

bool terminal_queue_wanted(const struct terminal *terminal)
{
    const struct terminal_queue *queue = &terminal->queue;
    /* While the output is not read, only what its echo still has room for may go in. A terminal that nobody has open is
     * "writable" all the time; it is tried again with the reads. */
    return !list_empty(&queue->chunks) && !terminal->output.hung_up &&
           (terminal_output_wanted(terminal) || queue->unechoed < UNECHOED_MAX_BYTES);
}

void terminal_queue_echoed(struct terminal *terminal)
{
    terminal->queue.unechoed = 0;
}

static void on_stall(void *ctx);

/* The timer runs while anything waits; each step moves took_at_ms only. */
static void watch_stall(struct terminal *terminal)
{
    struct terminal_queue *queue = &terminal->queue;
    if (list_empty(&queue->chunks))
        loop_timer_stop(&queue->stall);
    else if (queue->stall.heap_slot == 0)
        loop_timer_start(terminal->loop, &queue->stall, STALL_MS, on_stall, terminal);
}

/* As many of the bytes as the terminal takes now; -1: nobody has it open (EIO). */
static ssize_t write_some(struct terminal *terminal, const char *bytes, size_t len)
{
    struct terminal_queue *queue = &terminal->queue;
    size_t done = 0;
    while (done < len && queue->unechoed < UNECHOED_MAX_BYTES) {
        size_t room = UNECHOED_MAX_BYTES - queue->unechoed;
        ssize_t written = write(terminal->master, bytes + done, len - done < room ? len - done : room);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno != EAGAIN)
            return -1;
        if (written <= 0)
            break;
        queue->unechoed += (size_t)written;
        queue->took_at_ms = loop_now_ms(terminal->loop);
        terminal_interrupt_watch(terminal, bytes + done, (size_t)written);
        done += (size_t)written;
    }
    return (ssize_t)done;
}

void terminal_queue_pump(struct terminal *terminal)
{
    struct terminal_queue *queue = &terminal->queue;
    for (struct chunk *chunk = terminal_queue_first(queue); chunk != NULL; chunk = terminal_queue_first(queue)) {
        size_t left = chunk->len - chunk->done;
        ssize_t written = write_some(terminal, chunk->bytes + chunk->done, left);
        if (written < 0) {
            terminal_queue_clear(terminal);
            return;
        }
        if (written > 0)
            terminal_queue_advance(queue, chunk, (size_t)written);
        if ((size_t)written < left)
            break;
    }
    watch_stall(terminal);
}

/* --- a program that takes nothing */

static bool is_stalled(const struct terminal *terminal)
{
    return !list_empty(&terminal->queue.chunks) && loop_now_ms(terminal->loop) - terminal->queue.took_at_ms >= STALL_MS;
}

static void on_stall(void *ctx)
{
    struct terminal *terminal = terminal_ref(ctx);
    terminal_output_read(terminal);
    terminal_queue_pump(terminal); /* the kernel does not tell of room in every case */
    if (is_stalled(terminal))
        terminal_interrupt_stalled(terminal);
    watch_stall(terminal);
    terminal_watch(terminal);
    terminal_tell(terminal);
    terminal_unref(terminal);
}

/* --- what clients call */

int terminal_input(struct terminal_client *client, const char *bytes, size_t len, struct err *err)
{
    struct terminal *terminal = client->terminal;
    struct terminal_queue *queue = &terminal->queue;
    if (client->read_only)
        return err_set(err, ERR_PERMISSION_DENIED, "this client is read-only: its input is not taken");
    if (terminal->ended || terminal->master < 0)
        return err_set(err, ERR_ALREADY_EXITED, "the terminal's program has ended");
    if (len == 0)
        return 0;
    ssize_t written = 0;
    if (list_empty(&queue->chunks)) {
        queue->took_at_ms = loop_now_ms(terminal->loop);
        written = write_some(terminal, bytes, len);
    }
    terminal_view_touch(terminal->view);
    if (written < 0 || (size_t)written == len) {
        terminal_watch(terminal);
        return 0;
    }
    if (enqueue(client, bytes + written, len - (size_t)written, err) != 0)
        return err->code == ERR_BUSY && terminal_interrupt_refused(terminal, bytes, len) ? 0 : -1;
    if (is_stalled(terminal))
        terminal_interrupt_stalled(terminal);
    watch_stall(terminal);
    terminal_watch(terminal);
    return 0;
}

bool terminal_input_is_full(const struct terminal_client *client)
{
    return client->input != NULL && client->input->waiting >= TERMINAL_INPUT_MAX_BYTES;
}
