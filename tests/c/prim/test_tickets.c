/* prim/tickets: good once, for one subject, for a while. */
#include "prim/tickets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct tickets *tickets;

static int set_up(void **state)
{
    (void)state;
    tickets = tickets_new();
    return tickets == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    tickets_free(tickets);
    return 0;
}

static const char *name(unsigned number)
{
    static char text[TICKET_BYTES];
    snprintf(text, sizeof(text), "%032x", number);
    return text;
}

static bool matches(unsigned number, const char *subject, uint64_t now_ms)
{
    return tickets_match(tickets, name(number), TICKET_BYTES - 1, subject, now_ms);
}

static bool take(unsigned number, const char *subject, uint64_t now_ms)
{
    return tickets_take(tickets, name(number), TICKET_BYTES - 1, subject, now_ms);
}

static void opens_its_subject_once(void **state)
{
    (void)state;
    tickets_add(tickets, name(1), "p-0123456789ab", 1000);
    assert_true(matches(1, "p-0123456789ab", 1000));
    assert_true(matches(1, "p-0123456789ab", 1000)); /* a look uses nothing up */
    assert_false(take(1, "p-0123456789ac", 1000));
    assert_false(take(2, "p-0123456789ab", 1000));
    assert_true(take(1, "p-0123456789ab", 1000));
    assert_false(matches(1, "p-0123456789ab", 1000));
    assert_false(take(1, "p-0123456789ab", 1000));
}

static void is_compared_as_a_whole(void **state)
{
    (void)state;
    char longer[TICKET_BYTES + 1];
    tickets_add(tickets, name(1), "p-1", 0);
    snprintf(longer, sizeof(longer), "%s0", name(1));
    assert_false(tickets_match(tickets, name(1), TICKET_BYTES - 2, "p-1", 0));
    assert_false(tickets_match(tickets, name(1), TICKET_BYTES, "p-1", 0)); /* with the NUL */
    assert_false(tickets_match(tickets, longer, TICKET_BYTES, "p-1", 0));
    assert_false(tickets_match(tickets, "", 0, "p-1", 0));
    assert_false(matches(1, "p-", 0));
    assert_false(matches(1, "", 0));
    assert_true(matches(1, "p-1", 0));
}

static void expires(void **state)
{
    (void)state;
    tickets_add(tickets, name(1), "p-1", 5000);
    assert_true(matches(1, "p-1", 5000 + TICKET_LIFE_MS - 1));
    assert_false(matches(1, "p-1", 5000 + TICKET_LIFE_MS));
    assert_false(take(1, "p-1", 5000 + TICKET_LIFE_MS));
}

static void one_taken_leaves_the_others(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++)
        tickets_add(tickets, name(i), "p-1", i);
    for (unsigned i = 1; i < 100; i += 2)
        assert_true(take(i, "p-1", 100));
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(matches(i, "p-1", 100), i % 2 == 0);
}

static void the_oldest_gives_way(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TICKETS_MAX + 2; i++)
        tickets_add(tickets, name(i), "p-1", 0);
    assert_false(matches(0, "p-1", 0));
    assert_false(matches(1, "p-1", 0));
    assert_true(matches(2, "p-1", 0));
    assert_true(matches(TICKETS_MAX + 1, "p-1", 0));
}

static void expired_ones_make_room(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TICKETS_MAX - 1; i++)
        tickets_add(tickets, name(i), "p-1", 0);
    tickets_add(tickets, name(TICKETS_MAX), "p-1", 10);
    tickets_add(tickets, name(TICKETS_MAX + 1), "p-1", TICKET_LIFE_MS);
    assert_true(matches(TICKETS_MAX, "p-1", TICKET_LIFE_MS)); /* the oldest of those that are still good */
    assert_true(matches(TICKETS_MAX + 1, "p-1", TICKET_LIFE_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(opens_its_subject_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(is_compared_as_a_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(expires, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_taken_leaves_the_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_oldest_gives_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(expired_ones_make_room, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
