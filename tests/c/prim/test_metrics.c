/* What is used of a machine or of its control groups, told from trees that look like them. */
#include "machine_tree.h"

#include "prim/metrics.h"

#include <pthread.h>

#define MIB (UINT64_C(1) << 20)

static struct metrics found;

static void read_metrics(void)
{
    metrics_read(machine, &found);
}

static void test_an_empty_tree(void **state)
{
    (void)state;
    read_metrics();
    assert_int_equal(found.memory_used_bytes, 0);
    assert_int_equal(found.memory_limit_bytes, 0);
    assert_true(found.memory_percent == 0);
    assert_false(found.oom_kills_known);
    assert_int_equal(found.pids_current, 0);
    assert_false(found.pids_limited);
    assert_false(found.disks_known);
    assert_int_equal(found.network.in_bytes, 0);
    assert_int_equal(found.server_rss_bytes, 0);
    assert_int_equal(found.server_fds, 0);
}

static void machine_totals(void)
{
    machine_file("/proc/meminfo",
                 "MemTotal:        1048576 kB\nMemFree:          102400 kB\nMemAvailable:     262144 kB\n"
                 "Buffers:            1024 kB\nCached:           102400 kB\n");
    machine_file("/proc/vmstat", "nr_free_pages 1\noom_kill 4\n");
    machine_file("/proc/loadavg", "0.20 1.5 12.34 2/345 11206\n");
}

static void test_memory_of_the_machine(void **state)
{
    (void)state;
    machine_totals();
    read_metrics();
    assert_int_equal(found.memory_used_bytes, 768 * MIB);
    assert_int_equal(found.memory_limit_bytes, 1024 * MIB);
    assert_true(found.memory_percent == 75);
    assert_true(found.oom_kills_known);
    assert_int_equal(found.oom_kills, 4);
    assert_int_equal(found.pids_current, 345);
    assert_false(found.pids_limited);
    assert_true(found.load[0] == 0.2 && found.load[1] == 1.5 && found.load[2] == 12.34);
    machine_file("/proc/meminfo", "MemTotal: 1048576 kB\nMemFree: 102400 kB\nBuffers: 1024 kB\nCached: 102400 kB\n");
    read_metrics();
    assert_int_equal(found.memory_used_bytes, (1048576 - 102400 - 1024 - 102400) * UINT64_C(1024));
}

static void test_memory_in_v2(void **state)
{
    (void)state;
    machine_totals();
    machine_v2("/box");
    machine_file("/sys/fs/cgroup/cpu.stat", "usage_usec 1\n");
    machine_file("/sys/fs/cgroup/box/memory.current", "104857600\n");
    machine_file("/sys/fs/cgroup/box/memory.max", "209715200\n");
    machine_file("/sys/fs/cgroup/box/memory.stat", "anon 1\ninactive_file_x 9\ninactive_file 52428800\n");
    machine_file("/sys/fs/cgroup/box/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 9\n");
    machine_file("/sys/fs/cgroup/box/pids.current", "17\n");
    machine_file("/sys/fs/cgroup/box/pids.max", "100\n");
    read_metrics();
    assert_int_equal(found.memory_used_bytes, 50 * MIB);
    assert_int_equal(found.memory_limit_bytes, 200 * MIB);
    assert_true(found.memory_percent == 25);
    assert_int_equal(found.oom_kills, 2);
    assert_int_equal(found.pids_current, 17);
    assert_true(found.pids_limited);
    assert_int_equal(found.pids_max, 100);

    machine_file("/sys/fs/cgroup/box/memory.max", "max\n");
    machine_file("/sys/fs/cgroup/box/pids.max", "max\n");
    read_metrics();
    assert_int_equal(found.memory_limit_bytes, 1024 * MIB);
    assert_false(found.pids_limited);
}

/* What counts is what is used of the limit that will be hit: all groups below it share in it. */
static void test_the_limit_of_a_parent_with_what_is_used_of_it(void **state)
{
    (void)state;
    machine_totals();
    machine_v2("/pod/box");
    machine_file("/sys/fs/cgroup/pod/memory.current", "104857600\n");
    machine_file("/sys/fs/cgroup/pod/memory.max", "209715200\n");
    machine_file("/sys/fs/cgroup/pod/box/memory.current", "1048576\n");
    machine_file("/sys/fs/cgroup/pod/box/memory.max", "max\n");
    machine_file("/sys/fs/cgroup/pod/pids.current", "50\n");
    machine_file("/sys/fs/cgroup/pod/pids.max", "60\n");
    read_metrics();
    assert_int_equal(found.memory_used_bytes, 100 * MIB);
    assert_int_equal(found.memory_limit_bytes, 200 * MIB);
    assert_int_equal(found.pids_current, 50);
    assert_int_equal(found.pids_max, 60);
}

static void test_memory_in_v1(void **state)
{
    (void)state;
    machine_totals();
    machine_v1_docker();
    machine_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "104857600\n");
    machine_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "209715200\n");
    machine_file("/sys/fs/cgroup/memory/memory.stat", "inactive_file 7\ntotal_inactive_file 52428800\n");
    machine_file("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    machine_file("/sys/fs/cgroup/pids/pids.current", "9\n");
    machine_file("/sys/fs/cgroup/pids/pids.max", "max\n");
    read_metrics();
    assert_int_equal(found.memory_used_bytes, 50 * MIB);
    assert_int_equal(found.memory_limit_bytes, 200 * MIB);
    assert_int_equal(found.oom_kills, 3);
    assert_int_equal(found.pids_current, 9);
    assert_false(found.pids_limited);
    machine_file("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n"); /* before 4.13 */
    read_metrics();
    assert_false(found.oom_kills_known);
}

static void test_memory_is_never_negative_nor_above_the_limit(void **state)
{
    (void)state;
    machine_totals();
    machine_v2("/box");
    machine_file("/sys/fs/cgroup/box/memory.current", "100\n");
    machine_file("/sys/fs/cgroup/box/memory.stat", "inactive_file 200\n");
    machine_file("/sys/fs/cgroup/box/memory.max", "50\n");
    read_metrics();
    assert_int_equal(found.memory_used_bytes, 0);
    assert_true(found.memory_percent == 0);
    machine_file("/sys/fs/cgroup/box/memory.stat", "inactive_file x\n");
    read_metrics();
    assert_int_equal(found.memory_used_bytes, 50);
    assert_true(found.memory_percent == 100);
    machine_file("/sys/fs/cgroup/box/memory.max", "0\n"); /* legal: everything in it is killed */
    read_metrics();
    assert_int_equal(found.memory_used_bytes, 0);
    assert_int_equal(found.memory_limit_bytes, 0);
    assert_true(found.memory_percent == 0);
    machine_file("/sys/fs/cgroup/box/memory.current", "-100\n");
    read_metrics();
    assert_int_equal(found.memory_limit_bytes, 0);
    assert_int_equal(found.memory_used_bytes, 0);
    machine_file("/proc/meminfo", "MemTotal: 10 kB\nMemAvailable: 20 kB\n");
    machine_v2("/gone");
    read_metrics();
    assert_int_equal(found.memory_used_bytes, 0);
}

static void test_garbage_harms_nothing(void **state)
{
    static const char *const paths[] = {"/proc/meminfo",
                                        "/proc/vmstat",
                                        "/proc/loadavg",
                                        "/proc/diskstats",
                                        "/proc/net/dev",
                                        "/proc/self/statm",
                                        "/proc/stat",
                                        "/sys/fs/cgroup/box/memory.current",
                                        "/sys/fs/cgroup/box/memory.stat",
                                        "/sys/fs/cgroup/box/memory.events",
                                        "/sys/fs/cgroup/box/io.stat",
                                        "/sys/fs/cgroup/box/cpu.max",
                                        "/sys/fs/cgroup/box/cpu.stat",
                                        "/sys/fs/cgroup/box/pids.current"};
    static const char *const texts[] = {"",
                                        "\n\n",
                                        ":",
                                        "-1",
                                        "\xff\xfe\n8:",
                                        "99999999999999999999999999999999999",
                                        "8:0 rbytes=\n8:0 wbytes=99999999999999999999 Read  Write ",
                                        "nan nan inf 1/2 3"};
    struct cpu_meter *meter = cpu_meter_new();
    (void)state;
    machine_v2("/box");
    for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
        for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++)
            machine_file(paths[p], texts[t]);
        read_metrics();
        assert_true(found.memory_used_bytes <= found.memory_limit_bytes || found.memory_limit_bytes == 0);
        assert_true(found.memory_percent >= 0 && found.memory_percent <= 100);
        for (int i = 0; i < 3; i++)
            assert_true(found.load[i] >= 0 && found.load[i] < 1e9);
        struct cpu_use use;
        cpu_meter_ask(meter, machine, (t + 1) * UINT64_C(1000000000), &use);
        assert_true(use.percent >= 0 && use.percent <= 100);
        struct buf out;
        buf_init(&out, 4096);
        assert_int_equal(metrics_write(&found, &(struct metrics_server){0}, &out), 0);
        assert_int_equal(memcmp(out.data, "{\"cpu\":{\"percent\":", 18), 0);
        assert_null(memmem(out.data, out.len, "nan", 3));
        assert_null(memmem(out.data, out.len, ":-", 2));
        buf_deinit(&out);
    }
    cpu_meter_free(meter);
}

/* --- processors */

enum { MS = 1000000 };

static unsigned ask(struct cpu_meter *meter, uint64_t now_ms, struct cpu_use *out)
{
    return cpu_meter_ask(meter, machine, now_ms * MS, out);
}

static void test_cpu_in_v2(void **state)
{
    struct cpu_meter *meter = cpu_meter_new();
    struct cpu_use use;
    (void)state;
    machine_v2("/box");
    machine_file("/sys/fs/cgroup/box/cpu.max", "50000 100000\n");
    machine_file("/sys/fs/cgroup/box/cpu.stat", "usage_usec 1000000\nuser_usec 9\n");
    assert_int_equal(ask(meter, 1000, &use), 100);
    assert_int_equal(ask(meter, 1030, &use), 70);
    machine_file("/sys/fs/cgroup/box/cpu.stat", "usage_usec 1025000\n");
    assert_int_equal(ask(meter, 1100, &use), 0); /* 25 of 100 ms, and half a processor to use */
    assert_true(use.percent == 50);
    assert_true(use.quota == 0.5);

    machine_file("/sys/fs/cgroup/box/cpu.stat", "usage_usec 1030000\n");
    assert_int_equal(ask(meter, 1101, &use), 0); /* too soon: the same again */
    assert_true(use.percent == 50);
    assert_int_equal(ask(meter, 900, &use), 0); /* as a thread may that was held up */
    assert_true(use.percent == 50);
    assert_int_equal(ask(meter, 2100, &use), 0);
    assert_true(use.percent == 1);

    machine_file("/sys/fs/cgroup/box/cpu.stat", "usage_usec 9030000\n");
    assert_int_equal(ask(meter, 3100, &use), 0); /* a burst */
    assert_true(use.percent == 100);
    machine_file("/sys/fs/cgroup/box/cpu.stat", "usage_usec 5\n");
    assert_int_equal(ask(meter, 4100, &use), 0); /* made anew */
    assert_true(use.percent == 0);
    machine_file("/sys/fs/cgroup/box/cpu.stat", "usage_usec 50005\n");
    assert_int_equal(ask(meter, 5100, &use), 0);
    assert_true(use.percent == 10);
    cpu_meter_free(meter);
}

static void test_cpu_in_v1(void **state)
{
    struct cpu_meter *meter = cpu_meter_new();
    struct cpu_use use;
    (void)state;
    machine_v1_docker();
    machine_file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "25000\n");
    machine_file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    machine_file("/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "1000000000\n");
    assert_int_equal(ask(meter, 1000, &use), 100);
    machine_file("/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "1125000000\n");
    assert_int_equal(ask(meter, 2000, &use), 0);
    assert_true(use.percent == 50);
    assert_true(use.quota == 0.25);
    cpu_meter_free(meter);
}

/* Its hierarchies of their own for cpu and cpuacct, and a v2 that knows of no limit. */
static void test_cpu_in_both(void **state)
{
    struct cpu_meter *meter = cpu_meter_new();
    struct cpu_use use;
    (void)state;
    machine_hybrid();
    machine_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
    machine_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    machine_file("/sys/fs/cgroup/cpuacct/cpuacct.usage", "0\n");
    assert_int_equal(ask(meter, 1000, &use), 100);
    machine_file("/sys/fs/cgroup/cpuacct/cpuacct.usage", "100000000\n");
    assert_int_equal(ask(meter, 2000, &use), 0);
    assert_true(use.percent == 20);
    cpu_meter_free(meter);
}

static void test_cpu_of_the_machine(void **state)
{
    struct cpu_meter *meter = cpu_meter_new();
    struct cpu_use use;
    char text[256];
    uint64_t hertz = (uint64_t)sysconf(_SC_CLK_TCK);
    (void)state;
    machine_file("/proc/stat", "cpu  100 0 0 1000 500 0 0 700 50 0\ncpu0 1\ncpu1 1\ncpu2 1\ncpu3 1\nintr 5\n");
    assert_int_equal(ask(meter, 1000, &use), 100);
    /* One second of four processors: one of them busy, in parts; idle, waiting and stolen time is none. */
    snprintf(text, sizeof(text), "cpu  %ju 0 %ju 9000 9500 0 0 9700 50 0\ncpu0 1\ncpu1 1\ncpu2 1\ncpu3 1\nintr 5\n",
             (uintmax_t)(100 + hertz / 2), (uintmax_t)(hertz / 2));
    machine_file("/proc/stat", text);
    assert_int_equal(ask(meter, 2000, &use), 0);
    assert_true(use.percent == 25);
    /* From the machine to a group: the two do not compare. */
    machine_v2("/box");
    machine_file("/sys/fs/cgroup/box/cpu.max", "max 100000\n");
    machine_file("/sys/fs/cgroup/box/cpu.stat", "usage_usec 99999999999\n");
    assert_int_equal(ask(meter, 3000, &use), 0);
    assert_true(use.percent == 0);
    cpu_meter_free(meter);
}

static void test_cpu_that_nothing_tells(void **state)
{
    struct cpu_meter *meter = cpu_meter_new();
    struct cpu_use use;
    (void)state;
    assert_int_equal(ask(meter, 1000, &use), 0);
    assert_true(use.percent == 0);
    assert_true(use.quota >= 1);
    cpu_meter_free(meter);
}

/* A quota of more processors than there are can never be used up. */
static void test_quota_beyond_the_processors(void **state)
{
    struct cpu_meter *meter = cpu_meter_new();
    struct cpu_use use;
    (void)state;
    machine_v2("/box");
    machine_file("/sys/fs/cgroup/box/cpu.max", "1000000000 100000\n");
    machine_file("/sys/fs/cgroup/box/cpu.stat", "usage_usec 1\n");
    ask(meter, 1000, &use);
    assert_true(use.quota >= 1 && use.quota < 10000);
    cpu_meter_free(meter);
}

static void *ask_often(void *meter)
{
    for (uint64_t now_ms = 1000; now_ms < 3000; now_ms += 10) {
        struct cpu_use use;
        assert_true(ask(meter, now_ms, &use) <= 100);
        assert_true(use.percent >= 0 && use.percent <= 100);
    }
    return NULL;
}

static void test_cpu_asked_by_many_threads(void **state)
{
    struct cpu_meter *meter = cpu_meter_new();
    pthread_t threads[4];
    (void)state;
    machine_v2("/box");
    machine_file("/sys/fs/cgroup/box/cpu.max", "max 100000\n");
    machine_file("/sys/fs/cgroup/box/cpu.stat", "usage_usec 1\n");
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, meter), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    cpu_meter_free(meter);
}

/* --- traffic */

static void test_disks_of_the_machine(void **state)
{
    (void)state;
    machine_file("/sys/dev/block/8:0/size", "1");
    machine_file("/sys/dev/block/8:1/partition", "1");
    machine_file("/sys/dev/block/259:0/size", "1");
    machine_file("/sys/dev/block/253:0/dm/name", "root");
    machine_file("/sys/dev/block/9:0/md/level", "1");
    machine_file("/sys/dev/block/7:0/loop/backing_file", "x");
    machine_file("/sys/dev/block/252:0/mm_stat", "1");
    machine_file("/proc/diskstats", "   8       0 sda 10 0 100 5 20 0 200 5 0 5 5\n"
                                    "   8       1 sda1 10 0 100 5 20 0 200 5 0 5 5\n"
                                    " 259       0 nvme0n1 1 0 8 5 2 0 16 5 0 5 5 0 0 0 0 0 0\n"
                                    " 253       0 dm-0 1 0 1000 5 2 0 1000 5 0 5 5\n"
                                    "   9       0 md0 1 0 1000 5 2 0 1000 5 0 5 5\n"
                                    "   7       0 loop0 1 0 1000 5 2 0 1000 5 0 5 5\n"
                                    " 252       0 zram0 1 0 1000 5 2 0 1000 5 0 5 5\n"
                                    "   8      16 gone 1 0 1000 5 2 0 1000 5 0 5 5\nhalf a line");
    read_metrics();
    assert_true(found.disks_known);
    assert_int_equal(found.disks.in_bytes, 108 * 512);
    assert_int_equal(found.disks.out_bytes, 216 * 512);
}

static void test_disks_of_a_group(void **state)
{
    (void)state;
    machine_v2("/pod/box");
    machine_file("/sys/fs/cgroup/pod/box/cpu.stat", "usage_usec 1\n");
    machine_file("/sys/dev/block/253:0/dm/name", "root");
    machine_file("/sys/fs/cgroup/pod/io.stat", "8:0 rbytes=100 wbytes=200 rios=1 wios=2 dbytes=5 dios=0\n"
                                               "253:0 rbytes=100 wbytes=200 rios=1 wios=2 dbytes=0 dios=0\n"
                                               "259:0 rbytes=1 wbytes=2 rios=1 wios=2 dbytes=0 dios=0\n8:16\n");
    read_metrics();
    assert_true(found.disks_known);
    assert_int_equal(found.disks.in_bytes, 101);
    assert_int_equal(found.disks.out_bytes, 202);
}

static void test_disks_in_v1(void **state)
{
    (void)state;
    machine_v1_docker();
    machine_file("/sys/fs/cgroup/blkio/blkio.throttle.io_service_bytes",
                 "8:0 Read 4096\n8:0 Write 8192\n8:0 Sync 8192\n8:0 Async 4096\n8:0 Total 12288\nTotal 12288\n");
    read_metrics();
    assert_true(found.disks_known);
    assert_int_equal(found.disks.in_bytes, 4096);
    assert_int_equal(found.disks.out_bytes, 8192);
    /* A controller that counts nothing here is no answer. */
    machine_file("/sys/fs/cgroup/blkio/blkio.throttle.io_service_bytes", "Total 0\n");
    read_metrics();
    assert_false(found.disks_known);
}

static void test_network(void **state)
{
    (void)state;
    machine_file(
        "/proc/net/dev",
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls "
        "carrier compressed\n"
        "    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n"
        "  eth0: 1000 1 0 0 0 0 0 0 300 1 0 0 0 0 0 0\n"
        "eth0.1:18446744073709551000 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n"
        "   lo2: 7 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n");
    read_metrics();
    assert_int_equal(found.network.in_bytes, UINT64_MAX);
    assert_int_equal(found.network.out_bytes, 306);
}

static void test_the_server_itself(void **state)
{
    (void)state;
    machine_file("/proc/self/statm", "100 20 3 4 0 5 0\n");
    machine_file("/proc/self/fd/0", "");
    machine_file("/proc/self/fd/1", "");
    machine_file("/proc/self/fd/1000000", "");
    read_metrics();
    assert_int_equal(found.server_rss_bytes, 20 * (uint64_t)sysconf(_SC_PAGESIZE));
    assert_int_equal(found.server_fds, 3);
}

static void test_this_machine(void **state)
{
    int count = 0;
    (void)state;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    metrics_read("", &found);
    assert_int_equal(found.server_fds, count);
    assert_true(found.server_rss_bytes > MIB);
    assert_true(found.memory_limit_bytes > MIB);
    assert_true(found.memory_used_bytes > 0 && found.memory_used_bytes <= found.memory_limit_bytes);
    assert_true(found.pids_current >= 1);
}

static void test_answer(void **state)
{
    static const char expected[] =
        "{\"cpu\":{\"percent\":12.34,\"quota\":1.5,\"load\":[0.2,1,0]},"
        "\"memory\":{\"used_bytes\":1,\"limit_bytes\":9223372036854775807,\"percent\":50,\"oom_kills\":null},"
        "\"pids\":{\"current\":3,\"max\":null},\"io\":{\"read_bytes\":null,\"write_bytes\":null},"
        "\"network\":{\"rx_bytes\":5,\"tx_bytes\":6},"
        "\"server\":{\"rss_bytes\":7,\"fds\":8,\"requests\":9,\"processes\":10,\"terminals\":11}}";
    const struct metrics_server server = {.requests = 9, .processes = 10, .terminals = 11};
    struct metrics metrics = {
        .cpu = {.percent = 12.34, .quota = 1.5},
        .load = {0.2, 1, 0},
        .memory_used_bytes = 1,
        .memory_limit_bytes = UINT64_MAX,
        .memory_percent = 50,
        .pids_current = 3,
        .network = {5, 6},
        .server_rss_bytes = 7,
        .server_fds = 8,
    };
    struct buf out;
    (void)state;
    buf_init(&out, 4096);
    assert_int_equal(metrics_write(&metrics, &server, &out), 0);
    assert_int_equal(out.len, sizeof(expected) - 1);
    assert_memory_equal(out.data, expected, out.len);
    buf_reset(&out);
    metrics.oom_kills_known = metrics.pids_limited = metrics.disks_known = true;
    metrics.oom_kills = 1;
    metrics.pids_max = 2;
    metrics.disks = (struct traffic){3, 4};
    assert_int_equal(metrics_write(&metrics, &server, &out), 0);
    assert_non_null(memmem(out.data, out.len, "\"oom_kills\":1}", 14));
    assert_non_null(memmem(out.data, out.len, "\"max\":2}", 8));
    assert_non_null(memmem(out.data, out.len, "\"io\":{\"read_bytes\":3,\"write_bytes\":4}", 37));
    size_t len = out.len;
    buf_deinit(&out);
    for (size_t room = 0; room < len; room += 7) {
        buf_init(&out, room);
        assert_int_equal(metrics_write(&metrics, &server, &out), -1);
        buf_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        machine_test(test_an_empty_tree),
        machine_test(test_memory_of_the_machine),
        machine_test(test_memory_in_v2),
        machine_test(test_the_limit_of_a_parent_with_what_is_used_of_it),
        machine_test(test_memory_in_v1),
        machine_test(test_memory_is_never_negative_nor_above_the_limit),
        machine_test(test_garbage_harms_nothing),
        machine_test(test_cpu_in_v2),
        machine_test(test_cpu_in_v1),
        machine_test(test_cpu_in_both),
        machine_test(test_cpu_of_the_machine),
        machine_test(test_cpu_that_nothing_tells),
        machine_test(test_quota_beyond_the_processors),
        machine_test(test_cpu_asked_by_many_threads),
        machine_test(test_disks_of_the_machine),
        machine_test(test_disks_of_a_group),
        machine_test(test_disks_in_v1),
        machine_test(test_network),
        machine_test(test_the_server_itself),
        machine_test(test_this_machine),
        machine_test(test_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
