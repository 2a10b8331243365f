/* The text of files: what is found and told, in which order, what is left out, and that nothing takes for ever. */
#include "base/loop.h"
#include "prim/search.h"

#include "tree.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

struct search {
    struct buf answer;
    struct err err;
    atomic_bool cancelled;
    int result;
};

static uint64_t in_ms(unsigned ms)
{
    return loop_clock_ns() + (uint64_t)ms * 1000000;
}

/* Defaults of the contract, but for two threads, so that the order is one of threads. */
static struct search_options options_for(const char *path, const char *pattern)
{
    return (struct search_options){.path = {path, strlen(path)},
                                   .pattern = {pattern, strlen(pattern)},
                                   .regex = true,
                                   .case_sensitive = true,
                                   .max_results = 500,
                                   .deadline_ns = in_ms(30000),
                                   .threads = 2};
}

static void run(const struct tree *tree, struct search *search, const struct search_options *options)
{
    memset(search, 0, sizeof(*search));
    buf_init(&search->answer, 64 * 1024 * 1024);
    search->result = search_run(tree->confine, options, &search->cancelled, &search->answer, &search->err);
    if (search->result == 0)
        assert_int_equal(buf_append(&search->answer, "", 1), 0);
}

static int count(const char *text, const char *part)
{
    int found = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
        found++;
    return found;
}

/* How many matches there are; the answer must hold `part`. */
static int matches_with(const struct tree *tree, const struct search_options *options, const char *part)
{
    struct search search;
    run(tree, &search, options);
    if (search.result != 0)
        fail_msg("%s", search.err.text);
    if (part && !strstr(search.answer.data, part))
        fail_msg("no %s in %.500s", part, search.answer.data);
    int found = count(search.answer.data, "{\"path\":");
    buf_deinit(&search.answer);
    return found;
}

static int matches(const struct tree *tree, const char *pattern, const char *part)
{
    struct search_options options = options_for(".", pattern);
    return matches_with(tree, &options, part);
}

static void check_refused(const struct tree *tree, const struct search_options *options, enum err_code code,
                          const char *field, const char *text)
{
    struct search search;
    run(tree, &search, options);
    assert_int_equal(search.result, -1);
    assert_string_equal(err_code_name(search.err.code), err_code_name(code));
    assert_string_equal(search.err.field, field);
    if (!strstr(search.err.text, text))
        fail_msg("%s: %s", text, search.err.text);
    buf_deinit(&search.answer);
}

static void write_file(const struct tree *tree, const char *name, const char *content, size_t len)
{
    int fd = open(tree_path(tree, name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, len), len);
    close(fd);
}

static void a_match_is_told_as_the_contract_has_it(void **state)
{
    struct tree *tree = *state;
    struct search search;
    tree_dir(tree, "ws/d");
    tree_file(tree, "ws/d/f", "one\ntwo three\r\n\nfour");
    struct search_options options = options_for("d", "t[h]ree");
    options.context = 1;
    run(tree, &search, &options);
    char wanted[512];
    snprintf(
        wanted, sizeof(wanted),
        "{\"matches\":[{\"path\":\"%s/d/f\",\"line\":2,\"column\":5,\"text\":\"two three\",\"line_truncated\":false,"
        "\"before\":[\"one\"],\"after\":[\"\"]}],\"truncated\":false,\"timed_out\":false,\"files_searched\":1}",
        tree->base);
    assert_string_equal(search.answer.data, wanted);
    buf_deinit(&search.answer);
}

static void one_match_a_line_whatever_finds_it(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/f", "foo foo\nbar\nfo\n\nfoo");
    static const char *const regexes[] = {"foo",       "fo+",    "f[o]o\\b", "(?i)FOO",     "(foo)",
                                          "foo|never", "[^b]oo", "^foo",     "foo\\s*\\n?", "\\Afoo"};
    for (size_t i = 0; i < sizeof(regexes) / sizeof(regexes[0]); i++) {
        int found = matches(tree, regexes[i], NULL);
        int wanted = strcmp(regexes[i], "fo+") == 0 ? 3 : 2;
        if (found != wanted)
            fail_msg("%s: %d", regexes[i], found);
    }
    struct search_options options = options_for(".", "FOO");
    assert_int_equal(matches_with(tree, &options, NULL), 0);
    options.case_sensitive = false;
    assert_int_equal(matches_with(tree, &options, "\"line\":5,\"column\":1"), 2);
    options.regex = false;
    assert_int_equal(matches_with(tree, &options, NULL), 2);
    options = options_for(".", "f.o");
    options.regex = false;
    assert_int_equal(matches_with(tree, &options, NULL), 0);
}

static void a_match_never_leaves_its_line(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/f", "a\nb\n\nab\n");
    assert_int_equal(matches(tree, "a[^x]b", NULL), 0);
    assert_int_equal(matches(tree, "a\\s*b", "\"line\":4,"), 1);
    assert_int_equal(matches(tree, "a(?s:.)*b", "\"line\":4,"), 1);
    assert_int_equal(matches(tree, "a\\nb", NULL), 0);
    assert_int_equal(matches(tree, "\\W", NULL), 0);
    assert_int_equal(matches(tree, "^$", "\"line\":3,"), 1);
    assert_int_equal(matches(tree, "x*", "\"line\":4,"), 4);
    assert_int_equal(matches(tree, "^", NULL), 4);
    assert_int_equal(matches(tree, "$", NULL), 4);
}

static void line_ends_are_lf_and_crlf(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/crlf", "one;\r\ntwo\r\nthree;");
    assert_int_equal(matches(tree, ";$", "\"text\":\"one;\""), 2);
    assert_int_equal(matches(tree, "[;]$", NULL), 2);
    assert_int_equal(matches(tree, "^two$", "\"line\":2,"), 1);
    assert_int_equal(matches(tree, "\\Atwo", NULL), 1);
    tree_file(tree, "ws/crlf", "\xEF\xBB\xBFone\n");
    assert_int_equal(matches(tree, "^one", "\"column\":1,\"text\":\"one\""), 1);
}

static void the_pattern_is_never_an_option(void **state)
{
    struct tree *tree = *state;
    static const char *const patterns[] = {"-e", "--pre=/bin/sh", "--version", "->", "- [ ]", "-77"};
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        char content[64];
        snprintf(content, sizeof(content), "x %s y\n", patterns[i]);
        tree_file(tree, "ws/f", content);
        struct search_options options = options_for(".", patterns[i]);
        options.regex = false;
        assert_int_equal(matches_with(tree, &options, "\"column\":3,"), 1);
        assert_int_equal(matches(tree, patterns[i], NULL), strcmp(patterns[i], "- [ ]") == 0 ? 0 : 1);
    }
    write_file(tree, "ws/f", "late", 4);
    struct search_options options = options_for(".", "a");
    options.pattern = (struct search_text){"a\0", 2};
    assert_int_equal(matches_with(tree, &options, NULL), 0);
}

static void faulty_requests_are_refused(void **state)
{
    struct tree *tree = *state;
    struct search_options options = options_for(".", "(");
    check_refused(tree, &options, ERR_INVALID_REGEX, "pattern", "at byte 1: missing closing parenthesis");
    options.pattern = (struct search_text){"", 0};
    check_refused(tree, &options, ERR_INVALID_REQUEST, "pattern", "1 to");
    options.pattern = (struct search_text){"a\nb", 3};
    options.regex = false;
    check_refused(tree, &options, ERR_INVALID_REQUEST, "pattern", "line break");
    options = options_for(".", "a");
    options.glob = (struct search_text){"[a", 2};
    check_refused(tree, &options, ERR_INVALID_REQUEST, "glob", "[");
    options = options_for(".", "a");
    options.exclude = &(struct search_text){"{", 1};
    options.exclude_count = 1;
    check_refused(tree, &options, ERR_INVALID_REQUEST, "exclude", "{");
    options = options_for("missing", "a");
    check_refused(tree, &options, ERR_FILE_NOT_FOUND, "", "missing");
    options = options_for("../out", "a");
    check_refused(tree, &options, ERR_PATH_OUTSIDE_BASE, "", "outside");
    assert_int_equal(mkfifo(tree_path(tree, "ws/fifo"), 0600), 0);
    options = options_for("fifo", "a");
    check_refused(tree, &options, ERR_NOT_A_REGULAR_FILE, "", "fifo");
}

static void only_regular_text_files_are_searched(void **state)
{
    struct tree *tree = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct err err;
    bool inside;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", tree_path(tree, "ws/socket"));
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
    close(sock);
    assert_int_equal(mkfifo(tree_path(tree, "ws/fifo"), 0600), 0);
    tree_link(tree, "../out/secret", "ws/leaves");
    tree_link(tree, "../out", "ws/leaves-dir");
    tree_link(tree, "f", "ws/stays");
    tree_link(tree, ".", "ws/loop");
    write_file(tree, "ws/binary", "secret\0", 7);
    tree_file(tree, "ws/protected", "secret");
    tree_file(tree, "ws/f", "secret");
    tree_file(tree, "ws/empty", "");
    assert_int_equal(confine_protect(tree->confine, tree_path(tree, "ws/protected"), &inside, &err), 0);
    assert_int_equal(matches(tree, "secret", "\"files_searched\":2"), 1);
    struct search_options options = options_for("stays", "secret");
    assert_int_equal(matches_with(tree, &options, "/ws/f\""), 1);
    options = options_for("leaves", "secret");
    check_refused(tree, &options, ERR_PATH_OUTSIDE_BASE, "", "leaves");
}

static void globs_choose_files_and_leave_out_directories(void **state)
{
    struct tree *tree = *state;
    static const char *const dirs[] = {"ws/.git", "ws/src", "ws/src/node_modules"};
    static const char *const files[] = {"ws/.git/a.c", "ws/src/a.c", "ws/src/a.h", "ws/src/node_modules/a.c", "ws/a.c"};
    static const struct search_text exclude[] = {{".git", 4}, {"node_modules", 12}};
    for (size_t i = 0; i < 3; i++)
        tree_dir(tree, dirs[i]);
    for (size_t i = 0; i < 5; i++)
        tree_file(tree, files[i], "x");
    struct search_options options = options_for(".", "x");
    assert_int_equal(matches_with(tree, &options, NULL), 5);
    options.exclude = exclude;
    options.exclude_count = 2;
    assert_int_equal(matches_with(tree, &options, NULL), 3);
    options.glob = (struct search_text){"*.c", 3};
    assert_int_equal(matches_with(tree, &options, NULL), 2);
    options.glob = (struct search_text){"src/*", 5};
    assert_int_equal(matches_with(tree, &options, NULL), 2);
    options.exclude = &(struct search_text){"src/*.h", 7};
    options.exclude_count = 1;
    options.glob = (struct search_text){"**/*.{c,h}", 10};
    assert_int_equal(matches_with(tree, &options, NULL), 4);
    options.path = (struct search_text){"src/a.h", 7};
    assert_int_equal(matches_with(tree, &options, NULL), 1);
}

/* 3,000 files in 30 directories, more than the queue holds, by several threads: the order is that of a walk. */
static void matches_come_in_the_order_of_a_walk(void **state)
{
    struct tree *tree = *state;
    struct search search, again;
    for (int i = 0; i < 30; i++) {
        char name[64];
        snprintf(name, sizeof(name), "ws/d%02d", i);
        tree_dir(tree, name);
        for (int k = 0; k < 100; k++) {
            snprintf(name, sizeof(name), "ws/d%02d/f%02d", i, k);
            tree_file(tree, name, "needle\nno\nneedle\n");
        }
    }
    struct search_options options = options_for(".", "needle");
    options.max_results = 10000;
    options.threads = 4;
    run(tree, &search, &options);
    assert_int_equal(count(search.answer.data, "{\"path\":"), 6000);
    assert_non_null(strstr(search.answer.data, "\"truncated\":false"));
    options.threads = 1;
    run(tree, &again, &options);
    assert_string_equal(search.answer.data, again.answer.data);
    buf_deinit(&search.answer);
    buf_deinit(&again.answer);

    options.threads = 4;
    options.max_results = 201;
    assert_int_equal(matches_with(tree, &options, "d01/f00"), 201);
    assert_int_equal(matches_with(tree, &options, "\"truncated\":true"), 201);
    options.max_results = 6000;
    assert_int_equal(matches_with(tree, &options, "\"truncated\":false"), 6000);
    options.max_results = 1;
    assert_int_equal(matches_with(tree, &options, "d00/f00"), 1);
}

static void context_ends_at_the_file_and_may_overlap(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/f", "m1\na\nm2\nb\nc\nm3");
    struct search_options options = options_for("f", "m");
    options.context = 2;
    assert_int_equal(matches_with(tree, &options, "\"before\":[],\"after\":[\"a\",\"m2\"]"), 3);
    matches_with(tree, &options, "\"before\":[\"m1\",\"a\"],\"after\":[\"b\",\"c\"]");
    matches_with(tree, &options, "\"before\":[\"b\",\"c\"],\"after\":[]");
}

/* strstr within the next match or two. */
static const char *find_near(const char *at, const char *part)
{
    return memmem(at, strnlen(at, 10000), part, strlen(part));
}

/* Lines of 100 bytes over several windows, matches at all their borders: each has the lines that a simple reckoning
 * gives it. */
static void windows_make_no_difference(void **state)
{
    struct tree *tree = *state;
    enum { LINES = 9000, LINE = 100, EVERY = 7 };
    char *content = malloc(LINES * LINE);
    memset(content, '0', LINES * LINE);
    for (int i = 0; i < LINES; i++) {
        char start[32];
        int len = snprintf(start, sizeof(start), "%05d %s ", i, i % EVERY == 0 ? "needle" : "------");
        memcpy(content + i * LINE, start, (size_t)len);
        content[i * LINE + LINE - 1] = '\n';
    }
    write_file(tree, "ws/f", content, LINES * LINE);
    for (int by_regex = 0; by_regex < 2; by_regex++) {
        struct search search;
        struct search_options options = options_for("f", by_regex ? "n\\we[^x]le" : "needle");
        options.regex = by_regex;
        options.context = 20;
        options.max_results = 100000;
        run(tree, &search, &options);
        assert_int_equal(search.result, 0);
        int found = 0;
        for (const char *at = search.answer.data; (at = find_near(at, "\"line\":")) != NULL; found++, at++) {
            int line = found * EVERY, before = line < 20 ? line : 20;
            int after = LINES - 1 - line < 20 ? LINES - 1 - line : 20, told = 0;
            char wanted[64];
            assert_int_equal(strtol(at + strlen("\"line\":"), NULL, 10), line + 1);
            snprintf(wanted, sizeof(wanted), before > 0 ? "\"before\":[\"%05d " : "\"before\":[]", line - before);
            assert_non_null(at = find_near(at, wanted));
            assert_non_null(at = find_near(at, "\"after\":["));
            for (at += strlen("\"after\":["); *at == '"'; at += LINE + 1 + (at[LINE + 1] == ','))
                assert_int_equal(strtol(at + 1, NULL, 10), line + ++told);
            assert_int_equal(told, after);
        }
        assert_int_equal(found, (LINES + EVERY - 1) / EVERY);
        buf_deinit(&search.answer);
    }
    free(content);
}

static void long_lines_are_cut_around_the_match(void **state)
{
    struct tree *tree = *state;
    enum { LINE = 5000 };
    char *content = malloc(LINE + 1);
    struct search search;
    for (int i = 0; i < LINE; i += 2)
        memcpy(content + i, "\xC3\xA9", 2);
    memcpy(content + 3000, "needle", 6);
    content[LINE] = '\n';
    write_file(tree, "ws/f", content, LINE + 1);
    struct search_options options = options_for("f", "needle");
    run(tree, &search, &options);
    const char *text = strstr(search.answer.data, "\"text\":\"") + 8;
    assert_non_null(strstr(search.answer.data, "\"line\":1,\"column\":3001,"));
    assert_int_equal(strchr(text, '"') - text, 1000);
    assert_int_equal(strstr(text, "needle") - text, 200);
    assert_memory_equal(text, "\xC3\xA9", 2);
    assert_non_null(strstr(search.answer.data, "\"line_truncated\":true"));
    assert_null(strstr(search.answer.data, "lossy"));
    buf_deinit(&search.answer);

    memset(content, 0xA4, LINE);
    memcpy(content + 3000, "needle", 6);
    write_file(tree, "ws/f", content, LINE + 1);
    run(tree, &search, &options);
    text = strstr(search.answer.data, "\"text\":\"") + 8;
    assert_true(strchr(text, '"') - text <= 1000 && strchr(text, '"') - text > 990);
    assert_true(strstr(text, "needle") < strchr(text, '"'));
    assert_non_null(strstr(search.answer.data, "\"lossy\":true"));
    buf_deinit(&search.answer);
    free(content);
}

static void check_huge(const struct tree *tree, const char *pattern, bool regex, int wanted, const char *part)
{
    struct search_options options = options_for("huge", pattern);
    options.regex = regex;
    options.context = 1;
    assert_int_equal(matches_with(tree, &options, part), wanted);
}

/* A line of 50 MB, a line before and one after: found wherever the parts that it is read in meet. */
static void a_line_of_50_megabytes_is_searched_in_parts(void **state)
{
    struct tree *tree = *state;
    enum { LINE = 50 * 1000 * 1000 };
    char *content = malloc(LINE + 16);
    memset(content, 'a', LINE + 16);
    memcpy(content, "first\n", 6);
    memcpy(content + LINE, "\nlast\n", 6);
    size_t places[] = {
        6, 1024 * 1024 - 3, 1024 * 1024, 1024 * 1024 - 64 * 1024, 1024 * 1024 - 64 * 1024 - 60, 49 * 1000 * 1000};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char part[64];
        memcpy(content + places[i], "needle", 6);
        write_file(tree, "ws/huge", content, LINE + 6);
        snprintf(part, sizeof(part), "\"line\":2,\"column\":%zu,", places[i] - 6 + 1);
        check_huge(tree, "needle", false, 1, part);
        check_huge(tree, "n[e]+dl(e|x)", true, 1, part);
        check_huge(tree, "needle", false, 1, "\"before\":[\"first\"],\"after\":[\"last\"]");
        memset(content + places[i], 'a', 6);
    }
    check_huge(tree, "^a+$", true, 0, "\"timed_out\":false");
    check_huge(tree, "last", false, 1, "\"line\":3,\"column\":1,");
    check_huge(tree, "first|last", true, 2, "\"line\":3,\"column\":1,");
    free(content);
}

static void a_sparse_file_ends(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/sparse", "needle");
    assert_int_equal(truncate(tree_path(tree, "ws/sparse"), 5LL << 30), 0);
    struct search_options options = options_for("sparse", "needle");
    assert_int_equal(matches_with(tree, &options, "\"files_searched\":0"), 0);
}

static void an_expression_that_runs_wild_is_given_up(void **state)
{
    struct tree *tree = *state;
    char *content = malloc(10002);
    memset(content, 'a', 10000);
    memcpy(content + 10000, "b\n", 2);
    write_file(tree, "ws/f", content, 10002);
    assert_int_equal(matches(tree, "(a+)+$", "\"lines_given_up\":1"), 0);
    assert_int_equal(matches(tree, "(a|aa)+$", NULL), 0);
    assert_int_equal(matches(tree, "(.*)*(.*)*=x", NULL), 0);
    tree_file(tree, "ws/g", "aaa\n");
    assert_int_equal(matches(tree, "(a+)+$", "/ws/g"), 1);
    free(content);
}

/* 20,000 lines, each of which takes the expression some milliseconds; the first one matches. */
static void make_slow_file(const struct tree *tree)
{
    enum { LINES = 20000, LINE = 41 };
    char *content = malloc(LINES * LINE);
    memset(content, 'x', LINES * LINE);
    for (int i = 0; i < LINES; i++)
        content[i * LINE + LINE - 1] = '\n';
    content[LINE - 2] = 'y';
    write_file(tree, "ws/slow", content, LINES * LINE);
    free(content);
}

#define SLOW_EXPRESSION "(x+x+)+[yz]"

static void what_was_found_in_time_is_told(void **state)
{
    struct tree *tree = *state;
    make_slow_file(tree);
    struct search_options options = options_for(".", SLOW_EXPRESSION);
    options.deadline_ns = in_ms(300);
    assert_int_equal(matches_with(tree, &options, "\"timed_out\":true"), 1);
    options.path = (struct search_text){"slow", 4};
    assert_int_equal(matches_with(tree, &options, "\"timed_out\":true"), 1);
    options.deadline_ns = 1; /* it waited for a thread until its time was over */
    assert_in_range(matches_with(tree, &options, "\"timed_out\":true"), 0, 1);
}

static void *cancel_soon(void *ctx)
{
    usleep(100 * 1000);
    atomic_store((atomic_bool *)ctx, true);
    return NULL;
}

static void cancelling_ends_it(void **state)
{
    struct tree *tree = *state;
    pthread_t thread;
    struct search search = {.result = 0};
    make_slow_file(tree);
    struct search_options options = options_for(".", SLOW_EXPRESSION);
    options.deadline_ns = in_ms(600000);
    buf_init(&search.answer, 1024 * 1024);
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &search.cancelled), 0);
    assert_int_equal(search_run(tree->confine, &options, &search.cancelled, &search.answer, &search.err), 0);
    assert_int_equal(buf_append(&search.answer, "", 1), 0);
    assert_null(strstr(search.answer.data, "lines_given_up\":19999"));
    pthread_join(thread, NULL);
    buf_deinit(&search.answer);
}

static void names_may_be_any_bytes(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/b\xA4", "x");
    tree_file(tree, "ws/n\nl", "x");
    tree_file(tree, "ws/-rf", "x");
    assert_int_equal(matches(tree, "x", "\"path_base64\":\""), 3);
    assert_int_equal(matches(tree, "x", "/b\xEF\xBF\xBD\""), 3);
    assert_int_equal(matches(tree, "x", "/n\\nl\""), 3);
}

/* The answer has a limit of its own: what is beyond is not told, but that there is more. */
static void an_answer_that_grows_too_large_is_truncated(void **state)
{
    struct tree *tree = *state;
    char *content = malloc(1000 * 1000), name[32];
    for (int i = 0; i < 1000; i++) {
        memset(content + i * 1000, 'a' + i % 26, 999);
        content[i * 1000 + 999] = '\n';
    }
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "ws/f%d", i);
        write_file(tree, name, content, 1000 * 1000);
    }
    struct search_options options = options_for(".", "^");
    options.context = 20;
    options.max_results = 10000;
    int found = matches_with(tree, &options, "\"truncated\":true");
    assert_true(found > 300 && found < 1000);
    free(content);
}

#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, tree_set_up, tree_tear_down, &tree_by_openat2)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_match_is_told_as_the_contract_has_it),
        TEST(one_match_a_line_whatever_finds_it),
        TEST(a_match_never_leaves_its_line),
        TEST(line_ends_are_lf_and_crlf),
        TEST(the_pattern_is_never_an_option),
        TEST(faulty_requests_are_refused),
        TREE_TEST(only_regular_text_files_are_searched),
        TEST(globs_choose_files_and_leave_out_directories),
        TEST(matches_come_in_the_order_of_a_walk),
        TEST(context_ends_at_the_file_and_may_overlap),
        TEST(windows_make_no_difference),
        TEST(long_lines_are_cut_around_the_match),
        TEST(a_line_of_50_megabytes_is_searched_in_parts),
        TEST(a_sparse_file_ends),
        TEST(an_expression_that_runs_wild_is_given_up),
        TEST(what_was_found_in_time_is_told),
        TEST(cancelling_ends_it),
        TEST(names_may_be_any_bytes),
        TEST(an_answer_that_grows_too_large_is_truncated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
