/* Copies of specs, which outlive those who made them; see the header. Called by prim/worker and prim/contexts. */
#include "prim/worker_spec.h"

#include <stdlib.h>
#include <string.h>

static void free_argv(char *const *argv)
{
    for (char *const *arg = argv; arg != NULL && *arg != NULL; arg++)
        free(*arg);
    free((void *)argv);
}

static char **copy_argv(char *const *argv)
{
    size_t count = 0;
    while (argv[count] != NULL)
        count++;
    char **copy = calloc(count + 1, sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = strdup(argv[i]);
        if (copy[i] == NULL) {
            free_argv(copy);
            return NULL;
        }
    }
    return copy;
}

int worker_spec_copy(const struct worker_spec *from, struct worker_spec *out)
{
    struct worker_spec copy = *from;
    copy.name = strdup(from->name);
    copy.package = from->package != NULL ? strdup(from->package) : NULL;
    copy.argv = copy_argv(from->argv);
    copy.calls_at_once = from->calls_at_once > 0 ? from->calls_at_once : 1;
    if (copy.name == NULL || copy.argv == NULL || (copy.package == NULL && from->package != NULL)) {
        worker_spec_deinit(&copy);
        return -1;
    }
    *out = copy;
    return 0;
}

void worker_spec_deinit(struct worker_spec *spec)
{
    free_argv(spec->argv);
    free((char *)spec->name);
    free((char *)spec->package);
}
