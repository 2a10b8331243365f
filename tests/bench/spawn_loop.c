/* The floor for starting programs; run by script/bench. Prints the median in microseconds of
 *   spawn_loop COUNT         posix_spawn and waitpid of `/bin/bash -c true`, with its output read from a pipe
 *   spawn_loop COUNT start PAUSE_US   posix_spawn of /bin/true alone, with a pipe made for its output
 * one after another, after that pause. */
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

static double run_once(char *const argv[], int start_only)
{
    int pipe_fds[2];
    double begin = now_us(), started;
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
    started = now_us();
    close(pipe_fds[1]);
    char output[4096];
    while (read(pipe_fds[0], output, sizeof(output)) > 0)
        continue;
    close(pipe_fds[0]);
    int status;
    if (waitpid(pid, &status, 0) < 0)
        fail("waitpid", errno);
    return (start_only ? started : now_us()) - begin;
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
    double *times = calloc(count + 1, sizeof(*times));
    if (times == NULL || count == 0)
        fail("usage: spawn_loop COUNT", EINVAL);
    int start_only = argc > 3 && strcmp(argv[2], "start") == 0;
    useconds_t pause_us = start_only ? (useconds_t)strtoul(argv[3], NULL, 10) : 0;
    char *const shell[] = {"/bin/bash", "-c", "true", NULL}, *const program[] = {"/bin/true", NULL};
    for (size_t i = 0; i < count; i++) {
        if (pause_us > 0)
            usleep(pause_us);
        times[i] = run_once(start_only ? program : shell, start_only);
    }
    qsort(times, count, sizeof(*times), compare);
    printf("%.1f\n", times[count / 2]);
    free(times);
    return 0;
}
