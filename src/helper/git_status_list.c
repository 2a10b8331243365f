/* The state of the files. Where there are many, the working tree is looked at in parts, each on a thread with a handle
 * of its own: libgit2 asks for the state of one file after the other. See the header. */
#include "helper/git_status_list.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENTRIES_PER_PART = 2000 }; /* fewer are done before another handle is open */

/* The names, or everything. */
static int read_list(git_repository *repo, git_status_show_t show, unsigned flags, git_strarray names,
                     git_status_list **out)
{
    git_status_options options;
    git_status_options_init(&options, GIT_STATUS_OPTIONS_VERSION);
    options.show = show;
    options.pathspec = names;
    /* With it, files that were touched but not changed are read once only; but another git, or another part, may hold
     * the index, or the disk be full or read-only. */
    options.flags = flags | GIT_STATUS_OPT_UPDATE_INDEX | GIT_STATUS_OPT_DISABLE_PATHSPEC_MATCH;
    int rc = git_status_list_new(out, repo, &options);
    if (rc < 0) {
        options.flags &= ~(unsigned)GIT_STATUS_OPT_UPDATE_INDEX;
        rc = git_status_list_new(out, repo, &options);
    }
    return rc;
}

/* How many parts are worth their handles. One where they cannot be put together by path: libgit2 leaves submodules out
 * by looking at both halves of an entry, and compares without case where the file system does. */
static size_t part_count(const struct git_call *call, unsigned flags, git_index *index)
{
    git_config *config = NULL;
    int folds = 0;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = git_index_entrycount(index) / ENTRIES_PER_PART;
    if (count < 2 || cores < 2 || (flags & GIT_STATUS_OPT_EXCLUDE_SUBMODULES) ||
        git_repository_config_snapshot(&config, call->repo) != 0)
        return 1;
    git_config_get_bool(&folds, config, "core.ignorecase");
    git_config_free(config);
    count = count < (size_t)cores ? count : (size_t)cores;
    count = count < GIT_STATUS_PARTS_MAX ? count : GIT_STATUS_PARTS_MAX;
    return folds ? 1 : count;
}

struct part {
    git_repository *repo;
    unsigned flags;
    git_strarray names;
    git_status_list *list;
    int rc;
    pthread_t thread;
};

static void *read_part(void *ctx)
{
    struct part *part = ctx;
    /* No names would mean everything. */
    if (part->names.count > 0)
        part->rc = read_list(part->repo, GIT_STATUS_SHOW_WORKDIR_ONLY, part->flags, part->names, &part->list);
    return NULL;
}

/* The handles of the parts but the first. */
static int open_handles(const struct git_call *call, size_t count, struct git_status_files *out)
{
    struct git_call *other = calloc(1, sizeof *other);
    struct err err;
    int rc = other ? 0 : -1;
    for (size_t i = 1; rc == 0 && i < count; i++) {
        *other = (struct git_call){.confine = call->confine, .path = call->path, .params = call->params};
        rc = git_call_open(other, &err);
        out->handles[i] = other->repo;
    }
    free(other);
    return rc;
}

/* -1: something failed; what was made is in *out. */
static int read_parts(const struct git_call *call, unsigned flags, const struct git_status_parts *names, size_t count,
                      struct git_status_files *out)
{
    struct part parts[GIT_STATUS_PARTS_MAX];
    bool runs[GIT_STATUS_PARTS_MAX] = {false};
    for (size_t i = 0; i < count; i++) {
        size_t begin = names->starts[i], end = names->starts[i + 1];
        parts[i] = (struct part){.repo = i ? out->handles[i] : call->repo, .flags = flags};
        parts[i].names = (git_strarray){names->names + begin, end - begin};
        runs[i] = i > 0 && pthread_create(&parts[i].thread, NULL, read_part, &parts[i]) == 0;
    }
    int rc = read_list(call->repo, GIT_STATUS_SHOW_INDEX_ONLY, flags, (git_strarray){0}, &out->staged);
    for (size_t i = 0; i < count; i++)
        if (!runs[i])
            read_part(&parts[i]);
    for (size_t i = 0; i < count; i++) {
        if (runs[i])
            pthread_join(parts[i].thread, NULL);
        out->unstaged[i] = parts[i].list;
        rc = rc < 0 ? rc : parts[i].rc;
    }
    return rc < 0 ? -1 : 0;
}

/* 1: it is to be done in one. */
static int read_cut(const struct git_call *call, unsigned flags, struct git_status_files *out)
{
    git_index *index = NULL;
    struct git_status_parts names = {0};
    if (git_repository_index(&index, call->repo) != 0)
        return 1;
    size_t count = part_count(call, flags, index);
    int rc = count < 2 ? 1 : git_status_parts_read(call->root, index, count, &names);
    if (rc == 0)
        rc = open_handles(call, count, out);
    if (rc == 0)
        rc = read_parts(call, flags, &names, count, out);
    git_status_parts_deinit(&names);
    git_index_free(index);
    return rc == 0 ? 0 : 1;
}

static const char *path_of(const git_status_entry *entry)
{
    return entry->index_to_workdir ? entry->index_to_workdir->old_file.path : entry->head_to_index->new_file.path;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(path_of(a), path_of(b));
}

/* All entries, by path; where both halves know a path, they become one, as in a list of libgit2. */
static int put_together(struct git_status_files *out, struct err *err)
{
    size_t count = out->staged ? git_status_list_entrycount(out->staged) : 0, all = count, kept = 0;
    for (size_t i = 0; i < GIT_STATUS_PARTS_MAX; i++)
        all += out->unstaged[i] ? git_status_list_entrycount(out->unstaged[i]) : 0;
    out->entries = calloc(all + 1, sizeof *out->entries);
    if (!out->entries)
        return err_set(err, ERR_INTERNAL, "out of memory");
    for (size_t i = 0; i < count; i++)
        out->entries[out->count++] = *git_status_byindex(out->staged, i);
    for (size_t i = 0; i < GIT_STATUS_PARTS_MAX; i++)
        for (size_t j = 0; out->unstaged[i] && j < git_status_list_entrycount(out->unstaged[i]); j++)
            out->entries[out->count++] = *git_status_byindex(out->unstaged[i], j);
    if (!out->staged)
        return 0; /* in order, and together already */
    qsort(out->entries, out->count, sizeof *out->entries, by_path);
    for (size_t i = 0; i < out->count; i++) {
        git_status_entry *last = kept ? &out->entries[kept - 1] : NULL, *entry = &out->entries[i];
        bool halves = last && !last->head_to_index != !entry->head_to_index && by_path(last, entry) == 0;
        if (!halves) {
            out->entries[kept++] = *entry;
            continue;
        }
        last->status |= entry->status;
        last->head_to_index = last->head_to_index ? last->head_to_index : entry->head_to_index;
        last->index_to_workdir = last->index_to_workdir ? last->index_to_workdir : entry->index_to_workdir;
    }
    out->count = kept;
    return 0;
}

int git_status_files_read(const struct git_call *call, unsigned flags, struct git_status_files *out, struct err *err)
{
    if (read_cut(call, flags, out) != 0) {
        git_status_files_deinit(out);
        int rc = read_list(call->repo, GIT_STATUS_SHOW_INDEX_AND_WORKDIR, flags, (git_strarray){0}, &out->unstaged[0]);
        if (rc < 0)
            return git_fail(err, rc, "cannot tell the state of the files");
    }
    return put_together(out, err);
}

void git_status_files_deinit(struct git_status_files *files)
{
    free(files->entries);
    git_status_list_free(files->staged);
    for (size_t i = 0; i < GIT_STATUS_PARTS_MAX; i++) {
        git_status_list_free(files->unstaged[i]);
        git_repository_free(files->handles[i]);
    }
    *files = (struct git_status_files){0};
}
