/* The token: compared, read from a file, wiped from the process's own memory. */
#include "tree.h"

#include "prim/secret.h"

#include <errno.h>
#include <sys/wait.h>

static void test_equal(void **state)
{
    (void)state;
    assert_true(secret_equal("abc", 3, "abc", 3));
    assert_true(secret_equal("", 0, "", 0));
    assert_true(secret_equal("a\0b", 3, "a\0b", 3));
    assert_false(secret_equal("a\0b", 3, "a\0c", 3));
    assert_false(secret_equal("abc", 3, "abd", 3));
    assert_false(secret_equal("abc", 3, "ab", 2));
    assert_false(secret_equal("ab", 2, "abc", 3));
    assert_false(secret_equal("", 0, "a", 1));
    assert_false(secret_equal("a", 1, "", 0));
    assert_false(secret_equal("aaa", 3, "a", 1));
}

static const char *read_token(struct tree *tree, const char *content, size_t len)
{
    static char text[64];
    struct err err = {0};
    char *token = NULL;
    int fd = open(tree_path(tree, "token"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, content, len), len);
    close(fd);
    if (secret_read_file(tree_path(tree, "token"), &token, &err) != 0) {
        assert_null(token);
        return err_code_name(err.code);
    }
    snprintf(text, sizeof(text), "token %s", token);
    secret_wipe(token, strlen(token));
    assert_int_equal(token[0], 0);
    free(token);
    return text;
}

static void test_token_file(void **state)
{
    struct tree *tree = *state;
    char big[4097];
    memset(big, 't', sizeof(big));
    assert_string_equal(read_token(tree, "s3cret", 6), "token s3cret");
    assert_string_equal(read_token(tree, "s3cret \r\n\n", 10), "token s3cret");
    assert_string_equal(read_token(tree, "", 0), "invalid_request");
    assert_string_equal(read_token(tree, " \n", 2), "invalid_request");
    assert_string_equal(read_token(tree, "a b", 3), "invalid_request");
    assert_string_equal(read_token(tree, "a\nb\n", 4), "invalid_request");
    assert_string_equal(read_token(tree, "a\0", 2), "invalid_request");
    assert_string_equal(read_token(tree, "\xc3\xa4", 2), "invalid_request");
    assert_string_equal(read_token(tree, big, sizeof(big)), "invalid_request");
    big[4096] = '\n';
    struct err err;
    char *token = NULL;
    assert_int_equal(secret_read_file(tree_path(tree, "none"), &token, &err), -1);
    assert_int_equal(err.code, ERR_FILE_NOT_FOUND);
    assert_int_equal(secret_read_file(tree_path(tree, "out"), &token, &err), -1);
    assert_int_equal(err.code, ERR_IS_A_DIRECTORY);
}

/* Whether a file of /proc holds the text. */
static bool shows(const char *path, const char *text)
{
    static char bytes[128 * 1024];
    int fd = open(path, O_RDONLY);
    size_t len = 0;
    for (ssize_t got; (got = read(fd, bytes + len, sizeof(bytes) - len)) > 0;)
        len += (size_t)got;
    close(fd);
    return memmem(bytes, len, text, strlen(text)) != NULL;
}

/* Runs as a program of its own, since only the kernel writes the initial environment and arguments. */
static int child(char **argv)
{
    if (!shows("/proc/self/environ", "hunter2env") || !shows("/proc/self/cmdline", "hunter2arg"))
        return 1;
    secret_wipe_env("ABX_TEST_TOKEN");
    secret_wipe_arg(argv[2]);
    if (shows("/proc/self/environ", "hunter2env") || shows("/proc/self/cmdline", "hunter2arg"))
        return 2;
    return getenv("ABX_TEST_TOKEN") || !getenv("ABX_TEST_TOKEN_FILE") ? 3 : 0;
}

static void test_wiped_from_proc(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("ABX_TEST_TOKEN", "hunter2env", 1);
        setenv("ABX_TEST_TOKEN_FILE", "kept", 1);
        execl("/proc/self/exe", "test", "child", "hunter2arg", (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_random_hex(void **state)
{
    (void)state;
    char one[201], two[201];
    secret_random_hex(one, 100);
    secret_random_hex(two, 100);
    assert_int_equal(strlen(one), 200);
    assert_int_equal(strspn(one, "0123456789abcdef"), 200);
    assert_string_not_equal(one, two);
    secret_random_hex(one, 0);
    assert_string_equal(one, "");
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "child") == 0)
        return child(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test_prestate_setup_teardown(test_token_file, tree_set_up, tree_tear_down, &tree_by_openat2),
        cmocka_unit_test(test_wiped_from_proc),
        cmocka_unit_test(test_random_hex),
    };
    (void)tree_by_walk;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
