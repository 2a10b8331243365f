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
static const struct key no_keys[] = {{NULL, KEY_ANY}};

struct command {
    struct loader *loader;
    int table, line;
    char what[120];
    struct schema params;
};

static void fault_at(const struct command *command, const char *key, const char *text)
{
    int line = load_line_of_key(command->loader, key, command->line);
    load_fault(command->loader, line ? line : command->line, "%s: %s", command->what, text);
}

/* The value on top must be a string or arg"name" of a declared parameter. */
static void check_word(const struct command *command, const char *key)
{
    lua_State *L = command->loader->L;
    char text[160];
    if (lua_type(L, -1) == LUA_TSTRING)
        return;
    if (!lua_istable(L, -1)) {
        snprintf(text, sizeof(text), "'%s' takes strings and arg\"name\", not a %s", key, luaL_typename(L, -1));
        fault_at(command, key, text);
        return;
    }
    if (load_push(L, lua_gettop(L), "arg") != LUA_TSTRING) {
        snprintf(text, sizeof(text), "'%s' takes strings and arg\"name\", not other tables", key);
        fault_at(command, key, text);
    } else if (schema_field_find(&command->params, lua_tostring(L, -1), lua_rawlen(L, -1)) == NULL) {
        snprintf(text, sizeof(text), "'%s' uses arg\"%.60s\", which is not declared in params", key,
                 lua_tostring(L, -1));
        fault_at(command, key, text);
    }
    lua_pop(L, 1);
}

static void check_argv(const struct command *command)
{
    lua_State *L = command->loader->L;
    int argv = lua_gettop(L);
    size_t count = lua_rawlen(L, argv);
    if (count == 0 || lua_rawgeti(L, argv, 1) != LUA_TSTRING || lua_rawlen(L, -1) == 0)
        fault_at(command, "argv", "'argv' must begin with the program, a plain string");
    lua_settop(L, argv);
    for (lua_pushnil(L); lua_next(L, argv); lua_pop(L, 1)) {
        if (!lua_isinteger(L, -2))
            fault_at(command, "argv", "'argv' must be a list");
        else
            check_word(command, "argv");
    }
}

static void check_env(const struct command *command)
{
    lua_State *L = command->loader->L;
    int env = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, env); lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
        if (name[0] == '\0' || strchr(name, '=') != NULL)
            fault_at(command, "env", "'env' must hold strings by name");
        else
            check_word(command, "env");
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
        fault_at(command, "argv", "needs exactly one of 'argv' and 'run'");
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

/* Whether abx.tables has a command of that name already. */
static bool is_taken(struct loader *loader, const char *name)
{
    lua_State *L = loader->L;
    bool taken = false;
    lua_rawgeti(L, LUA_REGISTRYINDEX, loader->vm->commands);
    int list = lua_gettop(L);
    for (size_t i = 1; i <= lua_rawlen(L, list) && !taken; i++) {
        lua_rawgeti(L, list, (lua_Integer)i);
        taken = load_push(L, list + 1, "name") == LUA_TSTRING && strcmp(lua_tostring(L, -1), name) == 0;
        lua_settop(L, list);
    }
    lua_pop(L, 1);
    return taken;
}

/* The command is on top of the stack, and stays there. */
static void load_command(struct loader *loader)
{
    lua_State *L = loader->L;
    struct command command = {.loader = loader, .table = lua_gettop(L)};
    const char *name = load_string(loader, command.table, "name");
    int line = name ? load_line_of_member(loader, "name", name) : 0;
    command.line = line ? line : 1;
    snprintf(command.what, sizeof(command.what), "command %.80s", name ? name : "?");
    load_check_keys(loader, command.table, command_keys, false, command.line, command.what);
    if (name == NULL || !load_good_name(name, "_-"))
        fault_at(&command, "name", "'name' must be [a-z0-9][a-z0-9_-]*");
    else if (is_taken(loader, name))
        fault_at(&command, "name", "the name is taken already");
    if (load_push(L, command.table, "description") == LUA_TNIL)
        fault_at(&command, "name", "'description' is missing");
    lua_pop(L, 1);
    load_int(loader, command.table, "timeout_ms", 0, 0, TIMEOUT_MAX_MS, command.line, command.what);
    if (load_push(L, command.table, "params") == LUA_TTABLE)
        load_params(loader, lua_gettop(L), command.line, command.what, &command.params);
    lua_pop(L, 1);
    check_action(&command);
    load_list(loader, command.table, loader->vm->commands);
}

void load_commands(struct loader *loader)
{
    lua_State *L = loader->L;
    if (loader->options->commands_file == NULL || !load_chunk(loader, loader->options->commands_file))
        return;
    int table = lua_gettop(L);
    load_check_keys(loader, table, no_keys, true, 1, "commands");
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
