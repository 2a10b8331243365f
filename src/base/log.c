/* Log lines on stderr: every layer writes them, server configures them. */
#include "base/log.h"
#include "base/json.h"
#include "base/utf8.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOG_MESSAGE_MAX_BYTES = 4096, LOG_LINE_MAX_BYTES = 8 * LOG_MESSAGE_MAX_BYTES, LOG_SECRET_MIN_BYTES = 4 };

static const char *const level_names[] = {"debug", "info", "warn", "error", "off"};

static atomic_int level_least = LOG_LEVEL_INFO;
static atomic_bool as_json = true;

static int (*mask_message)(struct buf *out, const char *text, size_t len);

static pthread_mutex_t secrets_lock = PTHREAD_MUTEX_INITIALIZER;
static char **secrets;
static size_t secret_count;

void log_configure(enum log_level level, bool json)
{
    level_least = (int)level;
    as_json = json;
}

int log_level_parse(const char *name, enum log_level *out_level)
{
    for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++)
        if (strcmp(name, level_names[i]) == 0) {
            *out_level = (enum log_level)i;
            return 0;
        }
    return -1;
}

static void forget_secrets(void)
{
    for (size_t i = 0; i < secret_count; i++) {
        explicit_bzero(secrets[i], strlen(secrets[i]));
        free(secrets[i]);
    }
    free(secrets);
    secrets = NULL;
    secret_count = 0;
}

void log_hide(const char *secret)
{
    if (secret && strlen(secret) < LOG_SECRET_MIN_BYTES)
        return;
    pthread_mutex_lock(&secrets_lock);
    if (!secret) {
        forget_secrets();
    } else {
        char *copy = strdup(secret);
        char **grown = realloc(secrets, (secret_count + 1) * sizeof *secrets);
        if (grown)
            secrets = grown;
        if (!copy || !grown)
            abort(); /* going on would mean to log it */
        secrets[secret_count++] = copy;
    }
    pthread_mutex_unlock(&secrets_lock);
}

void log_mask_with(int (*mask)(struct buf *out, const char *text, size_t len))
{
    mask_message = mask;
}

bool log_enabled(enum log_level level)
{
    return level < LOG_LEVEL_OFF && (int)level >= level_least;
}

/* In place: a secret is never shorter than its mask. */
static void mask_secrets(char *text)
{
    pthread_mutex_lock(&secrets_lock);
    for (size_t i = 0; i < secret_count; i++) {
        size_t secret_len = strlen(secrets[i]);
        for (char *at = text; (at = strstr(at, secrets[i]));) {
            memcpy(at, "***", 3);
            memmove(at + 3, at + secret_len, strlen(at + secret_len) + 1);
            at += 3;
        }
    }
    pthread_mutex_unlock(&secrets_lock);
}

/* For people: what followed a line break (a traceback) stands in lines of its own, indented so that none can pass for a
 * log line. */
static int append_lines(struct buf *line, const char *text, size_t len)
{
    const char *end = text + len;
    while (end > text && end[-1] == '\n')
        end--;
    for (;;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        if (json_write_escaped(line, text, (size_t)((newline ? newline : end) - text)) != 0)
            return -1;
        if (!newline)
            return 0;
        text = newline + 1;
        while (text < end && *text == '\t')
            text++;
        if (buf_append_text(line, "\n    ") != 0)
            return -1;
    }
}

/* Appends one member; its value is masked before it is escaped and cut. */
static int append_text(struct buf *line, const char *key, char *value)
{
    mask_secrets(value);
    size_t len = strlen(value);
    if (len > LOG_MESSAGE_MAX_BYTES)
        len = utf8_whole_len(value, LOG_MESSAGE_MAX_BYTES);
    if (!as_json)
        return buf_append_text(line, " ") || append_lines(line, value, len);
    return buf_printf(line, ",\"%s\":", key) || json_write_string(line, value, len);
}

/* Masked as a whole, before it is cut. What cannot be masked is not written. */
static int append_message(struct buf *line, char *message)
{
    struct buf masked;
    if (mask_message == NULL)
        return append_text(line, "msg", message);
    buf_init(&masked, SIZE_MAX);
    int failed = mask_message(&masked, message, strlen(message)) || buf_append(&masked, "", 1);
    if (failed == 0)
        failed = append_text(line, "msg", masked.data);
    buf_deinit(&masked);
    return failed;
}

static int append_short(struct buf *line, const char *key, const char *value)
{
    char copy[512];
    if (!value || !*value)
        return 0;
    snprintf(copy, sizeof copy, "%s", value);
    return append_text(line, key, copy);
}

static int append_start(struct buf *line, enum log_level level)
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    char ts[64];
    size_t len = strftime(ts, sizeof ts, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(ts + len, sizeof ts - len, ".%03ldZ", now.tv_nsec / 1000000);
    return buf_printf(line, as_json ? "{\"ts\":\"%s\",\"level\":\"%s\"" : "%s %s", ts, level_names[level]);
}

/* Pieces of PIPE_BUF: so much room a pipe has when poll calls it writable, so a write never waits. -1: there is none.
 */
static int write_ready(const char *bytes, size_t len)
{
    while (len > 0) {
        struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
        if (poll(&out, 1, 0) != 1)
            return -1;
        ssize_t written = write(STDERR_FILENO, bytes, len < PIPE_BUF ? len : PIPE_BUF);
        if (written < 0 && errno != EINTR)
            return -1;
        if (written > 0) {
            bytes += written;
            len -= (size_t)written;
        }
    }
    return 0;
}

/* A reader of the log that stalls must not stall the server: lines that find no room are dropped, and counted. */
static void emit(const struct buf *line)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static unsigned long lost;
    pthread_mutex_lock(&lock);
    if (lost > 0) {
        struct buf note;
        buf_init(&note, LOG_LINE_MAX_BYTES);
        /* The last one may have been cut in its middle. */
        if (buf_append_text(&note, "\n") == 0 && append_start(&note, LOG_LEVEL_WARN) == 0 &&
            buf_printf(&note,
                       as_json ? ",\"area\":\"log\",\"msg\":\"%lu lines were lost: nobody read them\"}\n"
                               : " log %lu lines were lost: nobody read them\n",
                       lost) == 0 &&
            write_ready(note.data, note.len) == 0)
            lost = 0;
        buf_deinit(&note);
    }
    if (lost > 0 || write_ready(line->data, line->len) != 0)
        lost++;
    pthread_mutex_unlock(&lock);
}

void log_write(enum log_level level, const char *area, const struct log_context *who, const char *fmt, ...)
{
    if (!log_enabled(level))
        return;
    int saved_errno = errno;
    va_list args;
    va_start(args, fmt);
    char *message = NULL; /* whole, however long: a secret must not hide by being cut */
    int message_len = vasprintf(&message, fmt, args);
    va_end(args);
    if (message_len < 0)
        return;

    struct buf line;
    buf_init(&line, LOG_LINE_MAX_BYTES);
    if (append_start(&line, level) == 0 && append_short(&line, "area", area) == 0 &&
        append_short(&line, "request_id", who ? who->request_id : NULL) == 0 &&
        append_short(&line, "route", who ? who->route : NULL) == 0 && append_message(&line, message) == 0 &&
        buf_append_text(&line, as_json ? "}\n" : "\n") == 0) {
        emit(&line);
    }
    buf_deinit(&line);
    free(message);
    errno = saved_errno;
}
