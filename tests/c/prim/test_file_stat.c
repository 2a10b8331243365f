/* What is told of one entry: every kind of it, links themselves, the base, checksums and what has none. */
#include "tree.h"

#include "prim/file_stat.h"

#include <inttypes.h>
#include <sys/socket.h>
#include <sys/un.h>

#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HELLO_SHA256 "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

/* The answer's text, or the name of the code; "long work" for 1. */
static const char *stat_with(struct confine *confine, const struct file_stat *request, const struct file_terms *terms)
{
    static char text[4096];
    struct err err;
    struct buf out;
    buf_init(&out, sizeof(text) - 1);
    int result = file_stat(confine, request, terms, &out, &err);
    if (result == 0)
        snprintf(text, sizeof(text), "%.*s", (int)out.len, out.data);
    else
        snprintf(text, sizeof(text), "%s", result == 1 ? "long work" : err_code_name(err.code));
    assert_true(result == 0 || out.len == 0);
    buf_deinit(&out);
    return text;
}

static const char *stat_on(struct confine *confine, const char *path, bool sha256, const struct file_terms *terms)
{
    struct file_stat request = {.path = path, .path_len = strlen(path), .mime = "text/x-test", .sha256 = sha256};
    return stat_with(confine, &request, terms);
}

static const char *stat_of(struct tree *tree, const char *path, bool sha256)
{
    atomic_bool cancelled = false;
    struct file_terms terms = {.cancelled = &cancelled, .short_only = true};
    return stat_on(tree->confine, path, sha256, &terms);
}

#define assert_has(text, part) assert_non_null(strstr(text, part))

static void test_file(void **state)
{
    struct tree *tree = *state;
    char expected[256];
    struct stat found;
    tree_file(tree, "ws/f", "hello");
    assert_int_equal(link(tree_path(tree, "ws/f"), tree_path(tree, "ws/g")), 0);
    assert_int_equal(chmod(tree_path(tree, "ws/f"), 0640), 0);
    const struct timespec times[2] = {{1000000000, 5000000}, {1769860800, 123456789}};
    assert_int_equal(utimensat(AT_FDCWD, tree_path(tree, "ws/f"), times, 0), 0);
    assert_int_equal(stat(tree_path(tree, "ws/f"), &found), 0);

    const char *text = stat_of(tree, "f", false);
    snprintf(expected, sizeof(expected),
             "{\"path\":\"%s\",\"name\":\"f\",\"type\":\"file\",\"size\":5,\"mode\":\"0640\",",
             tree_path(tree, "ws/f"));
    assert_int_equal(strncmp(text, expected, strlen(expected)), 0);
    snprintf(expected, sizeof(expected), ",\"inode\":%" PRIu64 ",\"links\":2,\"uid\":%u,\"gid\":%u,",
             (uint64_t)found.st_ino, found.st_uid, found.st_gid);
    assert_has(text, expected);
    assert_has(text, "\"modified_at\":\"2026-01-31T12:00:00.123Z\"");
    assert_has(text, "\"accessed_at\":\"2001-09-09T01:46:40.005Z\",\"changed_at\":\"2");
    assert_has(text, "\"mime\":\"text/x-test\",\"etag\":\"\\\"");
    assert_null(strstr(text, "sha256"));
    assert_null(strstr(text, "target"));
    assert_has(stat_of(tree, "f", true), "\",\"sha256\":\"" HELLO_SHA256 "\"}");
    tree_file(tree, "ws/empty", "");
    assert_has(stat_of(tree, "empty", true), EMPTY_SHA256);
}

static void test_base(void **state)
{
    struct tree *tree = *state;
    char expected[256];
    tree_dir(tree, "ws/a");
    snprintf(expected, sizeof(expected), "{\"path\":\"%s\",\"name\":\"ws\",\"type\":\"directory\",", tree->base);
    const char *paths[] = {"", ".", "./", "a/..", tree->base};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        assert_has(stat_of(tree, paths[i], false), expected);
    assert_has(stat_of(tree, ".", false), "\"mime\":\"inode/directory\"");
    assert_string_equal(stat_of(tree, "..", false), "path_outside_base");
    assert_string_equal(stat_of(tree, "/", false), "path_outside_base");
    assert_string_equal(stat_of(tree, tree_path(tree, "ws-evil/s"), false), "path_outside_base");
}

static void test_links_themselves(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/f", "hello");
    tree_link(tree, "f", "ws/in");
    tree_link(tree, "../out/secret", "ws/leaves");
    tree_link(tree, "../out", "ws/dir");
    tree_link(tree, "no\xFFne", "ws/dangling");
    tree_link(tree, "loop", "ws/loop");
    const char *names[] = {"in", "leaves", "dir", "dangling", "loop"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char expected[PATH_MAX];
        snprintf(expected, sizeof(expected), "{\"path\":\"%s/%s\",\"name\":\"%s\",\"type\":\"symlink\",", tree->base,
                 names[i], names[i]);
        assert_has(stat_of(tree, names[i], false), expected);
        assert_has(stat_of(tree, names[i], false), "\"mime\":\"inode/symlink\"");
        assert_string_equal(stat_of(tree, names[i], true), "not_a_regular_file");
    }
    assert_has(stat_of(tree, "leaves", false), "\"target\":\"../out/secret\",\"inode\":");
    assert_has(stat_of(tree, "dangling", false), "\"target\":\"no\xEF\xBF\xBDne\",\"target_base64\":\"bm//bmU=\"");
    assert_string_equal(stat_of(tree, "dir/secret", false), "path_outside_base");
    assert_string_equal(stat_of(tree, "dir/", false), "path_outside_base");
    assert_string_equal(stat_of(tree, "leaves/.", false), "path_outside_base");
    assert_string_equal(stat_of(tree, "in/", false), "not_a_directory");
    assert_string_equal(stat_of(tree, "none", false), "file_not_found");
}

static const char *followed(struct tree *tree, const char *path)
{
    struct file_stat request = {.path = path, .path_len = strlen(path), .mime = "text/x-test", .follow = true};
    return stat_with(tree->confine, &request, &(struct file_terms){.short_only = true});
}

static void test_what_links_lead_to(void **state)
{
    struct tree *tree = *state;
    char expected[PATH_MAX];
    tree_file(tree, "ws/f", "hello");
    tree_link(tree, "f", "ws/in");
    tree_link(tree, "in", "ws/twice");
    tree_link(tree, "../out/secret", "ws/leaves");
    tree_link(tree, "none", "ws/dangling");
    tree_link(tree, "loop", "ws/loop");
    snprintf(expected, sizeof(expected), "{\"path\":\"%s/f\",\"name\":\"f\",\"type\":\"file\",\"size\":5,", tree->base);
    assert_has(followed(tree, "f"), expected);
    assert_has(followed(tree, "in"), expected);
    assert_has(followed(tree, "twice"), expected);
    assert_has(followed(tree, "in"), "\"mime\":\"text/x-test\"");
    assert_string_equal(followed(tree, "leaves"), "path_outside_base");
    assert_string_equal(followed(tree, "dangling"), "file_not_found");
    assert_string_equal(followed(tree, "loop"), "invalid_path");
}

static void test_special_files(void **state)
{
    struct tree *tree = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", tree->base);
    assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(mkfifo(tree_path(tree, "ws/fifo"), 0600), 0);
    tree_dir(tree, "ws/d");
    assert_has(stat_of(tree, "socket", false), "\"type\":\"socket\"");
    assert_has(stat_of(tree, "fifo", false), "\"type\":\"fifo\"");
    assert_has(stat_of(tree, "fifo", false), "\"mime\":\"inode/fifo\"");
    const char *names[] = {"socket", "fifo", "d", ""};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_string_equal(stat_of(tree, names[i], true), "not_a_regular_file");
    close(sock);
}

static void test_root_as_base(void **state)
{
    struct tree *tree = *state;
    atomic_bool cancelled = false;
    struct file_terms terms = {.cancelled = &cancelled};
    struct err err;
    struct confine *root = confine_new("/", tree->walk, &err);
    assert_non_null(root);
    assert_has(stat_on(root, "/", false, &terms), "{\"path\":\"/\",\"name\":\"/\",\"type\":\"directory\"");
    assert_has(stat_on(root, "/dev/null", false, &terms), "\"type\":\"char\"");
    assert_string_equal(stat_on(root, "/dev/zero", true, &terms), "not_a_regular_file");
    assert_has(stat_on(root, "/proc/self/status", false, &terms), "\"type\":\"file\"");
    assert_string_equal(stat_on(root, "/proc/self/status", true, &terms), "not_a_regular_file");
    assert_has(stat_on(root, "/proc/self/exe", false, &terms), "\"type\":\"symlink\"");
    assert_string_equal(stat_on(root, "/proc/self/exe", true, &terms), "not_a_regular_file");
    confine_free(root);
}

static void test_checksum_of_much(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/big", "");
    assert_int_equal(truncate(tree_path(tree, "ws/big"), FILE_SHORT_BYTES + 1), 0);
    assert_has(stat_of(tree, "big", false), "\"size\":8388609,");
    assert_string_equal(stat_of(tree, "big", true), "long work");
    atomic_bool cancelled = false;
    struct file_terms terms = {.cancelled = &cancelled};
    /* head -c 8388609 /dev/zero | sha256sum */
    assert_has(stat_on(tree->confine, "big", true, &terms),
               "\"sha256\":\"4459f957d031a8b782dfee09d2c7070a4b5e6c33130a8f20ac35393fd97fc57a\"");
    cancelled = true;
    assert_string_equal(stat_on(tree->confine, "big", true, &terms), "internal_error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_file),
        TREE_TEST(test_base),
        TREE_TEST(test_links_themselves),
        TREE_TEST(test_what_links_lead_to),
        TREE_TEST(test_special_files),
        TREE_TEST(test_root_as_base),
        TREE_TEST(test_checksum_of_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
