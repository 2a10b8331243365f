/* Members of an object in JSON text that json_scan has accepted already, cut out as they stand: no tree is built. */
#ifndef ABX_BASE_JSON_MEMBER_H
#define ABX_BASE_JSON_MEMBER_H

#include <stdbool.h>
#include <stddef.h>

struct json_span {
    const char *text; /* into the text that was given; NULL: there is no such member */
    size_t len;
};

/* The value of the first member that is written `name` (without escapes), where text is an object. text may be NULL
 * where len is 0. Linear. */
struct json_span json_member(const char *text, size_t len, const char *name);

struct json_wanted {
    const char *name;
    struct json_span *value; /* zero it before */
};
/* The same for several members in one go. False where one of them is there twice. */
bool json_members(const char *text, size_t len, const struct json_wanted wanted[], size_t count);

/* Whether the value is this very text: "true", "\"ok\"". False where there is none. */
bool json_span_is(struct json_span span, const char *text);
/* Its first character: '{' object, '[' array, '"' string; 0 where there is none. */
char json_span_kind(struct json_span span);

#endif
