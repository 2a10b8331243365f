/* Names that divide a working tree, see the header: those at its root, and where one of them holds most of the files,
 * those in it instead. */
#include "helper/git_status_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_MAX = 4096, DEPTH_MAX = 16 };

/* 1: there are too many. */
static int add_name(struct git_status_parts *parts, const char *path, size_t len, size_t weight)
{
    if (parts->count == NAMES_MAX)
        return 1;
    if (parts->count == parts->cap) {
        size_t cap = parts->cap ? parts->cap * 2 : 64;
        char **names = realloc(parts->names, cap * sizeof *names);
        parts->names = names ? names : parts->names;
        size_t *weights = names ? realloc(parts->weights, cap * sizeof *weights) : NULL;
        parts->weights = weights ? weights : parts->weights;
        if (!weights)
            return -1;
        parts->cap = cap;
    }
    char *copy = strndup(path, len);
    if (!copy)
        return -1;
    parts->names[parts->count] = copy;
    parts->weights[parts->count++] = weight;
    return 0;
}

/* The tracked names in the folder `prefix` ("" or "a/b/"). */
static int add_tracked(struct git_status_parts *parts, git_index *index, const char *prefix)
{
    size_t prefix_len = strlen(prefix), at = 0, count = git_index_entrycount(index);
    if (prefix_len > 0 && git_index_find_prefix(&at, index, prefix) != 0)
        return 0;
    for (int rc = 0; at < count;) {
        const char *path = git_index_get_byindex(index, at)->path;
        if (strncmp(path, prefix, prefix_len) != 0)
            break;
        size_t begin = at++, len = prefix_len + strcspn(path + prefix_len, "/");
        if (path[len] == '/') {
            len++;
            while (at < count && strncmp(git_index_get_byindex(index, at)->path, path, len) == 0)
                at++;
        }
        rc = add_name(parts, path, len, at - begin);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int add_found(struct git_status_parts *parts, const char *root, const char *prefix)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/%s", root, prefix), rc = 0;
    int fd = len < (int)sizeof path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        close(fd);
    if (!dir)
        return 1;
    for (const struct dirent *entry; rc == 0 && (entry = readdir(dir)) != NULL;) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (strcmp(name, ".git") == 0) {
            rc = prefix[0] ? 1 : 0; /* a repository of its own */
            continue;
        }
        len = snprintf(path, sizeof path, "%s%s%s", prefix, name, entry->d_type == DT_DIR ? "/" : "");
        rc = entry->d_type != DT_UNKNOWN && len < (int)sizeof path ? add_name(parts, path, (size_t)len, 0) : 1;
    }
    closedir(dir);
    return rc;
}

struct named {
    char *name;
    size_t weight;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* Sorts, and makes one of those with the same name. */
static int add_up(struct git_status_parts *parts)
{
    struct named *all = calloc(parts->count + 1, sizeof *all);
    size_t kept = 0;
    if (!all)
        return -1;
    for (size_t i = 0; i < parts->count; i++)
        all[i] = (struct named){parts->names[i], parts->weights[i]};
    qsort(all, parts->count, sizeof *all, by_name);
    for (size_t i = 0; i < parts->count; i++) {
        if (kept > 0 && strcmp(parts->names[kept - 1], all[i].name) == 0) {
            parts->weights[kept - 1] += all[i].weight;
            free(all[i].name);
            continue;
        }
        parts->names[kept] = all[i].name;
        parts->weights[kept++] = all[i].weight;
    }
    parts->count = kept;
    free(all);
    return 0;
}

static int add_folder(struct git_status_parts *parts, const char *root, git_index *index, const char *prefix)
{
    int rc = add_tracked(parts, index, prefix);
    if (rc == 0)
        rc = add_found(parts, root, prefix);
    return rc == 0 ? add_up(parts) : rc;
}

static bool is_folder(const char *name)
{
    return name[strlen(name) - 1] == '/';
}

/* Puts what is in a folder in the place of its name. */
static int open_up(struct git_status_parts *parts, const char *root, git_index *index, size_t at)
{
    char *prefix = parts->names[at];
    parts->count--;
    memmove(parts->names + at, parts->names + at + 1, (parts->count - at) * sizeof *parts->names);
    memmove(parts->weights + at, parts->weights + at + 1, (parts->count - at) * sizeof *parts->weights);
    int rc = add_folder(parts, root, index, prefix);
    free(prefix);
    return rc;
}

int git_status_parts_read(const char *root, git_index *index, size_t count, struct git_status_parts *out)
{
    size_t total = git_index_entrycount(index);
    int rc = add_folder(out, root, index, "");
    for (int depth = 0; rc == 0 && depth < DEPTH_MAX; depth++) {
        size_t heaviest = 0;
        for (size_t i = 0; i < out->count; i++)
            heaviest = out->weights[i] > out->weights[heaviest] ? i : heaviest;
        if (out->count == 0 || out->weights[heaviest] <= total / count || !is_folder(out->names[heaviest]))
            break;
        rc = open_up(out, root, index, heaviest);
    }
    for (size_t part = 0, at = 0, weight = 0; rc == 0 && part < count; part++) {
        for (; at < out->count && (part + 1 == count || weight < total * (part + 1) / count); at++)
            weight += out->weights[at];
        out->starts[part + 1] = at;
    }
    return rc;
}

void git_status_parts_deinit(struct git_status_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        free(parts->names[i]);
    free(parts->names);
    free(parts->weights);
    *parts = (struct git_status_parts){0};
}
