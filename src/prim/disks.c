/* Asks each file system how full it is, on threads that one of them may keep; called by bind_system_disk. */
#include "prim/disks.h"

#include "base/json.h"
#include "prim/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HANGING_MAX = 64, THREAD_STACK_BYTES = 256 * 1024 };

enum answer { ANSWER_NONE, ANSWER_LOOKED, ANSWER_FAILED, ANSWER_HIDDEN };

/* One file system, and where it is mounted: first to first + count of the survey's mounts. */
struct disk {
    size_t first, count;
    bool holds_base;
    enum answer answer;
    size_t shown; /* the mount that was looked at */
    struct statvfs room;
};

/* Shared by who asked and the threads; the last one frees it. */
struct survey {
    int references;
    struct mounts mounts; /* sorted: by file system, the shortest path first */
    struct disk *disks;
    size_t count, next;
    disks_look_fn look;
    unsigned turn; /* of the thread that goes on; who is late finds another's */
    bool asking;   /* that thread is in `look` */
    pthread_cond_t progress;
};

struct asker {
    struct survey *survey;
    unsigned turn;
};

/* For all surveys, and the file systems that keep a thread. Never held while one is asked. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    unsigned major, minor;
} hanging[HANGING_MAX];
static size_t hanging_count;

static const struct mount *mount_of(const struct survey *survey, const struct disk *disk)
{
    return &survey->mounts.list[disk->first];
}

static size_t find_hanging(const struct mount *mount)
{
    size_t at = 0;
    while (at < hanging_count && (hanging[at].major != mount->major || hanging[at].minor != mount->minor))
        at++;
    return at;
}

static bool is_hanging(const struct mount *mount)
{
    return find_hanging(mount) < hanging_count;
}

static void end_hanging(const struct mount *mount)
{
    size_t at = find_hanging(mount);
    if (at < hanging_count)
        hanging[at] = hanging[--hanging_count];
}

/* --- which there are */

static int compare_mounts(const void *a, const void *b)
{
    const struct mount *left = a, *right = b;
    if (left->major != right->major)
        return left->major < right->major ? -1 : 1;
    if (left->minor != right->minor)
        return left->minor < right->minor ? -1 : 1;
    size_t left_len = strlen(left->path), right_len = strlen(right->path);
    if (left_len != right_len)
        return left_len < right_len ? -1 : 1;
    int by_path = strcmp(left->path, right->path);
    return by_path != 0 ? by_path : (left->id < right->id) - (left->id > right->id); /* the last one first */
}

static bool same_file_system(const struct mount *a, const struct mount *b)
{
    return a->major == b->major && a->minor == b->minor;
}

static void find_disks(struct survey *survey, uint64_t base_mount)
{
    const struct mount *list = survey->mounts.list;
    for (size_t i = 0; i < survey->mounts.count;) {
        struct disk *disk = &survey->disks[survey->count];
        *disk = (struct disk){.first = i, .shown = i};
        for (; i < survey->mounts.count && same_file_system(&list[i], &list[disk->first]); i++) {
            disk->count++;
            disk->holds_base |= base_mount != 0 && list[i].id == base_mount;
        }
        if (disk->holds_base || !mount_is_kernel_type(list[disk->first].type))
            survey->count++;
    }
}

static void unref(struct survey *survey) /* with the lock */
{
    if (--survey->references > 0)
        return;
    mounts_free(&survey->mounts);
    pthread_cond_destroy(&survey->progress);
    free(survey->disks);
    free(survey);
}

static struct survey *survey_new(struct mounts *mounts, uint64_t base_mount, disks_look_fn look)
{
    struct survey *survey = calloc(1, sizeof(*survey));
    struct disk *disks = calloc(mounts->count + 1, sizeof(*disks));
    if (survey == NULL || disks == NULL) {
        free(survey);
        free(disks);
        mounts_free(mounts);
        return NULL;
    }
    *survey = (struct survey){.references = 1, .mounts = *mounts, .disks = disks, .look = look};
    *mounts = (struct mounts){0};
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&survey->progress, &attributes);
    pthread_condattr_destroy(&attributes);
    if (survey->mounts.count > 0)
        qsort(survey->mounts.list, survey->mounts.count, sizeof(struct mount), compare_mounts);
    find_disks(survey, base_mount);
    return survey;
}

/* --- asking them */

/* Whether the path leads into this mount, and not into one that was put over it, or over a part of the path. */
static int look_at(const struct mount *mount, struct statvfs *out)
{
    struct statx found;
    int fd = open(mount->path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    int result = -1;
    if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_MNT_ID, &found) == 0 &&
        (found.stx_mask & STATX_MNT_ID) != 0 && found.stx_mnt_id != mount->id)
        result = 1;
    else if (fstatvfs(fd, out) == 0)
        result = 0;
    close(fd);
    return result;
}

/* By the first of its mounts that can be seen. Without the lock. */
static void ask(const struct survey *survey, struct disk *disk)
{
    disk->answer = ANSWER_HIDDEN;
    for (size_t i = disk->first; i < disk->first + disk->count && disk->answer != ANSWER_LOOKED; i++) {
        int result = survey->look(&survey->mounts.list[i], &disk->room);
        if (result == 0 || (result < 0 && disk->answer == ANSWER_HIDDEN)) {
            disk->answer = result == 0 ? ANSWER_LOOKED : ANSWER_FAILED;
            disk->shown = i;
        }
    }
}

static void *ask_all(void *ctx)
{
    struct asker *asker = ctx;
    struct survey *survey = asker->survey;
    unsigned turn = asker->turn;
    free(asker);
    pthread_mutex_lock(&lock);
    while (survey->turn == turn && survey->next < survey->count) {
        struct disk disk = survey->disks[survey->next]; /* whoever gives it up may move the others */
        if (!is_hanging(mount_of(survey, &disk))) {
            survey->asking = true;
            pthread_mutex_unlock(&lock);
            ask(survey, &disk);
            pthread_mutex_lock(&lock);
            if (survey->turn != turn) { /* it was given up */
                end_hanging(mount_of(survey, &disk));
                break;
            }
            survey->asking = false;
        }
        survey->disks[survey->next++] = disk;
        pthread_cond_signal(&survey->progress);
    }
    unref(survey);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* With the lock. */
static int start_thread(struct survey *survey)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    struct asker *asker = malloc(sizeof(*asker));
    if (asker == NULL)
        return -1;
    *asker = (struct asker){.survey = survey, .turn = survey->turn};
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    sigfillset(&all); /* signals are the loop's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    survey->references++;
    int failed = pthread_create(&thread, &attributes, ask_all, asker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed == 0)
        return 0;
    survey->references--;
    free(asker);
    return -1;
}

static struct timespec in_ms(struct timespec time, long ms)
{
    time.tv_nsec += ms * 1000000L;
    time.tv_sec += time.tv_nsec / 1000000000L;
    time.tv_nsec %= 1000000000L;
    return time;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* With the lock: the thread that hangs keeps its file system. False: too many hang already, so that this one cannot be
 * remembered. */
static bool give_up(struct survey *survey)
{
    const struct mount *mount = mount_of(survey, &survey->disks[survey->next]);
    bool asking = survey->asking; /* else the thread did not even get to run */
    survey->asking = false;
    survey->turn++;
    survey->next++;
    if (!asking || hanging_count == HANGING_MAX)
        return !asking;
    hanging[hanging_count].major = mount->major;
    hanging[hanging_count++].minor = mount->minor;
    return true;
}

/* With the lock. Disks that were not asked in time have no answer. */
static int conduct(struct survey *survey)
{
    struct timespec now, end, patience;
    clock_gettime(CLOCK_MONOTONIC, &now);
    end = in_ms(now, DISKS_WAIT_MS);
    int failed = survey->next < survey->count ? start_thread(survey) : 0;
    while (failed == 0 && survey->next < survey->count) {
        size_t at = survey->next;
        clock_gettime(CLOCK_MONOTONIC, &now);
        patience = in_ms(now, DISKS_PATIENCE_MS);
        const struct timespec *until = is_before(&patience, &end) ? &patience : &end;
        while (survey->next == at && pthread_cond_timedwait(&survey->progress, &lock, until) == 0)
            ;
        if (survey->next > at)
            continue;
        /* Another thread goes on behind it, while there is time. */
        if (!give_up(survey) || until == &end)
            break;
        if (survey->next < survey->count && start_thread(survey) != 0)
            break;
    }
    return failed;
}

/* --- what is told */

static bool has_room(const struct disk *disk, const char *type)
{
    /* A tmpfs without a limit has no size, but holds files; others of no size are the face of some program. */
    return disk->room.f_blocks > 0 || strcmp(type, "tmpfs") == 0 || strcmp(type, "ramfs") == 0;
}

static bool is_shown(const struct survey *survey, const struct disk *disk)
{
    if (disk->holds_base || disk->answer == ANSWER_NONE)
        return true;
    return disk->answer == ANSWER_LOOKED && has_room(disk, survey->mounts.list[disk->shown].type);
}

static int write_numbers(struct buf *out, const struct statvfs *room)
{
    unsigned long long unit = room->f_frsize > 0 ? room->f_frsize : room->f_bsize;
    unsigned long long total = room->f_blocks, free_blocks = room->f_bfree < total ? room->f_bfree : total;
    unsigned long long used = total - free_blocks;
    /* Where more is used than others than root may use, some systems count below zero. */
    unsigned long long available = room->f_bavail <= total ? room->f_bavail : 0;
    unsigned long long usable = used + available;
    unsigned long long percent = usable > 0 ? (unsigned long long)(((__uint128_t)used * 100 + usable - 1) / usable) : 0;
    unsigned long long inodes = room->f_files, inodes_free = room->f_ffree < inodes ? room->f_ffree : inodes;
    return buf_printf(out,
                      ",\"total_bytes\":%llu,\"used_bytes\":%llu,\"available_bytes\":%llu,\"percent\":%llu,"
                      "\"inodes_total\":%llu,\"inodes_used\":%llu",
                      total * unit, used * unit, available * unit, percent, inodes, inodes - inodes_free);
}

static int write_disk(struct buf *out, const struct survey *survey, const struct disk *disk)
{
    const struct mount *mount = &survey->mounts.list[disk->shown];
    if (buf_append_text(out, "{") || entry_write_path(out, "path", mount->path, strlen(mount->path)) ||
        buf_append_text(out, ",\"type\":") || json_write_string(out, mount->type, strlen(mount->type)))
        return -1;
    int failed = disk->answer == ANSWER_LOOKED
                     ? write_numbers(out, &disk->room)
                     : buf_append_text(out, ",\"total_bytes\":null,\"used_bytes\":null,\"available_bytes\":null,"
                                            "\"percent\":null,\"inodes_total\":null,\"inodes_used\":null");
    return failed || buf_printf(out, ",\"read_only\":%s}", mount->read_only ? "true" : "false") ? -1 : 0;
}

static int compare_shown(const void *a, const void *b, void *ctx)
{
    const struct mount *list = ctx;
    const struct disk *left = a, *right = b;
    return strcmp(list[left->shown].path, list[right->shown].path);
}

static int write_all(struct buf *out, struct survey *survey)
{
    int failed = buf_append_text(out, "{\"filesystems\":[");
    bool first = true;
    if (survey->count > 0)
        qsort_r(survey->disks, survey->count, sizeof(struct disk), compare_shown, survey->mounts.list);
    for (size_t i = 0; i < survey->count && failed == 0; i++) {
        if (!is_shown(survey, &survey->disks[i]))
            continue;
        failed = (!first && buf_append_text(out, ",")) || write_disk(out, survey, &survey->disks[i]);
        first = false;
    }
    return failed || buf_append_text(out, "]}") ? -1 : 0;
}

int disks_write_of(struct buf *out, struct mounts *mounts, uint64_t base_mount, disks_look_fn look, struct err *err)
{
    struct survey *survey = survey_new(mounts, base_mount, look);
    if (survey == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory for the file systems");
    pthread_mutex_lock(&lock);
    int failed = conduct(survey);
    if (failed != 0)
        err_set(err, ERR_UNAVAILABLE, "no thread can be started to look at the file systems");
    else if (write_all(out, survey) != 0)
        failed = err_set(err, ERR_INTERNAL, "out of memory for the file systems");
    unref(survey);
    pthread_mutex_unlock(&lock);
    return failed;
}

int disks_write(struct buf *out, const char *base_dir, struct err *err)
{
    struct mounts mounts;
    struct statx base;
    if (mounts_read(&mounts, err) != 0)
        return -1;
    uint64_t base_mount = 0;
    if (statx(AT_FDCWD, base_dir, AT_NO_AUTOMOUNT, STATX_MNT_ID, &base) == 0 && (base.stx_mask & STATX_MNT_ID) != 0)
        base_mount = base.stx_mnt_id;
    return disks_write_of(out, &mounts, base_mount, look_at, err);
}
