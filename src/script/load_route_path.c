/* The path of a route: its syntax, its parameters, its shape. Called by load_routes.c. */
#include "script/load.h"

#include <string.h>

static bool is_literal(const char *text, size_t len)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    return len > 0 && strspn(text, allowed) >= len && !(len == 1 && text[0] == '.') &&
           !(len == 2 && text[0] == '.' && text[1] == '.');
}

static bool is_param(const char *text, size_t len)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    return len > 2 && text[0] == '{' && text[len - 1] == '}' && strspn(text + 1, allowed) == len - 2 &&
           !(text[1] >= '0' && text[1] <= '9');
}

static int add_param(struct route_path *out, const char *name, size_t len, struct err *err)
{
    if (out->param_count == ROUTE_PATH_PARAMS_MAX)
        return err_set(err, ERR_INVALID_PATH, "has over %d parameters", ROUTE_PATH_PARAMS_MAX);
    char *param = out->params[out->param_count];
    memcpy(param, name, len);
    param[len] = '\0';
    for (size_t i = 0; i < out->param_count; i++) {
        if (strcmp(out->params[i], param) == 0)
            return err_set(err, ERR_INVALID_PATH, "has {%s} twice", param);
    }
    out->param_count++;
    return 0;
}

int load_route_path(const char *path, struct route_path *out, struct err *err)
{
    *out = (struct route_path){0};
    if (path[0] != '/')
        return err_set(err, ERR_INVALID_PATH, "must begin with a slash");
    if (strlen(path) > ROUTE_PATH_MAX)
        return err_set(err, ERR_INVALID_PATH, "is over %d bytes", ROUTE_PATH_MAX);
    if (path[1] == '\0') {
        strcpy(out->shape, "/");
        return 0;
    }
    char *shape = out->shape; /* never longer than the path */
    while (*path == '/') {
        size_t len = strcspn(++path, "/");
        *shape++ = '/';
        if (is_param(path, len)) {
            if (add_param(out, path + 1, len - 2, err) != 0)
                return -1;
            memcpy(shape, "{}", 2);
            shape += 2;
        } else if (is_literal(path, len)) {
            memcpy(shape, path, len);
            shape += len;
        } else if (len == 0) {
            return err_set(err, ERR_INVALID_PATH, "has an empty segment, or ends with a slash");
        } else {
            return err_set(err, ERR_INVALID_PATH, "has the segment '%.*s', which is neither {name} nor plain text",
                           (int)len, path);
        }
        path += len;
    }
    return 0;
}
