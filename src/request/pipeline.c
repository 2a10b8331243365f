/* The pipeline's standing parts: policy, current tables, running requests. Made by server, used by net. */
#include "request/pipeline.h"

#include "base/log.h"
#include "prim/secret.h"
#include "request/exchange.h"

#include <stdlib.h>
#include <string.h>

static void list_of_texts_free(char **texts)
{
    for (char **text = texts; text && *text; text++)
        free(*text);
    free(texts);
}

static char **list_of_texts_dup(const char *const *texts)
{
    size_t count = 0;
    char **copy;

    while (texts && texts[count])
        count++;
    copy = calloc(count + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = strdup(texts[i]);
        if (!copy[i]) {
            list_of_texts_free(copy);
            return NULL;
        }
    }
    return copy;
}

struct pipeline *pipeline_new(const struct pipeline_options *options, struct err *err)
{
    struct pipeline *pipeline = calloc(1, sizeof(*pipeline));

    if (!pipeline) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    list_init(&pipeline->exchanges);
    pipeline->loop = options->loop;
    pipeline->requests_max = options->requests_max;
    pipeline->token = options->token ? strdup(options->token) : NULL;
    pipeline->allowed_hosts = list_of_texts_dup(options->allowed_hosts);
    pipeline->allowed_origins = list_of_texts_dup(options->allowed_origins);
    if ((options->token && !pipeline->token) || !pipeline->allowed_hosts || !pipeline->allowed_origins) {
        pipeline_free(pipeline);
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    pipeline->policy = (struct auth_policy){
        .token = pipeline->token,
        .loopback = options->loopback,
        .allowed_hosts = (const char *const *)pipeline->allowed_hosts,
        .allowed_origins = (const char *const *)pipeline->allowed_origins,
        .rest_port = options->port,
    };
    secret_random_hex(pipeline->id_prefix, 4);
    return pipeline;
}

void pipeline_free(struct pipeline *pipeline)
{
    if (!pipeline)
        return;
    tables_unref(pipeline->tables);
    while (pipeline->spare) {
        struct exchange *exchange = pipeline->spare;

        pipeline->spare = exchange->next_spare;
        arena_deinit(&exchange->request.arena);
        free(exchange);
    }
    if (pipeline->token)
        secret_wipe(pipeline->token, strlen(pipeline->token));
    free(pipeline->token);
    list_of_texts_free(pipeline->allowed_hosts);
    list_of_texts_free(pipeline->allowed_origins);
    free(pipeline);
}

void pipeline_set_ports(struct pipeline *pipeline, unsigned port, unsigned ws_port)
{
    (void)ws_port; /* only the REST origin is compared */
    pipeline->policy.rest_port = port;
}

void tables_unref(struct tables *tables)
{
    if (!tables || --tables->references > 0)
        return;
    router_free(tables->router);
    generation_unref(tables->generation);
    free(tables);
}

static struct tables *tables_new(struct generation *generation)
{
    size_t count = generation_route_count(generation);
    const struct route **routes = calloc(count + 1, sizeof(*routes));
    struct tables *tables = calloc(1, sizeof(*tables));

    for (size_t i = 0; routes && i < count; i++)
        routes[i] = generation_route(generation, i);
    if (routes && tables)
        tables->router = router_new(routes, count);
    free(routes);
    if (!tables || !tables->router) {
        free(tables);
        return NULL;
    }
    tables->references = 1;
    tables->generation = generation_ref(generation);
    return tables;
}

void pipeline_use(struct pipeline *pipeline, struct generation *generation)
{
    struct tables *tables = tables_new(generation);

    if (!tables) {
        log_error("pipeline", "out of memory for the new routes; the old ones stay");
        return;
    }
    tables_unref(pipeline->tables);
    pipeline->tables = tables;
}

void pipeline_drain(struct pipeline *pipeline)
{
    pipeline->draining = true;
}

bool pipeline_draining(const struct pipeline *pipeline)
{
    return pipeline->draining;
}

size_t pipeline_running(const struct pipeline *pipeline)
{
    return pipeline->running;
}

void pipeline_cancel_all(struct pipeline *pipeline)
{
    struct err err;

    err_set(&err, ERR_SHUTTING_DOWN, "the server is shutting down");
    LIST_EACH (&pipeline->exchanges, node) {
        struct exchange *exchange = LIST_ENTRY(node, struct exchange, node);
        struct task *task = exchange->task;

        exchange_drop_job(exchange);
        exchange->task = NULL;
        exchange->task_over = true;
        if (task)
            task_cancel(task);
        exchange_refuse(exchange, &err, NULL, NULL, NULL);
    }
}
