/* The floor for POST /shell/stream: the same command with its output read from a pipe and thrown away. Prints bytes and
 * seconds; run by script/bench. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: pipe_reader COMMAND\n");
        return 2;
    }
    double begin = now_s();
    FILE *pipe = popen(argv[1], "r");
    if (pipe == NULL) {
        perror("pipe_reader");
        return 1;
    }
    static char buffer[65536];
    unsigned long long total = 0;
    ssize_t count;
    while ((count = read(fileno(pipe), buffer, sizeof(buffer))) > 0)
        total += (unsigned long long)count;
    pclose(pipe);
    printf("%llu %.6f\n", total, now_s() - begin);
    return 0;
}
