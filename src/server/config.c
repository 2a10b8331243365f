/* Reads the configuration from its four sources; see the header. Called once by main. */
#include "server/config.h"

#include "base/log.h"
#include "model/value.h"
#include "prim/secret.h"
#include "script/config_file.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONFIG_ARENA_MAX_BYTES = 1024 * 1024, KEY_NAME_MAX = 64 };

enum key_type { KEY_TEXT, KEY_NUMBER, KEY_BOOL, KEY_LIST, KEY_TOKEN };

/* One row is a key in all four sources: field `a.b_c`, variable ABX_SERVER_A_B_C, flag --a-b-c. */
struct key {
    const char *name;
    enum key_type type;
    size_t offset;
    const char *dflt; /* as an environment variable would give it; NULL: not set */
    unsigned min, max;
    const char *doc;
};

#define AT(member) offsetof(struct config, member)
static const struct key keys[] = {
    {"host", KEY_TEXT, AT(host), "127.0.0.1", 0, 0, "address to listen on"},
    {"port", KEY_NUMBER, AT(port), "8080", 0, 65535, "REST port; 0: the kernel chooses"},
    {"ws_port", KEY_NUMBER, AT(ws_port), NULL, 0, 65535, "terminal port; port + 1 unless set"},
    {"base_dir", KEY_TEXT, AT(base_dir), "/home/user", 0, 0, "the directory that clients work in"},
    {"token", KEY_TOKEN, AT(token), NULL, 0, 0, "the bearer token; none: loopback only"},
    {"token_file", KEY_TEXT, AT(token_file), NULL, 0, 0, "a file that holds the token"},
    {"enabled_groups", KEY_LIST, AT(enabled_groups), NULL, 0, 0, "exactly these groups (core is always on)"},
    {"disabled_groups", KEY_LIST, AT(disabled_groups), NULL, 0, 0, "take these groups away"},
    {"packs", KEY_LIST, AT(packs), "openapi", 0, 0, "packs to load"},
    {"config", KEY_TEXT, AT(config), NULL, 0, 0, "the configuration file; flag or variable only"},
    {"lua_dir", KEY_TEXT, AT(lua_dir), NULL, 0, 0, "holds groups, routes, packs"},
    {"commands", KEY_TEXT, AT(commands), NULL, 0, 0, "the registered commands"},
    {"watch", KEY_BOOL, AT(watch), "false", 0, 0, "reload the tables when a file changes"},
    {"log_level", KEY_TEXT, AT(log_level), "info", 0, 0, "debug, info, warn, error or off"},
    {"log_format", KEY_TEXT, AT(log_format), "json", 0, 0, "json or text"},
    {"allow_unauthenticated", KEY_BOOL, AT(allow_unauthenticated), "false", 0, 0,
     "listen beyond loopback without a token"},
    {"allowed_hosts", KEY_LIST, AT(allowed_hosts), NULL, 0, 0, "names in Host besides loopback ones"},
    {"allowed_origins", KEY_LIST, AT(allowed_origins), NULL, 0, 0, "origins of web pages that may call"},
    {"ws_public_url", KEY_TEXT, AT(ws_public_url), NULL, 0, 0, "what clients call the terminal port"},
    {"browser.allow_hosts", KEY_LIST, AT(browser_allow_hosts), NULL, 0, 0, "hosts the browser may reach in any case"},
    {"mcp.tools", KEY_LIST, AT(mcp_tools), NULL, 0, 0, "globs of the routes shown as MCP tools"},
    {"limits.requests", KEY_NUMBER, AT(limits.requests), "512", 1, 100000, "running at once; past it 429"},
    {"limits.processes", KEY_NUMBER, AT(limits.processes), "512", 1, 100000, "living at once; past it 429"},
    {"limits.terminals", KEY_NUMBER, AT(limits.terminals), "256", 1, 100000, "living at once; past it 429"},
    {"limits.connections", KEY_NUMBER, AT(limits.connections), "1024", 8, 100000, "open at once"},
    {"limits.cpu_ms", KEY_NUMBER, AT(limits.cpu_ms), "1000", 100, 60000, "CPU of a handler between two waits"},
    {"limits.task_memory_mib", KEY_NUMBER, AT(limits.task_memory_mib), "64", 1, 4096, "Lua memory of one request"},
    {"limits.head_timeout_ms", KEY_NUMBER, AT(limits.head_timeout_ms), "10000", 100, 600000,
     "for a request's head to arrive"},
    {"limits.body_timeout_ms", KEY_NUMBER, AT(limits.body_timeout_ms), "30000", 100, 600000,
     "between two pieces of a body"},
    {"limits.idle_timeout_s", KEY_NUMBER, AT(limits.idle_timeout_s), "75", 1, 3600,
     "for a connection without a request"},
};
enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]) };

/* "limits.cpu_ms" as ABX_SERVER_LIMITS_CPU_MS or --limits-cpu-ms. */
static void spell(const struct key *key, bool variable, char out[KEY_NAME_MAX])
{
    size_t n = (size_t)snprintf(out, KEY_NAME_MAX, "%s%s", variable ? "ABX_SERVER_" : "--", key->name);
    for (size_t i = 2; i < n; i++) {
        if (variable)
            out[i] = out[i] == '.' ? '_' : (char)toupper((unsigned char)out[i]);
        else if (out[i] == '.' || out[i] == '_')
            out[i] = '-';
    }
}

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "not enough memory for the configuration");
}

static void *field_of(struct config *config, const struct key *key)
{
    return (char *)config + key->offset;
}

/* `where` names the source for messages: "--port", "ABX_SERVER_PORT", "config/server.lua: port". */
static int set_number(struct config *config, const struct key *key, int64_t number, const char *where, struct err *err)
{
    if (number < key->min || number > key->max)
        return err_set(err, ERR_INVALID_REQUEST, "%s must be between %u and %u", where, key->min, key->max);
    *(unsigned *)field_of(config, key) = (unsigned)number;
    return 0;
}

static int set_text(struct config *config, const struct key *key, const char *text, const char *where, struct err *err)
{
    if (key->type == KEY_TOKEN) {
        for (const char *c = text; *c; c++)
            if (*c < 0x21 || *c > 0x7e)
                return err_set(err, ERR_INVALID_REQUEST, "%s may hold visible ASCII characters only", where);
        char *copy = *text ? strdup(text) : NULL;
        if (*text && !copy)
            return out_of_memory(err);
        if (config->token)
            secret_wipe(config->token, strlen(config->token));
        free(config->token);
        config->token = copy;
        return 0;
    }
    char *copy = NULL;
    if (*text && !(copy = arena_strndup(&config->arena, text, strlen(text))))
        return out_of_memory(err);
    *(const char **)field_of(config, key) = copy;
    return 0;
}

static int set_list(struct config *config, const struct key *key, const char *text, struct err *err)
{
    size_t most = 2;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    const char **list = arena_alloc(&config->arena, most * sizeof(*list));
    if (!list)
        return out_of_memory(err);
    size_t count = 0;
    while (*text) {
        text += strspn(text, ", \t");
        size_t len = strcspn(text, ", \t");
        if (len && !(list[count++] = arena_strndup(&config->arena, text, len)))
            return out_of_memory(err);
        text += len;
    }
    *(const char ***)field_of(config, key) = list;
    return 0;
}

/* From a flag, a variable or a built-in value: all of them are text. */
static int set_from_text(struct config *config, const struct key *key, const char *text, const char *where,
                         struct err *err)
{
    switch (key->type) {
    case KEY_TEXT:
    case KEY_TOKEN:
        return set_text(config, key, text, where, err);
    case KEY_LIST:
        return set_list(config, key, text, err);
    case KEY_BOOL: {
        bool on = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
        if (!on && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
            return err_set(err, ERR_INVALID_REQUEST, "%s must be true or false", where);
        *(bool *)field_of(config, key) = on;
        return 0;
    }
    case KEY_NUMBER: {
        char *end;
        errno = 0;
        long number = strtol(text, &end, 10);
        if (errno || end == text || *end || !isdigit((unsigned char)*text))
            return err_set(err, ERR_INVALID_REQUEST, "%s must be a whole number", where);
        return set_number(config, key, number, where, err);
    }
    }
    return 0;
}

static int set_from_value(struct config *config, const struct key *key, const struct value *value, const char *where,
                          struct err *err)
{
    switch (key->type) {
    case KEY_TEXT:
    case KEY_TOKEN:
        if (value->type == VALUE_STRING)
            return set_text(config, key, value->as.string.text, where, err);
        break;
    case KEY_BOOL:
        if (value->type == VALUE_BOOL) {
            *(bool *)field_of(config, key) = value->as.boolean;
            return 0;
        }
        break;
    case KEY_NUMBER:
        if (value->type == VALUE_INT)
            return set_number(config, key, value->as.integer, where, err);
        break;
    case KEY_LIST: {
        bool empty = value->type == VALUE_OBJECT && value->as.object.count == 0;
        if (value->type != VALUE_ARRAY && !empty)
            break;
        size_t count = empty ? 0 : value->as.array.count;
        const char **list = arena_alloc(&config->arena, (count + 1) * sizeof(*list));
        if (!list)
            return out_of_memory(err);
        for (size_t i = 0; i < count; i++) {
            if (value->as.array.items[i].type != VALUE_STRING)
                return err_set(err, ERR_INVALID_REQUEST, "%s must be a list of strings", where);
            list[i] = value->as.array.items[i].as.string.text;
        }
        *(const char ***)field_of(config, key) = list;
        return 0;
    }
    }
    static const char *const wanted[] = {"a string", "a whole number", "true or false", "a list of strings",
                                         "a string"};
    return err_set(err, ERR_INVALID_REQUEST, "%s must be %s, not %s", where, wanted[key->type],
                   value_type_name(value->type));
}

static const struct key *key_find(const char *prefix, const char *name)
{
    char full[KEY_NAME_MAX];
    snprintf(full, sizeof(full), "%s%s%s", prefix, *prefix ? "." : "", name);
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (strcmp(keys[i].name, full) == 0)
            return &keys[i];
    return NULL;
}

/* `limits = {requests = 100}` is the key limits.requests: one level of tables, named by prefix. */
static int read_object(struct config *config, const char *prefix, const struct value *object, struct err *err)
{
    for (size_t i = 0; i < object->as.object.count; i++) {
        const struct value_member *member = &object->as.object.members[i];
        char where[256];
        snprintf(where, sizeof(where), "%s: %s%s%s", config->config, prefix, *prefix ? "." : "", member->name);
        const struct key *key = key_find(prefix, member->name);
        if (key && strcmp(key->name, "config") != 0) {
            if (set_from_value(config, key, &member->value, where, err) != 0)
                return -1;
        } else if (!*prefix && member->value.type == VALUE_OBJECT &&
                   (strcmp(member->name, "limits") == 0 || strcmp(member->name, "browser") == 0 ||
                    strcmp(member->name, "mcp") == 0)) {
            if (read_object(config, member->name, &member->value, err) != 0)
                return -1;
        } else {
            return err_set(err, ERR_INVALID_REQUEST, "%s is not a known key", where);
        }
    }
    return 0;
}

static int read_environment(struct config *config, const char *only, struct err *err)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (only && strcmp(keys[i].name, only) != 0)
            continue;
        char variable[KEY_NAME_MAX];
        spell(&keys[i], true, variable);
        const char *text = getenv(variable);
        if (text && set_from_text(config, &keys[i], text, variable, err) != 0)
            return -1;
    }
    return 0;
}

/* Splits "--name=value"; answers the key, or NULL. *out_value is NULL where no '=' stood. */
static const struct key *flag_find(char *flag, char **out_value)
{
    size_t len = strcspn(flag, "=");
    *out_value = flag[len] ? flag + len + 1 : NULL;
    for (size_t i = 0; i < KEY_COUNT; i++) {
        char name[KEY_NAME_MAX];
        spell(&keys[i], false, name);
        if (strlen(name) == len && strncmp(name, flag, len) == 0)
            return &keys[i];
    }
    return NULL;
}

static int read_flags(struct config *config, int argc, char **argv, const char *only, struct err *err)
{
    for (int i = 0; i < argc; i++) {
        char *value;
        const struct key *key = flag_find(argv[i], &value);
        if (!key)
            return err_set(err, ERR_INVALID_REQUEST, "unknown flag %s; abxd --help lists them", argv[i]);
        char where[KEY_NAME_MAX];
        spell(key, false, where);
        if (!value && key->type == KEY_BOOL && (i + 1 >= argc || strncmp(argv[i + 1], "--", 2) == 0))
            value = "true";
        else if (!value && ++i < argc)
            value = argv[i];
        else if (!value)
            return err_set(err, ERR_INVALID_REQUEST, "%s needs a value", where);
        if (only && strcmp(key->name, only) != 0)
            continue;
        if (set_from_text(config, key, value, where, err) != 0)
            return -1;
        if (key->type == KEY_TOKEN)
            secret_wipe_arg(value);
    }
    return 0;
}

/* Where the tables live: beside an installed binary, else in the working directory. */
static const char *find_shipped(struct config *config, const char *install_dir, const char *name, bool must_exist)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/../share/abxd/%s", install_dir, name);
    if (access(path, F_OK) != 0)
        snprintf(path, sizeof(path), "%s", name);
    if (!must_exist || access(path, F_OK) == 0)
        return arena_strndup(&config->arena, path, strlen(path));
    return NULL;
}

static int read_file(struct config *config, const char *install_dir, struct err *err)
{
    if (read_environment(config, "config", err) != 0)
        return -1;
    if (!config->config && !(config->config = find_shipped(config, install_dir, "config/server.lua", true)))
        return 0;
    struct value table;
    if (config_file_read(config->config, &config->arena, &table, err) != 0)
        return -1;
    return read_object(config, "", &table, err);
}

static int take_token(struct config *config, struct err *err)
{
    if (!config->token && config->token_file && secret_read_file(config->token_file, &config->token, err) != 0)
        return -1;
    secret_wipe_env("ABX_SERVER_TOKEN");
    log_hide(config->token);
    return 0;
}

static int check_whole(struct config *config, struct err *err)
{
    enum log_level level;
    if (log_level_parse(config->log_level ? config->log_level : "", &level) != 0)
        return err_set(err, ERR_INVALID_REQUEST, "log_level must be debug, info, warn, error or off");
    if (!config->log_format || (strcmp(config->log_format, "json") != 0 && strcmp(config->log_format, "text") != 0))
        return err_set(err, ERR_INVALID_REQUEST, "log_format must be json or text");
    if (!config->host || !config->base_dir)
        return err_set(err, ERR_INVALID_REQUEST, "%s must not be empty", config->host ? "base_dir" : "host");
    if (!config->token && !config->allow_unauthenticated && !config_is_loopback(config->host))
        return err_set(err, ERR_INVALID_REQUEST,
                       "host %s is not loopback: set a token, or allow_unauthenticated=true to serve everybody",
                       config->host);
    return 0;
}

int config_read(struct config *config, int argc, char **argv, const char *install_dir, struct err *err)
{
    memset(config, 0, sizeof(*config));
    arena_init(&config->arena, CONFIG_ARENA_MAX_BYTES);
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (keys[i].dflt && set_from_text(config, &keys[i], keys[i].dflt, keys[i].name, err) != 0)
            return -1;
    /* The flag is looked at first, because it says which file the second source is. */
    if (read_flags(config, argc, argv, "config", err) != 0)
        return -1;
    unsigned no_ws_port = config->ws_port = 65536;
    if (read_file(config, install_dir, err) != 0 || read_environment(config, NULL, err) != 0 ||
        read_flags(config, argc, argv, NULL, err) != 0 || take_token(config, err) != 0)
        return -1;
    if (config->ws_port == no_ws_port)
        config->ws_port = config->port == 0 || config->port == 65535 ? 0 : config->port + 1;
    if (!config->lua_dir && !(config->lua_dir = find_shipped(config, install_dir, "lua", false)))
        return out_of_memory(err);
    if (!config->commands)
        config->commands = find_shipped(config, install_dir, "config/commands.lua", true);
    return check_whole(config, err);
}

void config_deinit(struct config *config)
{
    if (config->token)
        secret_wipe(config->token, strlen(config->token));
    free(config->token);
    arena_deinit(&config->arena);
}

bool config_is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return memcmp(&v6, &in6addr_loopback, sizeof(v6)) == 0;
    return strcmp(host, "localhost") == 0;
}

void config_print_help(void)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        char flag[KEY_NAME_MAX];
        spell(&keys[i], false, flag);
        printf("  %-26s %s%s%s%s\n", flag, keys[i].doc, keys[i].dflt ? " (" : "", keys[i].dflt ? keys[i].dflt : "",
               keys[i].dflt ? ")" : "");
    }
}
