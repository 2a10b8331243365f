/* The beginning and the end of a stream within a bound; used by prim/process for runs that ask for capture_bytes. */
#include "prim/capture.h"

#include <stdlib.h>
#include <string.h>

enum { CAPTURE_FIRST_BYTES = 4096 };

void capture_init(struct capture *capture, size_t limit_bytes)
{
    *capture = (struct capture){.head_max = limit_bytes / 2};
    ring_init(&capture->tail, limit_bytes - limit_bytes / 2);
}

void capture_deinit(struct capture *capture)
{
    free(capture->head);
    free(capture->flat);
    ring_deinit(&capture->tail);
    *capture = (struct capture){0};
}

/* Answers how many bytes the head took; out of memory closes the head, and the tail goes on. */
static size_t append_head(struct capture *capture, const char *bytes, size_t len)
{
    size_t room = capture->head_max - capture->head_len;
    if (len > room)
        len = room;
    if (len == 0)
        return 0;
    size_t cap = capture->head_cap != 0 ? capture->head_cap : CAPTURE_FIRST_BYTES;
    while (cap < capture->head_len + len)
        cap *= 2;
    if (cap > capture->head_max)
        cap = capture->head_max;
    if (cap > capture->head_cap) {
        char *head = realloc(capture->head, cap);
        if (head == NULL) {
            capture->head_max = capture->head_len;
            return 0;
        }
        capture->head = head;
        capture->head_cap = cap;
    }
    memcpy(capture->head + capture->head_len, bytes, len);
    capture->head_len += len;
    return len;
}

void capture_append(struct capture *capture, const char *bytes, size_t len)
{
    capture->total_bytes += len;
    size_t taken = append_head(capture, bytes, len);
    ring_append(&capture->tail, bytes + taken, len - taken);
}

void capture_view(struct capture *capture, struct capture_view *out)
{
    *out = (struct capture_view){
        .head = capture->head, .head_len = capture->head_len, .total_bytes = capture->total_bytes};
    const struct ring *tail = &capture->tail;
    size_t len = (size_t)(tail->end - tail->start);
    const char *first = NULL;
    size_t first_len = ring_peek(tail, tail->start, &first);
    if (first_len == len) {
        out->tail = first;
        out->tail_len = len;
        return;
    }
    const char *second = NULL;
    size_t second_len = ring_peek(tail, tail->start + first_len, &second);
    free(capture->flat);
    capture->flat = malloc(len);
    if (capture->flat == NULL) { /* the newest piece is better than none */
        out->tail = second;
        out->tail_len = second_len;
        return;
    }
    memcpy(capture->flat, first, first_len);
    memcpy(capture->flat + first_len, second, second_len);
    out->tail = capture->flat;
    out->tail_len = len;
}
