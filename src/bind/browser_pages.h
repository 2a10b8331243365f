/* Which pages lived in which process of the browser's worker, so that their loss with it is told once, and no call
 * finds a blank page in silence. Plain data. */
#ifndef ABX_BIND_BROWSER_PAGES_H
#define ABX_BIND_BROWSER_PAGES_H

#include <stdbool.h>
#include <stdint.h>

enum { BROWSER_PAGE_NAME_MAX = 64, BROWSER_PAGES_MAX = 64 };

/* Zeroed: none. Past the maximum the one that was seen longest ago is forgotten. */
struct browser_pages {
    uint64_t clock;
    struct browser_page {
        char name[BROWSER_PAGE_NAME_MAX + 1]; /* "": free */
        uint64_t process;                     /* process_started_ns */
        uint64_t seen_at;                     /* by the clock */
    } list[BROWSER_PAGES_MAX];
};

/* The process answered a call for that page. Names that are too long are not remembered. */
void browser_pages_see(struct browser_pages *pages, const char *name, uint64_t process);
void browser_pages_forget(struct browser_pages *pages, const char *name);
/* Whether the page was in another process than this one (0: none lives). */
bool browser_pages_lost(const struct browser_pages *pages, const char *name, uint64_t process);

#endif
