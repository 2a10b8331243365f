/* Searches the text of a file, or of all files of a tree: the verb behind fs.search. Blocking, for a thread of
 * host.long_jobs; starts threads of its own where there is much to read, and has ended them when it returns. */
#ifndef ABX_PRIM_SEARCH_H
#define ABX_PRIM_SEARCH_H

#include "base/buf.h"
#include "prim/confine.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What it finds in one call, as JSON; past that the answer is truncated. */
enum { SEARCH_ANSWER_MAX_BYTES = 16 * 1024 * 1024 };

struct search_text {
    const char *text;
    size_t len;
};

struct search_options {
    struct search_text path, pattern;
    bool regex, case_sensitive;
    struct search_text glob;           /* of files; text NULL: all */
    const struct search_text *exclude; /* globs of files and directories */
    size_t exclude_count;
    unsigned context; /* lines, at most 20 */
    size_t max_results;
    uint64_t deadline_ns; /* of loop_clock_ns */
    unsigned threads;     /* 0: one for each CPU, at most 8 */
};

/* Appends {"matches":[…],"truncated":…,"timed_out":…,"files_searched":…} to answer; "lines_given_up" too where an
 * expression took too much on some lines, "unreadable" where files or directories may not be read. Files in the order
 * of a sorted walk, each in the order of its lines. Left out are links, binary and protected files, those of procfs and
 * its like, and what cannot be read; nothing but regular files is opened. A file that the path names itself is searched
 * whatever the globs say. cancelled ends it within some 50 ms, any how. -1 with err and its field. */
int search_run(const struct confine *confine, const struct search_options *options, const atomic_bool *cancelled,
               struct buf *answer, struct err *err) ABX_MUST_USE;

#endif
