/* prim/process_cgroup: groups are made, used again and removed, and tell who lives in them. */
#include "prim/process_cgroup.h"

#include "prim/cgroup.h"
#include "prim/proc_stat.h"
#include "without_cgroups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char own_dir[PATH_MAX];

/* How many entries of a directory begin with that. */
static size_t count_named(const char *dir_path, const char *prefix)
{
    size_t count = 0;
    DIR *dir = opendir(dir_path);
    assert_non_null(dir);
    for (struct dirent *found = readdir(dir); found != NULL; found = readdir(dir))
        count += found->d_type == DT_DIR && strncmp(found->d_name, prefix, strlen(prefix)) == 0;
    closedir(dir);
    return count;
}

static void group_path(char out[PATH_MAX], const char *file)
{
    assert_true(snprintf(out, PATH_MAX, "%s/abxd-%d/1/%s", own_dir, (int)getpid(), file) < PATH_MAX);
}

static void base_path(char out[PATH_MAX], const char *file)
{
    assert_true(snprintf(out, PATH_MAX, "%s/abxd-%d/%s", own_dir, (int)getpid(), file) < PATH_MAX);
}

static void write_to(const char *file, const char *text)
{
    char path[PATH_MAX];
    group_path(path, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* A process that sleeps, moved into that group. */
static pid_t sleeper_in(const char *group)
{
    char text[16], file[64];
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    snprintf(text, sizeof(text), "%d", (int)pid);
    snprintf(file, sizeof(file), "%scgroup.procs", group);
    write_to(file, text);
    return pid;
}

static void wait_ms(long ms)
{
    struct timespec time = {.tv_nsec = ms * 1000000};
    nanosleep(&time, NULL);
}

static bool returns_at_last(struct process_cgroup *cgroup)
{
    for (int tries = 0; tries < 1000; tries++) {
        if (process_cgroup_return(cgroup, false))
            return true;
        wait_ms(1);
    }
    return false;
}

static void one_is_used_again_and_all_are_removed(void **state)
{
    (void)state;
    char path[PATH_MAX];
    struct process_cgroups *cgroups = process_cgroups_new();
    struct process_cgroup *first = process_cgroup_take(cgroups);
    assert_non_null(first);
    int fd = process_cgroup_open(first);
    assert_true(fd >= 0);
    process_cgroup_close(first, fd);
    group_path(path, "cgroup.procs");
    assert_int_equal(access(path, R_OK), 0);
    struct process_cgroup *second = process_cgroup_take(cgroups);
    assert_ptr_not_equal(first, second);
    assert_true(process_cgroup_return(first, false));
    assert_ptr_equal(process_cgroup_take(cgroups), first);
    assert_true(process_cgroup_return(first, false));
    assert_true(process_cgroup_return(second, false));
    process_cgroups_free(cgroups);
    group_path(path, "");
    assert_int_equal(access(path, F_OK), -1);
}

static size_t open_fds(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static void only_one_stays_open(void **state)
{
    (void)state;
    struct process_cgroups *cgroups = process_cgroups_new();
    size_t before = open_fds();
    struct process_cgroup *first = process_cgroup_take(cgroups), *second = process_cgroup_take(cgroups);
    int kept = process_cgroup_open(first), fd = process_cgroup_open(second);
    process_cgroup_close(second, fd);
    process_cgroup_close(first, kept);
    assert_int_equal(process_cgroup_open(first), kept);
    assert_int_equal(open_fds(), before);
    assert_true(process_cgroup_return(second, false));
    assert_true(process_cgroup_return(first, false));
    assert_ptr_equal(process_cgroup_take(cgroups), first); /* before those that were given back earlier */
    assert_true(process_cgroup_return(first, true));       /* removed: another takes its part */
    assert_int_equal(open_fds(), before);
    assert_ptr_equal(process_cgroup_take(cgroups), second);
    assert_int_equal(process_cgroup_open(second), process_cgroup_open(second));
    assert_true(process_cgroup_return(second, true));
    assert_int_equal(open_fds(), before);
    process_cgroups_free(cgroups);
}

static void tells_who_lives_and_kills_them(void **state)
{
    (void)state;
    char path[PATH_MAX];
    int proc_fd = proc_open();
    struct process_cgroups *cgroups = process_cgroups_new();
    struct process_cgroup *cgroup = process_cgroup_take(cgroups), *other = process_cgroup_take(cgroups);
    group_path(path, "below");
    assert_int_equal(mkdir(path, 0755), 0);
    pid_t above = sleeper_in(""), below = sleeper_in("below/");
    struct process_pids members = {0};
    assert_int_equal(process_cgroup_list(cgroup, &members), 0);
    assert_int_equal(process_cgroup_list(cgroup, &members), 0); /* each is kept once */
    process_pids_sort(&members);
    assert_int_equal(members.count, 2);
    assert_int_equal(members.pids[0], above < below ? above : below);
    assert_int_equal(members.pids[1], above < below ? below : above);
    unsigned number = process_cgroup_number(cgroup);
    assert_int_not_equal(number, 0);
    assert_int_not_equal(process_cgroup_number(other), number);
    assert_int_equal(process_cgroup_number_of(cgroups, proc_fd, above), number);
    assert_int_equal(process_cgroup_number_of(cgroups, proc_fd, below), number);
    assert_int_equal(process_cgroup_number_of(cgroups, proc_fd, getpid()), 0);
    assert_true(process_cgroup_populated(cgroup));
    assert_false(process_cgroup_populated(other));
    assert_false(process_cgroup_return(cgroup, false));
    assert_true(process_cgroup_kill(cgroup));
    int status;
    assert_int_equal(waitpid(above, &status, 0), above);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(waitpid(below, &status, 0), below);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    members.count = 0;
    assert_int_equal(process_cgroup_list(cgroup, &members), 0);
    assert_int_equal(members.count, 0);
    process_pids_deinit(&members);
    /* the program made a group of its own: the next one does not get this */
    assert_true(returns_at_last(cgroup));
    group_path(path, "");
    assert_int_equal(access(path, F_OK), -1);
    process_cgroups_free(cgroups);
    close(proc_fd);
}

/* A child would be born frozen, and the server would wait for it for ever. */
static void a_frozen_one_is_not_used_again(void **state)
{
    (void)state;
    char path[PATH_MAX];
    struct process_cgroups *cgroups = process_cgroups_new();
    struct process_cgroup *cgroup = process_cgroup_take(cgroups);
    write_to("cgroup.freeze", "1");
    assert_true(process_cgroup_return(cgroup, false));
    group_path(path, "");
    assert_int_equal(access(path, F_OK), -1);
    process_cgroups_free(cgroups);
}

static void write_to_all(const char *text)
{
    char path[PATH_MAX];
    base_path(path, "cgroup.freeze");
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void one_that_was_frozen_while_nobody_had_it_is_not_used(void **state)
{
    (void)state;
    char path[PATH_MAX];
    struct process_cgroups *cgroups = process_cgroups_new();
    struct process_cgroup *cgroup = process_cgroup_take(cgroups);
    unsigned number = process_cgroup_number(cgroup);
    assert_int_equal(number, 1);
    assert_true(process_cgroup_return(cgroup, false));
    write_to("cgroup.freeze", "1");
    cgroup = process_cgroup_take(cgroups);
    assert_int_not_equal(process_cgroup_number(cgroup), number);
    group_path(path, "");
    assert_int_equal(access(path, F_OK), -1);
    assert_true(process_cgroup_return(cgroup, false));
    process_cgroups_free(cgroups);
}

static void none_is_used_while_all_are_frozen(void **state)
{
    (void)state;
    char path[PATH_MAX];
    struct process_cgroups *cgroups = process_cgroups_new();
    assert_true(process_cgroup_return(process_cgroup_take(cgroups), false));
    write_to_all("1");
    assert_null(process_cgroup_take(cgroups));
    assert_null(process_cgroup_take(cgroups));
    base_path(path, "");
    assert_in_range(count_named(path, ""), 2, 3); /* . and .., and one that is kept */
    write_to_all("0");
    struct process_cgroup *cgroup = process_cgroup_take(cgroups);
    assert_non_null(cgroup);
    assert_true(process_cgroup_return(cgroup, false));
    process_cgroups_free(cgroups);
}

/* Somebody may move a process into it, too. */
static void one_that_was_filled_while_nobody_had_it_is_not_used(void **state)
{
    (void)state;
    struct process_cgroups *cgroups = process_cgroups_new();
    struct process_cgroup *cgroup = process_cgroup_take(cgroups);
    assert_true(process_cgroup_return(cgroup, false));
    pid_t pid = sleeper_in("");
    cgroup = process_cgroup_take(cgroups);
    assert_int_not_equal(process_cgroup_number(cgroup), 1);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    process_cgroups_free(cgroups);
}

static void one_given_up_is_removed_when_it_is_empty(void **state)
{
    (void)state;
    char path[PATH_MAX];
    struct process_cgroups *cgroups = process_cgroups_new();
    struct process_cgroup *cgroup = process_cgroup_take(cgroups);
    group_path(path, "");
    pid_t pid = sleeper_in("");
    process_cgroup_abandon(cgroup);
    process_cgroup_take(cgroups);
    assert_int_equal(access(path, F_OK), 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int tries = 0; tries < 100 && access(path, F_OK) == 0; tries++) {
        process_cgroup_take(cgroups);
        wait_ms(1);
    }
    assert_int_equal(access(path, F_OK), -1);
    process_cgroups_free(cgroups);
}

/* Linux kills what clone3 puts into a group that was killed once. */
static void a_killed_one_is_not_used_again(void **state)
{
    (void)state;
    char path[PATH_MAX];
    struct process_cgroups *cgroups = process_cgroups_new();
    struct process_cgroup *cgroup = process_cgroup_take(cgroups);
    assert_true(process_cgroup_kill(cgroup));
    assert_true(process_cgroup_return(cgroup, true));
    group_path(path, "");
    assert_int_equal(access(path, F_OK), -1);
    process_cgroups_free(cgroups);
}

static void the_end_kills_and_removes(void **state)
{
    (void)state;
    int status;
    char path[PATH_MAX];
    struct process_cgroups *cgroups = process_cgroups_new();
    process_cgroup_take(cgroups);
    pid_t pid = sleeper_in("");
    process_cgroups_free(cgroups);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    snprintf(path, sizeof(path), "abxd-%d", (int)getpid());
    assert_int_equal(count_named(own_dir, path), 0);
}

/* Two servers side by side, each in another pid namespace even with one pid: neither takes the other's for stale. */
static void those_of_dead_servers_only_are_removed(void **state)
{
    (void)state;
    char living[64], stale[PATH_MAX + 64];
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct process_cgroups *cgroups = process_cgroups_new();
        _exit(write(ready[1], cgroups != NULL ? "y" : "n", 1) == 1 ? pause() : 1);
    }
    char answer;
    assert_int_equal(read(ready[0], &answer, 1), 1);
    assert_int_equal(answer, 'y');
    close(ready[0]);
    close(ready[1]);
    snprintf(stale, sizeof(stale), "%s/abxd-999999999/7", own_dir);
    *strrchr(stale, '/') = '\0';
    assert_int_equal(mkdir(stale, 0755), 0);
    strcat(stale, "/7");
    assert_int_equal(mkdir(stale, 0755), 0);
    snprintf(living, sizeof(living), "abxd-%d", (int)pid);
    process_cgroups_free(process_cgroups_new());
    assert_int_equal(access(stale, F_OK), -1);
    assert_int_equal(count_named(own_dir, "abxd-999999999"), 0);
    assert_int_equal(count_named(own_dir, living), 1);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    process_cgroups_free(process_cgroups_new());
    assert_int_equal(count_named(own_dir, living), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_is_used_again_and_all_are_removed),
        cmocka_unit_test(only_one_stays_open),
        cmocka_unit_test(tells_who_lives_and_kills_them),
        cmocka_unit_test(a_frozen_one_is_not_used_again),
        cmocka_unit_test(one_that_was_frozen_while_nobody_had_it_is_not_used),
        cmocka_unit_test(none_is_used_while_all_are_frozen),
        cmocka_unit_test(one_that_was_filled_while_nobody_had_it_is_not_used),
        cmocka_unit_test(one_given_up_is_removed_when_it_is_empty),
        cmocka_unit_test(a_killed_one_is_not_used_again),
        cmocka_unit_test(the_end_kills_and_removes),
        cmocka_unit_test(those_of_dead_servers_only_are_removed),
    };
    if (!has_cgroups() || !cgroup_dir(NULL, own_dir)) {
        printf("NOT RUN: control groups of programs: this machine lets none be made\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
