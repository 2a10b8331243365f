/* The exit fields as JSON; called by process_info, bind_stream, bind_proc_output and ws_message. */
#include "prim/exit_json.h"

#include "prim/signals.h"

#include <inttypes.h>
#include <stdio.h>

int exit_json_write(struct buf *out, const struct process_exit *exit, bool known, uint64_t started_ms)
{
    char code[16] = "null", signal[SIGNALS_NAME_MAX + 2] = "null", name[SIGNALS_NAME_MAX], started_at[32];
    process_format_time(started_ms, started_at);
    if (known)
        snprintf(code, sizeof(code), "%d", exit->exit_code);
    if (known && exit->signal != 0) {
        signals_name(exit->signal, name);
        snprintf(signal, sizeof(signal), "\"%s\"", name);
    }
    return buf_printf(out,
                      "\"exit_code\":%s,\"signal\":%s,\"timed_out\":%s,\"started_at\":\"%s\",\"duration_ms\":%" PRIu64,
                      code, signal, exit->timed_out ? "true" : "false", started_at, exit->duration_ms);
}

int exit_json_append(struct buf *out, const struct process *process)
{
    struct process_exit exit;
    bool known = process_exit(process, &exit) == 0;
    return exit_json_write(out, &exit, known, process_started_ms(process));
}
