/* abx.proc: starting programs. Everything that comes from a client is checked here: the directory, the environment, the
 * arguments; bind_run has what can be done with a run. */
#include "bind/bind_proc.h"
#include "bind/bind.h"
#include "bind/bind_run.h"
#include "bind/bind_session.h"
#include "bind/host.h"
#include "script/bindings.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#define PROTECTED_PREFIX "ABX_SERVER_"

enum { ARGS_MAX = 65536 };

static int refuse(struct err *err, enum err_code code, const char *field, const char *text)
{
    err_set(err, code, "%s", text);
    return err_field(err, field);
}

/* The vector lives in a userdata that is left on the stack; the strings stay in their table. NULL with *err. */
static char **read_argv(lua_State *L, struct err *err)
{
    int table = lua_gettop(L);
    luaL_checktype(L, table, LUA_TTABLE);
    lua_thaw(L, table);
    lua_Unsigned count = lua_rawlen(L, table);
    if (count == 0 || count > ARGS_MAX) {
        refuse(err, count == 0 ? ERR_INVALID_REQUEST : ERR_PAYLOAD_TOO_LARGE, "argv",
               count == 0 ? "argv needs a program" : "argv may have at most 65536 words");
        return NULL;
    }
    char **argv = lua_newuserdatauv(L, (count + 1) * sizeof(*argv), 0);
    for (lua_Unsigned i = 0; i < count; i++) {
        size_t len;
        if (lua_rawgeti(L, table, (lua_Integer)i + 1) != LUA_TSTRING)
            luaL_error(L, "argv[%d] must be a string, not a %s", (int)i, luaL_typename(L, -1));
        argv[i] = (char *)lua_tolstring(L, -1, &len);
        if (strlen(argv[i]) != len) {
            char field[32];
            snprintf(field, sizeof(field), "argv[%d]", (int)i);
            refuse(err, ERR_INVALID_REQUEST, field, "an argument cannot hold a NUL byte");
            return NULL;
        }
        lua_pop(L, 1);
    }
    argv[count] = NULL;
    return argv;
}

int bind_proc_check_var(lua_State *L, struct err *err)
{
    size_t name_len, len;
    if (lua_type(L, -2) != LUA_TSTRING)
        luaL_error(L, "names of variables must be strings");
    const char *name = lua_tolstring(L, -2, &name_len);
    if (!env_name_valid(name, name_len))
        return refuse(err, ERR_INVALID_REQUEST, "env",
                      "names of variables are letters, digits and underscores, no digit first");
    if (strncmp(name, PROTECTED_PREFIX, strlen(PROTECTED_PREFIX)) == 0)
        return refuse(err, ERR_PROTECTED_VARIABLE, "env", PROTECTED_PREFIX "* is the server's own");
    if (lua_is_null(L, -1))
        return 0;
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, "variable %s must be a string or null, not a %s", name, luaL_typename(L, -1));
    const char *value = lua_tolstring(L, -1, &len);
    if (strlen(value) != len) {
        char field[64];
        snprintf(field, sizeof(field), "env.%s", name);
        return refuse(err, ERR_INVALID_REQUEST, field, "the value of a variable cannot hold a NUL byte");
    }
    return 0;
}

/* Applies the table of variables on top to env. */
static int apply_env(lua_State *L, struct env_block *env, struct err *err)
{
    int table = lua_gettop(L);
    luaL_checktype(L, table, LUA_TTABLE);
    lua_thaw(L, table);
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
        if (bind_proc_check_var(L, err) != 0)
            return -1;
        const char *name = lua_tostring(L, -2);
        if (lua_is_null(L, -1))
            env_block_unset(env, name);
        else if (env_block_set(env, name, lua_tostring(L, -1)) != 0)
            return err_set(err, ERR_INTERNAL, "out of memory for an environment");
    }
    return 0;
}

/* Into spec->env: the server's own block where nothing is changed. */
static int make_env(lua_State *L, struct host *host, struct session_turn *turn, struct run *run,
                    struct process_spec *spec, struct err *err)
{
    const struct env_block *base = process_table_env(host->processes);
    bool has_env = lua_getfield(L, 1, "env") != LUA_TNIL;
    spec->env = base;
    if (turn == NULL && !has_env)
        return 0;
    spec->env = &run->env;
    if (base->count > 0 && env_block_inherit(&run->env, base->vars) != 0)
        return err_set(err, ERR_INTERNAL, "out of memory for an environment");
    if (turn != NULL && session_apply_env(turn, &run->env) != 0)
        return err_set(err, ERR_INTERNAL, "out of memory for an environment");
    return has_env ? apply_env(L, &run->env, err) : 0; /* what is on the stack goes with the function */
}

int bind_proc_open_cwd(const struct host *host, const char *cwd, size_t len, struct err *err)
{
    int fd = confine_open_dir(host->confine, cwd, len, err);
    if (fd >= 0)
        return fd;
    switch (err->code) {
    case ERR_FILE_NOT_FOUND:
    case ERR_NOT_A_DIRECTORY:
    case ERR_NOT_A_REGULAR_FILE:
    case ERR_PERMISSION_DENIED:
        err->code = ERR_BAD_CWD;
        break;
    default:
        break;
    }
    return err_field(err, "cwd");
}

/* The caller's directory, else the session's, else the base; its name goes to spec->cwd or to name. */
static int find_cwd(lua_State *L, struct host *host, struct session_turn *turn, struct run *run,
                    struct process_spec *spec, char name[PATH_MAX], struct err *err)
{
    size_t len = 0;
    const char *cwd = lua_field_string(L, 1, "cwd", &len);
    spec->cwd = confine_base_dir(host->confine);
    if (cwd == NULL && turn == NULL) {
        spec->cwd_fd = confine_base_fd(host->confine);
        return 0;
    }
    run->cwd_fd = spec->cwd_fd = cwd != NULL ? bind_proc_open_cwd(host, cwd, len, err) : session_cwd(turn, err);
    if (run->cwd_fd < 0)
        return -1;
    if (confine_path_of(run->cwd_fd, name, PATH_MAX, err) == 0)
        spec->cwd = name;
    return 0;
}

static const char *const spec_keys[] = {"command",    "argv",       "cwd",  "env",           "stdin",
                                        "timeout_ms", "kind",       "tag",  "capture_bytes", "session",
                                        "pace",       "keep_stdin", "cols", "rows",          NULL};
/* What only programs with pipes, and only those on a terminal have a use for. */
static const char *const pipe_keys[] = {"stdin", "keep_stdin", "capture_bytes", "session", "pace", NULL},
                         *const terminal_keys[] = {"cols", "rows", NULL};

/* A helper works for the server: it is in no list and forgotten at its end. */
static enum process_kind read_kind(lua_State *L)
{
    const char *kind = lua_field_string(L, 1, "kind", NULL);
    if (kind == NULL || strcmp(kind, "process") == 0)
        return PROCESS_PROCESS;
    if (strcmp(kind, "helper") == 0)
        return PROCESS_HELPER;
    if (strcmp(kind, "terminal") == 0)
        return PROCESS_TERMINAL;
    if (strcmp(kind, "shell") != 0)
        luaL_error(L, "'kind' must be shell, process, terminal or helper, not %s", kind);
    return PROCESS_SHELL;
}

/* Zero for a program that is not on a terminal. */
static struct terminal_size read_size(lua_State *L, enum process_kind kind)
{
    bool terminal = kind == PROCESS_TERMINAL;
    for (const char *const *key = terminal ? pipe_keys : terminal_keys; *key != NULL; key++) {
        if (lua_getfield(L, 1, *key) != LUA_TNIL)
            luaL_error(L, "'%s' %s", *key, terminal ? "means nothing for a terminal" : "is for terminals");
        lua_pop(L, 1);
    }
    if (!terminal)
        return (struct terminal_size){0};
    return (struct terminal_size){.cols = (unsigned)lua_field_int(L, 1, "cols", 80, 1, TERMINAL_SIZE_MAX),
                                  .rows = (unsigned)lua_field_int(L, 1, "rows", 24, 1, TERMINAL_SIZE_MAX)};
}

/* Fills what can be read without failing; misuse raises. */
static void read_spec(lua_State *L, struct process_spec *spec)
{
    spec->kind = read_kind(L);
    spec->command = lua_field_string(L, 1, "command", &spec->command_len);
    spec->stdin_bytes = lua_field_string(L, 1, "stdin", &spec->stdin_len);
    spec->stdin_fd = -1;
    spec->timeout_ms = (unsigned)lua_field_int(L, 1, "timeout_ms", 0, 0, INT32_MAX);
    spec->tag = lua_field_string(L, 1, "tag", NULL);
    spec->capture_bytes = (size_t)lua_field_int(L, 1, "capture_bytes", 0, 0, 64 * 1024 * 1024);
    spec->pace = lua_field_bool(L, 1, "pace", false);
    spec->keep_stdin = lua_field_bool(L, 1, "keep_stdin", false);
}

/* On a terminal of that size, or with pipes. */
static struct process *start_process(struct host *host, const struct process_spec *spec, struct terminal_size size,
                                     struct err *err)
{
    if (spec->kind != PROCESS_TERMINAL)
        return process_start(host->processes, spec, err);
    if (host->terminals != NULL)
        return terminals_start(host->terminals, spec, size, err);
    err_set(err, ERR_UNAVAILABLE, "terminals are switched off");
    return NULL;
}

/* Leaves run on top of the stack. */
static int start_run(lua_State *L, struct host *host, struct session_turn *turn, struct process_spec *spec,
                     struct terminal_size size, struct run *run, struct err *err)
{
    int top = lua_gettop(L);
    char cwd[PATH_MAX];
    if (find_cwd(L, host, turn, run, spec, cwd, err) != 0 || make_env(L, host, turn, run, spec, err) != 0)
        return -1;
    lua_settop(L, top);
    spec->command_prefix = turn != NULL ? session_prologue(turn) : NULL;
    struct process *process = start_process(host, spec, size, err);
    if (process == NULL)
        return -1;
    run->process = process_ref(process);
    if (turn != NULL && session_bind(turn, process, err) != 0) {
        process_stop(process);
        return -1;
    }
    return 0;
}

/* proc.start{command= | argv={}, cwd=, env={}, stdin=, timeout_ms=, kind="shell"|"process"|"terminal", tag=,
 * capture_bytes=, session=turn, pace=, keep_stdin=, cols=, rows=} -> run | nil, code, message, field */
static int bind_proc_start(lua_State *L)
{
    struct host *host = script_host(L);
    struct process_spec spec = {0};
    struct err err = {0};
    task_check(L);
    lua_check_keys(L, 1, spec_keys, "proc.start");
    lua_settop(L, 1);
    read_spec(L, &spec);
    struct terminal_size size = read_size(L, spec.kind);
    lua_getfield(L, 1, "session");
    struct session_turn *turn = lua_isnil(L, -1) ? NULL : bind_session_turn(L, -1);
    lua_getfield(L, 1, "argv");
    bool has_argv = !lua_isnil(L, -1);
    if (has_argv == (spec.command != NULL))
        luaL_error(L, "exactly one of 'command' and 'argv' is needed");
    if (turn != NULL && (has_argv || !session_usable(turn))) {
        refuse(&err, ERR_INVALID_REQUEST, "session",
               has_argv ? "a session needs a command: argv runs without a shell"
                        : "one turn of a session is for one run");
        return lua_push_err(L, &err);
    }
    if (has_argv && (spec.argv = read_argv(L, &err)) == NULL)
        return lua_push_err(L, &err);

    struct run *run = bind_run_push(L);
    run->output.captures = spec.capture_bytes > 0;
    int failed = start_run(L, host, turn, &spec, size, run, &err);
    bind_run_started(run);
    return failed != 0 ? lua_push_err(L, &err) : 1;
}

int bind_proc_open(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"start", bind_proc_start},       {"list", bind_proc_list},
        {"describe", bind_proc_describe}, {"signal", bind_proc_signal},
        {"output", bind_proc_output},     {"follow", bind_proc_follow},
        {"input", bind_proc_input},       {NULL, NULL},
    };
    bind_run_open(L);
    bind_proc_output_open(L);
    luaL_newlib(L, functions);
    return 1;
}
