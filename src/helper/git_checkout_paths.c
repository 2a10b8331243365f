/* Paths for checkouts, which libgit2 looks at twice: as what they are, and then as patterns, from which it takes the
 * backslashes away. For restore and git_overwrite.c. */
#include "helper/git.h"

#include <stdlib.h>
#include <string.h>

/* The pattern that means the path; NULL out of memory. */
static char *escape(const char *path)
{
    char *pattern = malloc(2 * strlen(path) + 1), *at = pattern;
    for (; pattern && *path; *at++ = *path++)
        if (*path == '\\')
            *at++ = '\\';
    if (pattern)
        *at = '\0';
    return pattern;
}

/* A path with a backslash is given both ways: as a path the one is wanted, as a pattern the other, and nothing else
 * passes both looks. */
int git_checkout_paths(git_checkout_options *options, git_strarray paths, struct err *err)
{
    char **strings = calloc(2 * paths.count + 1, sizeof(char *));
    size_t count = 0;
    bool failed = !strings;
    for (size_t i = 0; i < paths.count && !failed; i++) {
        strings[count++] = strdup(paths.strings[i]);
        failed = !strings[count - 1];
        if (failed || !strchr(paths.strings[i], '\\'))
            continue;
        strings[count++] = escape(paths.strings[i]);
        failed = !strings[count - 1];
    }
    options->paths = (git_strarray){strings, count};
    if (!failed)
        return 0;
    git_checkout_paths_free(options);
    return err_set(err, ERR_INTERNAL, "out of memory");
}

void git_checkout_paths_free(git_checkout_options *options)
{
    for (size_t i = 0; i < options->paths.count; i++)
        free(options->paths.strings[i]);
    free(options->paths.strings);
    options->paths = (git_strarray){0};
}
