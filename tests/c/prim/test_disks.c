/* prim/disks and prim/mounts: what a table of mounts becomes, and that a file system which hangs holds up nothing. */
#include "prim/disks.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct buf out;

static int set_up(void **state)
{
    (void)state;
    buf_init(&out, 1024 * 1024);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buf_deinit(&out);
    return 0;
}

static const char *survey(const char *table, uint64_t base_mount, disks_look_fn look)
{
    struct mounts mounts;
    struct err err;
    buf_reset(&out);
    assert_int_equal(mounts_parse(&mounts, table, strlen(table), &err), 0);
    assert_int_equal(disks_write_of(&out, &mounts, base_mount, look, &err), 0);
    assert_null(mounts.list); /* taken */
    assert_int_equal(buf_append(&out, "", 1), 0);
    return out.data;
}

/* 1000 blocks of 4 KiB, of which root has 100 more than others may use. */
static int look_plain(const struct mount *mount, struct statvfs *room)
{
    *room = (struct statvfs){.f_bsize = 1024 * 1024,
                             .f_frsize = 4096,
                             .f_blocks = 1000,
                             .f_bfree = 301,
                             .f_bavail = 201,
                             .f_files = 50,
                             .f_ffree = 20};
    return strncmp(mount->path, "/hidden", 7) == 0 ? 1 : strncmp(mount->path, "/denied", 7) == 0 ? -1 : 0;
}

#define NUMBERS                                                                                                        \
    "\"total_bytes\":4096000,\"used_bytes\":2863104,\"available_bytes\":823296,\"percent\":78,\"inodes_total\":50,"    \
    "\"inodes_used\":30"
#define NULLS                                                                                                          \
    "\"total_bytes\":null,\"used_bytes\":null,\"available_bytes\":null,\"percent\":null,\"inodes_total\":null,"        \
    "\"inodes_used\":null"
#define ROW(path, type, read_only)                                                                                     \
    "{\"path\":\"" path "\",\"type\":\"" type "\"," NUMBERS ",\"read_only\":" read_only "}"

static void shows_each_file_system_once(void **state)
{
    (void)state;
    static const char table[] = "22 1 0:21 / /proc rw shared:5 - proc proc rw\n"
                                "23 1 0:22 / /sys rw - sysfs sysfs rw\n"
                                "30 1 8:1 /sub /long/bind rw - ext4 /dev/sda1 rw\n"
                                "27 1 8:1 / / rw,relatime shared:1 master:2 - ext4 /dev/sda1 rw,errors=continue\n"
                                "31 1 8:2 / /data ro,relatime - xfs /dev/sdb rw\n"
                                "32 1 0:50 / /net rw - nfs4 host:/x ro,vers=4\n"
                                "33 1 0:51 / /net/over rw - tmpfs a rw\n"
                                "34 33 0:52 / /net/over rw - tmpfs b rw\n"
                                "35 1 0:40 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
                                "36 1 0:53 / /denied rw - fuse.x x rw\n"
                                "nonsense\n"
                                "37 1 0:54 / /mine rw - rozofs x rowed,xro\n";
    assert_string_equal(
        survey(table, 0, look_plain),
        "{\"filesystems\":[" ROW("/", "ext4", "false") "," ROW("/data", "xfs", "true") "," ROW(
            "/mine", "rozofs", "false") "," ROW("/net", "nfs4", "true") "," ROW("/net/over", "tmpfs",
                                                                                "false") "," ROW("/net/over", "tmpfs",
                                                                                                 "false") "]}");
}

static int look_hidden_below(const struct mount *mount, struct statvfs *room)
{
    (void)look_plain(mount, room);
    return mount->id == 33 || mount->id == 40;
}

static void leaves_out_what_is_mounted_over(void **state)
{
    (void)state;
    static const char table[] = "33 1 0:51 / /over rw - tmpfs a rw\n"
                                "34 33 0:52 / /over rw - tmpfs b rw\n"
                                "40 1 8:3 / /x rw - ext4 c rw\n"
                                "41 1 8:3 / /longer rw - ext4 c rw\n";
    assert_string_equal(survey(table, 0, look_hidden_below),
                        "{\"filesystems\":[" ROW("/longer", "ext4", "false") "," ROW("/over", "tmpfs", "false") "]}");
}

static void decodes_paths(void **state)
{
    (void)state;
    static const char table[] = "1 1 8:1 / /a\\040b\\011\\134c\\012\"ü\\ rw - ext4 x rw\n"
                                "2 1 8:2 / /odd\xff rw - fuse.a\\040b x rw";
    assert_string_equal(
        survey(table, 0, look_plain),
        "{\"filesystems\":[" ROW(
            "/a b\\t\\\\c\\n\\\"ü\\\\", "ext4",
            "false") ","
                     "{\"path\":\"/odd\uFFFD\",\"path_base64\":\"L29kZP8=\",\"type\":\"fuse.a b\"," NUMBERS
                     ",\"read_only\":false}]}");
}

static int look_empty(const struct mount *mount, struct statvfs *room)
{
    (void)mount;
    *room = (struct statvfs){.f_bsize = 4096, .f_bavail = ~(fsblkcnt_t)0};
    return 0;
}

static void keeps_the_base_and_what_can_hold_files(void **state)
{
    (void)state;
    static const char table[] = "1 1 0:1 / /a rw - sysfs x rw\n"
                                "2 1 0:2 / /b rw - tmpfs x rw\n"
                                "3 1 0:3 / /c rw - fuse.portal x rw\n";
    static const char zeros[] = "\"total_bytes\":0,\"used_bytes\":0,\"available_bytes\":0,\"percent\":0,"
                                "\"inodes_total\":0,\"inodes_used\":0,\"read_only\":false}";
    char want[1024];
    snprintf(want, sizeof(want),
             "{\"filesystems\":[{\"path\":\"/a\",\"type\":\"sysfs\",%s,{\"path\":\"/b\",\"type\":\"tmpfs\",%s]}", zeros,
             zeros);
    assert_string_equal(survey(table, 1, look_empty), want);
    snprintf(want, sizeof(want),
             "{\"filesystems\":[{\"path\":\"/b\",\"type\":\"tmpfs\",%s,{\"path\":\"/c\",\"type\":\"fuse.portal\",%s]}",
             zeros, zeros);
    assert_string_equal(survey(table, 3, look_empty), want);
    /* The base's is there even where it cannot be looked at. */
    assert_string_equal(survey("5 1 0:5 / /denied rw - ext4 x rw\n", 5, look_plain),
                        "{\"filesystems\":[{\"path\":\"/denied\",\"type\":\"ext4\"," NULLS ",\"read_only\":false}]}");
    assert_string_equal(survey("", 5, look_plain), "{\"filesystems\":[]}");
}

/* --- what hangs */

static int gate[2];
static atomic_int asked, came_back;

static int look_hanging(const struct mount *mount, struct statvfs *room)
{
    char byte;
    if (strncmp(mount->path, "/hang", 5) != 0)
        return look_plain(mount, room);
    atomic_fetch_add(&asked, 1);
    ssize_t len = read(gate[0], &byte, 1);
    atomic_fetch_add(&came_back, 1);
    (void)look_plain(mount, room);
    return len == 1 ? 0 : -1;
}

static void wait_until(atomic_int *counter, int value)
{
    while (atomic_load(counter) < value)
        usleep(1000);
}

static void goes_on_without_what_hangs(void **state)
{
    (void)state;
    static const char table[] = "1 1 0:1 / /a rw - ext4 x rw\n"
                                "2 1 0:2 / /hang1 rw - nfs x rw\n"
                                "3 1 0:3 / /hang2 rw - nfs x ro\n"
                                "4 1 0:4 / /z rw - ext4 x rw\n";
    static const char want[] = "{\"filesystems\":[" ROW(
        "/a", "ext4", "false") ",{\"path\":\"/hang1\",\"type\":\"nfs\"," NULLS
                               ",\"read_only\":false},{\"path\":\"/hang2\",\"type\":\"nfs\"," NULLS
                               ",\"read_only\":true}," ROW("/z", "ext4", "false") "]}";
    assert_int_equal(pipe(gate), 0);
    /* Again where this machine is so slow that threads did not even start in time. */
    do
        (void)survey(table, 0, look_hanging);
    while (strcmp(out.data, want) != 0 || atomic_load(&asked) < 2);
    /* They keep their threads, and no further one is spent on them: so this one does not wait. */
    for (int i = 0; i < 20; i++)
        (void)survey(table, 0, look_hanging);
    assert_int_equal(atomic_load(&asked), 2);
    /* They come back, and are asked again (when their threads have got so far). */
    assert_int_equal(write(gate[1], "12345678", 8), 8);
    wait_until(&came_back, 2);
    char all[1024];
    snprintf(all, sizeof(all), "{\"filesystems\":[%s,%s,%s,%s]}", ROW("/a", "ext4", "false"),
             ROW("/hang1", "nfs", "false"), ROW("/hang2", "nfs", "true"), ROW("/z", "ext4", "false"));
    while (strcmp(survey(table, 0, look_hanging), all) != 0)
        assert_int_equal(write(gate[1], "1234", 4), 4);
    close(gate[1]);
    close(gate[0]);
}

static void bounds_the_whole(void **state)
{
    (void)state;
    char table[32 * 64];
    size_t len = 0;
    for (int i = 0; i < 32; i++)
        len +=
            (size_t)snprintf(table + len, sizeof(table) - len, "%d 1 0:%d / /hang%d rw - nfs x rw\n", i + 1, i + 1, i);
    atomic_store(&asked, 0);
    atomic_store(&came_back, 0);
    assert_int_equal(pipe(gate), 0);
    (void)survey(table, 0, look_hanging);
    size_t rows = 0;
    for (const char *at = out.data; (at = strstr(at, NULLS)) != NULL; at++)
        rows++;
    assert_int_equal(rows, 32);
    /* Each was waited for half a second, so two seconds do for four or five. */
    int threads = atomic_load(&asked);
    assert_in_range(threads, 0, 5);
    close(gate[1]); /* all come back */
    wait_until(&came_back, threads);
    close(gate[0]);
}

static void reads_this_machine(void **state)
{
    (void)state;
    struct err err;
    struct statvfs room;
    char want[128];
    assert_int_equal(disks_write(&out, "/tmp", &err), 0);
    assert_int_equal(buf_append(&out, "", 1), 0);
    assert_int_equal(statvfs("/", &room), 0);
    snprintf(want, sizeof(want), "\"total_bytes\":%llu,", (unsigned long long)room.f_blocks * room.f_frsize);
    assert_non_null(strstr(out.data, want));
    assert_null(strstr(out.data, "\"type\":\"proc\""));
    /* As df has it, whose base is a directory of procfs. */
    buf_reset(&out);
    assert_int_equal(disks_write(&out, "/proc", &err), 0);
    assert_int_equal(buf_append(&out, "", 1), 0);
    assert_non_null(strstr(out.data, "\"type\":\"proc\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shows_each_file_system_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaves_out_what_is_mounted_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(decodes_paths, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeps_the_base_and_what_can_hold_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(goes_on_without_what_hangs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bounds_the_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_this_machine, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
