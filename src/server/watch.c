/* Tells the server that a table changed on disk; see the header. */
#include "server/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

/* An editor saves in several steps (write, rename, chmod); a deployment writes many files. One reload for all of them.
 */
enum { WATCH_QUIET_MS = 150 };

/* Whole files only: IN_MODIFY would fire in the middle of a write. */
enum { WATCH_EVENTS = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_ONLYDIR };

struct watch {
    struct loop *loop;
    int fd;
    struct loop_fd *readable;
    struct loop_timer quiet;
    loop_fn fn;
    void *ctx;
};

static void on_quiet(void *ctx)
{
    struct watch *watch = ctx;
    watch->fn(watch->ctx);
}

static void on_inotify(void *ctx, int events)
{
    (void)events;
    struct watch *watch = ctx;
    char block[4096] __attribute__((aligned(8)));
    while (read(watch->fd, block, sizeof(block)) > 0)
        ;
    loop_timer_start(watch->loop, &watch->quiet, WATCH_QUIET_MS, on_quiet, watch);
}

static int add(struct watch *watch, const char *dir, struct err *err)
{
    if (inotify_add_watch(watch->fd, dir, WATCH_EVENTS) >= 0 || errno == ENOENT)
        return 0;
    return err_set_errno(err, ERR_INTERNAL, errno, "cannot watch %s", dir);
}

static int add_all(struct watch *watch, const char *lua_dir, const char *commands_file, struct err *err)
{
    static const char *const folders[] = {".", "groups", "routes", "packs", "abx"};
    char dir[PATH_MAX];
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(dir, sizeof(dir), "%s/%s", lua_dir, folders[i]);
        if (add(watch, dir, err) != 0)
            return -1;
    }
    if (!commands_file)
        return 0;
    const char *slash = strrchr(commands_file, '/');
    snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - commands_file) + (slash == commands_file) : 1,
             slash ? commands_file : ".");
    return add(watch, dir, err);
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
    if (watch->fd < 0)
        err_set_errno(err, ERR_INTERNAL, errno, "inotify");
    else if (add_all(watch, lua_dir, commands_file, err) == 0) {
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
    free(watch);
}
