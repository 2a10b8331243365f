/* Token, Host and Origin checks, for the pipeline and for the terminals' handshake. */
#include "request/auth.h"

#include "model/request.h"
#include "prim/secret.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void auth_headers_note(struct auth_headers *headers, const char *name, const char *value)
{
    if (header_is(name, "Host")) {
        headers->host = value;
        headers->host_count++;
    } else if (header_is(name, "Authorization")) {
        headers->authorization = value;
        headers->authorization_count++;
    } else if (header_is(name, "Origin")) {
        headers->origin = value;
        headers->origin_count++;
    } else if (header_is(name, "Sec-Fetch-Site")) {
        headers->fetch_site = value;
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Splits "name", "name:port", "[v6]:port"; the name keeps its brackets. -1 where it is none of these. */
static int split_host(const char *host, size_t *out_name_len)
{
    size_t name_len = 0;
    const char *port;

    if (host[0] == '[') {
        name_len = strspn(host + 1, "0123456789abcdefABCDEF:.") + 2;
        if (name_len < 4 || host[name_len - 1] != ']')
            return -1;
    } else {
        char c;

        while (is_letter(c = host[name_len]) || is_digit(c) || c == '-' || c == '.' || c == '_')
            name_len++;
        if (name_len == 0)
            return -1;
    }
    port = host + name_len;
    if (*port == ':') {
        const char *digits = ++port;

        while (is_digit(*port))
            port++;
        if (port - digits > 5)
            return -1;
    }
    if (*port != '\0')
        return -1;
    *out_name_len = name_len;
    return 0;
}

static bool same_name(const char *host, size_t name_len, const char *name)
{
    return strlen(name) == name_len && strncasecmp(host, name, name_len) == 0;
}

/* Whether it is an address (and no name): a page of another site can take a name and let it point here, but hardly an
 * address. */
static bool is_address(const char *host, size_t name_len, bool *out_loopback)
{
    char text[INET6_ADDRSTRLEN];
    struct in_addr v4;
    struct in6_addr v6;
    size_t brackets = host[0] == '[';
    size_t len = name_len - 2 * brackets;

    if (len >= sizeof(text))
        return false;
    memcpy(text, host + brackets, len);
    text[len] = '\0';
    if (brackets) {
        if (inet_pton(AF_INET6, text, &v6) != 1)
            return false;
        *out_loopback = IN6_IS_ADDR_LOOPBACK(&v6);
    } else {
        if (inet_pton(AF_INET, text, &v4) != 1)
            return false;
        *out_loopback = ntohl(v4.s_addr) >> 24 == 127;
    }
    return true;
}

static bool host_allowed(const struct auth_policy *policy, const char *host, size_t name_len)
{
    bool any_name = policy->token && !policy->loopback && !(policy->allowed_hosts && policy->allowed_hosts[0]);
    bool loopback;

    if (any_name || same_name(host, name_len, "localhost"))
        return true;
    if (is_address(host, name_len, &loopback) && (loopback || !policy->loopback))
        return true;
    for (const char *const *allowed = policy->allowed_hosts; allowed && *allowed; allowed++) {
        if (same_name(host, name_len, *allowed))
            return true;
    }
    return false;
}

int auth_check_host(const struct auth_policy *policy, const struct auth_headers *headers, const char *authority,
                    struct err *err)
{
    const char *host = headers->host;
    size_t name_len;

    if (headers->host_count != 1)
        return err_set(err, ERR_INVALID_REQUEST, "the request must have exactly one Host header");
    if (split_host(host, &name_len) < 0)
        return err_set(err, ERR_INVALID_REQUEST, "the Host header is not a name or address with an optional port");
    if (authority && strcasecmp(authority, host) != 0)
        return err_set(err, ERR_INVALID_REQUEST, "the request target names another host than the Host header");
    if (host_allowed(policy, host, name_len))
        return 0;
    return err_set(err, ERR_HOST_NOT_ALLOWED,
                   "this server does not answer to the name in Host; if clients may call it so, add the name to "
                   "allowed_hosts (--allowed-hosts) and restart");
}

/* Whether the origin is http or https on this authority. */
static bool origin_is(const char *origin, const char *authority)
{
    if (strncasecmp(origin, "http://", 7) == 0)
        return strcasecmp(origin + 7, authority) == 0;
    return strncasecmp(origin, "https://", 8) == 0 && strcasecmp(origin + 8, authority) == 0;
}

static bool origin_allowed(const struct auth_policy *policy, const char *host, const char *origin)
{
    char rest[300];
    size_t name_len;

    if (host && origin_is(origin, host))
        return true;
    if (host && split_host(host, &name_len) == 0 && name_len < 256) {
        snprintf(rest, sizeof(rest), "%.*s:%u", (int)name_len, host, policy->rest_port);
        if (origin_is(origin, rest))
            return true;
    }
    for (const char *const *allowed = policy->allowed_origins; allowed && *allowed; allowed++) {
        if (strcasecmp(origin, *allowed) == 0)
            return true;
    }
    return false;
}

int auth_check_origin(const struct auth_policy *policy, const struct auth_headers *headers, struct err *err)
{
    if (headers->origin_count > 1)
        return err_set(err, ERR_ORIGIN_NOT_ALLOWED, "the request has more than one Origin header");
    if (headers->origin) {
        /* An allowed origin of another site is what allowed_origins is for, so Sec-Fetch-Site has no say then. */
        if (origin_allowed(policy, headers->host, headers->origin))
            return 0;
        return err_set(err, ERR_ORIGIN_NOT_ALLOWED,
                       "pages of this origin may not use the server; add it to allowed_origins if they should");
    }
    if (headers->fetch_site && strcasecmp(headers->fetch_site, "cross-site") == 0)
        return err_set(err, ERR_ORIGIN_NOT_ALLOWED, "requests that another site's page made are refused");
    return 0;
}

int auth_check_token(const struct auth_policy *policy, const struct auth_headers *headers, bool *out_sent,
                     struct err *err)
{
    const char *given = headers->authorization;

    *out_sent = headers->authorization_count > 0;
    if (!policy->token)
        return 0;
    if (!*out_sent)
        return err_set(err, ERR_UNAUTHORIZED, "send the server's token as Authorization: Bearer <token>");
    if (headers->authorization_count == 1 && strncasecmp(given, "Bearer ", 7) == 0) {
        given += 7 + strspn(given + 7, " ");
        if (secret_equal(given, strlen(given), policy->token, strlen(policy->token)))
            return 0;
    }
    return err_set(err, ERR_UNAUTHORIZED, "the token is not the server's");
}
