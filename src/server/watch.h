/* Watches the directories that hold the tables, for watch=true. Main thread only. */
#ifndef ABX_SERVER_WATCH_H
#define ABX_SERVER_WATCH_H

#include "base/err.h"
#include "base/loop.h"

struct watch;

/* Calls fn once things have been quiet for a moment after a change in lua_dir, its known folders, or the directory of
 * commands_file (NULL: none). NULL with *err where inotify refuses. */
struct watch *watch_new(struct loop *loop, const char *lua_dir, const char *commands_file, loop_fn fn, void *ctx,
                        struct err *err);
void watch_free(struct watch *watch);

#endif
