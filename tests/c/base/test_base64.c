/* Base64: the vectors of RFC 4648, every byte, and what strict decoding refuses. */
#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_vectors(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct buf out;
        buf_init(&out, 100);
        assert_int_equal(base64_encode(&out, pairs[i][0], strlen(pairs[i][0])), 0);
        assert_int_equal(out.len, strlen(pairs[i][1]));
        assert_int_equal(out.len, base64_encoded_len(strlen(pairs[i][0])));
        if (out.len > 0)
            assert_memory_equal(out.data, pairs[i][1], out.len);
        buf_reset(&out);
        assert_int_equal(base64_decode(&out, pairs[i][1], strlen(pairs[i][1])), 0);
        assert_int_equal(out.len, strlen(pairs[i][0]));
        if (out.len > 0)
            assert_memory_equal(out.data, pairs[i][0], out.len);
        buf_deinit(&out);
    }
}

static void test_every_byte_comes_back(void **state)
{
    (void)state;
    unsigned char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    for (size_t len = 0; len <= 256; len++) {
        struct buf text, back;
        buf_init(&text, base64_encoded_len(len));
        buf_init(&back, len);
        assert_int_equal(base64_encode(&text, bytes, len), 0);
        assert_int_equal(base64_decode(&back, text.data, text.len), 0);
        assert_int_equal(back.len, len);
        if (len > 0)
            assert_memory_equal(back.data, bytes, len);
        buf_deinit(&text);
        buf_deinit(&back);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "Z",        "Zg",     "Zg=",  "Zg===", "====", "=",    "Zh==", "Zm9=",
        "Zg==Zg==", "Zm9v\n", "Zm 9", "Zm9-",  "Zm9_", "Z===", "=m9v", "Zm=v",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct buf out;
        buf_init(&out, 100);
        assert_int_equal(buf_append_text(&out, "kept"), 0);
        assert_int_equal(base64_decode(&out, bad[i], strlen(bad[i])), -1);
        assert_int_equal(out.len, 4);
        buf_deinit(&out);
    }
}

static void test_full_buffer(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 3);
    assert_int_equal(base64_encode(&out, "a", 1), -1);
    assert_int_equal(base64_decode(&out, "Zm9vYg==", 8), -1);
    assert_int_equal(base64_decode(&out, "Zm9v", 4), 0);
    assert_int_equal(base64_decode(&out, "", 0), 0);
    assert_int_equal(out.len, 3);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_every_byte_comes_back),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_full_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
