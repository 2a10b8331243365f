/* How lines are shared between a version of a file and its parent. */
#include "helper/git_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "at>final+count at>final+count …" */
static void assert_lines(const struct git_lines *lines, const char *expected)
{
    char text[256] = "";
    size_t len = 0;
    for (size_t i = 0; i < lines->count; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%zu>%zu+%zu", i > 0 ? " " : "", lines->items[i].at,
                                lines->items[i].final, lines->items[i].count);
    assert_string_equal(text, expected);
}

static void add(struct git_lines *lines, size_t at, size_t final, size_t count)
{
    assert_int_equal(git_lines_add(lines, (struct git_line_range){at, final, count}), 0);
}

static void test_neighbours_are_joined(void **state)
{
    (void)state;
    struct git_lines lines = {0};
    add(&lines, 0, 5, 2);
    add(&lines, 2, 7, 3);
    add(&lines, 5, 20, 1);
    add(&lines, 7, 21, 1);
    assert_lines(&lines, "0>5+5 5>20+1 7>21+1");
    free(lines.items);
}

static void test_merge(void **state)
{
    (void)state;
    struct git_lines into = {0}, more = {0};
    add(&into, 0, 0, 2);
    add(&into, 6, 6, 2);
    add(&more, 2, 2, 1);
    add(&more, 9, 9, 1);
    assert_int_equal(git_lines_merge(&into, &more), 0);
    assert_lines(&into, "0>0+3 6>6+2 9>9+1");
    assert_lines(&more, "");
    free(into.items);
}

/* Line 2 is new, two older ones are gone before line 5, and line 8 is three new ones for one. */
static struct git_line_changes some_changes(void)
{
    struct git_line_changes changes = {0};
    assert_int_equal(git_lines_change(&changes, 2, 1, 0), 0);
    assert_int_equal(git_lines_change(&changes, 5, 0, 2), 0);
    assert_int_equal(git_lines_change(&changes, 8, 3, 1), 0);
    return changes;
}

static void test_share(void **state)
{
    (void)state;
    struct git_line_changes changes = some_changes();
    struct git_lines lines = {0}, parent = {0};
    add(&lines, 0, 0, 12);
    assert_int_equal(git_lines_share(&changes, &lines, &parent), 0);
    assert_lines(&lines, "2>2+1 8>8+3");
    assert_lines(&parent, "0>0+2 2>3+2 6>5+3 10>11+1");
    free(lines.items);
    free(parent.items);
    free(changes.items);
}

/* A merge kept two copies of lines 1 to 3: the second is asked for when the first has gone past all changes. */
static void test_share_what_overlaps(void **state)
{
    (void)state;
    struct git_line_changes changes = some_changes();
    struct git_lines lines = {0}, parent = {0};
    add(&lines, 0, 0, 12);
    add(&lines, 1, 40, 3);
    add(&lines, 9, 50, 1);
    assert_int_equal(git_lines_share(&changes, &lines, &parent), 0);
    assert_lines(&lines, "2>2+1 8>8+3 2>41+1 9>50+1");
    assert_lines(&parent, "0>0+2 2>3+2 6>5+3 10>11+1 1>40+1 2>42+1");
    free(lines.items);
    free(parent.items);
    free(changes.items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbours_are_joined),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_share_what_overlaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
