/* Tells the server that a table changed on disk; see the header. */
#include "server/watch.h"

#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    /* An editor saves in several steps (write, rename, chmod); a deployment writes many files. One reload for all. */
    WATCH_QUIET_MS = 150,
    WATCH_DEPTH_MAX = 8, /* of folders below lua_dir; also ends a loop of links */
    /* Whole files only: IN_MODIFY would fire in the middle of a write. */
    WATCH_EVENTS = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_ONLYDIR,
};

/* What a watched directory is watched for; one may be several things. */
enum {
    WATCH_TABLES = 1,   /* Lua files and folders */
    WATCH_HOME = 2,     /* lua_dir itself, which stands in it */
    WATCH_COMMANDS = 4, /* anything: the file, or links that lead to it */
};

struct watched {
    int wd; /* inotify answers the same number for the same inode */
    int what;
};

struct watch {
    struct loop *loop;
    int fd;
    struct watched *dirs;
    size_t dir_count;
    struct loop_fd *readable;
    struct loop_timer quiet;
    char *lua_dir, *commands_file; /* commands_file: NULL where there is none */
    loop_fn fn;
    void *ctx;
};

static struct watched *find(const struct watch *watch, int wd)
{
    for (size_t i = 0; i < watch->dir_count; i++)
        if (watch->dirs[i].wd == wd)
            return &watch->dirs[i];
    return NULL;
}

static int add(struct watch *watch, const char *dir, int what, struct err *err)
{
    int wd = inotify_add_watch(watch->fd, dir, WATCH_EVENTS);
    if (wd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0; /* told by its parent when it comes */
    if (wd < 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot watch %s", dir);
    struct watched *known = find(watch, wd);
    if (!known) {
        struct watched *grown = realloc(watch->dirs, (watch->dir_count + 1) * sizeof(*grown));
        if (!grown)
            return err_set(err, ERR_INTERNAL, "not enough memory");
        watch->dirs = grown;
        known = &grown[watch->dir_count++];
        *known = (struct watched){.wd = wd};
    }
    known->what |= what;
    return 0;
}

static void forget(struct watch *watch, int wd)
{
    struct watched *gone = find(watch, wd);
    if (gone)
        *gone = watch->dirs[--watch->dir_count];
}

/* The directory and all folders in it. */
static int add_tree(struct watch *watch, const char *dir, int depth, struct err *err)
{
    if (add(watch, dir, WATCH_TABLES, err) != 0)
        return -1;
    DIR *entries = depth < WATCH_DEPTH_MAX ? opendir(dir) : NULL;
    int failed = 0;
    for (struct dirent *entry; entries && !failed && (entry = readdir(entries));) {
        char path[PATH_MAX];
        struct stat found;
        if (entry->d_name[0] == '.' || entry->d_type == DT_REG ||
            snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >= (int)sizeof(path))
            continue;
        if (stat(path, &found) == 0 && S_ISDIR(found.st_mode))
            failed = add_tree(watch, path, depth + 1, err);
    }
    if (entries)
        closedir(entries);
    return failed;
}

/* The directory that holds the path itself: where a folder comes back that was taken away, or a link is turned. */
static int add_parent(struct watch *watch, const char *path, int what, struct err *err)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int len = slash ? (int)(slash - path) + (slash == path) : 1;
    if (snprintf(dir, sizeof(dir), "%.*s", len, slash ? path : ".") >= (int)sizeof(dir))
        return 0;
    return add(watch, dir, what, err);
}

static int add_file(struct watch *watch, const char *path, struct err *err)
{
    if (add_parent(watch, path, WATCH_COMMANDS, err) != 0)
        return -1;
    char *real = realpath(path, NULL); /* a link, whose target may be edited in place */
    int failed = real ? add_parent(watch, real, WATCH_COMMANDS, err) : 0;
    free(real);
    return failed;
}

/* May be called again at any time: what is watched already stays as it is, and a folder that was made anew under its
 * old name is another inode, which only this finds. */
static int add_all(struct watch *watch, struct err *err)
{
    if (add_parent(watch, watch->lua_dir, WATCH_HOME, err) != 0 || add_tree(watch, watch->lua_dir, 0, err) != 0)
        return -1;
    return watch->commands_file ? add_file(watch, watch->commands_file, err) : 0;
}

static void on_quiet(void *ctx)
{
    struct watch *watch = ctx;
    struct err err;
    /* Before the reload: what changes after this look is told by the new watches, what came before it is loaded. */
    if (add_all(watch, &err) != 0)
        log_warn("watch", "%s", err.text);
    watch->fn(watch->ctx);
}

static bool is_lua(const char *name)
{
    size_t len = strlen(name);
    return len > 4 && strcmp(name + len - 4, ".lua") == 0;
}

/* What else stands in these directories, such as an editor's swap files, is no reason to reload. */
static bool concerns(const struct watch *watch, const struct inotify_event *event)
{
    const struct watched *dir = find(watch, event->wd);
    const char *name = event->len ? event->name : "", *home = strrchr(watch->lua_dir, '/');
    if (event->mask & (IN_IGNORED | IN_Q_OVERFLOW))
        return true;
    return dir && (((dir->what & WATCH_TABLES) && ((event->mask & IN_ISDIR) || is_lua(name))) ||
                   ((dir->what & WATCH_HOME) && strcmp(name, home ? home + 1 : watch->lua_dir) == 0) ||
                   (dir->what & WATCH_COMMANDS));
}

static void on_inotify(void *ctx, int events)
{
    (void)events;
    struct watch *watch = ctx;
    bool changed = false;
    char block[4096] __attribute__((aligned(8)));
    for (ssize_t len; (len = read(watch->fd, block, sizeof(block))) > 0;) {
        const struct inotify_event *event;
        for (char *at = block; at < block + len; at += sizeof(*event) + event->len) {
            event = (const struct inotify_event *)at;
            changed |= concerns(watch, event);
            if (event->mask & IN_IGNORED)
                forget(watch, event->wd);
        }
    }
    if (changed)
        loop_timer_start(watch->loop, &watch->quiet, WATCH_QUIET_MS, on_quiet, watch);
}

struct watch *watch_new(struct loop *loop, const char *lua_dir, const char *commands_file, loop_fn fn, void *ctx,
                        struct err *err)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    if (!watch) {
        err_set(err, ERR_INTERNAL, "not enough memory");
        return NULL;
    }
    *watch = (struct watch){.loop = loop, .fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), .fn = fn, .ctx = ctx};
    size_t len = strlen(lua_dir);
    while (len > 1 && lua_dir[len - 1] == '/')
        len--;
    watch->lua_dir = strndup(lua_dir, len);
    watch->commands_file = commands_file ? strdup(commands_file) : NULL;
    if (watch->fd < 0)
        err_set_errno(err, ERR_INTERNAL, errno, "inotify");
    else if (!watch->lua_dir || (commands_file && !watch->commands_file))
        err_set(err, ERR_INTERNAL, "not enough memory");
    else if (add_all(watch, err) == 0) {
        watch->readable = loop_fd_new(loop, watch->fd, LOOP_READABLE, on_inotify, watch);
        if (watch->readable)
            return watch;
        err_set_errno(err, ERR_INTERNAL, errno, "inotify");
    }
    watch_free(watch);
    return NULL;
}

void watch_free(struct watch *watch)
{
    if (!watch)
        return;
    loop_timer_stop(&watch->quiet);
    loop_fd_free(watch->readable);
    if (watch->fd >= 0)
        close(watch->fd);
    free(watch->dirs);
    free(watch->lua_dir);
    free(watch->commands_file);
    free(watch);
}
