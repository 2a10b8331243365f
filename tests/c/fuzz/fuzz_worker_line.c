/* Lines of workers: what is taken is cut into parts that lie in the line, are valid JSON themselves, and make the same
 * message when they are put together again. */
#include "base/json.h"
#include "prim/worker_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(int truth)
{
    if (!truth)
        abort();
}

static void require_inside(const uint8_t *data, size_t size, const char *part, size_t len)
{
    const char *from = (const char *)data;
    require(part >= from && len <= size && part + len <= from + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct json_events none;
    struct worker_line line, again;
    struct err err;
    if (worker_line_parse((const char *)data, size, &line, &err) != 0) {
        require(err.code == ERR_INVALID_JSON || err.code == ERR_PAYLOAD_TOO_LARGE);
        return 0;
    }
    require_inside(data, size, line.body, line.body_len);
    require(line.id > 0 && line.id <= INT64_MAX);
    require(json_scan(line.body, line.body_len, &none, NULL, &err) == 0);
    char head[64];
    struct buf out;
    buf_init(&out, size + sizeof(head) + 64);
    if (line.kind == WORKER_LINE_NOTICE) {
        require_inside(data, size, line.method, line.method_len);
        require(buf_append_text(&out, "{\"method\":\"") == 0 && buf_append(&out, line.method, line.method_len) == 0);
        snprintf(head, sizeof(head), "\",\"params\":");
    } else {
        snprintf(head, sizeof(head), "{\"id\":%llu,\"%s\":", (unsigned long long)line.id,
                 line.kind == WORKER_LINE_ERROR ? "error" : "result");
    }
    require(buf_append_text(&out, head) == 0 && buf_append(&out, line.body, line.body_len) == 0 &&
            buf_append_text(&out, "}") == 0);
    require(worker_line_parse(out.data, out.len, &again, &err) == 0);
    require(again.kind == line.kind && again.id == line.id && again.body_len == line.body_len &&
            memcmp(again.body, line.body, line.body_len) == 0);
    buf_deinit(&out);
    return 0;
}
