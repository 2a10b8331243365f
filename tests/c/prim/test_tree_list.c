/* Listings of trees: what is shown, in which order, page by page. */
#include "list_answer.h"

#include "prim/glob.h"

/* a/, a/.h, a/b/, a/b/f, a/c, a.txt, B, d/ (empty), z -> a */
static void make_small(struct tree *tree)
{
    tree_dir(tree, "ws/a");
    tree_file(tree, "ws/a/.h", "");
    tree_dir(tree, "ws/a/b");
    tree_file(tree, "ws/a/b/f", "12345");
    tree_file(tree, "ws/a/c", "");
    tree_file(tree, "ws/a.txt", "");
    tree_file(tree, "ws/B", "");
    tree_dir(tree, "ws/d");
    tree_link(tree, "a", "ws/z");
}

static void test_order(void **state)
{
    struct tree *tree = *state;
    make_small(tree);
    assert_string_equal(paths(tree, "", &flat), "B a a.txt d z ");
    assert_string_equal(paths(tree, ".", &deep), "B a a/.h a/b a/b/f a/c a.txt d z ");
    assert_string_equal(paths(tree, "a", &deep), "a/.h a/b a/b/f a/c ");
    assert_string_equal(paths(tree, "z", &deep), "a/.h a/b a/b/f a/c "); /* the path itself is followed */
    assert_string_equal(paths(tree, "d", &deep), "");
    assert_string_equal(rest(tree, "d", &deep), NO_MORE "]}");
}

static void test_members(void **state)
{
    struct tree *tree = *state;
    char expected[512];
    struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000, .tv_nsec = 7000000}};
    tree_dir(tree, "ws/d");
    tree_link(tree, "../no\"where", "ws/d/l");
    assert_int_equal(utimensat(AT_FDCWD, tree_path(tree, "ws/d/l"), times, AT_SYMLINK_NOFOLLOW), 0);
    char *answer = list(tree, "d", &flat);
    snprintf(expected, sizeof(expected),
             "{\"path\":\"%s/d\",\"entries\":[{\"path\":\"%s/d/l\",\"name\":\"l\",\"type\":\"symlink\",\"size\":11,"
             "\"mode\":\"0777\",\"owner\":",
             tree->base, tree->base);
    assert_memory_equal(answer, expected, strlen(expected));
    assert_non_null(
        strstr(answer, ",\"modified_at\":\"2001-09-09T01:46:40.007Z\",\"target\":\"../no\\\"where\"}],\"truncated\""));
    free(answer);
}

static void test_options(void **state)
{
    struct tree *tree = *state;
    struct err err;
    struct tree_list_options options = deep;
    make_small(tree);
    tree_dir(tree, "ws/.git");
    tree_file(tree, "ws/.git/x", "");
    options.hidden = false;
    assert_string_equal(paths(tree, ".", &options), "B a a/b a/b/f a/c a.txt d z ");
    options = deep;
    options.max_depth = 1;
    assert_string_equal(paths(tree, ".", &options), ".git B a a.txt d z ");
    options.max_depth = 2;
    assert_string_equal(paths(tree, ".", &options), ".git .git/x B a a/.h a/b a/c a.txt d z ");
    assert_string_equal(rest(tree, ".", &options), NO_MORE "]}");

    static const struct {
        const char *glob, *expected;
    } rows[] = {{"f", "a/b/f "}, {"a*", "a a.txt "}, {"a/*", "a/.h a/b a/c "}, {"a/**", "a/.h a/b a/b/f a/c "},
                {"none", ""},    {"[A-Z]", "B "}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct glob *glob = glob_new(rows[i].glob, strlen(rows[i].glob), &err);
        assert_non_null(glob);
        options = deep;
        options.glob = glob;
        assert_string_equal(paths(tree, ".", &options), rows[i].expected);
        assert_string_equal(paged(tree, ".", options, 1), rows[i].expected);
        glob_free(glob);
    }
}

static void test_pages(void **state)
{
    struct tree *tree = *state;
    make_small(tree);
    tree_dir(tree, "ws/a/b/q");
    for (size_t limit = 1; limit <= 12; limit++) {
        assert_string_equal(paged(tree, ".", deep, limit), "B a a/.h a/b a/b/f a/b/q a/c a.txt d z ");
        assert_string_equal(paged(tree, "", flat, limit), "B a a.txt d z ");
        assert_string_equal(paged(tree, "a", deep, limit), "a/.h a/b a/b/f a/b/q a/c ");
    }
    /* As many as there are: no further page is promised. */
    struct tree_list_options options = flat;
    options.limit = 5;
    assert_string_equal(rest(tree, ".", &options), NO_MORE "]}");
}

/* One page of that many entries; its cursor replaces *cursor, and the paths are the answer. */
static const char *page(struct tree *tree, size_t limit, char *cursor, size_t size)
{
    static char text[1024];
    struct tree_list_options options = deep;
    options.limit = limit;
    options.cursor = cursor[0] ? cursor : NULL;
    options.cursor_len = strlen(cursor);
    char *answer = list(tree, ".", &options);
    text[0] = '\0';
    append_paths(tree, answer, text, sizeof(text));
    if (!next_cursor(answer, cursor, size))
        cursor[0] = '\0';
    free(answer);
    return text;
}

static void test_entries_come_and_go_between_pages(void **state)
{
    struct tree *tree = *state;
    char cursor[8192] = "", again[8192];
    make_small(tree);
    assert_string_equal(page(tree, 5, cursor, sizeof(cursor)), "B a a/.h a/b a/b/f ");
    /* What comes before the place is not shown any more, what comes behind it is. */
    tree_file(tree, "ws/A", "");
    tree_file(tree, "ws/a/b/e", "");
    tree_file(tree, "ws/a/b/g", "");
    unlink(tree_path(tree, "ws/a/b/f"));
    strcpy(again, cursor);
    assert_string_equal(page(tree, 3, again, sizeof(again)), "a/b/g a/c a.txt ");
    /* The directory of the cursor is gone, or something else. */
    tree_remove_entry(tree_path(tree, "ws/a/b/e"), NULL, 0, NULL);
    tree_remove_entry(tree_path(tree, "ws/a/b/g"), NULL, 0, NULL);
    assert_int_equal(rmdir(tree_path(tree, "ws/a/b")), 0);
    strcpy(again, cursor);
    assert_string_equal(page(tree, 3, again, sizeof(again)), "a/c a.txt d ");
    tree_link(tree, "../../out", "ws/a/b");
    strcpy(again, cursor);
    assert_string_equal(page(tree, 9, again, sizeof(again)), "a/c a.txt d z ");
}

/* A cursor is compared, never opened: whatever it says, it shows nothing but what stands below the path. */
static void test_cursors(void **state)
{
    struct tree *tree = *state;
    static const char *const bad[] = {
        "",   "x", "====", "YQ==", "Yg", "Y", "AAAA", "b/a", "YgA=", "Yi9hL2IvZg" /* b/a/b/f */, "YmEv" /* ba/ */,
        "eGE" /* xa */};
    static const char *const good[] = {"Yi4uLy4uL291dC9zZWNyZXQ" /* b../../out/secret */,
                                       "YmEvYi9mL2cvaA" /* ba/b/f/g/h */, "cHp6" /* pzz */};
    make_small(tree);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tree_list_options options = deep;
        struct buf out;
        struct err err = {0};
        options.cursor = bad[i];
        options.cursor_len = strlen(bad[i]);
        buf_init(&out, ANSWER_MAX);
        assert_int_equal(tree_list(tree->confine, "", 0, &options, &out, &err), -1);
        assert_int_equal(err.code, ERR_INVALID_REQUEST);
        assert_string_equal(err.field, "cursor");
    }
    static const char *const expected[] = {"B a a/.h a/b a/b/f a/c a.txt d z ", "a/c a.txt d z ", ""};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct tree_list_options options = deep;
        options.cursor = good[i];
        options.cursor_len = strlen(good[i]);
        assert_string_equal(paths(tree, ".", &options), expected[i]);
    }
}

static void test_strange_entries(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/a");
    tree_link(tree, "self", "ws/self");
    tree_link(tree, "..", "ws/up");
    tree_link(tree, "../a", "ws/a/b");
    tree_link(tree, "nowhere", "ws/dangling");
    tree_link(tree, "../out", "ws/leaves");
    assert_int_equal(mkfifo(tree_path(tree, "ws/fifo"), 0600), 0);
    assert_string_equal(paths(tree, ".", &deep), "a a/b dangling fifo leaves self up ");
    assert_string_equal(rest(tree, ".", &deep), NO_MORE "]}");
    char *answer = list(tree, ".", &flat);
    assert_non_null(strstr(answer, "\"name\":\"fifo\",\"type\":\"fifo\""));
    free(answer);
    assert_int_equal(code_of(tree, "leaves", &flat), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, "self", &flat), ERR_INVALID_PATH);
    assert_int_equal(code_of(tree, "up/..", &flat), ERR_PATH_OUTSIDE_BASE);
    assert_int_equal(code_of(tree, "fifo", &flat), ERR_NOT_A_DIRECTORY);
    assert_int_equal(code_of(tree, "dangling", &flat), ERR_FILE_NOT_FOUND);
}

static void test_names_that_are_no_text(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/b\xa4.txt", "");
    tree_file(tree, "ws/n\nl", "");
    char *answer = list(tree, ".", &flat);
    assert_non_null(strstr(answer, "/b\xEF\xBF\xBD.txt\",\"path_base64\":\""));
    assert_non_null(strstr(answer, "\"name\":\"b\xEF\xBF\xBD.txt\",\"type\":\"file\""));
    assert_non_null(strstr(answer, "/n\\nl\",\"name\":\"n\\nl\""));
    free(answer);
    const char *names = paged(tree, ".", flat, 1);
    assert_string_equal(names, "b\xEF\xBF\xBD.txt n\\nl ");
}

static void test_operator_files_are_not_shown(void **state)
{
    struct tree *tree = *state;
    struct err err;
    bool inside;
    make_small(tree);
    assert_int_equal(confine_protect(tree->confine, tree_path(tree, "ws/a/b"), &inside, &err), 0);
    assert_true(inside);
    assert_string_equal(paths(tree, ".", &deep), "B a a/.h a/c a.txt d z ");
    assert_string_equal(rest(tree, ".", &deep), NO_MORE "{\"path\":\"/a/b\",\"code\":\"permission_denied\"}]}");
    assert_int_equal(code_of(tree, "a/b", &flat), ERR_PERMISSION_DENIED);
}

static void test_cancelled(void **state)
{
    struct tree *tree = *state;
    atomic_bool cancelled = true;
    struct tree_list_options options = deep;
    make_small(tree);
    options.cancelled = &cancelled;
    assert_int_equal(code_of(tree, ".", &options), ERR_HANDLER_TIMEOUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_order),
        TREE_TEST(test_members),
        TREE_TEST(test_options),
        TREE_TEST(test_pages),
        TREE_TEST(test_entries_come_and_go_between_pages),
        TREE_TEST(test_cursors),
        TREE_TEST(test_strange_entries),
        TREE_TEST(test_names_that_are_no_text),
        TREE_TEST(test_operator_files_are_not_shown),
        TREE_TEST(test_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
