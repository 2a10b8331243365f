/* From a request's head to the route that may run, in the order that the contract wants; called by exchange_head. */
#include "request/answer.h"
#include "request/exchange.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char ALLOWED_HEADERS[] = "Authorization, Content-Type, Last-Event-ID, X-Request-Id, Accept, Range, "
                                      "If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since, If-Range";

struct admission {
    struct exchange *exchange;
    struct auth_headers headers;
    const char *expect;
    bool preflight, options;
    int target_status; /* of target_parse */
    struct err target_err;
};

static int refuse(struct exchange *exchange, const struct err *err)
{
    exchange_refuse(exchange, err, NULL, NULL, NULL);
    return -1;
}

static void gather_headers(struct admission *admission)
{
    const struct request *request = &admission->exchange->request;

    for (size_t i = 0; i < request->header_count; i++) {
        const char *name = request->headers[i].name, *value = request->headers[i].value;

        auth_headers_note(&admission->headers, name, value);
        if (header_is(name, "Expect"))
            admission->expect = value;
        else if (header_is(name, "Access-Control-Request-Method"))
            admission->preflight = true;
    }
    admission->options = strcmp(request->method, "OPTIONS") == 0;
    admission->preflight = admission->preflight && admission->options && admission->headers.origin;
}

static int answer_draining(struct exchange *exchange)
{
    const struct request *request = &exchange->request;
    struct response response;
    struct err err;

    if (strcmp(exchange->target.path, "/health") == 0 && (request->head || strcmp(request->method, "GET") == 0)) {
        answer_text(&response, 503, "application/json", "{\"status\":\"shutting_down\"}");
        exchange_answer(exchange, &response);
        return -1;
    }
    err_set(&err, ERR_SHUTTING_DOWN, "the server is shutting down");
    return refuse(exchange, &err);
}

static int answer_preflight(struct exchange *exchange)
{
    struct response response;

    if (answer_text(&response, 204, NULL, NULL) == 0 &&
        (response_header_fixed(&response, "Access-Control-Allow-Methods",
                               "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS") < 0 ||
         response_header_fixed(&response, "Access-Control-Allow-Headers", ALLOWED_HEADERS) < 0 ||
         response_header_fixed(&response, "Access-Control-Max-Age", "600") < 0))
        response.status = 500;
    exchange_answer(exchange, &response);
    return -1;
}

static int check_sender(struct admission *admission)
{
    struct exchange *exchange = admission->exchange;
    const struct auth_policy *policy = exchange->pipeline->policy;
    struct err err;

    if (auth_check_host(policy, &admission->headers, exchange->target.authority, &err) < 0)
        return refuse(exchange, &err);
    if (auth_check_origin(policy, &admission->headers, &err) < 0)
        return refuse(exchange, &err);
    exchange->cors_origin = admission->headers.origin;
    return 0;
}

static void find_route(struct admission *admission)
{
    struct exchange *exchange = admission->exchange;
    enum method method = METHOD_COUNT;

    if (exchange->request.head)
        method = METHOD_GET;
    else if (method_parse(exchange->request.method, &method) < 0)
        method = METHOD_COUNT;
    if (admission->target_status == 0 && exchange->tables)
        router_find(exchange->tables->router, method, &exchange->target, &exchange->match);
    exchange->request.route = exchange->match.route;
}

/* Everything but a route that says so asks for the token, and nothing tells before whether it exists. */
static int check_token(struct admission *admission)
{
    struct exchange *exchange = admission->exchange;
    struct err err;
    bool sent;

    if (exchange->match.route && !exchange->match.route->auth_required)
        return 0;
    if (auth_check_token(exchange->pipeline->policy, &admission->headers, &sent, &err) == 0)
        return 0;
    exchange->request.route = NULL;
    exchange_refuse(exchange, &err, NULL, "WWW-Authenticate",
                    sent ? "Bearer realm=\"abxd\", error=\"invalid_token\"" : "Bearer realm=\"abxd\"");
    return -1;
}

static void write_allow(unsigned methods, char *out, size_t size)
{
    size_t len = 0;

    for (int method = 0; method < METHOD_COUNT; method++) {
        if (methods & 1u << method)
            len += (size_t)snprintf(out + len, size - len, "%s%s, ", method_name((enum method)method),
                                    method == METHOD_GET ? ", HEAD" : "");
    }
    snprintf(out + len, size - len, "OPTIONS");
}

static int answer_options(struct exchange *exchange, const char *allow)
{
    struct response response;

    if (answer_text(&response, 204, NULL, NULL) == 0 && response_header(&response, "Allow", allow) < 0)
        response.status = 500;
    exchange_answer(exchange, &response);
    return -1;
}

static int check_route(struct admission *admission)
{
    struct exchange *exchange = admission->exchange;
    const struct router_match *match = &exchange->match;
    char allow[96];
    struct err err;

    if (admission->target_status < 0)
        return refuse(exchange, &admission->target_err);
    if (exchange->target.asterisk && admission->options)
        return answer_options(exchange, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    if (match->methods == 0) {
        err_set(&err, ERR_NOT_FOUND, "there is no such endpoint; GET /capabilities lists those there are");
        return refuse(exchange, &err);
    }
    if (admission->options || !match->route) {
        write_allow(match->methods, allow, sizeof(allow));
        if (admission->options)
            return answer_options(exchange, allow);
        err_set(&err, ERR_METHOD_NOT_ALLOWED, "this endpoint takes %s", allow);
        exchange_refuse(exchange, &err, NULL, "Allow", allow);
        return -1;
    }
    if (!match->route->group->enabled) {
        err_set(&err, ERR_CAPABILITY_DISABLED, "the group %s is not enabled on this server", match->route->group->name);
        return refuse(exchange, &err);
    }
    return 0;
}

/* Open routes are not counted: a health check has to be answered by a busy server too. */
static int check_limits(struct admission *admission)
{
    struct exchange *exchange = admission->exchange;
    struct pipeline *pipeline = exchange->pipeline;
    struct err err;

    if (admission->expect && strcasecmp(admission->expect, "100-continue") != 0) {
        err_set(&err, ERR_EXPECTATION_FAILED, "the only expectation that can be met is 100-continue");
        return refuse(exchange, &err);
    }
    if (!exchange->match.route->auth_required)
        return 0;
    if (pipeline->running >= pipeline->requests_max) {
        err_set(&err, ERR_TOO_MANY_REQUESTS, "%zu requests are running, which is the limit; try again later",
                pipeline->running);
        return refuse(exchange, &err);
    }
    exchange->counted = true;
    pipeline->running++;
    return 0;
}

int exchange_admit(struct exchange *exchange)
{
    struct admission admission = {.exchange = exchange};
    struct pipeline *pipeline = exchange->pipeline;

    exchange->tables = pipeline->tables;
    if (exchange->tables)
        exchange->tables->references++;
    admission.target_status =
        target_parse(&exchange->target, exchange->request.target, &exchange->request.arena, &admission.target_err);
    gather_headers(&admission);
    if (pipeline->draining)
        return answer_draining(exchange);
    if (check_sender(&admission) < 0)
        return -1;
    if (admission.preflight)
        return answer_preflight(exchange);
    find_route(&admission);
    if (check_token(&admission) < 0 || check_route(&admission) < 0)
        return -1;
    return check_limits(&admission);
}
