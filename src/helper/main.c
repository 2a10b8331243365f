/* abxd-helper: work that abxd starts in a process of its own, so that it can be ended with that process. Started by
 * abxd only. */
#include "helper/archive_tree.h"
#include "helper/git.h"
#include "helper/shell_main.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int usage(void)
{
    fputs("usage: abxd-helper archive tar.gz|zip TOPNAME [DEV:INO:DIR_DEV:DIR_INO:NAME]... <DIRECTORY >ARCHIVE\n"
          "       abxd-helper git [--no-landlock] BASE_DIR [DEV:INO:DIR_DEV:DIR_INO:NAME]... 3<>CHANNEL\n"
          "       abxd-helper shell 3<>CHANNEL\n",
          stderr);
    return 1;
}

enum { GUARDS_MAX = 64 };

static int archive_main(int argc, char **argv)
{
    if (argc < 4 || argc > 4 + GUARDS_MAX)
        return usage();
    enum archive_format format = archive_tree_format(argv[2]);
    if (format == ARCHIVE_FORMAT_UNKNOWN)
        return usage();
    struct archive_guard guards[GUARDS_MAX];
    size_t guard_count = (size_t)argc - 4;
    for (size_t i = 0; i < guard_count; i++)
        if (archive_guard_parse(argv[4 + i], &guards[i]) != 0)
            return usage();
    if (archive_tree_write(STDIN_FILENO, STDOUT_FILENO, format, argv[3], guards, guard_count) == 0)
        return 0;
    _exit(1); /* without the look for leaks of a debug build: a failed archive has some that are not ours */
}

static int serve_git(int argc, char **argv)
{
    bool landlock = argc < 3 || strcmp(argv[2], "--no-landlock") != 0;
    int at = landlock ? 2 : 3;
    return argc > at ? git_main(argv[at], argv + at + 1, (size_t)(argc - at) - 1, landlock) : usage();
}

int main(int argc, char **argv)
{
    /* A reader that leaves shall end us by EPIPE, with the exit code that we promise. */
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1 && strcmp(argv[1], "archive") == 0)
        return archive_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "git") == 0)
        return serve_git(argc, argv);
    if (argc == 2 && strcmp(argv[1], "shell") == 0)
        return shell_main();
    return usage();
}
