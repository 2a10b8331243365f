/* What answers tell of a process, of the table's or any other of the sandbox: plain data, and its JSON text. Made on
 * threads, so that a list of many costs the loop one copy. */
#ifndef ABX_PRIM_PROCESS_INFO_H
#define ABX_PRIM_PROCESS_INFO_H

#include "base/buf.h"
#include "prim/command_line.h"
#include "prim/entry.h"
#include "prim/process.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* All pointers are borrowed. */
struct process_info {
    const char *id;   /* NULL: its pid */
    const char *kind; /* NULL: not started here */
    const char *tag;  /* NULL: none */
    pid_t pid;
    struct command_line line;
    const char *cwd; /* NULL: not known */
    size_t cwd_len;
    uid_t uid;

    bool measured; /* the next three are known: it has not ended */
    pid_t parent;
    uint64_t cpu_tenths; /* of a percent of one processor, over its life */
    uint64_t rss_bytes;

    bool exited;
    bool exit_known; /* exit.exit_code and signal are of use */
    struct process_exit exit;
    uint64_t started_ms; /* since 1970 */
};

/* "shell", "process" …; NULL for PROCESS_HELPER, which clients do not see. */
const char *process_kind_name(enum process_kind kind);

/* Fills in what the table knows. On the loop's thread; the pointers are good while the process is referenced. */
void process_info_of(struct process_info *out, const struct process *process);

/* What one writes with: for one job. Zeroed to begin; process_writer_deinit afterwards. */
struct process_writer {
    struct buf scratch;
    struct entry_names names;
};
void process_writer_init(struct process_writer *writer);
void process_writer_deinit(struct process_writer *writer);
/* Appends the members without braces, so that more can follow. -1: out is full, or memory is out. */
int process_info_write(struct buf *out, struct process_writer *writer, const struct process_info *info) ABX_MUST_USE;

#endif
