/* Finds passwords in URLs as they stand in texts, in parts percent-encoded or as a whole; called by mask. */
#include "prim/mask_url.h"

#include "prim/mask_chars.h"

enum { PORT_MAX_DIGITS = 5 };

struct authority {
    const char *text;
    size_t len, from;
    bool encoded; /* a part of its "://" was */
    size_t password, at_sign;
};

/* The length of the character `c` at `at`, as itself or as %XX (`hex` in capitals); 0: another stands there. */
static size_t url_char(const char *text, size_t len, size_t at, char c, const char *hex)
{
    if (at >= len)
        return 0;
    if (text[at] == c)
        return 1;
    if (text[at] != '%' || len - at < 3 || text[at + 1] != hex[0])
        return 0;
    return text[at + 2] == hex[1] || text[at + 2] == (hex[1] | 0x20) ? 3 : 0;
}

/* As a program that takes the URL as it stands sees it. */
static bool ends_plainly(char c)
{
    return is_blank(c) || c == '/' || c == '?' || c == '#';
}

/* As one that decodes it first does; '&' because it stands in a query then. */
static bool ends_encoded(const struct authority *url, size_t at)
{
    const char *text = url->text;
    return text[at] == '&' || url_char(text, url->len, at, '/', "2F") || url_char(text, url->len, at, '?', "3F") ||
           url_char(text, url->len, at, '#', "23") || url_char(text, url->len, at, ' ', "20");
}

/* Whether what follows the colon is a port, or the address one of IPv6. What ends a sentence may stand behind it. */
static bool has_port(const struct authority *url, size_t end)
{
    size_t at = url->password;
    while (at < end && at - url->password <= PORT_MAX_DIGITS && is_digit(url->text[at]))
        at++;
    return url->text[url->from] == '[' ||
           (at - url->password <= PORT_MAX_DIGITS && (at == end || !is_name_char(url->text[at])));
}

/* Whether the authority ends here at the latest for one who decodes it. An encoded slash within what cannot be a port
 * may be a part of the password. */
static bool ends_softly(const struct authority *url, size_t at)
{
    return url->encoded && ends_encoded(url, at) && (url->password == 0 || url->at_sign != 0 || has_port(url, at));
}

/* Past the authority; *out_plainly: at an end that holds for every URL that begins before it. */
static size_t read_authority(struct authority *url, bool *out_plainly)
{
    size_t at = url->from;
    for (; at < url->len && !ends_plainly(url->text[at]); at++) {
        *out_plainly = false;
        if (ends_softly(url, at))
            return at;
        size_t colon = url_char(url->text, url->len, at, ':', "3A");
        if (colon > 0 && url->password == 0)
            url->password = at + colon;
        if (url_char(url->text, url->len, at, '@', "40"))
            url->at_sign = at;
    }
    *out_plainly = true;
    return at;
}

/* Past the "://" at `at`; 0: there is none. */
static size_t separator_end(const char *text, size_t len, size_t at)
{
    char before = at > 0 ? text[at - 1] : '\0';
    if (!is_alnum(before) && before != '+' && before != '-' && before != '.')
        return 0;
    size_t colon = url_char(text, len, at, ':', "3A");
    size_t first = colon > 0 ? url_char(text, len, at + colon, '/', "2F") : 0;
    size_t second = first > 0 ? url_char(text, len, at + colon + first, '/', "2F") : 0;
    return second > 0 ? at + colon + first + second : 0;
}

bool mask_url_at(const char *text, size_t len, size_t at, bool cut, struct mask_url *url)
{
    size_t from = separator_end(text, len, at);
    if (from == 0)
        return false;
    url->password = url->end = url->next = from;
    if (from < url->barren)
        return true;
    struct authority found = {.text = text, .len = len, .from = from, .encoded = from - at > 3};
    bool plainly;
    size_t end = read_authority(&found, &plainly);
    if (plainly)
        url->barren = end;
    if (cut && found.at_sign == 0 && found.password != 0 && (end == len || is_blank(text[end])) &&
        !has_port(&found, end))
        found.at_sign = end;
    if (found.password != 0 && found.at_sign > found.password) {
        url->password = found.password;
        url->end = found.at_sign;
    }
    return true;
}
