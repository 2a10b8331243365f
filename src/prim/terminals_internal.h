/* What the two sides of prim/terminals share; nobody else includes it.
 *   terminals.c      the main thread's side: starts, the list, the process table's calls
 *   terminals_own.c  the terminal thread's side: looking up, tickets
 *
 * A terminal is one entry. Each member belongs to one thread; what the other should know or do is a mail. Each mail of
 * an entry is posted at most once, and holds a reference to it on its way. */
#ifndef ABX_PRIM_TERMINALS_INTERNAL_H
#define ABX_PRIM_TERMINALS_INTERNAL_H

#include "base/mailbox.h"
#include "prim/terminal.h"
#include "prim/terminals.h"

#include <stdatomic.h>

struct terminals {
    struct loop *own;
    struct process_table *processes;
    struct mailbox *to_main, *to_own;
    struct list listed;      /* the main thread's: those that are found and shown */
    struct list held;        /* the terminal thread's: those whose terminal it holds */
    struct tickets *tickets; /* the terminal thread's */
};

struct terminal_entry {
    atomic_int references; /* the process table's, the terminal thread's from "run" to "give back", each mail's */
    struct terminals *terminals;
    char id[TERMINAL_ID_MAX];
    struct terminal_view *view;

    /* the main thread's */
    struct list node;        /* in terminals->listed */
    struct process *process; /* borrowed: the table's; NULL: the table has forgotten it */
    bool unread;             /* memory was out for a terminal */
    bool drained;            /* the last byte was read */
    bool given_back;         /* the terminal thread is to hold it no longer */

    /* the terminal thread's, from "run" on */
    struct terminal *terminal; /* NULL: it was given back */
    struct list held_node;     /* in terminals->held */
    bool hidden;               /* nobody can attach any more */

    struct terminal_exit exit;                        /* goes with "ended" */
    struct mail run, ended, release, hide, give_back; /* to the terminal thread */
    struct mail told_drained;                         /* to the main thread */
};

void terminal_entry_unref(struct terminal_entry *entry);
void terminal_entry_post(struct terminal_entry *entry, struct mailbox *to, struct mail *mail, mail_fn fn);

/* --- run by the terminal thread; posted by the main thread */

void terminals_on_run(struct mail *run);
void terminals_on_ended(struct mail *ended);
void terminals_on_release(struct mail *release);
void terminals_on_hide(struct mail *hide);
void terminals_on_give_back(struct mail *give_back);

struct terminal_ticket {
    struct mail mail;
    struct terminals *terminals;
    uint64_t now_ms; /* loop_clock_ns */
    char ticket[TICKET_BYTES], id[TERMINAL_ID_MAX];
};
/* Takes it. */
void terminals_on_ticket(struct mail *ticket);
/* Gives back what the terminal thread still holds, after its end. */
void terminals_give_back_all(struct terminals *terminals);

/* --- and the other way round */

/* on_drained of the terminal; ctx is the entry. */
void terminals_drained(void *entry);
void terminals_on_drained(struct mail *told_drained);

#endif
