/* Finds what is secret in names and texts and puts "***" there; called for all that shows environments, command lines,
 * log lines and problems. */
#include "prim/mask.h"

#include "prim/mask_chars.h"
#include "prim/mask_name.h"
#include "prim/mask_url.h"
#include "prim/mask_value.h"

#include <string.h>

struct scan {
    struct buf *out;
    const char *text;
    size_t len, at;
    size_t copied; /* so much of the text is in out, or hidden */
    char quote;    /* the one that is open, or 0 */
    bool backtick; /* one is open */
    bool cut;      /* URLs may be */
    size_t header; /* where a header's name is due; len: nowhere */
    size_t first;  /* so in the first place in a word of an argv */
    struct mask_url url;
};

static struct scan scan_of(struct buf *out, const char *text, size_t len)
{
    return (struct scan){.out = out, .text = text, .len = len, .header = len, .first = len};
}

static size_t skip_blanks(const struct scan *scan, size_t at)
{
    while (at < scan->len && is_blank(scan->text[at]))
        at++;
    return at;
}

/* In a shell's word a backslash stands before each. */
static size_t skip_escaped_blanks(const struct scan *scan, size_t at)
{
    for (;;) {
        size_t blank = at + (at < scan->len && scan->text[at] == '\\');
        if (blank >= scan->len || !is_blank(scan->text[blank]))
            return at;
        at = blank + 1;
    }
}

static size_t skip_quote(const struct scan *scan, size_t at)
{
    return mask_value_skip_quote(scan->text, scan->len, at);
}

static bool stands_at(const struct scan *scan, size_t at, char c)
{
    return at < scan->len && scan->text[at] == c;
}

static size_t name_end(const char *text, size_t len, size_t at)
{
    while (at < len && is_name_char(text[at]))
        at++;
    return at;
}

static int hide(struct scan *scan, size_t from, size_t to)
{
    scan->at = to;
    if (from == to)
        return 0;
    if (buf_append(scan->out, scan->text + scan->copied, from - scan->copied) != 0)
        return -1;
    scan->copied = to;
    return buf_append_text(scan->out, MASK_TEXT);
}

static size_t value_end(const struct scan *scan, size_t at)
{
    struct mask_value value = {scan->text, scan->len, scan->quote, scan->backtick};
    return mask_value_word_end(&value, at);
}

static bool quote_before(const struct scan *scan, size_t name)
{
    return name > 0 && is_quote(scan->text[name - 1]);
}

/* Where the quote just before `name` is closed, behind `value`. */
static size_t quoted_end(const struct scan *scan, size_t name, size_t value)
{
    if (name > 1 && scan->text[name - 2] == '\\')
        return mask_value_string_end(scan->text, scan->len, name);
    size_t end = mask_value_enclosed_end(scan->text, scan->len, name - 1);
    return end > value && scan->text[end - 1] == scan->text[name - 1] ? end - 1 : scan->len;
}

/* The value of a name that began at `name`. A quote just before the name encloses both, unless it closes a text. */
static int hide_value(struct scan *scan, size_t name, size_t value)
{
    if (!quote_before(scan, name) || scan->quote == '\0')
        return hide(scan, value, value_end(scan, value));
    size_t end = quoted_end(scan, name, value);
    /* Of a quote in a text in other ones it is not known; in 'a'NAME='b' it is no open one. */
    if (end == value && scan->quote != scan->text[name - 1])
        end = value_end(scan, value);
    return hide(scan, value, end);
}

/* What follows `--name`, unless that is an option itself. */
static int hide_next_word(struct scan *scan)
{
    size_t word = skip_blanks(scan, scan->at);
    if (starts_with(scan->text + word, scan->len - word, "--"))
        return 0;
    return hide(scan, word, value_end(scan, word));
}

/* Whether `name:`, which ends at `end`, is a header's: see mask.h. Of `a::b` and `a://b` it is not. */
static bool is_header(const struct scan *scan, size_t name, size_t end)
{
    if (!stands_at(scan, end, ':') || stands_at(scan, end + 1, ':') ||
        starts_with(scan->text + end, scan->len - end, "://"))
        return false;
    return name == scan->header || name == scan->first || quote_before(scan, name) ||
           (name + 1 < end && scan->text[name] == '-' && scan->text[name + 1] == 'H');
}

static int hide_header(struct scan *scan, size_t name, size_t colon)
{
    size_t value = skip_escaped_blanks(scan, colon + 1);
    if (name == scan->first)
        return hide(scan, value, scan->len);
    /* "--header=NAME: VALUE", where the quote stands before the option */
    if (scan->quote != '\0' && !quote_before(scan, name)) {
        const char *end = memchr(scan->text + value, scan->quote, scan->len - value);
        return hide(scan, value, end != NULL ? (size_t)(end - scan->text) : scan->len);
    }
    return hide(scan, value, quote_before(scan, name) ? quoted_end(scan, name, value) : value_end(scan, value));
}

static size_t number_end(const struct scan *scan, size_t at)
{
    size_t end = at + stands_at(scan, at, '-');
    if (end == scan->len || !is_digit(scan->text[end]))
        return at;
    while (end < scan->len &&
           (is_alnum(scan->text[end]) || scan->text[end] == '.' || scan->text[end] == '-' || scan->text[end] == '+'))
        end++;
    return end;
}

/* Behind a name: `": "VALUE"`, a member as JSON and Python write it, each quote escaped or not. What no value begins
 * with is prose, and null no secret. */
static int hide_member(struct scan *scan, size_t name_end)
{
    size_t after = skip_quote(scan, name_end), colon = skip_blanks(scan, after);
    if (after == name_end || !stands_at(scan, colon, ':'))
        return 0;
    size_t value = skip_blanks(scan, colon + 1), within = skip_quote(scan, value);
    if (within > value)
        return hide(scan, within, mask_value_string_end(scan->text, scan->len, within));
    size_t end = stands_at(scan, value, '[') || stands_at(scan, value, '{')
                     ? mask_value_enclosed_end(scan->text, scan->len, value)
                     : number_end(scan, value);
    if (end > value && scan->quote == scan->text[after - 1])
        scan->quote = '\0'; /* the name's: it is stepped over */
    return end > value ? hide(scan, value, end) : 0;
}

/* Behind the name of the header: `: Bearer VALUE`, also as a member of JSON. */
static int hide_credentials(struct scan *scan)
{
    const char *text = scan->text;
    size_t at = skip_blanks(scan, skip_quote(scan, scan->at)), len = scan->len;
    if (at >= len || (text[at] != ':' && text[at] != '='))
        return 0;
    at = skip_quote(scan, skip_escaped_blanks(scan, at + 1));
    size_t scheme = at;
    while (at < len && is_alnum(text[at]))
        at++;
    if (!starts_with(text + scheme, at - scheme, "Bearer") && !starts_with(text + scheme, at - scheme, "Basic") &&
        !starts_with(text + scheme, at - scheme, "Token"))
        return 0;
    size_t value = skip_escaped_blanks(scan, at), end = value;
    /* <token> is how texts tell what is to be put there. */
    if (value == at || (value < len && text[value] == '<'))
        return 0;
    while (end < len && !is_blank(text[end]) && skip_quote(scan, end) == end)
        end++;
    return hide(scan, value, end);
}

/* Where the value begins of a name that ends at `end`, behind =, += (a shell's, which appends), [SUBSCRIPT]= or, where
 * the name is one, ]=; 0: none does. */
static size_t assigned_value(const struct scan *scan, size_t end)
{
    const char *text = scan->text;
    if (stands_at(scan, end, '[')) {
        end++;
        while (end < scan->len && text[end] != ']' && text[end] != '[' && text[end] != '\n')
            end++;
    }
    end += stands_at(scan, end, ']');
    end += stands_at(scan, end, '+');
    return stands_at(scan, end, '=') ? end + 1 : 0;
}

/* Behind an option that takes a header, its name is due. */
static void expect_header(struct scan *scan, size_t name, size_t end)
{
    const char *text = scan->text;
    bool option = text[name] == '-' &&
                  ((end - name == 2 && text[name + 1] == 'H') || ends_with(text + name, end - name, "-header"));
    if (option && stands_at(scan, end, '='))
        scan->header = skip_quote(scan, end + 1);
    else if (option && is_blank(text[end]))
        scan->header = skip_quote(scan, skip_blanks(scan, end));
}

/* The value of a secret name, in whichever way it follows. */
static int hide_named(struct scan *scan, size_t name, size_t end)
{
    const char *text = scan->text;
    size_t value = assigned_value(scan, end);
    if (value != 0)
        return hide_value(scan, name, value);
    if (is_header(scan, name, end))
        return hide_header(scan, name, end);
    if (text[name] == '-' && is_blank(text[end]) && (name == 0 || !is_alnum(text[name - 1])))
        return hide_next_word(scan);
    return hide_member(scan, end);
}

/* Whether a value may follow a name that ends here: of most words none does. */
static bool may_precede_value(const struct scan *scan, size_t name, size_t end)
{
    char c = scan->text[end];
    return is_blank(c) ? scan->text[name] == '-' : strchr("=+[]:\"'\\", c) != NULL;
}

static int take_name(struct scan *scan)
{
    const char *text = scan->text;
    size_t name = scan->at, end = name_end(text, scan->len, name), start = name;
    while (start < end && text[start] == '-')
        start++;
    scan->at = end;
    if (end == scan->len)
        return 0;
    expect_header(scan, name, end);
    if (may_precede_value(scan, name, end) && mask_name_is_secret(text + start, end - start, true))
        return hide_named(scan, name, end);
    return ends_with(text + start, end - start, "authorization") ? hide_credentials(scan) : 0;
}

static int take_url(struct scan *scan)
{
    scan->at = scan->url.next;
    return scan->url.end > scan->url.password ? hide(scan, scan->url.password, scan->url.end) : 0;
}

static bool at_url(struct scan *scan)
{
    return mask_url_at(scan->text, scan->len, scan->at, scan->cut, &scan->url);
}

/* --- the whole */

static void take_quote(struct scan *scan)
{
    size_t at = scan->at++;
    char c = scan->text[at];
    bool within_word = at > 0 && at + 1 < scan->len && is_alnum(scan->text[at - 1]) && is_alnum(scan->text[at + 1]);
    if (scan->quote == c)
        scan->quote = '\0';
    else if (scan->quote == '\0' && !(c == '\'' && within_word)) /* can't */
        scan->quote = c;
}

/* Of \" the quote neither opens nor closes; of \n, as JSON has it, the letter is no part of a name. */
static void take_backslash(struct scan *scan)
{
    char next = scan->at + 1 < scan->len ? scan->text[scan->at + 1] : '\0';
    scan->at += is_quote(next) || next == 'n' || next == 'r' || next == 't' ? 2 : 1;
}

static int take_one(struct scan *scan)
{
    char c = scan->text[scan->at];
    if (is_name_char(c))
        return take_name(scan);
    if ((c == ':' || c == '%') && at_url(scan))
        return take_url(scan);
    if (is_quote(c))
        take_quote(scan);
    else if (c == '\\')
        take_backslash(scan);
    else
        scan->at++;
    if (c == '`')
        scan->backtick = !scan->backtick;
    return 0;
}

static int finish(struct scan *scan)
{
    return buf_append(scan->out, scan->text + scan->copied, scan->len - scan->copied);
}

bool mask_may_change(const char *text, size_t len)
{
    /* "://" and what is %3A of it, NAME=, NAME: in its forms; and an option begins with '-' */
    return len > 0 && (memchr(text, '=', len) != NULL || memchr(text, ':', len) != NULL ||
                       memchr(text, '-', len) != NULL || memchr(text, '%', len) != NULL);
}

static int scan_all(struct scan *scan)
{
    if (!mask_may_change(scan->text, scan->len))
        return buf_append(scan->out, scan->text, scan->len);
    while (scan->at < scan->len)
        if (take_one(scan) != 0)
            return -1;
    return finish(scan);
}

int mask_text(struct buf *out, const char *text, size_t len)
{
    struct scan scan = scan_of(out, text, len);
    return scan_all(&scan);
}

int mask_cut_text(struct buf *out, const char *text, size_t len)
{
    struct scan scan = scan_of(out, text, len);
    scan.cut = true;
    return scan_all(&scan);
}

int mask_urls(struct buf *out, const char *text, size_t len)
{
    struct scan scan = scan_of(out, text, len);
    while (scan.at < len) {
        bool url = (text[scan.at] == ':' || text[scan.at] == '%') && at_url(&scan);
        if (!url)
            scan.at++;
        else if (take_url(&scan) != 0)
            return -1;
    }
    return finish(&scan);
}

static int mask_in_word(struct buf *out, const char *word, size_t len)
{
    struct scan scan = scan_of(out, word, len);
    size_t end = name_end(word, len, 0);
    scan.first = ends_with(word, end, "-header") && stands_at(&scan, end, '=') ? end + 1 : 0;
    return scan_all(&scan);
}

int mask_word(struct buf *out, const char *word, size_t len, bool *secret_follows)
{
    bool hidden = *secret_follows && !starts_with(word, len, "--");
    *secret_follows = false;
    if (hidden)
        return len > 0 ? buf_append_text(out, MASK_TEXT) : 0;
    size_t end = name_end(word, len, 0), start = 0;
    while (start < end && word[start] == '-')
        start++;
    if (!mask_name_is_secret(word + start, end - start, true))
        return mask_in_word(out, word, len);
    struct scan scan = scan_of(out, word, len);
    size_t value = assigned_value(&scan, end);
    if (value != 0)
        return hide(&scan, value, len) != 0 ? -1 : finish(&scan);
    *secret_follows = start > 0 && end == len;
    return mask_in_word(out, word, len);
}
