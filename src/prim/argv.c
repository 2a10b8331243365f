/* Copies of argument vectors; see the header. Called by prim/worker and prim/contexts. */
#include "prim/argv.h"

#include <stdlib.h>
#include <string.h>

void argv_free(char *const *argv)
{
    for (char *const *arg = argv; arg != NULL && *arg != NULL; arg++)
        free(*arg);
    free((void *)argv);
}

char **argv_copy(char *const *argv)
{
    size_t count = 0;
    while (argv[count] != NULL)
        count++;
    char **copy = calloc(count + 1, sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = strdup(argv[i]);
        if (copy[i] == NULL) {
            argv_free(copy);
            return NULL;
        }
    }
    return copy;
}
