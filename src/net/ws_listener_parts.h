/* The insides of the terminals' port, shared by the files of net/ws_* only. All of it belongs to the terminal thread
 * while that runs, but for the atomics. */
#ifndef ABX_NET_WS_LISTENER_PARTS_H
#define ABX_NET_WS_LISTENER_PARTS_H

#include "base/arena.h"
#include "net/ws_handshake.h"
#include "net/ws_listener.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    WS_FRAME_MAX_BYTES = 64 * 1024 - 16, /* of output, in one frame; with its header 64 KiB are enough to keep it */
    WS_TEXT_MAX_BYTES = 4 * 1024,        /* of one of our messages */
    WS_MESSAGE_MAX_BYTES = 1024 * 1024,  /* of a client, in all frames of one message */
    WS_MESSAGE_ARENA_BYTES = 16 * 1024 * 1024, /* to take one apart */
    WS_OUT_MAX_BYTES = 512 * 1024,
};

struct ws_listener {
    struct loop *own;
    struct terminals *terminals;
    const struct auth_policy *policy;

    int socket; /* -1 once closed */
    unsigned port;
    size_t connections, connections_max; /* openings and sessions */
    struct loop_fd *accepting;
    bool full, pausing; /* why it accepts nothing */
    struct loop_timer accept_pause;

    struct list openings, sessions;
    struct loop_timer pings;
    struct arena arena; /* of the message that is being handled */
    char *frame;        /* WS_FRAME_MAX_BYTES: output before it has a header, and what is thrown away */
    struct buf out;     /* what one session is about to send; empty between the calls */

    pthread_t thread;
    bool started;
    atomic_bool draining, stopping;
    int wake; /* an eventfd: look at stopping */
    struct loop_fd *wake_watch;
    struct loop_timer give_up;
    bool closing;
};

/* --- ws_listener.c */

/* A connection has ended: there is room for another one. */
void ws_listener_one_less(struct ws_listener *listener);

/* --- ws_opening.c: connections until their handshake is decided */

/* Takes the descriptor, closes it where memory is out. */
void ws_opening_new(struct ws_listener *listener, int fd);
/* Ends them all. */
void ws_openings_drop(struct ws_listener *listener);

#endif
