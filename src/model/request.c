/* Looks things up in the headers of a request; pipeline and bindings ask. */
#include "model/request.h"

#include <string.h>
#include <strings.h>

bool request_id_is_valid(const char *text)
{
    size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    return len >= 1 && len <= REQUEST_ID_MAX && text[len] == '\0';
}

const char *request_header(const struct request *request, const char *name)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (header_is(request->headers[i].name, name))
            return request->headers[i].value;
    return NULL;
}

/* Whether "q=0", "q=0.000" and the like stands among the parameters of one range. */
static bool is_refused(const char *params, const char *end)
{
    while (params < end) {
        const char *param = params + strspn(params, "; \t");
        params = param + strcspn(param, ";,");
        if (param >= end || (*param != 'q' && *param != 'Q'))
            continue;
        param += 1 + strspn(param + 1, " \t");
        if (*param != '=')
            continue;
        param += 1 + strspn(param + 1, " \t");
        return *param == '0' && strspn(param, "0. \t") == (size_t)(params - param);
    }
    return false;
}

static bool names_type(const char *accept, const char *media_type)
{
    size_t type_len = strlen(media_type);
    while (*accept) {
        accept += strspn(accept, ", \t");
        const char *end = accept + strcspn(accept, ",");
        size_t range_len = strcspn(accept, ",; \t");
        if (range_len == type_len && strncasecmp(accept, media_type, type_len) == 0 &&
            !is_refused(accept + range_len, end))
            return true;
        accept = end;
    }
    return false;
}

bool request_accepts(const struct request *request, const char *media_type)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (header_is(request->headers[i].name, "Accept") && names_type(request->headers[i].value, media_type))
            return true;
    return false;
}
