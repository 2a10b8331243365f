/* Writes matches and the lines around them; see search_hits.h. A match is written as far as the window goes; those that
 * wait for lines of the next one stand in a queue, which is never longer than the context. */
#include "prim/search_hits.h"

#include "base/json.h"
#include "base/utf8.h"
#include "prim/entry.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEFT_OF_MATCH_BYTES = 200,                      /* of a line that is cut, before its match */
    SCRUBBED_MAX_BYTES = 3 * SEARCH_TEXT_MAX_BYTES, /* U+FFFD for each byte */
    KEPT_BYTES = 64 * 1024,
};

/* The start of a line that left the window, for matches soon after it. */
struct kept_line {
    size_t len;
    char text[SEARCH_TEXT_MAX_BYTES + 1]; /* one more tells that the line goes on */
};

struct waiting {
    struct buf json;
    unsigned left; /* lines to come */
    bool has_after, lossy;
};

struct search_hits {
    unsigned context;
    struct search_found *found;
    const char *dir, *name;

    const char *text; /* the window */
    size_t len;
    uint64_t line; /* that starts at `counted`, from 1 */
    size_t counted;

    struct kept_line kept[SEARCH_CONTEXT_MAX]; /* a ring: the last of them before the window */
    unsigned kept_count, kept_next;
    struct kept_line long_line;                     /* the one that is being read in parts */
    struct waiting waiting[SEARCH_CONTEXT_MAX + 1]; /* a ring, too */
    unsigned waiting_count, waiting_first;
    struct buf path;     /* members of the present file, empty until it has a match */
    struct buf scrubbed; /* a line on its way */
};

/* ---- found */

void search_found_init(struct search_found *found, size_t count_max, size_t bytes_max)
{
    *found = (struct search_found){.max = count_max};
    buf_init(&found->json, bytes_max);
}

void search_found_deinit(struct search_found *found)
{
    buf_deinit(&found->json);
    free(found->ends);
}

void search_found_reset(struct search_found *found)
{
    if (found->json.cap > KEPT_BYTES)
        buf_deinit(&found->json);
    buf_reset(&found->json);
    found->count = 0;
    found->full = false;
    found->files = found->given_up = 0;
}

static void found_add(struct search_found *found, const struct buf *json)
{
    if (found->full)
        return;
    if (found->count == found->cap) {
        size_t cap = found->cap * 2 + 16;
        size_t *grown = realloc(found->ends, cap * sizeof *grown);
        if (!grown) {
            found->full = true;
            return;
        }
        found->ends = grown;
        found->cap = cap;
    }
    if (buf_append(&found->json, json->data, json->len) != 0)
        found->full = true;
    else
        found->ends[found->count++] = found->json.len;
    found->full |= found->count == found->max;
}

/* ---- hits */

struct search_hits *search_hits_new(unsigned context)
{
    struct search_hits *hits = calloc(1, sizeof *hits);
    if (!hits)
        return NULL;
    hits->context = context < SEARCH_CONTEXT_MAX ? context : SEARCH_CONTEXT_MAX;
    buf_init(&hits->path, 16 * (size_t)PATH_MAX * 6);
    buf_init(&hits->scrubbed, SCRUBBED_MAX_BYTES);
    for (size_t i = 0; i < sizeof hits->waiting / sizeof *hits->waiting; i++)
        buf_init(&hits->waiting[i].json, SIZE_MAX); /* a few lines of bounded length */
    return hits;
}

void search_hits_free(struct search_hits *hits)
{
    if (!hits)
        return;
    for (size_t i = 0; i < sizeof hits->waiting / sizeof *hits->waiting; i++)
        buf_deinit(&hits->waiting[i].json);
    buf_deinit(&hits->path);
    buf_deinit(&hits->scrubbed);
    free(hits);
}

static struct waiting *waiting_at(struct search_hits *hits, unsigned index)
{
    return &hits->waiting[(hits->waiting_first + index) % (SEARCH_CONTEXT_MAX + 1)];
}

/* A write that has no room ends the search: what was found so far is told. */
static void must(struct search_hits *hits, int result)
{
    hits->found->full |= result != 0;
}

void search_hits_begin(struct search_hits *hits, struct search_found *found, const char *dir, const char *name)
{
    hits->found = found;
    hits->dir = dir;
    hits->name = name;
    hits->line = 1;
    hits->counted = hits->len = 0;
    hits->kept_count = 0;
    hits->waiting_count = 0;
    buf_reset(&hits->path);
}

static void write_path(struct search_hits *hits)
{
    struct buf path;
    buf_init(&path, 16 * (size_t)PATH_MAX);
    must(hits, buf_printf(&path, "%s/%s", hits->dir, hits->name));
    must(hits, entry_write_path(&hits->path, "path", path.data, path.len));
    buf_deinit(&path);
}

/* Without the CR of a CRLF. */
static size_t without_cr(const char *line, size_t len)
{
    return len > 0 && line[len - 1] == '\r' ? len - 1 : len;
}

/* Appends at most SEARCH_TEXT_MAX_BYTES of valid UTF-8 as a JSON string; true where it is not all of the line. */
static bool write_text(struct search_hits *hits, struct waiting *match, const char *text, size_t len)
{
    size_t taken = len <= SEARCH_TEXT_MAX_BYTES ? len : utf8_whole_len(text, SEARCH_TEXT_MAX_BYTES);
    buf_reset(&hits->scrubbed);
    must(hits, utf8_append_scrubbed(&hits->scrubbed, text, taken, &match->lossy));
    size_t shown = hits->scrubbed.len;
    if (shown > SEARCH_TEXT_MAX_BYTES)
        shown = utf8_whole_len(hits->scrubbed.data, SEARCH_TEXT_MAX_BYTES);
    must(hits, json_write_string(&match->json, shown > 0 ? hits->scrubbed.data : "", shown));
    return taken < len || shown < hits->scrubbed.len;
}

/* Where the shown part of a line begins that is too long, or has bytes before it: some way before the match, at a
 * character. */
static size_t shown_start(const char *line, size_t len, size_t match_at, bool is_cut)
{
    size_t start = 0;
    if (len > SEARCH_TEXT_MAX_BYTES) {
        start = match_at > LEFT_OF_MATCH_BYTES ? match_at - LEFT_OF_MATCH_BYTES : 0;
        if (len - start < SEARCH_TEXT_MAX_BYTES)
            start = len - SEARCH_TEXT_MAX_BYTES;
    }
    size_t skip = start > 0 || is_cut ? utf8_skip_len(line + start, len - start) : 0;
    return start + skip < match_at ? start + skip : start;
}

static void write_after(struct search_hits *hits, struct waiting *match, const char *line, size_t len)
{
    if (match->has_after)
        must(hits, buf_append(&match->json, ",", 1));
    write_text(hits, match, line, without_cr(line, len));
    match->has_after = true;
    match->left--;
}

/* One more line for all that wait. */
static void feed(struct search_hits *hits, const char *line, size_t len)
{
    for (unsigned i = 0; i < hits->waiting_count; i++)
        write_after(hits, waiting_at(hits, i), line, len);
}

/* The first ones are complete first. */
static void hand_over(struct search_hits *hits, bool all)
{
    while (hits->waiting_count > 0 && (all || waiting_at(hits, 0)->left == 0)) {
        struct waiting *match = waiting_at(hits, 0);
        must(hits, buf_append_text(&match->json, match->lossy ? "],\"lossy\":true}" : "]}"));
        found_add(hits->found, &match->json);
        hits->waiting_first = (hits->waiting_first + 1) % (SEARCH_CONTEXT_MAX + 1);
        hits->waiting_count--;
    }
}

void search_hits_end(struct search_hits *hits)
{
    hand_over(hits, true);
}

static size_t next_line(const char *text, size_t len, size_t from)
{
    const char *end = memchr(text + from, '\n', len - from);
    return end ? (size_t)(end + 1 - text) : len;
}

static size_t without_lf(const char *text, size_t start, size_t next)
{
    return next > start && text[next - 1] == '\n' ? next - 1 - start : next - start;
}

void search_hits_window(struct search_hits *hits, const char *text, size_t len)
{
    hits->text = text;
    hits->len = len;
    hits->counted = 0;
    for (size_t at = 0, next; hits->waiting_count > 0 && at < len; at = next) {
        next = next_line(text, len, at);
        feed(hits, text + at, without_lf(text, at, next));
        hand_over(hits, false);
    }
}

static void count_lines(struct search_hits *hits, size_t until)
{
    uint64_t count = 0;
    for (size_t at = hits->counted; at < until; at++)
        count += hits->text[at] == '\n';
    hits->line += count;
    hits->counted = until;
}

/* Starts of lines in the window, back from one; answers how many there are, the nearest first. */
static unsigned lines_before(const struct search_hits *hits, size_t from, size_t starts[SEARCH_CONTEXT_MAX])
{
    unsigned count = 0;
    while (count < hits->context && from > 0) {
        const char *before = from > 1 ? memrchr(hits->text, '\n', from - 1) : NULL;
        from = before ? (size_t)(before + 1 - hits->text) : 0;
        starts[count++] = from;
    }
    return count;
}

static void write_kept(struct search_hits *hits, struct waiting *match, unsigned wanted)
{
    unsigned count = wanted < hits->kept_count ? wanted : hits->kept_count;
    for (unsigned i = count; i > 0; i--) {
        const struct kept_line *line = &hits->kept[(hits->kept_next + SEARCH_CONTEXT_MAX - i) % SEARCH_CONTEXT_MAX];
        write_text(hits, match, line->text, without_cr(line->text, line->len));
        must(hits, buf_append(&match->json, ",", 1));
    }
}

/* [the lines before] */
static void write_before(struct search_hits *hits, struct waiting *match, size_t line_start)
{
    size_t starts[SEARCH_CONTEXT_MAX];
    unsigned count = lines_before(hits, line_start, starts);
    must(hits, buf_append_text(&match->json, ",\"before\":["));
    write_kept(hits, match, hits->context - count);
    for (unsigned i = count; i > 0; i--) {
        size_t start = starts[i - 1], next = i > 1 ? starts[i - 2] : line_start;
        size_t len = without_lf(hits->text, start, next);
        write_text(hits, match, hits->text + start, without_cr(hits->text + start, len));
        must(hits, buf_append(&match->json, ",", 1));
    }
    if (match->json.len > 0 && match->json.data[match->json.len - 1] == ',')
        match->json.len--;
    must(hits, buf_append(&match->json, "]", 1));
}

/* Queues a match, written up to its following lines. match_at and column are within line. */
static struct waiting *write_match(struct search_hits *hits, const char *line, size_t len, size_t match_at,
                                   uint64_t base, size_t line_start)
{
    struct waiting *match = waiting_at(hits, hits->waiting_count++);
    *match = (struct waiting){.json = match->json, .left = hits->context};
    buf_reset(&match->json);
    if (hits->path.len == 0)
        write_path(hits);
    must(hits, buf_append(&match->json, "{", 1));
    must(hits, buf_append(&match->json, hits->path.data, hits->path.len));
    must(hits, buf_printf(&match->json, ",\"line\":%" PRIu64 ",\"column\":%" PRIu64 ",\"text\":", hits->line,
                          base + match_at + 1));
    size_t start = shown_start(line, len, match_at, base > 0);
    bool cut = write_text(hits, match, line + start, len - start) || start > 0 || base > 0;
    must(hits, buf_printf(&match->json, ",\"line_truncated\":%s", cut ? "true" : "false"));
    write_before(hits, match, line_start);
    must(hits, buf_append_text(&match->json, ",\"after\":["));
    return match;
}

void search_hits_add(struct search_hits *hits, const struct search_match *found)
{
    const char *line = hits->text + found->line_start;
    size_t len = without_cr(line, found->line_end - found->line_start);
    count_lines(hits, found->line_start);
    struct waiting *match = write_match(hits, line, len, found->start - found->line_start, 0, found->line_start);
    for (size_t at = found->line_end + 1, next; match->left > 0 && at < hits->len; at = next) {
        next = next_line(hits->text, hits->len, at);
        write_after(hits, match, hits->text + at, without_lf(hits->text, at, next));
    }
    hand_over(hits, false);
}

static void copy_start(struct kept_line *kept, const char *line, size_t len)
{
    kept->len = len < sizeof kept->text ? len : sizeof kept->text;
    memcpy(kept->text, line, kept->len);
}

static struct kept_line *keep(struct search_hits *hits)
{
    struct kept_line *kept = &hits->kept[hits->kept_next];
    hits->kept_next = (hits->kept_next + 1) % SEARCH_CONTEXT_MAX;
    hits->kept_count += hits->kept_count < SEARCH_CONTEXT_MAX;
    return kept;
}

void search_hits_leave(struct search_hits *hits)
{
    size_t starts[SEARCH_CONTEXT_MAX];
    unsigned count = lines_before(hits, hits->len, starts);
    count_lines(hits, hits->len);
    for (unsigned i = count; i > 0; i--) {
        size_t start = starts[i - 1], next = i > 1 ? starts[i - 2] : hits->len;
        copy_start(keep(hits), hits->text + start, without_lf(hits->text, start, next));
    }
}

void search_hits_long_begin(struct search_hits *hits, const char *start, size_t len)
{
    copy_start(&hits->long_line, start, len);
    feed(hits, start, len);
    hand_over(hits, false);
}

void search_hits_long_add(struct search_hits *hits, const char *part, size_t len, uint64_t base,
                          const struct search_match *match)
{
    write_match(hits, part, len, match->start, base, 0);
    hand_over(hits, false);
}

void search_hits_long_leave(struct search_hits *hits)
{
    *keep(hits) = hits->long_line;
    hits->line++;
}
