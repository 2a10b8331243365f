/* The process that drives the browser, and whether it has what it needs; state of the server behind abx.browser. Main
 * thread only. */
#ifndef ABX_BIND_BROWSER_WORKER_H
#define ABX_BIND_BROWSER_WORKER_H

#include "bind/browser_pages.h"
#include "prim/browser_parts.h"
#include "prim/worker.h"

struct host;

struct browser {
    struct worker *worker; /* one of host->workers */
    struct browser_pages pages;
};

/* Where it is and with what; -1 with ERR_UNAVAILABLE: what is missing. A few calls of stat. */
int browser_worker_parts(const struct host *host, struct browser_parts *out_parts, struct err *err) ABX_MUST_USE;

/* Made with the first call, when the ports are known that the browser must not reach. The host keeps it; free() it
 * after workers_free. The process is not started before it is needed. NULL out of memory. */
struct browser *browser_worker_open(struct host *host);

#endif
