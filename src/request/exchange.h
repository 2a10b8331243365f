/* One request on its way through the pipeline: shared by the pipeline's own files only. */
#ifndef ABX_REQUEST_EXCHANGE_H
#define ABX_REQUEST_EXCHANGE_H

#include "base/list.h"
#include "request/auth.h"
#include "request/pipeline.h"
#include "request/router.h"
#include "script/task.h"

enum {
    EXCHANGE_SPARE_MAX = 128, /* kept for the next requests */
    EXCHANGE_ARENA_MAX_BYTES = 16 * 1024 * 1024,
    EXCHANGE_INLINE_PARSE_MAX_BYTES = 256 * 1024, /* larger bodies are parsed on the pool */
    EXCHANGE_BODY_DEFAULT_BYTES = 1024 * 1024,
};

/* A generation with the router made from it; shared by the requests that began in it. */
struct tables {
    int references;
    struct generation *generation;
    struct router *router;
};

struct pipeline {
    struct loop *loop;
    const struct auth_policy *policy;
    size_t requests_max, running;
    bool draining;
    struct tables *tables; /* NULL before the first pipeline_use */
    struct list exchanges; /* all that live */
    struct exchange *spare;
    size_t spare_count;
    char id_prefix[9];
    uint32_t id_count;
};

enum exchange_mode {
    EXCHANGE_NO_BODY,
    EXCHANGE_IGNORES, /* the body is read for its limit only */
    EXCHANGE_COLLECTS,
    EXCHANGE_STREAMS,
};

struct exchange {
    struct list node;
    struct exchange *next_spare;
    struct pipeline *pipeline;
    const struct exchange_events *events;
    void *net;
    struct tables *tables;
    struct request request;
    size_t header_cap;
    struct target target;
    struct router_match match;
    uint64_t started_ns;
    int status;   /* of the answer; 0: none yet */
    bool counted; /* in pipeline->running */

    const char *cors_origin; /* an allowed Origin, told back to the browser */

    enum exchange_mode mode;
    struct buf text;                      /* EXCHANGE_COLLECTS */
    uint64_t received_bytes, limit_bytes; /* limit 0: none */
    struct body body;                     /* EXCHANGE_STREAMS */
    struct parse_job *job;
    struct arena parsed; /* where a job put the parameters */

    struct task *task;
    bool task_over;
};

void tables_unref(struct tables *tables);

/* Answers once; what comes later is thrown away. Takes *response and leaves it empty. */
void exchange_answer(struct exchange *exchange, struct response *response);
/* The problem reply for err, with one more header where name is not NULL. */
void exchange_refuse(struct exchange *exchange, const struct err *err, const struct field_errors *errors,
                     const char *name, const char *value);

/* From the head to a route that may run: 0, or -1 when the answer is made already. */
int exchange_admit(struct exchange *exchange) ABX_MUST_USE;

/* The route is known: sees to the body's rules, then runs the handler now or when the body is there. */
void exchange_begin(struct exchange *exchange, bool has_body, int64_t body_length);
/* Lets go of a job that is still parsing for this exchange. */
void exchange_drop_job(struct exchange *exchange);

#endif
