/* abx.pty: terminals as their routes see them; proc.start starts them. Called by lua/routes/pty.lua. */
#include "bind/bind_pty.h"

#include "bind/bind.h"
#include "bind/host.h"
#include "script/bindings.h"

#include <lauxlib.h>
#include <string.h>

struct terminals *bind_pty_terminals(lua_State *L, struct err *err)
{
    const struct host *host = script_host(L);
    if (host->terminals == NULL)
        err_set(err, ERR_UNAVAILABLE, "terminals are switched off");
    return host->terminals;
}

struct process *bind_pty_find(lua_State *L, int id_arg, struct terminals *terminals, struct err *err)
{
    size_t len;
    const char *id = luaL_checklstring(L, id_arg, &len);
    struct process *process = strlen(id) == len ? terminals_find(terminals, id) : NULL; /* a NUL is in no id */
    if (process == NULL) {
        err_set(err, ERR_TERMINAL_NOT_FOUND, "no terminal has the id %.40s; GET /pty lists them", id);
        err_field(err, "id");
    }
    return process;
}

/* pty.ticket(id) -> string | nil, code, message, field */
static int bind_pty_ticket(lua_State *L)
{
    struct err err = {0};
    char ticket[TICKET_BYTES];
    struct terminals *terminals = bind_pty_terminals(L, &err);
    struct process *process = terminals != NULL ? bind_pty_find(L, 1, terminals, &err) : NULL;
    if (process == NULL)
        return lua_push_err(L, &err);
    terminals_ticket(terminals, process, ticket);
    lua_pushstring(L, ticket);
    return 1;
}

int bind_pty_open(lua_State *L)
{
    static const luaL_Reg functions[] = {{"list", bind_pty_list},
                                         {"close", bind_pty_close},
                                         {"ticket", bind_pty_ticket},
                                         {"shell", bind_pty_shell},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
