/* The floor for a terminal's output: that of a program on one, read and thrown away. Run by script/bench.
 *
 *   pty_reader BYTES COMMAND
 * waits for "ready", types a line, and counts what comes until BYTES are there. Prints bytes and seconds. */
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void wait_output(int master, unsigned long long *have, unsigned long long until)
{
    static char buffer[65536];
    while (*have < until) {
        ssize_t count = read(master, buffer, sizeof(buffer));
        if (count <= 0) {
            perror("pty_reader: read");
            exit(1);
        }
        *have += (unsigned long long)count;
    }
}

int main(int argc, char **argv)
{
    struct winsize size = {.ws_col = 80, .ws_row = 24};
    int master;
    if (argc != 3) {
        fprintf(stderr, "usage: pty_reader BYTES COMMAND\n");
        return 2;
    }
    pid_t child = forkpty(&master, NULL, NULL, &size);
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", argv[2], (char *)NULL);
        _exit(127);
    }
    if (child < 0) {
        perror("pty_reader: forkpty");
        return 1;
    }
    unsigned long long bytes = strtoull(argv[1], NULL, 10), have = 0, before = strlen("ready");
    wait_output(master, &have, before);
    double begin = now_s();
    if (write(master, "\n", 1) != 1) {
        perror("pty_reader: write");
        return 1;
    }
    wait_output(master, &have, before + bytes);
    printf("%llu %.6f\n", have - before, now_s() - begin);
    close(master);
    waitpid(child, NULL, 0);
    return 0;
}
