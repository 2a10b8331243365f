/* Works out what of a file is to be sent; called by the pipeline for every answer that is a file. */
#include "request/conditional.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* Not strftime: the names must be English whatever the locale is. */
void conditional_date_format(char out[CONDITIONAL_DATE_LEN + 1], time_t when)
{
    struct tm tm;
    char text[96];

    if (!gmtime_r(&when, &tm) || tm.tm_year < -900 || tm.tm_year > 8099)
        gmtime_r(&(time_t){0}, &tm);
    snprintf(text, sizeof(text), "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon],
             tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    memcpy(out, text, CONDITIONAL_DATE_LEN);
    out[CONDITIONAL_DATE_LEN] = '\0';
}

int conditional_date_parse(const char *text, time_t *out_when)
{
    struct tm tm = {0};
    char month[4] = "", zone[4] = "";
    int used = 0;
    bool obsolete = false;

    if (sscanf(text, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d %3[A-Z]%n", &tm.tm_mday, month, &tm.tm_year,
               &tm.tm_hour, &tm.tm_min, &tm.tm_sec, zone, &used) != 7) {
        used = 0;
        if (sscanf(text, "%*9[A-Za-z], %2d-%3[A-Za-z]-%2d %2d:%2d:%2d %3[A-Z]%n", &tm.tm_mday, month, &tm.tm_year,
                   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, zone, &used) == 7) {
            obsolete = true;
        } else {
            strcpy(zone, "GMT");
            used = 0;
            if (sscanf(text, "%*3[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %4d%n", month, &tm.tm_mday, &tm.tm_hour,
                       &tm.tm_min, &tm.tm_sec, &tm.tm_year, &used) != 6)
                return -1;
        }
    }
    if (text[used] != '\0' || strcmp(zone, "GMT") != 0)
        return -1;
    if (obsolete)
        tm.tm_year += tm.tm_year < 70 ? 2000 : 1900;
    tm.tm_mon = -1;
    for (int i = 0; i < 12; i++) {
        if (strcmp(months[i], month) == 0)
            tm.tm_mon = i;
    }
    if (tm.tm_mon < 0 || tm.tm_year < 1000 || tm.tm_mday < 1 || tm.tm_mday > 31 || tm.tm_hour < 0 || tm.tm_hour > 23 ||
        tm.tm_min < 0 || tm.tm_min > 59 || tm.tm_sec < 0 || tm.tm_sec > 60)
        return -1;
    tm.tm_year -= 1900;
    *out_when = timegm(&tm);
    return 0;
}

/* Whether the list of entity tags holds ours, or is "*". Ours is strong; weak comparison forgives a W/. */
static bool tag_listed(const char *list, const char *etag, bool weak)
{
    size_t etag_len = strlen(etag);

    if (list[strspn(list, " \t")] == '*')
        return true;
    for (const char *p = list; *p;) {
        bool is_weak = strncmp(p, "W/", 2) == 0;
        const char *tag = is_weak ? p + 2 : p, *end;

        if (*tag != '"') {
            p++;
            continue;
        }
        end = strchr(tag + 1, '"');
        if (!end)
            return false;
        if ((weak || !is_weak) && (size_t)(end + 1 - tag) == etag_len && memcmp(tag, etag, etag_len) == 0)
            return true;
        p = end + 1;
    }
    return false;
}

static bool conditions_hold(const struct conditional_headers *headers, const char *etag, time_t modified_at)
{
    time_t when;

    if (headers->if_match)
        return tag_listed(headers->if_match, etag, false);
    if (headers->if_unmodified_since && conditional_date_parse(headers->if_unmodified_since, &when) == 0)
        return modified_at <= when;
    return true;
}

static bool not_modified(const struct conditional_headers *headers, const char *etag, time_t modified_at)
{
    time_t when;

    if (headers->if_none_match)
        return tag_listed(headers->if_none_match, etag, true);
    if (headers->if_modified_since && conditional_date_parse(headers->if_modified_since, &when) == 0)
        return modified_at <= when;
    return false;
}

static bool range_wanted(const struct conditional_headers *headers, const char *etag, time_t modified_at)
{
    time_t when;

    if (!headers->range)
        return false;
    if (!headers->if_range)
        return true;
    if (strchr(headers->if_range, '"'))
        return strcmp(headers->if_range, etag) == 0;
    return conditional_date_parse(headers->if_range, &when) == 0 && when == modified_at;
}

/* Reads digits; a number over 2^64-1 becomes that. NULL where there are none. */
static const char *read_number(const char *p, uint64_t *out)
{
    uint64_t number = 0;

    if (*p < '0' || *p > '9')
        return NULL;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');

        number = number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : number * 10 + digit;
    }
    *out = number;
    return p;
}

static enum conditional_result read_range(const char *range, uint64_t size, uint64_t *out_first, uint64_t *out_length)
{
    uint64_t first = 0, last = UINT64_MAX;
    const char *p;
    bool suffix;

    if (strncasecmp(range, "bytes=", 6) != 0)
        return CONDITIONAL_WHOLE;
    p = range + 6 + strspn(range + 6, " \t");
    suffix = *p == '-';
    if (!suffix && !(p = read_number(p, &first)))
        return CONDITIONAL_WHOLE;
    if (*p++ != '-')
        return CONDITIONAL_WHOLE;
    if (*p >= '0' && *p <= '9')
        p = read_number(p, &last);
    else if (suffix)
        return CONDITIONAL_WHOLE;
    if (p[strspn(p, " \t")] != '\0' || (!suffix && last < first))
        return CONDITIONAL_WHOLE;
    if (suffix) {
        if (last == 0 || size == 0)
            return CONDITIONAL_UNSATISFIABLE;
        first = last < size ? size - last : 0;
        last = size - 1;
    } else if (first >= size) {
        return CONDITIONAL_UNSATISFIABLE;
    }
    if (last > size - 1)
        last = size - 1;
    *out_first = first;
    *out_length = last - first + 1;
    return CONDITIONAL_PART;
}

enum conditional_result conditional_check(const struct conditional_headers *headers, const char *etag,
                                          time_t modified_at, uint64_t size, uint64_t *out_first, uint64_t *out_length)
{
    if (!conditions_hold(headers, etag, modified_at))
        return CONDITIONAL_FAILED;
    if (not_modified(headers, etag, modified_at))
        return CONDITIONAL_NOT_MODIFIED;
    if (!range_wanted(headers, etag, modified_at))
        return CONDITIONAL_WHOLE;
    return read_range(headers->range, size, out_first, out_length);
}
