/* Exchanges two names again and again until it is killed: `swap ONE OTHER`. For the specs in which a directory turns
 * into a link that leaves the base, and back, while clients work in it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    /* A pause that is by turns shorter and longer than a request, so that swaps fall before, into and after it. */
    for (unsigned turn = 0;; turn++) {
        struct timespec pause = {.tv_nsec = (turn % 16) * 50000L};
        if (renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) != 0 && errno != ENOENT) {
            fprintf(stderr, "%s and %s: %s\n", argv[1], argv[2], strerror(errno));
            return 1;
        }
        nanosleep(&pause, NULL);
    }
}
