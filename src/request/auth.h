/* Who may speak to this server: the token, the Host and the Origin of a request. Pure; also used for the terminals'
 * port. */
#ifndef ABX_REQUEST_AUTH_H
#define ABX_REQUEST_AUTH_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct auth_policy {
    const char *token;                  /* NULL: none is asked for */
    bool loopback;                      /* bound to loopback: addresses in Host must be loopback ones */
    const char *const *allowed_hosts;   /* NULL-terminated, or NULL */
    const char *const *allowed_origins; /* NULL-terminated, or NULL */
    unsigned rest_port;                 /* of the REST origin, which may also open terminals; known after listening */
};

/* What the headers said; NULL where there is none. The counts tell of repetitions. */
struct auth_headers {
    const char *authorization, *host, *origin, *fetch_site;
    size_t authorization_count, host_count, origin_count;
};

/* Notes a header if it is one of these; all of a request go through it, into a zeroed one. value is borrowed. */
void auth_headers_note(struct auth_headers *headers, const char *name, const char *value);

/* ERR_INVALID_REQUEST without exactly one well-formed Host (name or address, then perhaps :port), or where the
 * authority of an absolute-form target is another. ERR_HOST_NOT_ALLOWED for a name that is neither a loopback one nor
 * allowed, and for the address of another machine at a server on loopback; but with a token, beyond loopback and
 * without allowed_hosts every Host passes. authority may be NULL. */
int auth_check_host(const struct auth_policy *policy, const struct auth_headers *headers, const char *authority,
                    struct err *err) ABX_MUST_USE;
/* ERR_ORIGIN_NOT_ALLOWED for pages of another site. Call it after auth_check_host. */
int auth_check_origin(const struct auth_policy *policy, const struct auth_headers *headers,
                      struct err *err) ABX_MUST_USE;
/* ERR_UNAUTHORIZED; *out_sent tells whether any credentials came with the request. */
int auth_check_token(const struct auth_policy *policy, const struct auth_headers *headers, bool *out_sent,
                     struct err *err) ABX_MUST_USE;

#endif
