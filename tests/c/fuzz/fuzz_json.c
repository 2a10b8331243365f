/* JSON input: what is accepted must be written back and read again to the same text; what is refused must be so for
 * good. */
#include "base/json.h"
#include "base/utf8.h"
#include "model/value.h"

#include <stdlib.h>
#include <string.h>

static void require(int truth)
{
    if (!truth)
        abort();
}

static void write_value(struct buf *out, const struct value *value)
{
    int rc = 0;
    switch (value->type) {
    case VALUE_NULL:
        rc = buf_append_text(out, "null");
        break;
    case VALUE_BOOL:
        rc = buf_append_text(out, value->as.boolean ? "true" : "false");
        break;
    case VALUE_INT:
        rc = json_write_int(out, value->as.integer);
        break;
    case VALUE_DOUBLE:
        rc = json_write_double(out, value->as.number);
        break;
    case VALUE_STRING:
        require(utf8_valid(value->as.string.text, value->as.string.len));
        require(value->as.string.text[value->as.string.len] == '\0');
        rc = json_write_string(out, value->as.string.text, value->as.string.len);
        break;
    case VALUE_ARRAY:
        rc = buf_append_text(out, "[");
        for (size_t i = 0; i < value->as.array.count; i++) {
            rc |= i > 0 ? buf_append_text(out, ",") : 0;
            write_value(out, &value->as.array.items[i]);
        }
        rc |= buf_append_text(out, "]");
        break;
    case VALUE_OBJECT:
        rc = buf_append_text(out, "{");
        for (size_t i = 0; i < value->as.object.count; i++) {
            const struct value_member *member = &value->as.object.members[i];
            require(value_member(value, member->name, member->name_len) == &member->value);
            rc |= i > 0 ? buf_append_text(out, ",") : 0;
            rc |= json_write_string(out, member->name, member->name_len) | buf_append_text(out, ":");
            write_value(out, &member->value);
        }
        rc |= buf_append_text(out, "}");
        break;
    }
    require(rc == 0);
}

/* The document as our writer has it; empty where it is refused. */
static struct buf rewritten(const char *text, size_t len)
{
    struct buf out;
    struct arena arena;
    struct value value;
    struct err err;
    buf_init(&out, 64 * 1024 * 1024);
    arena_init(&arena, 16 * 1024 * 1024);
    if (value_parse(&arena, text, len, &value, &err) == 0)
        write_value(&out, &value);
    else
        require(err.code == ERR_INVALID_JSON || err.code == ERR_PAYLOAD_TOO_LARGE);
    arena_deinit(&arena);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf once = rewritten((const char *)data, size);
    if (once.len > 0) {
        struct buf twice = rewritten(once.data, once.len);
        require(twice.len == once.len && memcmp(twice.data, once.data, once.len) == 0);
        buf_deinit(&twice);
    }
    buf_deinit(&once);
    return 0;
}
