/* ABX_PROCESS_ID out of /proc/PID/environ; called by process_tree, process_list and ports. */
#include "prim/process_marker.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 16384 };

static const char marker[] = PROCESS_MARKER "=";

enum { MARKER_LEN = sizeof(marker) - 1, KEPT_MAX = MARKER_LEN + PROCESS_MARKER_MAX + 1 };

/* Finds the variable in a text that begins with the NUL before some variable. */
static bool find(const char *text, size_t len, char out[PROCESS_MARKER_MAX])
{
    for (const char *at = text; (at = memmem(at, len - (size_t)(at - text), marker, MARKER_LEN)) != NULL; at++) {
        const char *value = at + MARKER_LEN;
        size_t value_len = strnlen(value, len - (size_t)(value - text));
        if (at > text && at[-1] == '\0' && value + value_len < text + len && value_len < PROCESS_MARKER_MAX) {
            memcpy(out, value, value_len + 1);
            return true;
        }
    }
    return false;
}

bool process_marker_read(int proc_fd, pid_t pid, char out[PROCESS_MARKER_MAX])
{
    char path[64], text[PIECE_BYTES + KEPT_MAX];
    snprintf(path, sizeof(path), "%d/environ", (int)pid);
    int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool found = false;
    size_t have = 1;
    text[0] = '\0'; /* so that the first variable begins after a NUL like all others */
    for (ssize_t len; !found && (len = read(fd, text + have, PIECE_BYTES)) > 0;) {
        have += (size_t)len;
        found = find(text, have, out);
        /* The end of a piece is kept: the variable may begin in it. */
        size_t kept = have < KEPT_MAX ? have : KEPT_MAX;
        memmove(text, text + have - kept, kept);
        have = kept;
    }
    close(fd);
    return found;
}
