/* A directory that looks like a machine to what reads procfs, sysfs and /etc below a root. */
#ifndef ABX_TESTS_PRIM_MACHINE_TREE_H
#define ABX_TESTS_PRIM_MACHINE_TREE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char machine[64]; /* the root of the one that the test at hand has */

static inline void machine_write(const char *path, const char *bytes, size_t len)
{
    char full[PATH_MAX];
    snprintf(full, sizeof(full), "%s%s", machine, path);
    for (char *slash = strchr(full + strlen(machine) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    if (full[strlen(full) - 1] == '/')
        return; /* a directory was wanted */
    int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    close(fd);
}

/* Also makes the directories above; a path that ends in a slash is one itself. */
static inline void machine_file(const char *path, const char *text)
{
    machine_write(path, text, strlen(text));
}

static inline int machine_set_up(void **state)
{
    (void)state;
    snprintf(machine, sizeof(machine), "/tmp/abx-test-XXXXXX");
    return mkdtemp(machine) ? 0 : -1;
}

static inline int machine_remove_entry(const char *path, const struct stat *found, int kind, struct FTW *at)
{
    (void)found;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline int machine_tear_down(void **state)
{
    (void)state;
    return nftw(machine, machine_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* --- where control groups are */

/* v2 only, the process in group. */
static inline void machine_v2(const char *group)
{
    char text[PATH_MAX];
    snprintf(text, sizeof(text), "0::%s\n", group);
    machine_file("/proc/self/cgroup", text);
    machine_file("/proc/self/mountinfo",
                 "22 1 254:0 / / rw,relatime - ext4 /dev/root rw\n"
                 "31 22 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
}

/* v1 as Docker mounts it: the process's own group is all that can be seen. */
static inline void machine_v1_docker(void)
{
    machine_file("/proc/self/cgroup", "12:pids:/docker/0123\n9:memory:/docker/0123\n4:cpu,cpuacct:/docker/0123\n"
                                      "3:blkio:/docker/0123\n1:name=systemd:/docker/0123\n");
    machine_file("/proc/self/mountinfo",
                 "40 30 0:29 /docker/0123 /sys/fs/cgroup/memory ro,nosuid master:12 - cgroup cgroup rw,memory\n"
                 "41 30 0:30 /docker/0123 /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
                 "42 30 0:31 /docker/0123 /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n"
                 "43 30 0:32 /docker/0123 /sys/fs/cgroup/blkio ro - cgroup cgroup rw,blkio\n");
}

/* v1's memory and v2 without controllers, side by side. */
static inline void machine_hybrid(void)
{
    machine_file("/proc/self/cgroup", "4:memory:/jobs/a\n2:cpuacct:/\n1:cpu:/\n0::/\n");
    machine_file("/proc/self/mountinfo", "32 31 0:30 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
                                         "33 31 0:31 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
                                         "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
                                         "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
    machine_file("/sys/fs/cgroup/unified/cpu.stat", "usage_usec 77\n");
}

#define machine_test(name) cmocka_unit_test_setup_teardown(name, machine_set_up, machine_tear_down)

#endif
