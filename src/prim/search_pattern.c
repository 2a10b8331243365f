/* Finds lines by PCRE2 or as plain text; see search_pattern.h. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "prim/search_pattern.h"

#include "base/loop.h"
#include "base/utf8.h"
#include "prim/search_literal.h"

#include <errno.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS_MAX = 4 * 1000 * 1000, /* from one place: some 20 ms; going back over the longest line takes a million */
    HEAP_MAX_KIB = 16 * 1024,
    JIT_STACK_START_BYTES = 32 * 1024,
    JIT_STACK_MAX_BYTES = 1024 * 1024,
    /* PCRE2 cannot be interrupted, so it is asked for matches that start in a stretch of the text, then in the next. A
     * stretch grows and shrinks with the time that the last one took. */
    STRETCH_MIN = 4,
    STRETCH_START = 1024,
    STRETCH_MAX = 64 * 1024,
    STRETCH_SHORT_NS = 500 * 1000,
    STRETCH_LONG_NS = 5 * 1000 * 1000,
};

struct search_pattern {
    pcre2_code *code;  /* NULL: a plain text, which is the needle */
    bool has_needle;   /* each match holds it */
    bool line_by_line; /* else a match of the expression cannot reach over a line break */
    struct search_needle needle;
    char text[]; /* the needle's */
};

struct search_matcher {
    const struct search_pattern *pattern;
    struct search_limits *limits;
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    size_t stretch, used; /* how much of it since the clock was read; 0: not read yet */
    uint64_t read_at_ns;
    uint64_t given_up;
};

bool search_is_over(struct search_limits *limits)
{
    if (!atomic_load_explicit(&limits->timed_out, memory_order_relaxed) && loop_clock_ns() >= limits->deadline_ns)
        atomic_store(&limits->timed_out, true);
    return atomic_load_explicit(&limits->timed_out, memory_order_relaxed) ||
           atomic_load_explicit(&limits->stopped, memory_order_relaxed) ||
           atomic_load_explicit(limits->cancelled, memory_order_relaxed);
}

/* ---- patterns */

static int refuse_regex(struct err *err, int number, size_t offset)
{
    PCRE2_UCHAR message[160] = "";
    pcre2_get_error_message(number, message, sizeof message);
    return err_set(err, ERR_INVALID_REGEX, "not a regular expression: at byte %zu: %s", offset, (const char *)message);
}

/* NULL with err. */
static pcre2_code *compile(const char *text, size_t len, uint32_t options, struct err *err)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    int number;
    PCRE2_SIZE offset;
    if (!context) {
        err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot read the pattern");
        return NULL;
    }
    pcre2_set_newline(context, PCRE2_NEWLINE_ANYCRLF);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)text, len, options, &number, &offset, context);
    pcre2_compile_context_free(context);
    if (!code)
        refuse_regex(err, number, offset);
    return code;
}

/* Puts an expression in place of the pattern's that does the same for many lines at once, if there is one. */
static void keep_in_line(struct search_pattern *pattern, const char *text, size_t len, uint32_t options)
{
    struct err ignored;
    char *rewritten = malloc(SEARCH_IN_LINE_FACTOR * len);
    size_t rewritten_len = rewritten ? search_literal_in_line(text, len, rewritten) : 0;
    pcre2_code *code = rewritten_len > 0 ? compile(rewritten, rewritten_len, options, &ignored) : NULL;
    free(rewritten);
    pattern->line_by_line = code == NULL;
    if (code) {
        pcre2_code_free(pattern->code);
        pattern->code = code;
    }
}

static int fill(struct search_pattern *pattern, const char *text, size_t len, bool regex, bool case_sensitive,
                struct err *err)
{
    uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_USE_OFFSET_LIMIT;
    options |= regex ? PCRE2_MULTILINE | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C : PCRE2_LITERAL;
    options |= case_sensitive ? 0 : PCRE2_CASELESS;
    size_t needle_len = 0;
    if (!regex && memchr(text, '\n', len))
        return err_set(err, ERR_INVALID_REQUEST, "no line holds a line break: search for one line of the text");
    if ((regex || !case_sensitive) && !(pattern->code = compile(text, len, options, err)))
        return -1;
    if (regex)
        keep_in_line(pattern, text, len, options);
    if (pattern->code)
        pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE); /* where it cannot, PCRE2 interprets */
    if (regex && case_sensitive)
        needle_len = search_literal_of(text, len, pattern->text);
    if (!regex && case_sensitive)
        memcpy(pattern->text, text, needle_len = len);
    /* One byte is found so often that it saves nothing. */
    pattern->has_needle = needle_len > (pattern->code ? 1 : 0);
    if (pattern->has_needle)
        search_needle_init(&pattern->needle, pattern->text, needle_len);
    return 0;
}

struct search_pattern *search_pattern_new(const char *text, size_t len, bool regex, bool case_sensitive,
                                          struct err *err)
{
    struct search_pattern *pattern = calloc(1, sizeof *pattern + len);
    int result = -1;
    if (!pattern)
        err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot read the pattern");
    else if (len == 0 || len > SEARCH_PATTERN_MAX_BYTES)
        err_set(err, ERR_INVALID_REQUEST, "a pattern has 1 to %d bytes", SEARCH_PATTERN_MAX_BYTES);
    else
        result = fill(pattern, text, len, regex, case_sensitive, err);
    if (result == 0)
        return pattern;
    search_pattern_free(pattern);
    err_field(err, "pattern");
    return NULL;
}

void search_pattern_free(struct search_pattern *pattern)
{
    if (!pattern)
        return;
    pcre2_code_free(pattern->code);
    free(pattern);
}

/* ---- matchers */

static int prepare_pcre2(struct search_matcher *matcher)
{
    matcher->data = pcre2_match_data_create(1, NULL);
    matcher->context = pcre2_match_context_create(NULL);
    matcher->stack = pcre2_jit_stack_create(JIT_STACK_START_BYTES, JIT_STACK_MAX_BYTES, NULL);
    if (!matcher->data || !matcher->context || !matcher->stack)
        return -1;
    pcre2_set_match_limit(matcher->context, STEPS_MAX);
    pcre2_set_heap_limit(matcher->context, HEAP_MAX_KIB);
    pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
    return 0;
}

struct search_matcher *search_matcher_new(const struct search_pattern *pattern, struct search_limits *limits)
{
    struct search_matcher *matcher = calloc(1, sizeof *matcher);
    if (!matcher)
        return NULL;
    matcher->pattern = pattern;
    matcher->limits = limits;
    matcher->stretch = STRETCH_START;
    if (!pattern->code || prepare_pcre2(matcher) == 0)
        return matcher;
    search_matcher_free(matcher);
    return NULL;
}

void search_matcher_free(struct search_matcher *matcher)
{
    if (!matcher)
        return;
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->context);
    pcre2_jit_stack_free(matcher->stack);
    free(matcher);
}

uint64_t search_matcher_given_up(const struct search_matcher *matcher)
{
    return matcher->given_up;
}

/* Counts the places that were tried, and looks at the clock after a stretch of them. True: the search is over. */
static bool advance(struct search_matcher *matcher, size_t places)
{
    matcher->used += places;
    if (matcher->used < matcher->stretch)
        return false;
    uint64_t now = loop_clock_ns(), taken = now - matcher->read_at_ns;
    if (taken > STRETCH_LONG_NS && matcher->stretch > STRETCH_MIN)
        matcher->stretch /= 4;
    else if (taken < STRETCH_SHORT_NS && matcher->stretch < STRETCH_MAX)
        matcher->stretch *= 2;
    matcher->used = 0;
    return search_is_over(matcher->limits);
}

enum { TRY_NONE, TRY_FOUND, TRY_GAVE_UP, TRY_OVER };

/* Runs the expression on a text from an offset on. TRY_GAVE_UP: it took too much; out->start is where that stretch
 * began. */
static int try(struct search_matcher *matcher, const char *text, size_t len, size_t from, uint32_t options,
               struct search_match *out)
{
    for (;;) {
        if (matcher->used == 0)
            matcher->read_at_ns = loop_clock_ns();
        size_t room = matcher->stretch - matcher->used, last = len - from > room ? from + room : len;
        pcre2_set_offset_limit(matcher->context, last < len ? last : PCRE2_UNSET);
        int result =
            pcre2_match(matcher->pattern->code, (PCRE2_SPTR)text, len, from, options, matcher->data, matcher->context);
        const PCRE2_SIZE *found = pcre2_get_ovector_pointer(matcher->data);
        if (result >= 0) {
            out->start = found[0];
            out->end = found[1] > found[0] ? found[1] : found[0]; /* \K in a lookahead can turn them round */
            return advance(matcher, found[0] > from ? found[0] - from + 1 : 1) ? TRY_OVER : TRY_FOUND;
        }
        out->start = from;
        if (advance(matcher, last - from + 1))
            return TRY_OVER;
        if (result != PCRE2_ERROR_NOMATCH)
            return TRY_GAVE_UP;
        if (last == len)
            return TRY_NONE;
        for (from = last + 1; from < len && ((unsigned char)text[from] & 0xC0) == 0x80;)
            from++; /* PCRE2 wants to begin at a character */
    }
}

static size_t line_end(const char *text, size_t len, size_t from)
{
    const char *end = memchr(text + from, '\n', len - from);
    return end ? (size_t)(end - text) : len;
}

static void set_line(const char *text, size_t len, struct search_match *match)
{
    const char *before = memrchr(text, '\n', match->start);
    match->line_start = before ? (size_t)(before + 1 - text) : 0;
    match->line_end = line_end(text, len, match->start);
}

/* Tries the line in *match alone. */
static int try_line(struct search_matcher *matcher, const char *text, struct search_match *match)
{
    size_t start = match->line_start;
    int result = try(matcher, text + start, match->line_end - start, 0, 0, match);
    match->start += start;
    match->end += start;
    matcher->given_up += result == TRY_GAVE_UP;
    return result;
}

/* Lines that hold the needle, each tried alone where there is an expression. */
static bool next_with_needle(struct search_matcher *matcher, const char *text, size_t len, size_t from,
                             struct search_match *out)
{
    const struct search_needle *needle = &matcher->pattern->needle;
    const char *found;
    while (from < len && (found = search_needle_find(needle, text + from, len - from)) != NULL) {
        out->start = (size_t)(found - text);
        out->end = out->start + needle->len;
        set_line(text, len, out);
        int result = matcher->pattern->code ? try_line(matcher, text, out) : TRY_FOUND;
        if (result == TRY_FOUND || result == TRY_OVER)
            return result == TRY_FOUND;
        from = out->line_end + 1;
    }
    return false;
}

static bool next_line_by_line(struct search_matcher *matcher, const char *text, size_t len, size_t from,
                              struct search_match *out)
{
    while (from < len) {
        out->line_start = from;
        out->line_end = line_end(text, len, from);
        int result = try_line(matcher, text, out);
        if (result == TRY_FOUND || result == TRY_OVER)
            return result == TRY_FOUND;
        from = out->line_end + 1;
    }
    return false;
}

/* All lines at once. The line with a match is taken alone where that leaves it, or the expression gave up near it. */
static bool next_in_text(struct search_matcher *matcher, const char *text, size_t len, size_t from,
                         struct search_match *out)
{
    while (from < len) {
        int result = try(matcher, text, len, from, 0, out);
        /* Behind the last LF no line begins. */
        if (result == TRY_NONE || result == TRY_OVER || (out->start == len && text[len - 1] == '\n'))
            return false;
        set_line(text, len, out);
        if (result == TRY_GAVE_UP || out->end > out->line_end)
            result = try_line(matcher, text, out);
        if (result == TRY_FOUND || result == TRY_OVER)
            return result == TRY_FOUND;
        from = out->line_end + 1;
    }
    return false;
}

bool search_matcher_next(struct search_matcher *matcher, const char *text, size_t len, size_t from,
                         struct search_match *out)
{
    matcher->used = 0; /* what the caller did meanwhile does not count */
    if (matcher->pattern->has_needle)
        return next_with_needle(matcher, text, len, from, out);
    if (matcher->pattern->line_by_line)
        return next_line_by_line(matcher, text, len, from, out);
    return next_in_text(matcher, text, len, from, out);
}

bool search_matcher_part(struct search_matcher *matcher, const char *text, size_t len, size_t from, int flags,
                         struct search_match *out)
{
    *out = (struct search_match){.line_end = len};
    matcher->used = 0;
    if (!matcher->pattern->code) {
        const char *found = search_needle_find(&matcher->pattern->needle, text + from, len - from);
        out->start = found ? (size_t)(found - text) : 0;
        out->end = out->start + matcher->pattern->needle.len;
        return found != NULL;
    }
    uint32_t options = flags & SEARCH_PART_NOT_FIRST ? PCRE2_NOTBOL : 0;
    options |= flags & SEARCH_PART_NOT_LAST ? PCRE2_NOTEOL : 0;
    int result = try(matcher, text, len, from, options, out);
    matcher->given_up += result == TRY_GAVE_UP;
    return result == TRY_FOUND;
}
