/* Drives libmicrohttpd's external epoll mode from libuv, once a turn of the loop; made by http_listener. */
#include "net/http_listener_parts.h"

#include <stdlib.h>
#include <uv.h>

enum {
    /* More runs in one turn would starve timers and processes under load. */
    RUNS_MAX = 4,
    /* So many answers in a turn, and the next turn holds its own back. */
    GATHER_FROM = 4,
    HANDLES = 4,
};

struct http_pump {
    struct MHD_Daemon *daemon;
    bool due; /* there is work for libmicrohttpd */
    bool lingers;
    bool gathers;
    unsigned answers; /* that were ready at once, in this turn */
    uv_poll_t poll;
    uv_check_t check;
    uv_idle_t idle; /* keeps the loop from blocking while work is due */
    uv_timer_t timer;
    int handles_open;
};

static void on_idle(uv_idle_t *idle)
{
    (void)idle;
}

void http_pump_wake(struct http_pump *pump)
{
    pump->due = true;
    uv_idle_start(&pump->idle, on_idle);
}

bool http_pump_gathers(struct http_pump *pump)
{
    pump->answers++;
    return pump->gathers;
}

void http_pump_linger(struct http_pump *pump)
{
    pump->lingers = true;
}

static void on_timer(uv_timer_t *timer)
{
    http_pump_wake(timer->data);
}

/* In the check phase, so that everything that a turn resumed is served by one run. */
static void on_check(uv_check_t *check)
{
    struct http_pump *pump = check->data;
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    enum MHD_Result waits = MHD_YES;

    if (!pump->due)
        return;
    pump->lingers = false;
    for (int i = 0; i < RUNS_MAX && waits == MHD_YES && wait_ms == 0 && !pump->lingers; i++) {
        pump->due = false;
        MHD_run(pump->daemon);
        waits = MHD_get_timeout(pump->daemon, &wait_ms);
    }
    pump->gathers = pump->answers >= GATHER_FROM;
    pump->answers = 0;
    if (waits == MHD_YES && wait_ms == 0)
        http_pump_wake(pump);
    if (!pump->due)
        uv_idle_stop(&pump->idle);
    /* A later time-out never falls before an earlier one, as all connections have the same limit. */
    if (waits == MHD_YES && wait_ms > 0 && !uv_is_active((uv_handle_t *)&pump->timer))
        uv_timer_start(&pump->timer, on_timer, wait_ms, 0);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    ((struct http_pump *)poll->data)->due = true;
}

struct http_pump *http_pump_new(struct loop *loop, struct MHD_Daemon *daemon)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    uv_loop_t *uv = loop_uv(loop);
    struct http_pump *pump = calloc(1, sizeof(*pump));

    if (!pump || !info || uv_poll_init(uv, &pump->poll, info->epoll_fd) < 0) {
        free(pump);
        return NULL;
    }
    pump->daemon = daemon;
    uv_check_init(uv, &pump->check);
    uv_idle_init(uv, &pump->idle);
    uv_timer_init(uv, &pump->timer);
    pump->poll.data = pump->check.data = pump->idle.data = pump->timer.data = pump;
    pump->handles_open = HANDLES;
    uv_poll_start(&pump->poll, UV_READABLE, on_readable);
    uv_check_start(&pump->check, on_check);
    http_pump_wake(pump);
    return pump;
}

static void on_closed(uv_handle_t *handle)
{
    struct http_pump *pump = handle->data;

    if (--pump->handles_open == 0)
        free(pump);
}

void http_pump_free(struct http_pump *pump)
{
    if (!pump)
        return;
    uv_close((uv_handle_t *)&pump->poll, on_closed);
    uv_close((uv_handle_t *)&pump->check, on_closed);
    uv_close((uv_handle_t *)&pump->idle, on_closed);
    uv_close((uv_handle_t *)&pump->timer, on_closed);
}
