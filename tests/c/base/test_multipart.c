/* The multipart parser: the same parts whatever the pieces, the leniency of RFC 7578, and what is refused. */
#include "base/buf.h"
#include "base/multipart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Parts become "<name|filename|type>data</>". */
static struct buf seen;
static const char *fail_at;

static int on_part(void *ctx, const struct multipart_part *part, struct err *err)
{
    (void)ctx;
    if (fail_at && strcmp(part->name, fail_at) == 0)
        return err_set(err, ERR_NO_SPACE, "no room");
    return buf_printf(&seen, "<%s|%s|%s>", part->name, part->filename ? part->filename : "-",
                      part->content_type ? part->content_type : "-");
}

static int on_data(void *ctx, const char *bytes, size_t len, struct err *err)
{
    (void)ctx, (void)err;
    assert_true(len > 0);
    return buf_append(&seen, bytes, len);
}

static int on_part_end(void *ctx, struct err *err)
{
    (void)ctx, (void)err;
    return buf_append_text(&seen, "</>");
}

static const struct multipart_events events = {on_part, on_data, on_part_end};

/* Feeds in pieces of `step` bytes, each in memory of exactly its size. */
static const char *parse_by(const char *body, size_t len, size_t step)
{
    static char result[20000];
    struct err err = {0};
    struct multipart *parser = multipart_new("multipart/form-data; boundary=B-1", &events, NULL, &err);
    assert_non_null(parser);
    buf_init(&seen, sizeof result - 200);
    int rc = 0;
    for (size_t at = 0; at < len && rc == 0; at += step) {
        size_t piece_len = len - at < step ? len - at : step;
        char *piece = malloc(piece_len);
        memcpy(piece, body + at, piece_len);
        rc = multipart_feed(parser, piece, piece_len, &err);
        free(piece);
    }
    if (rc == 0)
        rc = multipart_finish(parser, &err);
    if (rc < 0) {
        struct err again = {0};
        assert_int_equal(multipart_feed(parser, "x", 1, &again), -1);
        assert_string_equal(again.text, err.text);
    }
    snprintf(result, sizeof result, "%.*s%s%s", (int)seen.len, seen.data ? seen.data : "", rc < 0 ? "!" : "",
             rc < 0 ? err.text : "");
    buf_deinit(&seen);
    multipart_free(parser);
    return result;
}

static void expect(const char *body, size_t len, const char *expected)
{
    for (size_t step = 1; step <= len + 1; step = step < 12 ? step + 1 : step * 2)
        assert_string_equal(parse_by(body, len, step), expected);
}

#define EXPECT(body, expected) expect(body, sizeof(body) - 1, expected)
#define PART(headers, data) "--B-1\r\n" headers "\r\n\r\n" data "\r\n"
#define NAMED "Content-Disposition: form-data; name=\"n\""
#define BAD(what) "!malformed multipart body: " what

static void test_fields_and_files(void **state)
{
    (void)state;
    EXPECT(PART("Content-Disposition: form-data; name=\"path\"", "a/b") PART(
               "content-disposition:form-data ; filename=\"x y.txt\"; name=f\r\nContent-Type: text/plain; charset=x",
               "data\r\nmore") "--B-1--\r\n",
           "<path|-|->a/b</><f|x y.txt|text/plain; charset=x>data\r\nmore</>");
    EXPECT("--B-1--", "");
    EXPECT("--B-1--\r\n", "");
}

static void test_data_that_looks_like_a_boundary(void **state)
{
    (void)state;
    EXPECT(PART(NAMED, "\r\n--B-\r\n-B-1\r--B-1\n--B-1 \r\r\n--B\r\n\r\n--") "--B-1--",
           "<n|-|->\r\n--B-\r\n-B-1\r--B-1\n--B-1 \r\r\n--B\r\n\r\n--</>");
    EXPECT(PART(NAMED, "--B-") "--B-1--", "<n|-|->--B-</>");
    EXPECT(PART(NAMED, "\r") "--B-1--", "<n|-|->\r</>");
    EXPECT(PART(NAMED, "\r\n") "--B-1--", "<n|-|->\r\n</>");
    EXPECT(PART(NAMED, "\r\n\r\n\r\n") "--B-1--", "<n|-|->\r\n\r\n\r\n</>");
}

static void test_empty_parts(void **state)
{
    (void)state;
    EXPECT(PART(NAMED, "") PART(NAMED "; filename=\"\"", "") "--B-1--", "<n|-|-></><n||-></>");
    /* No body at all: the empty line is the delimiter's. */
    EXPECT("--B-1\r\n" NAMED "\r\n\r\n--B-1--", "<n|-|-></>");
}

static void test_leniency(void **state)
{
    (void)state;
    EXPECT("preamble --B-1\r\nno\r\n--B-\r\n" PART(NAMED, "x") "--B-1 \t \r\n" NAMED
                                                               "\r\n\r\ny\r\n--B-1--epilogue\r\n--B-1\r\nrubbish",
           "<n|-|->x</><n|-|->y</>");
    EXPECT(PART("X-Other: 1\r\n" NAMED ";\r\n filename=\"folded\"", "x") "--B-1--", "<n|folded|->x</>");
}

static void test_names(void **state)
{
    (void)state;
    EXPECT(PART(NAMED "; filename=\"a\\\"b\\\\c\"", "") "--B-1--", "<n|a\"b\\c|-></>");
    EXPECT(PART(NAMED "; filename=\"C:\\dir\\x.txt\"", "") "--B-1--", "<n|C:\\dir\\x.txt|-></>");
    EXPECT(PART(NAMED "; filename=\"%41;=.txt\"", "") "--B-1--", "<n|%41;=.txt|-></>");
    EXPECT(PART(NAMED "; filename=\"b\xA4\"", "") "--B-1--", "<n|b\xA4|-></>");
    EXPECT(PART(NAMED "; filename=\"old\"; filename*=UTF-8''%e2%82%AC%20x.txt", "") "--B-1--",
           "<n|\xE2\x82\xAC x.txt|-></>");
    EXPECT(PART(NAMED "; filename*=utf-8'en'new; filename=old; other=1", "") "--B-1--", "<n|new|-></>");
    EXPECT(PART(NAMED "; FILENAME=plain", "") "--B-1--", "<n|plain|-></>");
}

static void test_refused_names(void **state)
{
    (void)state;
    EXPECT(PART(NAMED "; filename=\"a%00b\"", "") "--B-1--", BAD("NUL in a name"));
    EXPECT(PART("Content-Disposition: form-data; name=\"%00\"", "") "--B-1--", BAD("NUL in a name"));
    EXPECT(PART(NAMED "; filename=\"a\0b\"", "") "--B-1--", BAD("NUL in a header"));
    EXPECT(PART(NAMED "; filename*=UTF-8''a%0", "") "--B-1--", BAD("bad filename*"));
    EXPECT(PART(NAMED "; filename*=UTF-8''%FF", "") "--B-1--", BAD("bad filename*"));
    EXPECT(PART(NAMED "; filename*=latin-1''x", "") "--B-1--", BAD("bad filename*"));
    EXPECT(PART(NAMED "; name=\"m\"", "") "--B-1--", BAD("a part names itself twice"));
    EXPECT(PART(NAMED "; filename=a; filename=b", "") "--B-1--", BAD("a part names itself twice"));
    EXPECT(PART(NAMED "; filename=\"a", "") "--B-1--", BAD("bad Content-Disposition"));
    EXPECT(PART(NAMED "; filename=\"a\"b", "") "--B-1--", BAD("bad Content-Disposition"));
    EXPECT(PART(NAMED "; filename=a b", "") "--B-1--", BAD("bad Content-Disposition"));
    EXPECT(PART("Content-Disposition: form-data; filename=a", "") "--B-1--", BAD("a part without a name"));
    EXPECT(PART("Content-Disposition: form-data", "") "--B-1--", BAD("a part without a name"));
    EXPECT(PART("Content-Disposition: attachment; name=a", "") "--B-1--", BAD("a part is not form-data"));
    EXPECT(PART("Content-Type: text/plain", "") "--B-1--", BAD("a part without Content-Disposition"));
    EXPECT("--B-1\r\n\r\nx\r\n--B-1--", BAD("a part without Content-Disposition"));
    EXPECT(PART(NAMED "\r\n" NAMED, "") "--B-1--", BAD("two Content-Dispositions in a part"));
    EXPECT(PART(NAMED "\r\nContent-Transfer-Encoding: base64", "") "--B-1--",
           BAD("Content-Transfer-Encoding is not supported"));
    EXPECT(PART(NAMED "\r\nContent-Transfer-Encoding: binary", "") "--B-1--", "<n|-|-></>");
    EXPECT(PART("Content-Disposition : form-data; name=a", "") "--B-1--", BAD("bad header line in a part"));
    EXPECT(PART("rubbish", "") "--B-1--", BAD("bad header line in a part"));
    EXPECT(PART(" : x", "") "--B-1--", BAD("bad header line in a part"));
}

static void test_refused_framing(void **state)
{
    (void)state;
    EXPECT("", BAD("it ends before the closing boundary"));
    EXPECT("no boundary at all", BAD("it ends before the closing boundary"));
    EXPECT("--B-1", BAD("it ends before the closing boundary"));
    EXPECT("--B-1-", BAD("it ends before the closing boundary"));
    EXPECT(PART(NAMED, "x") "--B-1", "<n|-|->x</>" BAD("it ends before the closing boundary"));
    EXPECT("--B-1\r\n" NAMED "\r\n", BAD("it ends before the closing boundary"));
    EXPECT("--B-1x\r\n", BAD("a boundary must be followed by CRLF or \"--\""));
    EXPECT("--B-1\n" NAMED, BAD("a boundary must be followed by CRLF or \"--\""));
    EXPECT("--B-1 -", BAD("a boundary must be followed by CRLF or \"--\""));
    EXPECT("--B-1-x", BAD("a boundary must be followed by CRLF or \"--\""));
    EXPECT("--B-1\r\n" NAMED "\n\n", BAD("a header line must end in CRLF"));
    EXPECT("--B-1\r\n" NAMED "\rx", BAD("a header line must end in CRLF"));
    EXPECT("--B-1\r\n\n", BAD("a header line must end in CRLF"));
}

static void test_every_prefix_of_a_good_body_is_incomplete(void **state)
{
    (void)state;
    static const char body[] = PART(NAMED "; filename=x", "data\r\n--B-") PART(NAMED, "") "--B-1--";
    for (size_t len = 0; len < sizeof body - 1; len++)
        assert_non_null(strstr(parse_by(body, len, 7), BAD("it ends before the closing boundary")));
    assert_string_equal(parse_by(body, sizeof body - 1, 7), "<n|x|->data\r\n--B-</><n|-|-></>");
}

static void test_headers_have_a_maximum(void **state)
{
    (void)state;
    for (int over = 0; over < 2; over++) {
        char body[MULTIPART_HEADERS_MAX_BYTES + 200];
        size_t pad = MULTIPART_HEADERS_MAX_BYTES - strlen(NAMED "\r\nX: \r\n\r\n") + (size_t)over;
        int len = snprintf(body, sizeof body, "--B-1\r\n" NAMED "\r\nX: %0*d\r\n\r\nx\r\n--B-1--", (int)pad, 0);
        assert_string_equal(parse_by(body, (size_t)len, 1000),
                            over ? BAD("headers of a part over 8 KiB") : "<n|-|->x</>");
    }
}

static void test_callback_fails(void **state)
{
    (void)state;
    fail_at = "bad";
    EXPECT(PART(NAMED, "x") PART("Content-Disposition: form-data; name=bad", "y") "--B-1--", "<n|-|->x</>!no room");
    fail_at = NULL;
}

static enum err_code code_of(const char *content_type)
{
    struct err err = {0};
    struct multipart *parser = multipart_new(content_type, &events, NULL, &err);
    multipart_free(parser);
    return parser ? ERR_NONE : err.code;
}

static void test_content_type(void **state)
{
    (void)state;
    assert_int_equal(code_of("multipart/form-data; boundary=x"), ERR_NONE);
    assert_int_equal(code_of("Multipart/Form-Data;charset=utf-8;Boundary=\"a b'()+_,-./:=?\""), ERR_NONE);
    assert_int_equal(code_of("multipart/form-data; boundary=----=_Part_1"), ERR_NONE);
    assert_int_equal(
        code_of("multipart/form-data; boundary=0123456789012345678901234567890123456789012345678901234567890123456789"),
        ERR_NONE);
    assert_int_equal(
        code_of(
            "multipart/form-data; boundary=01234567890123456789012345678901234567890123456789012345678901234567890"),
        ERR_INVALID_REQUEST);
    assert_int_equal(code_of("multipart/form-data"), ERR_INVALID_REQUEST);
    assert_int_equal(code_of("multipart/form-data; boundary="), ERR_INVALID_REQUEST);
    assert_int_equal(code_of("multipart/form-data; boundary=\"\""), ERR_INVALID_REQUEST);
    assert_int_equal(code_of("multipart/form-data; boundary=\"x "), ERR_INVALID_REQUEST);
    assert_int_equal(code_of("multipart/form-data; boundary=\"x \""), ERR_INVALID_REQUEST);
    assert_int_equal(code_of("multipart/form-data; boundary=\"x\xC3\xA4\""), ERR_INVALID_REQUEST);
    assert_int_equal(code_of("multipart/form-data; boundary=a; boundary=b"), ERR_INVALID_REQUEST);
    assert_int_equal(code_of("multipart/mixed; boundary=x"), ERR_UNSUPPORTED_MEDIA_TYPE);
    assert_int_equal(code_of("multipart/form-data boundary=x"), ERR_UNSUPPORTED_MEDIA_TYPE);
    assert_int_equal(code_of(""), ERR_UNSUPPORTED_MEDIA_TYPE);
    assert_int_equal(code_of(NULL), ERR_UNSUPPORTED_MEDIA_TYPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_and_files),
        cmocka_unit_test(test_data_that_looks_like_a_boundary),
        cmocka_unit_test(test_empty_parts),
        cmocka_unit_test(test_leniency),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_refused_names),
        cmocka_unit_test(test_refused_framing),
        cmocka_unit_test(test_every_prefix_of_a_good_body_is_incomplete),
        cmocka_unit_test(test_headers_have_a_maximum),
        cmocka_unit_test(test_callback_fails),
        cmocka_unit_test(test_content_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
