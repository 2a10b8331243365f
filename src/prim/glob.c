/* Reads patterns for names of files, for listings and searches; see glob.h. */
#include "prim/glob_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct glob *glob;
    const char *at, *end;
    int nesting, alternatives;
    struct err *err;
};

static int refuse(struct reader *reader, const char *why)
{
    return err_set(reader->err, ERR_INVALID_REQUEST, "not a glob pattern: %s", why);
}

static struct glob_step *emit(struct reader *reader, enum glob_op op)
{
    struct glob_step *step = &reader->glob->steps[reader->glob->step_count++];
    *step = (struct glob_step){.op = (uint8_t)op};
    return step;
}

static uint32_t take(struct reader *reader)
{
    size_t len;
    uint32_t value = glob_next(reader->at, (size_t)(reader->end - reader->at), &len);
    reader->at += len;
    return value;
}

/* Zero or more of op. */
static void emit_repeated(struct reader *reader, enum glob_op op)
{
    uint16_t start = reader->glob->step_count;
    emit(reader, GLOB_SPLIT)->to = (uint16_t)(start + 3);
    emit(reader, op);
    emit(reader, GLOB_JUMP)->to = start;
}

static void read_stars(struct reader *reader)
{
    int stars = 0;
    for (; reader->at < reader->end && *reader->at == '*'; reader->at++)
        stars++;
    emit_repeated(reader, stars == 1 ? GLOB_ANY : GLOB_ANY_PATH);
    if (stars > 1 && reader->at < reader->end && *reader->at == '/') {
        reader->at++;
        emit(reader, GLOB_SEGMENT);
    }
}

/* One member of a set, escaped or not. */
static int read_member(struct reader *reader, uint32_t *out)
{
    if (reader->at < reader->end && *reader->at == '\\')
        reader->at++;
    if (reader->at == reader->end)
        return refuse(reader, "a [ without its ]");
    *out = take(reader);
    return 0;
}

static int read_range(struct reader *reader)
{
    struct glob_range *range = &reader->glob->ranges[reader->glob->range_count];
    if (reader->end - reader->at > 1 && reader->at[0] == '[' && reader->at[1] == ':')
        return refuse(reader, "[: :] is not known here, write the characters");
    if (read_member(reader, &range->first) != 0)
        return -1;
    range->last = range->first;
    if (reader->end - reader->at > 1 && reader->at[0] == '-' && reader->at[1] != ']') {
        reader->at++;
        if (read_member(reader, &range->last) != 0)
            return -1;
    }
    if (range->last < range->first)
        return refuse(reader, "a range in [ ] runs backwards");
    reader->glob->range_count++;
    return 0;
}

/* As in shells, a ] that comes first is a member. */
static int read_set(struct reader *reader)
{
    struct glob_step *step = emit(reader, GLOB_SET);
    step->to = reader->glob->range_count;
    reader->at++;
    if (reader->at < reader->end && (*reader->at == '!' || *reader->at == '^')) {
        step->negated = true;
        reader->at++;
    }
    do {
        if (read_range(reader) != 0)
            return -1;
    } while (reader->at < reader->end && *reader->at != ']');
    if (reader->at == reader->end)
        return refuse(reader, "a [ without its ]");
    reader->at++;
    step->value = (uint32_t)(reader->glob->range_count - step->to);
    return 0;
}

static int read_sequence(struct reader *reader);

/* {a,b,c}: split to b's split; a; jump to the end; split to c; b; jump to the end; c. Until the end is known, the jumps
 * are a list through `to`. */
static int read_alternatives(struct reader *reader)
{
    if (++reader->nesting > GLOB_NESTING_MAX)
        return refuse(reader, "{ } nested too deep");
    struct glob_step *steps = reader->glob->steps;
    uint16_t jumps = 0; /* no jump stands at 0, a split comes before it */
    do {
        if (++reader->alternatives > GLOB_ALTERNATIVES_MAX)
            return refuse(reader, "too many alternatives in { }");
        uint16_t split = reader->glob->step_count;
        reader->at++;
        emit(reader, GLOB_SPLIT);
        if (read_sequence(reader) != 0)
            return -1;
        if (reader->at == reader->end)
            return refuse(reader, "a { without its }");
        if (*reader->at == ',') {
            uint16_t jump = reader->glob->step_count;
            emit(reader, GLOB_JUMP)->to = jumps;
            jumps = jump;
            steps[split].to = reader->glob->step_count;
        } else {
            steps[split] = (struct glob_step){.op = GLOB_JUMP, .to = (uint16_t)(split + 1)}; /* the last one */
        }
    } while (*reader->at == ',');
    reader->at++;
    while (jumps != 0) {
        uint16_t next = steps[jumps].to;
        steps[jumps].to = reader->glob->step_count;
        jumps = next;
    }
    reader->nesting--;
    return 0;
}

static int read_char(struct reader *reader)
{
    if (*reader->at == '\\' && ++reader->at == reader->end)
        return refuse(reader, "a \\ at its end");
    uint32_t value = take(reader);
    emit(reader, GLOB_CHAR)->value = value;
    return 0;
}

/* Up to the end, or to the ',' or '}' that ends an alternative. */
static int read_sequence(struct reader *reader)
{
    int failed = 0;
    while (failed == 0 && reader->at < reader->end) {
        switch (*reader->at) {
        case '*':
            read_stars(reader);
            break;
        case '?':
            reader->at++;
            emit(reader, GLOB_ANY);
            break;
        case '[':
            failed = read_set(reader);
            break;
        case '{':
            failed = read_alternatives(reader);
            break;
        case ',':
        case '}':
            if (reader->nesting > 0)
                return 0;
            /* fall through */
        default:
            failed = read_char(reader);
        }
    }
    return failed;
}

static void trim(const char **pattern, size_t *len)
{
    if (*len > 1 && (*pattern)[0] == '.' && (*pattern)[1] == '/') {
        (*pattern)++;
        (*len)--;
    }
    while (*len > 1 && (*pattern)[*len - 1] == '/' && (*pattern)[*len - 2] != '\\')
        (*len)--;
}

struct glob *glob_new(const char *pattern, size_t len, struct err *err)
{
    trim(&pattern, &len);
    if (len == 0 || len > GLOB_LEN_MAX || (len == 1 && *pattern == '/')) {
        err_set(err, ERR_INVALID_REQUEST, "a glob pattern has 1 to %d bytes, and more than a /", GLOB_LEN_MAX);
        return NULL;
    }
    bool whole_path = memchr(pattern, '/', len) != NULL;
    while (len > 0 && *pattern == '/') {
        pattern++;
        len--;
    }
    /* In one block: a set has no more ranges than the pattern bytes. */
    struct glob *glob = malloc(sizeof *glob + (3 * len + 1) * sizeof *glob->steps + len * sizeof *glob->ranges);
    if (!glob) {
        err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot read a glob pattern");
        return NULL;
    }
    *glob = (struct glob){.whole_path = whole_path};
    glob->ranges = (struct glob_range *)(glob->steps + 3 * len + 1);
    struct reader reader = {.glob = glob, .at = pattern, .end = pattern + len, .err = err};
    if (read_sequence(&reader) != 0) {
        free(glob);
        return NULL;
    }
    emit(&reader, GLOB_END);
    return glob;
}

void glob_free(struct glob *glob)
{
    free(glob);
}
