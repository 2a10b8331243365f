/* The mailbox: whatever is posted arrives once, in each sender's order, on the loop's thread, and wakes a loop that
 * waits. */
#include "base/mailbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SENDERS = 4, EACH = 20000 };

static struct loop *loop;
static struct mailbox *mailbox;

static int set_up(void **state)
{
    (void)state;
    struct err err;
    loop = loop_new();
    mailbox = mailbox_new(loop, &err);
    return mailbox != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    mailbox_free(mailbox);
    size_t left = loop_handles_open(loop);
    loop_free(loop);
    return left == 0 ? 0 : -1;
}

/* --- one thread */

struct note {
    struct mail mail;
    char letter;
};

static char notes[64];

static void on_note(struct mail *mail)
{
    const struct note *note = (const struct note *)mail;
    size_t len = strlen(notes);
    notes[len] = note->letter;
    notes[len + 1] = '\0';
}

static void post(struct note *note, char letter)
{
    note->letter = letter;
    mailbox_post(mailbox, &note->mail, on_note);
}

static void they_come_in_order_at_the_next_turn(void **state)
{
    (void)state;
    struct note a, b, c;
    notes[0] = '\0';
    post(&a, 'a');
    post(&b, 'b');
    assert_string_equal(notes, "");
    loop_turn(loop, true);
    assert_string_equal(notes, "ab");
    post(&c, 'c');
    loop_turn(loop, true);
    assert_string_equal(notes, "abc");
    loop_turn(loop, false);
    assert_string_equal(notes, "abc");
}

static void who_cannot_wait_takes_them_at_once(void **state)
{
    (void)state;
    struct note a, b, c;
    notes[0] = '\0';
    post(&a, 'a');
    post(&b, 'b');
    mailbox_deliver(mailbox);
    assert_string_equal(notes, "ab");
    mailbox_deliver(mailbox);
    loop_turn(loop, false); /* was woken for nothing */
    assert_string_equal(notes, "ab");
    post(&c, 'c');
    loop_turn(loop, true);
    assert_string_equal(notes, "abc");
}

static struct note again;

static void on_first(struct mail *mail)
{
    on_note(mail);
    post(&again, 'z');
}

/* Else one that always answers itself would keep everything else waiting. */
static void what_is_posted_by_a_receiver_waits_for_the_next_turn(void **state)
{
    (void)state;
    struct note a = {.letter = 'a'}, b;
    notes[0] = '\0';
    mailbox_post(mailbox, &a.mail, on_first);
    post(&b, 'b');
    mailbox_deliver(mailbox);
    assert_string_equal(notes, "ab");
    loop_turn(loop, true);
    assert_string_equal(notes, "abz");
}

static void on_heap_note(struct mail *mail)
{
    on_note(mail);
    free(mail);
}

static void on_last_words(struct mail *mail)
{
    on_note(mail);
    struct note *more = malloc(sizeof(*more));
    more->letter = 'm';
    mailbox_post(mailbox, &more->mail, on_heap_note);
    free(mail);
}

static void nothing_is_lost_at_its_end(void **state)
{
    (void)state;
    struct err err;
    struct note *last = malloc(sizeof(*last));
    notes[0] = '\0';
    last->letter = 'l';
    mailbox_post(mailbox, &last->mail, on_last_words);
    mailbox_free(mailbox);
    assert_string_equal(notes, "lm");
    mailbox_free(NULL);
    mailbox = mailbox_new(loop, &err);
    assert_non_null(mailbox);
}

/* --- several threads */

struct number {
    struct mail mail;
    unsigned sender, value;
};

struct received {
    pthread_t thread; /* of the loop */
    unsigned next[SENDERS];
    unsigned count, out_of_order, elsewhere;
};

static struct received received;

static void on_number(struct mail *mail)
{
    struct number *number = (struct number *)mail;
    received.out_of_order += number->value != received.next[number->sender];
    received.next[number->sender] = number->value + 1;
    received.elsewhere += !pthread_equal(pthread_self(), received.thread);
    received.count++;
    free(number);
}

static void *send_numbers(void *ctx)
{
    unsigned sender = (unsigned)(uintptr_t)ctx;
    for (unsigned i = 0; i < EACH; i++) {
        struct number *number = malloc(sizeof(*number));
        *number = (struct number){.sender = sender, .value = i};
        mailbox_post(mailbox, &number->mail, on_number);
        if (i % 1000 == 0)
            usleep(1000); /* the receiver goes to sleep now and then */
    }
    return NULL;
}

static void receive(bool at_once)
{
    pthread_t threads[SENDERS];
    received = (struct received){.thread = pthread_self()};
    for (uintptr_t i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, send_numbers, (void *)i), 0);
    while (received.count < SENDERS * EACH) {
        loop_turn(loop, true);
        if (at_once)
            mailbox_deliver(mailbox);
    }
    for (int i = 0; i < SENDERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(received.next[i], EACH);
    }
    loop_turn(loop, false);
    assert_int_equal(received.count, SENDERS * EACH);
    assert_int_equal(received.out_of_order, 0);
    assert_int_equal(received.elsewhere, 0);
}

static void each_senders_order_is_kept(void **state)
{
    (void)state;
    receive(false);
}

static void the_order_is_kept_by_who_takes_them_at_once(void **state)
{
    (void)state;
    receive(true);
}

/* Two loops that answer each other: a wake-up that is lost would leave the mail where it is for ever. */
enum { ROUNDS = 5000 };
static struct mailbox *theirs;
static struct mail ball;
static atomic_int bounces;

static void on_ours(struct mail *mail);

static void on_theirs(struct mail *mail)
{
    atomic_fetch_add(&bounces, 1);
    mailbox_post(mailbox, mail, on_ours);
}

static void on_ours(struct mail *mail)
{
    if (atomic_fetch_add(&bounces, 1) < ROUNDS)
        mailbox_post(theirs, mail, on_theirs);
}

static void *turn_theirs(void *ctx)
{
    while (atomic_load(&bounces) < ROUNDS)
        loop_turn(ctx, true);
    return NULL;
}

static void no_wake_up_is_lost(void **state)
{
    (void)state;
    struct err err;
    pthread_t thread;
    struct loop *their_loop = loop_new();
    theirs = mailbox_new(their_loop, &err);
    assert_non_null(theirs);
    atomic_store(&bounces, 0);
    assert_int_equal(pthread_create(&thread, NULL, turn_theirs, their_loop), 0);
    mailbox_post(theirs, &ball, on_theirs);
    while (atomic_load(&bounces) < ROUNDS)
        loop_turn(loop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    mailbox_free(theirs);
    loop_free(their_loop);
}

#define MAILBOX_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MAILBOX_TEST(they_come_in_order_at_the_next_turn),
        MAILBOX_TEST(who_cannot_wait_takes_them_at_once),
        MAILBOX_TEST(what_is_posted_by_a_receiver_waits_for_the_next_turn),
        MAILBOX_TEST(nothing_is_lost_at_its_end),
        MAILBOX_TEST(each_senders_order_is_kept),
        MAILBOX_TEST(the_order_is_kept_by_who_takes_them_at_once),
        MAILBOX_TEST(no_wake_up_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
