/* The walk behind GET /download?archive=: goes down a tree by descriptors only and hands each entry to libarchive.
 * Called by the helper's main. */
#include "helper/archive_tree.h"

#include "base/utf8.h"
#include "helper/dir_names.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    LEVELS_MAX = 4096,
    /* Levels that keep their descriptor while the walk is below them; deeper ones are found again through "..". */
    LEVELS_OPEN_MAX = 100,
    /* A name in a zip has a length of 16 bits; 32 KiB leave room for the links of tar too. */
    PATH_BYTES_MAX = 32 * 1024,
    CHUNK_BYTES = 256 * 1024,
};

struct level {
    int fd; /* -1 while a level far below is walked */
    dev_t dev;
    ino_t ino;
    size_t path_len; /* of the directory itself */
    struct dir_names names;
    size_t next;
};

struct walk {
    struct archive *archive;
    struct archive_entry *entry;
    int out_fd;
    const struct archive_guard *guards;
    size_t guard_count;
    struct level levels[LEVELS_MAX];
    size_t depth; /* levels in use */
    char path[PATH_BYTES_MAX + 1];
    char link_target[PATH_BYTES_MAX + 1];
    char chunk[CHUNK_BYTES];
};

/* One line on stderr, which the parent logs: what the path holds cannot forge another. */
static void complain(const char *path, const char *what)
{
    fputs("archive: ", stderr);
    for (const char *at = path; *at; at++) {
        bool plain = (unsigned char)*at >= 0x20 && *at != 0x7f;
        fputc(plain ? *at : '?', stderr);
    }
    fprintf(stderr, ": %s\n", what);
}

static la_ssize_t on_write(struct archive *archive, void *ctx, const void *bytes, size_t len)
{
    const struct walk *walk = ctx;
    for (;;) {
        ssize_t written = write(walk->out_fd, bytes, len);
        if (written >= 0)
            return written; /* libarchive comes again for the rest */
        if (errno == EINTR)
            continue;
        archive_set_error(archive, errno, "write: %s", strerror(errno));
        return -1;
    }
}

/* Files of these are made up when they are read, some with effects; the server reads none of them. */
static bool is_kernel_filesystem(int fd)
{
    struct statfs about;
    return fstatfs(fd, &about) == 0 && (about.f_type == PROC_SUPER_MAGIC || about.f_type == SYSFS_MAGIC);
}

/* Appends "/name" to the path of the current level; -1 where it becomes too long. */
static int set_path(struct walk *walk, const struct level *level, const char *name)
{
    size_t len = strlen(name);
    if (level->path_len + 1 + len > PATH_BYTES_MAX)
        return -1;
    walk->path[level->path_len] = '/';
    memcpy(walk->path + level->path_len + 1, name, len + 1);
    return 0;
}

/* 1 written, 0 left out (said so), -1 the archive is lost. */
static int write_header(struct walk *walk, const struct stat *about, const char *link_target)
{
    struct archive_entry *entry = archive_entry_clear(walk->entry);
    archive_entry_copy_stat(entry, about);
    archive_entry_copy_pathname(entry, walk->path);
    if (!S_ISREG(about->st_mode))
        archive_entry_set_size(entry, 0);
    archive_entry_set_nlink(entry, 1); /* hard links go in as files of their own */
    if (link_target)
        archive_entry_copy_symlink(entry, link_target);
    /* libarchive goes by the locale: it marks a zip's names as UTF-8, and readers refuse the whole archive for one
     * false mark; names in tar that the locale cannot read are stored as bytes (hdrcharset=BINARY, only there: GNU tar
     * warns). */
    bool is_utf8 =
        utf8_valid(walk->path, strlen(walk->path)) && (!link_target || utf8_valid(link_target, strlen(link_target)));
    setlocale(LC_CTYPE, is_utf8 ? "C.UTF-8" : "C");
    int result = archive_write_header(walk->archive, entry);
    if (result == ARCHIVE_OK || result == ARCHIVE_WARN)
        return 1;
    const char *why = archive_error_string(walk->archive);
    complain(walk->path, why ? why : "cannot be stored");
    return result == ARCHIVE_FAILED ? 0 : -1;
}

static int lose(struct walk *walk, const char *why)
{
    complain(walk->path, why);
    return -1;
}

/* Exactly size bytes: what was appended since is left out, what is missing ends the archive. */
static int write_content(struct walk *walk, int fd, off_t size)
{
    while (size > 0) {
        size_t want = size < CHUNK_BYTES ? (size_t)size : CHUNK_BYTES;
        ssize_t got = read(fd, walk->chunk, want);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return lose(walk, strerror(errno));
        if (got == 0)
            return lose(walk, "the file became shorter while it was read");
        for (ssize_t done = 0; done < got;) {
            la_ssize_t took = archive_write_data(walk->archive, walk->chunk + done, (size_t)(got - done));
            if (took <= 0)
                return lose(walk, archive_error_string(walk->archive));
            done += took;
        }
        size -= got;
    }
    if (archive_write_finish_entry(walk->archive) < ARCHIVE_WARN)
        return lose(walk, archive_error_string(walk->archive));
    return 0;
}

static int add_file(struct walk *walk, const struct level *level, const char *name)
{
    /* O_NONBLOCK: should a FIFO have taken the place of the file, the open does not wait for its writer. */
    int fd = openat(level->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat about;
    if (fd < 0 || fstat(fd, &about) != 0) {
        complain(walk->path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return 0;
    }
    int result = 0;
    if (!S_ISREG(about.st_mode) || (about.st_dev != level->dev && is_kernel_filesystem(fd))) {
        complain(walk->path, "not a regular file, left out");
    } else {
        result = write_header(walk, &about, NULL);
        if (result == 1)
            result = write_content(walk, fd, about.st_size);
    }
    close(fd);
    return result;
}

static int add_link(struct walk *walk, const struct level *level, const char *name, const struct stat *about)
{
    ssize_t len = readlinkat(level->fd, name, walk->link_target, PATH_BYTES_MAX);
    if (len < 0) {
        complain(walk->path, strerror(errno));
        return 0;
    }
    walk->link_target[len] = '\0';
    return write_header(walk, about, walk->link_target) < 0 ? -1 : 0;
}

/* Takes fd. The entry of the directory itself goes first; walk->path is its path. */
static int push_level(struct walk *walk, int fd)
{
    struct stat about;
    struct dir_names names = {0};
    if (walk->depth == LEVELS_MAX) {
        complain(walk->path, "too deep, left out");
    } else if (fstat(fd, &about) != 0 || dir_names_read(&names, fd) != 0) {
        complain(walk->path, strerror(errno));
    } else if (is_kernel_filesystem(fd)) {
        complain(walk->path, "a file system of the kernel, left out");
    } else {
        int result = write_header(walk, &about, NULL);
        if (result == 1) {
            if (walk->depth >= LEVELS_OPEN_MAX) {
                struct level *parent = &walk->levels[walk->depth - 1];
                close(parent->fd);
                parent->fd = -1;
            }
            walk->levels[walk->depth++] = (struct level){
                .fd = fd, .dev = about.st_dev, .ino = about.st_ino, .path_len = strlen(walk->path), .names = names};
            return 0;
        }
        dir_names_deinit(&names);
        close(fd);
        return result;
    }
    dir_names_deinit(&names);
    close(fd);
    return 0;
}

/* Opens the parent again through "..", if that is still the same directory: a level moved meanwhile must not lead the
 * walk to a place that nobody asked for. */
static void reopen_parent(struct walk *walk, struct level *parent, int child_fd)
{
    int fd = openat(child_fd, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat about;
    if (fd >= 0 && fstat(fd, &about) == 0 && about.st_dev == parent->dev && about.st_ino == parent->ino) {
        parent->fd = fd;
        return;
    }
    if (fd >= 0)
        close(fd);
    walk->path[parent->path_len] = '\0';
    complain(walk->path, "moved away while it was read, its rest is left out");
    parent->next = parent->names.count;
}

static void pop_level(struct walk *walk)
{
    struct level *level = &walk->levels[--walk->depth];
    if (walk->depth > 0 && level[-1].fd < 0) {
        if (level->fd >= 0)
            reopen_parent(walk, &level[-1], level->fd);
        else
            level[-1].next = level[-1].names.count; /* the way back is lost for the levels above too */
    }
    if (level->fd >= 0)
        close(level->fd);
    dir_names_deinit(&level->names);
}

static bool is_guarded(const struct walk *walk, const struct level *level, const char *name, const struct stat *about)
{
    for (size_t i = 0; i < walk->guard_count; i++) {
        const struct archive_guard *guard = &walk->guards[i];
        if ((about->st_dev == guard->dev && about->st_ino == guard->ino) ||
            (level->dev == guard->dir_dev && level->ino == guard->dir_ino && strcmp(name, guard->name) == 0))
            return true;
    }
    return false;
}

static int visit(struct walk *walk, const struct level *level, const char *name)
{
    if (set_path(walk, level, name) != 0) {
        walk->path[level->path_len] = '\0';
        complain(walk->path, "an entry with too long a path is left out");
        return 0;
    }
    struct stat about;
    if (fstatat(level->fd, name, &about, AT_SYMLINK_NOFOLLOW) != 0) {
        complain(walk->path, strerror(errno));
        return 0;
    }
    if (is_guarded(walk, level, name, &about))
        return 0;
    if (S_ISREG(about.st_mode))
        return add_file(walk, level, name);
    if (S_ISLNK(about.st_mode))
        return add_link(walk, level, name, &about);
    if (!S_ISDIR(about.st_mode)) {
        complain(walk->path, "not a regular file, left out");
        return 0;
    }
    int fd = openat(level->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        return push_level(walk, fd);
    complain(walk->path, strerror(errno));
    return 0;
}

static int walk_tree(struct walk *walk)
{
    int result = 0;
    while (walk->depth > 0) {
        struct level *level = &walk->levels[walk->depth - 1];
        if (result != 0 || level->next == level->names.count)
            pop_level(walk);
        else
            result = visit(walk, level, level->names.names[level->next++]);
    }
    return result;
}

static int open_archive(struct walk *walk, enum archive_format format)
{
    struct archive *archive = walk->archive;
    int result;
    if (format == ARCHIVE_FORMAT_ZIP) {
        result = archive_write_set_format_zip(archive);
    } else {
        result = archive_write_set_format_pax_restricted(archive);
        if (result == ARCHIVE_OK)
            result = archive_write_add_filter_gzip(archive);
    }
    if (result == ARCHIVE_OK)
        result = archive_write_set_bytes_per_block(archive, 64 * 1024);
    if (result == ARCHIVE_OK) /* no zeros after the end of the compressed stream */
        result = archive_write_set_bytes_in_last_block(archive, 1);
    if (result == ARCHIVE_OK)
        result = archive_write_open(archive, walk, NULL, on_write, NULL);
    return result == ARCHIVE_OK ? 0 : lose(walk, archive_error_string(archive));
}

static int write_archive(struct walk *walk, int dir_fd, enum archive_format format)
{
    if (open_archive(walk, format) != 0)
        return -1;
    int top_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top_fd < 0)
        return lose(walk, strerror(errno));
    if (push_level(walk, top_fd) != 0)
        return -1;
    if (walk->depth == 0)
        return -1; /* nothing but the top was asked for, and it was left out */
    if (walk_tree(walk) != 0)
        return -1;
    if (archive_write_close(walk->archive) != ARCHIVE_OK)
        return lose(walk, archive_error_string(walk->archive));
    return 0;
}

enum archive_format archive_tree_format(const char *name)
{
    if (strcmp(name, "tar.gz") == 0)
        return ARCHIVE_FORMAT_TAR_GZ;
    return strcmp(name, "zip") == 0 ? ARCHIVE_FORMAT_ZIP : ARCHIVE_FORMAT_UNKNOWN;
}

int archive_guard_parse(const char *text, struct archive_guard *out)
{
    int name_at = 0;
    if (sscanf(text, "%llu:%llu:%llu:%llu:%n", &out->dev, &out->ino, &out->dir_dev, &out->dir_ino, &name_at) != 4 ||
        name_at == 0)
        return -1;
    out->name = text + name_at;
    return 0;
}

static bool is_plain_name(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= 4096 && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

int archive_tree_write(int dir_fd, int out_fd, enum archive_format format, const char *top_name,
                       const struct archive_guard *guards, size_t guard_count)
{
    if (!is_plain_name(top_name)) {
        complain(top_name, "not a name for the top directory");
        return -1;
    }
    struct walk *walk = calloc(1, sizeof(*walk));
    if (!walk)
        return -1;
    walk->out_fd = out_fd;
    walk->guards = guards;
    walk->guard_count = guard_count;
    walk->archive = archive_write_new();
    walk->entry = archive_entry_new();
    memcpy(walk->path, top_name, strlen(top_name) + 1);
    int result = -1;
    if (walk->archive && walk->entry)
        result = write_archive(walk, dir_fd, format);
    /* Freeing a healthy archive would pad its last entry and write an end: a cut archive must look cut. libarchive
     * forgets to free some of a failed one (3.6.2). */
    if (result != 0 && walk->archive)
        archive_write_fail(walk->archive);
    archive_entry_free(walk->entry);
    archive_write_free(walk->archive);
    free(walk);
    return result;
}
