/* Listings for the tests of prim/tree_list: an answer, and what is in it as one text. */
#ifndef ABX_TESTS_PRIM_LIST_ANSWER_H
#define ABX_TESTS_PRIM_LIST_ANSWER_H

#include "tree.h"

#include "prim/tree_list.h"

enum { ANSWER_MAX = 64 * 1024 * 1024 };

static atomic_bool not_cancelled;

static const struct tree_list_options flat = {
    .hidden = true, .max_depth = TREE_LIST_DEEP, .limit = 10000, .cancelled = &not_cancelled};
static const struct tree_list_options deep = {
    .recursive = true, .hidden = true, .max_depth = TREE_LIST_DEEP, .limit = 10000, .cancelled = &not_cancelled};

/* An answer, NUL-terminated; the caller frees it. */
static inline char *list(struct tree *tree, const char *path, const struct tree_list_options *options)
{
    struct buf out;
    struct err err = {0};
    size_t len;
    buf_init(&out, ANSWER_MAX);
    int result = tree_list(tree->confine, path, strlen(path), options, &out, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(result, 0);
    assert_int_equal(buf_append(&out, "", 1), 0);
    return buf_steal(&out, &len);
}

static inline enum err_code code_of(struct tree *tree, const char *path, const struct tree_list_options *options)
{
    struct buf out;
    struct err err = {0};
    buf_init(&out, ANSWER_MAX);
    int result = tree_list(tree->confine, path, strlen(path), options, &out, &err);
    buf_deinit(&out);
    return result == 0 ? ERR_NONE : err.code;
}

/* The paths of the entries relative to the base, each with a space behind it; appended to out. */
static inline void append_paths(struct tree *tree, const char *answer, char *out, size_t size)
{
    const char *end = strstr(answer, "],\"truncated\":");
    size_t base_len = strlen(tree->base), len = strlen(out);
    assert_non_null(end);
    for (const char *at = strstr(answer, "{\"path\":\""), *from = answer; at; at = strstr(from, "{\"path\":\"")) {
        if (at > end)
            break;
        from = at + strlen("{\"path\":\"");
        if (at == answer)
            continue; /* that of the directory */
        const char *quote = strchr(from, '"');
        assert_memory_equal(from, tree->base, base_len);
        from += base_len + 1;
        len += (size_t)snprintf(out + len, size - len, "%.*s ", (int)(quote - from), from);
        assert_true(len < size);
    }
}

static inline const char *paths(struct tree *tree, const char *path, const struct tree_list_options *options)
{
    static char text[64 * 1024];
    char *answer = list(tree, path, options);
    text[0] = '\0';
    append_paths(tree, answer, text, sizeof(text));
    free(answer);
    return text;
}

/* From "],"truncated" on, with the base taken out of paths. */
static inline const char *rest(struct tree *tree, const char *path, const struct tree_list_options *options)
{
    static char text[4096];
    char *answer = list(tree, path, options), *to = text;
    size_t base_len = strlen(tree->base);
    for (const char *at = strstr(answer, "],\"truncated\":"); *at; at++) {
        if (strncmp(at, tree->base, base_len) == 0)
            at += base_len;
        *to++ = *at;
    }
    *to = '\0';
    free(answer);
    return text;
}

#define NO_MORE "],\"truncated\":false,\"next_cursor\":null,\"errors\":["

/* The cursor of an answer; false where it has none. */
static inline bool next_cursor(const char *answer, char *out, size_t size)
{
    const char *at = strstr(answer, "\"next_cursor\":\"");
    if (!at) {
        assert_non_null(strstr(answer, "\"truncated\":false,\"next_cursor\":null,"));
        return false;
    }
    assert_non_null(strstr(answer, "\"truncated\":true,"));
    at += strlen("\"next_cursor\":\"");
    snprintf(out, size, "%.*s", (int)(strchr(at, '"') - at), at);
    return true;
}

/* All pages of that size joined. */
static inline const char *paged(struct tree *tree, const char *path, struct tree_list_options options, size_t limit)
{
    static char text[64 * 1024], cursor[8192];
    bool more = true;
    options.limit = limit;
    options.cursor = NULL;
    text[0] = '\0';
    while (more) {
        char *answer = list(tree, path, &options);
        append_paths(tree, answer, text, sizeof(text));
        more = next_cursor(answer, cursor, sizeof(cursor));
        options.cursor = cursor;
        options.cursor_len = strlen(cursor);
        free(answer);
    }
    return text;
}

static inline size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (; (text = strstr(text, part)); text++)
        count++;
    return count;
}

#endif
