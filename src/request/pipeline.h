/* The path of a request, independent of the HTTP library: router, auth, group, validation, handler, answer.
 *
 * net makes an exchange for each request and feeds it; the pipeline answers through exchange_events. Main thread only.
 */
#ifndef ABX_REQUEST_PIPELINE_H
#define ABX_REQUEST_PIPELINE_H

#include "base/err.h"
#include "base/loop.h"
#include "model/request.h"
#include "model/response.h"
#include "request/auth.h"
#include "script/generation.h"

#include <stdbool.h>
#include <stddef.h>

struct pipeline;

struct pipeline_options {
    struct loop *loop;
    const struct auth_policy *policy; /* borrowed */
    size_t requests_max;              /* running at once; past it 429 */
};

struct pipeline *pipeline_new(const struct pipeline_options *options, struct err *err);
void pipeline_free(struct pipeline *pipeline);
/* From now on requests run in this generation (takes a reference); running ones end in theirs. */
void pipeline_use(struct pipeline *pipeline, struct generation *generation);
/* New requests get 503 shutting_down (GET /health too, with its own body); running streams are ended by their
 * producers. */
void pipeline_drain(struct pipeline *pipeline);
bool pipeline_draining(const struct pipeline *pipeline);
size_t pipeline_running(const struct pipeline *pipeline);
/* Cancels what still runs; each exchange gets 503 or its stream is cut. */
void pipeline_cancel_all(struct pipeline *pipeline);

struct exchange;

/* What net does with the body that follows the head. */
enum exchange_body {
    EXCHANGE_BODY_PUSH,    /* give it to exchange_push as it comes, then exchange_end (neither without a body) */
    EXCHANGE_BODY_DISCARD, /* the answer is ready: read and drop at most 16 MiB or 5 s, then send it, else close */
};

struct exchange_events {
    /* The answer is ready; net moves its contents out of *response and leaves it as response_init does. Once for an
     * exchange; may be called from inside exchange_head, exchange_push or exchange_end. */
    void (*on_response)(void *net, struct response *response);
    /* Bytes that exchange_push did not take can be offered again. */
    void (*on_wake)(void *net);
};

/* Method, target and the headers as they came; net keeps these texts until exchange_free. has_body: a body will follow;
 * body_length -1 where not known. The exchange belongs to net until exchange_free. NULL out of memory. */
struct exchange *exchange_new(struct pipeline *pipeline, const struct exchange_events *events, void *net,
                              const char *method, const char *target);
int exchange_header(struct exchange *exchange, const char *name, const char *value) ABX_MUST_USE;
enum exchange_body exchange_head(struct exchange *exchange, bool has_body, int64_t body_length);
size_t exchange_push(struct exchange *exchange, const char *bytes, size_t len); /* how many it took */
void exchange_end(struct exchange *exchange);
/* The client left, or net is done with the answer: cancels what runs, logs, frees. `sent` tells for the access log
 * whether the whole answer went out. */
void exchange_free(struct exchange *exchange, bool sent);

/* For failures that net finds itself (bad framing): makes the problem reply. */
void exchange_fail(struct exchange *exchange, const struct err *err);

#endif
