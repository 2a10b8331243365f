/* Puts an upload's files in place, all or as many as can be, for upload.c. */
#include "prim/upload_place.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(struct err *err)
{
    return err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot take the upload");
}

struct target {
    size_t dir;
    const char *name;
};

static int compare_targets(const void *a, const void *b)
{
    const struct target *left = a, *right = b;
    if (left->dir != right->dir)
        return left->dir < right->dir ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* Two parts for one target: one of them would be lost without a word. */
static int check_distinct(const struct upload_batch *batch, struct err *err)
{
    struct target *targets = calloc(batch->count, sizeof(*targets));
    if (!targets)
        return no_memory(err);
    for (size_t i = 0; i < batch->count; i++)
        targets[i] = (struct target){batch->pending[i].target, batch->pending[i].replace.name};
    qsort(targets, batch->count, sizeof(*targets), compare_targets);
    int result = 0;
    for (size_t i = 1; i < batch->count && result == 0; i++) {
        if (compare_targets(&targets[i - 1], &targets[i]) == 0) {
            err_set(err, ERR_INVALID_REQUEST, "two files of this upload have the same target: %.100s", targets[i].name);
            result = err_field(err, "filename");
        }
    }
    free(targets);
    return result;
}

/* The answer for a file that will be in place; before the renames, so that nothing can fail after them. */
static int describe(const struct upload_batch *batch, size_t index, struct upload_file *file, struct err *err)
{
    const struct upload_pending *from = &batch->pending[index];
    char dir[PATH_MAX];
    if (confine_path_of(batch->dirs->items[from->target].fd, dir, sizeof(dir), err) != 0)
        return -1;
    file->size = from->size;
    memcpy(file->sha256, from->sha256, sizeof(file->sha256));
    if (asprintf(&file->path, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, from->replace.name) < 0) {
        file->path = NULL;
        return no_memory(err);
    }
    return 0;
}

/* Only now, so that an upload which fails before leaves no directories. They are on the file system of the temporary
 * file: nothing can be mounted below what did not exist. */
static int make_parents(struct upload_batch *batch, struct err *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct upload_pending *file = &batch->pending[i];
        if (!file->missing)
            continue;
        int fd = parents_make(batch->dirs->items[file->dir].fd, file->missing, &file->made, err);
        ssize_t target = fd < 0 ? -1 : upload_dirs_keep(batch->dirs, fd, err);
        if (target < 0)
            return err_field(err, batch->field);
        file->target = (size_t)target;
        file->replace.target_fd = batch->dirs->items[target].fd;
    }
    return 0;
}

static void remove_parents(struct upload_batch *batch)
{
    for (size_t i = batch->count; i-- > 0;) {
        struct upload_pending *file = &batch->pending[i];
        if (file->made > 0)
            parents_remove(batch->dirs->items[file->dir].fd, file->missing, file->made);
        file->made = 0;
    }
}

static int rename_all(struct upload_batch *batch, struct upload_file *files, size_t *renamed, struct err *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (describe(batch, i, &files[i], err) != 0)
            return -1;
    }
    for (; *renamed < batch->count; ++*renamed) {
        struct upload_pending *file = &batch->pending[*renamed];
        if (replace_rename(&file->replace, &files[*renamed].created, err) == 0)
            continue;
        if (*renamed > 0) {
            struct err cause = *err;
            err_set(err, cause.code, "%.180s (%zu files before it are in place already)", cause.text, *renamed);
            err->saved_errno = cause.saved_errno;
        }
        return -1;
    }
    return 0;
}

int upload_place(struct upload_batch *batch, struct upload_file *files, size_t *renamed, struct err *err)
{
    parents_lock();
    int result = make_parents(batch, err);
    if (result == 0)
        result = check_distinct(batch, err);
    if (result == 0)
        result = rename_all(batch, files, renamed, err);
    if (result != 0)
        remove_parents(batch);
    parents_unlock();
    return result;
}
