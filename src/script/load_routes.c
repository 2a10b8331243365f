/* Routes: the files in lua/routes, and the packs that are asked for. Called by generation.c, after the groups. */
#include "script/load.h"

#include <lauxlib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_BODY_LIMIT = 1024 * 1024, DEADLINE_MS = 60000, DEADLINE_MAX_MS = 24 * 60 * 60 * 1000 };

static const struct key route_keys[] = {
    {"method", KEY_STRING},       {"path", KEY_STRING},
    {"name", KEY_STRING},         {"group", KEY_STRING},
    {"summary", KEY_STRING},      {"description", KEY_STRING},
    {"params", KEY_TABLE},        {"rest", KEY_STRING},
    {"returns", KEY_TABLE},       {"errors", KEY_TABLE},
    {"body", KEY_STRING},         {"body_limit", KEY_INTEGER},
    {"status", KEY_INTEGER},      {"auth_required", KEY_BOOLEAN},
    {"streaming", KEY_BOOLEAN},   {"read_only", KEY_BOOLEAN},
    {"destructive", KEY_BOOLEAN}, {"idempotent", KEY_BOOLEAN},
    {"deadline_ms", KEY_INTEGER}, {"variants", KEY_TABLE},
    {"handler", KEY_FUNCTION},    {NULL, KEY_ANY},
};
static const struct key routes_file_keys[] = {{"group", KEY_STRING}, {NULL, KEY_ANY}};
static const struct key pack_file_keys[] = {
    {"name", KEY_STRING}, {"description", KEY_STRING}, {"group", KEY_STRING}, {NULL, KEY_ANY}};

/* One entry on its way into the generation. */
struct entry {
    struct loader *loader;
    int table; /* its place on the stack */
    bool method_known;
    const char *file_group, *pack; /* NULL where there is none */
    struct route *route;
    struct route_path path;
};

/* Makes the entry the subject of what follows: found by its name, else by its path, else by its handler. */
static void begin_entry(struct entry *entry)
{
    struct loader *loader = entry->loader;
    const struct route *route = entry->route;
    int named = 1, placed = 1; /* which occurrence is ours, where others of this file have the same */
    char what[120];
    for (size_t i = 0; i < loader->generation->route_count; i++) {
        const struct route *other = loader->generation->routes[i];
        if (strcmp(other->file, route->file) != 0)
            continue;
        named += other->name && route->name && strcmp(other->name, route->name) == 0;
        placed += other->path && route->path && strcmp(other->path, route->path) == 0;
    }
    snprintf(what, sizeof(what), "route %.100s", route->name ? route->name : route->path ? route->path : "?");
    load_subject_file(loader, what);
    if ((route->name && load_subject_find(loader, what, "name", route->name, named)) ||
        (route->path && load_subject_find(loader, what, "path", route->path, placed)))
        return;
    lua_Debug ar;
    if (load_push(loader->L, entry->table, "handler") == LUA_TFUNCTION) {
        lua_getinfo(loader->L, ">S", &ar);
        loader->subject.line = ar.linedefined > 0 ? ar.linedefined : 1;
    } else {
        lua_pop(loader->L, 1);
    }
}

static void check_present(struct entry *entry)
{
    static const char *const required[] = {"method", "path", "name", "summary", "handler"};
    for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
        if (load_push(entry->loader->L, entry->table, required[i]) == LUA_TNIL)
            load_fault_at(entry->loader, NULL, "'%s' is missing", required[i]);
        lua_pop(entry->loader->L, 1);
    }
}

static void read_identity(struct entry *entry)
{
    struct loader *loader = entry->loader;
    struct route *route = entry->route;
    struct err err;
    const char *method = load_string(loader, entry->table, "method");
    entry->method_known = method != NULL && method_parse(method, &route->method) == 0;
    if (method != NULL && !entry->method_known)
        load_fault_at(loader, "method", "'method' must be GET, POST, PUT, PATCH or DELETE");
    if (route->name != NULL && !load_good_name(route->name, "_."))
        load_fault_at(loader, "name", "'name' must be [a-z0-9_.]+, as in files.read");
    if (route->path != NULL && load_route_path(route->path, &entry->path, &err) != 0) {
        load_fault_at(loader, "path", "the path '%.60s' %s", route->path, err.text);
        entry->path = (struct route_path){0}; /* no use to look at its parameters */
    }
}

static void fault_unknown_group(struct loader *loader, const char *name)
{
    char known[256];
    load_group_names(loader, known, sizeof(known));
    load_fault_at(loader, "group", "unknown group '%.60s' (known: %s; a group is a file of lua/groups)", name, known);
}

static void read_group(struct entry *entry)
{
    struct loader *loader = entry->loader;
    const struct generation *generation = loader->generation;
    const char *name = load_string(loader, entry->table, "group");
    if (name == NULL)
        name = entry->file_group;
    for (size_t i = 0; name != NULL && i < generation->group_count; i++) {
        if (strcmp(generation->groups[i].name, name) == 0)
            entry->route->group = &generation->groups[i];
    }
    if (name == NULL)
        load_fault_at(loader, NULL, "names no group, and its file does not either");
    else if (entry->route->group == NULL)
        fault_unknown_group(loader, name);
    else if (!entry->route->auth_required && !entry->route->group->public_routes)
        load_fault_at(loader, "auth_required", "auth_required = false is not allowed in the group %.60s", name);
}

static void read_body(struct entry *entry)
{
    struct loader *loader = entry->loader;
    struct route *route = entry->route;
    bool takes_body = route->method == METHOD_POST || route->method == METHOD_PUT || route->method == METHOD_PATCH;
    const char *body = load_string(loader, entry->table, "body");
    if (body == NULL)
        body = takes_body ? "json" : "none";
    if (strcmp(body, "json") == 0)
        route->body = ROUTE_BODY_JSON;
    else if (strcmp(body, "stream") == 0)
        route->body = ROUTE_BODY_STREAM;
    else if (strcmp(body, "none") != 0)
        load_fault_at(loader, "body", "'body' must be json, stream or none");
    if (route->body != ROUTE_BODY_NONE && !takes_body && entry->method_known)
        load_fault_at(loader, "body", "a %s takes no body: its parameters come from the path and the query",
                      method_name(route->method));
    lua_Integer dflt = route->body == ROUTE_BODY_STREAM ? INT64_MAX : JSON_BODY_LIMIT;
    route->body_limit_bytes = (size_t)load_int(loader, entry->table, "body_limit", dflt, 0, INT64_MAX);
    route->rest = load_string(loader, entry->table, "rest");
    if (route->rest != NULL && schema_field_find(&route->params, route->rest, strlen(route->rest)) != NULL)
        load_fault_at(loader, "rest", "'rest' bears the name of a parameter");
    lua_pushstring(loader->L, body);
    load_set(loader->L, entry->table, "body");
}

static void read_params(struct entry *entry)
{
    struct loader *loader = entry->loader;
    struct route *route = entry->route;
    route->params.type = SCHEMA_OBJECT;
    if (load_push(loader->L, entry->table, "params") == LUA_TTABLE)
        load_params(loader, lua_gettop(loader->L), &route->params);
    lua_pop(loader->L, 1);
    for (size_t i = 0; i < entry->path.param_count; i++) {
        const char *name = entry->path.params[i];
        struct schema_field *field = schema_field_find(&route->params, name, strlen(name));
        if (field == NULL) {
            load_fault_at(loader, "path", "the path parameter {%s} has no schema in params", name);
        } else if (field->schema.dflt != NULL) {
            load_fault_in(loader, "params", name, "params.%s is always there, in the path: it takes no default", name);
        } else {
            field->schema.required = true;
        }
    }
}

static bool in_path(const struct entry *entry, const char *name)
{
    for (size_t i = 0; i < entry->path.param_count; i++) {
        if (strcmp(entry->path.params[i], name) == 0)
            return true;
    }
    return false;
}

/* What comes as text, from the path or the query, is never taken for an array or object. */
static void check_sources(struct entry *entry)
{
    const struct route *route = entry->route;
    for (size_t i = 0; i < route->params.field_count; i++) {
        const char *name = route->params.fields[i].name;
        enum schema_type type = route->params.fields[i].schema.type;
        bool plain = type != SCHEMA_ARRAY && type != SCHEMA_OBJECT && type != SCHEMA_MAP;
        bool path = in_path(entry, name);
        if (!plain && (path || route->body != ROUTE_BODY_JSON))
            load_fault_in(entry->loader, "params", name,
                          "params.%.60s comes from the %s: it cannot be an array, object or map", name,
                          path ? "path" : "query");
    }
}

static void check_answers(struct entry *entry)
{
    struct loader *loader = entry->loader;
    lua_State *L = loader->L;
    if (load_push(L, entry->table, "returns") == LUA_TTABLE)
        load_returns(loader, lua_gettop(L));
    lua_pop(L, 1);
    if (load_push(L, entry->table, "errors") == LUA_TTABLE) {
        int list = lua_gettop(L);
        for (lua_pushnil(L); lua_next(L, list); lua_pop(L, 1)) {
            const char *code = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
            if (code == NULL || err_code_find(code) == ERR_NONE)
                load_fault_at(loader, "errors", "unknown error code '%.60s'", code ? code : "(no string)");
        }
    }
    lua_pop(L, 1);
}

static void read_handler(struct entry *entry)
{
    lua_State *L = entry->loader->L;
    if (load_push(L, entry->table, "handler") == LUA_TFUNCTION)
        entry->route->handler_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    else
        lua_pop(L, 1);
}

static void check_unique(const struct entry *entry)
{
    struct loader *loader = entry->loader;
    const struct generation *generation = loader->generation;
    for (size_t i = 0; i < generation->route_count; i++) {
        const struct route *other = generation->routes[i];
        struct route_path path;
        struct err err;
        if (other->name != NULL && entry->route->name != NULL && strcmp(other->name, entry->route->name) == 0)
            load_fault_at(loader, "name", "the name is taken already (%s:%d)", other->file, other->line);
        if (entry->path.shape[0] == '\0' || other->path == NULL || other->method != entry->route->method ||
            load_route_path(other->path, &path, &err) != 0 || strcmp(path.shape, entry->path.shape) != 0)
            continue;
        load_fault_at(loader, "path", "%s %.80s is taken already by %.60s (%s:%d)", method_name(other->method),
                      entry->route->path, other->name ? other->name : "another route", other->file, other->line);
    }
}

static void add_route(struct loader *loader, struct route *route)
{
    struct generation *generation = loader->generation;
    if (generation->route_count == generation->route_cap) {
        size_t cap = generation->route_cap ? 2 * generation->route_cap : 64;
        struct route **routes = realloc(generation->routes, cap * sizeof(*routes));
        if (routes == NULL)
            luaL_error(loader->L, "out of memory");
        generation->routes = routes;
        generation->route_cap = cap;
    }
    generation->routes[generation->route_count++] = route;
}

/* What abx.tables shows besides what was written. */
static void complete_declaration(struct entry *entry)
{
    lua_State *L = entry->loader->L;
    const struct route *route = entry->route;
    lua_pushstring(L, route->group ? route->group->name : "");
    load_set(L, entry->table, "group");
    lua_pushboolean(L, route->group != NULL && route->group->enabled);
    load_set(L, entry->table, "enabled");
    lua_pushinteger(L, route->status);
    load_set(L, entry->table, "status");
    lua_pushboolean(L, route->auth_required);
    load_set(L, entry->table, "auth_required");
    lua_pushboolean(L, route->streaming);
    load_set(L, entry->table, "streaming");
    lua_pushstring(L, entry->pack);
    load_set(L, entry->table, "pack");
    lua_pushstring(L, route->file);
    load_set(L, entry->table, "file");
    lua_pushinteger(L, route->line);
    load_set(L, entry->table, "line");
    lua_pushvalue(L, entry->table);
    entry->route->declaration_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* The entry is on top of the stack, and stays there. */
static void load_route(struct loader *loader, const char *file_group, const char *pack)
{
    lua_State *L = loader->L;
    struct entry entry = {.loader = loader, .table = lua_gettop(L), .file_group = file_group, .pack = pack};
    struct route *route = entry.route = arena_alloc(&loader->generation->arena, sizeof(*route));
    if (route == NULL)
        luaL_error(L, "the tables are too large");
    route->name = load_string(loader, entry.table, "name");
    route->path = load_string(loader, entry.table, "path");
    route->file = load_strdup(loader, loader->source.display);
    route->pack = pack ? load_strdup(loader, pack) : NULL;
    begin_entry(&entry);
    route->line = loader->subject.line;

    load_check_keys(loader, entry.table, route_keys, false);
    check_present(&entry);
    route->auth_required = load_bool(L, entry.table, "auth_required", true);
    route->streaming = load_bool(L, entry.table, "streaming", false);
    route->status = (int)load_int(loader, entry.table, "status", 200, 200, 599);
    route->deadline_ms = (unsigned)load_int(loader, entry.table, "deadline_ms", DEADLINE_MS, 1, DEADLINE_MAX_MS);
    read_identity(&entry);
    read_group(&entry);
    read_params(&entry);
    read_body(&entry);
    if (entry.method_known)
        check_sources(&entry);
    check_answers(&entry);
    read_handler(&entry);
    check_unique(&entry);
    complete_declaration(&entry);
    add_route(loader, route);
    load_list(loader, entry.table, loader->vm->routes);
}

/* The file's table is on top of the stack. */
static void load_entries(struct loader *loader, const char *pack)
{
    lua_State *L = loader->L;
    int table = lua_gettop(L);
    load_subject_file(loader, pack ? "pack" : "routes");
    load_check_keys(loader, table, pack ? pack_file_keys : routes_file_keys, true);
    const char *group = load_string(loader, table, "group");
    size_t count = lua_rawlen(L, table);
    if (count == 0)
        load_fault(loader, 1, "declares no route");
    for (size_t i = 1; i <= count; i++) {
        if (lua_rawgeti(L, table, (lua_Integer)i) == LUA_TTABLE)
            load_route(loader, group, pack);
        else
            load_fault(loader, 1, "entry %zu must be a table, not a %s", i, luaL_typename(L, -1));
        lua_settop(L, table);
    }
}

static void load_pack(struct loader *loader, const char *name)
{
    lua_State *L = loader->L;
    const char *path = load_good_name(name, "_-") ? load_path(loader, "packs", name) : NULL;
    char **known = load_names(loader, "packs");
    char list[512] = "";
    size_t len = 0;
    bool found = false;
    for (; known != NULL && *known != NULL; known++) {
        found = found || strcmp(*known, name) == 0;
        if (len < sizeof(list))
            len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", len ? ", " : "", *known);
    }
    if (path == NULL || !found) {
        faults_add(loader->faults, "configuration", 0, "packs: unknown pack '%s' (known: %s)", name,
                   len > 0 ? list : "none");
        return;
    }
    if (!load_chunk(loader, path))
        return;
    const char *own_name = load_string(loader, lua_gettop(L), "name");
    if (own_name == NULL || strcmp(own_name, name) != 0)
        load_fault(loader, 1, "pack: its name must be that of its file, '%s'", name);
    load_entries(loader, name);
    lua_pop(L, 1);
    lua_pushstring(L, name);
    load_list(loader, -1, loader->vm->packs);
    lua_pop(L, 1);
}

void load_routes(struct loader *loader)
{
    char **names = load_names(loader, "routes");
    for (; names != NULL && *names != NULL; names++) {
        const char *path = load_path(loader, "routes", *names);
        if (path != NULL && load_chunk(loader, path)) {
            load_entries(loader, NULL);
            lua_pop(loader->L, 1);
        }
    }
    for (const char *const *pack = loader->options->packs; pack != NULL && *pack != NULL; pack++)
        load_pack(loader, *pack);
}
