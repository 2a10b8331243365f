/* Reads the configuration from its four sources; see the header. Called once by main. */
#include "server/config.h"

#include "base/log.h"
#include "prim/secret.h"
#include "script/config_file.h"
#include "script/nearest.h"
#include "server/config_keys.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONFIG_ARENA_MAX_BYTES = 1024 * 1024, WARNINGS_MAX = 20, NO_PORT = 65536 };

static const char program[] = "abxd"; /* in front of faults that stand in no file */

/* The file's tables; a key of theirs is named "limits.requests". */
static bool is_table(const char *name)
{
    return strcmp(name, "limits") == 0 || strcmp(name, "browser") == 0 || strcmp(name, "mcp") == 0;
}

/* Which file is read is settled before it is, so the key `config` has a turn of its own. */
static bool names_file(const struct key *key)
{
    return strcmp(key->name, "config") == 0;
}

struct setting {
    const struct value_member *member;
    const char *name; /* "limits.requests" */
    int line;
};

static int by_line(const void *a, const void *b)
{
    const struct setting *one = a, *other = b;
    return one->line != other->line ? one->line - other->line : strcmp(one->name, other->name);
}

enum spelling { AS_KEY, AS_VARIABLE, AS_FLAG };

/* " (did you mean --base-dir?)", or nothing. `written` comes without ABX_SERVER_ and dashes in front. */
static const char *hint(const char *written, enum spelling spelling, char out[2 * KEY_NAME_MAX])
{
    char plain[KEY_NAME_MAX], name[KEY_NAME_MAX];
    struct nearest nearest;
    snprintf(plain, sizeof(plain), "%s", written);
    for (char *c = plain; *c; c++)
        *c = *c == '-' ? '_' : (char)tolower((unsigned char)*c);
    nearest_init(&nearest, plain);
    for (const struct key *key = config_keys; key->name; key++)
        nearest_offer(&nearest, key->name);
    const struct key *key = nearest.name ? config_key_find(nearest.name) : NULL;
    out[0] = '\0';
    if (key && spelling == AS_KEY)
        snprintf(name, sizeof(name), "'%s'", key->name);
    else if (key)
        config_key_spell(key, spelling == AS_VARIABLE, name);
    if (key)
        snprintf(out, 2 * KEY_NAME_MAX, " (did you mean %s?)", name);
    return out;
}

/* Lua keeps no order, so the members are taken in that of their lines. */
static struct setting *settings_of(struct config *config, const struct config_file *file, const char *table,
                                   const struct value *object)
{
    size_t count = object->as.object.count;
    struct setting *settings = arena_alloc(&config->arena, (count ? count : 1) * sizeof(*settings));
    for (size_t i = 0; settings && i < count; i++) {
        char name[200];
        settings[i].member = &object->as.object.members[i];
        snprintf(name, sizeof(name), "%s%s%s", table, *table ? "." : "", settings[i].member->name);
        settings[i].line = config_file_line(file, name);
        if (!(settings[i].name = arena_strndup(&config->arena, name, strlen(name))))
            return NULL;
    }
    if (settings)
        qsort(settings, count, sizeof(*settings), by_line);
    return settings;
}

static void read_table(struct config *config, const struct config_file *file, const char *table,
                       const struct value *object, struct faults *faults)
{
    struct setting *settings = settings_of(config, file, table, object);
    char text[2 * KEY_NAME_MAX];
    struct err err;
    if (!settings)
        faults_add(faults, file->path, 0, "the configuration is too large");
    for (size_t i = 0; settings && i < object->as.object.count; i++) {
        const struct setting *setting = &settings[i];
        const struct value *value = &setting->member->value;
        const struct key *key = config_key_find(setting->name);
        if (key && names_file(key)) {
            faults_add(faults, file->path, setting->line, "config is a flag or a variable only");
        } else if (key) {
            if (config_key_set_value(config, key, value, setting->name, &err) != 0)
                faults_add(faults, file->path, setting->line, "%s", err.text);
        } else if (*table || !is_table(setting->name)) {
            faults_add(faults, file->path, setting->line, "unknown key '%.60s'%s", setting->name,
                       hint(setting->name, AS_KEY, text));
        } else if (value->type != VALUE_OBJECT) {
            faults_add(faults, file->path, setting->line, "%s must be a table of names", setting->name);
        } else {
            read_table(config, file, setting->name, value, faults);
        }
    }
}

static void read_environment(struct config *config, bool file_name, struct faults *faults)
{
    for (const struct key *key = config_keys; key->name; key++) {
        char variable[KEY_NAME_MAX];
        struct err err;
        config_key_spell(key, true, variable);
        const char *text = names_file(key) == file_name ? getenv(variable) : NULL;
        if (text && config_key_set_text(config, key, text, variable, &err) != 0)
            faults_add(faults, program, 0, "%s", err.text);
    }
}

static bool is_variable(const char *name, size_t len)
{
    for (const struct key *key = config_keys; key->name; key++) {
        char variable[KEY_NAME_MAX];
        config_key_spell(key, true, variable);
        if (strlen(variable) == len && strncmp(variable, name, len) == 0)
            return true;
    }
    return false;
}

/* They are no faults: whoever runs this server may have variables of that name for something else. */
static int find_unknown_variables(struct config *config)
{
    static const char prefix[] = "ABX_SERVER_";
    size_t count = 0;
    config->warnings = arena_alloc(&config->arena, (WARNINGS_MAX + 1) * sizeof(*config->warnings));
    for (char **entry = environ; config->warnings && entry && *entry && count < WARNINGS_MAX; entry++) {
        size_t len = strcspn(*entry, "=");
        if (strncmp(*entry, prefix, strlen(prefix)) != 0 || is_variable(*entry, len))
            continue;
        char name[100], near[2 * KEY_NAME_MAX], text[300];
        snprintf(name, sizeof(name), "%.*s", (int)len, *entry);
        int text_len = snprintf(text, sizeof(text), "unknown variable %s is ignored%s", name,
                                hint(name + strlen(prefix), AS_VARIABLE, near));
        if (!(config->warnings[count] = arena_strndup(&config->arena, text, (size_t)text_len)))
            return -1;
        count++;
    }
    if (config->warnings)
        config->warnings[count] = NULL;
    return config->warnings ? 0 : -1;
}

/* Splits "--name=value"; answers the key, or NULL. *out_value is NULL where no '=' stood. */
static const struct key *flag_find(char *flag, char **out_value)
{
    size_t len = strcspn(flag, "=");
    *out_value = flag[len] ? flag + len + 1 : NULL;
    for (const struct key *key = config_keys; key->name; key++) {
        char name[KEY_NAME_MAX];
        config_key_spell(key, false, name);
        if (strlen(name) == len && strncmp(name, flag, len) == 0)
            return key;
    }
    return NULL;
}

/* What stands behind '=' or in the next argument is not told: it may be a token behind a misspelt --token. */
static void add_unknown_flag(const char *flag, struct faults *faults)
{
    char name[KEY_NAME_MAX], near[2 * KEY_NAME_MAX];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(flag, "="), flag);
    if (name[0] != '-') {
        faults_add(faults, program, 0, "unexpected argument %s; the command comes first, then flags", name);
        return;
    }
    faults_add(faults, program, 0, "unknown flag %s%s; abxd --help lists them", name,
               hint(name + strspn(name, "-"), AS_FLAG, near));
}

static bool is_flag(const char *argument)
{
    return strncmp(argument, "--", 2) == 0;
}

static void read_flags(struct config *config, int argc, char **argv, struct faults *faults)
{
    for (int i = 0; i < argc; i++) {
        char *value, where[KEY_NAME_MAX];
        const struct key *key = flag_find(argv[i], &value);
        bool next_is_value = i + 1 < argc && !is_flag(argv[i + 1]);
        struct err err;
        if (!key) {
            add_unknown_flag(argv[i], faults);
            i += argv[i][0] == '-' && !value && next_is_value;
            continue;
        }
        config_key_spell(key, false, where);
        if (!value && key->type == KEY_BOOL && !next_is_value)
            value = "true";
        else if (!value && ++i < argc)
            value = argv[i];
        if (!value)
            faults_add(faults, program, 0, "%s needs a value", where);
        else if (!names_file(key) && config_key_set_text(config, key, value, where, &err) != 0)
            faults_add(faults, program, 0, "%s", err.text);
        if (value && key->type == KEY_TOKEN)
            secret_wipe_arg(value);
    }
}

/* The flags are looked at once before, because one says which file the second source is. Their faults are told later.
 */
static const char *config_flag(int argc, char **argv)
{
    const char *path = NULL;
    for (int i = 0; i < argc; i++) {
        char *value;
        const struct key *key = flag_find(argv[i], &value);
        if (key && key->type != KEY_BOOL && !value && ++i < argc)
            value = argv[i];
        if (key && value && names_file(key))
            path = value;
    }
    return path;
}

/* Where the tables live: beside an installed binary, else in the working directory. NULL: in neither. */
static const char *find_shipped(struct config *config, const char *install_dir, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/../share/abxd/%s", install_dir, name);
    if (access(path, F_OK) != 0)
        snprintf(path, sizeof(path), "%s", name);
    return access(path, F_OK) == 0 ? arena_strndup(&config->arena, path, strlen(path)) : NULL;
}

static void read_file(struct config *config, struct faults *faults)
{
    struct config_file file;
    if (config_file_read(config->config, &config->arena, &file, faults) == 0)
        read_table(config, &file, "", &file.table, faults);
    config_file_deinit(&file);
}

static void take_token(struct config *config, struct faults *faults)
{
    struct err err;
    if (!config->token && config->token_file && secret_read_file(config->token_file, &config->token, &err) != 0)
        faults_add(faults, program, 0, "%s", err.text);
    secret_wipe_env("ABX_SERVER_TOKEN");
    log_hide(config->token);
}

/* What only all sources together tell. */
static void check_whole(struct config *config, struct faults *faults)
{
    if (!config->host || !config->base_dir)
        faults_add(faults, program, 0, "%s must not be empty", config->host ? "base_dir" : "host");
    else if (!config->token && !config->allow_unauthenticated && !config_is_loopback(config->host))
        faults_add(faults, program, 0,
                   "host %s is not loopback: set a token, or allow_unauthenticated=true to serve everybody",
                   config->host);
    if (!config->lua_dir)
        faults_add(faults, program, 0, "no tables at ./lua: run abxd in its source tree, or say --lua-dir");
}

int config_read(struct config *config, int argc, char **argv, const char *install_dir, struct faults *faults)
{
    size_t faults_before = faults->count;
    struct err err;
    memset(config, 0, sizeof(*config));
    arena_init(&config->arena, CONFIG_ARENA_MAX_BYTES);
    for (const struct key *key = config_keys; key->name; key++)
        if (key->dflt && config_key_set_text(config, key, key->dflt, key->name, &err) != 0)
            faults_add(faults, program, 0, "%s", err.text);
    config->ws_port = NO_PORT;
    if (find_unknown_variables(config) != 0)
        faults_add(faults, program, 0, "not enough memory for the configuration");

    read_environment(config, true, faults);
    const char *flag = config_flag(argc, argv);
    if (flag && *flag)
        config->config = flag;
    if (!config->config)
        config->config = find_shipped(config, install_dir, "config/server.lua");
    if (config->config)
        read_file(config, faults);
    read_environment(config, false, faults);
    read_flags(config, argc, argv, faults);
    take_token(config, faults);

    if (config->ws_port == NO_PORT)
        config->ws_port = config->port == 0 || config->port == 65535 ? 0 : config->port + 1;
    if (!config->lua_dir)
        config->lua_dir = find_shipped(config, install_dir, "lua");
    if (!config->workers_dir)
        config->workers_dir = find_shipped(config, install_dir, "workers");
    if (!config->commands)
        config->commands = find_shipped(config, install_dir, "config/commands.lua");
    if (faults->count == faults_before) /* else what is missing may stand in a faulty line */
        check_whole(config, faults);
    return faults->count == faults_before ? 0 : -1;
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
    for (const struct key *key = config_keys; key->name; key++) {
        char flag[KEY_NAME_MAX];
        config_key_spell(key, false, flag);
        printf("  %-26s %s%s%s%s\n", flag, key->doc, key->dflt ? " (" : "", key->dflt ? key->dflt : "",
               key->dflt ? ")" : "");
    }
}
