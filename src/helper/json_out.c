/* Writes the answers of `abxd-helper git` member by member: results are made while libgit2's lists are walked. */
#include "helper/json_out.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void keep(struct json_out *out, int rc)
{
    if (rc != 0)
        out->failed = true;
}

/* The comma and the name that stand before a value. */
static void begin(struct json_out *out, const char *name)
{
    if (out->failed)
        return;
    if (out->comma)
        keep(out, buf_append_few(out->buf, ",", 1));
    if (name)
        keep(out, buf_printf(out->buf, "\"%s\":", name));
    out->comma = true;
}

void json_out_open(struct json_out *out, const char *name, char bracket)
{
    begin(out, name);
    if (!out->failed)
        keep(out, buf_append_few(out->buf, &bracket, 1));
    out->comma = false;
}

void json_out_close(struct json_out *out, char bracket)
{
    if (!out->failed)
        keep(out, buf_append_few(out->buf, &bracket, 1));
    out->comma = true;
}

void json_out_bytes(struct json_out *out, const char *name, const char *text, size_t len)
{
    begin(out, name);
    if (!out->failed)
        keep(out, json_write_string(out->buf, text, len));
}

void json_out_text(struct json_out *out, const char *name, const char *text)
{
    if (text)
        json_out_bytes(out, name, text, strlen(text));
    else
        json_out_null(out, name);
}

void json_out_int(struct json_out *out, const char *name, int64_t value)
{
    begin(out, name);
    if (!out->failed)
        keep(out, json_write_int(out->buf, value));
}

void json_out_bool(struct json_out *out, const char *name, bool value)
{
    begin(out, name);
    if (!out->failed)
        keep(out, buf_append_text(out->buf, value ? "true" : "false"));
}

void json_out_null(struct json_out *out, const char *name)
{
    begin(out, name);
    if (!out->failed)
        keep(out, buf_append_text(out->buf, "null"));
}

void json_out_path(struct json_out *out, const char *name, const char *path)
{
    size_t len = strlen(path);
    json_out_bytes(out, name, path, len);
    if (out->failed || utf8_valid(path, len))
        return;
    keep(out, buf_printf(out->buf, ",\"%s_base64\":\"", name));
    if (!out->failed)
        keep(out, base64_encode(out->buf, path, len));
    if (!out->failed)
        keep(out, buf_append_few(out->buf, "\"", 1));
}

static void write_twin(struct json_out *out, const char *name, const struct buf *names)
{
    char twin[64];
    snprintf(twin, sizeof twin, "%s_base64", name);
    json_out_open(out, twin, '[');
    for (size_t at = 0; at < names->len; at += strlen(names->data + at) + 1) {
        begin(out, NULL);
        if (!out->failed && (buf_append_few(out->buf, "\"", 1) != 0 ||
                             base64_encode(out->buf, names->data + at, strlen(names->data + at)) != 0 ||
                             buf_append_few(out->buf, "\"", 1) != 0))
            out->failed = true;
    }
    json_out_close(out, ']');
}

void json_out_names(struct json_out *out, const char *name, const struct buf *names)
{
    bool exact = true;
    json_out_open(out, name, '[');
    for (size_t at = 0; at < names->len; at += strlen(names->data + at) + 1) {
        json_out_text(out, NULL, names->data + at);
        exact = exact && utf8_valid(names->data + at, strlen(names->data + at));
    }
    json_out_close(out, ']');
    if (!exact)
        write_twin(out, name, names);
}

void json_out_time(struct json_out *out, const char *name, int64_t seconds)
{
    /* Commits may claim any time; the format has years of four digits only. */
    enum { YEAR_MIN = 1000, YEAR_MAX = 9999 };
    struct tm utc;
    time_t time = seconds;
    char text[40];
    if (!gmtime_r(&time, &utc) || utc.tm_year + 1900LL < YEAR_MIN || utc.tm_year + 1900LL > YEAR_MAX) {
        json_out_null(out, name);
        return;
    }
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.000Z", &utc);
    json_out_text(out, name, text);
}
