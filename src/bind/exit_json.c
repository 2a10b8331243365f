/* The exit fields as JSON; called by bind_stream and bind_proc_output. */
#include "bind/exit_json.h"

#include "prim/signals.h"

#include <inttypes.h>
#include <stdio.h>

int exit_json_append(struct buf *out, const struct process *process)
{
    struct process_exit exit;
    char code[16] = "null", signal[SIGNALS_NAME_MAX + 2] = "null", name[SIGNALS_NAME_MAX], started_at[32];
    bool ended = process_exit(process, &exit) == 0;
    process_started_at(process, started_at);
    if (ended)
        snprintf(code, sizeof(code), "%d", exit.exit_code);
    if (ended && exit.signal != 0) {
        signals_name(exit.signal, name);
        snprintf(signal, sizeof(signal), "\"%s\"", name);
    }
    return buf_printf(out,
                      "\"exit_code\":%s,\"signal\":%s,\"timed_out\":%s,\"started_at\":\"%s\",\"duration_ms\":%" PRIu64,
                      code, signal, exit.timed_out ? "true" : "false", started_at, exit.duration_ms);
}
