/* Patterns for names of files: what they match, what is refused, and that none takes long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "prim/glob.h"

#include <stdio.h>
#include <string.h>

static bool matches(const char *pattern, const char *path)
{
    struct err err;
    struct glob *glob = glob_new(pattern, strlen(pattern), &err);
    if (!glob)
        fail_msg("%s: %s", pattern, err.text);
    bool found = glob_matches(glob, path, strlen(path));
    glob_free(glob);
    return found;
}

static void check(const char *pattern, const char *path, bool wanted)
{
    if (matches(pattern, path) != wanted)
        fail_msg("%s %s %s", pattern, wanted ? "should match" : "should not match", path);
}

static void a_pattern_without_slash_is_about_names(void **state)
{
    (void)state;
    check("*.lua", "init.lua", true);
    check("*.lua", "a/b/init.lua", true);
    check("*.lua", "init.lua.txt", false);
    check("node_modules", "a/node_modules", true);
    check("node_modules", "node_modules/x", false);
    check("node_modules/", "node_modules", true);
    check("*", ".hidden", true);
    check("a?c", "x/abc", true);
    check("a?c", "ac", false);
}

static void a_pattern_with_slash_is_about_paths(void **state)
{
    (void)state;
    check("src/*.c", "src/main.c", true);
    check("src/*.c", "src/a/main.c", false);
    check("src/*.c", "x/src/main.c", false);
    check("/main.c", "main.c", true);
    check("/main.c", "src/main.c", false);
    check("./src/*", "src/main.c", true);
    check("src?main", "src/main", false);
    check("src[/]main", "src/main", false);
    check("src[!a]main", "src/main", false);
    check("{src/a,b}", "src/a", true);
}

static void two_stars_cross_directories(void **state)
{
    (void)state;
    check("**/*.c", "main.c", true);
    check("**/*.c", "a/b/main.c", true);
    check("src/**", "src/a/b", true);
    check("src/**", "src", false);
    check("a/**/b", "a/b", true);
    check("a/**/b", "a/x/y/b", true);
    check("a/**/b", "ab", false);
    check("a**/b", "ab", false);
    check("a**/b", "ax/y/b", true);
    check("{a/,}**/b", "a/b", true);
    check("{a/,}**/b", "b", true);
    check("**", "a/b", true);
}

static void sets_alternatives_and_escapes(void **state)
{
    (void)state;
    check("[a-c]x", "bx", true);
    check("[!a-c]x", "bx", false);
    check("[^a-c]x", "dx", true);
    check("[]a]", "]", true);
    check("[a-]", "-", true);
    check("[\\]]", "]", true);
    check("*.{c,h}", "a.h", true);
    check("*.{c,h}", "a.lua", false);
    check("{a,b{c,d}e}f", "bdef", true);
    check("{a,b{c,d}e}f", "bef", false);
    check("{,x}a", "a", true);
    check("{a}", "a", true);
    check("a,b}", "a,b}", true);
    check("\\*\\{", "*{", true);
    check("\\*", "a", false);
    check("-rf", "-rf", true);
}

static void a_character_is_one_of_utf8_or_a_lone_byte(void **state)
{
    (void)state;
    check("?", "\xC3\xA9", true);
    check("[\xC3\xA0-\xC3\xBF]", "\xC3\xA9", true);
    check("a?b",
          "a\xA4"
          "b",
          true);
    check("*\xA9", "\xC3\xA9", false);
    check("?\n?", "a\nb", true);
}

static void check_refused(const char *pattern, size_t len)
{
    struct err err = {0};
    assert_null(glob_new(pattern, len, &err));
    assert_int_equal(err.code, ERR_INVALID_REQUEST);
    assert_string_equal(err.field, "");
}

static void faulty_patterns_are_refused(void **state)
{
    (void)state;
    static const char *const faulty[] = {"",   "/",   "[a", "[",   "[]",    "[!]",         "[a-",
                                         "{a", "{a,", "{",  "a\\", "[z-a]", "[[:alpha:]]", "./"};
    for (size_t i = 0; i < sizeof(faulty) / sizeof(faulty[0]); i++)
        check_refused(faulty[i], strlen(faulty[i]));

    char text[2 * GLOB_LEN_MAX];
    memset(text, 'a', sizeof(text));
    check_refused(text, GLOB_LEN_MAX + 1);
    memset(text, '{', sizeof(text));
    memset(text + GLOB_NESTING_MAX + 1, '}', GLOB_NESTING_MAX + 1);
    check_refused(text, 2 * (GLOB_NESTING_MAX + 1));
    memset(text, ',', sizeof(text));
    text[0] = '{';
    text[GLOB_ALTERNATIVES_MAX + 1] = '}';
    check_refused(text, GLOB_ALTERNATIVES_MAX + 2);
}

/* With a matcher that tries one branch after the other, none of these would ever end. */
static void no_pattern_takes_long(void **state)
{
    (void)state;
    char pattern[GLOB_LEN_MAX + 1], path[4096];
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    for (int i = 0; i < GLOB_LEN_MAX - 2; i += 2)
        memcpy(pattern + i, "a*", 2);
    memcpy(pattern + GLOB_LEN_MAX - 2, "b", 2);
    check(pattern, path, false);

    pattern[0] = '\0';
    for (int i = 0; i < 60; i++)
        strcat(pattern, "{a,aa,**}");
    check(strcat(pattern, "b"), path, false);

    for (int i = 1; i < 4094; i += 2)
        path[i] = '/';
    pattern[0] = '\0';
    for (int i = 0; i < 100; i++)
        strcat(pattern, "**/a/**/");
    check(strcat(pattern, "b"), path, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_without_slash_is_about_names),
        cmocka_unit_test(a_pattern_with_slash_is_about_paths),
        cmocka_unit_test(two_stars_cross_directories),
        cmocka_unit_test(sets_alternatives_and_escapes),
        cmocka_unit_test(a_character_is_one_of_utf8_or_a_lone_byte),
        cmocka_unit_test(faulty_patterns_are_refused),
        cmocka_unit_test(no_pattern_takes_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
