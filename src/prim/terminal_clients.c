/* Who is attached to a terminal: what each is told and what it reads; part of prim/terminal, called by net/ws_session.
 */
#include "base/utf8.h"
#include "prim/terminal_internal.h"

enum { TOLD_PER_TURN = 16 }; /* each may take some hundred KiB: many clients hold nobody up */

/* --- events */

bool terminal_client_is_waiting(const struct terminal_client *client)
{
    return client->offset < terminal_output_end(client->terminal);
}

static void start_tell(struct terminal *terminal)
{
    if (terminal->loop != NULL)
        loop_defer_start(terminal->loop, &terminal->tell, terminal_tell, terminal);
}

void terminal_note(struct terminal_client *client, enum terminal_due due)
{
    client->due |= due;
    start_tell(client->terminal);
}

void terminal_note_all(struct terminal *terminal, enum terminal_due due, const struct terminal_client *but)
{
    bool any = false;
    LIST_EACH (&terminal->clients, node) {
        struct terminal_client *client = LIST_ENTRY(node, struct terminal_client, node);
        if (client == but)
            continue;
        client->due |= due;
        any = true;
    }
    if (any)
        start_tell(terminal);
}

/* The next one that is to be told something; it goes to the end of the line, so that all have their turn. */
static struct terminal_client *next_due(struct terminal *terminal)
{
    LIST_EACH (&terminal->clients, node) {
        struct terminal_client *client = LIST_ENTRY(node, struct terminal_client, node);
        if (client->due == 0)
            continue;
        list_remove(node);
        list_append(&terminal->clients, node);
        return client;
    }
    return NULL;
}

static void tell_one(struct terminal_client *client)
{
    const struct terminal_client_events *events = client->events;
    unsigned due = client->due & -client->due;
    client->due &= ~due;
    if (due == TERMINAL_DUE_RESIZED)
        events->on_resized(client->ctx);
    else if (due == TERMINAL_DUE_INPUT)
        events->on_input(client->ctx);
    else if (terminal_has_more(client) || terminal_exit(client->terminal) != NULL)
        events->on_output(client->ctx);
}

void terminal_tell(void *ctx)
{
    struct terminal *terminal = terminal_ref(ctx);
    struct terminal_client *client = NULL;
    loop_defer_stop(&terminal->tell);
    /* A call may attach and detach any client: after each the line is looked at afresh. */
    for (int told = 0; told < TOLD_PER_TURN && (client = next_due(terminal)) != NULL; told++)
        tell_one(client);
    if (client != NULL)
        start_tell(terminal);
    terminal_unref(terminal);
}

/* --- coming and going */

static void count_clients(const struct terminal *terminal, int change)
{
    atomic_fetch_add_explicit(&terminal->view->clients, (uint32_t)change, memory_order_relaxed);
    terminal_view_touch(terminal->view);
}

int terminal_attach(struct terminal *terminal, struct terminal_client *client, int64_t since, struct err *err)
{
    if (since >= 0 && (uint64_t)since > terminal_offset(terminal)) {
        err_set(err, ERR_INVALID_REQUEST, "since is past what has come so far: %llu bytes",
                (unsigned long long)terminal_offset(terminal));
        return err_field(err, "since");
    }
    client->offset = since == TERMINAL_SINCE_ALL    ? terminal_output_start(terminal)
                     : since == TERMINAL_SINCE_NONE ? terminal_output_last_whole(terminal)
                                                    : (uint64_t)since;
    client->terminal = terminal_ref(terminal);
    client->took_at_ms = terminal->loop != NULL ? loop_now_ms(terminal->loop) : 0;
    list_append(&terminal->clients, &client->node);
    count_clients(terminal, 1);
    terminal_output_pace(terminal);
    terminal_note(client, TERMINAL_DUE_OUTPUT);
    return 0;
}

void terminal_detach(struct terminal_client *client)
{
    struct terminal *terminal = client->terminal;
    if (terminal == NULL)
        return;
    terminal_queue_detach(client);
    list_remove(&client->node);
    client->terminal = NULL;
    client->due = 0;
    count_clients(terminal, -1);
    terminal_output_pace(terminal);
    terminal_unref(terminal);
}

/* --- reading */

bool terminal_has_more(const struct terminal_client *client)
{
    return client->offset < client->terminal->output.ring.start || terminal_client_is_waiting(client);
}

static void took(struct terminal_client *client)
{
    struct terminal *terminal = client->terminal;
    if (terminal->loop == NULL)
        return;
    client->took_at_ms = loop_now_ms(terminal->loop);
    if (terminal->output.paused)
        terminal_output_pace(terminal);
}

size_t terminal_read(struct terminal_client *client, char *out, size_t max, struct terminal_gap *out_gap)
{
    const struct terminal *terminal = client->terminal;
    const struct ring *ring = &terminal->output.ring;
    *out_gap = (struct terminal_gap){client->offset, client->offset};
    if (client->offset < ring->start) {
        client->offset = out_gap->to = terminal_output_start(terminal);
        took(client);
        return 0;
    }
    uint64_t end = terminal_output_end(terminal);
    if (client->offset >= end)
        return 0;
    size_t there = (size_t)(end - client->offset);
    size_t len = ring_copy(ring, client->offset, out, there < max ? there : max);
    if (len < there) {
        size_t whole = utf8_whole_len(out, len);
        len = whole > 0 ? whole : len;
    }
    client->offset += len;
    took(client);
    return len;
}
