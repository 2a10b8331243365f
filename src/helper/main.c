/* abxd-helper: work that abxd starts in a process of its own, so that it can be ended with that process. Started by
 * abxd only. */
#include "helper/archive_tree.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int usage(void)
{
    fputs("usage: abxd-helper archive tar.gz|zip TOPNAME <DIRECTORY >ARCHIVE\n", stderr);
    return 1;
}

int main(int argc, char **argv)
{
    /* A reader that leaves shall end us by EPIPE, with the exit code that we promise. */
    signal(SIGPIPE, SIG_IGN);
    if (argc != 4 || strcmp(argv[1], "archive") != 0)
        return usage();
    enum archive_format format = archive_tree_format(argv[2]);
    if (format == ARCHIVE_FORMAT_UNKNOWN)
        return usage();
    if (archive_tree_write(STDIN_FILENO, STDOUT_FILENO, format, argv[3]) == 0)
        return 0;
    _exit(1); /* without the look for leaks of a debug build: a failed archive has some that are not ours */
}
