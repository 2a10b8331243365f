/* Any text from a terminal's client must be refused in a way that it can be told, or become a message that is in
 * range. */
#include "base/utf8.h"
#include "model/value.h"
#include "net/ws_message.h"
#include "prim/signals.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

static void check_message(const struct ws_message *message)
{
    char name[SIGNALS_NAME_MAX];
    struct err err;
    switch (message->type) {
    case WS_MESSAGE_INPUT:
        require(utf8_valid(message->data, message->len));
        return;
    case WS_MESSAGE_RESIZE:
        require(message->size.cols >= 1 && message->size.cols <= TERMINAL_SIZE_MAX);
        require(message->size.rows >= 1 && message->size.rows <= TERMINAL_SIZE_MAX);
        return;
    case WS_MESSAGE_SIGNAL:
        signals_name(message->signal, name);
        require(signals_for_client(name, strlen(name), &err) == message->signal);
        return;
    case WS_MESSAGE_PING:
        return;
    }
    abort();
}

/* As the client is told it: one JSON object whose code is a known one. */
static void check_refusal(struct arena *arena, const struct err *err)
{
    struct value told;
    struct err ignored;
    struct buf out;
    buf_init(&out, 4096);
    require(err->code == ERR_INVALID_JSON || err->code == ERR_INVALID_REQUEST || err->code == ERR_SIGNAL_NOT_ALLOWED ||
            err->code == ERR_PAYLOAD_TOO_LARGE);
    require(err->text[0] != '\0');
    require(ws_message_error(&out, err) == 0);
    require(value_parse(arena, out.data, out.len, &told, &ignored) == 0);
    require(err_code_find(value_member(&told, "code", 4)->as.string.text) == err->code);
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct ws_message message;
    struct err err;
    arena_init(&arena, size + 4096);
    int rc = ws_message_parse(&arena, (const char *)data, size, &message, &err);
    if (rc == 0) {
        check_message(&message);
    } else {
        arena_deinit(&arena);
        arena_init(&arena, 64 * 1024);
        check_refusal(&arena, &err);
    }
    arena_deinit(&arena);
    return 0;
}
