/* Uploads: whole or not at all, whatever the body, the target or the disk does. */
#include "tree.h"

#include "prim/parents.h"
#include "prim/sha256.h"
#include "prim/upload.h"
#include "prim/upload_dirs.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mount.h>

#define FORM "multipart/form-data; boundary=XX"
#define PART(name, filename)                                                                                           \
    "--XX\r\nContent-Disposition: form-data; name=\"" name "\"; filename=\"" filename "\"\r\n\r\n"
#define FIELD(name) "--XX\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"
#define END "\r\n--XX--\r\n"

static const char abc_sha256[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

static struct upload_options raw(const char *path)
{
    return (struct upload_options){
        .path = path, .path_len = strlen(path), .overwrite = true, .create_parents = true, .mode = -1};
}

static struct upload_options form(const char *dir)
{
    return (struct upload_options){.content_type = FORM,
                                   .dir = dir,
                                   .dir_len = dir ? strlen(dir) : 0,
                                   .overwrite = true,
                                   .create_parents = true,
                                   .mode = -1};
}

/* The last answer of send, one line a file: "PATH below the base, SIZE, created|replaced". */
static char answer[1024];
static struct err failure;

/* The whole upload in pieces of `piece` bytes; the code's name where it failed, else "". */
static const char *send_in(struct tree *tree, const struct upload_options *options, const char *body, size_t len,
                           size_t piece)
{
    const struct upload_file *files;
    size_t count;
    failure = (struct err){0};
    answer[0] = '\0';
    struct upload *upload = upload_new(tree->confine, options, &failure);
    if (!upload)
        return err_code_name(failure.code);
    int result = 0;
    for (size_t at = 0; at < len && result == 0; at += piece)
        result = upload_feed(upload, body + at, len - at < piece ? len - at : piece, &failure);
    if (result != 0) {
        struct err again = {0}; /* a failed upload stays failed */
        assert_int_equal(upload_feed(upload, "x", 1, &again), -1);
        assert_string_equal(again.text, failure.text);
    }
    result = upload_finish(upload, &files, &count, &failure);
    for (size_t i = 0; result == 0 && i < count; i++) {
        size_t used = strlen(answer);
        assert_memory_equal(files[i].path, tree->base, strlen(tree->base));
        assert_int_equal(strlen(files[i].sha256), 64);
        snprintf(answer + used, sizeof(answer) - used, "%s, %d, %s\n", files[i].path + strlen(tree->base) + 1,
                 (int)files[i].size, files[i].created ? "created" : "replaced");
    }
    upload_free(upload);
    return result == 0 ? "" : err_code_name(failure.code);
}

static const char *send(struct tree *tree, struct upload_options options, const char *body)
{
    return send_in(tree, &options, body, strlen(body), 3);
}

static mode_t mode_of(struct tree *tree, const char *name)
{
    struct stat found;
    assert_int_equal(stat(tree_path(tree, name), &found), 0);
    return found.st_mode & 07777;
}

static void test_raw(void **state)
{
    struct tree *tree = *state;
    assert_string_equal(send(tree, raw("new"), "abc"), "");
    assert_string_equal(answer, "new, 3, created\n");
    assert_string_equal(tree_text(tree, "ws/new"), "abc");
    assert_int_equal(mode_of(tree, "ws/new"), 0644);
    assert_string_equal(send(tree, raw("new"), "abcd"), "");
    assert_string_equal(answer, "new, 4, replaced\n");
    assert_string_equal(tree_text(tree, "ws/new"), "abcd");
    assert_string_equal(send(tree, raw("empty"), ""), "");
    assert_string_equal(answer, "empty, 0, created\n");
    assert_string_equal(send(tree, raw(tree_path(tree, "ws/p/q/new")), "abc"), "");
    assert_string_equal(answer, "p/q/new, 3, created\n");
    assert_int_equal(tree_count(tree, "ws"), 3);
}

static void test_mode_and_owner(void **state)
{
    struct tree *tree = *state;
    tree_file(tree, "ws/f", "old");
    chmod(tree_path(tree, "ws/f"), 0751);
    if (geteuid() == 0)
        assert_int_equal(chown(tree_path(tree, "ws/f"), 1234, 5678), 0);
    assert_string_equal(send(tree, raw("f"), "new"), "");
    struct stat found;
    assert_int_equal(stat(tree_path(tree, "ws/f"), &found), 0);
    assert_int_equal(found.st_mode & 07777, 0751);
    assert_int_equal(found.st_uid, geteuid() == 0 ? 1234 : geteuid());
    struct upload_options options = raw("f");
    options.mode = 0600;
    assert_string_equal(send(tree, options, "new"), "");
    assert_int_equal(mode_of(tree, "ws/f"), 0600);
    options = raw("g");
    options.mode = 0666; /* asked for: the umask does not count */
    assert_string_equal(send(tree, options, "new"), "");
    assert_int_equal(mode_of(tree, "ws/g"), 0666);
    options.mode = 010000;
    assert_string_equal(send(tree, options, "new"), "invalid_request");
    assert_string_equal(failure.field, "mode");
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
    const struct {
        const char *path, *code;
    } cases[] = {
        {"d", "is_a_directory"},           {"d/", "is_a_directory"},          {"new/", "is_a_directory"},
        {"fifo", "not_a_regular_file"},    {"f/x", "not_a_directory"},        {"", "base_dir_protected"},
        {".", "base_dir_protected"},       {"l/x", "path_outside_base"},      {"s", "path_outside_base"},
        {"dangling", "path_outside_base"}, {"../out/x", "path_outside_base"}, {"../ws-evil/x", "path_outside_base"},
        {"l/a/b/x", "path_outside_base"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(send(tree, raw(cases[i].path), "abc"), cases[i].code);
        if (cases[i].path[0])
            assert_string_equal(send(tree, form(cases[i].path), PART("a", "x") "abc" END),
                                strcmp(cases[i].path, "d") == 0 || strcmp(cases[i].path, "d/") == 0 ||
                                        strcmp(cases[i].path, "new/") == 0 || strcmp(cases[i].path, ".") == 0
                                    ? ""
                                : strstr(cases[i].code, "outside") ? "path_outside_base"
                                                                   : "not_a_directory");
    }
    struct upload_options options = raw("none/new");
    options.create_parents = false;
    assert_string_equal(send(tree, options, "abc"), "file_not_found");
    assert_string_equal(failure.field, "path");
    assert_int_equal(tree_count(tree, "out"), 1);
    assert_string_equal(tree_text(tree, "out/secret"), "secret");
    assert_int_equal(tree_count(tree, "ws-evil"), 1);
}

static void test_without_overwrite(void **state)
{
    struct tree *tree = *state;
    struct upload_options options = raw("f");
    options.overwrite = false;
    assert_string_equal(send(tree, options, "abc"), "");
    assert_string_equal(send(tree, options, "new"), "already_exists");
    /* It came while the upload ran: the rename itself must not replace it. */
    options.path = "g";
    struct err err;
    const struct upload_file *files;
    size_t count;
    struct upload *upload = upload_new(tree->confine, &options, &err);
    assert_int_equal(upload_feed(upload, "new", 3, &err), 0);
    tree_file(tree, "ws/g", "meanwhile");
    assert_int_equal(upload_finish(upload, &files, &count, &err), -1);
    assert_int_equal(err.code, ERR_ALREADY_EXISTS);
    upload_free(upload);
    assert_string_equal(tree_text(tree, "ws/f"), "abc");
    assert_string_equal(tree_text(tree, "ws/g"), "meanwhile");
    assert_int_equal(tree_count(tree, "ws"), 2);
}

static void test_through_an_inner_link(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/d");
    tree_file(tree, "ws/d/f", "old");
    tree_link(tree, tree_path(tree, "ws/d/f"), "ws/link");
    tree_link(tree, "d/new", "ws/dangling");
    assert_string_equal(send(tree, raw("link"), "abc"), "");
    assert_string_equal(answer, "d/f, 3, replaced\n");
    assert_string_equal(send(tree, raw("dangling"), "abc"), "");
    assert_string_equal(answer, "d/new, 3, created\n");
    assert_string_equal(tree_text(tree, "ws/d/f"), "abc");
    struct stat found;
    assert_int_equal(lstat(tree_path(tree, "ws/link"), &found), 0);
    assert_true(S_ISLNK(found.st_mode));
}

static void test_sha256(void **state)
{
    struct tree *tree = *state;
    struct upload_options options = raw("f");
    char upper[65];
    for (size_t i = 0; i < sizeof(upper); i++)
        upper[i] = abc_sha256[i] >= 'a' ? (char)(abc_sha256[i] - 32) : abc_sha256[i];
    options.sha256 = upper;
    assert_string_equal(send(tree, options, "abc"), "");
    assert_string_equal(send(tree, options, "abd"), "checksum_mismatch");
    assert_string_equal(failure.field, "sha256");
    assert_string_equal(tree_text(tree, "ws/f"), "abc");
    options.sha256 = "abc";
    assert_string_equal(send(tree, options, "abc"), "invalid_request");
    struct upload_options many = form(NULL);
    many.sha256 = abc_sha256;
    assert_string_equal(send(tree, many, PART("a", "1") "abc" END), "");
    assert_string_equal(send(tree, many, PART("a", "2") "abc\r\n" PART("a", "3") "abc" END), "invalid_request");
    assert_int_equal(tree_count(tree, "ws"), 2);
}

static void test_form(void **state)
{
    struct tree *tree = *state;
    const char *body = FIELD("note") "ignored\r\n" PART("a", "one") "1\r\n" PART(
        "b", "C:\\\\x\\\\two.txt") "22\r\n" PART("c", "../../out/three") "333" END;
    for (size_t piece = 1; piece < 64; piece += 9) {
        struct upload_options options = form("up");
        assert_string_equal(send_in(tree, &options, body, strlen(body), piece), "");
        assert_string_equal(answer, piece == 1
                                        ? "up/one, 1, created\nup/two.txt, 2, created\nup/three, 3, created\n"
                                        : "up/one, 1, replaced\nup/two.txt, 2, replaced\nup/three, 3, replaced\n");
    }
    assert_string_equal(tree_text(tree, "ws/up/two.txt"), "22");
    assert_int_equal(tree_count(tree, "ws/up"), 3);
    assert_int_equal(tree_count(tree, "out"), 1);
    assert_string_equal(send(tree, form(NULL), PART("a", "top") "1" END), "");
    assert_string_equal(answer, "top, 1, created\n");
    assert_string_equal(send(tree, form(NULL), FIELD("path") "p/q\r\n" PART("a", "named") "1" END), "");
    assert_string_equal(answer, "p/q, 1, created\n");
}

static void test_forms_that_are_refused(void **state)
{
    struct tree *tree = *state;
    const struct {
        const char *body, *code, *field;
    } cases[] = {
        {FIELD("note") "x" END, "invalid_request", ""},
        {"--XX--\r\n", "invalid_request", ""},
        {PART("a", "") "x" END, "invalid_request", "filename"},
        {PART("a", ".") "x" END, "invalid_request", "filename"},
        {PART("a", "d/..") "x" END, "invalid_request", "filename"},
        {PART("a", "d/") "x" END, "invalid_request", "filename"},
        {PART("a", "f") "x\r\n" PART("a", "d/f") "y" END, "invalid_request", "filename"},
        {PART("a", "f") "x\r\n" PART("a", "link") "y" END, "invalid_request", "filename"},
        {PART("a", "f") "x\r\n" FIELD("path") "y" END, "invalid_request", "path"},
        {FIELD("path") "y\r\n" FIELD("path") "y\r\n" PART("a", "f") "x" END, "invalid_request", "path"},
        {FIELD("path") "y\r\n" PART("a", "f") "x\r\n" PART("a", "g") "x" END, "invalid_request", "path"},
        {FIELD("path") "\r\n" PART("a", "f") "x" END, "base_dir_protected", "path"},
        {FIELD("path") "../out/secret\r\n" PART("a", "f") "x" END, "path_outside_base", "path"},
        {PART("a", "f") "half of it", "invalid_request", ""},
        {PART("a", "f") "x\r\n--XX", "invalid_request", ""},
        {"garbage", "invalid_request", ""},
        {"", "invalid_request", ""},
    };
    tree_link(tree, "f", "ws/link");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(send(tree, form(NULL), cases[i].body), cases[i].code);
        assert_string_equal(failure.field, cases[i].field);
        assert_int_equal(tree_count(tree, "ws"), 1); /* the link */
    }
    assert_string_equal(tree_text(tree, "out/secret"), "secret");
}

static void test_options_that_do_not_fit(void **state)
{
    struct tree *tree = *state;
    struct upload_options options = raw("f");
    options.content_type = FORM;
    assert_string_equal(send(tree, options, ""), "invalid_request");
    assert_string_equal(failure.field, "path");
    options = form("d");
    options.content_type = "application/octet-stream";
    assert_string_equal(send(tree, options, ""), "invalid_request");
    assert_string_equal(failure.field, "dir");
    options.dir = NULL;
    assert_string_equal(send(tree, options, ""), "invalid_request");
    assert_string_equal(failure.field, "path");
    options = raw("f");
    options.content_type = "multipart/mixed; boundary=XX"; /* no form: a file like any other */
    assert_string_equal(send(tree, options, "abc"), "");
    assert_int_equal(tree_count(tree, "ws"), 1);
}

/* Broken at each byte of the body: the old file stays, nothing else is left. */
static void test_broken_off_anywhere(void **state)
{
    struct tree *tree = *state;
    static const char body[] = PART("a", "keep") "new one\r\n" PART("b", "other") "new two" END;
    struct err err;
    tree_file(tree, "ws/keep", "old");
    for (size_t len = 0; len < sizeof(body) - 3; len++) {
        struct upload_options options = form(NULL);
        struct upload *upload = upload_new(tree->confine, &options, &err);
        assert_int_equal(upload_feed(upload, body, len, &err), 0);
        upload_free(upload);
        options = raw("keep");
        upload = upload_new(tree->confine, &options, &err);
        assert_int_equal(upload_feed(upload, body, len, &err), 0);
        assert_string_equal(tree_text(tree, "ws/keep"), "old");
        upload_free(upload);
        assert_int_equal(tree_count(tree, "ws"), 1);
    }
    assert_string_equal(tree_text(tree, "ws/keep"), "old");
}

/* The second rename fails: the first file is whole and stays, and the error says so. */
static void test_a_later_rename_fails(void **state)
{
    struct tree *tree = *state;
    struct err err;
    const struct upload_file *files;
    size_t count;
    struct upload_options options = form(NULL);
    static const char body[] = PART("a", "one") "1\r\n" PART("b", "two") "2" END;
    struct upload *upload = upload_new(tree->confine, &options, &err);
    assert_int_equal(upload_feed(upload, body, sizeof(body) - 1, &err), 0);
    tree_dir(tree, "ws/two");
    assert_int_equal(upload_finish(upload, &files, &count, &err), -1);
    assert_int_equal(err.code, ERR_IS_A_DIRECTORY);
    assert_non_null(strstr(err.text, "1 files before it are in place"));
    upload_free(upload);
    assert_string_equal(tree_text(tree, "ws/one"), "1");
    assert_int_equal(tree_count(tree, "ws"), 2);
}

/* Directories are made at the end only, so what fails before has made none. */
static void test_failed_uploads_leave_no_directories(void **state)
{
    struct tree *tree = *state;
    struct err err;
    struct upload_options options = raw("np/x/y");
    struct upload *upload = upload_new(tree->confine, &options, &err);
    assert_int_equal(upload_feed(upload, "abc", 3, &err), 0);
    assert_false(tree_has(tree, "ws/np"));
    upload_free(upload);
    options.sha256 = abc_sha256;
    assert_string_equal(send(tree, options, "abd"), "checksum_mismatch");
    assert_string_equal(send(tree, form("np/x"), PART("a", "one") "1\r\n" PART("b", "two") "half"), "invalid_request");
    assert_string_equal(send(tree, form("np/x"), PART("a", "one") "1\r\n" PART("b", "one") "2" END), "invalid_request");
    assert_string_equal(failure.field, "filename");
    assert_int_equal(tree_count(tree, "ws"), 0);
    assert_string_equal(send(tree, options, "abc"), "");
    assert_string_equal(tree_text(tree, "ws/np/x/y"), "abc");
    assert_int_equal(tree_count(tree, "ws"), 1);
}

/* Names beside the directories that are missing have nothing to do with the target. */
static void test_missing_parents_beside_the_same_name(void **state)
{
    struct tree *tree = *state;
    tree_dir(tree, "ws/d");
    tree_file(tree, "ws/f", "beside");
    chmod(tree_path(tree, "ws/f"), 0600);
    assert_string_equal(send(tree, raw("new/d"), "abc"), "");
    assert_string_equal(tree_text(tree, "ws/new/d"), "abc");
    struct upload_options options = raw("other/f");
    options.overwrite = false;
    assert_string_equal(send(tree, options, "abc"), "");
    assert_int_not_equal(mode_of(tree, "ws/other/f"), 0600);
    assert_string_equal(tree_text(tree, "ws/f"), "beside");
}

/* What came to stand there meanwhile is used or refused, and what was made for a file that failed is taken back. */
static void test_parents_that_change(void **state)
{
    struct tree *tree = *state;
    struct err err;
    const struct upload_file *files;
    size_t count;
    static const struct {
        const char *what;
        enum err_code code;
    } cases[] = {{"directory", ERR_NONE}, {"link", ERR_BUSY}, {"file", ERR_BUSY}, {"target", ERR_ALREADY_EXISTS}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct upload_options options = raw("a/b/c/f");
        options.overwrite = false;
        struct upload *upload = upload_new(tree->confine, &options, &err);
        assert_int_equal(upload_feed(upload, "abc", 3, &err), 0);
        tree_dir(tree, "ws/a");
        if (i == 0)
            tree_dir(tree, "ws/a/b");
        else if (i == 1)
            tree_link(tree, tree_path(tree, "out"), "ws/a/b");
        else if (i == 2)
            tree_file(tree, "ws/a/b", "");
        else
            assert_string_equal(send(tree, raw("a/b/c/f"), "other"), "");
        int result = upload_finish(upload, &files, &count, &err);
        upload_free(upload);
        assert_int_equal(result == 0 ? ERR_NONE : err.code, cases[i].code);
        assert_int_equal(tree_count(tree, "ws"), 1); /* no temporary file */
        if (i == 0 || i == 3) {
            assert_string_equal(tree_text(tree, "ws/a/b/c/f"), i == 0 ? "abc" : "other");
            unlink(tree_path(tree, "ws/a/b/c/f"));
            rmdir(tree_path(tree, "ws/a/b/c"));
            rmdir(tree_path(tree, "ws/a/b"));
        } else {
            unlink(tree_path(tree, "ws/a/b"));
        }
        assert_int_equal(rmdir(tree_path(tree, "ws/a")), 0);
    }
    assert_int_equal(tree_count(tree, "out"), 1);
}

/* Making and taking back, by itself. */
static void test_making_parents(void **state)
{
    struct tree *tree = *state;
    struct err err;
    size_t made;
    int base = open(tree->base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    tree_dir(tree, "ws/a");
    int fd = parents_make(base, "a/b/c", &made, &err);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(made, 2);
    tree_file(tree, "ws/a/b/f", "of somebody else");
    parents_remove(base, "a/b/c", made);
    assert_false(tree_has(tree, "ws/a/b/c"));
    assert_string_equal(tree_text(tree, "ws/a/b/f"), "of somebody else");
    unlink(tree_path(tree, "ws/a/b/f"));
    parents_remove(base, "a/b", 1);
    assert_int_equal(tree_count(tree, "ws/a"), 0);
    char path[400] = "p/q/";
    memset(path + 4, 'n', NAME_MAX);
    fd = parents_make(base, path, &made, &err);
    assert_true(fd >= 0); /* the longest one that is */
    close(fd);
    parents_remove(base, path, made);
    tree_link(tree, "nowhere", "ws/a/l");
    assert_int_equal(parents_make(base, "a/l/x", &made, &err), -1);
    assert_int_equal(err.code, ERR_BUSY);
    assert_int_equal(tree_count(tree, "ws"), 1);
    close(base);
}

struct racer {
    struct tree *tree;
    pthread_t thread;
    int number, stored;
};

/* Every second one ends with a wrong sum, or finds its target taken only at the end. */
static void *race(void *ctx)
{
    struct racer *racer = ctx;
    const struct upload_file *files;
    struct err err;
    size_t count;
    char path[64];
    for (int i = 0; i < 200; i++) {
        snprintf(path, sizeof(path), "r%d/x/y/f%d", i, racer->number / 2);
        struct upload_options options = raw(path);
        options.overwrite = false;
        options.sha256 = racer->number % 2 ? abc_sha256 : NULL;
        struct upload *upload = upload_new(racer->tree->confine, &options, &err);
        if (upload_feed(upload, racer->number % 2 ? "abd" : "abc", 3, &err) == 0 &&
            upload_finish(upload, &files, &count, &err) == 0)
            racer->stored++;
        else if (racer->number % 2 == 0)
            print_error("%s: %s\n", path, err.text);
        upload_free(upload);
    }
    return NULL;
}

static void test_races_into_new_directories(void **state)
{
    struct tree *tree = *state;
    struct racer racers[6];
    for (int i = 0; i < 6; i++) {
        racers[i] = (struct racer){.tree = tree, .number = i};
        assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(racers[i].thread, NULL);
        assert_int_equal(racers[i].stored, i % 2 ? 0 : 200);
    }
    assert_int_equal(tree_count(tree, "ws"), 200);
    assert_int_equal(tree_count(tree, "ws/r0/x/y"), 3);
}

static void test_full_disk(void **state)
{
    struct tree *tree = *state;
    static char big[2 * 1024 * 1024];
    tree_dir(tree, "ws/small");
    if (mount("tmpfs", tree_path(tree, "ws/small"), "tmpfs", 0, "size=1m") != 0) {
        printf("NOT RUN: test_full_disk: mount: %s\n", strerror(errno));
        return;
    }
    tree_file(tree, "ws/small/keep", "old");
    memset(big, 'b', sizeof(big));
    struct upload_options options = raw("small/keep");
    assert_string_equal(send_in(tree, &options, big, sizeof(big), 64 * 1024), "no_space");
    assert_int_equal(tree_count(tree, "ws/small"), 1);
    assert_string_equal(tree_text(tree, "ws/small/keep"), "old");
    options.path = "small/np/x/y";
    options.path_len = strlen(options.path);
    assert_string_equal(send_in(tree, &options, big, sizeof(big), 64 * 1024), "no_space");
    assert_int_equal(tree_count(tree, "ws/small"), 1);
    options.path = "small/fits";
    options.path_len = strlen(options.path);
    assert_string_equal(send_in(tree, &options, big, 512 * 1024, 64 * 1024), "");
    assert_int_equal(umount(tree_path(tree, "ws/small")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_raw),
        TREE_TEST(test_mode_and_owner),
        TREE_TEST(test_targets_that_are_refused),
        TREE_TEST(test_without_overwrite),
        TREE_TEST(test_through_an_inner_link),
        TREE_TEST(test_sha256),
        TREE_TEST(test_form),
        TREE_TEST(test_forms_that_are_refused),
        TREE_TEST(test_options_that_do_not_fit),
        TREE_TEST(test_broken_off_anywhere),
        TREE_TEST(test_a_later_rename_fails),
        TREE_TEST(test_failed_uploads_leave_no_directories),
        TREE_TEST(test_missing_parents_beside_the_same_name),
        TREE_TEST(test_parents_that_change),
        TREE_TEST(test_making_parents),
        TREE_TEST(test_races_into_new_directories),
        TREE_TEST(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
