/* One process as JSON text; called by process_list. */
#include "prim/process_info.h"

#include "base/json.h"
#include "prim/exit_json.h"

#include <string.h>

/* Masked words may be longer than what they were: "a=b" becomes "a=***". */
enum { SCRATCH_MAX_BYTES = 8 * COMMAND_LINE_MAX_BYTES };

const char *process_kind_name(enum process_kind kind)
{
    switch (kind) {
    case PROCESS_SHELL:
        return "shell";
    case PROCESS_PROCESS:
        return "process";
    case PROCESS_TERMINAL:
        return "terminal";
    case PROCESS_CODE:
        return "code";
    case PROCESS_GIT:
        return "git";
    case PROCESS_BROWSER:
        return "browser";
    default:
        return NULL;
    }
}

void process_info_of(struct process_info *out, const struct process *process)
{
    *out = (struct process_info){
        .id = process_id(process),
        .kind = process_kind_name(process_kind(process)),
        .tag = process_tag(process),
        .pid = process_pid(process),
        .line = *process_command_line(process),
        .cwd = process_cwd(process),
        .cwd_len = strlen(process_cwd(process)),
        .uid = process_uid(process),
        .started_ms = process_started_ms(process),
    };
    out->exited = out->exit_known = process_exit(process, &out->exit) == 0;
}

void process_writer_init(struct process_writer *writer)
{
    *writer = (struct process_writer){0};
    buf_init(&writer->scratch, SCRATCH_MAX_BYTES);
}

void process_writer_deinit(struct process_writer *writer)
{
    buf_deinit(&writer->scratch);
    entry_names_free(&writer->names);
}

static int put(struct buf *out, const char *text)
{
    return buf_append_few(out, text, strlen(text));
}

static int put_number(struct buf *out, const char *member, uint64_t number)
{
    return put(out, member) != 0 ? -1 : json_write_int(out, (int64_t)number);
}

static int write_identity(struct buf *out, const struct process_info *info)
{
    if (info->id != NULL) {
        if (json_write_text(out, "\"id\":", info->id) != 0)
            return -1;
    } else if (put_number(out, "\"id\":\"", (uint64_t)info->pid) != 0 || put(out, "\"") != 0) {
        return -1;
    }
    return put_number(out, ",\"pid\":", (uint64_t)info->pid) != 0 ||
                   json_write_text(out, ",\"kind\":", info->kind) != 0 ||
                   json_write_text(out, ",\"tag\":", info->tag) != 0
               ? -1
               : put(out, ",");
}

static int write_measures(struct buf *out, const struct process_info *info)
{
    if (!info->measured)
        return put(out, ",\"ppid\":null,\"cpu_percent\":null,\"rss_bytes\":null");
    const char tenth[] = {'.', (char)('0' + info->cpu_tenths % 10), '\0'};
    return put_number(out, ",\"ppid\":", (uint64_t)info->parent) != 0 ||
                   put_number(out, ",\"cpu_percent\":", info->cpu_tenths / 10) != 0 || put(out, tenth) != 0
               ? -1
               : put_number(out, ",\"rss_bytes\":", info->rss_bytes);
}

int process_info_write(struct buf *out, struct process_writer *writer, const struct process_info *info)
{
    const char *user = entry_user_name(&writer->names, info->uid);
    if (user == NULL || write_identity(out, info) != 0 || command_line_write(out, &writer->scratch, &info->line) != 0)
        return -1;
    if (info->cwd != NULL && (put(out, ",") != 0 || entry_write_path(out, "cwd", info->cwd, info->cwd_len) != 0))
        return -1;
    if (json_write_text(out, ",\"user\":", user) != 0 ||
        json_write_text(out, ",\"state\":", info->exited ? "exited" : "running") != 0)
        return -1;
    return write_measures(out, info) != 0 || put(out, ",") != 0
               ? -1
               : exit_json_write(out, &info->exit, info->exit_known, info->started_ms);
}
