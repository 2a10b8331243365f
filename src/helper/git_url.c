/* The rule for URLs of remotes; see the header. What libgit2 would take besides (ssh, git, anything registered) never
 * reaches it. */
#include "helper/git_url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static bool is_plain(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        if (*at <= ' ' || *at == '\\' || *at == 0x7f)
            return false;
    return true;
}

static size_t scheme_len(const char *url, bool *out_https)
{
    *out_https = strncasecmp(url, "https://", 8) == 0;
    return *out_https ? 8 : strncasecmp(url, "http://", 7) == 0 ? 7 : 0;
}

static bool has_user(const char *authority)
{
    return memchr(authority, '@', strcspn(authority, "/?#")) != NULL;
}

/* Only letters that no reader of URLs takes for a border, so that libgit2 cannot see another host than we. */
static size_t host_len(const char *host)
{
    if (host[0] == '[') {
        size_t len = strspn(host + 1, "0123456789abcdefABCDEF:.");
        return len > 0 && host[1 + len] == ']' ? len + 2 : 0;
    }
    size_t len = 0;
    while (isalnum((unsigned char)host[len]) || strchr("-._", host[len] ? host[len] : '/'))
        len++;
    return len;
}

static int read_port(const char *text, size_t len, unsigned *port)
{
    if (len == 0 || len > 5 || strspn(text, "0123456789") < len)
        return -1;
    *port = (unsigned)strtoul(text, NULL, 10);
    return *port >= 1 && *port <= 65535 ? 0 : -1;
}

int git_origin_of(const char *url, struct git_origin *out)
{
    struct git_origin origin = {0};
    size_t skip = scheme_len(url, &origin.https);
    if (skip == 0 || !is_plain(url) || has_user(url + skip))
        return -1;
    const char *host = url + skip;
    size_t authority_len = strcspn(host, "/?#"), len = host_len(host);
    if (len == 0 || len > authority_len)
        return -1;
    origin.port = origin.https ? 443 : 80;
    if (len < authority_len &&
        (host[len] != ':' || read_port(host + len + 1, authority_len - len - 1, &origin.port) != 0))
        return -1;
    if (host[0] == '[') {
        host++;
        len -= 2;
    }
    if (len >= sizeof(origin.host))
        return -1;
    for (size_t i = 0; i < len; i++)
        origin.host[i] = (char)tolower((unsigned char)host[i]);
    *out = origin;
    return 0;
}

bool git_origin_equal(const struct git_origin *a, const struct git_origin *b)
{
    return a->https == b->https && a->port == b->port && strcmp(a->host, b->host) == 0;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* %XX of a file URL. -1: malformed, NUL, or too long. */
static int decode(const char *text, char *out, size_t size)
{
    size_t len = 0;
    for (; *text; text++) {
        char c = *text;
        if (c == '%') {
            int high = hex_digit(text[1]), low = high < 0 ? -1 : hex_digit(text[2]);
            if (low < 0 || (high == 0 && low == 0))
                return -1;
            c = (char)(high * 16 + low);
            text += 2;
        }
        if (len + 1 >= size)
            return -1;
        out[len++] = c;
    }
    out[len] = '\0';
    return 0;
}

static int not_allowed(struct err *err)
{
    return err_set(err, ERR_URL_NOT_ALLOWED,
                   "only http and https URLs, and paths of repositories inside the base directory");
}

/* The path that the text means; *out points into text or holds. */
static int path_text(const char *text, char *hold, size_t size, const char **out, struct err *err)
{
    *out = text;
    if (strncasecmp(text, "file://", 7) == 0) {
        const char *path = text + 7;
        if (strncasecmp(path, "localhost/", 10) == 0)
            path += 9;
        if (path[0] != '/' || decode(path, hold, size) != 0)
            return not_allowed(err);
        *out = hold;
        return 0;
    }
    /* "host:path" is ssh and "ext::command" a program; as with git, a slash before the colon makes it a path. */
    size_t colon = strcspn(text, ":/");
    return text[0] == '\0' || text[colon] == ':' ? not_allowed(err) : 0;
}

static int read_path(const struct git_call *call, const char *text, const char *relative_to, bool must_exist,
                     struct git_url *out, struct err *err)
{
    char hold[PATH_MAX], joined[PATH_MAX];
    const char *path;
    if (path_text(text, hold, sizeof(hold), &path, err) != 0)
        return -1;
    if (path[0] != '/') {
        int len = snprintf(joined, sizeof(joined), "%s/%s", relative_to, path);
        if (len < 0 || (size_t)len >= sizeof(joined))
            return err_set(err, ERR_INVALID_PATH, "the path is too long");
        path = joined;
    }
    int fd = confine_open_dir(call->confine, path, strlen(path), err);
    if (fd < 0) {
        if (err->code == ERR_FILE_NOT_FOUND || err->code == ERR_NOT_A_DIRECTORY)
            err_set(err, ERR_REPOSITORY_NOT_FOUND, "no repository is there: %.150s", text);
        return -1;
    }
    int rc = confine_path_of(fd, out->text, sizeof(out->text), err);
    close(fd);
    out->is_path = true;
    return rc != 0 || !must_exist ? rc : git_repository_check(call->confine, out->text, err);
}

int git_url_read(const struct git_call *call, const char *field, const char *text, const char *relative_to,
                 bool must_exist, struct git_url *out, struct err *err)
{
    struct git_url url = {0};
    bool https;
    size_t skip = scheme_len(text, &https);
    int rc;
    if (skip == 0)
        rc = read_path(call, text, relative_to, must_exist, &url, err);
    else if (has_user(text + skip))
        rc = err_set(err, ERR_URL_NOT_ALLOWED, "no user or password in a URL: they go into credentials");
    else if (git_origin_of(text, &url.origin) != 0 || strlen(text) >= sizeof(url.text))
        rc = err_set(err, ERR_URL_NOT_ALLOWED, "no valid http or https URL");
    else
        rc = snprintf(url.text, sizeof(url.text), "%s", text) < 0 ? -1 : 0;
    if (rc != 0)
        return err_field(err, field);
    *out = url;
    return 0;
}

void git_url_out(struct json_out *out, const char *name, const char *url)
{
    const char *scheme = url ? strstr(url, "://") : NULL;
    char clean[PATH_MAX];
    if (scheme && has_user(scheme + 3)) {
        const char *host = scheme + 3, *end = host + strcspn(host, "/?#");
        for (const char *at = host; at < end; at++)
            if (*at == '@')
                host = at + 1;
        snprintf(clean, sizeof(clean), "%.*s%s", (int)(scheme + 3 - url), url, host);
        url = clean;
    }
    if (url)
        json_out_path(out, name, url);
    else
        json_out_null(out, name);
}
