/* Pages are remembered by the process that they were in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bind/browser_pages.h"

#include <stdio.h>
#include <string.h>

static struct browser_pages pages;

static int empty(void **state)
{
    (void)state;
    memset(&pages, 0, sizeof(pages));
    return 0;
}

static void test_a_page_is_lost_with_its_process(void **state)
{
    (void)state;
    assert_false(browser_pages_lost(&pages, "a", 0));
    browser_pages_see(&pages, "a", 7);
    assert_false(browser_pages_lost(&pages, "a", 7));
    assert_true(browser_pages_lost(&pages, "a", 0));
    assert_true(browser_pages_lost(&pages, "a", 8));
    assert_false(browser_pages_lost(&pages, "b", 8));
    browser_pages_see(&pages, "a", 8);
    assert_false(browser_pages_lost(&pages, "a", 8));
    browser_pages_forget(&pages, "a");
    assert_false(browser_pages_lost(&pages, "a", 9));
    browser_pages_forget(&pages, "a");
}

static void test_the_one_seen_longest_ago_is_forgotten(void **state)
{
    char name[16];
    (void)state;
    for (int i = 0; i < BROWSER_PAGES_MAX; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        browser_pages_see(&pages, name, 1);
    }
    browser_pages_see(&pages, "p0", 1);
    browser_pages_see(&pages, "one more", 1);
    assert_true(browser_pages_lost(&pages, "p0", 2));
    assert_true(browser_pages_lost(&pages, "one more", 2));
    assert_false(browser_pages_lost(&pages, "p1", 2));
    assert_true(browser_pages_lost(&pages, "p2", 2));
}

static void test_names_that_are_none(void **state)
{
    char longest[BROWSER_PAGE_NAME_MAX + 2];
    (void)state;
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    browser_pages_see(&pages, longest, 1);
    assert_false(browser_pages_lost(&pages, longest, 2));
    browser_pages_see(&pages, longest + 1, 1);
    assert_true(browser_pages_lost(&pages, longest + 1, 2));
    browser_pages_see(&pages, "", 1);
    assert_false(browser_pages_lost(&pages, "", 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_page_is_lost_with_its_process, empty),
        cmocka_unit_test_setup(test_the_one_seen_longest_ago_is_forgotten, empty),
        cmocka_unit_test_setup(test_names_that_are_none, empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
