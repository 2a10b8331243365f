/* What a machine is, told from trees that look like one. */
#include "machine_tree.h"

#include "prim/sysinfo.h"

#include <sched.h>
#include <sys/utsname.h>

#define GIB (UINT64_C(1) << 30)

static struct sysinfo info;

static void read_machine(void)
{
    sysinfo_read(machine, &info);
}

static void test_an_empty_tree_is_unknown(void **state)
{
    struct utsname names;
    (void)state;
    read_machine();
    assert_int_equal(uname(&names), 0);
    assert_string_equal(info.hostname, names.nodename);
    assert_string_equal(info.kernel, names.release);
    assert_string_equal(info.arch, names.machine);
    assert_string_equal(info.os_id, "unknown");
    assert_string_equal(info.os_name, "unknown");
    assert_string_equal(info.os_version, "unknown");
    assert_string_equal(info.cpu_model, "unknown");
    assert_string_equal(info.pid1, "unknown");
    assert_string_equal(info.container, "");
    assert_true(info.cpu_count >= 1);
    assert_true(info.cpu_quota == 0);
    assert_int_equal(info.memory_bytes, 0);
    assert_false(info.memory_limited);
    assert_int_equal(info.uptime_ms, 0);
    char uid[16];
    snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
    assert_string_equal(info.user, uid);
}

static void test_os_release(void **state)
{
    (void)state;
    machine_file("/etc/os-release", "# ID=comment\n\nID=ubuntu\nNAME='Ubuntu \"X\"'\nPRETTY_NAME=\"no\"\n"
                                    "VERSION_ID=\"22.04 \\\"a\\$b\\\\\" # after\nVERSION=no\nXID=no\n");
    read_machine();
    assert_string_equal(info.os_id, "ubuntu");
    assert_string_equal(info.os_name, "Ubuntu \"X\"");
    assert_string_equal(info.os_version, "22.04 \"a$b\\");
}

static void test_os_release_elsewhere_and_with_less(void **state)
{
    (void)state;
    machine_file("/usr/lib/os-release", "ID=arch\nID=\"arch2\"\nPRETTY_NAME=Arch\\ Linux\nBUILD_ID=rolling");
    read_machine();
    assert_string_equal(info.os_id, "arch2");
    assert_string_equal(info.os_name, "Arch Linux");
    assert_string_equal(info.os_version, "rolling");
}

static void test_os_release_of_garbage(void **state)
{
    char text[4096];
    (void)state;
    memset(text, 'x', sizeof(text));
    memcpy(text, "ID=\"", 4);
    memcpy(text + 2000, "\nNAME\nVERSION_ID=\"\"\nVERSION='open \xff\n", 37);
    machine_write("/etc/os-release", text, sizeof(text));
    read_machine();
    assert_int_equal(strlen(info.os_id), SYSINFO_TEXT_MAX - 1);
    assert_string_equal(info.os_name, "unknown");
    assert_string_equal(info.os_version, "open \xff");
}

/* Opening one to read would wait for a writer. */
static void test_a_fifo_in_place_of_a_file(void **state)
{
    char path[128];
    (void)state;
    machine_file("/etc/", "");
    snprintf(path, sizeof(path), "%s/etc/os-release", machine);
    assert_int_equal(mkfifo(path, 0644), 0);
    read_machine();
    assert_string_equal(info.os_id, "unknown");
}

static void test_cpu_models(void **state)
{
    static const char *const cases[][2] = {
        {"processor\t: 0\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) @ 2.50GHz \nflags\t: x\n",
         "Intel(R) Xeon(R) @ 2.50GHz"},
        {"processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
         "implementer 0x41 part 0xd0c"},
        {"processor\t: 0\nCPU part\t: 0xd0c\n", "unknown"},
        {"processor\t: 0\nmodel name\t:\nModel\t\t: Raspberry Pi 4\n", "Raspberry Pi 4"},
        {"cpu family\t: 6\ncpu\t\t: POWER9, altivec\n", "POWER9, altivec"},
        {"", "unknown"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        machine_file("/proc/cpuinfo", cases[i][0]);
        read_machine();
        assert_string_equal(info.cpu_model, cases[i][1]);
    }
}

static void test_count_is_what_the_process_may_use(void **state)
{
    cpu_set_t all, one;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    assert_int_equal(sysinfo_cpu_count(), CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    unsigned count = sysinfo_cpu_count();
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
    assert_int_equal(count, 1);
}

static void test_limits_of_a_parent_in_v2(void **state)
{
    (void)state;
    machine_v2("/pod/box");
    machine_file("/proc/meminfo", "MemTotal:       24684092 kB\nMemFree: 1 kB\n");
    machine_file("/sys/fs/cgroup/cpu.stat", "usage_usec 1\n"); /* v2's root has that, and no limits */
    machine_file("/sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
    machine_file("/sys/fs/cgroup/pod/memory.current", "5\n");
    machine_file("/sys/fs/cgroup/pod/memory.max", "1073741824\n");
    machine_file("/sys/fs/cgroup/pod/box/cpu.max", "max 100000\n");
    machine_file("/sys/fs/cgroup/pod/box/memory.current", "5\n");
    machine_file("/sys/fs/cgroup/pod/box/memory.max", "2147483648\n");
    read_machine();
    assert_true(info.cpu_quota == 1.5);
    assert_int_equal(info.memory_bytes, UINT64_C(24684092) * 1024);
    assert_true(info.memory_limited);
    assert_int_equal(info.memory_limit_bytes, GIB);
    machine_file("/sys/fs/cgroup/pod/box/memory.max", "536870912\n");
    machine_file("/sys/fs/cgroup/pod/box/cpu.max", "50000 200000\n");
    read_machine();
    assert_true(info.cpu_quota == 0.25);
    assert_int_equal(info.memory_limit_bytes, GIB / 2);
}

/* Above the mount, or beside it, is not ours. */
static void test_a_group_outside_of_what_is_mounted(void **state)
{
    (void)state;
    machine_v2("/../other");
    machine_file("/sys/fs/other/memory.current", "5\n");
    machine_file("/sys/fs/other/memory.max", "5\n");
    read_machine();
    assert_false(info.memory_limited);
    machine_v2("/gone");
    read_machine();
    assert_false(info.memory_limited);
}

static void test_limits_in_v1(void **state)
{
    (void)state;
    machine_v1_docker();
    machine_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
    machine_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
    machine_file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
    machine_file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    read_machine();
    assert_true(info.cpu_quota == 2);
    assert_true(info.memory_limited);
    assert_int_equal(info.memory_limit_bytes, GIB / 2);

    machine_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    machine_file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    read_machine();
    assert_true(info.cpu_quota == 0);
    assert_false(info.memory_limited);

    /* A group above that this container does not see: Kubernetes limits the pod. */
    machine_file("/sys/fs/cgroup/memory/memory.stat", "cache 1\nhierarchical_memory_limit 1073741824\n");
    read_machine();
    assert_true(info.memory_limited);
    assert_int_equal(info.memory_limit_bytes, GIB);
}

static void test_limits_of_both_side_by_side(void **state)
{
    (void)state;
    machine_hybrid();
    machine_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
    machine_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    machine_file("/sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", "5\n");
    machine_file("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "1073741824\n");
    machine_file("/sys/fs/cgroup/memory/jobs/a/memory.usage_in_bytes", "5\n");
    machine_file("/sys/fs/cgroup/memory/jobs/a/memory.limit_in_bytes", "9223372036854771712\n");
    machine_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
    machine_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    read_machine();
    assert_true(info.memory_limited);
    assert_int_equal(info.memory_limit_bytes, GIB);
    assert_true(info.cpu_quota == 0.5);
}

static void test_limits_of_garbage(void **state)
{
    static const char *const texts[] = {"", "\n", "max", "-5 100000\n", "5x\n", "0 0\n", "5", "100000 0\n", "\xff\xfe"};
    (void)state;
    machine_v2("/box");
    machine_file("/sys/fs/cgroup/box/memory.current", "5\n");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        machine_file("/sys/fs/cgroup/box/cpu.max", texts[i]);
        machine_file("/sys/fs/cgroup/box/memory.max", texts[i]);
        read_machine();
        assert_true(info.cpu_quota == 0);
        assert_int_equal(info.memory_limited, strcmp(texts[i], "5") == 0);
    }
    machine_file("/sys/fs/cgroup/box/cpu.max", "99999999999999999999 1\n");
    machine_file("/proc/self/cgroup", "no colon\n::\n0::\n");
    machine_file("/proc/self/mountinfo", "- cgroup2\n 1 2 - \n");
    machine_file("/proc/meminfo", "MemTotal: 99999999999999999999999 kB\n");
    read_machine();
    assert_true(info.cpu_quota == 0);
    assert_int_equal(info.memory_bytes, 0);
}

static void test_uptime(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } cases[] = {{"21600.07 1.0\n", 21600070}, {"5 1\n", 5000}, {"5.9\n", 5900}, {"-5.0 1\n", 0},
                 {"99999999999999999999", 0},  {"", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        machine_file("/proc/uptime", cases[i].text);
        read_machine();
        assert_int_equal(info.uptime_ms, cases[i].ms);
    }
}

static void test_user(void **state)
{
    char text[256];
    (void)state;
    snprintf(text, sizeof(text),
             "#x:x:%u:\nbad\n\n:x:%u:\nother:x:4000000000:1::/:\nme.too:x:%u:7::/:/bin/sh\nlater:x:%u:", geteuid(),
             geteuid(), geteuid(), geteuid());
    machine_file("/etc/passwd", text);
    read_machine();
    assert_string_equal(info.user, "me.too");
    assert_int_equal(info.uid, geteuid());
    assert_int_equal(info.gid, getegid());
}

static void test_pid1(void **state)
{
    (void)state;
    machine_file("/proc/1/comm", "a (b)\nc\n");
    read_machine();
    assert_string_equal(info.pid1, "a (b)\nc");
}

/* Each file in a tree of its own. */
static void expect_container(const char *path, const char *text, size_t len, const char *kind)
{
    machine_write(path, text, len);
    read_machine();
    assert_string_equal(info.container, kind);
    char full[PATH_MAX];
    snprintf(full, sizeof(full), "%s%s", machine, path);
    if (text[0] != '\0' || path[strlen(path) - 1] != '/')
        unlink(full);
}

static void test_containers(void **state)
{
    static const struct {
        const char *path, *text, *kind;
    } cases[] = {
        {"/.dockerenv", "", "docker"},
        {"/run/.containerenv", "engine=\"podman-4\"\n", "podman"},
        {"/run/systemd/container", "systemd-nspawn\n", "systemd-nspawn"},
        {"/run/systemd/container", "", ""},
        {"/run/systemd/container", "not a word\n", ""},
        {"/run/systemd/container", "\xff\n", ""},
        {"/run/host/container-manager", "lxc\n", "lxc"},
        {"/proc/self/cgroup", "4:memory:/docker/0123\n", "docker"},
        {"/proc/self/cgroup", "0::/kubepods.slice/pod1\n", "kubernetes"},
        {"/proc/self/cgroup", "0::/user.slice/user-1000.slice\n", ""},
        {"/proc/1/cgroup", "0::/lxc.payload.box/init.scope\n", "lxc"},
        {"/proc/1/cgroup", "0::/machine.slice/libpod-01.scope\n", "podman"},
        {"/proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2\n", "wsl"},
        {"/proc/sys/kernel/osrelease", "6.1.0-fc\n", ""},
    };
    static const char environ[] = "PATH=/bin\0container=lxc\0HOME=/", none[] = "xcontainer=lxc\0container";
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_container(cases[i].path, cases[i].text, strlen(cases[i].text), cases[i].kind);
    expect_container("/proc/1/environ", environ, sizeof(environ) - 1, "lxc");
    expect_container("/proc/1/environ", none, sizeof(none) - 1, "");
    machine_file("/.dockerenv", "");
    expect_container("/run/secrets/kubernetes.io/", "", 0, "kubernetes");
}

static void test_answer(void **state)
{
    struct buf out;
    (void)state;
    machine_file("/etc/os-release", "ID=\"a\\\"\xff\"\n");
    machine_file("/proc/1/comm", "x\ny\n");
    read_machine();
    strcpy(info.hostname, "h");
    strcpy(info.kernel, "6.1");
    strcpy(info.arch, "m68k");
    strcpy(info.user, "u");
    info.cpu_count = 3;
    info.cpu_quota = 0.1 + 0.2;
    info.memory_bytes = UINT64_MAX;
    info.uid = 4294967295u;
    info.gid = 0;
    buf_init(&out, 4096);
    assert_int_equal(sysinfo_write(&info, &out), 0);
    static const char expected[] =
        "\"hostname\":\"h\",\"os\":{\"id\":\"a\\\"\xef\xbf\xbd\",\"name\":\"unknown\",\"version\":\"unknown\"},"
        "\"kernel\":\"6.1\",\"arch\":\"m68k\",\"cpu\":{\"model\":\"unknown\",\"count\":3,\"quota\":0.3},"
        "\"memory\":{\"total_bytes\":9223372036854775807,\"limit_bytes\":null},\"uptime_ms\":0,"
        "\"user\":{\"name\":\"u\",\"uid\":4294967295,\"gid\":0},\"container\":null,\"pid1\":\"x\\ny\"";
    assert_int_equal(out.len, sizeof(expected) - 1);
    assert_memory_equal(out.data, expected, out.len);
    buf_deinit(&out);
    for (size_t room = 0; room < sizeof(expected) - 1; room += 7) {
        buf_init(&out, room);
        assert_int_equal(sysinfo_write(&info, &out), -1);
        buf_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        machine_test(test_an_empty_tree_is_unknown),
        machine_test(test_os_release),
        machine_test(test_os_release_elsewhere_and_with_less),
        machine_test(test_os_release_of_garbage),
        machine_test(test_a_fifo_in_place_of_a_file),
        machine_test(test_cpu_models),
        machine_test(test_count_is_what_the_process_may_use),
        machine_test(test_limits_of_a_parent_in_v2),
        machine_test(test_a_group_outside_of_what_is_mounted),
        machine_test(test_limits_in_v1),
        machine_test(test_limits_of_both_side_by_side),
        machine_test(test_limits_of_garbage),
        machine_test(test_uptime),
        machine_test(test_user),
        machine_test(test_pid1),
        machine_test(test_containers),
        machine_test(test_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
