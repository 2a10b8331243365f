/* What is known of a terminal without asking its thread; written by prim/terminal, read by GET /pty. */
#include "prim/terminal_view.h"

#include <stdlib.h>
#include <time.h>

struct terminal_view *terminal_view_new(struct terminal_size size)
{
    struct terminal_view *view = calloc(1, sizeof(*view));
    if (view == NULL)
        return NULL;
    atomic_init(&view->references, 1);
    terminal_view_set_size(view, size);
    terminal_view_touch(view);
    return view;
}

struct terminal_view *terminal_view_ref(struct terminal_view *view)
{
    atomic_fetch_add_explicit(&view->references, 1, memory_order_relaxed);
    return view;
}

void terminal_view_unref(struct terminal_view *view)
{
    if (view != NULL && atomic_fetch_sub_explicit(&view->references, 1, memory_order_acq_rel) == 1)
        free(view);
}

void terminal_view_set_size(struct terminal_view *view, struct terminal_size size)
{
    atomic_store_explicit(&view->size, (uint32_t)(size.cols << 16 | size.rows), memory_order_relaxed);
}

struct terminal_size terminal_view_size(const struct terminal_view *view)
{
    uint32_t size = atomic_load_explicit(&view->size, memory_order_relaxed);
    return (struct terminal_size){.cols = size >> 16, .rows = size & 0xffff};
}

void terminal_view_touch(struct terminal_view *view)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    atomic_store_explicit(&view->last_activity_ms, now_ms, memory_order_relaxed);
}
