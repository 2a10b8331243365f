/* What any thread may look at of a terminal, at any time: the terminal thread writes, the main thread reads. */
#ifndef ABX_PRIM_TERMINAL_VIEW_H
#define ABX_PRIM_TERMINAL_VIEW_H

#include "prim/terminal_size.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Every member is by itself: none is ordered with another. */
struct terminal_view {
    atomic_int references;
    _Atomic uint64_t offset;           /* bytes that the program has printed so far */
    _Atomic uint64_t last_activity_ms; /* since 1970: output, input, a new size, a client that came or went */
    _Atomic uint32_t size;             /* cols << 16 | rows */
    _Atomic uint32_t clients;          /* attached now */
    _Atomic size_t kept_bytes;         /* memory of the output kept */
};

/* With one reference. NULL: out of memory. From any thread, as those below. */
struct terminal_view *terminal_view_new(struct terminal_size size);
struct terminal_view *terminal_view_ref(struct terminal_view *view);
void terminal_view_unref(struct terminal_view *view);
void terminal_view_set_size(struct terminal_view *view, struct terminal_size size);
struct terminal_size terminal_view_size(const struct terminal_view *view);
/* last_activity_ms is now. */
void terminal_view_touch(struct terminal_view *view);

#endif
