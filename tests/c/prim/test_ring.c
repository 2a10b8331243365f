/* prim/ring: offsets, growth, what is lost and what is kept. */
#include "prim/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Everything from offset on, joined. */
static size_t read_all(const struct ring *ring, uint64_t offset, char *out)
{
    size_t total = 0;
    const char *piece = NULL;
    offset = offset < ring->start ? ring->start : offset;
    for (size_t len = ring_peek(ring, offset, &piece); len > 0; len = ring_peek(ring, offset, &piece)) {
        memcpy(out + total, piece, len);
        total += len;
        offset += len;
    }
    return total;
}

static void starts_empty_and_without_memory(void **state)
{
    (void)state;
    struct ring ring;
    const char *piece = NULL;
    ring_init(&ring, 100);
    assert_int_equal(ring.cap, 0);
    assert_int_equal(ring_free_bytes(&ring), 100);
    assert_int_equal(ring_peek(&ring, 0, &piece), 0);
    assert_int_equal(ring_peek(&ring, 7, &piece), 0);
    ring_append(&ring, "", 0);
    assert_int_equal(ring.end, 0);
    ring_deinit(&ring);
}

static void keeps_the_newest_bytes(void **state)
{
    (void)state;
    struct ring ring;
    char out[16];
    ring_init(&ring, 10);
    ring_append(&ring, "abcdefgh", 8);
    assert_int_equal(ring_free_bytes(&ring), 2);
    ring_append(&ring, "ijkl", 4);
    assert_int_equal(ring.start, 2);
    assert_int_equal(ring.end, 12);
    assert_int_equal(ring_free_bytes(&ring), 0);
    assert_int_equal(read_all(&ring, 0, out), 10);
    assert_memory_equal(out, "cdefghijkl", 10);
    assert_int_equal(read_all(&ring, 9, out), 3);
    assert_memory_equal(out, "jkl", 3);
    ring_deinit(&ring);
}

static void copies_round_the_end_of_the_memory(void **state)
{
    (void)state;
    struct ring ring;
    char out[16];
    ring_init(&ring, 10);
    assert_int_equal(ring_copy(&ring, 0, out, 4), 0);
    ring_append(&ring, "abcdefgh", 8);
    ring_append(&ring, "ijkl", 4);
    assert_int_equal(ring_copy(&ring, 7, out, 4), 4); /* the memory ends after three of them */
    assert_memory_equal(out, "hijk", 4);
    assert_int_equal(ring_copy(&ring, 0, out, 3), 3); /* before the start: from there */
    assert_memory_equal(out, "cde", 3);
    assert_int_equal(ring_copy(&ring, 10, out, 16), 2);
    assert_memory_equal(out, "kl", 2);
    assert_int_equal(ring_copy(&ring, 12, out, 16), 0);
    assert_int_equal(ring_copy(&ring, 99, out, 16), 0);
    ring_deinit(&ring);
}

static void one_append_larger_than_the_ring(void **state)
{
    (void)state;
    struct ring ring;
    char out[16];
    ring_init(&ring, 4);
    ring_append(&ring, "xy", 2);
    ring_append(&ring, "0123456789", 10);
    assert_int_equal(ring.start, 8);
    assert_int_equal(ring.end, 12);
    assert_int_equal(read_all(&ring, 8, out), 4);
    assert_memory_equal(out, "6789", 4);
    ring_deinit(&ring);
}

static void deinit_keeps_offsets(void **state)
{
    (void)state;
    struct ring ring;
    char out[16];
    ring_init(&ring, 8);
    ring_append(&ring, "hello", 5);
    ring_deinit(&ring);
    assert_int_equal(ring.start, 5);
    assert_int_equal(ring.end, 5);
    assert_int_equal(read_all(&ring, 0, out), 0);
    ring_append(&ring, "again", 5);
    assert_int_equal(read_all(&ring, 0, out), 5);
    assert_memory_equal(out, "again", 5);
    ring_deinit(&ring);
}

/* Growth moves bytes to other places: every byte must still be found by its offset. */
static void every_byte_by_its_offset(void **state)
{
    (void)state;
    enum { MAX = 20000 };
    struct ring ring;
    static char piece[7001], out[MAX];
    uint64_t written = 0;
    ring_init(&ring, MAX);
    srand(7);
    for (int round = 0; round < 400; round++) {
        size_t len = (size_t)rand() % (sizeof(piece) - 1);
        for (size_t i = 0; i < len; i++)
            piece[i] = (char)((written + i) % 251);
        ring_append(&ring, piece, len);
        written += len;
        assert_int_equal(ring.end, written);
        assert_int_equal(ring.start, written > MAX ? written - MAX : 0);
        size_t kept = read_all(&ring, 0, out);
        assert_int_equal(kept, ring.end - ring.start);
        for (size_t i = 0; i < kept; i++)
            assert_int_equal((unsigned char)out[i], (ring.start + i) % 251);
    }
    ring_deinit(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_empty_and_without_memory),
        cmocka_unit_test(keeps_the_newest_bytes),
        cmocka_unit_test(copies_round_the_end_of_the_memory),
        cmocka_unit_test(one_append_larger_than_the_ring),
        cmocka_unit_test(deinit_keeps_offsets),
        cmocka_unit_test(every_byte_by_its_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
