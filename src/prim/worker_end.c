/* How a worker's process ended, in one sentence; see the header. Called by prim/worker. */
#include "prim/worker_end.h"

#include <stdio.h>
#include <string.h>

enum { STDERR_MAX_BYTES = 4096, STDERR_TOLD_BYTES = 150 };

struct line {
    size_t start, end;
};

/* The last line before `end`, without blanks behind it; empty where there is none. */
static struct line last_line(const char *text, size_t end)
{
    while (end > 0 && (unsigned char)text[end - 1] <= ' ')
        end--;
    struct line line = {end, end};
    while (line.start > 0 && text[line.start - 1] != '\n')
        line.start--;
    return line;
}

/* What follows the line that says it: where it was, what more belongs to it (indented, up to a brace), and by what
 * Node ends all of that. */
static bool is_detail(const char *text, struct line line)
{
    static const char node[] = "Node.js v";
    size_t len = line.end - line.start, node_len = sizeof(node) - 1;
    char first = text[line.start];
    return first == ' ' || first == '\t' || first == '}' ||
           (len > node_len && memcmp(text + line.start, node, node_len) == 0);
}

/* The last thing that it said on standard error, as far as it is of use to somebody who reads it. */
static size_t last_words(const struct process *process, char out[STDERR_MAX_BYTES])
{
    const struct ring *ring = process_ring(process, PROCESS_STDERR);
    uint64_t from = ring->end > STDERR_MAX_BYTES ? ring->end - STDERR_MAX_BYTES : 0;
    struct line last = last_line(out, ring_copy(ring, from, out, STDERR_MAX_BYTES)), line = last;
    while (line.end > 0 && is_detail(out, line))
        line = last_line(out, line.start);
    if (line.end == 0)
        line = last;
    size_t start = line.start, len = line.end;
    if (len - start > STDERR_TOLD_BYTES)
        start = len - STDERR_TOLD_BYTES;
    memmove(out, out + start, len - start);
    return len - start;
}

void worker_end_tell(const struct worker_run *run, const char *name, struct process_exit *out_exit, struct err *out_err)
{
    char how[64], words[STDERR_MAX_BYTES];
    size_t len = last_words(run->process, words);
    if (!run->ended || process_exit(run->process, out_exit) != 0)
        *out_exit = (struct process_exit){0};
    if (!run->ended)
        snprintf(how, sizeof(how), "does not end");
    else if (out_exit->signal != 0)
        snprintf(how, sizeof(how), "was ended by signal %d", out_exit->signal);
    else
        snprintf(how, sizeof(how), "ended with exit code %d", out_exit->exit_code);
    err_set(out_err, ERR_INTERNAL, "%.40s %s%s%s%s%.*s", name, how, run->why != NULL ? " as " : "",
            run->why != NULL ? run->why : "", len > 0 ? ": " : "", (int)len, words);
}
