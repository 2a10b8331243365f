/* Writes the answers of the shell helper; for shell_main. */
#include "helper/shell_answer.h"

#include "base/buf.h"
#include "base/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MAX_BYTES = 64 * 1024, NO_MEMORY = 70 };

/* Sends and frees. */
static void send_line(struct buf *out)
{
    if (buf_append_text(out, "\n") != 0)
        _exit(NO_MEMORY);
    for (size_t done = 0; done < out->len;) {
        ssize_t n = write(SHELL_CHANNEL_FD, out->data + done, out->len - done);
        if (n < 0 && errno != EINTR)
            _exit(0); /* the parent is gone */
        done += n > 0 ? (size_t)n : 0;
    }
    buf_deinit(out);
}

void shell_answer_refuse(int64_t id, const struct err *err)
{
    struct buf out;
    buf_init(&out, ANSWER_MAX_BYTES);
    if (buf_printf(&out, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"error\":{\"code\":-32000", (long long)id) != 0 ||
        json_write_text(&out, ",\"message\":", err->text) != 0 ||
        json_write_text(&out, ",\"data\":{\"code\":", err_code_name(err->code)) != 0 ||
        (err->field[0] && json_write_text(&out, ",\"field\":", err->field) != 0) || buf_append_text(&out, "}}}") != 0)
        _exit(NO_MEMORY);
    send_line(&out);
}

void shell_answer_opened(int64_t id, const char *version)
{
    struct buf out;
    char plain[64] = "";
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(version, "("), version); /* 5.2.15(1)-release */
    buf_init(&out, ANSWER_MAX_BYTES);
    if (buf_printf(&out, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"engine\":\"bash\"", (long long)id) != 0 ||
        json_write_text(&out, ",\"version\":", plain) != 0 || buf_append_text(&out, "}}") != 0)
        _exit(NO_MEMORY);
    send_line(&out);
}

void shell_answer_cell(int64_t id, int64_t execution_count, const char *exit_status, bool late)
{
    struct buf out;
    bool failed = !late && strcmp(exit_status, "0") != 0;
    const char *status = late ? "timeout" : failed ? "error" : "ok";
    buf_init(&out, ANSWER_MAX_BYTES);
    if (buf_printf(&out,
                   "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"status\":\"%s\",\"execution_count\":%lld,\"error\":",
                   (long long)id, status, (long long)execution_count) != 0)
        _exit(NO_MEMORY);
    if (failed ? json_write_text(&out, "{\"name\":\"ExitStatus\",\"value\":", exit_status) != 0 ||
                     buf_append_text(&out, ",\"traceback\":\"\"}") != 0
               : buf_append_text(&out, "null") != 0)
        _exit(NO_MEMORY);
    if (buf_append_text(&out, ",\"truncated\":false}}") != 0)
        _exit(NO_MEMORY);
    send_line(&out);
}
