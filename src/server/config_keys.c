/* The table of the configuration's keys, and setting them; see the header. Called by config.c. */
#include "server/config_keys.h"

#include "base/log.h"
#include "prim/secret.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct config, member)
const struct key config_keys[] = {
    {"host", KEY_TEXT, AT(host), "127.0.0.1", 0, 0, "address to listen on"},
    {"port", KEY_NUMBER, AT(port), "8080", 0, 65535, "REST port; 0: the kernel chooses"},
    {"ws_port", KEY_NUMBER, AT(ws_port), NULL, 0, 65535, "terminal port; port + 1 unless set; 0: the kernel chooses"},
    {"base_dir", KEY_TEXT, AT(base_dir), "/home/user", 0, 0, "the directory that clients work in"},
    {"token", KEY_TOKEN, AT(token), NULL, 0, 0, "the bearer token; none: loopback only"},
    {"token_file", KEY_TEXT, AT(token_file), NULL, 0, 0, "a file that holds the token"},
    {"enabled_groups", KEY_LIST, AT(enabled_groups), NULL, 0, 0, "exactly these groups, with core; '' is core alone"},
    {"disabled_groups", KEY_LIST, AT(disabled_groups), NULL, 0, 0, "take these groups away; not core"},
    {"packs", KEY_LIST, AT(packs), "openapi,extras", 0, 0, "packs to load"},
    {"config", KEY_TEXT, AT(config), NULL, 0, 0, "the configuration file; flag or variable only"},
    {"lua_dir", KEY_TEXT, AT(lua_dir), NULL, 0, 0, "holds groups, routes, packs"},
    {"workers_dir", KEY_TEXT, AT(workers_dir), NULL, 0, 0, "holds the programs that run code and the browser"},
    {"commands", KEY_TEXT, AT(commands), NULL, 0, 0, "the registered commands"},
    {"watch", KEY_BOOL, AT(watch), "false", 0, 0, "reload the tables when a file changes"},
    {"log_level", KEY_LEVEL, AT(log_level), "info", 0, 0, "debug, info, warn, error or off"},
    {"log_format", KEY_FORMAT, AT(log_format), "json", 0, 0, "json or text"},
    {"allow_unauthenticated", KEY_BOOL, AT(allow_unauthenticated), "false", 0, 0,
     "listen beyond loopback without a token"},
    {"allowed_hosts", KEY_HOSTS, AT(allowed_hosts), NULL, 0, 0, "names in Host besides loopback ones, without port"},
    {"allowed_origins", KEY_ORIGINS, AT(allowed_origins), NULL, 0, 0,
     "web pages that may call, as https://app.example.org"},
    {"ws_public_url", KEY_WS_URL, AT(ws_public_url), NULL, 0, 0,
     "what clients call the terminal port, as wss://box.example.org/term"},
    {"browser.allow_hosts", KEY_LIST, AT(browser_allow_hosts), NULL, 0, 0,
     "hosts the browser may reach in any case, as intranet, 10.0.0.5:8080, *.corp.example"},
    {"mcp.tools", KEY_LIST, AT(mcp_tools), NULL, 0, 0,
     "globs of the routes shown as MCP tools (no effect in this version)"},
    {"limits.requests", KEY_NUMBER, AT(limits.requests), "512", 1, 100000, "running at once; past it 429"},
    {"limits.processes", KEY_NUMBER, AT(limits.processes), "512", 1, 100000, "living at once; past it 429"},
    {"limits.terminals", KEY_NUMBER, AT(limits.terminals), "256", 1, 100000, "living at once; past it 429"},
    {"limits.connections", KEY_NUMBER, AT(limits.connections), "1024", 8, 100000, "open at once"},
    {"limits.cpu_ms", KEY_NUMBER, AT(limits.cpu_ms), "500", 100, 60000, "CPU of a handler between two waits"},
    {"limits.task_memory_mib", KEY_NUMBER, AT(limits.task_memory_mib), "64", 1, 4096, "Lua memory of one request"},
    {"limits.head_timeout_ms", KEY_NUMBER, AT(limits.head_timeout_ms), "10000", 100, 600000,
     "for a request's head to arrive"},
    {"limits.body_timeout_ms", KEY_NUMBER, AT(limits.body_timeout_ms), "30000", 100, 600000,
     "between two pieces of a body"},
    {"limits.idle_timeout_s", KEY_NUMBER, AT(limits.idle_timeout_s), "75", 1, 3600,
     "for a connection without a request"},
    {NULL, KEY_TEXT, 0, NULL, 0, 0, NULL},
};

void config_key_spell(const struct key *key, bool variable, char out[KEY_NAME_MAX])
{
    size_t n = (size_t)snprintf(out, KEY_NAME_MAX, "%s%s", variable ? "ABX_SERVER_" : "--", key->name);
    for (size_t i = 2; i < n; i++) {
        if (variable)
            out[i] = out[i] == '.' ? '_' : (char)toupper((unsigned char)out[i]);
        else if (out[i] == '.' || out[i] == '_')
            out[i] = '-';
    }
}

const struct key *config_key_find(const char *name)
{
    for (const struct key *key = config_keys; key->name; key++)
        if (strcmp(key->name, name) == 0)
            return key;
    return NULL;
}

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "not enough memory for the configuration");
}

static void *field_of(struct config *config, const struct key *key)
{
    return (char *)config + key->offset;
}

static int set_number(struct config *config, const struct key *key, int64_t number, const char *where, struct err *err)
{
    if (number < key->min || number > key->max)
        return err_set(err, ERR_INVALID_REQUEST, "%s must be between %u and %u", where, key->min, key->max);
    *(unsigned *)field_of(config, key) = (unsigned)number;
    return 0;
}

static int set_token(struct config *config, const char *text, const char *where, struct err *err)
{
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

static int set_string(struct config *config, const struct key *key, const char *text, const char *where,
                      struct err *err)
{
    enum log_level level;
    if (key->type == KEY_TOKEN)
        return set_token(config, text, where, err);
    if ((key->type == KEY_LEVEL && log_level_parse(text, &level) != 0) ||
        (key->type == KEY_FORMAT && strcmp(text, "json") != 0 && strcmp(text, "text") != 0))
        return err_set(err, ERR_INVALID_REQUEST, "%s must be %s", where, key->doc);
    char *copy = NULL;
    if (*text && !(copy = arena_strndup(&config->arena, text, strlen(text))))
        return out_of_memory(err);
    *(const char **)field_of(config, key) = copy;
    return 0;
}

/* How many bytes at the start of the text are a name or an address; v6 addresses stand in brackets. */
static size_t host_len(const char *text)
{
    if (*text != '[')
        return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._");
    size_t len = 1 + strspn(text + 1, "0123456789abcdefABCDEF:.");
    return len > 1 && text[len] == ']' ? len + 1 : 0;
}

/* What follows host[:port]; NULL where the text does not begin with that. */
static const char *after_authority(const char *text)
{
    size_t host = host_len(text);
    if (host == 0 || text[host] != ':')
        return host == 0 ? NULL : text + host;
    text += host + 1;
    size_t digits = strspn(text, "0123456789");
    return digits == 0 || digits > 5 ? NULL : text + digits;
}

/* scheme://host[:port], as browsers send it: no path, not even a slash. */
static bool is_origin(const char *text)
{
    size_t scheme = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    if (!isalpha((unsigned char)*text) || strncmp(text + scheme, "://", 3) != 0)
        return false;
    const char *end = after_authority(text + scheme + 3);
    return end != NULL && *end == '\0';
}

/* What /pty/ID can be put behind. */
static bool is_ws_url(const char *text)
{
    bool tls = strncmp(text, "wss://", 6) == 0;
    if (!tls && strncmp(text, "ws://", 5) != 0)
        return false;
    const char *path = after_authority(text + (tls ? 6 : 5));
    if (path == NULL || (*path != '\0' && *path != '/'))
        return false;
    for (; *path != '\0'; path++)
        if (*path < 0x21 || *path > 0x7e || strchr("?#\"<>\\^`{|}", *path) != NULL)
            return false;
    return true;
}

static int set_ws_url(struct config *config, const struct key *key, const char *text, const char *where,
                      struct err *err)
{
    size_t len = strlen(text);
    if (len > 0 && !is_ws_url(text))
        return err_set(err, ERR_INVALID_REQUEST, "%s must be ws://host[:port][/path] or wss://…, without query", where);
    while (len > 0 && text[len - 1] == '/')
        len--;
    char *copy = NULL;
    if (len > 0 && !(copy = arena_strndup(&config->arena, text, len)))
        return out_of_memory(err);
    *(const char **)field_of(config, key) = copy;
    return 0;
}

static int check_item(const struct key *key, const char *item, const char *where, struct err *err)
{
    size_t host = host_len(item);
    if (key->type == KEY_ORIGINS && !is_origin(item))
        return err_set(err, ERR_INVALID_REQUEST, "%s: '%.60s' is no origin, scheme://host[:port]", where, item);
    if (key->type == KEY_HOSTS && (host == 0 || item[host] != '\0'))
        return err_set(err, ERR_INVALID_REQUEST, "%s: '%.60s' is no name or address without port", where, item);
    return 0;
}

/* Items stand between commas, blanks or both; an empty text is the empty list. */
static int set_list(struct config *config, const struct key *key, const char *text, const char *where, struct err *err)
{
    static const char between[] = ", \t\r\n";
    size_t count = 0;
    for (const char *at = text + strspn(text, between); *at; at += strspn(at, between)) {
        at += strcspn(at, between);
        count++;
    }
    const char **list = arena_alloc(&config->arena, (count + 1) * sizeof(*list));
    if (!list)
        return out_of_memory(err);
    for (size_t i = 0; i < count; i++) {
        text += strspn(text, between);
        size_t len = strcspn(text, between);
        if (!(list[i] = arena_strndup(&config->arena, text, len)))
            return out_of_memory(err);
        if (check_item(key, list[i], where, err) != 0)
            return -1;
        text += len;
    }
    list[count] = NULL;
    *(const char ***)field_of(config, key) = list;
    return 0;
}

int config_key_set_text(struct config *config, const struct key *key, const char *text, const char *where,
                        struct err *err)
{
    switch (key->type) {
    case KEY_TEXT:
    case KEY_LEVEL:
    case KEY_FORMAT:
    case KEY_TOKEN:
        return set_string(config, key, text, where, err);
    case KEY_WS_URL:
        return set_ws_url(config, key, text, where, err);
    case KEY_LIST:
    case KEY_HOSTS:
    case KEY_ORIGINS:
        return set_list(config, key, text, where, err);
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

static int set_items(struct config *config, const struct key *key, const struct value *items, size_t count,
                     const char *where, struct err *err)
{
    const char **list = arena_alloc(&config->arena, (count + 1) * sizeof(*list));
    if (!list)
        return out_of_memory(err);
    for (size_t i = 0; i < count; i++) {
        if (items[i].type != VALUE_STRING)
            return err_set(err, ERR_INVALID_REQUEST, "%s must be a list of strings", where);
        list[i] = items[i].as.string.text;
        if (check_item(key, list[i], where, err) != 0)
            return -1;
    }
    list[count] = NULL;
    *(const char ***)field_of(config, key) = list;
    return 0;
}

int config_key_set_value(struct config *config, const struct key *key, const struct value *value, const char *where,
                         struct err *err)
{
    const char *wanted = "a string";
    switch (key->type) {
    case KEY_TEXT:
    case KEY_LEVEL:
    case KEY_FORMAT:
    case KEY_TOKEN:
        if (value->type == VALUE_STRING)
            return set_string(config, key, value->as.string.text, where, err);
        break;
    case KEY_WS_URL:
        if (value->type == VALUE_STRING)
            return set_ws_url(config, key, value->as.string.text, where, err);
        break;
    case KEY_BOOL:
        if (value->type == VALUE_BOOL) {
            *(bool *)field_of(config, key) = value->as.boolean;
            return 0;
        }
        wanted = "true or false";
        break;
    case KEY_NUMBER:
        if (value->type == VALUE_INT)
            return set_number(config, key, value->as.integer, where, err);
        wanted = "a whole number";
        break;
    case KEY_LIST:
    case KEY_HOSTS:
    case KEY_ORIGINS:
        if (value->type == VALUE_ARRAY)
            return set_items(config, key, value->as.array.items, value->as.array.count, where, err);
        if (value->type == VALUE_OBJECT && value->as.object.count == 0)
            return set_items(config, key, NULL, 0, where, err);
        wanted = "a list of strings";
        break;
    }
    return err_set(err, ERR_INVALID_REQUEST, "%s must be %s, not %s", where, wanted, value_type_name(value->type));
}
