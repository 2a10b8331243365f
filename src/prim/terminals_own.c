/* The terminal thread's side of all terminals: what the main thread asked for is done here, and the sockets' code looks
 * terminals up. */
#include "prim/terminals_internal.h"

#include "prim/secret.h"

#include <stdlib.h>
#include <string.h>

#define ENTRY_OF(mail_, member) LIST_ENTRY(mail_, struct terminal_entry, member)

void terminals_on_run(struct mail *run)
{
    struct terminal_entry *entry = ENTRY_OF(run, run);
    atomic_fetch_add_explicit(&entry->references, 1, memory_order_relaxed);
    list_append(&entry->terminals->held, &entry->held_node);
    terminal_run(entry->terminal, entry->terminals->own);
    terminal_entry_unref(entry);
}

void terminals_on_ended(struct mail *ended)
{
    struct terminal_entry *entry = ENTRY_OF(ended, ended);
    terminal_ended(entry->terminal, &entry->exit);
    terminal_entry_unref(entry);
}

void terminals_on_release(struct mail *release)
{
    struct terminal_entry *entry = ENTRY_OF(release, release);
    if (entry->terminal != NULL)
        terminal_release(entry->terminal);
    terminal_entry_unref(entry);
}

void terminals_on_hide(struct mail *hide)
{
    struct terminal_entry *entry = ENTRY_OF(hide, hide);
    entry->hidden = true;
    terminal_entry_unref(entry);
}

static void give_back(struct terminal_entry *entry)
{
    list_remove(&entry->held_node);
    terminal_unref(entry->terminal);
    entry->terminal = NULL;
    terminal_entry_unref(entry);
}

void terminals_on_give_back(struct mail *mail)
{
    struct terminal_entry *entry = ENTRY_OF(mail, give_back);
    give_back(entry);
    terminal_entry_unref(entry);
}

void terminals_give_back_all(struct terminals *terminals)
{
    LIST_EACH (&terminals->held, node)
        give_back(ENTRY_OF(node, held_node));
}

void terminals_drained(void *ctx)
{
    struct terminal_entry *entry = ctx;
    terminal_entry_post(entry, entry->terminals->to_main, &entry->told_drained, terminals_on_drained);
}

struct terminal *terminals_lookup(struct terminals *terminals, const char *id, size_t len)
{
    mailbox_deliver(terminals->to_own);
    LIST_EACH (&terminals->held, node) {
        const struct terminal_entry *entry = ENTRY_OF(node, held_node);
        if (!entry->hidden && strlen(entry->id) == len && memcmp(entry->id, id, len) == 0)
            return entry->terminal;
    }
    return NULL;
}

/* --- tickets */

static uint64_t now_ms(void)
{
    return loop_clock_ns() / 1000000;
}

void terminals_on_ticket(struct mail *mail)
{
    struct terminal_ticket *ticket = LIST_ENTRY(mail, struct terminal_ticket, mail);
    tickets_add(ticket->terminals->tickets, ticket->ticket, ticket->id, ticket->now_ms);
    secret_wipe(ticket, sizeof(*ticket));
    free(ticket);
}

bool terminals_ticket_matches(struct terminals *terminals, const char *ticket, size_t len, const char *id)
{
    mailbox_deliver(terminals->to_own);
    return tickets_match(terminals->tickets, ticket, len, id, now_ms());
}

bool terminals_ticket_take(struct terminals *terminals, const char *ticket, size_t len, const char *id)
{
    mailbox_deliver(terminals->to_own);
    return tickets_take(terminals->tickets, ticket, len, id, now_ms());
}
