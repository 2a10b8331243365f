/* The operator's registered commands. Called by generation.c. */
#include "script/load.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

enum { TIMEOUT_MAX_MS = 24 * 60 * 60 * 1000 };

static const struct key command_keys[] = {
    {"name", KEY_STRING},
    {"description", KEY_STRING},
    {"hidden", KEY_BOOLEAN},
    {"params", KEY_TABLE},
    {"argv", KEY_TABLE},
    {"run", KEY_FUNCTION},
    {"timeout_ms", KEY_INTEGER},
    {"cwd", KEY_ANY},
    {"env", KEY_TABLE},
    {"stdin", KEY_ANY},
    {NULL, KEY_ANY},
};
/* Those that say how the program of `argv` runs. */
static const char *const program_keys[] = {"timeout_ms", "cwd", "env", "stdin", NULL};
static const struct key no_keys[] = {{NULL, KEY_ANY}};

struct command {
    struct loader *loader;
    int table;
    struct schema params;
};

static bool is_scalar(enum schema_type type)
{
    return type != SCHEMA_ARRAY && type != SCHEMA_OBJECT && type != SCHEMA_MAP;
}

/* Only argv has room for the items of an array, and only a path or string can name a directory. */
static void check_arg_type(const struct command *command, const char *key, const struct schema_field *field)
{
    const struct schema *schema = &field->schema;
    bool cwd = strcmp(key, "cwd") == 0, argv = strcmp(key, "argv") == 0;
    bool good = is_scalar(schema->type);
    if (cwd)
        good = schema->type == SCHEMA_PATH || schema->type == SCHEMA_STRING;
    else if (argv && schema->type == SCHEMA_ARRAY)
        good = schema->items == NULL || is_scalar(schema->items->type);
    if (!good)
        load_fault_at(command->loader, key, "'%s' uses arg\"%.60s\", which must be %s", key, field->name,
                      cwd    ? "a path or a string"
                      : argv ? "a plain value or an array of them"
                             : "a plain value");
}

static void check_arg(const struct command *command, const char *key, const char *name, size_t len)
{
    const struct schema_field *field = schema_field_find(&command->params, name, len);
    if (field == NULL)
        load_fault_at(command->loader, key, "'%s' uses arg\"%.60s\", which is not declared in params", key, name);
    else
        check_arg_type(command, key, field);
}

/* The value on top must be a string or arg"name" of a declared parameter. */
static void check_word(const struct command *command, const char *key)
{
    struct loader *loader = command->loader;
    lua_State *L = loader->L;
    if (lua_type(L, -1) == LUA_TSTRING) {
        if (strlen(lua_tostring(L, -1)) != lua_rawlen(L, -1) && strcmp(key, "stdin") != 0)
            load_fault_at(loader, key, "'%s' holds a NUL byte, which no program can be given", key);
        return;
    }
    if (!lua_istable(L, -1)) {
        load_fault_at(loader, key, "'%s' takes strings and arg\"name\", not a %s", key, luaL_typename(L, -1));
        return;
    }
    if (load_push(L, lua_gettop(L), "arg") != LUA_TSTRING)
        load_fault_at(loader, key, "'%s' takes strings and arg\"name\", not other tables", key);
    else
        check_arg(command, key, lua_tostring(L, -1), lua_rawlen(L, -1));
    lua_pop(L, 1);
}

static void check_argv(const struct command *command)
{
    lua_State *L = command->loader->L;
    int argv = lua_gettop(L);
    size_t count = lua_rawlen(L, argv);
    if (count == 0 || lua_rawgeti(L, argv, 1) != LUA_TSTRING || lua_rawlen(L, -1) == 0)
        load_fault_at(command->loader, "argv", "'argv' must begin with the program, a plain string");
    lua_settop(L, argv);
    lua_Integer words = 0, last = 0;
    for (lua_pushnil(L); lua_next(L, argv); lua_pop(L, 1)) {
        if (!lua_isinteger(L, -2)) {
            load_fault_at(command->loader, "argv", "'argv' must be a list");
            continue;
        }
        words++;
        last = lua_tointeger(L, -2) > last ? lua_tointeger(L, -2) : last;
        check_word(command, "argv");
    }
    if (last > words)
        load_fault_at(command->loader, "argv", "'argv' has a hole: one of its words is nil");
}

/* As the environment of a program takes it. */
static bool is_variable(const char *name, size_t len)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return len > 0 && strlen(name) == len && strspn(name, allowed) == len && (name[0] < '0' || name[0] > '9');
}

static void check_env(const struct command *command)
{
    lua_State *L = command->loader->L;
    int env = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, env); lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
        if (name[0] == '\0')
            load_fault_at(command->loader, "env", "'env' must hold strings by name");
        else if (!is_variable(name, lua_rawlen(L, -2)))
            load_fault_at(command->loader, "env",
                          "'env' sets '%.60s': names are letters, digits and underscores, no digit first", name);
        else if (strncmp(name, "ABX_SERVER_", strlen("ABX_SERVER_")) == 0)
            load_fault_at(command->loader, "env", "'env' sets %.60s, but ABX_SERVER_* is the server's own", name);
        else
            check_word(command, "env");
    }
}

static void check_no_program(const struct command *command)
{
    lua_State *L = command->loader->L;
    for (const char *const *key = program_keys; *key != NULL; key++) {
        if (load_push(L, command->table, *key) != LUA_TNIL)
            load_fault_at(command->loader, *key, "'%s' is for the program of 'argv': it does nothing for 'run'", *key);
        lua_pop(L, 1);
    }
}

static void check_action(const struct command *command)
{
    lua_State *L = command->loader->L;
    bool program = load_push(L, command->table, "argv") == LUA_TTABLE;
    if (program)
        check_argv(command);
    bool has_argv = !lua_isnil(L, -1);
    lua_pop(L, 1);
    bool has_run = load_push(L, command->table, "run") != LUA_TNIL;
    lua_pop(L, 1);
    if (has_argv == has_run)
        load_fault_at(command->loader, "argv", "needs exactly one of 'argv' and 'run'");
    if (has_run && !has_argv)
        check_no_program(command);
    static const char *const words[] = {"cwd", "stdin"};
    for (size_t i = 0; i < 2; i++) {
        if (load_push(L, command->table, words[i]) != LUA_TNIL)
            check_word(command, words[i]);
        lua_pop(L, 1);
    }
    if (load_push(L, command->table, "env") == LUA_TTABLE)
        check_env(command);
    lua_pop(L, 1);
}

/* How many commands of that name abx.tables has already, and the line of the first. */
static int count_named(struct loader *loader, const char *name, int *out_line)
{
    lua_State *L = loader->L;
    int count = 0;
    lua_rawgeti(L, LUA_REGISTRYINDEX, loader->vm->commands);
    int list = lua_gettop(L);
    for (size_t i = 1; i <= lua_rawlen(L, list); i++) {
        lua_rawgeti(L, list, (lua_Integer)i);
        if (load_push(L, list + 1, "name") == LUA_TSTRING && strcmp(lua_tostring(L, -1), name) == 0) {
            load_push(L, list + 1, "line");
            if (count++ == 0)
                *out_line = (int)lua_tointeger(L, -1);
        }
        lua_settop(L, list);
    }
    lua_pop(L, 1);
    return count;
}

/* Makes the command the subject of what follows. */
static void begin_command(struct loader *loader, const char *name)
{
    char what[120];
    int first_line = 0, earlier = name ? count_named(loader, name, &first_line) : 0;
    snprintf(what, sizeof(what), "command %.80s", name ? name : "?");
    load_subject_file(loader, what);
    if (name != NULL)
        load_subject_find(loader, what, "name", name, earlier + 1);
    if (name == NULL || !load_good_name(name, "_-"))
        load_fault_at(loader, "name", "'name' must be [a-z0-9][a-z0-9_-]*");
    else if (earlier > 0)
        load_fault_at(loader, "name", "the name is taken already (%s:%d)", loader->source.display, first_line);
}

/* The command is on top of the stack, and stays there. */
static void load_command(struct loader *loader)
{
    lua_State *L = loader->L;
    struct command command = {.loader = loader, .table = lua_gettop(L)};
    begin_command(loader, load_string(loader, command.table, "name"));
    load_check_keys(loader, command.table, command_keys, false);
    if (load_push(L, command.table, "description") == LUA_TNIL)
        load_fault_at(loader, NULL, "'description' is missing");
    lua_pop(L, 1);
    load_int(loader, command.table, "timeout_ms", 0, 0, TIMEOUT_MAX_MS);
    if (load_push(L, command.table, "params") == LUA_TTABLE)
        load_params(loader, lua_gettop(L), &command.params);
    lua_pop(L, 1);
    check_action(&command);
    lua_pushinteger(L, loader->subject.line);
    load_set(L, command.table, "line");
    load_list(loader, command.table, loader->vm->commands);
}

void load_commands(struct loader *loader)
{
    lua_State *L = loader->L;
    if (loader->options->commands_file == NULL || !load_chunk(loader, loader->options->commands_file))
        return;
    int table = lua_gettop(L);
    load_subject_file(loader, "commands");
    load_check_keys(loader, table, no_keys, true);
    size_t count = lua_rawlen(L, table);
    for (size_t i = 1; i <= count; i++) {
        if (lua_rawgeti(L, table, (lua_Integer)i) == LUA_TTABLE)
            load_command(loader);
        else
            load_fault(loader, 1, "entry %zu must be a table, not a %s", i, luaL_typename(L, -1));
        lua_settop(L, table);
    }
    lua_pop(L, 1);
}
