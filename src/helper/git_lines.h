/* Lines of one version of a file on their way to those that wrote them, and how they are shared between a version and
 * its parent; for git_origins.c. Functions that can fail answer -1 where memory ends, and leave their arguments whole.
 */
#ifndef ABX_HELPER_GIT_LINES_H
#define ABX_HELPER_GIT_LINES_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Lines in sequence: where they are in this version, and where in the file that was asked for; both 0-based. */
struct git_line_range {
    size_t at, final, count;
};
/* Zero it before use; free(items). Ranges may overlap at `at` (a merge may keep both copies of a line), and are about
 * in its order; no two have a final line in common. */
struct git_lines {
    struct git_line_range *items;
    size_t count, cap;
};

/* Lines [at, at+count) of the newer version are new; those after them were `shift` lines further down in the older. */
struct git_line_change {
    size_t at, count;
    int64_t shift;
};
/* In the order of the lines. Zero it before use; free(items). */
struct git_line_changes {
    struct git_line_change *items;
    size_t count, cap;
};

/* Adds a range, joined with the last where it follows that without a gap. */
int git_lines_add(struct git_lines *lines, struct git_line_range range) ABX_MUST_USE;
/* Two lists to one; more is empty afterwards. */
int git_lines_merge(struct git_lines *into, struct git_lines *more) ABX_MUST_USE;
/* Adds what comes next in a comparison: new_count lines of the newer version from `at` stand for old_count older ones.
 */
int git_lines_change(struct git_line_changes *changes, size_t at, size_t new_count, size_t old_count) ABX_MUST_USE;
/* What the changes made stays in lines, all else goes to parent, with its place there. */
int git_lines_share(const struct git_line_changes *changes, struct git_lines *lines,
                    struct git_lines *parent) ABX_MUST_USE;

/* Makes room for one more item of an array. */
int git_lines_grow(void **items, size_t count, size_t *cap, size_t item_size) ABX_MUST_USE;

#endif
