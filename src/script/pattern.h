/* Lua's patterns with a leash: matching looks at the CPU budget as it goes, so no subject and no pattern is refused for
 * its length. For sandbox_match.c. */
#ifndef ABX_SCRIPT_PATTERN_H
#define ABX_SCRIPT_PATTERN_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

enum { PATTERN_CAPTURES_MAX = 32, PATTERN_POSITION = -2 };

struct pattern {
    lua_State *L; /* faults of the pattern and the end of the budget raise here */
    const char *subject, *subject_end, *pattern_end;
    size_t work; /* since the budget was looked at */
    int depth;
    int capture_count;
    struct pattern_capture {
        const char *start;
        ptrdiff_t len; /* or PATTERN_POSITION for () */
    } captures[PATTERN_CAPTURES_MAX];
};

void pattern_init(struct pattern *pattern, lua_State *L, const char *subject, size_t subject_len, const char *text,
                  size_t len);
/* Matches at `at`, nowhere else: the end of the match, or NULL. text is the pattern without its anchor. */
const char *pattern_match_at(struct pattern *pattern, const char *at, const char *text);
/* Counts work of that many steps or bytes; raises once the time is over. */
void pattern_work(struct pattern *pattern, size_t work);
/* Pushes capture `index` of a match (from, end); index 0 of a pattern without captures is the whole. */
void pattern_push_capture(const struct pattern *pattern, int index, const char *from, const char *end);
/* Pushes all of them (whole: the whole match where there are none); answers how many. */
int pattern_push_captures(const struct pattern *pattern, const char *from, const char *end, bool whole);
/* Whether the text has any character that means something in a pattern. */
bool pattern_has_specials(const char *text, size_t len);

#endif
