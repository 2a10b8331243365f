/* `abxd check` and `abxd routes`: the tables without a server. Called by main; tables_options by server too. */
#include "server/tables.h"

#include "base/json.h"
#include "bind/host.h"

#include <stdio.h>
#include <string.h>

struct script_options tables_options(const struct config *config, struct loop *loop, void *host)
{
    return (struct script_options){
        .loop = loop,
        .lua_dir = config->lua_dir,
        .commands_file = config->commands,
        .packs = (const char *const *)config->packs,
        .enabled_groups = (const char *const *)config->enabled_groups,
        .disabled_groups = (const char *const *)config->disabled_groups,
        .bindings = bind_all,
        .host = host,
        .limits = {.cpu_ms = config->limits.cpu_ms,
                   .task_memory_bytes = (size_t)config->limits.task_memory_mib * 1024 * 1024,
                   .load_cpu_ms = 2000},
    };
}

/* A generation for looking at: its handlers will never run, so the host behind the bindings may stay empty. */
struct loaded {
    struct loop *loop;
    struct host host;
    struct generation *generation;
};

static int load(struct loaded *loaded, const struct config *config)
{
    *loaded = (struct loaded){.loop = loop_new()};
    if (!loaded->loop) {
        fprintf(stderr, "abxd: not enough memory\n");
        return -1;
    }
    loaded->host = (struct host){.loop = loaded->loop, .version = ABX_VERSION};
    struct faults faults;
    faults_init(&faults);
    struct script_options options = tables_options(config, loaded->loop, &loaded->host);
    loaded->generation = generation_load(&options, &faults);
    if (faults.count > 0)
        fwrite(faults.text.data, 1, faults.text.len, stderr);
    faults_deinit(&faults);
    if (!loaded->generation)
        loop_free(loaded->loop);
    return loaded->generation ? 0 : -1;
}

static void unload(struct loaded *loaded)
{
    generation_unref(loaded->generation);
    loop_free(loaded->loop);
}

enum exit_status tables_check(const struct config *config)
{
    struct loaded loaded;
    if (load(&loaded, config) != 0)
        return EXIT_USAGE;
    printf("ok: %zu routes in %zu groups, %zu commands\n", generation_route_count(loaded.generation),
           generation_group_count(loaded.generation), generation_command_count(loaded.generation));
    unload(&loaded);
    return EXIT_OK;
}

static int write_text(struct buf *out, const char *before, const char *text)
{
    if (buf_append_text(out, before) != 0)
        return -1;
    return text ? json_write_string(out, text, strlen(text)) : buf_append_text(out, "null");
}

static int write_route(struct buf *out, const struct route *route)
{
    static const char *const bodies[] = {"none", "json", "stream"};
    if (write_text(out, "{\"method\":", method_name(route->method)) != 0 ||
        write_text(out, ",\"path\":", route->path) != 0 || write_text(out, ",\"name\":", route->name) != 0 ||
        write_text(out, ",\"group\":", route->group->name) != 0 || write_text(out, ",\"pack\":", route->pack) != 0 ||
        write_text(out, ",\"body\":", bodies[route->body]) != 0 ||
        buf_printf(out,
                   ",\"enabled\":%s,\"auth_required\":%s,\"streaming\":%s,\"status\":%d,\"deadline_ms\":%u,"
                   "\"params\":[",
                   route->group->enabled ? "true" : "false", route->auth_required ? "true" : "false",
                   route->streaming ? "true" : "false", route->status, route->deadline_ms) != 0)
        return -1;
    for (size_t i = 0; i < route->params.field_count; i++)
        if (write_text(out, i ? "," : "", route->params.fields[i].name) != 0)
            return -1;
    return buf_append_text(out, "]}");
}

static int print_json(const struct generation *generation)
{
    struct buf out;
    buf_init(&out, 64 * 1024 * 1024);
    int failed = buf_append_text(&out, "[\n");
    for (size_t i = 0; !failed && i < generation_route_count(generation); i++) {
        failed = (i && buf_append_text(&out, ",\n") != 0) || write_route(&out, generation_route(generation, i)) != 0;
    }
    if (!failed && buf_append_text(&out, "\n]\n") == 0)
        fwrite(out.data, 1, out.len, stdout);
    buf_deinit(&out);
    return failed;
}

static void print_text(const struct generation *generation)
{
    for (size_t i = 0; i < generation_route_count(generation); i++) {
        const struct route *route = generation_route(generation, i);
        printf("%-6s %-28s %-22s %-10s%s%s%s%s%s\n", method_name(route->method), route->path, route->name,
               route->group->name, route->auth_required ? "" : " open", route->streaming ? " streaming" : "",
               route->group->enabled ? "" : " disabled", route->pack ? " pack:" : "", route->pack ? route->pack : "");
    }
}

enum exit_status tables_print_routes(const struct config *config, bool json)
{
    struct loaded loaded;
    if (load(&loaded, config) != 0)
        return EXIT_USAGE;
    int failed = 0;
    if (json)
        failed = print_json(loaded.generation);
    else
        print_text(loaded.generation);
    unload(&loaded);
    return failed ? EXIT_FAULT : EXIT_OK;
}
