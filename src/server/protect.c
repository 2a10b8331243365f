/* Keeps the operator's files out of the base directory, or guards them there; see the header. Called by server. */
#include "server/protect.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LUA_DIR_DEPTH_MAX = 8 };

static int protect(struct confine *confine, const char *path, struct err *err)
{
    bool inside = false;
    char *real = realpath(path, NULL);
    int failed = real ? confine_protect(confine, real, &inside, err) : 0;
    free(real);
    if (failed)
        return -1;
    if (inside && strcmp(confine_base_dir(confine), "/") != 0)
        return err_set(err, ERR_INVALID_REQUEST, "%s lies inside the base directory %s, within reach of clients", path,
                       confine_base_dir(confine));
    return 0;
}

/* A link in the tables' directory takes whatever it leads to for a table. */
static int protect_links(struct confine *confine, const char *dir, int depth, struct err *err)
{
    DIR *entries = depth < LUA_DIR_DEPTH_MAX ? opendir(dir) : NULL;
    int failed = 0;
    for (struct dirent *entry; entries && !failed && (entry = readdir(entries));) {
        char path[PATH_MAX];
        if (entry->d_name[0] == '.' || snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >= (int)sizeof(path))
            continue;
        if (entry->d_type == DT_LNK)
            failed = protect(confine, path, err);
        if (!failed && entry->d_type != DT_REG)
            failed = protect_links(confine, path, depth + 1, err);
    }
    if (entries)
        closedir(entries);
    return failed;
}

int protect_operator_files(struct confine *confine, const struct config *config, struct err *err)
{
    const char *const files[] = {config->lua_dir, config->workers_dir, config->config, config->commands,
                                 config->token_file};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (files[i] && protect(confine, files[i], err) != 0)
            return -1;
    return protect_links(confine, config->lua_dir, 0, err);
}
