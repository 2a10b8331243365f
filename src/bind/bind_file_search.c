/* fs.search: what a handler asks for, made into a job for prim/search. */
#include "base/loop.h"
#include "bind/bind_fs.h"
#include "prim/search.h"
#include "script/bindings.h"

#include <stdlib.h>
#include <string.h>

enum { EXCLUDE_MAX = 1000, RESULTS_MAX = 1000000, TIMEOUT_MAX_MS = 24 * 60 * 60 * 1000 };

struct search_job {
    struct fs_job job;
    struct search_options options; /* its texts point into `texts` */
    struct search_text *exclude;
    char *texts;
};

static int run(struct fs_job *base, struct err *err)
{
    struct search_job *job = (struct search_job *)base;
    return search_run(base->confine, &job->options, &base->cancelled, &base->answer, err);
}

static void job_free(struct fs_job *base)
{
    struct search_job *job = (struct search_job *)base;
    free(job->exclude);
    free(job->texts);
    free(job);
}

/* Fills in what is borrowed from the script's table at `table`; raises for misuse. */
static void read_options(lua_State *L, int table, struct search_options *options)
{
    options->path.text = lua_field_string(L, table, "path", &options->path.len);
    options->pattern.text = lua_field_string(L, table, "pattern", &options->pattern.len);
    options->glob.text = lua_field_string(L, table, "glob", &options->glob.len);
    options->regex = lua_field_bool(L, table, "regex", true);
    options->case_sensitive = lua_field_bool(L, table, "case_sensitive", true);
    options->context = (unsigned)lua_field_int(L, table, "context", 0, 0, 20);
    options->max_results = (size_t)lua_field_int(L, table, "max_results", 500, 1, RESULTS_MAX);
    /* From here on, so that waiting for a thread counts. */
    options->deadline_ns =
        loop_clock_ns() + (uint64_t)lua_field_int(L, table, "timeout_ms", 30000, 1, TIMEOUT_MAX_MS) * 1000000;
    if (!options->path.text)
        options->path = (struct search_text){".", 1};
    luaL_argcheck(L, options->pattern.text, table, "pattern is missing");
}

/* Pushes the array `exclude` of the table and answers its length; 0 without one. */
static size_t push_exclude(lua_State *L, int table)
{
    lua_getfield(L, table, "exclude");
    if (lua_isnil(L, -1))
        return 0;
    luaL_checktype(L, -1, LUA_TTABLE);
    lua_thaw(L, -1);
    size_t count = lua_rawlen(L, -1);
    luaL_argcheck(L, count <= EXCLUDE_MAX, table, "too many globs in exclude");
    for (size_t i = 1; i <= count; i++) {
        luaL_argcheck(L, lua_rawgeti(L, -1, (lua_Integer)i) == LUA_TSTRING, table, "exclude holds strings");
        lua_pop(L, 1);
    }
    return count;
}

static struct search_text copy_text(char **at, struct search_text text)
{
    struct search_text copy = {text.text ? *at : NULL, text.len};
    if (text.text)
        memcpy(*at, text.text, text.len);
    *at += text.text ? text.len : 0;
    return copy;
}

static struct search_text exclude_at(lua_State *L, size_t index)
{
    struct search_text text;
    lua_rawgeti(L, -1, (lua_Integer)index);
    text.text = lua_tolstring(L, -1, &text.len); /* the table holds it */
    lua_pop(L, 1);
    return text;
}

/* Copies all texts: the script may be gone before the job. exclude is on top of the stack. */
static int own_texts(lua_State *L, struct search_job *job)
{
    struct search_options *options = &job->options;
    size_t size = 1 + options->path.len + options->pattern.len + (options->glob.text ? options->glob.len : 0);
    for (size_t i = 0; i < options->exclude_count; i++)
        size += exclude_at(L, i + 1).len;
    char *at = job->texts = malloc(size);
    job->exclude = calloc(options->exclude_count + 1, sizeof(*job->exclude));
    if (!at || !job->exclude)
        return -1;
    options->path = copy_text(&at, options->path);
    options->pattern = copy_text(&at, options->pattern);
    options->glob = copy_text(&at, options->glob);
    for (size_t i = 0; i < options->exclude_count; i++)
        job->exclude[i] = copy_text(&at, exclude_at(L, i + 1));
    options->exclude = job->exclude;
    return 0;
}

/* fs.search{path=, pattern=, regex=, case_sensitive=, glob=, exclude=, context=, max_results=, timeout_ms=} -> raw JSON
 * | nil, code, message, field.  Yields. */
int bind_fs_search(lua_State *L)
{
    static const char *const keys[] = {"path",    "pattern", "regex",       "case_sensitive", "glob",
                                       "exclude", "context", "max_results", "timeout_ms",     NULL};
    struct search_options options = {.regex = true};
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_thaw(L, 1);
    lua_check_keys(L, 1, keys, "fs.search");
    read_options(L, 1, &options);
    options.exclude_count = push_exclude(L, 1);
    struct search_job *job = fs_job_new(L, sizeof(*job), run, job_free);
    job->options = options;
    if (own_texts(L, job) != 0) {
        job_free(&job->job);
        return luaL_error(L, "out of memory");
    }
    return fs_job_start(L, &job->job, FS_JOB_ON_LONG_THREADS, true);
}
