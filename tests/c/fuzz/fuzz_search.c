/* Whatever way is taken to search many lines at once, the lines that match, and where, must be those that PCRE2 finds
 * in each line alone. The input: a byte of options, the pattern's length, the pattern, the text. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/utf8.h"
#include "prim/search_literal.h"
#include "prim/search_pattern.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct plain {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
};

static void plain_init(struct plain *plain, const char *text, size_t len, bool regex, bool case_sensitive)
{
    uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | (case_sensitive ? 0 : PCRE2_CASELESS);
    options |= regex ? PCRE2_MULTILINE | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C : PCRE2_LITERAL;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    int number;
    PCRE2_SIZE offset;
    pcre2_set_newline(context, PCRE2_NEWLINE_ANYCRLF);
    plain->code = pcre2_compile((PCRE2_SPTR)text, len, options, &number, &offset, context);
    pcre2_compile_context_free(context);
    if (!plain->code)
        abort(); /* search_pattern_new took it */
    plain->data = pcre2_match_data_create(1, NULL);
    plain->context = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(plain->context, 10000);
}

static void plain_deinit(struct plain *plain)
{
    pcre2_match_context_free(plain->context);
    pcre2_match_data_free(plain->data);
    pcre2_code_free(plain->code);
}

/* The first line from `from` on; *out_hard: PCRE2 gave up on one. */
static bool plain_next(const struct plain *plain, const char *text, size_t len, size_t from, struct search_match *out,
                       bool *out_hard)
{
    while (from < len) {
        const char *end = memchr(text + from, '\n', len - from);
        out->line_start = from;
        out->line_end = end ? (size_t)(end - text) : len;
        int result =
            pcre2_match(plain->code, (PCRE2_SPTR)text + from, out->line_end - from, 0, 0, plain->data, plain->context);
        *out_hard |= result < 0 && result != PCRE2_ERROR_NOMATCH;
        if (result >= 0) {
            out->start = from + pcre2_get_ovector_pointer(plain->data)[0];
            return true;
        }
        from = out->line_end + 1;
    }
    return false;
}

static void compare(const struct search_pattern *pattern, const struct plain *plain, const char *text, size_t len)
{
    static const atomic_bool cancelled;
    struct search_limits limits = {.cancelled = &cancelled, .deadline_ns = UINT64_MAX};
    struct search_matcher *matcher = search_matcher_new(pattern, &limits);
    if (!matcher)
        return;
    bool is_text = utf8_valid(text, len);
    struct search_match one = {.line_end = 0}, two = {.line_end = 0};
    for (size_t from = 0;; from = one.line_end + 1) {
        bool hard = false;
        bool found = from < len && search_matcher_next(matcher, text, len, from, &one);
        bool wanted = plain_next(plain, text, len, from, &two, &hard);
        if (hard || search_matcher_given_up(matcher) > 0)
            break;
        if (!is_text) { /* PCRE2 itself is not of one mind about $ behind bad bytes, with what follows them or not */
            if (!found)
                break;
            continue;
        }
        if (found != wanted || (found && (one.line_start != two.line_start || one.line_end != two.line_end ||
                                          one.start != two.start || one.end > one.line_end))) {
            fprintf(stderr, "found %d at %zu in %zu..%zu, wanted %d at %zu in %zu..%zu\n", found, one.start,
                    one.line_start, one.line_end, wanted, two.start, two.line_start, two.line_end);
            abort();
        }
        if (!found)
            break;
    }
    search_matcher_free(matcher);
}

/* A needle in a text with many beginnings of it. */
static void compare_needle(const char *needle, size_t needle_len, const char *text, size_t len)
{
    struct search_needle prepared;
    search_needle_init(&prepared, needle, needle_len);
    if (search_needle_find(&prepared, text, len) != memmem(text, len, needle, needle_len))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || data[1] == 0 || (size_t)data[1] + 2 > size)
        return 0;
    bool regex = data[0] & 1, case_sensitive = data[0] & 2;
    const char *text = (const char *)data + 2, *rest = text + data[1];
    size_t len = size - 2 - data[1];
    struct err err;
    compare_needle(text, data[1], rest, len);
    if (!utf8_valid(text, data[1]))
        return 0;
    struct search_pattern *pattern = search_pattern_new(text, data[1], regex, case_sensitive, &err);
    if (!pattern)
        return 0;
    struct plain plain;
    plain_init(&plain, text, data[1], regex, case_sensitive);
    compare(pattern, &plain, rest, len);
    plain_deinit(&plain);
    search_pattern_free(pattern);
    return 0;
}
