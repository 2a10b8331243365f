/* The languages that cells of code can be in, and the programs that run them. Called by bind_code. */
#include "bind/bind_code.h"
#include "bind/host.h"

#include <limits.h>
#include <stdio.h>

enum { GRACE_MS = 3000, FDS_MAX = 4096 };

#define MEMORY_MAX_BYTES ((size_t)4 << 30)

static struct worker_spec spec_of(const char *name, char *const *argv, const char *package)
{
    return (struct worker_spec){
        .name = name,
        .kind = PROCESS_CODE,
        .argv = argv,
        .package = package,
        .client_env = true,
        .calls_at_once = 1,
        .memory_max_bytes = MEMORY_MAX_BYTES,
        .fds_max = FDS_MAX,
        .grace_ms = GRACE_MS,
    };
}

struct contexts *bind_code_contexts(struct host *host)
{
    char python[PATH_MAX], javascript[PATH_MAX];
    char *const python_argv[] = {"python3", python, NULL}, *const javascript_argv[] = {"node", javascript, NULL},
                *const bash_argv[] = {(char *)host->helper_path, "shell", NULL};
    if (host->contexts != NULL)
        return host->contexts;
    snprintf(python, sizeof(python), "%s/interpreter.py", host->workers_dir);
    snprintf(javascript, sizeof(javascript), "%s/interpreter.mjs", host->workers_dir);
    const struct worker_spec languages[] = {
        spec_of("python", python_argv, "python3"), spec_of("javascript", javascript_argv, "nodejs"),
        spec_of("bash", bash_argv, NULL), /* the helper is ours, and tells where bash is missing */
    };
    host->contexts = contexts_new(host->loop, host->workers, host->processes, confine_base_dir(host->confine),
                                  languages, sizeof(languages) / sizeof(languages[0]));
    return host->contexts;
}
