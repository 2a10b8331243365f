/* Writing files: content, appends and edits, whole or not at all, and no update lost among threads. */
#include "tree.h"

#include "prim/entry.h"
#include "prim/file_write.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>

enum { ANSWER_MAX_BYTES = 64 * 1024 };

static struct err err;
static char answer[ANSWER_MAX_BYTES + 1];
static bool created;

static struct file_write content_of(const char *path, const char *content)
{
    return (struct file_write){
        .path = path,
        .path_len = strlen(path),
        .content = content,
        .content_len = content ? strlen(content) : 0,
        .overwrite = true,
        .create_parents = true,
        .mode = -1,
    };
}

static struct file_write append_of(const char *path, const char *content)
{
    struct file_write request = content_of(path, content);
    request.append = true;
    return request;
}

static struct file_write edits_of(const char *path, const struct edit *edits, size_t count)
{
    struct file_write request = content_of(path, NULL);
    request.edits = edits;
    request.edit_count = count;
    return request;
}

static struct edit edit_of(const char *old, const char *new)
{
    return (struct edit){old, new, strlen(old), strlen(new), false};
}

static bool tries_at_once;

/* As fs.write does it. */
static int write_one(struct tree *tree, const struct file_write *request, struct buf *out, bool *out_created,
                     struct err *out_err)
{
    struct file_write at_once = *request;
    at_once.at_once = true;
    if (tries_at_once && file_write(tree->confine, &at_once, out, out_created, out_err) == 0)
        return 0;
    return file_write(tree->confine, request, out, out_created, out_err);
}

/* The code, "" where it worked: then `answer` and `created` tell more. */
static const char *put(struct tree *tree, struct file_write request)
{
    struct buf text;
    buf_init(&text, ANSWER_MAX_BYTES);
    int result = write_one(tree, &request, &text, &created, &err);
    if (result == 0) {
        memcpy(answer, text.data, text.len);
        answer[text.len] = '\0';
    }
    buf_deinit(&text);
    return result == 0 ? "" : err_code_name(err.code);
}

static struct stat stat_of(const struct tree *tree, const char *name)
{
    struct stat found;
    assert_int_equal(lstat(tree_path(tree, name), &found), 0);
    return found;
}

static const char *etag_of(const struct tree *tree, const char *name)
{
    static char etag[ENTRY_ETAG_MAX];
    struct stat found = stat_of(tree, name);
    entry_etag(etag, &found);
    return etag;
}

/* The whole answer for ws/NAME as it is now. */
static void assert_answer(const struct tree *tree, const char *name, bool is_created)
{
    char expected[2 * PATH_MAX], path[PATH_MAX], etag[ENTRY_ETAG_MAX];
    snprintf(path, sizeof(path), "ws/%s", name);
    snprintf(etag, sizeof(etag), "%s", etag_of(tree, path));
    snprintf(expected, sizeof(expected), "{\"path\":\"%s\",\"size\":%ld,\"created\":%s,\"etag\":\"\\\"%.*s\\\"\"}",
             tree_path(tree, path), (long)stat_of(tree, path).st_size, is_created ? "true" : "false",
             (int)strlen(etag) - 2, etag + 1);
    assert_string_equal(answer, expected);
    assert_int_equal(created, is_created);
}

static void test_content(void **state)
{
    struct tree *tree = *state;
    assert_string_equal(put(tree, content_of("f", "one")), "");
    assert_answer(tree, "f", true);
    assert_string_equal(put(tree, content_of("./f", "")), "");
    assert_answer(tree, "f", false);
    assert_int_equal(stat_of(tree, "ws/f").st_size, 0);
    assert_string_equal(put(tree, content_of(tree_path(tree, "ws/a/b/c/f"), "deep")), "");
    assert_answer(tree, "a/b/c/f", true);
    assert_string_equal(tree_text(tree, "ws/a/b/c/f"), "deep");
    assert_int_equal(tree_count(tree, "ws"), 2);
    assert_int_equal(tree_count(tree, "ws/a/b/c"), 1);
    struct file_write request = content_of("n", NULL);
    request.content = "a\0\xff";
    request.content_len = 3;
    assert_string_equal(put(tree, request), "");
    assert_memory_equal(tree_text(tree, "ws/n"), "a\0\xff", 4);
}

static void test_base64(void **state)
{
    struct tree *tree = *state;
    static const char *const bad[] = {"AP+", "AP+-", "AP8", "AP9=\n", "AP+=", "====", "A===", "AP8=AP8="};
    struct file_write request = content_of("f", "AP8=");
    request.base64 = true;
    assert_string_equal(put(tree, request), "");
    assert_memory_equal(tree_text(tree, "ws/f"), "\0\xff", 3);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        request.content = bad[i];
        request.content_len = strlen(bad[i]);
        assert_string_equal(put(tree, request), "invalid_request");
        assert_string_equal(err.field, "content");
    }
    assert_int_equal(stat_of(tree, "ws/f").st_size, 2);
    request = content_of("f", "");
    request.base64 = true;
    assert_string_equal(put(tree, request), "");
    assert_int_equal(stat_of(tree, "ws/f").st_size, 0);
    assert_int_equal(tree_count(tree, "ws"), 1);
}

static void test_append(void **state)
{
    struct tree *tree = *state;
    assert_string_equal(put(tree, append_of("d/f", "one")), "");
    assert_answer(tree, "d/f", true);
    ino_t inode = stat_of(tree, "ws/d/f").st_ino;
    assert_string_equal(put(tree, append_of("d/f", " two")), "");
    assert_answer(tree, "d/f", false);
    assert_string_equal(put(tree, append_of("d/f", "")), "");
    assert_string_equal(tree_text(tree, "ws/d/f"), "one two");
    assert_int_equal(stat_of(tree, "ws/d/f").st_ino, inode);
    struct file_write request = append_of("d/f", "!");
    request.mode = 0600;
    assert_string_equal(put(tree, request), "");
    assert_int_equal(stat_of(tree, "ws/d/f").st_mode & 07777, 0600);
    request.if_match = "\"1-2-3-4\"";
    assert_string_equal(put(tree, request), "stale_write");
    request.if_match = etag_of(tree, "ws/d/f");
    assert_string_equal(put(tree, request), "");
    request.if_match = NULL;
    request.overwrite = false;
    assert_string_equal(put(tree, request), "already_exists");
    assert_string_equal(tree_text(tree, "ws/d/f"), "one two!!");
    assert_int_equal(tree_count(tree, "ws/d"), 1);
}

static void test_edits(void **state)
{
    struct tree *tree = *state;
    struct edit edits[] = {edit_of("two", "2"), edit_of("three", "3"), {"\xff", "\xfe\0", 1, 2, true}};
    tree_file(tree, "ws/f", "one two three\r\n\xff\n\xff");
    chmod(tree_path(tree, "ws/f"), 0640);
    assert_string_equal(put(tree, edits_of("f", edits, 3)), "");
    assert_answer(tree, "f", false);
    assert_int_equal(stat_of(tree, "ws/f").st_mode & 07777, 0640);
    assert_memory_equal(tree_text(tree, "ws/f"), "one 2 3\r\n\xfe\0\n\xfe\0", 15);
    assert_string_equal(put(tree, edits_of("f", edits + 1, 1)), "ambiguous_edit");
    assert_string_equal(err.field, "edits[0].old");

    struct edit half[] = {edit_of("one", "1"), edit_of("none", "x")};
    assert_string_equal(put(tree, edits_of("f", half, 2)), "ambiguous_edit");
    assert_string_equal(err.field, "edits[1].old");
    assert_memory_equal(tree_text(tree, "ws/f"), "one", 3);

    assert_string_equal(put(tree, edits_of("none", half, 1)), "file_not_found");
    assert_string_equal(put(tree, edits_of("new/none", half, 1)), "file_not_found");
    struct file_write request = edits_of("f", half, 1);
    request.if_match = "\"1-2-3-4\"";
    assert_string_equal(put(tree, request), "stale_write");
    request.if_match = etag_of(tree, "ws/f");
    request.mode = 0600;
    assert_string_equal(put(tree, request), "");
    assert_int_equal(stat_of(tree, "ws/f").st_mode & 07777, 0600);
    assert_int_equal(tree_count(tree, "ws"), 1);
}

static void test_edits_of_a_large_file(void **state)
{
    struct tree *tree = *state;
    struct edit edit = edit_of("a", "b"), grows = edit_of("b", "bb");
    tree_file(tree, "ws/f", "a");
    assert_int_equal(truncate(tree_path(tree, "ws/f"), FILE_WRITE_EDIT_MAX_BYTES), 0);
    assert_string_equal(put(tree, edits_of("f", &edit, 1)), "");
    assert_int_equal(stat_of(tree, "ws/f").st_size, FILE_WRITE_EDIT_MAX_BYTES);
    assert_int_equal(tree_text(tree, "ws/f")[0], 'b');
    assert_string_equal(put(tree, edits_of("f", &grows, 1)), "payload_too_large");
    assert_int_equal(truncate(tree_path(tree, "ws/f"), FILE_WRITE_EDIT_MAX_BYTES + 1), 0);
    assert_string_equal(put(tree, edits_of("f", &edit, 1)), "payload_too_large");
    assert_int_equal(tree_count(tree, "ws"), 1);
}

static void test_requests_that_do_not_fit(void **state)
{
    struct tree *tree = *state;
    struct edit edit = edit_of("old", "new");
    tree_file(tree, "ws/f", "old");
    assert_string_equal(put(tree, content_of("f", NULL)), "invalid_request");
    assert_string_equal(err.field, "content");
    struct file_write request = edits_of("f", &edit, 1);
    request.content = "x";
    assert_string_equal(put(tree, request), "invalid_request");
    assert_string_equal(err.field, "content");
    request = edits_of("f", &edit, 1);
    request.append = true;
    assert_string_equal(put(tree, request), "invalid_request");
    assert_string_equal(err.field, "append");
    request = edits_of("f", &edit, 1);
    request.base64 = true;
    assert_string_equal(put(tree, request), "invalid_request");
    assert_string_equal(err.field, "encoding");
    request = edits_of("f", &edit, 1);
    request.overwrite = false;
    assert_string_equal(put(tree, request), "already_exists");
    assert_string_equal(tree_text(tree, "ws/f"), "old");
}

static void test_if_match(void **state)
{
    struct tree *tree = *state;
    struct file_write request = content_of("new/f", "x");
    request.if_match = "*";
    assert_string_equal(put(tree, request), "stale_write");
    request.append = true;
    assert_string_equal(put(tree, request), "stale_write");
    assert_int_equal(tree_count(tree, "ws"), 0);
    request = content_of("f", "x");
    request.if_match = "*";
    assert_string_equal(put(tree, request), "stale_write");
    tree_file(tree, "ws/f", "x");
    assert_string_equal(put(tree, request), "");
    char etag[ENTRY_ETAG_MAX];
    snprintf(etag, sizeof(etag), "%s", etag_of(tree, "ws/f"));
    request.if_match = etag;
    request.content = "y";
    assert_string_equal(put(tree, request), "");
    request.content = "z";
    assert_string_equal(put(tree, request), "stale_write");
    assert_string_equal(tree_text(tree, "ws/f"), "y");
    assert_int_equal(tree_count(tree, "ws"), 1);
}

static void test_links(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/f", "old");
    tree_link(tree, "f", "ws/relative");
    tree_link(tree, tree_path(tree, "ws/f"), "ws/absolute");
    tree_link(tree, "absolute", "ws/chain");
    tree_link(tree, "later", "ws/to-later");
    static const char *const links[] = {"relative", "absolute", "chain"};
    for (size_t i = 0; i < 3; i++) {
        struct edit edit = edit_of(links[i], "edited");
        assert_string_equal(put(tree, content_of(links[i], links[i])), "");
        assert_answer(tree, "f", false);
        assert_string_equal(tree_text(tree, "ws/f"), links[i]);
        assert_string_equal(put(tree, edits_of(links[i], &edit, 1)), "");
        assert_string_equal(put(tree, append_of(links[i], "+")), "");
        assert_string_equal(tree_text(tree, "ws/f"), "edited+");
        char path[64];
        snprintf(path, sizeof(path), "ws/%s", links[i]);
        assert_true(S_ISLNK(stat_of(tree, path).st_mode));
    }
    assert_string_equal(put(tree, append_of("to-later", "new")), "");
    assert_answer(tree, "later", true);
    assert_true(S_ISLNK(stat_of(tree, "ws/to-later").st_mode));
}

static void test_targets_that_are_refused(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/d");
    tree_file(tree, "ws/f", "old");
    assert_int_equal(mkfifo(tree_path(tree, "ws/fifo"), 0644), 0);
    tree_link(tree, tree_path(tree, "out"), "ws/l");
    tree_link(tree, tree_path(tree, "out/secret"), "ws/s");
    tree_link(tree, tree_path(tree, "out/new"), "ws/dangling");
    tree_link(tree, "/proc/self/comm", "ws/proc");
    const struct {
        const char *path, *code;
    } cases[] = {
        {"d", "is_a_directory"},
        {"d/", "is_a_directory"},
        {"new/", "is_a_directory"},
        {"fifo", "not_a_regular_file"},
        {"f/x", "not_a_directory"},
        {"", "base_dir_protected"},
        {".", "base_dir_protected"},
        {"d/..", "base_dir_protected"},
        {"l/x", "path_outside_base"},
        {"s", "path_outside_base"},
        {"dangling", "path_outside_base"},
        {"../out/x", "path_outside_base"},
        {"../ws-evil/s", "path_outside_base"},
        {"proc", "path_outside_base"},
    };
    struct edit edit = edit_of("secret", "spoiled");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(put(tree, content_of(cases[i].path, "x")), cases[i].code);
        assert_string_equal(put(tree, append_of(cases[i].path, "x")), cases[i].code);
        if (strcmp(cases[i].path, "new/") != 0)
            assert_string_equal(put(tree, edits_of(cases[i].path, &edit, 1)), cases[i].code);
    }
    struct file_write request = content_of("missing/f", "x");
    request.create_parents = false;
    assert_string_equal(put(tree, request), "file_not_found");
    request.path = "a\0b";
    request.path_len = 3;
    assert_string_equal(put(tree, request), "invalid_path");
    request = content_of("f", "x");
    request.overwrite = false;
    assert_string_equal(put(tree, request), "already_exists");
    assert_int_equal(tree_count(tree, "ws"), 7);
    assert_int_equal(tree_count(tree, "out"), 1);
    assert_string_equal(tree_text(tree, "out/secret"), "secret");
    assert_string_equal(tree_text(tree, "ws/f"), "old");
}

static void test_kernel_files(void **state)
{
    struct tree *tree = *state;
    struct confine *confine = tree->confine;
    struct edit edit = edit_of("a", "b");
    tree->confine = confine_new("/", tree->walk, &err);
    assert_string_equal(put(tree, content_of("proc/self/comm", "x")), "not_a_regular_file");
    assert_string_equal(put(tree, append_of("proc/self/comm", "x")), "not_a_regular_file");
    assert_string_equal(put(tree, edits_of("proc/self/comm", &edit, 1)), "not_a_regular_file");
    assert_string_equal(put(tree, content_of("proc/new", "x")), "not_a_regular_file");
    assert_string_equal(put(tree, append_of("dev/null", "x")), "not_a_regular_file");
    confine_free(tree->confine);
    tree->confine = confine;
}

static void test_names(void **state)
{
    struct tree *tree = *state;
    char name[NAME_MAX + 2];
    memset(name, 'n', sizeof(name));
    name[NAME_MAX] = '\0';
    assert_string_equal(put(tree, content_of(name, "x")), "");
    assert_string_equal(put(tree, append_of(name, "y")), "");
    name[NAME_MAX] = 'n';
    name[NAME_MAX + 1] = '\0';
    assert_string_equal(put(tree, content_of(name, "x")), "invalid_path");
    assert_string_equal(put(tree, content_of("b\xa4", "x")), "");
    assert_non_null(strstr(answer, "\"path_base64\":\""));
    assert_string_equal(put(tree, content_of("-rf \n%41\"", "x")), "");
    assert_string_equal(tree_text(tree, "ws/-rf \n%41\""), "x");
    assert_int_equal(tree_count(tree, "ws"), 3);
}

static void test_permissions(void **state)
{
    struct tree *tree = *state;
    if (geteuid() != 0) {
        print_message("NOT RUN: test_permissions: needs root\n");
        return;
    }
    struct edit edit = edit_of("old", "new");
    tree_file(tree, "ws/f", "old");
    tree_dir(tree, "ws/open");
    tree_file(tree, "ws/open/theirs", "old");
    chmod(tree_path(tree, "ws/open"), 0777);
    assert_int_equal(seteuid(1234), 0);
    static const char *const paths[] = {"f", "open/theirs"};
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(put(tree, content_of(paths[i], "x")), "permission_denied");
        assert_string_equal(put(tree, append_of(paths[i], "x")), "permission_denied");
        assert_string_equal(put(tree, edits_of(paths[i], &edit, 1)), "permission_denied");
    }
    assert_string_equal(put(tree, content_of("new", "x")), "permission_denied");
    assert_string_equal(put(tree, content_of("new/dir/x", "x")), "permission_denied");
    assert_string_equal(put(tree, content_of("open/new/dir/x", "x")), "");
    assert_int_equal(seteuid(0), 0);
    assert_string_equal(tree_text(tree, "ws/f"), "old");
    assert_string_equal(tree_text(tree, "ws/open/theirs"), "old");
    assert_int_equal(tree_count(tree, "ws"), 2);
    assert_int_equal(tree_count(tree, "ws/open"), 2);
}

static void test_full_disk(void **state)
{
    struct tree *tree = *state;
    enum { BIG = 2 * 1024 * 1024 };
    char *big = malloc(BIG + 1);
    assert_non_null(big);
    memset(big, 'b', BIG);
    big[BIG] = '\0';
    tree_dir(tree, "ws/small");
    if (mount("tmpfs", tree_path(tree, "ws/small"), "tmpfs", 0, "size=1m") != 0) {
        print_message("NOT RUN: test_full_disk: mount: %s\n", strerror(errno));
        free(big);
        return;
    }
    struct edit edit = {"old", big, 3, BIG, false};
    tree_file(tree, "ws/small/keep", "old");
    char etag[ENTRY_ETAG_MAX];
    snprintf(etag, sizeof(etag), "%s", etag_of(tree, "ws/small/keep"));
    assert_string_equal(put(tree, content_of("small/keep", big)), "no_space");
    assert_string_equal(put(tree, edits_of("small/keep", &edit, 1)), "no_space");
    assert_string_equal(put(tree, content_of("small/a/b/c", big)), "no_space");
    assert_string_equal(put(tree, append_of("small/new", big)), "no_space");
    assert_string_equal(etag_of(tree, "ws/small/keep"), etag);
    assert_string_equal(put(tree, append_of("small/keep", big)), "no_space");
    assert_string_equal(tree_text(tree, "ws/small/keep"), "old");
    assert_int_equal(stat_of(tree, "ws/small/keep").st_size, 3);
    assert_int_equal(tree_count(tree, "ws/small"), 1);
    assert_string_equal(put(tree, append_of("small/keep", "+")), "");
    assert_string_equal(tree_text(tree, "ws/small/keep"), "old+");
    assert_int_equal(umount(tree_path(tree, "ws/small")), 0);
    free(big);
}

enum { THREADS = 8, TURNS = 60 };

struct client {
    pthread_t thread;
    struct tree *tree;
    int number;
    int lost, stale;
};

static int run_clients(struct tree *tree, void *(*run)(void *), struct client clients[THREADS])
{
    int lost = 0;
    for (int i = 0; i < THREADS; i++) {
        clients[i] = (struct client){.tree = tree, .number = i};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, run, &clients[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(clients[i].thread, NULL);
        lost += clients[i].lost;
    }
    return lost;
}

static int quiet_put(struct tree *tree, const struct file_write *request, enum err_code *out_code)
{
    struct buf text;
    struct err failure;
    bool is_created;
    buf_init(&text, ANSWER_MAX_BYTES);
    int result = write_one(tree, request, &text, &is_created, &failure);
    buf_deinit(&text);
    *out_code = result == 0 ? ERR_NONE : failure.code;
    return result;
}

/* What a client does that read the file before: the text, and the etag of that very text. */
static bool read_number(struct tree *tree, char text[32], char etag[ENTRY_ETAG_MAX])
{
    struct stat found;
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/ws/n", tree->top);
    int fd = open(path, O_RDONLY);
    ssize_t len = fd < 0 ? -1 : read(fd, text, 31);
    bool ok = len > 0 && fstat(fd, &found) == 0;
    if (ok) {
        text[len] = '\0';
        entry_etag(etag, &found);
    }
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Edits or whole contents by turns; a stale one is read and tried again. */
static void *increment(void *ctx)
{
    struct client *client = ctx;
    for (int done = 0; done < TURNS;) {
        char before[32], after[32], etag[ENTRY_ETAG_MAX];
        enum err_code code;
        if (!read_number(client->tree, before, etag))
            continue; /* removed for the moment between open and stat: its etag would be of no use */
        snprintf(after, sizeof(after), "%d", atoi(before) + 1);
        struct edit edit = edit_of(before, after);
        struct file_write request = done % 2 ? content_of("n", after) : edits_of("n", &edit, 1);
        request.if_match = etag;
        if (quiet_put(client->tree, &request, &code) == 0)
            done++;
        else if (code == ERR_STALE_WRITE)
            client->stale++;
        else
            client->lost++;
        if (client->lost > 0)
            break;
    }
    return NULL;
}

static void test_no_lost_updates(void **state)
{
    struct tree *tree = *state;
    struct client clients[THREADS];
    char expected[32];
    tree_file(tree, "ws/n", "0");
    assert_int_equal(run_clients(tree, increment, clients), 0);
    snprintf(expected, sizeof(expected), "%d", THREADS * TURNS);
    assert_string_equal(tree_text(tree, "ws/n"), expected);
    assert_int_equal(tree_count(tree, "ws"), 1);
}

/* Each thread's own line, without if_match: edits are of the text that stands there. */
static void *edit_own_line(void *ctx)
{
    struct client *client = ctx;
    for (int i = 0; i < TURNS; i++) {
        char before[32], after[32];
        enum err_code code;
        snprintf(before, sizeof(before), "[%d=%d]", client->number, i);
        snprintf(after, sizeof(after), "[%d=%d]", client->number, i + 1);
        struct edit edit = edit_of(before, after);
        struct file_write request = edits_of("n", &edit, 1);
        client->lost += quiet_put(client->tree, &request, &code) != 0;
    }
    return NULL;
}

static void test_edits_at_once(void **state)
{
    struct tree *tree = *state;
    struct client clients[THREADS];
    char text[256] = "", expected[256] = "";
    for (int i = 0; i < THREADS; i++) {
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "[%d=0]", i);
        snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), "[%d=%d]", i, TURNS);
    }
    tree_file(tree, "ws/n", text);
    assert_int_equal(run_clients(tree, edit_own_line, clients), 0);
    assert_string_equal(tree_text(tree, "ws/n"), expected);
}

static void *append_lines(void *ctx)
{
    struct client *client = ctx;
    for (int i = 0; i < TURNS; i++) {
        char path[32];
        enum err_code code;
        snprintf(path, sizeof(path), "log%d/x/f", i);
        struct file_write request = append_of(path, "line\n");
        client->lost += quiet_put(client->tree, &request, &code) != 0;
    }
    return NULL;
}

/* All make the file at once, and its directories. */
static void test_appends_at_once(void **state)
{
    struct tree *tree = *state;
    struct client clients[THREADS];
    assert_int_equal(run_clients(tree, append_lines, clients), 0);
    for (int i = 0; i < TURNS; i++) {
        char path[32];
        snprintf(path, sizeof(path), "ws/log%d/x/f", i);
        assert_int_equal(stat_of(tree, path).st_size, THREADS * 5);
        assert_int_equal(unlink(tree_path(tree, path)), 0);
    }
    assert_int_equal(tree_count(tree, "ws"), TURNS);
    assert_int_equal(tree_count(tree, "ws/log0/x"), 0);
}

static void *make_one(void *ctx)
{
    struct client *client = ctx;
    for (int i = 0; i < TURNS; i++) {
        char path[32];
        enum err_code code;
        snprintf(path, sizeof(path), "new%d/f", i);
        struct file_write request = content_of(path, "x");
        request.overwrite = false;
        if (quiet_put(client->tree, &request, &code) != 0)
            client->stale++;
        if (code != ERR_NONE && code != ERR_ALREADY_EXISTS)
            client->lost++;
    }
    return NULL;
}

/* Without overwrite one of them makes it, and nobody else. */
static void test_one_maker(void **state)
{
    struct tree *tree = *state;
    struct client clients[THREADS];
    int refused = 0;
    assert_int_equal(run_clients(tree, make_one, clients), 0);
    for (int i = 0; i < THREADS; i++)
        refused += clients[i].stale;
    assert_int_equal(refused, (THREADS - 1) * TURNS);
    assert_int_equal(tree_count(tree, "ws"), TURNS);
    assert_int_equal(tree_count(tree, "ws/new0"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_content),
        TREE_TEST(test_base64),
        TREE_TEST(test_append),
        TREE_TEST(test_edits),
        TREE_TEST(test_edits_of_a_large_file),
        TREE_TEST(test_requests_that_do_not_fit),
        TREE_TEST(test_if_match),
        TREE_TEST(test_links),
        TREE_TEST(test_targets_that_are_refused),
        TREE_TEST(test_kernel_files),
        TREE_TEST(test_names),
        TREE_TEST(test_permissions),
        TREE_TEST(test_full_disk),
        TREE_TEST(test_no_lost_updates),
        TREE_TEST(test_edits_at_once),
        TREE_TEST(test_appends_at_once),
        TREE_TEST(test_one_maker),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (!tree_use_memory())
        return failed;
    tries_at_once = true;
    return failed + cmocka_run_group_tests_name("in memory, at once where that can be", tests, NULL, NULL);
}
