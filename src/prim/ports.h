/* Where programs listen, and which: the answer of GET /system/ports as JSON text. Reads procfs: some milliseconds where
 * there are many processes. */
#ifndef ABX_PRIM_PORTS_H
#define ABX_PRIM_PORTS_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

/* An entry of the process table, copied for another thread. */
struct ports_entry {
    pid_t pid; /* 0: it has ended */
    char id[16];
};

/* Appends {"ports":[{"port":…,"address":…,"family":…,"pid":…,"process":…,"managed_id":…,"self":…}]}, by port, address
 * and pid: every TCP socket of this network namespace that listens. A v4-mapped IPv6 address is told as the IPv4 one
 * that leads there. Of several processes that share a socket it names this one, else an entry of the table, else that
 * with the lowest pid. A process belongs to an entry by its pid, by the ABX_PROCESS_ID it was started with, or by its
 * parents, session or group. -1 with err. */
int ports_write(struct buf *out, const struct ports_entry *entries, size_t count, struct err *err) ABX_MUST_USE;

/* The same for tables at other paths than /proc/net/tcp and tcp6. One that is not there is empty. */
int ports_write_of(struct buf *out, const char *tcp, const char *tcp6, const struct ports_entry *entries, size_t count,
                   struct err *err) ABX_MUST_USE;

#endif
