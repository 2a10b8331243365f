/* A listening TCP socket; the REST port and the terminals' port open theirs with it. */
#ifndef ABX_NET_LISTEN_SOCKET_H
#define ABX_NET_LISTEN_SOCKET_H

#include "base/err.h"

/* Binds and listens, close-on-exec and non-blocking; what it accepts has SO_KEEPALIVE. host: a numeric address or a
 * name (looking that up blocks); port 0: the kernel chooses. The descriptor, or -1 with *err (saved_errno EADDRINUSE
 * where the port is taken). */
int listen_socket_open(const char *host, unsigned port, struct err *err) ABX_MUST_USE;
/* The port it has; 0 where the kernel does not tell. */
unsigned listen_socket_port(int fd);

#endif
