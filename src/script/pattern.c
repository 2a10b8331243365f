/* The matcher behind string.find, match, gmatch and gsub; see pattern.h. Lua's own cannot be interrupted: three `.-`
 * over 24,000 bytes keep it busy for hours. */
#include "script/pattern.h"

#include "script/budget.h"

#include <ctype.h>
#include <lauxlib.h>
#include <string.h>

enum { DEPTH_MAX = 200, WORK_BETWEEN_LOOKS = 4096, CAPTURE_OPEN = -1 };

static const char *match(struct pattern *p, const char *at, const char *item);

void pattern_work(struct pattern *p, size_t work)
{
    p->work += work;
    if (p->work < WORK_BETWEEN_LOOKS)
        return;
    p->work = 0;
    if (budget_expired())
        luaL_error(p->L, "the time for computing is over");
}

/* The end of the single-character class that begins at item. */
static const char *class_end(struct pattern *p, const char *item)
{
    const char *set = item;
    char first = *item++;
    if (first == '%') {
        if (item == p->pattern_end)
            luaL_error(p->L, "malformed pattern (ends with '%%')");
        return item + 1;
    }
    if (first != '[')
        return item;
    if (item < p->pattern_end && *item == '^')
        item++;
    do { /* a ] in first place is a member */
        if (item == p->pattern_end)
            luaL_error(p->L, "malformed pattern (missing ']')");
        if (*item++ == '%' && item < p->pattern_end)
            item++;
    } while (item == p->pattern_end || *item != ']');
    pattern_work(p, (size_t)(item - set)); /* a set may be as long as memory is */
    return item + 1;
}

static bool in_class(unsigned char c, unsigned char class)
{
    bool in;
    switch (tolower(class)) {
    case 'a':
        in = isalpha(c);
        break;
    case 'c':
        in = iscntrl(c);
        break;
    case 'd':
        in = isdigit(c);
        break;
    case 'g':
        in = isgraph(c);
        break;
    case 'l':
        in = islower(c);
        break;
    case 'p':
        in = ispunct(c);
        break;
    case 's':
        in = isspace(c);
        break;
    case 'u':
        in = isupper(c);
        break;
    case 'w':
        in = isalnum(c);
        break;
    case 'x':
        in = isxdigit(c);
        break;
    default:
        return class == c;
    }
    return isupper(class) ? !in : in;
}

/* set points at '[', last at its ']'. */
static bool in_set(unsigned char c, const char *set, const char *last)
{
    bool wanted = true;
    if (set[1] == '^') {
        wanted = false;
        set++;
    }
    while (++set < last) {
        if (*set == '%') {
            set++;
            if (in_class(c, (unsigned char)*set))
                return wanted;
        } else if (set[1] == '-' && set + 2 < last) {
            set += 2;
            if ((unsigned char)set[-2] <= c && c <= (unsigned char)*set)
                return wanted;
        } else if ((unsigned char)*set == c) {
            return wanted;
        }
    }
    return !wanted;
}

static bool matches_one(struct pattern *p, const char *at, const char *item, const char *item_end)
{
    if (at >= p->subject_end)
        return false;
    unsigned char c = (unsigned char)*at;
    switch (*item) {
    case '.':
        return true;
    case '%':
        return in_class(c, (unsigned char)item[1]);
    case '[':
        pattern_work(p, (size_t)(item_end - item));
        return in_set(c, item, item_end - 1);
    default:
        return (unsigned char)*item == c;
    }
}

/* %bxy */
static const char *match_balance(struct pattern *p, const char *at, const char *item)
{
    if (p->pattern_end - item < 2)
        luaL_error(p->L, "malformed pattern (missing arguments to '%%b')");
    if (at >= p->subject_end || *at != item[0])
        return NULL;
    size_t open = 1;
    while (++at < p->subject_end) {
        pattern_work(p, 1);
        if (*at == item[1]) {
            if (--open == 0)
                return at + 1;
        } else if (*at == item[0]) {
            open++;
        }
    }
    return NULL;
}

static const char *match_greedy(struct pattern *p, const char *at, const char *item, const char *item_end,
                                ptrdiff_t min)
{
    ptrdiff_t count = 0;
    while (matches_one(p, at + count, item, item_end)) {
        pattern_work(p, 1);
        count++;
    }
    for (; count >= min; count--) {
        const char *end = match(p, at + count, item_end + 1);
        if (end != NULL)
            return end;
    }
    return NULL;
}

static const char *match_lazy(struct pattern *p, const char *at, const char *item, const char *item_end)
{
    for (;; at++) {
        const char *end = match(p, at, item_end + 1);
        if (end != NULL)
            return end;
        if (!matches_one(p, at, item, item_end))
            return NULL;
    }
}

static const char *open_capture(struct pattern *p, const char *at, const char *item, ptrdiff_t kind)
{
    if (p->capture_count >= PATTERN_CAPTURES_MAX)
        luaL_error(p->L, "too many captures");
    p->captures[p->capture_count++] = (struct pattern_capture){at, kind};
    const char *end = match(p, at, item);
    if (end == NULL)
        p->capture_count--;
    return end;
}

static const char *close_capture(struct pattern *p, const char *at, const char *item)
{
    int index = p->capture_count - 1;
    while (index >= 0 && p->captures[index].len != CAPTURE_OPEN)
        index--;
    if (index < 0)
        luaL_error(p->L, "invalid pattern capture");
    p->captures[index].len = at - p->captures[index].start;
    const char *end = match(p, at, item);
    if (end == NULL)
        p->captures[index].len = CAPTURE_OPEN;
    return end;
}

/* %1: the same text once more. */
static const char *match_again(struct pattern *p, const char *at, char digit)
{
    int index = digit - '1';
    if (index < 0 || index >= p->capture_count || p->captures[index].len == CAPTURE_OPEN)
        luaL_error(p->L, "invalid capture index %%%d", index + 1);
    ptrdiff_t len = p->captures[index].len;
    if (len == PATTERN_POSITION)
        return NULL;
    pattern_work(p, (size_t)len / 16);
    return p->subject_end - at >= len && memcmp(p->captures[index].start, at, (size_t)len) == 0 ? at + len : NULL;
}

/* %f[set]: the border between a character outside the set and one inside; both ends count as '\0'. */
static bool at_frontier(struct pattern *p, const char *at, const char *set, const char *set_end)
{
    unsigned char before = at == p->subject ? '\0' : (unsigned char)at[-1];
    unsigned char here = at == p->subject_end ? '\0' : (unsigned char)*at;
    pattern_work(p, (size_t)(set_end - set));
    return !in_set(before, set, set_end - 1) && in_set(here, set, set_end - 1);
}

static const char *match_items(struct pattern *p, const char *at, const char *item)
{
    while (item != p->pattern_end) {
        pattern_work(p, 1);
        if (*item == '(') {
            if (item + 1 < p->pattern_end && item[1] == ')')
                return open_capture(p, at, item + 2, PATTERN_POSITION);
            return open_capture(p, at, item + 1, CAPTURE_OPEN);
        }
        if (*item == ')')
            return close_capture(p, at, item + 1);
        if (*item == '$' && item + 1 == p->pattern_end)
            return at == p->subject_end ? at : NULL;
        if (*item == '%' && item + 1 < p->pattern_end) {
            if (item[1] == 'b') {
                if ((at = match_balance(p, at, item + 2)) == NULL)
                    return NULL;
                item += 4;
                continue;
            }
            if (item[1] == 'f') {
                item += 2;
                if (item == p->pattern_end || *item != '[')
                    luaL_error(p->L, "missing '[' after '%%f' in pattern");
                const char *set_end = class_end(p, item);
                if (!at_frontier(p, at, item, set_end))
                    return NULL;
                item = set_end;
                continue;
            }
            if (isdigit((unsigned char)item[1])) {
                if ((at = match_again(p, at, item[1])) == NULL)
                    return NULL;
                item += 2;
                continue;
            }
        }
        const char *item_end = class_end(p, item);
        switch (item_end < p->pattern_end ? *item_end : '\0') {
        case '?':
            if (matches_one(p, at, item, item_end)) {
                const char *end = match(p, at + 1, item_end + 1);
                if (end != NULL)
                    return end;
            }
            item = item_end + 1;
            continue;
        case '*':
            return match_greedy(p, at, item, item_end, 0);
        case '+':
            return match_greedy(p, at, item, item_end, 1);
        case '-':
            return match_lazy(p, at, item, item_end);
        default:
            if (!matches_one(p, at, item, item_end))
                return NULL;
            at++;
            item = item_end;
        }
    }
    return at;
}

static const char *match(struct pattern *p, const char *at, const char *item)
{
    if (++p->depth > DEPTH_MAX)
        luaL_error(p->L, "pattern too complex");
    const char *end = match_items(p, at, item);
    p->depth--;
    return end;
}

void pattern_init(struct pattern *pattern, lua_State *L, const char *subject, size_t subject_len, const char *text,
                  size_t len)
{
    pattern->L = L;
    pattern->subject = subject;
    pattern->subject_end = subject + subject_len;
    pattern->pattern_end = text + len;
    pattern->work = 0;
    pattern->depth = 0;
    pattern->capture_count = 0;
}

const char *pattern_match_at(struct pattern *pattern, const char *at, const char *text)
{
    pattern->capture_count = 0;
    pattern->depth = 0;
    pattern_work(pattern, 1);
    return match(pattern, at, text);
}

void pattern_push_capture(const struct pattern *pattern, int index, const char *from, const char *end)
{
    lua_State *L = pattern->L;
    if (index >= pattern->capture_count) {
        if (index != 0)
            luaL_error(L, "invalid capture index %%%d", index + 1);
        lua_pushlstring(L, from, (size_t)(end - from));
        return;
    }
    const struct pattern_capture *capture = &pattern->captures[index];
    if (capture->len == PATTERN_POSITION)
        lua_pushinteger(L, capture->start - pattern->subject + 1);
    else if (capture->len == CAPTURE_OPEN)
        luaL_error(L, "unfinished capture");
    else
        lua_pushlstring(L, capture->start, (size_t)capture->len);
}

int pattern_push_captures(const struct pattern *pattern, const char *from, const char *end, bool whole)
{
    int count = pattern->capture_count == 0 && whole ? 1 : pattern->capture_count;
    luaL_checkstack(pattern->L, count, "too many captures");
    for (int i = 0; i < count; i++)
        pattern_push_capture(pattern, i, from, end);
    return count;
}

bool pattern_has_specials(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\0' && strchr("^$*+?.([%-", text[i]) != NULL)
            return true;
    }
    return false;
}
