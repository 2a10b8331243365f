/* Reads and writes the JSON messages of a terminal's WebSocket; called by ws_session. */
#include "net/ws_message.h"

#include "base/json.h"
#include "model/schema.h"
#include "model/value.h"
#include "prim/exit_json.h"
#include "prim/signals.h"
#include "request/problem.h"

#include <inttypes.h>
#include <string.h>

/* --- what clients say */

static const char *types[] = {[WS_MESSAGE_INPUT] = "input",
                              [WS_MESSAGE_RESIZE] = "resize",
                              [WS_MESSAGE_SIGNAL] = "signal",
                              [WS_MESSAGE_PING] = "ping",
                              NULL};

#define REQUIRED_SIZE                                                                                                  \
    {                                                                                                                  \
        .type = SCHEMA_INTEGER, .required = true, .has_min = true, .has_max = true, .min = 1, .max = TERMINAL_SIZE_MAX \
    }
static struct schema_field type_field[] = {
    {.name = "type", .schema = {.type = SCHEMA_STRING, .required = true, .choices = types}},
};
static struct schema_field input_fields[] = {
    {.name = "data", .schema = {.type = SCHEMA_STRING, .required = true}},
};
static struct schema_field resize_fields[] = {
    {.name = "cols", .schema = REQUIRED_SIZE},
    {.name = "rows", .schema = REQUIRED_SIZE},
};
static struct schema_field signal_fields[] = {
    {.name = "signal", .schema = {.type = SCHEMA_STRING, .required = true}},
};

/* A message is its type and the members that this type has. */
static const struct schema typed = {.type = SCHEMA_OBJECT, .fields = type_field, .field_count = 1};
static const struct schema members_of[] = {
    [WS_MESSAGE_INPUT] = {.type = SCHEMA_OBJECT, .fields = input_fields, .field_count = 1},
    [WS_MESSAGE_RESIZE] = {.type = SCHEMA_OBJECT, .fields = resize_fields, .field_count = 2},
    [WS_MESSAGE_SIGNAL] = {.type = SCHEMA_OBJECT, .fields = signal_fields, .field_count = 1},
    [WS_MESSAGE_PING] = {.type = SCHEMA_OBJECT},
};

static int check(const struct schema *schema, const struct value *object, const char *rest, struct arena *arena,
                 struct value *out, struct err *err)
{
    struct field_errors errors;
    errors.count = 0; /* all that needs to be set: clearing 8 KiB took longer than all else of a keystroke's message */
    if (schema_check(schema, object, rest, arena, out, &errors) == 0)
        return 0;
    errors.count = 1; /* an error message has room for one */
    return problem_from_fields(err, &errors);
}

static const struct value *find(const struct value *object, const char *name)
{
    return value_member(object, name, strlen(name));
}

static enum ws_message_type type_of(const struct value *name)
{
    for (unsigned type = WS_MESSAGE_INPUT; type < WS_MESSAGE_PING; type++)
        if (strcmp(name->as.string.text, types[type]) == 0)
            return type;
    return WS_MESSAGE_PING;
}

static int take_members(const struct value *members, struct ws_message *message, struct err *err)
{
    switch (message->type) {
    case WS_MESSAGE_INPUT:
        message->data = find(members, "data")->as.string.text;
        message->len = find(members, "data")->as.string.len;
        break;
    case WS_MESSAGE_RESIZE:
        message->size.cols = (unsigned)find(members, "cols")->as.integer;
        message->size.rows = (unsigned)find(members, "rows")->as.integer;
        break;
    case WS_MESSAGE_SIGNAL: {
        const struct value *name = find(members, "signal");
        message->signal = signals_for_client(name->as.string.text, name->as.string.len, err);
        return message->signal == 0 ? -1 : 0;
    }
    case WS_MESSAGE_PING:
        break;
    }
    return 0;
}

/* Most likely somebody typed. */
static int not_json(struct err *err)
{
    const struct err why = *err;
    return err_set(err, ERR_INVALID_JSON, "%s; text frames are JSON here: send keys in binary frames, or use mode=raw",
                   why.text);
}

int ws_message_parse(struct arena *arena, const char *text, size_t len, struct ws_message *out, struct err *err)
{
    struct value document, message, members;
    if (value_parse(arena, text, len, &document, err) < 0)
        return err->code == ERR_INVALID_JSON ? not_json(err) : -1;
    if (document.type != VALUE_OBJECT)
        return err_set(err, ERR_INVALID_REQUEST, "a message must be a JSON object, not %s",
                       value_type_name(document.type));
    if (check(&typed, &document, "others", arena, &message, err) < 0)
        return -1;
    struct ws_message taken = {.type = type_of(find(&message, "type"))};
    if (check(&members_of[taken.type], find(&message, "others"), NULL, arena, &members, err) < 0 ||
        take_members(&members, &taken, err) < 0)
        return -1;
    *out = taken;
    return 0;
}

/* --- what they are told */

/* A message that did not fit whole is not there at all. */
static int whole_or_none(struct buf *out, size_t len_before, int failed)
{
    if (failed)
        out->len = len_before;
    return failed ? -1 : 0;
}

int ws_message_ready(struct buf *out, const char *id, struct terminal_size size, uint64_t offset)
{
    size_t before = out->len;
    return whole_or_none(
        out, before,
        buf_append_text(out, "{\"type\":\"ready\",\"id\":") || json_write_string(out, id, strlen(id)) ||
            buf_printf(out, ",\"cols\":%u,\"rows\":%u,\"offset\":%" PRIu64 "}", size.cols, size.rows, offset));
}

int ws_message_resized(struct buf *out, struct terminal_size size)
{
    return buf_printf(out, "{\"type\":\"resized\",\"cols\":%u,\"rows\":%u}", size.cols, size.rows);
}

int ws_message_gap(struct buf *out, const struct terminal_gap *gap)
{
    return buf_printf(out, "{\"type\":\"gap\",\"from\":%" PRIu64 ",\"to\":%" PRIu64 "}", gap->from, gap->to);
}

int ws_message_error(struct buf *out, const struct err *error)
{
    size_t before = out->len;
    return whole_or_none(
        out, before,
        buf_printf(out, "{\"type\":\"error\",\"code\":\"%s\",\"detail\":", err_code_name(error->code)) ||
            json_write_string(out, error->text, strlen(error->text)) || buf_append_text(out, "}"));
}

int ws_message_exit(struct buf *out, const struct terminal_exit *exit)
{
    size_t before = out->len;
    return whole_or_none(out, before,
                         buf_append_text(out, "{\"type\":\"exit\",") ||
                             exit_json_write(out, &exit->exit, true, exit->started_ms) || buf_append_text(out, "}"));
}

int ws_message_pong(struct buf *out)
{
    return buf_append_text(out, "{\"type\":\"pong\"}");
}
