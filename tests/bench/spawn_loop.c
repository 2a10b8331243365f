/* The floor for POST /shell: posix_spawn and waitpid of `/bin/bash -c true`, one after another, with its output read
 * from a pipe. Prints the median in microseconds; run by script/bench. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void fail(const char *what, int error)
{
    fprintf(stderr, "spawn_loop: %s: %s\n", what, strerror(error));
    exit(1);
}

static double run_once(char *const argv[])
{
    int pipe_fds[2];
    double begin = now_us();
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        fail("pipe2", errno);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
    pid_t pid;
    int error = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
    if (error != 0)
        fail(argv[0], error);
    posix_spawn_file_actions_destroy(&actions);
    close(pipe_fds[1]);
    char output[4096];
    while (read(pipe_fds[0], output, sizeof(output)) > 0)
        continue;
    close(pipe_fds[0]);
    int status;
    if (waitpid(pid, &status, 0) < 0)
        fail("waitpid", errno);
    return now_us() - begin;
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
    double *times = calloc(count + 1, sizeof(*times));
    if (times == NULL || count == 0)
        fail("usage: spawn_loop COUNT", EINVAL);
    char *const command[] = {"/bin/bash", "-c", "true", NULL};
    for (size_t i = 0; i < count; i++)
        times[i] = run_once(command);
    qsort(times, count, sizeof(*times), compare);
    printf("%.1f\n", times[count / 2]);
    free(times);
    return 0;
}
