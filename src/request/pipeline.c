/* The pipeline's standing parts: policy, current tables, running requests. Made by server, used by net. */
#include "request/pipeline.h"

#include "base/log.h"
#include "prim/secret.h"
#include "request/exchange.h"

#include <stdlib.h>
#include <string.h>

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
    pipeline->policy = options->policy;
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
    free(pipeline);
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
