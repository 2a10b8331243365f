/* A read-only layer of configuration in memory, above the repository's own, for git_call_open. */
#include "helper/git_override.h"

#include "helper/git_inspect.h"

#include <fcntl.h>
#include <git2/sys/config.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void keep_entry(git_config_entry *entry)
{
    (void)entry; /* they are static */
}

#define OVERRIDE(key)                                                                                                  \
    {                                                                                                                  \
        .name = key, .value = "/dev/null", .level = GIT_CONFIG_LEVEL_APP, .free = keep_entry                           \
    }
static git_config_entry entries[] = {
    OVERRIDE("core.excludesfile"),
    OVERRIDE("core.attributesfile"),
    OVERRIDE("core.hookspath"),
    OVERRIDE("mailmap.file"),
};
enum { ENTRIES = sizeof entries / sizeof entries[0] };

struct layer {
    git_config_backend backend; /* first: libgit2 hands that back */
    unsigned keys;              /* a bit for each entry that is there */
};
struct layer_iterator {
    git_config_iterator iterator;
    unsigned keys, next;
};

static int layer_open(git_config_backend *backend, git_config_level_t level, const git_repository *repo)
{
    (void)backend, (void)level, (void)repo;
    return 0;
}

static int layer_get(git_config_backend *backend, const char *key, git_config_entry **out)
{
    for (unsigned i = 0; i < ENTRIES; i++) {
        if ((((struct layer *)backend)->keys & (1U << i)) == 0 || strcmp(key, entries[i].name) != 0)
            continue;
        *out = &entries[i];
        return 0;
    }
    return GIT_ENOTFOUND;
}

static int layer_set(git_config_backend *backend, const char *key, const char *value)
{
    (void)backend, (void)key, (void)value;
    return GIT_ERROR;
}

static int layer_set_multivar(git_config_backend *backend, const char *key, const char *pattern, const char *value)
{
    (void)backend, (void)key, (void)pattern, (void)value;
    return GIT_ERROR;
}

static int layer_del(git_config_backend *backend, const char *key)
{
    (void)backend, (void)key;
    return GIT_ERROR;
}

static int layer_del_multivar(git_config_backend *backend, const char *key, const char *pattern)
{
    (void)backend, (void)key, (void)pattern;
    return GIT_ERROR;
}

static int iterator_next(git_config_entry **out, git_config_iterator *iterator)
{
    struct layer_iterator *at = (struct layer_iterator *)iterator;
    while (at->next < ENTRIES && (at->keys & (1U << at->next)) == 0)
        at->next++;
    if (at->next == ENTRIES)
        return GIT_ITEROVER;
    *out = &entries[at->next++];
    return 0;
}

static void iterator_free(git_config_iterator *iterator)
{
    free(iterator);
}

static int layer_iterate(git_config_iterator **out, git_config_backend *backend)
{
    struct layer_iterator *iterator = calloc(1, sizeof(*iterator));
    if (!iterator)
        return GIT_ERROR;
    iterator->iterator = (git_config_iterator){.backend = backend, .next = iterator_next, .free = iterator_free};
    iterator->keys = ((struct layer *)backend)->keys;
    *out = &iterator->iterator;
    return 0;
}

static git_config_backend *layer_new(unsigned keys);

static int layer_snapshot(git_config_backend **out, git_config_backend *backend)
{
    *out = layer_new(((struct layer *)backend)->keys);
    return *out ? 0 : GIT_ERROR;
}

static int layer_lock(git_config_backend *backend)
{
    (void)backend;
    return GIT_ERROR;
}

static int layer_unlock(git_config_backend *backend, int success)
{
    (void)backend, (void)success;
    return GIT_ERROR;
}

static void layer_free(git_config_backend *backend)
{
    free(backend);
}

static git_config_backend *layer_new(unsigned keys)
{
    struct layer *layer = calloc(1, sizeof(*layer));
    if (!layer)
        return NULL;
    layer->keys = keys;
    layer->backend = (git_config_backend){
        .version = GIT_CONFIG_BACKEND_VERSION,
        .readonly = 1, /* so that what is set goes to the repository's own file */
        .open = layer_open,
        .get = layer_get,
        .set = layer_set,
        .set_multivar = layer_set_multivar,
        .del = layer_del,
        .del_multivar = layer_del_multivar,
        .iterator = layer_iterate,
        .snapshot = layer_snapshot,
        .lock = layer_lock,
        .unlock = layer_unlock,
        .free = layer_free,
    };
    return &layer->backend;
}

static bool is_set(git_config *config, const char *key)
{
    const char *value;
    return git_config_get_string(&value, config, key) == 0;
}

/* A path with "~" cannot be told, as nobody's home counts: it leads out. */
static bool leads_out(const struct git_call *call, git_config *config, const char *key)
{
    git_buf value = {0};
    struct err err;
    char path[PATH_MAX];
    int fd = -1, rc = git_config_get_path(&value, config, key);
    if (rc != 0)
        return rc != GIT_ENOTFOUND || is_set(config, key);
    /* A relative one begins at the working tree; where there is none, wherever this process stands. */
    bool is_known = value.ptr[0] == '/' || !git_repository_is_bare(call->repo);
    if (is_known && git_inspect_join(path, call->root, value.ptr, &err) == 0)
        fd = confine_open(call->confine, path, strlen(path), O_PATH, &err);
    git_buf_dispose(&value);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

int git_override_config(const struct git_call *call, struct err *err)
{
    git_config *config = NULL, *snapshot = NULL;
    unsigned keys = 0;
    int rc = git_repository_config(&config, call->repo);
    if (rc == 0)
        rc = git_config_snapshot(&snapshot, config);
    for (unsigned i = 0; rc == 0 && i < ENTRIES; i++)
        if (leads_out(call, snapshot, entries[i].name))
            keys |= 1U << i;
    if (rc == 0 && keys != 0) {
        git_config_backend *layer = layer_new(keys);
        rc = layer ? git_config_add_backend(config, layer, GIT_CONFIG_LEVEL_APP, call->repo, true) : GIT_ERROR;
        if (rc < 0 && layer)
            layer_free(layer);
    }
    git_config_free(snapshot);
    git_config_free(config);
    return rc < 0 ? git_fail(err, rc, "cannot read the repository's configuration") : 0;
}
