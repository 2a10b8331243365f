/* A cell as events: what its worker tells stands among the output where it was told. Called by bind_code. */
#include "base/json.h"
#include "bind/bind_code.h"

#include <stdlib.h>
#include <string.h>

enum {
    START_MAX_BYTES = 1024,
    /* A client that takes its time over the last output of a cell does not keep the others of the context waiting. */
    HOLD_MS = 30 * 1000,
    LATE_MS = 250, /* from the cell's time-out to the first time that its pipes are emptied, and from time to time */
};

struct cell_event {
    struct list node;
    struct stream_event event;
    struct buf json;
};

static void event_free(struct cell_event *event)
{
    list_remove(&event->node);
    buf_deinit(&event->json);
    free(event);
}

/* One that is filled in by the caller and then goes out with `push`; NULL out of memory. */
static struct cell_event *event_new(const struct cell *cell, const char *name, size_t max_bytes)
{
    struct cell_event *event = calloc(1, sizeof(*event));
    if (event == NULL)
        return NULL;
    list_init(&event->node);
    event->event.name = name;
    for (int i = 0; i < 2; i++)
        event->event.after[i] = process_output_ahead(cell->process, i);
    buf_init(&event->json, max_bytes);
    return event;
}

static void on_tell(void *ctx)
{
    struct cell *cell = ctx;
    if (cell->source.more != NULL)
        cell->source.more(cell->source.stream);
}

/* Not from inside a callback of the worker's: the stream may end with it, and the cell with the stream. */
static void tell(struct cell *cell)
{
    loop_defer_start(cell->loop, &cell->tell, on_tell, cell);
}

/* failed: it could not be filled in. The client is told by `truncated` then. */
static void push(struct cell *cell, struct cell_event *event, bool failed)
{
    if (event == NULL || failed) {
        cell->truncated = true;
        if (event != NULL)
            event_free(event);
        return;
    }
    event->event.json = event->json.data;
    event->event.len = event->json.len;
    list_append(&cell->events, &event->node);
    tell(cell);
}

static const struct stream_event *next_event(struct stream_source *source)
{
    const struct cell *cell = LIST_ENTRY(source, struct cell, source);
    if (!list_empty(&cell->events))
        return &LIST_ENTRY(cell->events.next, struct cell_event, node)->event;
    return cell->end.last ? &cell->end : NULL;
}

static void event_taken(struct stream_source *source)
{
    struct cell *cell = LIST_ENTRY(source, struct cell, source);
    if (!list_empty(&cell->events))
        event_free(LIST_ENTRY(cell->events.next, struct cell_event, node));
}

/* A worker that is to end its cell may be blocked in the write of a print, as the client reads slowly or not at all. It
 * gets through, or it would be killed and the state be lost for that; the client may get a gap. */
static void on_late(void *ctx)
{
    struct cell *cell = ctx;
    process_output_catch_up(cell->process);
    loop_timer_start(cell->loop, &cell->late_timer, LATE_MS, on_late, cell);
}

static void ignore(void *ctx)
{
    (void)ctx;
}

void bind_code_stream_begin(struct cell *cell)
{
    cell->source.next = next_event;
    cell->source.taken = event_taken;
    struct cell_event *event = event_new(cell, "start", START_MAX_BYTES);
    int failed = event == NULL;
    if (event != NULL) {
        struct buf *out = &event->json;
        failed |= json_write_text(out, "{\"context\":", cell->context);
        failed |= json_write_text(out, ",\"language\":", cell->language);
        failed |= json_write_text(out, ",\"engine\":", cell->run.engine);
        failed |= json_write_text(out, ",\"id\":", process_id(cell->process));
        failed |= buf_printf(out, ",\"pid\":%d}", (int)process_pid(cell->process));
        memcpy(event->event.after, cell->began_at, sizeof(cell->began_at));
    }
    push(cell, event, failed);
    memcpy(cell->holder.offset, cell->began_at, sizeof(cell->began_at));
    process_reader_attach(cell->process, &cell->holder, ignore, NULL);
    if (cell->run.timeout_ms > 0)
        loop_timer_start(cell->loop, &cell->late_timer, cell->run.timeout_ms + LATE_MS, on_late, cell);
}

void bind_code_stream_result(struct cell *cell, const char *bundle, size_t len)
{
    struct cell_event *event = event_new(cell, "result", len);
    push(cell, event, event == NULL || buf_append(&event->json, bundle, len) != 0);
}

static void on_held_long(void *ctx)
{
    struct cell *cell = ctx;
    contexts_leave(&cell->run);
}

void bind_code_stream_done(struct cell *cell)
{
    loop_timer_stop(&cell->late_timer);
    if (cell->state == CELL_DONE && cell->error.len > 0) {
        struct cell_event *event = event_new(cell, "exception", cell->error.len);
        push(cell, event, event == NULL || buf_append(&event->json, cell->error.data, cell->error.len) != 0);
        buf_deinit(&cell->error);
    }
    buf_reset(&cell->results);
    bool whole = cell->state == CELL_DONE && bind_code_cell_write(cell, &cell->results) == 0;
    /* Without a name it ends the stream, and cell:wait tells why. */
    cell->end = (struct stream_event){
        .name = whole ? "done" : NULL, .json = cell->results.data, .len = cell->results.len, .last = true};
    for (int i = 0; i < 2; i++)
        cell->end.after[i] = process_output_ahead(cell->process, i);
    loop_timer_start(cell->loop, &cell->hold_timer, HOLD_MS, on_held_long, cell);
    tell(cell);
}

void bind_code_stream_close(struct cell *cell)
{
    loop_timer_stop(&cell->hold_timer);
    loop_timer_stop(&cell->late_timer);
    loop_defer_stop(&cell->tell);
    process_reader_detach(&cell->holder);
    LIST_EACH (&cell->events, node)
        event_free(LIST_ENTRY(node, struct cell_event, node));
}

int bind_code_stream(lua_State *L, struct cell *cell)
{
    const struct stream_options options = {.offset = {cell->began_at[0], cell->began_at[1]},
                                           .wanted = {true, true},
                                           .wait_ms = -1,
                                           .source = &cell->source};
    process_reader_detach(&cell->holder); /* the stream's own takes its place before anything is read */
    return bind_stream_start(L, cell->process, &options);
}
