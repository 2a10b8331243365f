/* Messages from any thread to the thread of one loop, in the order in which each sender posted them. */
#ifndef ABX_BASE_MAILBOX_H
#define ABX_BASE_MAILBOX_H

#include "base/err.h"
#include "base/loop.h"

struct mailbox;
struct mail;

typedef void (*mail_fn)(struct mail *mail);

/* Embedded in what is sent, which belongs to the mailbox from mailbox_post until fn is called, and to fn from then on.
 */
struct mail {
    struct mail *next;
    mail_fn fn;
};

/* Delivered on the loop's thread. Made before the loop runs, or on its thread. NULL with *err. */
struct mailbox *mailbox_new(struct loop *loop, struct err *err);
/* Delivers what is there and frees it; from then on nobody may post. On the loop's thread, or after that has ended;
 * NULL is allowed. */
void mailbox_free(struct mailbox *mailbox);
/* From any thread. Takes no lock, does not block (but for a write to an eventfd), does not fail. */
void mailbox_post(struct mailbox *mailbox, struct mail *mail, mail_fn fn);
/* Delivers now what has been posted, for a receiver that must not act on old news. On the loop's thread, not from
 * inside a fn. */
void mailbox_deliver(struct mailbox *mailbox);

#endif
