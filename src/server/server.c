/* Builds all parts, runs them, reloads the tables, drains and takes everything down; see the header. Called by main. */
#include "server/server.h"

#include "base/log.h"
#include "bind/git_workers.h"
#include "bind/host.h"
#include "net/http_listener.h"
#include "net/ws_listener.h"
#include "prim/mask.h"
#include "request/pipeline.h"
#include "server/protect.h"
#include "server/tables.h"
#include "server/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <uv.h>

/* The drain's calendar, from SIGTERM on; a supervisor usually gives 10 s, the contract promises 8. */
enum {
    DRAIN_TICK_MS = 20,
    DRAIN_PATIENCE_MS = 2000, /* running requests may end by themselves */
    DRAIN_GRACE_MS = 2000,    /* between SIGTERM and SIGKILL for children */
    DRAIN_CANCEL_MS = 5500,   /* then what still runs is cancelled */
    DRAIN_GIVE_UP_MS = 7000,
};

enum { HELPER_PATH_MAX = 4096, LONG_THREADS = 8 };

struct server {
    const struct config *config;
    struct loop *loop;
    struct host host;
    char helper_path[HELPER_PATH_MAX];
    char *workers_dir; /* real path: workers start in the base directory */
    struct pipeline *pipeline;
    struct auth_policy policy; /* of both ports */
    struct http_listener *listener;
    bool with_terminals;        /* the group terminal is on */
    struct loop *terminal_loop; /* of the terminal thread */
    struct ws_listener *ws_listener;
    struct watch *watch;
    uv_signal_t signals[3];
    size_t signals_open;
    struct loop_timer drain_timer;
    uint64_t drain_started_ms; /* 0: not draining */
    bool hurry;                /* asked to stop a second time */
    bool children_told, children_ended, cancelled;
};

static void log_faults(const struct faults *faults)
{
    const char *line = faults->text.data, *end = line + faults->text.len;
    while (line && line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        log_error("tables", "%.*s", (int)((newline ? newline : end) - line), line);
        line = newline ? newline + 1 : end;
    }
}

static bool group_is_on(const struct generation *generation, const char *name)
{
    for (size_t i = 0; i < generation_group_count(generation); i++) {
        const struct group *group = generation_group(generation, i);
        if (strcmp(group->name, name) == 0)
            return group->enabled;
    }
    return false;
}

/* All or nothing: with any fault the pipeline keeps the generation that it has. */
static int load_tables(struct server *server, struct faults *faults)
{
    struct script_options options = tables_options(server->config, server->loop, &server->host);
    struct generation *generation = generation_load(&options, faults);
    if (!generation)
        return -1;
    pipeline_use(server->pipeline, generation);
    server->with_terminals = group_is_on(generation, "terminal"); /* read at the start only */
    log_info("tables", "generation %u serves %zu routes", generation_number(generation),
             generation_route_count(generation));
    generation_unref(generation);
    return 0;
}

static void on_tables_changed(void *ctx)
{
    struct server *server = ctx;
    if (server->drain_started_ms)
        return;
    struct faults faults;
    faults_init(&faults);
    if (load_tables(server, &faults) != 0) {
        log_faults(&faults);
        log_error("tables", "the reload was refused; the tables loaded before go on serving");
    }
    faults_deinit(&faults);
}

static void on_children_ended(void *ctx)
{
    struct server *server = ctx;
    server->children_ended = true;
}

static void on_drain_tick(void *ctx)
{
    struct server *server = ctx;
    uint64_t elapsed_ms = loop_now_ms(server->loop) - server->drain_started_ms;
    bool idle = pipeline_running(server->pipeline) == 0;
    if (!server->children_told && (idle || server->hurry || elapsed_ms >= DRAIN_PATIENCE_MS)) {
        server->children_told = true;
        process_table_end_all(server->host.processes, DRAIN_GRACE_MS, on_children_ended, server);
    }
    if (!server->cancelled && elapsed_ms >= DRAIN_CANCEL_MS) {
        server->cancelled = true;
        pipeline_cancel_all(server->pipeline);
    }
    if ((idle && server->children_ended) || elapsed_ms >= DRAIN_GIVE_UP_MS) {
        loop_stop(server->loop);
        return;
    }
    loop_timer_start(server->loop, &server->drain_timer, DRAIN_TICK_MS, on_drain_tick, server);
}

static void drain(struct server *server)
{
    server->hurry = server->drain_started_ms != 0;
    if (server->hurry)
        return;
    log_info("server", "draining");
    server->drain_started_ms = loop_now_ms(server->loop);
    server->host.draining = true;
    pipeline_drain(server->pipeline);
    if (server->ws_listener)
        ws_listener_drain(server->ws_listener);
    loop_timer_start(server->loop, &server->drain_timer, 0, on_drain_tick, server);
}

static void on_signal(uv_signal_t *handle, int signal)
{
    struct server *server = handle->data;
    if (signal == SIGHUP)
        on_tables_changed(server);
    else
        drain(server);
}

static int watch_signals(struct server *server, struct err *err)
{
    static const int wanted[] = {SIGTERM, SIGINT, SIGHUP};
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file beyond the limit fails that write, and ends nobody */
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        uv_signal_t *handle = &server->signals[i];
        handle->data = server;
        int failed = uv_signal_init(loop_uv(server->loop), handle);
        if (!failed) {
            server->signals_open++;
            failed = uv_signal_start(handle, on_signal, wanted[i]);
        }
        if (failed)
            return err_set(err, ERR_INTERNAL, "cannot watch signal %d: %s", wanted[i], uv_strerror(failed));
    }
    return 0;
}

static enum exit_status fail(const struct err *err, enum exit_status status)
{
    fprintf(stderr, "abxd: %s\n", err->text);
    return status;
}

static size_t requests_running(const void *ctx)
{
    const struct server *server = ctx;
    return pipeline_running(server->pipeline);
}

static enum exit_status open_host(struct server *server, const char *install_dir)
{
    const struct config *config = server->config;
    struct host *host = &server->host;
    struct err err;
    *host = (struct host){
        .loop = server->loop,
        .helper_path = server->helper_path,
        .version = ABX_VERSION,
        .started_at_ns = loop_clock_ns(),
        .requests_running = requests_running,
        .requests_ctx = server,
        .ws_public_url = config->ws_public_url,
        .browser_allow_hosts = (const char *const *)config->browser_allow_hosts,
        .limits = {.requests_max = config->limits.requests,
                   .processes_max = config->limits.processes,
                   .terminals_max = config->limits.terminals,
                   .json_body_bytes = 1024 * 1024,
                   .content_body_bytes = 32 * 1024 * 1024},
    };
    snprintf(server->helper_path, sizeof(server->helper_path), "%s/abxd-helper", install_dir);
    if (!(host->confine = confine_new(config->base_dir, false, &err)) ||
        protect_operator_files(host->confine, config, &err) != 0)
        return fail(&err, EXIT_USAGE);
    if (config->workers_dir && !(host->workers_dir = server->workers_dir = realpath(config->workers_dir, NULL))) {
        err_set_errno(&err, ERR_FILE_NOT_FOUND, errno, "workers_dir %s", config->workers_dir);
        return fail(&err, EXIT_USAGE);
    }
    struct process_limits limits = {.living_max = config->limits.processes,
                                    .terminals_max = config->limits.terminals,
                                    .ended_processes_max = 256,
                                    .ended_shells_max = 64,
                                    .ended_output_max_bytes = 64 * 1024 * 1024};
    if (!(host->long_jobs = pool_new(server->loop, LONG_THREADS, &err)))
        return fail(&err, EXIT_FAULT);
    if (!(host->processes = process_table_new(server->loop, &limits, environ, &err)) ||
        !(host->sessions = session_table_new(server->loop, host->confine, &err)) ||
        !(host->workers = workers_new(server->loop, host->processes, host->confine, &err)))
        return fail(&err, EXIT_FAULT);
    if (!(host->cpu_meter = cpu_meter_new()) || !(host->git = git_workers_new(host))) {
        err_set(&err, ERR_INTERNAL, "not enough memory");
        return fail(&err, EXIT_FAULT);
    }
    return EXIT_OK;
}

static enum exit_status open_pipeline(struct server *server)
{
    const struct config *config = server->config;
    server->policy = (struct auth_policy){
        .token = config->token,
        .loopback = config_is_loopback(config->host),
        .allowed_hosts = (const char *const *)config->allowed_hosts,
        .allowed_origins = (const char *const *)config->allowed_origins,
        .rest_port = config->port,
    };
    struct pipeline_options options = {
        .loop = server->loop,
        .policy = &server->policy,
        .requests_max = config->limits.requests,
    };
    struct err err;
    if (!(server->pipeline = pipeline_new(&options, &err)))
        return fail(&err, EXIT_FAULT);
    struct faults faults;
    faults_init(&faults);
    int failed = load_tables(server, &faults);
    if (failed)
        fwrite(faults.text.data, 1, faults.text.len, stderr);
    faults_deinit(&faults);
    return failed ? EXIT_USAGE : EXIT_OK;
}

/* The terminals and their port, both on a thread of their own. After open_listener: pages of the REST origin may open
 * terminals, so its port must be known. */
static enum exit_status open_terminals(struct server *server)
{
    const struct config *config = server->config;
    struct host *host = &server->host;
    struct ws_options options = {
        .host = config->host,
        .port = config->ws_port,
        .connections_max = config->limits.connections,
        .policy = &server->policy,
    };
    struct err err;
    if (!server->with_terminals)
        return EXIT_OK;
    if (!(server->terminal_loop = loop_new())) {
        err_set(&err, ERR_INTERNAL, "not enough memory");
        return fail(&err, EXIT_FAULT);
    }
    if (!(host->terminals = terminals_new(server->loop, server->terminal_loop, host->processes, &err)))
        return fail(&err, EXIT_FAULT);
    if (!(server->ws_listener = ws_listener_new(server->terminal_loop, host->terminals, &options, &err)) ||
        ws_listener_start(server->ws_listener, &err) != 0) {
        fprintf(stderr, "abxd: the terminals' port (ws_port): %s\n", err.text);
        return EXIT_FAULT;
    }
    host->ws_port = ws_listener_port(server->ws_listener);
    return EXIT_OK;
}

static enum exit_status open_listener(struct server *server)
{
    const struct config *config = server->config;
    struct http_options options = {
        .host = config->host,
        .port = config->port,
        .connections_max = config->limits.connections,
        .idle_timeout_s = config->limits.idle_timeout_s,
        .head_timeout_ms = config->limits.head_timeout_ms,
        .body_timeout_ms = config->limits.body_timeout_ms,
    };
    struct err err;
    if (watch_signals(server, &err) != 0 ||
        !(server->listener = http_listener_new(server->loop, server->pipeline, &options, &err)))
        return fail(&err, EXIT_FAULT);
    server->host.port = http_listener_port(server->listener);
    server->policy.rest_port = server->host.port;
    if (config->watch &&
        !(server->watch = watch_new(server->loop, config->lua_dir, config->commands, on_tables_changed, server, &err)))
        return fail(&err, EXIT_FAULT);
    return EXIT_OK;
}

static void announce(const struct server *server)
{
    bool v6 = strchr(server->config->host, ':') != NULL;
    const char *before = v6 ? "[" : "", *host = server->config->host, *after = v6 ? "]" : "";
    printf("listening http=%s%s%s:%u", before, host, after, server->host.port);
    if (server->ws_listener)
        printf(" ws=%s%s%s:%u", before, host, after, server->host.ws_port);
    printf("\n");
    fflush(stdout);
    log_info("server", "pid %d", (int)getpid());
    if (!server->config->token)
        log_warn("server", "no token is set: whoever reaches %s may do everything", server->config->host);
}

static void close_all(struct server *server)
{
    loop_timer_stop(&server->drain_timer);
    watch_free(server->watch);
    if (server->pipeline)
        pipeline_cancel_all(server->pipeline);
    if (server->listener)
        http_listener_free(server->listener);
    if (server->pipeline)
        pipeline_free(server->pipeline);
    if (server->host.sessions)
        session_table_free(server->host.sessions);
    contexts_free(server->host.contexts);
    git_workers_free(server->host.git);
    workers_free(server->host.workers);
    free(server->host.browser);
    ws_listener_free(server->ws_listener); /* from here on nobody runs the terminals' loop */
    if (server->host.processes)
        process_table_free(server->host.processes);
    terminals_free(server->host.terminals);
    loop_free(server->terminal_loop);
    pool_free(server->host.long_jobs);
    for (size_t i = 0; i < server->signals_open; i++)
        uv_close((uv_handle_t *)&server->signals[i], NULL);
    while (loop_jobs_running(server->loop) > 0)
        loop_turn(server->loop, true);
    loop_free(server->loop);
    cpu_meter_free(server->host.cpu_meter);
    if (server->host.confine)
        confine_free(server->host.confine);
    free(server->workers_dir);
}

enum exit_status server_run(const struct config *config, const char *install_dir)
{
    enum log_level level = LOG_LEVEL_INFO;
    if (log_level_parse(config->log_level, &level) == 0)
        log_configure(level, strcmp(config->log_format, "json") == 0);
    log_mask_with(mask_cut_text);
    for (const char **warning = config->warnings; *warning; warning++)
        log_warn("server", "%s", *warning);
    /* Children of the same user must not read this process's memory or environment through /proc (contract, fault 31).
     */
    prctl(PR_SET_DUMPABLE, 0);

    struct server server = {.config = config, .loop = loop_new()};
    if (!server.loop) {
        fprintf(stderr, "abxd: not enough memory\n");
        return EXIT_FAULT;
    }
    enum exit_status status = open_host(&server, install_dir);
    if (status == EXIT_OK)
        status = open_pipeline(&server);
    if (status == EXIT_OK)
        status = open_listener(&server);
    if (status == EXIT_OK)
        status = open_terminals(&server);
    if (status == EXIT_OK) {
        announce(&server);
        loop_run(server.loop);
        log_info("server", "stopped");
    }
    close_all(&server);
    return status;
}
