/* Parameters of a call: plain values, and paths of the working tree; used by every operation of `abxd-helper git`. */
#include "base/base64.h"
#include "helper/git.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static const cJSON *param(const struct git_call *call, const char *name)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(call->params, name);
    return cJSON_IsNull(value) ? NULL : value;
}

const char *git_param_text(const struct git_call *call, const char *name)
{
    const cJSON *value = param(call, name);
    return cJSON_IsString(value) ? value->valuestring : NULL;
}

bool git_param_bool(const struct git_call *call, const char *name, bool otherwise)
{
    const cJSON *value = param(call, name);
    return cJSON_IsBool(value) ? cJSON_IsTrue(value) : otherwise;
}

int64_t git_param_int(const struct git_call *call, const char *name, int64_t otherwise)
{
    const cJSON *value = param(call, name);
    return cJSON_IsNumber(value) ? (int64_t)value->valuedouble : otherwise;
}

/* Where relative paths begin, as a path below the working tree's root: "" or "a/b". */
static const char *below_root(const struct git_call *call, const char *absolute)
{
    size_t len = strlen(call->root);
    while (len > 0 && call->root[len - 1] == '/')
        len--;
    if (strncmp(absolute, call->root, len) != 0 || (absolute[len] != '/' && absolute[len] != '\0'))
        return NULL;
    while (absolute[len] == '/')
        len++;
    return absolute + len;
}

static int is_outside(struct err *err, const char *path)
{
    return err_set(err, ERR_PATH_OUTSIDE_BASE, "the path leads out of the working tree: %s", path);
}

/* Appends the names of `path` to `clean`, by their text. -1: ".." leads above the root. */
static int append_names(char *clean, size_t size, const char *path)
{
    size_t len = strlen(clean);
    while (*path) {
        size_t name_len = strcspn(path, "/");
        if (name_len == 2 && path[0] == '.' && path[1] == '.') {
            if (len == 0)
                return -1;
            char *slash = strrchr(clean, '/');
            len = slash ? (size_t)(slash - clean) : 0;
        } else if (name_len > 0 && !(name_len == 1 && path[0] == '.')) {
            if (len + name_len + 2 > size)
                return -1;
            if (len > 0)
                clean[len++] = '/';
            memcpy(clean + len, path, name_len);
            len += name_len;
        }
        clean[len] = '\0';
        path += name_len;
        path += *path == '/';
    }
    return 0;
}

static bool has_git_dir(const char *path)
{
    for (; *path; path += *path == '/') {
        size_t name_len = strcspn(path, "/");
        if (name_len == 4 && strncasecmp(path, ".git", 4) == 0)
            return true;
        path += name_len;
    }
    return false;
}

/* Git tracks nothing beyond a link: what such a path would name is another place. */
static int check_links(const struct git_call *call, const char *path, struct err *err)
{
    char so_far[PATH_MAX];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        struct stat found;
        int len = snprintf(so_far, sizeof so_far, "%s/%.*s", call->root, (int)(slash - path), path);
        if (len < 0 || (size_t)len >= sizeof so_far)
            return err_set(err, ERR_INVALID_PATH, "the path is too long");
        if (lstat(so_far, &found) != 0)
            return 0;
        if (S_ISLNK(found.st_mode))
            return err_set(err, ERR_PATH_OUTSIDE_BASE, "the path leads through a symbolic link: %s", path);
    }
    return 0;
}

/* Makes an own copy of one path, relative to the root. */
static int add_path(const struct git_call *call, const char *text, struct git_paths *out, struct err *err)
{
    char clean[PATH_MAX] = "";
    const char *from = text[0] == '/' ? below_root(call, text) : text;
    if (!from)
        return is_outside(err, text);
    if (text[0] != '/') {
        const char *start = below_root(call, call->path);
        /* Where the path of the call is in the git directory, or the repository bare, paths begin at the root. */
        if (start && !has_git_dir(start) && append_names(clean, sizeof clean, start) != 0)
            return err_set(err, ERR_INVALID_PATH, "the path is too long");
    }
    if (strlen(clean) + strlen(from) + 2 > sizeof clean)
        return err_set(err, ERR_INVALID_PATH, "the path is too long");
    if (append_names(clean, sizeof clean, from) != 0)
        return is_outside(err, text);
    if (has_git_dir(clean))
        return err_set(err, ERR_INVALID_PATH, "the path is part of the repository itself: %s", text);
    if (check_links(call, clean, err) != 0)
        return -1;
    char *copy = strdup(clean);
    if (!copy)
        return err_set(err, ERR_INTERNAL, "out of memory");
    out->items[out->count++] = copy;
    return 0;
}

static int add_base64(const struct git_call *call, const char *encoded, struct git_paths *out, struct err *err)
{
    struct buf bytes;
    buf_init(&bytes, PATH_MAX);
    int rc = -1;
    if (base64_decode(&bytes, encoded, strlen(encoded)) != 0 || buf_append(&bytes, "", 1) != 0)
        err_set(err, ERR_INVALID_PATH, "not base64, or too long");
    else if (strlen(bytes.data) + 1 != bytes.len)
        err_set(err, ERR_INVALID_PATH, "a path has no NUL in it");
    else
        rc = add_path(call, bytes.data, out, err);
    buf_deinit(&bytes);
    return rc;
}

int git_param_paths(const struct git_call *call, const char *name, struct git_paths *out, struct err *err)
{
    char twin_name[64];
    snprintf(twin_name, sizeof twin_name, "%s_base64", name);
    const cJSON *plain = param(call, name), *twin = param(call, twin_name), *item;
    size_t count = (size_t)cJSON_GetArraySize(plain) + (size_t)cJSON_GetArraySize(twin);
    struct git_paths paths = {.items = calloc(count ? count : 1, sizeof(char *))};
    if (!paths.items)
        return err_set(err, ERR_INTERNAL, "out of memory");
    const char *field = name;
    int rc = 0;
    cJSON_ArrayForEach(item, plain) if (rc == 0 && cJSON_IsString(item)) rc =
        add_path(call, item->valuestring, &paths, err);
    if (rc == 0) {
        field = twin_name;
        cJSON_ArrayForEach(item, twin) if (rc == 0 && cJSON_IsString(item)) rc =
            add_base64(call, item->valuestring, &paths, err);
    }
    if (rc != 0) {
        git_paths_free(&paths);
        return err_field(err, field);
    }
    *out = paths;
    return 0;
}

void git_paths_free(struct git_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->items[i]);
    free(paths->items);
    *paths = (struct git_paths){0};
}

git_strarray git_paths_spec(const struct git_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        if (paths->items[i][0] == '\0')
            return (git_strarray){NULL, 0};
    return (git_strarray){paths->items, paths->count};
}
