/* Replacing a file: what it keeps, what it refuses, and that writers wait for each other. */
#include "tree.h"

#include "prim/entry.h"
#include "prim/replace.h"

#include <errno.h>
#include <pthread.h>
#include <sys/xattr.h>
#include <time.h>

static struct err err;

/* O_PATH, as confine_parent gives it. */
static int base_of(const struct tree *tree)
{
    int fd = open(tree->base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static struct stat stat_of(const struct tree *tree, const char *name)
{
    struct stat found;
    assert_int_equal(lstat(tree_path(tree, name), &found), 0);
    return found;
}

/* The code of a whole replacement; "" where it worked. */
static const char *put(int dir_fd, const char *name, const char *text, bool overwrite, const char *if_match, int mode)
{
    struct replace r;
    bool created;
    replace_init(&r, dir_fd, name);
    r.overwrite = overwrite;
    r.if_match = if_match;
    int result = replace_look(&r, &err);
    if (result == 0)
        result = replace_open(&r, &err);
    if (result == 0)
        result = replace_write(&r, text, strlen(text), &err);
    if (result == 0)
        result = replace_commit(&r, mode, true, &created, &err);
    replace_abort(&r);
    if (result == 0)
        assert_int_equal(r.now.st_size, strlen(text));
    return result == 0 ? "" : err_code_name(err.code);
}

static void test_new_and_old(void **state)
{
    struct tree *tree = *state;
    struct replace r;
    bool created;
    int base = base_of(tree);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(replace_begin(&r, base, "f", true, &err), 0);
        assert_int_equal(r.exists, i == 1);
        assert_int_equal(tree_count(tree, "ws"), i + 1);
        assert_int_equal(replace_write(&r, "abc", 3, &err), 0);
        assert_int_equal(replace_write(&r, "def", 3, &err), 0);
        if (i == 1)
            assert_string_equal(tree_text(tree, "ws/f"), "abcdef");
        assert_int_equal(replace_commit(&r, i == 0 ? 0640 : -1, true, &created, &err), 0);
        assert_int_equal(created, i == 0);
        assert_int_equal(r.now.st_ino, stat_of(tree, "ws/f").st_ino);
        assert_int_equal(r.now.st_mode & 07777, 0640);
        replace_abort(&r); /* harmless */
        assert_int_equal(tree_count(tree, "ws"), 1);
    }
    assert_int_equal(replace_begin(&r, base, "f", true, &err), 0);
    assert_int_equal(replace_write(&r, "x", 1, &err), 0);
    replace_abort(&r);
    assert_string_equal(tree_text(tree, "ws/f"), "abcdef");
    assert_int_equal(tree_count(tree, "ws"), 1);
    mode_t mask = umask(0);
    umask(mask);
    assert_string_equal(put(base, "g", "", true, NULL, -1), "");
    assert_int_equal(stat_of(tree, "ws/g").st_mode & 07777, 0666 & ~mask);
    close(base);
}

static void test_owner_and_set_id(void **state)
{
    struct tree *tree = *state;
    int base = base_of(tree);
    tree_file(tree, "ws/f", "old");
    if (geteuid() == 0)
        assert_int_equal(chown(tree_path(tree, "ws/f"), 1234, 5678), 0);
    assert_int_equal(chmod(tree_path(tree, "ws/f"), 06751), 0);
    assert_string_equal(put(base, "f", "new", true, NULL, -1), "");
    struct stat found = stat_of(tree, "ws/f");
    assert_int_equal(found.st_mode & 07777, 06751);
    assert_int_equal(found.st_uid, geteuid() == 0 ? 1234 : geteuid());
    assert_int_equal(found.st_gid, geteuid() == 0 ? 5678 : getegid());
    close(base);
}

/* The file of another user, in a directory that everybody may write: replacing it would take it from its owner. */
static void test_an_owner_that_cannot_be_kept(void **state)
{
    struct tree *tree = *state;
    if (geteuid() != 0) {
        print_message("NOT RUN: test_an_owner_that_cannot_be_kept: needs root\n");
        return;
    }
    int base = base_of(tree);
    tree_file(tree, "ws/f", "old");
    chmod(tree->base, 0777);
    assert_int_equal(seteuid(1234), 0);
    const char *code = put(base, "f", "new", true, NULL, -1);
    const char *own = put(base, "own", "new", true, NULL, -1), *again = put(base, "own", "again", true, NULL, -1);
    assert_int_equal(seteuid(0), 0);
    assert_string_equal(code, "permission_denied");
    assert_string_equal(own, "");
    assert_string_equal(again, "");
    assert_string_equal(tree_text(tree, "ws/f"), "old");
    assert_int_equal(tree_count(tree, "ws"), 2);

    chmod(tree->base, 0755);
    assert_int_equal(seteuid(1234), 0);
    code = put(base, "own", "new", true, NULL, -1);
    assert_int_equal(seteuid(0), 0);
    assert_string_equal(code, "permission_denied");
    close(base);
}

static void test_xattrs(void **state)
{
    struct tree *tree = *state;
    static char big[300];
    char value[sizeof(big) + 1], name[64];
    int base = base_of(tree);
    tree_file(tree, "ws/f", "old");
    const char *path = tree_path(tree, "ws/f");
    memset(big, 'v', sizeof(big));
    if (setxattr(path, "user.big", big, sizeof(big), 0) != 0) {
        print_message("NOT RUN: test_xattrs: setxattr: %s\n", strerror(errno));
        close(base);
        return;
    }
    assert_int_equal(setxattr(path, "user.empty", "", 0, 0), 0);
    for (int i = 0; i < 45; i++) { /* their names are more than fit at first */
        snprintf(name, sizeof(name), "user.a-name-that-is-long-%02d", i);
        assert_int_equal(setxattr(path, name, name, 4, 0), 0);
    }
    assert_string_equal(put(base, "f", "new", true, NULL, -1), "");
    assert_int_equal(getxattr(path, "user.big", value, sizeof(value)), sizeof(big));
    assert_memory_equal(value, big, sizeof(big));
    assert_int_equal(getxattr(path, "user.empty", value, sizeof(value)), 0);
    assert_int_equal(getxattr(path, "user.a-name-that-is-long-44", value, sizeof(value)), 4);
    assert_string_equal(tree_text(tree, "ws/f"), "new");
    close(base);
}

/* A capability vouches for the bytes that it was given to. */
static void test_capabilities_are_not_kept(void **state)
{
    struct tree *tree = *state;
    static const uint32_t capability[] = {0x02000001, 0x00000400, 0, 0, 0}; /* version 2, cap_net_bind_service */
    tree_file(tree, "ws/f", "old");
    const char *path = tree_path(tree, "ws/f");
    if (setxattr(path, "security.capability", capability, sizeof(capability), 0) != 0) {
        print_message("NOT RUN: test_capabilities_are_not_kept: setxattr: %s\n", strerror(errno));
        return;
    }
    int base = base_of(tree);
    char value[64];
    assert_string_equal(put(base, "f", "new", true, NULL, -1), "");
    assert_int_equal(getxattr(path, "security.capability", value, sizeof(value)), -1);
    assert_int_equal(errno, ENODATA);
    close(base);
}

/* linux/posix_acl_xattr.h: a version, then {tag, permissions, id}. */
struct acl_entry {
    uint16_t tag, perm;
    uint32_t id;
};
struct acl {
    uint32_t version;
    struct acl_entry entries[5];
};

/* owner rw, one user, group r, mask, others none */
static struct acl acl_for(uint32_t user, uint16_t perm)
{
    return (struct acl){2,
                        {{0x01, 6, UINT32_MAX},
                         {0x02, perm, user},
                         {0x04, 4, UINT32_MAX},
                         {0x10, perm | 4, UINT32_MAX},
                         {0x20, 0, UINT32_MAX}}};
}

static void test_acls(void **state)
{
    struct tree *tree = *state;
    struct acl of_file = acl_for(4321, 6), of_dir = acl_for(1111, 7), found;
    tree_file(tree, "ws/with", "old");
    tree_file(tree, "ws/without", "old");
    chmod(tree_path(tree, "ws/without"), 0640);
    if (setxattr(tree_path(tree, "ws/with"), "system.posix_acl_access", &of_file, sizeof(of_file), 0) != 0) {
        print_message("NOT RUN: test_acls: setxattr: %s\n", strerror(errno));
        return;
    }
    assert_int_equal(setxattr(tree->base, "system.posix_acl_default", &of_dir, sizeof(of_dir), 0), 0);
    int base = base_of(tree);
    assert_string_equal(put(base, "with", "new", true, NULL, -1), "");
    assert_string_equal(put(base, "without", "new", true, NULL, -1), "");
    assert_int_equal(getxattr(tree_path(tree, "ws/with"), "system.posix_acl_access", &found, sizeof(found)),
                     sizeof(found));
    assert_memory_equal(&found, &of_file, sizeof(found));
    assert_int_equal(stat_of(tree, "ws/with").st_mode & 07777, 0660);
    assert_int_equal(getxattr(tree_path(tree, "ws/without"), "system.posix_acl_access", &found, sizeof(found)), -1);
    assert_int_equal(stat_of(tree, "ws/without").st_mode & 07777, 0640);
    close(base);
}

static void test_refused(void **state)
{
    struct tree *tree = *state;
    int base = base_of(tree);
    tree_dir(tree, "ws/d");
    tree_file(tree, "ws/f", "old");
    tree_link(tree, "f", "ws/l");
    assert_int_equal(mkfifo(tree_path(tree, "ws/fifo"), 0600), 0);
    assert_string_equal(put(base, "d", "x", true, NULL, -1), "is_a_directory");
    assert_string_equal(put(base, "l", "x", true, NULL, -1), "busy");
    assert_string_equal(put(base, "fifo", "x", true, NULL, -1), "not_a_regular_file");
    assert_string_equal(put(base, "f", "x", false, NULL, -1), "already_exists");
    int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_string_equal(put(proc, "comm", "x", true, NULL, -1), "not_a_regular_file");
    close(proc);
    close(base);
    assert_int_equal(tree_count(tree, "ws"), 4);
    assert_string_equal(tree_text(tree, "ws/f"), "old");
}

static void test_if_match(void **state)
{
    struct tree *tree = *state;
    int base = base_of(tree);
    char etag[ENTRY_ETAG_MAX], second[ENTRY_ETAG_MAX];
    assert_string_equal(put(base, "f", "x", true, "*", -1), "stale_write");
    tree_file(tree, "ws/f", "one");
    struct stat found = stat_of(tree, "ws/f");
    entry_etag(etag, &found);
    assert_string_equal(put(base, "f", "two", true, etag, -1), "");
    assert_string_equal(put(base, "f", "bad", true, etag, -1), "stale_write");
    assert_non_null(strstr(err.text, "etag"));
    found = stat_of(tree, "ws/f");
    entry_etag(second, &found);
    assert_string_equal(put(base, "f", "3", true, second, -1), "");
    assert_string_equal(put(base, "f", "4", true, "*", -1), "");
    assert_string_equal(tree_text(tree, "ws/f"), "4");
    close(base);
}

/* What comes to stand there while the new file is written. */
static void test_targets_that_change(void **state)
{
    struct tree *tree = *state;
    struct replace r;
    bool created;
    int base = base_of(tree);
    assert_int_equal(replace_begin(&r, base, "f", false, &err), 0);
    tree_file(tree, "ws/f", "meanwhile");
    assert_int_equal(replace_commit(&r, -1, true, &created, &err), -1);
    assert_int_equal(err.code, ERR_ALREADY_EXISTS);
    replace_abort(&r);

    assert_int_equal(replace_begin(&r, base, "f", true, &err), 0);
    chmod(tree_path(tree, "ws/f"), 0600);
    assert_int_equal(replace_commit(&r, -1, true, &created, &err), 0);
    assert_int_equal(stat_of(tree, "ws/f").st_mode & 07777, 0600);
    replace_abort(&r);

    assert_int_equal(replace_begin(&r, base, "g", true, &err), 0);
    tree_dir(tree, "ws/g");
    assert_int_equal(replace_rename(&r, &created, &err), -1);
    assert_int_equal(err.code, ERR_IS_A_DIRECTORY);
    replace_abort(&r);
    assert_int_equal(tree_count(tree, "ws"), 2);

    assert_int_equal(replace_begin(&r, base, "h", true, &err), 0);
    assert_int_equal(replace_write(&r, "abc", 3, &err), 0);
    assert_int_equal(ftruncate(r.fd, 2), 0); /* a write that was lost */
    assert_int_equal(replace_commit(&r, -1, false, &created, &err), -1);
    assert_int_equal(err.code, ERR_INTERNAL);
    replace_abort(&r);
    assert_int_equal(tree_count(tree, "ws"), 2);
    close(base);
}

static void put_later(int base)
{
    struct replace r;
    bool created;
    assert_int_equal(replace_begin(&r, base, "f", true, &err), 0);
    r.later = true;
    assert_int_equal(replace_commit(&r, -1, true, &created, &err), 0);
    replace_abort(&r);
}

static void test_later(void **state)
{
    struct tree *tree = *state;
    int base = base_of(tree);
    struct timespec now, times[2] = {{.tv_nsec = UTIME_OMIT}};
    tree_file(tree, "ws/f", "");
    clock_gettime(CLOCK_REALTIME, &now);
    times[1] = (struct timespec){now.tv_sec + 1, 999999999}; /* beyond the reach */
    assert_int_equal(utimensat(base, "f", times, 0), 0);
    put_later(base);
    struct timespec found = stat_of(tree, "ws/f").st_mtim;
    assert_true(found.tv_sec >= now.tv_sec && found.tv_sec <= now.tv_sec + 1 && found.tv_nsec != 999999999);

    for (int i = 0; i < 20; i++) {
        clock_gettime(CLOCK_REALTIME, &now);
        now.tv_nsec += 50 * 1000 * 1000; /* within it, as the clock moves but little until the next one */
        times[1] = (struct timespec){now.tv_sec + now.tv_nsec / 1000000000, now.tv_nsec % 1000000000};
        assert_int_equal(utimensat(base, "f", times, 0), 0);
        put_later(base);
        found = stat_of(tree, "ws/f").st_mtim;
        assert_true(found.tv_sec > times[1].tv_sec || found.tv_nsec > times[1].tv_nsec);
    }
    close(base);
}

static void test_another_directory(void **state)
{
    struct tree *tree = *state;
    struct replace r;
    bool created;
    int base = base_of(tree);
    tree_file(tree, "ws/f", "not this one");
    replace_init(&r, base, "f");
    assert_int_equal(replace_open(&r, &err), 0);
    assert_int_equal(replace_write(&r, "abc", 3, &err), 0);
    assert_int_equal(replace_finish(&r, -1, true, &err), 0);
    assert_int_equal(replace_close(&r, &err), 0);
    tree_dir(tree, "ws/new");
    r.target_fd = open(tree_path(tree, "ws/new"), O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(replace_rename(&r, &created, &err), 0);
    assert_true(created);
    replace_abort(&r);
    close(r.target_fd);
    close(base);
    assert_string_equal(tree_text(tree, "ws/new/f"), "abc");
    assert_string_equal(tree_text(tree, "ws/f"), "not this one");
    assert_int_equal(tree_count(tree, "ws"), 2);
}

enum { ADDERS = 8, ADDITIONS = 60 };

struct adder {
    pthread_t thread;
    struct tree *tree;
    int base, failed;
};

/* Reads the number in ws/n and writes the next one. */
static int add_one(struct adder *adder)
{
    struct replace r;
    struct err failure;
    bool created;
    char text[32] = "";
    replace_init(&r, adder->base, "n");
    int result = replace_lock(&r, &failure);
    int fd = openat(adder->base, "n", O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 1)
        result = -1;
    close(fd);
    snprintf(text, sizeof(text), "%d", atoi(text) + 1);
    if (result == 0)
        result = replace_open(&r, &failure);
    if (result == 0)
        result = replace_write(&r, text, strlen(text), &failure);
    if (result == 0)
        result = replace_commit(&r, -1, true, &created, &failure);
    replace_abort(&r);
    return result;
}

static void *add(void *ctx)
{
    struct adder *adder = ctx;
    for (int i = 0; i < ADDITIONS; i++)
        adder->failed += add_one(adder) != 0;
    return NULL;
}

static void test_writers_wait_for_each_other(void **state)
{
    struct tree *tree = *state;
    struct adder adders[ADDERS];
    char expected[32];
    tree_file(tree, "ws/n", "0");
    int base = base_of(tree);
    for (int i = 0; i < ADDERS; i++) {
        adders[i] = (struct adder){.tree = tree, .base = base};
        assert_int_equal(pthread_create(&adders[i].thread, NULL, add, &adders[i]), 0);
    }
    for (int i = 0; i < ADDERS; i++) {
        pthread_join(adders[i].thread, NULL);
        assert_int_equal(adders[i].failed, 0);
    }
    snprintf(expected, sizeof(expected), "%d", ADDERS * ADDITIONS);
    assert_string_equal(tree_text(tree, "ws/n"), expected);
    assert_int_equal(tree_count(tree, "ws"), 1);
    close(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_new_and_old),
        TREE_TEST(test_owner_and_set_id),
        TREE_TEST(test_an_owner_that_cannot_be_kept),
        TREE_TEST(test_xattrs),
        TREE_TEST(test_capabilities_are_not_kept),
        TREE_TEST(test_acls),
        TREE_TEST(test_refused),
        TREE_TEST(test_if_match),
        TREE_TEST(test_targets_that_change),
        TREE_TEST(test_later),
        TREE_TEST(test_another_directory),
        TREE_TEST(test_writers_wait_for_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
