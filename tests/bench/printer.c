/* Prints a line of 100 bytes every MILLISECONDS until it is ended: one of the many that run while script/bench asks for
 * /health. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char line[100];
    useconds_t pause_us = (useconds_t)(argc > 1 ? atoi(argv[1]) : 10) * 1000;
    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\n';
    while (write(STDOUT_FILENO, line, sizeof(line)) == (ssize_t)sizeof(line))
        usleep(pause_us);
    return 0;
}
