/* Tickets that open a terminal once; kept by prim/terminals, used up by a WebSocket handshake. */
#include "prim/tickets.h"

#include "prim/secret.h"

#include <stdlib.h>
#include <string.h>

enum { SUBJECT_BYTES = 16, FIRST_CAP = 16 };

struct ticket {
    char text[TICKET_BYTES];
    char subject[SUBJECT_BYTES];
    uint64_t until_ms;
};

/* In the order in which they were added, which is also that in which they expire. */
struct tickets {
    struct ticket *items;
    size_t len, cap;
};

struct tickets *tickets_new(void)
{
    return calloc(1, sizeof(struct tickets));
}

void tickets_free(struct tickets *tickets)
{
    if (tickets == NULL)
        return;
    if (tickets->items != NULL)
        secret_wipe(tickets->items, tickets->cap * sizeof(*tickets->items));
    free(tickets->items);
    free(tickets);
}

/* Those from `at` on; what they leave free is wiped. */
static void drop(struct tickets *tickets, size_t at, size_t count)
{
    if (count == 0)
        return;
    struct ticket *items = tickets->items;
    memmove(items + at, items + at + count, (tickets->len - at - count) * sizeof(*items));
    tickets->len -= count;
    secret_wipe(items + tickets->len, count * sizeof(*items));
}

static void drop_expired(struct tickets *tickets, uint64_t now_ms)
{
    size_t expired = 0;
    while (expired < tickets->len && tickets->items[expired].until_ms <= now_ms)
        expired++;
    drop(tickets, 0, expired);
}

/* Room for one more; where memory is out the oldest gives way. False: there is none at all. */
static bool make_room(struct tickets *tickets)
{
    if (tickets->len < tickets->cap)
        return true;
    size_t cap = tickets->cap == 0 ? FIRST_CAP : tickets->cap * 2;
    /* Not realloc: what it leaves behind could not be wiped. */
    struct ticket *items = cap <= TICKETS_MAX ? malloc(cap * sizeof(*items)) : NULL;
    if (items == NULL) {
        drop(tickets, 0, tickets->len > 0);
        return tickets->len < tickets->cap;
    }
    if (tickets->len > 0) {
        memcpy(items, tickets->items, tickets->len * sizeof(*items));
        secret_wipe(tickets->items, tickets->len * sizeof(*items));
    }
    free(tickets->items);
    tickets->items = items;
    tickets->cap = cap;
    return true;
}

void tickets_add(struct tickets *tickets, const char ticket[TICKET_BYTES], const char *subject, uint64_t now_ms)
{
    drop_expired(tickets, now_ms);
    if (!make_room(tickets))
        return;
    struct ticket *item = &tickets->items[tickets->len++];
    memset(item, 0, sizeof(*item));
    memcpy(item->text, ticket, TICKET_BYTES - 1);
    memcpy(item->subject, subject, strnlen(subject, SUBJECT_BYTES - 1));
    item->until_ms = now_ms + TICKET_LIFE_MS;
}

/* Its index, or len where there is none. Each one is compared, whatever was found before. */
static size_t find(const struct tickets *tickets, const char *ticket, size_t len, const char *subject, uint64_t now_ms)
{
    size_t found = tickets->len;
    for (size_t i = 0; i < tickets->len; i++) {
        const struct ticket *item = &tickets->items[i];
        bool equal = secret_equal(ticket, len, item->text, TICKET_BYTES - 1);
        if (equal && item->until_ms > now_ms && strcmp(item->subject, subject) == 0)
            found = i;
    }
    return found;
}

bool tickets_match(const struct tickets *tickets, const char *ticket, size_t len, const char *subject, uint64_t now_ms)
{
    return find(tickets, ticket, len, subject, now_ms) < tickets->len;
}

bool tickets_take(struct tickets *tickets, const char *ticket, size_t len, const char *subject, uint64_t now_ms)
{
    size_t at = find(tickets, ticket, len, subject, now_ms);
    if (at == tickets->len)
        return false;
    drop(tickets, at, 1);
    return true;
}
