/* What a search looks for: a regular expression or a plain text, found line by line. For search_file. */
#ifndef ABX_PRIM_SEARCH_PATTERN_H
#define ABX_PRIM_SEARCH_PATTERN_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When a search must end: shared by its threads. */
struct search_limits {
    const atomic_bool *cancelled; /* the client left */
    uint64_t deadline_ns;         /* of loop_clock_ns */
    atomic_bool stopped;          /* enough was found, or it failed */
    atomic_bool timed_out;
};
/* Whether it is over; notices the deadline. */
bool search_is_over(struct search_limits *limits);

struct search_pattern; /* immutable: any thread may use it */

enum { SEARCH_PATTERN_MAX_BYTES = 64 * 1024 };

/* text may hold NUL, and must be UTF-8. A regular expression is one of PCRE2: UTF (bytes that are none never match, nor
 * fail), Unicode's classes, ^ and $ at CR, LF and CRLF. NULL with *err and its field: ERR_INVALID_REGEX with the offset
 * of the fault, ERR_INVALID_REQUEST (empty, too long, or a plain text with a line break, which no line holds). The
 * caller frees it with search_pattern_free. */
struct search_pattern *search_pattern_new(const char *text, size_t len, bool regex, bool case_sensitive,
                                          struct err *err);
void search_pattern_free(struct search_pattern *pattern);

/* One thread's memory for matching. All borrowed, must outlive it. NULL out of memory. */
struct search_matcher;
struct search_matcher *search_matcher_new(const struct search_pattern *pattern, struct search_limits *limits);
void search_matcher_free(struct search_matcher *matcher);
/* Lines so far on which the expression was given up, as it took more steps or memory than is sensible. */
uint64_t search_matcher_given_up(const struct search_matcher *matcher);

/* Offsets into the text that was searched; the line without its LF. */
struct search_match {
    size_t line_start, line_end, start, end;
};

/* Finds the first line at or after `from`, where a line starts, that matches, and its first match, which never leaves
 * the line. text holds whole lines; the last may lack its LF. False: none, or the search is over. */
bool search_matcher_next(struct search_matcher *matcher, const char *text, size_t len, size_t from,
                         struct search_match *out);

/* The same within a part of one line, at or after from: for lines too long to be held. */
enum { SEARCH_PART_NOT_FIRST = 1, SEARCH_PART_NOT_LAST = 2 };
bool search_matcher_part(struct search_matcher *matcher, const char *text, size_t len, size_t from, int flags,
                         struct search_match *out);

#endif
