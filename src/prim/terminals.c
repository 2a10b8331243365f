/* The main thread's side of all terminals: called by bind/bind_pty and, as their programs end, by the process table.
 * What a terminal holds goes to the terminal thread at its start, and comes back only as mail. */
#include "prim/terminals_internal.h"

#include "prim/pty_child.h"
#include "prim/secret.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTRY_OF(mail_, member) LIST_ENTRY(mail_, struct terminal_entry, member)

/* --- entries, from both threads */

void terminal_entry_unref(struct terminal_entry *entry)
{
    if (atomic_fetch_sub_explicit(&entry->references, 1, memory_order_acq_rel) > 1)
        return;
    terminal_view_unref(entry->view);
    free(entry);
}

void terminal_entry_post(struct terminal_entry *entry, struct mailbox *to, struct mail *mail, mail_fn fn)
{
    atomic_fetch_add_explicit(&entry->references, 1, memory_order_relaxed);
    mailbox_post(to, mail, fn);
}

static struct terminal_entry *entry_new(struct terminals *terminals, struct terminal_size size)
{
    struct terminal_entry *entry = calloc(1, sizeof(*entry));
    struct terminal_view *view = terminal_view_new(size);
    if (entry == NULL || view == NULL) {
        terminal_view_unref(view);
        free(entry);
        return NULL;
    }
    atomic_init(&entry->references, 1);
    entry->terminals = terminals;
    entry->view = view;
    list_init(&entry->node);
    list_init(&entry->held_node);
    return entry;
}

/* --- what the process table calls */

static void on_reaped(void *ctx)
{
    struct terminal_entry *entry = ctx;
    struct terminals *terminals = entry->terminals;
    if (entry->unread) {
        terminal_entry_post(entry, terminals->to_main, &entry->told_drained, terminals_on_drained);
        return;
    }
    entry->exit.started_ms = process_started_ms(entry->process);
    process_exit(entry->process, &entry->exit.exit);
    terminal_entry_post(entry, terminals->to_own, &entry->ended, terminals_on_ended);
}

static size_t kept_bytes(const void *ctx)
{
    const struct terminal_entry *entry = ctx;
    return atomic_load_explicit(&entry->view->kept_bytes, memory_order_relaxed);
}

static void on_release(void *ctx)
{
    struct terminal_entry *entry = ctx;
    terminal_entry_post(entry, entry->terminals->to_own, &entry->release, terminals_on_release);
}

/* The terminal thread lets go of it when nobody can find it any more and its last byte was read: that it is told at the
 * end is what the process table waits for. A table that goes before that leaves it to terminals_free. */
static void give_back_if_over(struct terminal_entry *entry)
{
    if (!entry->drained || !list_empty(&entry->node) || entry->given_back || entry->unread)
        return;
    entry->given_back = true;
    terminal_entry_post(entry, entry->terminals->to_own, &entry->give_back, terminals_on_give_back);
}

static void unlist(struct terminal_entry *entry)
{
    if (list_empty(&entry->node))
        return;
    list_remove(&entry->node);
    terminal_entry_post(entry, entry->terminals->to_own, &entry->hide, terminals_on_hide);
    give_back_if_over(entry);
}

static void on_dropped(void *ctx)
{
    struct terminal_entry *entry = ctx;
    entry->process = NULL;
    unlist(entry);
    terminal_entry_unref(entry);
}

void terminals_on_drained(struct mail *mail)
{
    struct terminal_entry *entry = ENTRY_OF(mail, told_drained);
    entry->drained = true;
    if (entry->process != NULL)
        process_terminal_drained(entry->process); /* the table may forget it with that */
    give_back_if_over(entry);
    terminal_entry_unref(entry);
}

/* --- starting */

/* Takes the master. */
static int run(struct terminal_entry *entry, int master, struct err *err)
{
    struct terminals *terminals = entry->terminals;
    strcpy(entry->id, process_id(entry->process));
    entry->terminal = terminal_new(master, entry->view, terminals_drained, entry);
    if (entry->terminal == NULL) {
        entry->unread = true;
        close(master);
        process_hang_up(entry->process);
        return err_set(err, ERR_INTERNAL, "out of memory for a terminal");
    }
    list_append(&terminals->listed, &entry->node);
    terminal_entry_post(entry, terminals->to_own, &entry->run, terminals_on_run);
    return 0;
}

struct process *terminals_start(struct terminals *terminals, const struct process_spec *spec, struct terminal_size size,
                                struct err *err)
{
    int master;
    struct terminal_entry *entry = entry_new(terminals, size);
    if (entry == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory for a terminal");
        return NULL;
    }
    const struct process_terminal hooks = {.slave = -1,
                                           .ctx = entry,
                                           .on_reaped = on_reaped,
                                           .kept_bytes = kept_bytes,
                                           .on_release = on_release,
                                           .on_dropped = on_dropped};
    entry->process = pty_child_start(terminals->processes, spec, &hooks, size, &master, err);
    if (entry->process == NULL) {
        terminal_entry_unref(entry);
        return NULL;
    }
    return run(entry, master, err) == 0 ? entry->process : NULL; /* from here on on_dropped gives the entry back */
}

/* --- those that are listed */

struct process *terminals_find(struct terminals *terminals, const char *id)
{
    LIST_EACH (&terminals->listed, node) {
        const struct terminal_entry *entry = ENTRY_OF(node, node);
        if (strcmp(entry->id, id) == 0)
            return entry->process;
    }
    return NULL;
}

void terminals_each(struct terminals *terminals,
                    void (*fn)(struct process *process, struct terminal_view *view, void *ctx), void *ctx)
{
    LIST_EACH (&terminals->listed, node) {
        const struct terminal_entry *entry = ENTRY_OF(node, node);
        fn(entry->process, entry->view, ctx);
    }
}

void terminals_close(struct terminals *terminals, struct process *process)
{
    LIST_EACH (&terminals->listed, node) {
        struct terminal_entry *entry = ENTRY_OF(node, node);
        if (entry->process == process)
            unlist(entry);
    }
    process_hang_up(process);
}

/* Where memory is out the client gets one that opens nothing, and asks for another. */
void terminals_ticket(struct terminals *terminals, const struct process *process, char out[TICKET_BYTES])
{
    struct terminal_ticket *ticket = calloc(1, sizeof(*ticket));
    secret_random_hex(out, TICKET_BYTES / 2);
    if (ticket == NULL)
        return;
    ticket->terminals = terminals;
    ticket->now_ms = loop_clock_ns() / 1000000;
    memcpy(ticket->ticket, out, TICKET_BYTES);
    strcpy(ticket->id, process_id(process));
    mailbox_post(terminals->to_own, &ticket->mail, terminals_on_ticket);
}

/* --- all of them */

struct terminals *terminals_new(struct loop *main, struct loop *own, struct process_table *processes, struct err *err)
{
    struct terminals *terminals = calloc(1, sizeof(*terminals));
    if (terminals == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory for terminals");
        return NULL;
    }
    terminals->own = own;
    terminals->processes = processes;
    list_init(&terminals->listed);
    list_init(&terminals->held);
    int failed = 0;
    terminals->tickets = tickets_new();
    if (terminals->tickets == NULL)
        failed = err_set(err, ERR_INTERNAL, "out of memory for tickets");
    if (failed == 0 && (terminals->to_main = mailbox_new(main, err)) == NULL)
        failed = -1;
    if (failed == 0 && (terminals->to_own = mailbox_new(own, err)) == NULL)
        failed = -1;
    if (failed != 0) {
        terminals_free(terminals);
        return NULL;
    }
    return terminals;
}

void terminals_free(struct terminals *terminals)
{
    if (terminals == NULL)
        return;
    assert(list_empty(&terminals->listed) && "the process table goes first");
    mailbox_free(terminals->to_main); /* may post to the other one, and not the other way round */
    mailbox_free(terminals->to_own);
    terminals_give_back_all(terminals);
    tickets_free(terminals->tickets);
    free(terminals);
}
