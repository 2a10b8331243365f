/* Keeps an answer together until net has sent it. */
#include "model/response.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

void response_init(struct response *response)
{
    *response = (struct response){.status = 200, .file.fd = -1};
    buf_init(&response->bytes, RESPONSE_BODY_MAX_BYTES);
}

void response_deinit(struct response *response)
{
    for (size_t i = 0; i < response->header_count; i++)
        free(response->headers[i].owned);
    response->header_count = 0;
    buf_deinit(&response->bytes);
    if (response->file.fd >= 0)
        close(response->file.fd);
    response->file.fd = -1;
    if (response->sink) {
        sink_close(response->sink);
        sink_unref(response->sink);
        response->sink = NULL;
    }
}

/* RFC 9110, 5.6.2 */
static bool is_token(const char *text)
{
    static const char symbols[] = "!#$%&'*+-.^_`|~";
    const char *at = text;
    for (; *at; at++) {
        bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9');
        if (!letter && *at != '-' && !strchr(symbols, *at))
            return false;
    }
    return at > text;
}

static bool is_clean(const char *value)
{
    for (const unsigned char *at = (const unsigned char *)value; *at; at++)
        if (*at < 0x20 || *at == 0x7F)
            return false;
    return true;
}

static struct header_pair *find(const struct response *response, const char *name)
{
    for (size_t i = 0; i < response->header_count; i++)
        if ((response->headers[i].name[0] | 0x20) == (name[0] | 0x20) &&
            strcasecmp(response->headers[i].name, name) == 0)
            return (struct header_pair *)&response->headers[i];
    return NULL;
}

static int put(struct response *response, struct header_pair header)
{
    struct header_pair *pair = find(response, header.name);
    if (!pair && response->header_count == RESPONSE_HEADERS_MAX)
        return -1;
    if (pair)
        free(pair->owned);
    else
        pair = &response->headers[response->header_count++];
    *pair = header;
    return 0;
}

int response_header(struct response *response, const char *name, const char *value)
{
    if (!is_token(name) || !is_clean(value))
        return -1;
    size_t name_size = strlen(name) + 1, value_size = strlen(value) + 1;
    char *both = malloc(name_size + value_size);
    if (!both)
        return -1;
    memcpy(both, name, name_size);
    memcpy(both + name_size, value, value_size);
    if (put(response, (struct header_pair){.name = both, .value = both + name_size, .owned = both}) == 0)
        return 0;
    free(both);
    return -1;
}

int response_header_fixed(struct response *response, const char *name, const char *value)
{
    return put(response, (struct header_pair){.name = name, .value = value});
}

const char *response_header_find(const struct response *response, const char *name)
{
    const struct header_pair *pair = find(response, name);
    return pair ? pair->value : NULL;
}
