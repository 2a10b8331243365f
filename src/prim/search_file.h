/* Searches one open file, in windows of whole lines: memory does not grow with the file. For search. */
#ifndef ABX_PRIM_SEARCH_FILE_H
#define ABX_PRIM_SEARCH_FILE_H

#include "prim/search_hits.h"
#include "prim/search_pattern.h"

#include <stdbool.h>
#include <stdint.h>

/* A line longer than that is searched in parts which overlap: a match in it is found if it is no longer than the
 * overlap, and only the first is. */
enum { SEARCH_LINE_MAX_BYTES = 1024 * 1024, SEARCH_OVERLAP_BYTES = 64 * 1024 + 64 };

/* A thread's own. Borrows the matcher and the hits. NULL out of memory. */
struct search_reader;
struct search_reader *search_reader_new(struct search_matcher *matcher, struct search_hits *hits,
                                        struct search_limits *limits);
void search_reader_free(struct search_reader *reader);

/* Reads from the start of fd, a regular file of that size, and adds what matches to the hits, which search_hits_begin
 * was told of; ends early where the search is over or found is full. A UTF-8 byte order mark is left out. False: a
 * binary file (a NUL in its first 64 KiB) or one that cannot be read; then there are no matches of it. */
bool search_reader_run(struct search_reader *reader, int fd, uint64_t size, const struct search_found *found);

#endif
