/* Tickets: short-lived secrets that open one terminal once, for clients that cannot send a header. Not thread-safe. */
#ifndef ABX_PRIM_TICKETS_H
#define ABX_PRIM_TICKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TICKET_BYTES = 33, /* 128 random bits as lower-case hex, and the NUL */
    TICKET_LIFE_MS = 30 * 1000,
    TICKETS_MAX = 4096, /* then the oldest gives way */
};

struct tickets;

struct tickets *tickets_new(void);          /* NULL: out of memory */
void tickets_free(struct tickets *tickets); /* NULL is allowed; wipes them */
/* One for what `subject` names (at most 15 bytes), good until TICKET_LIFE_MS after now_ms (any clock, always the same).
 */
void tickets_add(struct tickets *tickets, const char ticket[TICKET_BYTES], const char *subject, uint64_t now_ms);
/* Whether it is good for the subject now. The time it takes tells nothing of the tickets' contents. */
bool tickets_match(const struct tickets *tickets, const char *ticket, size_t len, const char *subject, uint64_t now_ms);
/* The same, and it is not good any more. */
bool tickets_take(struct tickets *tickets, const char *ticket, size_t len, const char *subject, uint64_t now_ms);

#endif
