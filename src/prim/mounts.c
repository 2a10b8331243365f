/* Reads the table of mounts; called by prim/disks. */
#include "prim/mounts.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TABLE_MAX_BYTES = 32 * 1024 * 1024, PIECE_BYTES = 64 * 1024 };

bool mount_is_kernel_type(const char *type)
{
    static const char *const types[] = {
        "anon_inodefs", "apparmorfs", "autofs",     "bdev",      "binder",     "binfmt_misc", "bpf",
        "cgroup",       "cgroup2",    "configfs",   "cpuset",    "debugfs",    "devpts",      "dmabuf",
        "efivarfs",     "fusectl",    "functionfs", "hugetlbfs", "mqueue",     "nfsd",        "nsfs",
        "pipefs",       "proc",       "pstore",     "resctrl",   "rpc_pipefs", "rootfs",      "securityfs",
        "selinuxfs",    "smackfs",    "sockfs",     "sysfs",     "tracefs",    "usbfs",
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* In place: \040 is a blank, \134 a backslash. */
static void decode(char *text)
{
    char *out = text;
    while (*text != '\0') {
        if (text[0] == '\\' && is_octal(text[1]) && is_octal(text[2]) && is_octal(text[3])) {
            *out++ = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
            text += 4;
        } else {
            *out++ = *text++;
        }
    }
    *out = '\0';
}

static bool has_option(const char *options, const char *wanted)
{
    size_t len = strlen(wanted);
    for (const char *at = options; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, wanted, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

/* 36 35 98:0 /root /path rw,noatime master:1 - ext4 /dev/root rw,errors=continue: any number of fields before the dash.
 */
static bool parse_line(char *line, struct mount *out)
{
    enum { ID, PARENT, DEVICE, ROOT, PATH, OPTIONS, FIELDS };
    char *fields[FIELDS], *rest = line, *field;
    for (int i = 0; i < FIELDS; i++)
        if ((fields[i] = strsep(&rest, " ")) == NULL)
            return false;
    while ((field = strsep(&rest, " ")) != NULL && strcmp(field, "-") != 0)
        ;
    char *type = strsep(&rest, " "), *source = strsep(&rest, " ");
    if (type == NULL || source == NULL || fields[PATH][0] != '/' ||
        sscanf(fields[DEVICE], "%u:%u", &out->major, &out->minor) != 2)
        return false;
    decode(fields[PATH]);
    decode(type);
    out->id = strtoull(fields[ID], NULL, 10);
    out->path = fields[PATH];
    out->type = type;
    out->read_only = has_option(fields[OPTIONS], "ro") || (rest != NULL && has_option(rest, "ro"));
    return true;
}

static size_t count_lines(const char *text)
{
    size_t count = 1;
    while ((text = strchr(text, '\n')) != NULL) {
        text++;
        count++;
    }
    return count;
}

/* Takes the text. */
static int parse(struct mounts *out, char *text, struct err *err)
{
    *out = (struct mounts){.text = text, .list = calloc(count_lines(text), sizeof(struct mount))};
    if (out->list == NULL) {
        free(text);
        return err_set(err, ERR_INTERNAL, "out of memory for the table of mounts");
    }
    char *line;
    while ((line = strsep(&text, "\n")) != NULL)
        if (parse_line(line, &out->list[out->count]))
            out->count++;
    return 0;
}

int mounts_parse(struct mounts *out, const char *text, size_t len, struct err *err)
{
    char *copy = strndup(text, len);
    return copy != NULL ? parse(out, copy, err) : err_set(err, ERR_INTERNAL, "out of memory for the table of mounts");
}

int mounts_read(struct mounts *out, struct err *err)
{
    struct buf text;
    buf_init(&text, TABLE_MAX_BYTES);
    int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    ssize_t len = -1;
    while (fd >= 0 && buf_reserve(&text, PIECE_BYTES) == 0 && (len = read(fd, text.data + text.len, PIECE_BYTES)) > 0)
        text.len += (size_t)len;
    int read_errno = errno;
    if (fd >= 0)
        close(fd);
    if (len != 0 || buf_append(&text, "", 1) != 0) {
        buf_deinit(&text);
        return err_set_errno(err, ERR_INTERNAL, read_errno, "cannot read the table of mounts");
    }
    size_t ignored;
    return parse(out, buf_steal(&text, &ignored), err);
}

void mounts_free(struct mounts *mounts)
{
    free(mounts->list);
    free(mounts->text);
    *mounts = (struct mounts){0};
}
