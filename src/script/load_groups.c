/* The groups in lua/groups, and which of them are switched on. Called by generation.c, before the routes. */
#include "script/load.h"

#include <stdio.h>
#include <string.h>

static const struct key group_keys[] = {
    {"name", KEY_STRING},
    {"description", KEY_STRING},
    {"always_on", KEY_BOOLEAN},
    {"default_on", KEY_BOOLEAN},
    {"public_routes", KEY_BOOLEAN},
    {"available", KEY_FUNCTION},
    {NULL, KEY_ANY},
};

static bool listed(const char *const *names, const char *name)
{
    for (; names != NULL && *names != NULL; names++) {
        if (strcmp(*names, name) == 0)
            return true;
    }
    return false;
}

static const struct group *find_group(const struct generation *generation, const char *name)
{
    for (size_t i = 0; i < generation->group_count; i++) {
        if (strcmp(generation->groups[i].name, name) == 0)
            return &generation->groups[i];
    }
    return NULL;
}

/* The group's declaration is on top of the stack, and stays there. */
static void load_group(struct loader *loader, const char *file_name)
{
    lua_State *L = loader->L;
    const struct script_options *options = loader->options;
    int table = lua_gettop(L);
    load_subject_file(loader, "group");
    load_check_keys(loader, table, group_keys, false);
    struct group group = {
        .name = load_string(loader, table, "name"),
        .description = load_string(loader, table, "description"),
        .always_on = load_bool(L, table, "always_on", false),
        .default_on = load_bool(L, table, "default_on", true),
        .public_routes = load_bool(L, table, "public_routes", false),
    };
    if (group.name == NULL || !load_good_name(group.name, "_")) {
        load_fault_at(loader, "name", "'name' must be [a-z0-9_]+");
        return;
    }
    if (strcmp(group.name, file_name) != 0)
        load_fault_at(loader, "name", "its name must be that of its file, '%s'", file_name);
    if (group.description == NULL)
        load_fault_at(loader, NULL, "'description' is missing");
    if (find_group(loader->generation, group.name) != NULL)
        return; /* told above: one of the two is in the wrong file */
    bool wanted = options->enabled_groups ? listed(options->enabled_groups, group.name) : group.default_on;
    group.enabled = group.always_on || (wanted && !listed(options->disabled_groups, group.name));
    lua_pushboolean(L, group.enabled);
    load_set(L, table, "enabled");
    load_list(loader, table, loader->vm->groups);
    loader->generation->groups[loader->generation->group_count++] = group;
}

void load_group_names(const struct loader *loader, char *out, size_t size)
{
    size_t len = (size_t)snprintf(out, size, "%s", loader->generation->group_count > 0 ? "" : "none");
    for (size_t i = 0; i < loader->generation->group_count && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%s", i ? ", " : "", loader->generation->groups[i].name);
}

static void check_names(struct loader *loader, const char *const *names, const char *key)
{
    char known[512];
    load_group_names(loader, known, sizeof(known));
    for (; names != NULL && *names != NULL; names++) {
        if (find_group(loader->generation, *names) == NULL)
            faults_add(loader->faults, "configuration", 0, "%s: unknown group '%s' (known: %s)", key, *names, known);
    }
}

void load_groups(struct loader *loader)
{
    size_t count = 0;
    char **names = load_names(loader, "groups");
    while (names != NULL && names[count] != NULL)
        count++;
    loader->generation->groups = arena_alloc(&loader->generation->arena, (count + 1) * sizeof(struct group));
    if (loader->generation->groups == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        const char *path = load_path(loader, "groups", names[i]);
        if (path != NULL && load_chunk(loader, path)) {
            load_group(loader, names[i]);
            lua_pop(loader->L, 1);
        }
    }
    check_names(loader, loader->options->enabled_groups, "enabled_groups");
    check_names(loader, loader->options->disabled_groups, "disabled_groups");
}
