/* Files as JSON text, for the bindings of abx.fs; see entry.h. */
#include "prim/entry.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOOKUP_BYTES = 16 * 1024, LOOKS_MAX = 8 };

struct entry_name {
    struct entry_name *next;
    unsigned id;
    char text[];
};

static void names_free(struct entry_name *name)
{
    while (name) {
        struct entry_name *next = name->next;
        free(name);
        name = next;
    }
}

void entry_names_free(struct entry_names *names)
{
    names_free(names->users);
    names_free(names->groups);
    *names = (struct entry_names){0};
}

/* An id that nobody has a name for is its own name. */
static const char *look_up(unsigned id, bool is_group, char *space)
{
    struct passwd user, *found_user = NULL;
    struct group group, *found_group = NULL;
    if (is_group && getgrgid_r(id, &group, space, LOOKUP_BYTES, &found_group) == 0 && found_group)
        return group.gr_name;
    if (!is_group && getpwuid_r(id, &user, space, LOOKUP_BYTES, &found_user) == 0 && found_user)
        return user.pw_name;
    snprintf(space, LOOKUP_BYTES, "%u", id);
    return space;
}

/* NULL out of memory. A tree has few owners, so a list is enough. */
static const char *name_of(struct entry_name **names, unsigned id, bool is_group)
{
    for (struct entry_name *name = *names; name; name = name->next)
        if (name->id == id)
            return name->text;
    char space[LOOKUP_BYTES];
    const char *text = look_up(id, is_group, space);
    size_t size = strlen(text) + 1;
    struct entry_name *name = malloc(sizeof *name + size);
    if (!name)
        return NULL;
    name->id = id;
    name->next = *names;
    memcpy(name->text, text, size);
    *names = name;
    return name->text;
}

const char *entry_user_name(struct entry_names *names, uid_t uid)
{
    return name_of(&names->users, uid, false);
}

const char *entry_type(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "directory";
    case S_IFLNK:
        return "symlink";
    case S_IFIFO:
        return "fifo";
    case S_IFSOCK:
        return "socket";
    case S_IFCHR:
        return "char";
    case S_IFBLK:
        return "block";
    default:
        return "file";
    }
}

static uint64_t nanoseconds(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

static char *put_hex(char *out, uint64_t value)
{
    unsigned digits = 1;
    for (uint64_t rest = value >> 4; rest > 0; rest >>= 4)
        digits++;
    for (unsigned i = digits; i-- > 0; value >>= 4)
        out[i] = "0123456789abcdef"[value & 15];
    return out + digits;
}

/* Without printf, which would cost a small read a tenth of its time. */
void entry_etag(char out[ENTRY_ETAG_MAX], const struct stat *found)
{
    uint64_t parts[] = {(uint64_t)found->st_ino, (uint64_t)found->st_size, nanoseconds(&found->st_mtim),
                        nanoseconds(&found->st_ctim)};
    *out++ = '"';
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (i > 0)
            *out++ = '-';
        out = put_hex(out, parts[i]);
    }
    *out++ = '"';
    *out = '\0';
}

/* printf would take a quarter of the time of a long listing. */
static int put(struct buf *out, const char *text)
{
    return buf_append_few(out, text, strlen(text));
}

static int put_member(struct buf *out, const char *member, const char *after)
{
    return put(out, "\"") == 0 && put(out, member) == 0 && put(out, after) == 0 ? 0 : -1;
}

/* The last digits of value, as many as width, to be read from at on; where they end. */
static char *digits(char *at, unsigned value, unsigned width, unsigned base)
{
    for (unsigned i = width; i > 0; i--, value /= base)
        at[i - 1] = (char)('0' + value % base);
    return at + width;
}

int entry_write_path(struct buf *out, const char *member, const char *path, size_t len)
{
    if (put_member(out, member, "\":") != 0 || json_write_string(out, path, len) != 0)
        return -1;
    if (utf8_valid(path, len))
        return 0;
    if (put(out, ",") != 0 || put_member(out, member, "_base64\":\"") != 0 || base64_encode(out, path, len) != 0)
        return -1;
    return put(out, "\"");
}

/* strftime and gmtime_r cost more than all the rest of an entry. Days to a date as by H. Hinnant, "chrono-compatible
 * low-level date algorithms". */
static void civil_of(int64_t days, int64_t *year, unsigned *month, unsigned *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    unsigned day_of_era = (unsigned)(days - era * 146097);
    unsigned year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned shifted = (5 * day_of_year + 2) / 153;
    *day = day_of_year - (153 * shifted + 2) / 5 + 1;
    *month = shifted < 10 ? shifted + 3 : shifted - 9;
    *year = (int64_t)year_of_era + era * 400 + (*month <= 2);
}

int entry_write_time(struct buf *out, const char *member, const struct timespec *time)
{
    int64_t second = time->tv_sec, days = second / 86400 - (second % 86400 < 0), year;
    unsigned in_day = (unsigned)(second - days * 86400), month, day;
    civil_of(days, &year, &month, &day);
    char text[sizeof "2026-01-31T00:00:00.000Z\""] = "", *at = text;
    if (put_member(out, member, "\":\"") != 0)
        return -1;
    if (year >= 0 && year <= 9999)
        at = digits(at, (unsigned)year, 4, 10);
    else if (json_write_int(out, year) != 0)
        return -1;
    const struct {
        char before;
        unsigned value, width;
    } parts[] = {{'-', month, 2},         {'-', day, 2},
                 {'T', in_day / 3600, 2}, {':', in_day / 60 % 60, 2},
                 {':', in_day % 60, 2},   {'.', (unsigned)(time->tv_nsec / 1000000), 3}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        *at++ = parts[i].before;
        at = digits(at, parts[i].value, parts[i].width, 10);
    }
    memcpy(at, "Z\"", 2);
    return buf_append_few(out, text, (size_t)(at + 2 - text));
}

/* A name is shown as it can be; the path has the bytes. */
static int write_name(struct buf *out, const char *path, size_t len)
{
    size_t start = len;
    while (start > 0 && path[start - 1] != '/')
        start--;
    if (put(out, ",\"name\":") != 0)
        return -1;
    return start < len ? json_write_string(out, path + start, len - start) : json_write_string(out, "/", 1);
}

int entry_write(struct buf *out, struct entry_names *names, const char *path, size_t path_len, const struct stat *found,
                const char *target, size_t target_len)
{
    const char *user = name_of(&names->users, found->st_uid, false),
               *group = name_of(&names->groups, found->st_gid, true);
    char mode[] = "0000";
    digits(mode, (unsigned)found->st_mode & 07777, 4, 8);
    if (!user || !group || entry_write_path(out, "path", path, path_len) != 0 || write_name(out, path, path_len) != 0 ||
        put(out, ",\"type\":\"") != 0 || put(out, entry_type(found->st_mode)) != 0 || put(out, "\",\"size\":") != 0 ||
        json_write_int(out, found->st_size) != 0 || put(out, ",\"mode\":\"") != 0 || put(out, mode) != 0 ||
        put(out, "\",\"owner\":") != 0 || json_write_string(out, user, strlen(user)) != 0 ||
        put(out, ",\"group\":") != 0 || json_write_string(out, group, strlen(group)) != 0 || put(out, ",") != 0 ||
        entry_write_time(out, "modified_at", &found->st_mtim) != 0)
        return -1;
    if (!target)
        return 0;
    return buf_append(out, ",", 1) != 0 ? -1 : entry_write_path(out, "target", target, target_len);
}

/* The length of a link's target, or -1 where the entry is no link. -2 with errno. What is swapped between the two looks
 * is looked at again. */
static ssize_t look(int dir_fd, const char *name, struct stat *found, char target[PATH_MAX])
{
    for (int tries = 0;; tries++) {
        if (fstatat(dir_fd, name, found, AT_SYMLINK_NOFOLLOW) != 0)
            return -2;
        if (!S_ISLNK(found->st_mode))
            return -1;
        ssize_t len = readlinkat(dir_fd, name, target, PATH_MAX);
        if (len >= 0)
            return len;
        if (errno != EINVAL || tries == LOOKS_MAX)
            return -2;
    }
}

int entry_write_at(struct buf *out, struct entry_names *names, int dir_fd, const char *dir, const char *name)
{
    struct stat found;
    char path[PATH_MAX + NAME_MAX + 2], target[PATH_MAX];
    ssize_t target_len = look(dir_fd, name, &found, target);
    if (target_len == -2)
        return -1;
    int path_len = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (buf_append(out, "{", 1) == 0 &&
        entry_write(out, names, path, (size_t)path_len, &found, target_len >= 0 ? target : NULL,
                    target_len >= 0 ? (size_t)target_len : 0) == 0 &&
        buf_append(out, "}", 1) == 0)
        return 0;
    errno = ENOBUFS;
    return -1;
}
