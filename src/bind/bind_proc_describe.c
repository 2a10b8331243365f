/* proc.describe: one process and its children, at once or when it has ended. What /proc is read for is read on a
 * thread, before the wait too: nothing can be read of a process that has ended. */
#include "bind/bind_proc.h"
#include "bind/host.h"
#include "prim/process_list.h"
#include "prim/stranger.h"
#include "script/bindings.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAX_BYTES = 64 * 1024 * 1024, WAIT_MAX_MS = 24 * 3600 * 1000 };

struct describe {
    struct task *task; /* NULL once the request is gone */
    struct host *host;
    unsigned wait_ms;

    /* One of the two: */
    struct process_row row; /* of the table, held */
    struct stranger stranger;
    struct process_look look; /* what was seen of a stranger while it lived */

    struct process_wait wait;
    struct loop_timer timer;
    struct loop_fd *watch;

    /* For the thread, and what it made. */
    struct process_rows rows;
    bool ended;
    atomic_bool cancelled;
    bool failed;
    struct err err;
    struct buf answer;
    struct buf *text; /* on the task's stack: takes the answer, so that it is not lost when Lua raises */
};

struct describe_op {
    struct describe *describe;
};

static bool is_stranger(const struct describe *describe)
{
    return describe->row.held == NULL;
}

static void stop_waiting(struct describe *describe)
{
    if (!is_stranger(describe))
        process_wait_stop(&describe->wait);
    loop_timer_stop(&describe->timer);
    loop_fd_free(describe->watch);
    describe->watch = NULL;
}

static void describe_free(struct describe *describe)
{
    stop_waiting(describe);
    if (is_stranger(describe))
        stranger_close(&describe->stranger);
    else
        process_row_free(&describe->row);
    process_rows_free(&describe->rows);
    buf_deinit(&describe->answer);
    free(describe);
}

/* --- on the thread */

/* The look at a stranger as it is now; one that has ended keeps what was seen before. */
static int look_again(struct describe *describe, struct process_list *list, struct err *err)
{
    const struct proc_stat *opened = &describe->stranger.stat;
    struct process_look *now = malloc(sizeof(*now));
    if (now == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory for a process");
    describe->ended = process_list_look(list, opened->pid, now) != 0 || proc_is_zombie(&now->stat) ||
                      now->stat.start_ticks != opened->start_ticks;
    if (!describe->ended)
        describe->look = *now;
    free(now);
    return 0;
}

/* A number that has ended may be another's now: then only what was left behind is told. */
static int write_children(struct describe *describe, struct process_list *list, struct err *err)
{
    struct process_filter children = {.strangers = true, .running = true, .parent = -1};
    if (is_stranger(describe)) {
        children.parent = describe->ended ? -1 : describe->stranger.stat.pid;
    } else {
        children.left_by = describe->row.info.id;
        children.parent = describe->ended ? -1 : describe->row.info.pid;
    }
    return process_list_write(list, &describe->answer, &describe->rows, &children, &describe->cancelled, err);
}

static int put(struct describe *describe, const char *text, struct err *err)
{
    return buf_append_text(&describe->answer, text) != 0 ? err_set(err, ERR_INTERNAL, "out of memory for a process")
                                                         : 0;
}

static int write_answer(struct describe *describe, struct process_list *list, struct err *err)
{
    if (is_stranger(describe) && look_again(describe, list, err) != 0)
        return -1;
    if (put(describe, "{", err) != 0)
        return -1;
    if (is_stranger(describe)
            ? process_list_write_look(list, &describe->answer, &describe->look, describe->ended, err) != 0
            : process_list_write_row(list, &describe->answer, &describe->row, err) != 0)
        return -1;
    if (put(describe, ",\"children\":", err) != 0 || write_children(describe, list, err) != 0)
        return -1;
    return put(describe, "}", err);
}

static void run(struct describe *describe, int (*work)(struct describe *, struct process_list *, struct err *))
{
    struct process_list *list = process_list_open(&describe->err);
    describe->failed = list == NULL || work(describe, list, &describe->err) != 0;
    process_list_close(list);
}

static void look_work(void *ctx)
{
    run(ctx, look_again);
}

static void answer_work(void *ctx)
{
    run(ctx, write_answer);
}

/* --- on the loop */

static int start_job(struct describe *describe, loop_fn work, loop_fn done)
{
    if (loop_job(describe->host->loop, work, done, describe) == 0)
        return 0;
    describe->failed = true;
    return err_set_errno(&describe->err, ERR_INTERNAL, ENOMEM, "cannot look at a process");
}

/* False: the request is gone, and so is what it wanted. */
static bool is_wanted(struct describe *describe)
{
    if (describe->task != NULL)
        return true;
    describe_free(describe);
    return false;
}

static void on_answered(void *ctx)
{
    struct describe *describe = ctx;
    if (is_wanted(describe))
        task_resume(describe->task);
}

/* The last step: copies what the thread needs and lets it write. */
static int answer(struct describe *describe)
{
    stop_waiting(describe);
    if (!is_stranger(describe)) {
        process_info_of(&describe->row.info, describe->row.held);
        describe->ended = describe->row.info.exited;
    }
    if (process_rows_take(&describe->rows, describe->host->processes) != 0) {
        describe->failed = true;
        return err_set(&describe->err, ERR_INTERNAL, "out of memory for a process");
    }
    return start_job(describe, answer_work, on_answered);
}

static void on_waited(void *ctx)
{
    struct describe *describe = ctx;
    if (answer(describe) != 0)
        task_resume(describe->task);
}

static void on_stranger_ended(void *ctx, int events)
{
    (void)events;
    on_waited(ctx);
}

static int start_waiting(struct describe *describe)
{
    struct loop *loop = describe->host->loop;
    if (!is_stranger(describe)) {
        process_wait_start(describe->row.held, &describe->wait, on_waited, describe);
    } else {
        describe->watch = loop_fd_new(loop, describe->stranger.pidfd, LOOP_READABLE, on_stranger_ended, describe);
        if (describe->watch == NULL) {
            describe->failed = true;
            return err_set_errno(&describe->err, ERR_INTERNAL, errno, "cannot watch a process");
        }
    }
    loop_timer_start(loop, &describe->timer, describe->wait_ms, on_waited, describe);
    return 0;
}

static void on_looked(void *ctx)
{
    struct describe *describe = ctx;
    if (!is_wanted(describe))
        return;
    if (describe->failed || start_waiting(describe) != 0)
        task_resume(describe->task);
}

/* A job that runs is freed when it comes back. */
static void on_cancel(void *op)
{
    struct describe *describe = ((struct describe_op *)op)->describe;
    if (describe == NULL)
        return;
    bool waits = describe->timer.heap_slot != 0;
    describe->task = NULL;
    atomic_store(&describe->cancelled, true);
    if (waits)
        describe_free(describe);
}

/* One that ends before the thread has looked is shown by what is seen here. */
static int find_stranger(struct describe *describe, const char *id, struct err *err)
{
    if (stranger_open(&describe->stranger, id, err) != 0)
        return -1;
    if (process_look_briefly(&describe->look, &describe->stranger.stat) == 0)
        return 0;
    err_set(err, ERR_PROCESS_NOT_FOUND, "process %s has ended", id);
    return err_field(err, "id");
}

static int find(struct describe *describe, const char *id, size_t len, struct err *err)
{
    if (strlen(id) != len)
        id = ""; /* a NUL is in no id */
    struct process *process = process_find(describe->host->processes, id);
    if (process == NULL || process_kind_name(process_kind(process)) == NULL)
        return find_stranger(describe, id, err);
    process_row_take(&describe->row, process);
    return 0;
}

static int begin(struct describe *describe)
{
    if (describe->wait_ms == 0)
        return answer(describe);
    return is_stranger(describe) ? start_job(describe, look_work, on_looked) : start_waiting(describe);
}

static int push_result(lua_State *L, struct describe *describe)
{
    struct buf *text = describe->text;
    struct err err = describe->err;
    bool failed = describe->failed;
    *text = describe->answer;
    buf_init(&describe->answer, 0);
    describe_free(describe);
    if (failed)
        return lua_push_err(L, &err);
    size_t len;
    char *bytes = buf_steal(text, &len);
    lua_push_raw_json(L, bytes, len);
    return 1;
}

static int describe_done(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    return push_result(L, ((struct describe_op *)context)->describe);
}

/* proc.describe(id, wait_ms) -> JSON | nil, code, message, field.  Yields. */
int bind_proc_describe(lua_State *L)
{
    size_t len;
    const char *id = luaL_checklstring(L, 1, &len);
    unsigned wait_ms = (unsigned)lua_arg_opt_int(L, 2, 0, 0, WAIT_MAX_MS);
    lua_settop(L, 2);
    struct buf *text = lua_push_buf(L, ANSWER_MAX_BYTES);
    struct describe_op *op = task_op_new(L, sizeof(*op), wait_ms > 0, on_cancel);
    struct describe *describe = calloc(1, sizeof(*describe));
    if (describe == NULL) {
        task_op_end(L);
        return luaL_error(L, "out of memory");
    }
    describe->task = task_check(L);
    describe->host = script_host(L);
    describe->wait_ms = wait_ms;
    describe->stranger.pidfd = -1;
    buf_init(&describe->answer, ANSWER_MAX_BYTES);
    describe->text = text;
    describe->failed = find(describe, id, len, &describe->err) != 0;
    if (describe->failed || begin(describe) != 0) {
        task_op_end(L);
        return push_result(L, describe);
    }
    op->describe = describe;
    return lua_yieldk(L, 0, (lua_KContext)op, describe_done);
}
