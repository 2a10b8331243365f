/* One living bash that runs cells one after another and keeps its state between them. For `abxd-helper shell`.
 *
 * Bash reads its script from a pipe, a line for each cell, which names a file in memory with the cell's text: `.` reads
 * it whole before it runs it, so an open quote cannot eat the next cell. It finds pipe and file as /proc/PID/fd/N of
 * this process. Thus it has no descriptor but 0 to 2 that programs could inherit: the one of its script is
 * close-on-exec. */
#ifndef ABX_HELPER_SHELL_SESSION_H
#define ABX_HELPER_SHELL_SESSION_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct shell_session {
    pid_t pid;                 /* of bash; 0: none was started */
    int command_fd, script_fd; /* the pipe that bash reads: our end, and the one that it opens */
    int status_fd, report_fd;  /* the pipe for exit statuses: the end that we read, and the one that bash opens */
    int cell_fd, setting_fd;   /* files in memory: a cell, and the variables and directory that are set before it */
    bool interrupted;          /* the trap that leaves a cell is in force, and is to be taken back */
    uint64_t cell_began_ticks;
    char status[64]; /* what bash has reported of a line so far */
    size_t status_len;
};

/* A variable for a cell; value NULL removes it. */
struct shell_variable {
    const char *name, *value;
};

/* Opens what it needs; no bash yet. */
int shell_session_init(struct shell_session *session, struct err *err) ABX_MUST_USE;
/* Starts bash, after killing one that lives, with exactly these variables and in that directory (NULL: ours). The
 * first report is its version. */
int shell_session_start(struct shell_session *session, char *const *environment, const char *cwd,
                        struct err *err) ABX_MUST_USE;
/* Begins a cell. Borrows all for the call only. 0: the next report is its exit status. 1: it is not to be run, its
 * syntax is wrong, and standard error tells so. -1 with *err. Blocks for the look at a cell with substitutions. */
int shell_session_run(struct shell_session *session, const char *code, const struct shell_variable *variables,
                      size_t variable_count, const char *cwd, struct err *err) ABX_MUST_USE;
/* Call when status_fd is readable: true with the text of a report, without the line's end, in session->status. */
bool shell_session_report(struct shell_session *session);
/* Makes bash leave the cell it runs, step by step: call it again every 100 ms with the time since the first. Bash goes
 * on with its state; what the cell waits for is interrupted, then terminated, then killed. */
void shell_session_interrupt(struct shell_session *session, uint64_t since_ms);

#endif
