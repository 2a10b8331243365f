/* Ranges of lines: joined, merged, and shared out by what a comparison found; see the header. */
#include "helper/git_lines.h"

#include <stdbool.h>
#include <stdlib.h>

int git_lines_grow(void **items, size_t count, size_t *cap, size_t item_size)
{
    if (count < *cap)
        return 0;
    size_t wanted = *cap ? *cap * 2 : 16;
    void *grown = realloc(*items, wanted * item_size);
    if (!grown)
        return -1;
    *items = grown;
    *cap = wanted;
    return 0;
}

int git_lines_add(struct git_lines *lines, struct git_line_range range)
{
    struct git_line_range *last = lines->count > 0 ? &lines->items[lines->count - 1] : NULL;
    if (last && last->at + last->count == range.at && last->final + last->count == range.final) {
        last->count += range.count;
        return 0;
    }
    if (git_lines_grow((void **)&lines->items, lines->count, &lines->cap, sizeof *lines->items) != 0)
        return -1;
    lines->items[lines->count++] = range;
    return 0;
}

int git_lines_merge(struct git_lines *into, struct git_lines *more)
{
    struct git_lines merged = {0};
    size_t i = 0, j = 0;
    while (i < into->count || j < more->count) {
        bool first = j == more->count || (i < into->count && into->items[i].at <= more->items[j].at);
        if (git_lines_add(&merged, first ? into->items[i++] : more->items[j++]) != 0) {
            free(merged.items);
            return -1;
        }
    }
    free(into->items);
    free(more->items);
    *into = merged;
    *more = (struct git_lines){0};
    return 0;
}

int git_lines_change(struct git_line_changes *changes, size_t at, size_t new_count, size_t old_count)
{
    if (git_lines_grow((void **)&changes->items, changes->count, &changes->cap, sizeof *changes->items) != 0)
        return -1;
    int64_t shift = changes->count > 0 ? changes->items[changes->count - 1].shift : 0;
    shift += (int64_t)old_count - (int64_t)new_count;
    changes->items[changes->count++] = (struct git_line_change){.at = at, .count = new_count, .shift = shift};
    return 0;
}

/* The first change that ends after this line, looked for from `change` on, forth and back. */
static size_t seek_change(const struct git_line_changes *changes, size_t change, size_t line)
{
    const struct git_line_change *items = changes->items;
    while (change > 0 && items[change - 1].at + items[change - 1].count > line)
        change--;
    while (change < changes->count && items[change].at + items[change].count <= line)
        change++;
    return change;
}

/* Takes as many lines from the front of `left` as share one fate, to the one or the other. */
static int share_front(const struct git_line_changes *changes, size_t change, struct git_line_range *left,
                       struct git_lines *kept, struct git_lines *parent)
{
    const struct git_line_change *next = change < changes->count ? &changes->items[change] : NULL;
    bool changed = next && next->at <= left->at;
    size_t end = !next ? left->at + left->count : changed ? next->at + next->count : next->at;
    size_t count = end - left->at < left->count ? end - left->at : left->count;
    struct git_line_range part = {.at = left->at, .final = left->final, .count = count};
    if (!changed && change > 0)
        part.at = (size_t)((int64_t)part.at + changes->items[change - 1].shift);
    left->at += count;
    left->final += count;
    left->count -= count;
    return git_lines_add(changed ? kept : parent, part);
}

int git_lines_share(const struct git_line_changes *changes, struct git_lines *lines, struct git_lines *parent)
{
    struct git_lines kept = {0};
    size_t change = 0;
    for (size_t i = 0; i < lines->count; i++) {
        struct git_line_range left = lines->items[i];
        while (left.count > 0) {
            change = seek_change(changes, change, left.at);
            if (share_front(changes, change, &left, &kept, parent) == 0)
                continue;
            free(kept.items);
            return -1;
        }
    }
    free(lines->items);
    *lines = kept;
    return 0;
}
