/* Looks at expressions for what can be found faster than by PCRE2, and finds it; see search_literal.h. */
#include "prim/search_literal.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static bool is_punctuation(char c)
{
    return (unsigned char)c < 0x80 && ispunct((unsigned char)c);
}

/* ---- expressions */

/* {2} {2,} {2,3}: all else in braces is text to PCRE2. */
static size_t quantifier_len(const char *regex, size_t len)
{
    size_t at = 1;
    while (at < len && (isdigit((unsigned char)regex[at]) || (regex[at] == ',' && at > 1)))
        at++;
    return at > 1 && at < len && regex[at] == '}' ? at + 1 : 0;
}

/* Alternatives, options, verbs, quoting, classes in classes and odd braces are left to PCRE2. */
static bool is_simple(const char *regex, size_t len)
{
    for (size_t at = 0; at < len; at++) {
        char c = regex[at], next = at + 1 < len ? regex[at + 1] : '\0';
        if (c == '|' || (c == '(' && is_one_of(next, "?*")) || (c == '[' && next == ':') ||
            (c == '{' && quantifier_len(regex + at, len - at) == 0))
            return false;
        if (c == '\\' && !is_punctuation(next) && !is_one_of(next, "bBdDwWsSt"))
            return false;
        at += c == '\\';
    }
    return true;
}

/* Behind the class that starts at `at`. */
static size_t skip_class(const char *regex, size_t len, size_t at)
{
    at++;
    at += at < len && regex[at] == '^';
    at += at < len && regex[at] == ']'; /* the first one is a member */
    while (at < len && regex[at] != ']')
        at += regex[at] == '\\' ? 2 : 1;
    return at + 1;
}

static size_t skip_group(const char *regex, size_t len, size_t at)
{
    size_t depth = 0;
    do {
        depth += regex[at] == '(';
        depth -= regex[at] == ')';
        if (regex[at] == '[')
            at = skip_class(regex, len, at);
        else
            at += regex[at] == '\\' ? 2 : 1;
    } while (depth > 0 && at < len);
    return at;
}

struct item {
    const char *literal; /* NULL: anything but a character that stands for itself */
    size_t len;          /* of literal */
};

/* Reads what stands at *at and moves behind it. */
static struct item read_item(const char *regex, size_t len, size_t *at)
{
    bool valid;
    const char *here = regex + *at;
    size_t char_len = utf8_next(here, len - *at, &valid);
    if (*here == '[')
        *at = skip_class(regex, len, *at);
    else if (*here == '(')
        *at = skip_group(regex, len, *at);
    else if (*here == '{')
        *at += quantifier_len(here, len - *at);
    else
        *at += *here == '\\' ? 2 : char_len;
    if (*here == '\\')
        return is_punctuation(here[1]) ? (struct item){here + 1, 1} : (struct item){NULL, 0};
    return is_one_of(*here, "[({^$.*+?)") ? (struct item){NULL, 0} : (struct item){here, char_len};
}

size_t search_literal_of(const char *regex, size_t len, char *out)
{
    size_t best = 0, run = 0; /* the best stands at the start of out, the present run behind it */
    if (!is_simple(regex, len))
        return 0;
    for (size_t at = 0; at < len;) {
        struct item item = read_item(regex, len, &at);
        char next = at < len ? regex[at] : '\0';
        bool taken = item.literal && !is_one_of(next, "?*{");
        if (taken) {
            memcpy(out + best + run, item.literal, item.len);
            run += item.len;
        }
        if (taken && next != '+' && at < len)
            continue;
        if (run > best) {
            memmove(out, out + best, run);
            best = run;
        }
        run = 0;
    }
    return best;
}

/* ---- expressions that stay in their line */

struct rewrite {
    const char *at, *end;
    char *out;
};

static void put(struct rewrite *rewrite, const char *text, size_t len)
{
    memcpy(rewrite->out, text, len);
    rewrite->out += len;
}

static void put_text(struct rewrite *rewrite, const char *text)
{
    put(rewrite, text, strlen(text));
}

static void copy(struct rewrite *rewrite, size_t len)
{
    put(rewrite, rewrite->at, len);
    rewrite->at += len;
}

static char peek(const struct rewrite *rewrite, size_t ahead)
{
    return (size_t)(rewrite->end - rewrite->at) > ahead ? rewrite->at[ahead] : '\0';
}

/* An escape outside of a class. */
static bool rewrite_escape(struct rewrite *rewrite)
{
    char c = peek(rewrite, 1);
    if (is_punctuation(c) || is_one_of(c, "bBdwSht")) {
        copy(rewrite, 2);
        return true;
    }
    if (!is_one_of(c, "sWD"))
        return false;
    put_text(rewrite, c == 's' ? "[^\\S\\n]" : c == 'W' ? "[^\\w\\n]" : "[^\\d\\n]");
    rewrite->at += 2;
    return true;
}

/* One member of a class; an escape that stands for many characters, or a control that begins a range, is left to
 * PCRE2 where it could take a line feed. */
static bool rewrite_member(struct rewrite *rewrite, bool negated)
{
    char c = peek(rewrite, 0), next = peek(rewrite, 1);
    if ((c == '[' && next == ':') || ((unsigned char)c < ' ' && !negated))
        return false;
    if (c != '\\') {
        copy(rewrite, 1);
        return true;
    }
    if (is_punctuation(next) || is_one_of(next, "dwSh") || (negated && is_one_of(next, "sWDt")) ||
        (next == 't' && peek(rewrite, 2) != '-')) {
        copy(rewrite, 2);
        return true;
    }
    if (next != 's')
        return false;
    put_text(rewrite, "\\h\\r\\f\\x0b\\x85\\x{2028}\\x{2029}"); /* \s is \h and \v: pcre2pattern(3) */
    rewrite->at += 2;
    return true;
}

static bool rewrite_class(struct rewrite *rewrite)
{
    bool negated = peek(rewrite, 1) == '^';
    put_text(rewrite, negated ? "[^\\n" : "[");
    rewrite->at += negated ? 2 : 1;
    if (peek(rewrite, 0) == ']') { /* the first one is a member, but would not be the first any more */
        put_text(rewrite, "\\]");
        rewrite->at++;
    }
    while (rewrite->at < rewrite->end && *rewrite->at != ']')
        if (!rewrite_member(rewrite, negated))
            return false;
    if (rewrite->at == rewrite->end)
        return false;
    copy(rewrite, 1);
    return true;
}

/* What opens a group: no verbs, comments or options but to ignore case. */
static bool rewrite_group(struct rewrite *rewrite)
{
    char next = peek(rewrite, 1), third = peek(rewrite, 2);
    if (next == '*' ||
        (next == '?' && !is_one_of(third, ":=!<P") && !(third == 'i' && is_one_of(peek(rewrite, 3), ":)"))))
        return false;
    copy(rewrite, next == '?' ? 3 : 1);
    return true;
}

static bool rewrite_item(struct rewrite *rewrite)
{
    switch (*rewrite->at) {
    case '\\':
        return rewrite_escape(rewrite);
    case '[':
        return rewrite_class(rewrite);
    case '(':
        return rewrite_group(rewrite);
    case '\n':
        return false;
    default:
        copy(rewrite, 1);
        return true;
    }
}

size_t search_literal_in_line(const char *regex, size_t len, char *out)
{
    struct rewrite rewrite = {.at = regex, .end = regex + len, .out = out};
    while (rewrite.at < rewrite.end)
        if (!rewrite_item(&rewrite))
            return 0;
    return (size_t)(rewrite.out - out);
}

/* ---- needles */

static size_t commonness(char c)
{
    static const char common[] = " etaonisrlhdcumpfgbyvwk.,0_1-()=\"';:/2x*3456789jqz";
    const char *found = c != '\0' ? strchr(common, c) : NULL;
    return found ? (size_t)(common + sizeof common - found) : 0;
}

void search_needle_init(struct search_needle *needle, const char *text, size_t len)
{
    *needle = (struct search_needle){.text = text, .len = len};
    for (size_t i = 1; i < len; i++)
        if (commonness(text[i]) < commonness(text[needle->rare]))
            needle->rare = i;
    needle->rare_too = needle->rare == 0 ? len - 1 : 0;
    for (size_t i = 1; i < len; i++)
        if (i != needle->rare && commonness(text[i]) < commonness(text[needle->rare_too]))
            needle->rare_too = i;
}

#ifdef __SSE2__
/* Looks for both rare bytes at their distance, 16 places at a time, and compares where they stand (W. Mula, "SIMD-
 * friendly algorithms for substring searching"). Comparing in vain makes that quadratic, so past a budget the linear
 * memmem goes on. */
const char *search_needle_find(const struct search_needle *needle, const char *text, size_t len)
{
    if (needle->len == 1)
        return memchr(text, needle->text[0], len);
    const __m128i rare = _mm_set1_epi8(needle->text[needle->rare]),
                  rare_too = _mm_set1_epi8(needle->text[needle->rare_too]);
    size_t at = 0, wasted = 0;
    for (; at + needle->len + 15 <= len && wasted <= 4096 + 2 * at; at += 16) {
        __m128i here = _mm_loadu_si128((const __m128i *)(const void *)(text + at + needle->rare)),
                there = _mm_loadu_si128((const __m128i *)(const void *)(text + at + needle->rare_too));
        unsigned found =
            (unsigned)_mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(here, rare), _mm_cmpeq_epi8(there, rare_too)));
        for (; found != 0; found &= found - 1) {
            const char *start = text + at + __builtin_ctz(found);
            if (memcmp(start, needle->text, needle->len) == 0)
                return start;
            wasted += needle->len;
        }
    }
    return memmem(text + at, len - at, needle->text, needle->len);
}
#else
const char *search_needle_find(const struct search_needle *needle, const char *text, size_t len)
{
    return memmem(text, len, needle->text, needle->len);
}
#endif
