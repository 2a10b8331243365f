/* Making the browser's worker; see the header. Called by bind_browser. */
#include "bind/browser_worker.h"

#include "base/json.h"
#include "bind/host.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All calls are sent at once: pages do not wait for each other, and the worker orders those of one page. No bound of
 * memory, as Chromium reserves more of it than any machine has. */
enum { CALLS_AT_ONCE = 64, FDS_MAX = 4096, GRACE_MS = 1500, CONFIG_MAX_BYTES = 64 * 1024 };

int browser_worker_parts(const struct host *host, struct browser_parts *out_parts, struct err *err)
{
    const struct env_block *env = process_table_own_env(host->processes);
    struct browser_places places = {
        .root = "",
        .workers_dir = host->workers_dir,
        .path = env_block_get(env, "PATH"),
        .node_path = env_block_get(env, "NODE_PATH"),
    };
    return browser_parts_find(&places, out_parts, err);
}

/* {"ports":[the server's own],"allow_hosts":[…]} */
static int write_config(const struct host *host, struct buf *out)
{
    const char *before = "";
    if (buf_printf(out, "{\"ports\":[%u", host->port) != 0 ||
        (host->ws_port > 0 && buf_printf(out, ",%u", host->ws_port) != 0) ||
        buf_append_text(out, "],\"allow_hosts\":[") != 0)
        return -1;
    for (const char *const *name = host->browser_allow_hosts; name && *name; name++, before = ",")
        if (json_write_text(out, before, *name) != 0)
            return -1;
    return buf_append(out, "]}", 3); /* its NUL too: it is an argument */
}

static struct worker *make_worker(const struct host *host)
{
    struct buf config;
    char program[PATH_MAX];
    struct worker *worker = NULL;
    snprintf(program, sizeof(program), "%s/browser.mjs", host->workers_dir);
    buf_init(&config, CONFIG_MAX_BYTES);
    if (write_config(host, &config) == 0) {
        char *const argv[] = {"node", program, config.data, NULL};
        struct worker_spec spec = {
            .name = "browser",
            .kind = PROCESS_BROWSER,
            .argv = argv,
            .package = "nodejs",
            .calls_at_once = CALLS_AT_ONCE,
            .fds_max = FDS_MAX,
            .grace_ms = GRACE_MS,
        };
        worker = worker_new(host->workers, &spec);
    }
    buf_deinit(&config);
    return worker;
}

struct browser *browser_worker_open(struct host *host)
{
    if (!host->browser)
        host->browser = calloc(1, sizeof(*host->browser));
    if (host->browser && !host->browser->worker)
        host->browser->worker = make_worker(host);
    return host->browser && host->browser->worker ? host->browser : NULL;
}
