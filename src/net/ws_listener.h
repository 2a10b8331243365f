/* The terminals' port: WebSockets on a thread of their own. Made, started and ended by server, on the main thread. */
#ifndef ABX_NET_WS_LISTENER_H
#define ABX_NET_WS_LISTENER_H

#include "base/err.h"
#include "base/loop.h"
#include "prim/terminals.h"
#include "request/auth.h"

#include <stddef.h>

struct ws_listener;

struct ws_options {
    const char *host;
    unsigned port;                    /* 0: the kernel chooses */
    size_t connections_max;           /* at once; past it new ones wait in the backlog */
    const struct auth_policy *policy; /* borrowed, and not changed any more */
};

/* Binds the port. own: the terminal thread's loop, which nobody runs yet; it and terminals are borrowed. NULL with
 * *err. */
struct ws_listener *ws_listener_new(struct loop *own, struct terminals *terminals, const struct ws_options *options,
                                    struct err *err);
unsigned ws_listener_port(const struct ws_listener *listener);
/* Starts the thread, with all signals blocked. */
int ws_listener_start(struct ws_listener *listener, struct err *err) ABX_MUST_USE;
/* From now on handshakes are refused with 503, and who is told an exit is closed with 1001. */
void ws_listener_drain(struct ws_listener *listener);
/* Closes what is open with 1001 (waits for that 500 ms at most), ends the thread and waits for it. NULL is allowed. */
void ws_listener_free(struct ws_listener *listener);

#endif
