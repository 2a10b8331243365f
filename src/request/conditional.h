/* Conditions and ranges of a file's answer (RFC 9110, sections 13 and 14). Pure. */
#ifndef ABX_REQUEST_CONDITIONAL_H
#define ABX_REQUEST_CONDITIONAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The headers' values; NULL where not sent. */
struct conditional_headers {
    const char *if_match, *if_none_match, *if_modified_since, *if_unmodified_since, *if_range, *range;
};

enum conditional_result {
    CONDITIONAL_WHOLE,         /* 200 */
    CONDITIONAL_PART,          /* 206 with *out_first and *out_length */
    CONDITIONAL_NOT_MODIFIED,  /* 304 */
    CONDITIONAL_FAILED,        /* 412 */
    CONDITIONAL_UNSATISFIABLE, /* 416 */
};

/* For GET and HEAD of a file of this size. etag with its quotes. A range that is malformed, of another unit, or one of
 * several is ignored: the whole file is a proper answer to it. */
enum conditional_result conditional_check(const struct conditional_headers *headers, const char *etag,
                                          time_t modified_at, uint64_t size, uint64_t *out_first, uint64_t *out_length);

enum { CONDITIONAL_DATE_LEN = 29 };
/* "Sun, 06 Nov 1994 08:49:37 GMT" */
void conditional_date_format(char out[CONDITIONAL_DATE_LEN + 1], time_t when);
/* Any of the three forms of a date in HTTP; -1 where it is none. */
int conditional_date_parse(const char *text, time_t *out_when);

#endif
