/* Finds and replaces for file_write.c. */
#include "prim/edits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int edit_err(struct err *err, size_t index, enum err_code code, const char *problem)
{
    char field[32];
    snprintf(field, sizeof(field), "edits[%zu].old", index);
    err_set(err, code, "%s: %s; nothing was changed", field, problem);
    return err_field(err, field);
}

static const char *find(const char *from, const char *end, const struct edit *edit)
{
    return memmem(from, (size_t)(end - from), edit->old, edit->old_len);
}

/* As many as a replacement from the left would meet. */
static size_t count_occurrences(const struct buf *text, const struct edit *edit)
{
    const char *end = text->data + text->len, *at = text->data;
    size_t count = 0;
    while ((at = find(at, end, edit)) != NULL) {
        count++;
        at += edit->old_len;
    }
    return count;
}

/* Of "aa" in "aaa" it would be chance which one is replaced. */
static bool overlaps_itself(const struct buf *text, const struct edit *edit)
{
    const char *end = text->data + text->len;
    return find(find(text->data, end, edit) + 1, end, edit) != NULL;
}

static int check_count(const struct buf *text, const struct edit *edit, size_t index, size_t count, struct err *err)
{
    char problem[128];
    if (count == 0)
        return edit_err(err, index, ERR_AMBIGUOUS_EDIT, "occurs 0 times; read the file again");
    if (edit->all)
        return 0;
    if (count == 1 && overlaps_itself(text, edit))
        count = 2;
    if (count == 1)
        return 0;
    snprintf(problem, sizeof(problem), "occurs %zu times; take more of the text around it, or set all", count);
    return edit_err(err, index, ERR_AMBIGUOUS_EDIT, problem);
}

/* -1 where the lengths do not go together within max. */
static int length_after(const struct buf *text, const struct edit *edit, size_t count, size_t max, size_t *out_len)
{
    size_t kept = text->len - count * edit->old_len;
    if (kept > max || (edit->new_len > 0 && count > (max - kept) / edit->new_len))
        return -1;
    *out_len = kept + count * edit->new_len;
    return 0;
}

static char *put(char *to, const char *from, size_t len)
{
    if (len > 0)
        memcpy(to, from, len);
    return to + len;
}

/* to has room for the result. */
static void replace_all(const struct buf *text, const struct edit *edit, struct buf *to)
{
    const char *at = text->data, *end = at + text->len, *found;
    char *out = to->data;
    while ((found = find(at, end, edit)) != NULL) {
        out = put(out, at, (size_t)(found - at));
        out = put(out, edit->new, edit->new_len);
        at = found + edit->old_len;
    }
    out = put(out, at, (size_t)(end - at));
    to->len = (size_t)(out - to->data);
}

static int apply(struct buf *text, struct buf *spare, const struct edit *edit, size_t index, struct err *err)
{
    size_t len;
    if (edit->old_len == 0)
        return edit_err(err, index, ERR_INVALID_REQUEST, "must not be empty");
    size_t count = text->len == 0 ? 0 : count_occurrences(text, edit);
    if (check_count(text, edit, index, count, err) != 0)
        return -1;
    if (length_after(text, edit, count, text->max, &len) != 0)
        return err_set(err, ERR_PAYLOAD_TOO_LARGE, "the edited file would be larger than %zu bytes", text->max);
    buf_reset(spare);
    if (buf_reserve(spare, len > 0 ? len : 1) != 0)
        return err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot edit");
    replace_all(text, edit, spare);
    struct buf before = *text;
    *text = *spare;
    *spare = before;
    return 0;
}

int edits_apply(struct buf *text, const struct edit *edits, size_t count, const atomic_bool *cancelled, struct err *err)
{
    struct buf spare;
    buf_init(&spare, text->max);
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        if (cancelled && atomic_load(cancelled))
            result = err_set(err, ERR_BUSY, "given up");
        else
            result = apply(text, &spare, &edits[i], i, err);
    }
    buf_deinit(&spare);
    return result;
}
