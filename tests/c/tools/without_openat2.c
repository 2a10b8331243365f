/* Runs a program in whose eyes the kernel has no openat2: `without_openat2 PROGRAM ARGUMENT…`. For the specs that run
 * the whole server so. Ends with 77 where this machine allows no seccomp filters. */
#include "refuse_openat2.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (!refuse_openat2(ENOSYS)) {
        fprintf(stderr, "no seccomp filters here: %s\n", strerror(errno));
        return 77;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
    return 127;
}
