/* The head of a handshake: any bytes must be refused, or become words without controls in them. */
#include "net/ws_head.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

static void require_clean(const char *text)
{
    for (; *text; text++)
        require(((unsigned char)*text >= ' ' || *text == '\t') && *text != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len = ws_head_len((const char *)data, size);
    struct ws_head head;
    struct err err;
    char *copy;
    require(len <= size);
    if (len == 0)
        len = size;
    copy = malloc(len ? len : 1);
    if (!copy)
        return 0;
    if (len > 0)
        memcpy(copy, data, len);
    if (ws_head_parse(&head, copy, len, &err) < 0) {
        require(err.text[0] != '\0');
    } else {
        require(head.method[0] != '\0' && head.target[0] != '\0' && head.field_count <= WS_HEAD_FIELDS_MAX);
        require_clean(head.target);
        for (size_t i = 0; i < head.field_count; i++) {
            require(head.fields[i].name[0] != '\0');
            require_clean(head.fields[i].value);
        }
        (void)ws_head_field(&head, "Host");
        (void)ws_head_lists(&head, "Connection", "upgrade");
    }
    free(copy);
    return 0;
}
