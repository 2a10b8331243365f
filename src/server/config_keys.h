/* The keys of the configuration: their names in each source, their built-in values, and how a value gets in. For
 * config.c. */
#ifndef ABX_SERVER_CONFIG_KEYS_H
#define ABX_SERVER_CONFIG_KEYS_H

#include "model/value.h"
#include "server/config.h"

enum key_type {
    KEY_TEXT,
    KEY_LEVEL,
    KEY_FORMAT,
    KEY_TOKEN,
    KEY_WS_URL,
    KEY_NUMBER,
    KEY_BOOL,
    KEY_LIST,
    KEY_HOSTS,
    KEY_ORIGINS
};

/* One row is a key in all four sources: field `a.b_c`, variable ABX_SERVER_A_B_C, flag --a-b-c. */
struct key {
    const char *name;
    enum key_type type;
    size_t offset;
    const char *dflt; /* as an environment variable would give it; NULL: not set */
    unsigned min, max;
    const char *doc;
};

enum { KEY_NAME_MAX = 64 };

extern const struct key config_keys[]; /* ends with name NULL */

/* "limits.cpu_ms" as ABX_SERVER_LIMITS_CPU_MS or --limits-cpu-ms. */
void config_key_spell(const struct key *key, bool variable, char out[KEY_NAME_MAX]);
/* NULL: no key bears that name. */
const struct key *config_key_find(const char *name);

/* Set a key from text (flags, variables, built-in values) or from a value of the file, which must live as long as the
 * arena. -1 with what is wrong; `where` names the key in it, as its source spells it, and the value is never told. */
int config_key_set_text(struct config *config, const struct key *key, const char *text, const char *where,
                        struct err *err) ABX_MUST_USE;
int config_key_set_value(struct config *config, const struct key *key, const struct value *value, const char *where,
                         struct err *err) ABX_MUST_USE;

#endif
