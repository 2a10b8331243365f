/* A lock-free stack that any thread pushes to and the loop's thread takes whole; used between the main thread and the
 * terminal thread. */
#include "base/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct mailbox {
    _Atomic(struct mail *) newest; /* NULL: empty */
    int wake_fd;
    struct loop_fd *watch;
    bool delivering;
};

/* The stack turned round: the order of the posts. */
static struct mail *take_all(struct mailbox *mailbox)
{
    struct mail *mail = atomic_exchange_explicit(&mailbox->newest, NULL, memory_order_acquire);
    struct mail *first = NULL;
    while (mail != NULL) {
        struct mail *older = mail->next;
        mail->next = first;
        first = mail;
        mail = older;
    }
    return first;
}

void mailbox_deliver(struct mailbox *mailbox)
{
    assert(!mailbox->delivering); /* the rest of the outer call's would be overtaken */
    mailbox->delivering = true;
    struct mail *mail = take_all(mailbox);
    while (mail != NULL) {
        struct mail *next = mail->next;
        mail->fn(mail); /* may free it, or post it again */
        mail = next;
    }
    mailbox->delivering = false;
}

/* Emptied before the look: what is posted after that look wakes again. */
static void on_wake(void *ctx, int events)
{
    struct mailbox *mailbox = ctx;
    uint64_t count;
    (void)events;
    while (read(mailbox->wake_fd, &count, sizeof(count)) < 0 && errno == EINTR)
        continue;
    mailbox_deliver(mailbox);
}

struct mailbox *mailbox_new(struct loop *loop, struct err *err)
{
    struct mailbox *mailbox = calloc(1, sizeof(*mailbox));
    if (mailbox == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory for a mailbox");
        return NULL;
    }
    atomic_init(&mailbox->newest, NULL);
    mailbox->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (mailbox->wake_fd >= 0)
        mailbox->watch = loop_fd_new(loop, mailbox->wake_fd, LOOP_READABLE, on_wake, mailbox);
    if (mailbox->watch == NULL) {
        err_set_errno(err, ERR_INTERNAL, errno, "cannot make a mailbox");
        mailbox_free(mailbox);
        return NULL;
    }
    return mailbox;
}

void mailbox_free(struct mailbox *mailbox)
{
    if (mailbox == NULL)
        return;
    while (atomic_load_explicit(&mailbox->newest, memory_order_relaxed) != NULL)
        mailbox_deliver(mailbox);
    loop_fd_free(mailbox->watch);
    if (mailbox->wake_fd >= 0)
        close(mailbox->wake_fd);
    free(mailbox);
}

void mailbox_post(struct mailbox *mailbox, struct mail *mail, mail_fn fn)
{
    struct mail *newest = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);
    mail->fn = fn;
    do {
        mail->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(&mailbox->newest, &newest, mail, memory_order_release,
                                                    memory_order_relaxed));
    /* Whoever found it empty wakes the receiver; for those that come before it looks that is enough. From here on the
     * mail is no longer ours. */
    const uint64_t one = 1;
    while (newest == NULL && write(mailbox->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        continue;
}
