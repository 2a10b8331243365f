/* Runs the program of a pattern on a path: all branches at once, so that no pattern takes long. See glob.h. */
#include "prim/glob_program.h"

#include "base/utf8.h"

#include <string.h>

enum { PAST_UNICODE = 0x110000 };

uint32_t glob_next(const char *text, size_t len, size_t *out_len)
{
    const unsigned char *bytes = (const unsigned char *)text;
    bool valid = true;
    *out_len = 1;
    if (bytes[0] < 0x80)
        return bytes[0];
    *out_len = utf8_next(text, len, &valid);
    if (!valid) {
        *out_len = 1;
        return PAST_UNICODE + bytes[0];
    }
    uint32_t value = bytes[0] & (0x7Fu >> *out_len);
    for (size_t i = 1; i < *out_len; i++)
        value = value << 6 | (bytes[i] & 0x3Fu);
    return value;
}

/* The steps at which branches stand: only those that take a character, and the end. */
struct branches {
    uint16_t count;
    uint16_t steps[GLOB_STEPS_MAX];
};

struct run {
    const struct glob *glob;
    const char *start, *at;                 /* the path, and how far it was read */
    uint64_t seen[GLOB_STEPS_MAX / 64 + 1]; /* the steps that were added at this place already */
};

/* Adds the step and what is reached from it without taking a character. */
static void add(struct run *run, struct branches *branches, uint16_t step)
{
    uint16_t stack[GLOB_STEPS_MAX], depth = 0; /* no deeper than there are splits */
    stack[depth++] = step;
    while (depth > 0) {
        uint16_t at = stack[--depth];
        if (run->seen[at / 64] >> at % 64 & 1)
            continue;
        run->seen[at / 64] |= UINT64_C(1) << at % 64;
        const struct glob_step *found = &run->glob->steps[at];
        bool segment = run->at == run->start || run->at[-1] == '/';
        if (found->op == GLOB_SPLIT || (found->op == GLOB_SEGMENT && segment))
            stack[depth++] = (uint16_t)(at + 1);
        if (found->op == GLOB_SPLIT || found->op == GLOB_JUMP)
            stack[depth++] = found->to;
        else if (found->op != GLOB_SEGMENT)
            branches->steps[branches->count++] = at;
    }
}

static bool in_ranges(const struct glob *glob, const struct glob_step *step, uint32_t value)
{
    for (uint32_t i = 0; i < step->value; i++)
        if (value >= glob->ranges[step->to + i].first && value <= glob->ranges[step->to + i].last)
            return true;
    return false;
}

static bool takes(const struct glob *glob, const struct glob_step *step, uint32_t value)
{
    switch ((enum glob_op)step->op) {
    case GLOB_CHAR:
        return value == step->value;
    case GLOB_ANY:
        return value != '/';
    case GLOB_ANY_PATH:
        return true;
    case GLOB_SET:
        return value != '/' && in_ranges(glob, step, value) != step->negated;
    default:
        return false;
    }
}

bool glob_matches(const struct glob *glob, const char *relative, size_t len)
{
    const char *slash = glob->whole_path ? NULL : memrchr(relative, '/', len), *end = relative + len;
    struct run run = {.glob = glob};
    size_t seen_bytes = (glob->step_count / 64u + 1) * sizeof *run.seen;
    struct branches sets[2], *now = &sets[0], *next = &sets[1];
    run.start = run.at = slash ? slash + 1 : relative;
    now->count = 0;
    add(&run, now, 0);
    while (run.at < end && now->count > 0) {
        size_t step_len;
        uint32_t value = glob_next(run.at, (size_t)(end - run.at), &step_len);
        run.at += step_len;
        memset(run.seen, 0, seen_bytes);
        next->count = 0;
        for (uint16_t i = 0; i < now->count; i++)
            if (takes(glob, &glob->steps[now->steps[i]], value))
                add(&run, next, (uint16_t)(now->steps[i] + 1));
        struct branches *other = now;
        now = next;
        next = other;
    }
    for (uint16_t i = 0; run.at == end && i < now->count; i++)
        if (glob->steps[now->steps[i]].op == GLOB_END)
            return true;
    return false;
}
