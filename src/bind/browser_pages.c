/* Pages by name and process; see the header. Called by bind_browser. */
#include "bind/browser_pages.h"

#include <string.h>

static struct browser_page *find(struct browser_pages *pages, const char *name)
{
    for (size_t i = 0; i < BROWSER_PAGES_MAX && name[0]; i++)
        if (strcmp(pages->list[i].name, name) == 0)
            return &pages->list[i];
    return NULL;
}

/* A free one is older than all others. */
static struct browser_page *oldest(struct browser_pages *pages)
{
    struct browser_page *found = pages->list;
    for (size_t i = 1; i < BROWSER_PAGES_MAX; i++)
        if (pages->list[i].seen_at < found->seen_at)
            found = &pages->list[i];
    return found;
}

void browser_pages_see(struct browser_pages *pages, const char *name, uint64_t process)
{
    size_t len = strlen(name);
    if (len == 0 || len > BROWSER_PAGE_NAME_MAX)
        return;
    struct browser_page *page = find(pages, name);
    if (!page)
        page = oldest(pages);
    memcpy(page->name, name, len + 1);
    page->process = process;
    page->seen_at = ++pages->clock;
}

void browser_pages_forget(struct browser_pages *pages, const char *name)
{
    struct browser_page *page = find(pages, name);
    if (page)
        *page = (struct browser_page){0};
}

bool browser_pages_lost(const struct browser_pages *pages, const char *name, uint64_t process)
{
    const struct browser_page *page = find((struct browser_pages *)pages, name);
    return page && page->process != process;
}
