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
    const char *text;    /* ends with NUL */
};

/* What the faults are about that are found now: a route, a command, a group, or a file as a whole. */
struct subject {
    char what[140];          /* "route files.read": begins their messages */
    int line;                /* of its name */
    const char *first, *end; /* its braces in the source's text, and behind them */
};

/* Where the chunk stood when it raised its last error; line 0: nowhere. */
struct place {
    char file[200];
    int line;
};

struct loader {
    const struct script_options *options;
    struct generation *generation;
    struct vm *vm;
    lua_State *L;
    struct faults *faults;
    struct arena scratch; /* sources; freed when all is loaded */
    struct source source;
    struct subject subject;
    struct place raised;
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

/* ---- load_subject.c ---- */

/* The whole file as the subject. */
void load_subject_file(struct loader *loader, const char *what);
/* The table that holds the nth `key = "text"` (from 1). False: it is not written like that, and nothing changes. */
bool load_subject_find(struct loader *loader, const char *what, const char *key, const char *text, int nth);
/* A fault of the subject: in the line where `key =` stands, its own line where that is NULL or not to be found. */
void load_fault_at(struct loader *loader, const char *key, const char *fmt, ...) ABX_PRINTF(3, 4);
/* The same for a member of the table behind `outer =`, at any depth. */
void load_fault_in(struct loader *loader, const char *outer, const char *key, const char *fmt, ...) ABX_PRINTF(4, 5);

/* ---- load_keys.c ---- */

enum key_type { KEY_ANY, KEY_STRING, KEY_INTEGER, KEY_BOOLEAN, KEY_TABLE, KEY_FUNCTION };
struct key {
    const char *name; /* NULL ends the list */
    enum key_type type;
};
/* Adds a fault for each member with an unknown name or of a wrong type; a text with NUL is one. Members 1 to n are
 * passed over where list is true. */
void load_check_keys(struct loader *loader, int table, const struct key *keys, bool list);
/* Members of a table, raw; the default where missing or of a wrong type. Text is copied into the generation's arena. */
char *load_string(struct loader *loader, int table, const char *name);
bool load_bool(lua_State *L, int table, const char *name, bool dflt);
/* Adds a fault where it is out of range. */
lua_Integer load_int(struct loader *loader, int table, const char *name, lua_Integer dflt, lua_Integer min,
                     lua_Integer max);
/* Pushes the member; its type. */
int load_push(lua_State *L, int table, const char *name);
void load_set(lua_State *L, int table, const char *name); /* pops the value */
char *load_strdup(struct loader *loader, const char *text);
/* Appends the table at index to the list behind the registry reference. */
void load_list(struct loader *loader, int index, int list_ref);
bool load_good_name(const char *name, const char *more); /* [a-z0-9] first, then also `more` */

/* ---- the kinds of files ---- */

void load_groups(struct loader *loader);
/* "commands, core": their names, cut to fit. */
void load_group_names(const struct loader *loader, char *out, size_t size);
void load_routes(struct loader *loader); /* packs too */
void load_commands(struct loader *loader);

/* load_schema.c: params of a route or command; faults are added. */
void load_params(struct loader *loader, int index, struct schema *out);
/* What may be answered: a schema, or schemas by status. Checked only. */
void load_returns(struct loader *loader, int index);

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
