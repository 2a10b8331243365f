/* Loading the tables of a generation: what the files load_*.c share. For generation.c and them. */
#ifndef ABX_SCRIPT_LOAD_H
#define ABX_SCRIPT_LOAD_H

#include "base/arena.h"
#include "model/route.h"
#include "script/generation.h"
#include "script/schema_read.h"
#include "script/vm.h"

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

struct generation {
    struct vm vm;
    unsigned number;
    size_t references;
    struct arena arena; /* groups, routes, schemas and all their text */
    struct group *groups;
    size_t group_count;
    struct route **routes;
    size_t route_count, route_cap;
};

/* The file whose table is being read. */
struct source {
    const char *display; /* "lua/routes/core.lua" */
    const char *text;
    size_t len;
};

struct loader {
    const struct script_options *options;
    struct generation *generation;
    struct vm *vm;
    lua_State *L;
    struct faults *faults;
    struct arena scratch; /* sources; freed when all is loaded */
    struct source source;
    bool stop; /* the time for loading is over: no more chunk can run */
};

/* A fault in the current source. */
void load_fault(struct loader *loader, int line, const char *fmt, ...) ABX_PRINTF(3, 4);

/* ---- load_source.c ---- */

/* Reads and runs the file; leaves its one result, a table. False: a fault was added and nothing is left. */
bool load_chunk(struct loader *loader, const char *path);
/* Names of the *.lua files in lua_dir/folder, sorted, without ".lua", ends with NULL; in scratch. */
char **load_names(struct loader *loader, const char *folder);
/* lua_dir/folder/name.lua, in scratch. */
const char *load_path(struct loader *loader, const char *folder, const char *name);
/* The first line with `key = "text"`; and at or after `from` with `key =`. 0: none. */
int load_line_of_member(const struct loader *loader, const char *key, const char *text);
int load_line_of_key(const struct loader *loader, const char *key, int from);

/* ---- load_keys.c ---- */

enum key_type { KEY_ANY, KEY_STRING, KEY_INTEGER, KEY_BOOLEAN, KEY_TABLE, KEY_FUNCTION };
struct key {
    const char *name; /* NULL ends the list */
    enum key_type type;
};
/* Adds a fault for each member with an unknown name or of a wrong type. Members 1 to n are passed over where list is
 * true. `what` begins each message ("route files.read"). */
void load_check_keys(struct loader *loader, int table, const struct key *keys, bool list, int line, const char *what);
/* Members of a table, raw; the default where missing or of a wrong type. Text is copied into the generation's arena. */
char *load_string(struct loader *loader, int table, const char *name);
bool load_bool(lua_State *L, int table, const char *name, bool dflt);
/* Adds a fault where it is out of range. */
lua_Integer load_int(struct loader *loader, int table, const char *name, lua_Integer dflt, lua_Integer min,
                     lua_Integer max, int line, const char *what);
/* Pushes the member; its type. */
int load_push(lua_State *L, int table, const char *name);
void load_set(lua_State *L, int table, const char *name); /* pops the value */
char *load_strdup(struct loader *loader, const char *text);
/* Appends the table at index to the list behind the registry reference. */
void load_list(struct loader *loader, int index, int list_ref);
bool load_good_name(const char *name, const char *more); /* [a-z0-9] first, then also `more` */

/* ---- the kinds of files ---- */

void load_groups(struct loader *loader);
void load_routes(struct loader *loader); /* packs too */
void load_commands(struct loader *loader);

/* load_schema.c: params of a route or command; faults are added. */
void load_params(struct loader *loader, int index, int line, const char *what, struct schema *out);
/* What may be answered: a schema, or schemas by status. Checked only. */
void load_returns(struct loader *loader, int index, int line, const char *what);

/* load_route_path.c: the parameters of "/a/{b}" one after the other, and the path's shape "/a/{}". */
enum { ROUTE_PATH_PARAMS_MAX = 8, ROUTE_PATH_MAX = 200 };
struct route_path {
    char shape[ROUTE_PATH_MAX + 1];
    char params[ROUTE_PATH_PARAMS_MAX][ROUTE_PATH_MAX + 1];
    size_t param_count;
};
/* 0, or -1 with the reason in *err. */
int load_route_path(const char *path, struct route_path *out, struct err *err) ABX_MUST_USE;

#endif
