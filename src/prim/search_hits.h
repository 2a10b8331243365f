/* What a search found, as the JSON of the contract, with the lines around. For search_file. */
#ifndef ABX_PRIM_SEARCH_HITS_H
#define ABX_PRIM_SEARCH_HITS_H

#include "base/buf.h"
#include "prim/search_pattern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEARCH_TEXT_MAX_BYTES = 1000, SEARCH_CONTEXT_MAX = 20 };

/* Matches in some files that follow each other. */
struct search_found {
    struct buf json; /* each match an object, nothing between them */
    size_t *ends;    /* of each in json */
    size_t count, cap, max;
    bool full; /* a match did not fit: it goes no further */
    uint64_t files, given_up;
};
/* count_max matches, bytes_max of JSON. */
void search_found_init(struct search_found *found, size_t count_max, size_t bytes_max);
void search_found_deinit(struct search_found *found);
/* Empties it, keeps a little memory. */
void search_found_reset(struct search_found *found);

/* A thread's own: turns matches into JSON, file by file, window by window. */
struct search_hits;
struct search_hits *search_hits_new(unsigned context);
void search_hits_free(struct search_hits *hits);

/* Begins a file: dir is its directory's absolute path ("" for the root); both borrowed until search_hits_end. */
void search_hits_begin(struct search_hits *hits, struct search_found *found, const char *dir, const char *name);
/* Ends the file: matches whose following lines never came are complete now. */
void search_hits_end(struct search_hits *hits);

/* Whole lines that follow those of the last window: first search_hits_window, then the matches in it, in order, then
 * search_hits_leave unless the file ends with it. */
void search_hits_window(struct search_hits *hits, const char *text, size_t len);
void search_hits_add(struct search_hits *hits, const struct search_match *match);
void search_hits_leave(struct search_hits *hits);

/* A line too long for a window, in parts: begin with its start, add at most one match in a part of it (base: bytes of
 * the line before the part), leave at its end. */
void search_hits_long_begin(struct search_hits *hits, const char *start, size_t len);
void search_hits_long_add(struct search_hits *hits, const char *part, size_t len, uint64_t base,
                          const struct search_match *match);
void search_hits_long_leave(struct search_hits *hits);

#endif
