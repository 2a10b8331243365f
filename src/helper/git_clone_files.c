/* Writes the files of a fresh clone into its folder, on a few threads. libgit2's own checkout looks at what may stand
 * on the way to each file, and takes its real path to find attributes: in a folder that was made a moment ago nothing
 * stands, and what comes there all the same is met by O_EXCL and O_NOFOLLOW. */
#include "helper/git_clone_files.h"

#include <errno.h>
#include <fcntl.h>
#include <git2/sys/path.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS_MAX = 4, FILES_PER_THREAD = 256 };

struct files {
    const struct git_call *call;
    const char *git_dir;
    git_oid commit;
    int root_fd;
    bool filters;             /* some folder has attributes */
    git_index_entry *entries; /* in the index's order; the paths are the index's */
    size_t count;
};

/* What one thread writes: entries from `begin` to before `end`. */
struct writer {
    const struct files *files;
    size_t begin, end;
    git_repository *repo; /* its own handle; bare, so that attributes come from the commit alone */
    const char *dir;      /* the folder that is open, dir_len bytes of a path */
    size_t dir_len;
    int dir_fd; /* -1: none yet */
    bool late;
    int rc;
    struct err err;
    pthread_t thread;
};

static int fail(struct writer *writer, const char *what, const char *path)
{
    int reason = errno;
    return err_set_errno(&writer->err, err_from_errno(reason), reason, "%s %.150s", what, path);
}

/* Opens the folder `name` of dir_fd, made where it is missing. -1 with errno. */
static int open_folder(int dir_fd, const char *name)
{
    if (mkdirat(dir_fd, name, 0755) != 0 && errno != EEXIST)
        return -1;
    return openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int enter_folder(struct writer *writer, const char *path, size_t len)
{
    char names[PATH_MAX];
    if (writer->dir_fd >= 0 && len == writer->dir_len && memcmp(path, writer->dir, len) == 0)
        return 0;
    if (len >= sizeof names)
        return err_set(&writer->err, ERR_INVALID_PATH, "a path of the tree is too long");
    memcpy(names, path, len);
    names[len] = '\0';
    int fd = openat(writer->files->root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *rest = NULL;
    for (char *name = strtok_r(names, "/", &rest); name && fd >= 0; name = strtok_r(NULL, "/", &rest)) {
        int next = open_folder(fd, name), reason = errno;
        close(fd);
        errno = reason;
        fd = next;
    }
    if (fd < 0)
        return fail(writer, "cannot make the folder of", path);
    if (writer->dir_fd >= 0)
        close(writer->dir_fd);
    writer->dir_fd = fd;
    writer->dir = path;
    writer->dir_len = len;
    return 0;
}

static int write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t written = write(fd, bytes, len);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -1;
        bytes += written;
        len -= (size_t)written;
    }
    return 0;
}

static int write_bytes(struct writer *writer, const git_index_entry *entry, const char *name, const char *bytes,
                       size_t len, struct stat *out)
{
    int fd = openat(writer->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, entry->mode & 0777);
    if (fd < 0)
        return fail(writer, "cannot make", entry->path);
    int rc = write_all(fd, bytes, len);
    if (rc == 0)
        rc = fstat(fd, out);
    /* Some file systems say only at the end that the disk is full. */
    if (close(fd) != 0 && errno != EINTR)
        rc = -1;
    return rc == 0 ? 0 : fail(writer, "cannot write", entry->path);
}

static int write_file(struct writer *writer, const git_index_entry *entry, const char *name, git_blob *blob,
                      struct stat *out)
{
    if (!writer->files->filters)
        return write_bytes(writer, entry, name, git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob), out);
    git_blob_filter_options options;
    git_blob_filter_options_init(&options, GIT_BLOB_FILTER_OPTIONS_VERSION);
    options.flags = GIT_BLOB_FILTER_NO_SYSTEM_ATTRIBUTES | GIT_BLOB_FILTER_ATTRIBUTES_FROM_COMMIT;
    options.attr_commit_id = writer->files->commit;
    git_buf filtered = GIT_BUF_INIT;
    int rc = git_blob_filter(&filtered, blob, entry->path, &options);
    rc = rc < 0 ? git_fail(&writer->err, rc, "cannot check out")
                : write_bytes(writer, entry, name, filtered.ptr, filtered.size, out);
    git_buf_dispose(&filtered);
    return rc;
}

static int write_link(struct writer *writer, const git_index_entry *entry, const char *name, git_blob *blob,
                      struct stat *out)
{
    char target[PATH_MAX];
    size_t len = (size_t)git_blob_rawsize(blob);
    if (len >= sizeof target)
        return err_set(&writer->err, ERR_INVALID_PATH, "a link of the tree is too long: %.150s", entry->path);
    memcpy(target, git_blob_rawcontent(blob), len);
    target[len] = '\0';
    if (symlinkat(target, writer->dir_fd, name) != 0 || fstatat(writer->dir_fd, name, out, AT_SYMLINK_NOFOLLOW) != 0)
        return fail(writer, "cannot make the link", entry->path);
    return 0;
}

/* A submodule is an empty folder until somebody asks for it. */
static int make_submodule(struct writer *writer, const git_index_entry *entry, const char *name, struct stat *out)
{
    int fd = open_folder(writer->dir_fd, name), rc = -1;
    if (fd < 0 || fstat(fd, out) != 0)
        fail(writer, "cannot make the folder of", entry->path);
    else
        rc = 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

/* So that the files need not be read to tell that they are as they were written. */
static void keep_stat(git_index_entry *entry, const struct stat *found)
{
    entry->ctime = (git_index_time){(int32_t)found->st_ctim.tv_sec, (uint32_t)found->st_ctim.tv_nsec};
    entry->mtime = (git_index_time){(int32_t)found->st_mtim.tv_sec, (uint32_t)found->st_mtim.tv_nsec};
    entry->dev = (uint32_t)found->st_rdev; /* as libgit2 has it */
    entry->ino = (uint32_t)found->st_ino;
    entry->uid = found->st_uid;
    entry->gid = found->st_gid;
    entry->file_size = (uint32_t)found->st_size;
}

static int write_entry(struct writer *writer, git_index_entry *entry)
{
    const char *slash = strrchr(entry->path, '/'), *name = slash ? slash + 1 : entry->path;
    git_blob *blob = NULL;
    struct stat found;
    if (enter_folder(writer, entry->path, slash ? (size_t)(slash - entry->path) : 0) != 0)
        return -1;
    int rc = entry->mode == GIT_FILEMODE_COMMIT ? 0 : git_blob_lookup(&blob, writer->repo, &entry->id);
    if (rc < 0)
        return git_fail(&writer->err, rc, "cannot check out");
    if (!blob)
        rc = make_submodule(writer, entry, name, &found);
    else if (entry->mode == GIT_FILEMODE_LINK)
        rc = write_link(writer, entry, name, blob, &found);
    else
        rc = write_file(writer, entry, name, blob, &found);
    git_blob_free(blob);
    if (rc == 0)
        keep_stat(entry, &found);
    return rc;
}

static void *run_writer(void *ctx)
{
    struct writer *writer = ctx;
    writer->rc = git_repository_open_bare(&writer->repo, writer->files->git_dir);
    if (writer->rc < 0)
        git_fail(&writer->err, writer->rc, "cannot open the repository");
    for (size_t i = writer->begin; writer->rc == 0 && i < writer->end; i++) {
        writer->late = git_call_late(writer->files->call);
        writer->rc = writer->late ? -1 : write_entry(writer, &writer->files->entries[i]);
    }
    if (writer->dir_fd >= 0)
        close(writer->dir_fd);
    git_repository_free(writer->repo);
    return NULL;
}

static size_t thread_count(size_t files)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = files / FILES_PER_THREAD + 1;
    count = count < THREADS_MAX ? count : THREADS_MAX;
    return cores > 0 && (size_t)cores < count ? (size_t)cores : count;
}

/* One part is this thread's own, and so is every part for which there is no thread to be had. */
static int write_files(const struct files *files, struct err *err)
{
    struct writer writers[THREADS_MAX];
    bool runs[THREADS_MAX] = {false}, late = false;
    size_t count = thread_count(files->count), failed = count;
    for (size_t i = 0; i < count; i++) {
        writers[i] = (struct writer){.files = files, .dir_fd = -1};
        writers[i].begin = files->count * i / count;
        writers[i].end = files->count * (i + 1) / count;
        runs[i] = i > 0 && pthread_create(&writers[i].thread, NULL, run_writer, &writers[i]) == 0;
    }
    for (size_t i = 0; i < count; i++)
        if (!runs[i])
            run_writer(&writers[i]);
    for (size_t i = 0; i < count; i++) {
        if (runs[i])
            pthread_join(writers[i].thread, NULL);
        late = late || writers[i].late;
        failed = writers[i].rc != 0 && failed == count ? i : failed;
    }
    if (late)
        return git_fail(err, git_stop(NULL), "cannot clone");
    if (failed < count)
        *err = writers[failed].err;
    return failed < count ? -1 : 0;
}

/* The entries as the tree has them: the index refuses paths that lead out or into `.git`. What it lets pass and a
 * checkout does not is refused here. */
static int take_entries(struct files *files, git_index *index, struct err *err)
{
    static const char attributes[] = ".gitattributes";
    files->count = git_index_entrycount(index);
    files->entries = calloc(files->count + 1, sizeof *files->entries);
    if (!files->entries)
        return err_set(err, ERR_INTERNAL, "out of memory");
    for (size_t i = 0; i < files->count; i++) {
        const git_index_entry *entry = git_index_get_byindex(index, i);
        const char *slash = strrchr(entry->path, '/'), *name = slash ? slash + 1 : entry->path;
        files->entries[i] = *entry;
        files->filters = files->filters || strcmp(name, attributes) == 0;
        if (entry->mode == GIT_FILEMODE_LINK &&
            git_path_is_gitfile(name, strlen(name), GIT_PATH_GITFILE_GITMODULES, GIT_PATH_FS_GENERIC) > 0)
            return err_set(err, ERR_INVALID_REQUEST, "cannot check out a link in the place of %.150s", entry->path);
    }
    return 0;
}

static int write_index(const struct files *files, git_index *index, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < files->count && rc == 0; i++)
        rc = git_index_add(index, &files->entries[i]);
    if (rc == 0)
        rc = git_index_write(index);
    return rc == 0 ? 0 : git_fail(err, rc, "cannot write the index");
}

/* libgit2 notes in a new repository what its file system cannot do. */
static bool is_plain(git_repository *repo)
{
    git_config *config = NULL;
    int links = 1, folds = 0, modes = 1;
    if (git_repository_config_snapshot(&config, repo) != 0)
        return false;
    git_config_get_bool(&links, config, "core.symlinks");
    git_config_get_bool(&folds, config, "core.ignorecase");
    git_config_get_bool(&modes, config, "core.filemode");
    git_config_free(config);
    return links && modes && !folds;
}

int git_clone_files(const struct git_call *call, git_commit *commit, struct err *err)
{
    struct files files = {.call = call, .git_dir = git_repository_path(call->repo), .commit = *git_commit_id(commit)};
    git_index *index = NULL;
    git_tree *tree = NULL;
    if (!is_plain(call->repo))
        return 1;
    files.root_fd = open(git_repository_workdir(call->repo), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (files.root_fd < 0)
        return err_set_errno(err, err_from_errno(errno), errno, "cannot open the clone");
    int rc = git_repository_index(&index, call->repo);
    if (rc == 0)
        rc = git_commit_tree(&tree, commit);
    if (rc == 0)
        rc = git_index_read_tree(index, tree);
    if (rc != 0)
        git_fail(err, rc, "cannot check out what was cloned");
    if (rc == 0)
        rc = take_entries(&files, index, err);
    if (rc == 0)
        rc = write_files(&files, err);
    if (rc == 0)
        rc = write_index(&files, index, err);
    free(files.entries);
    git_tree_free(tree);
    git_index_free(index);
    close(files.root_fd);
    return rc == 0 ? 0 : -1;
}
