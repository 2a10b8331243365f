/* Looks at one entry, without opening it unless its checksum is wanted, on a thread, for fs.stat. */
#include "prim/file_stat.h"

#include "base/json.h"
#include "prim/entry.h"
#include "prim/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct answer {
    struct stat found;
    char path[PATH_MAX], target[PATH_MAX], sha256[SHA256_HEX_LEN + 1];
    size_t target_len;
    const char *mime;
    bool has_sha256;
};

static int system_err(struct err *err)
{
    return err_set_errno(err, err_from_errno(errno), errno, "cannot look at the file");
}

/* The names of shared-mime-info for what is no regular file. */
static const char *mime_of(const struct answer *answer)
{
    switch (answer->found.st_mode & S_IFMT) {
    case S_IFDIR:
        return "inode/directory";
    case S_IFLNK:
        return "inode/symlink";
    case S_IFIFO:
        return "inode/fifo";
    case S_IFSOCK:
        return "inode/socket";
    case S_IFCHR:
        return "inode/chardevice";
    case S_IFBLK:
        return "inode/blockdevice";
    default:
        return answer->mime;
    }
}

/* The descriptor is O_PATH: nobody at the other end of a FIFO or device notices. */
static int look(int fd, struct answer *answer, struct err *err)
{
    if (fstat(fd, &answer->found) != 0)
        return system_err(err);
    if (S_ISLNK(answer->found.st_mode)) {
        ssize_t len = readlinkat(fd, "", answer->target, sizeof(answer->target));
        if (len < 0)
            return system_err(err);
        answer->target_len = (size_t)len;
    }
    return confine_path_of(fd, answer->path, sizeof(answer->path), err);
}

static int on_block(void *ctx, const char *bytes, size_t len, struct err *err)
{
    (void)err;
    sha256_update(ctx, len, (const uint8_t *)bytes);
    return 0;
}

/* fd is another descriptor, opened for reading: it must still be the same file. */
static int sum_file(int fd, const struct file_terms *terms, struct answer *answer, struct err *err)
{
    struct stat opened;
    if (fstat(fd, &opened) != 0)
        return system_err(err);
    if (opened.st_dev != answer->found.st_dev || opened.st_ino != answer->found.st_ino)
        return err_set(err, ERR_BUSY, "another file took this name meanwhile, try again");
    answer->found = opened;
    if (terms->short_only && opened.st_size > FILE_SHORT_BYTES)
        return 1;
    struct sha256_ctx hash;
    sha256_init(&hash);
    if (file_bytes_each(fd, (uint64_t)opened.st_size, terms->cancelled, on_block, &hash, err) != 0)
        return -1;
    sha256_hex(&hash, answer->sha256);
    answer->has_sha256 = true;
    return 0;
}

static int sum(const struct confine *confine, const struct file_stat *request, const struct file_terms *terms,
               struct answer *answer, struct err *err)
{
    if (!S_ISREG(answer->found.st_mode))
        return err_set(err, ERR_NOT_A_REGULAR_FILE, "only regular files have a checksum; this is a %s",
                       entry_type(answer->found.st_mode));
    int fd = confine_open_file(confine, request->path, request->path_len, O_RDONLY, err);
    if (fd < 0)
        return -1;
    int result = sum_file(fd, terms, answer, err);
    close(fd);
    return result;
}

static int write_more(const struct answer *answer, struct buf *out)
{
    const struct stat *found = &answer->found;
    const char *mime = mime_of(answer);
    char etag[ENTRY_ETAG_MAX];
    entry_etag(etag, found);
    if (buf_printf(out, ",\"inode\":%" PRIu64 ",\"links\":%" PRIu64 ",\"uid\":%u,\"gid\":%u,", (uint64_t)found->st_ino,
                   (uint64_t)found->st_nlink, found->st_uid, found->st_gid) != 0 ||
        entry_write_time(out, "accessed_at", &found->st_atim) != 0 || buf_append(out, ",", 1) != 0 ||
        entry_write_time(out, "changed_at", &found->st_ctim) != 0 || buf_append_text(out, ",\"mime\":") != 0 ||
        json_write_string(out, mime, strlen(mime)) != 0 || buf_append_text(out, ",\"etag\":") != 0 ||
        json_write_string(out, etag, strlen(etag)) != 0)
        return -1;
    return answer->has_sha256 ? buf_printf(out, ",\"sha256\":\"%s\"", answer->sha256) : 0;
}

static int write_answer(const struct answer *answer, struct buf *out, struct err *err)
{
    struct entry_names names = {0};
    bool is_link = S_ISLNK(answer->found.st_mode);
    int result = buf_append(out, "{", 1);
    if (result == 0)
        result = entry_write(out, &names, answer->path, strlen(answer->path), &answer->found,
                             is_link ? answer->target : NULL, answer->target_len);
    entry_names_free(&names);
    if (result != 0 || write_more(answer, out) != 0 || buf_append(out, "}", 1) != 0)
        return err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot look at the file");
    return 0;
}

int file_stat(const struct confine *confine, const struct file_stat *request, const struct file_terms *terms,
              struct buf *out, struct err *err)
{
    struct answer answer; /* not cleared: it holds two paths */
    answer.target_len = 0;
    answer.mime = request->mime;
    answer.has_sha256 = false;
    int flags = O_PATH | (request->follow ? 0 : O_NOFOLLOW);
    int fd = confine_open(confine, request->path, request->path_len, flags, err);
    if (fd < 0)
        return -1;
    int result = look(fd, &answer, err);
    close(fd);
    if (result == 0 && request->sha256)
        result = sum(confine, request, terms, &answer, err);
    return result == 0 ? write_answer(&answer, out, err) : result;
}
