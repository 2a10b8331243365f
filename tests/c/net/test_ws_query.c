/* What a client asks for as it connects to a terminal: query, ticket, sub-protocols and path. */
#include "net/ws_query.h"

#include "base/base64.h"
#include "prim/terminal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TICKET "0123456789abcdef0123456789abcdef"

static struct err err;

/* In memory that ends where the text does. */
static char *exact(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    return copy;
}

/* --- the query */

static struct ws_query accepted(const char *text)
{
    struct ws_query query;
    char *copy = exact(text, strlen(text));
    if (ws_query_parse(copy, strlen(text), &query, &err) != 0)
        fail_msg("%s: %s", text, err.text);
    free(copy);
    return query;
}

/* "field|text" of the refusal. */
static const char *refused_bytes(const char *text, size_t len)
{
    static char told[sizeof err.field + sizeof err.text];
    struct ws_query query = {.since = 77};
    char *copy = exact(text, len);
    if (ws_query_parse(copy, len, &query, &err) == 0)
        fail_msg("%s was taken", text);
    free(copy);
    assert_int_equal(query.since, 77); /* untouched */
    assert_int_equal(err.code, ERR_INVALID_REQUEST);
    snprintf(told, sizeof told, "%s|%s", err.field, err.text);
    return told;
}

static const char *refused(const char *text)
{
    return refused_bytes(text, strlen(text));
}

static void nothing_asked_for(void **state)
{
    (void)state;
    struct ws_query query;
    static const char *const texts[] = {NULL, "", "&", "&&"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(ws_query_parse(texts[i], texts[i] ? strlen(texts[i]) : 0, &query, &err), 0);
        assert_int_equal(query.since, TERMINAL_SINCE_ALL);
        assert_false(query.has_cols);
        assert_false(query.has_rows);
        assert_false(query.read_only);
        assert_false(query.raw);
        assert_string_equal(query.ticket, "");
    }
}

static void all_asked_for(void **state)
{
    (void)state;
    struct ws_query query = accepted("since=5000000000&cols=132&rows=43&access=ro&mode=raw&ticket=" TICKET);
    assert_int_equal(query.since, 5000000000);
    assert_true(query.has_cols);
    assert_true(query.has_rows);
    assert_int_equal(query.size.cols, 132);
    assert_int_equal(query.size.rows, 43);
    assert_true(query.read_only);
    assert_true(query.raw);
    assert_string_equal(query.ticket, TICKET);

    query = accepted("mode=json&rows=1&access=rw&since=-1");
    assert_int_equal(query.since, TERMINAL_SINCE_NONE);
    assert_false(query.has_cols);
    assert_true(query.has_rows);
    assert_int_equal(query.size.rows, 1);
    assert_false(query.read_only);
    assert_false(query.raw);
    assert_int_equal(accepted("since=0").since, 0);
    assert_int_equal(accepted("since=9223372036854775807").since, INT64_MAX);
    assert_int_equal(accepted("cols=1000").size.cols, 1000);
}

static void escapes_are_decoded_once(void **state)
{
    (void)state;
    struct ws_query query = accepted("%63ols=%38%30&access=r%6f&mode=r%61w&ticket=a%26since%3D%255");
    assert_int_equal(query.size.cols, 80);
    assert_true(query.read_only);
    assert_true(query.raw);
    assert_string_equal(query.ticket, "a&since=%5");
    assert_int_equal(query.since, TERMINAL_SINCE_ALL);
    assert_string_equal(accepted("ticket=a+b%2bc").ticket, "a b+c");

    assert_string_equal(refused("cols=%zz"), "cols|the parameter cols holds a bad %-escape");
    assert_string_equal(refused("cols=8%3"), "cols|the parameter cols holds a bad %-escape");
    assert_string_equal(refused("%c=8"), "|a parameter's name in the query is not properly %-encoded UTF-8");
    assert_string_equal(refused("%ff=8"), "|a parameter's name in the query is not properly %-encoded UTF-8");
    assert_string_equal(refused("cols%00=8"), "|a parameter's name in the query is not properly %-encoded UTF-8");
    assert_string_equal(refused("access=r%2577"), "access|access: must be one of: rw, ro");
}

static void values_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *text, *refusal;
    } cases[] = {
        {"since=-2", "since|since: must be at least -1"},
        {"since=", "since|since: must be an integer"},
        {"since", "since|since: must be an integer"},
        {"since=all", "since|since: must be an integer"},
        {"since=1.5", "since|since: must be an integer"},
        {"since=%201", "since|since: must be an integer"},
        {"since=+1", "since|since: must be an integer"},
        {"since=0x10", "since|since: must be an integer"},
        {"since=007", "since|since: must be an integer"},
        {"since=1%00", "since|since: must be an integer"},
        {"since=9223372036854775808", "since|since: must be an integer"},
        {"cols=0", "cols|cols: must be between 1 and 1000"},
        {"cols=-1", "cols|cols: must be between 1 and 1000"},
        {"cols=1001", "cols|cols: must be between 1 and 1000"},
        {"cols=65616", "cols|cols: must be between 1 and 1000"},
        {"rows=4294967320", "rows|rows: must be between 1 and 1000"},
        {"rows=24.5", "rows|rows: must be an integer"},
        {"rows=true", "rows|rows: must be an integer"},
        {"access=RO", "access|access: must be one of: rw, ro"},
        {"access=", "access|access: must be one of: rw, ro"},
        {"access=ro%00", "access|access: must be one of: rw, ro"},
        {"mode=binary", "mode|mode: must be one of: json, raw"},
        {"mode=raw+", "mode|mode: must be one of: json, raw"},
        {"ticket=", "ticket|ticket: must be between 1 and 127 bytes long"},
        {"ticket=a%00b", "ticket|ticket: must not hold NUL"},
        {"read_only=true", "read_only|read_only: is not a known parameter"},
        {"Cols=80", "Cols|Cols: is not a known parameter"},
        {"cols=80&since=5;rows=24", "since|since: must be an integer"},
        {"cols=80&cols=80", "cols|the parameter cols is given more than once"},
        {"c%6fls=80&cols=81", "cols|the parameter cols is given more than once"},
        {"=80", "|the query holds a parameter without a name"},
        {"=", "|the query holds a parameter without a name"},
        {"cols=80&=x", "|the query holds a parameter without a name"},
        {"cols=0&rows=0", "cols|cols: must be between 1 and 1000"}, /* the first */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(refused(cases[i].text), cases[i].refusal);
}

static void bytes_that_must_be_encoded(void **state)
{
    (void)state;
    static const char told[] = "|the query holds a byte that must be %-encoded";
    assert_string_equal(refused("ticket=a b"), told);
    assert_string_equal(refused("since=1\n"), told);
    assert_string_equal(refused("since=1\x7f"), told);
    /* What stands behind a NUL must count too. */
    assert_string_equal(refused_bytes("since=1\0&access=ro", 18), told);
}

static void long_queries(void **state)
{
    (void)state;
    char ticket[7 + WS_QUERY_TICKET_MAX + 1] = "ticket=";
    memset(ticket + 7, 'a', WS_QUERY_TICKET_MAX - 1);
    assert_int_equal(strlen(accepted(ticket).ticket), WS_QUERY_TICKET_MAX - 1);
    ticket[7 + WS_QUERY_TICKET_MAX - 1] = 'a';
    assert_string_equal(refused(ticket), "ticket|ticket: must be between 1 and 127 bytes long");

    enum { LEN = 256 * 1024 };
    char *text = malloc(LEN);
    assert_non_null(text);
    memset(text, '&', LEN);
    assert_string_equal(refused_bytes(text, LEN), "|the query has more than 256 parameters");
    memset(text, 'x', LEN);
    refused_bytes(text, LEN);
    assert_non_null(strstr(err.text, ": is not a known parameter"));
    for (size_t i = 0; i < 256; i++)
        memcpy(text + i * 8, (char[]){'c', 'a' + (char)(i / 16), 'a' + (char)(i % 16), '=', '%', '3', '1', '&'}, 8);
    assert_string_equal(refused_bytes(text, 256 * 8 - 1), "caa|caa: is not a known parameter");
    free(text);
}

/* --- the ticket alone */

static const char *ticket_in(const char *text, size_t len)
{
    static char ticket[WS_QUERY_TICKET_MAX];
    char *copy = exact(text, len);
    memset(ticket, '#', sizeof ticket);
    ws_query_ticket(copy, len, ticket);
    free(copy);
    return ticket;
}

static void a_ticket_is_found_in_any_query(void **state)
{
    (void)state;
    static const char *const with[] = {
        "ticket=" TICKET,
        "since=5&ticket=" TICKET "&mode=raw",
        "%zz=1&ticket=" TICKET "&cols=%",
        "cols=80&cols=81&ticket=" TICKET,
        "=&ticket=" TICKET "&=&",
        "%74icket=%30123456789abcdef0123456789abcdef",
        "Ticket=x&ticket=" TICKET,
        "cols=a b\x01&ticket=" TICKET,
    };
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        assert_string_equal(ticket_in(with[i], strlen(with[i])), TICKET);
    assert_string_equal(ticket_in("a\0b=\0&ticket=t&\0", 16), "t");
}

static void no_ticket_or_more_than_one(void **state)
{
    (void)state;
    static const char *const without[] = {
        "",
        "ticket",
        "ticket=",
        "tickets=" TICKET,
        "since=ticket=" TICKET,
        "since=5%26ticket=" TICKET,
        "ticket=" TICKET "&ticket=" TICKET,
        "ticket=" TICKET "&%74icket=other",
        "ticket=" TICKET "&ticket=%zz", /* a bad one is one, too */
        "ticket=%zz&ticket=" TICKET,
        "ticket=&ticket=" TICKET,
        "ticket=%zz",
        "ticket=abc%00",
    };
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        assert_string_equal(ticket_in(without[i], strlen(without[i])), "");
    assert_string_equal(ticket_in("ticket=abc\0", 11), "");

    char ticket[WS_QUERY_TICKET_MAX];
    ws_query_ticket(NULL, 0, ticket);
    assert_string_equal(ticket, "");
    char text[7 + WS_QUERY_TICKET_MAX + 1] = "ticket=";
    memset(text + 7, 'a', WS_QUERY_TICKET_MAX);
    assert_string_equal(ticket_in(text, 7 + WS_QUERY_TICKET_MAX), "");
    assert_int_equal(strlen(ticket_in(text, 7 + WS_QUERY_TICKET_MAX - 1)), WS_QUERY_TICKET_MAX - 1);
}

/* --- sub-protocols */

/* "any known token", a wrong token as "WRONG". */
static const char *offered(const char *header)
{
    static char told[8192];
    struct ws_offer offer;
    char *copy = exact(header, strlen(header));
    ws_offer_parse(copy, strlen(header), &offer);
    free(copy);
    bool wrong = offer.token.len == 1 && offer.token.data[0] == 0x7f;
    snprintf(told, sizeof told, "%s %s %.*s", offer.any ? "any" : "none", offer.known ? "known" : "unknown",
             wrong ? 5 : (int)offer.token.len,
             wrong              ? "WRONG"
             : offer.token.data ? offer.token.data
                                : "");
    ws_offer_deinit(&offer);
    assert_int_equal(offer.token.len, 0);
    assert_null(offer.token.data);
    return told;
}

static void offers_are_lists(void **state)
{
    (void)state;
    struct ws_offer offer;
    ws_offer_parse(NULL, 0, &offer);
    assert_false(offer.any);
    assert_false(offer.known);
    assert_int_equal(offer.token.len, 0);
    ws_offer_deinit(&offer);

    assert_string_equal(offered(""), "none unknown ");
    assert_string_equal(offered(" , ,\t,"), "none unknown ");
    assert_string_equal(offered("abx.pty.v1"), "any known ");
    assert_string_equal(offered("abx.pty.v1,abx.pty.v1"), "any known ");
    assert_string_equal(offered("chat, \tabx.pty.v1\t ,, superchat"), "any known ");
    assert_string_equal(offered("abx.pty.v2"), "any unknown ");
    assert_string_equal(offered("abx.pty.v10"), "any unknown ");
    assert_string_equal(offered("abx.pty.v"), "any unknown ");
    assert_string_equal(offered("ABX.PTY.V1"), "any unknown ");
    assert_string_equal(offered("abx.pty.v1 chat"), "any unknown ");
    assert_string_equal(offered("\"abx.pty.v1\""), "any unknown ");
}

static void tokens_come_as_they_are_or_as_base64url(void **state)
{
    (void)state;
    assert_string_equal(offered("bearer.s3cret"), "any unknown s3cret");
    assert_string_equal(offered("abx.pty.v1, bearer.s3.cr-et"), "any known s3.cr-et");
    assert_string_equal(offered("bearer64.czNjcmV0,abx.pty.v1"), "any known s3cret");
    assert_string_equal(offered("bearer64.czNjcmU"), "any unknown s3cre");
    assert_string_equal(offered("bearer64.czNjcmU="), "any unknown s3cre");
    assert_string_equal(offered("bearer64.czNjcg"), "any unknown s3cr");
    assert_string_equal(offered("bearer64.czNjcg=="), "any unknown s3cr");
    assert_string_equal(offered("bearer64.fn5-Pz8_"), "any unknown ~~~???"); /* fn5+Pz8/ */
    assert_string_equal(offered("bearer.bearer64.x"), "any unknown bearer64.x");
    assert_string_equal(offered("Bearer.x, bearer, bearer32.x"), "any unknown ");
}

static void wrong_tokens(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "bearer.",
        "bearer64.",
        "bearer64.c",        /* no byte has six bits */
        "bearer64.czNjc",    /* the same */
        "bearer64.czNjcn",   /* bits that no byte takes */
        "bearer64.czNjcg=",  /* half of the padding */
        "bearer64.cz=jcg==", /* padding inside */
        "bearer64.====",
        "bearer64.fn5+Pz8/", /* the standard alphabet */
        "bearer64.czNj cmV0",
        "bearer64.czNj.mV0",
        "bearer64.c2VjcmV0AA", /* a NUL at the end: "secret" as a C string */
        "bearer64.c2VjIHJldA", /* a space */
        "bearer64.w6Q",        /* not ASCII */
        "bearer.s3 cret",
        "bearer.\x7f",
        "bearer.s3cr\xc3\xa9t",
        "bearer.a, bearer.a", /* more than one, be they the same */
        "bearer.a, bearer.b, bearer.c",
        "bearer.a, bearer64.YQ",
        "bearer., bearer.a",
        "bearer64.!, bearer.a",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char text[128];
        snprintf(text, sizeof text, "abx.pty.v1, %s", headers[i]);
        if (strcmp(offered(headers[i]), "any unknown WRONG") != 0)
            fail_msg("%s: %s", headers[i], offered(headers[i]));
        assert_string_equal(offered(text), "any known WRONG");
    }
}

static void long_tokens(void **state)
{
    (void)state;
    enum { TOKEN_LEN = 4095 };
    struct buf header;
    char wanted[TOKEN_LEN + 32] = "any unknown ";
    char *token = wanted + strlen(wanted);
    for (size_t i = 0; i < TOKEN_LEN; i++)
        token[i] = (char)(0x21 + i % 94);
    buf_init(&header, 3 * TOKEN_LEN);
    assert_int_equal(buf_append_text(&header, "bearer64."), 0);
    assert_int_equal(base64_encode(&header, token, TOKEN_LEN), 0);
    for (size_t i = 0; i < header.len; i++)
        header.data[i] = header.data[i] == '+' ? '-' : header.data[i] == '/' ? '_' : header.data[i];
    assert_int_equal(buf_append(&header, "", 1), 0);
    assert_string_equal(offered(header.data), wanted);
    buf_deinit(&header);
}

/* --- the path */

/* The id, or "-" where the path is another. */
static const char *id_of(const char *path, size_t len)
{
    static char id[WS_PATH_ID_MAX + 1];
    char *copy = exact(path, len);
    size_t id_len = 77;
    const char *found = ws_path_id(copy, len, &id_len);
    if (found) {
        assert_true(id_len >= 1 && id_len <= WS_PATH_ID_MAX);
        assert_ptr_equal(found, copy + 5);
        snprintf(id, sizeof id, "%.*s", (int)id_len, found);
    } else {
        assert_int_equal(id_len, 77);
        strcpy(id, "-");
    }
    free(copy);
    return id;
}

static void paths_of_terminals(void **state)
{
    (void)state;
    assert_string_equal(id_of("/pty/p-24dc40c4f3b6", 19), "p-24dc40c4f3b6");
    assert_string_equal(id_of("/pty/x", 6), "x");
    assert_string_equal(id_of("/pty/..", 7), "..");
    assert_string_equal(id_of("/pty/p%2D1", 10), "p%2D1");
    static const char *const others[] = {
        "",       "/",       "/pty",     "/pty/",    "/pty//",    "/pty/x/",      "/pty/x/y",
        "pty/xx", "//pty/x", "/PTY/xyz", "/ptyx/xy", "/%70ty/xy", "/pty/../etc/", "/api/pty/x",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_string_equal(id_of(others[i], strlen(others[i])), "-");

    char path[5 + WS_PATH_ID_MAX + 2] = "/pty/";
    memset(path + 5, 'x', WS_PATH_ID_MAX + 1);
    assert_int_equal(strlen(id_of(path, 5 + WS_PATH_ID_MAX)), WS_PATH_ID_MAX);
    assert_string_equal(id_of(path, 5 + WS_PATH_ID_MAX + 1), "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_asked_for),
        cmocka_unit_test(all_asked_for),
        cmocka_unit_test(escapes_are_decoded_once),
        cmocka_unit_test(values_that_are_none),
        cmocka_unit_test(bytes_that_must_be_encoded),
        cmocka_unit_test(long_queries),
        cmocka_unit_test(a_ticket_is_found_in_any_query),
        cmocka_unit_test(no_ticket_or_more_than_one),
        cmocka_unit_test(offers_are_lists),
        cmocka_unit_test(tokens_come_as_they_are_or_as_base64url),
        cmocka_unit_test(wrong_tokens),
        cmocka_unit_test(long_tokens),
        cmocka_unit_test(paths_of_terminals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
