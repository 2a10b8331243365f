/* What POST /env changes and GET /env shows; called by the process table and bind_env. */
#include "prim/env_overrides.h"

#include "base/json.h"
#include "prim/mask.h"
#include "prim/process_marker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVER_PREFIX "ABX_SERVER_"

void env_overrides_init(struct env_overrides *env)
{
    env_block_init(&env->own);
    env_block_init(&env->effective);
    env_block_init(&env->names);
}

void env_overrides_deinit(struct env_overrides *env)
{
    env_block_deinit(&env->own);
    env_block_deinit(&env->effective);
    env_block_deinit(&env->names);
}

static int copy(struct env_block *to, const struct env_block *from)
{
    env_block_init(to);
    return from->count > 0 ? env_block_inherit(to, from->vars) : 0;
}

int env_overrides_inherit(struct env_overrides *env, char *const *envp)
{
    if (env_block_inherit(&env->own, envp) != 0)
        return -1;
    env_block_unset(&env->own, PROCESS_MARKER);
    return copy(&env->effective, &env->own);
}

/* --- what is refused */

enum part { PART_SET, PART_UNSET };

/* A name goes into the field's only where it is one; else the place of an entry tells. */
static int refuse(struct err *err, enum part part, const struct env_var *var, size_t at)
{
    char field[sizeof(err->field) + 16];
    if (part == PART_SET)
        snprintf(field, sizeof(field), "set.%.*s", (int)strnlen(var->name, var->name_len), var->name);
    else
        snprintf(field, sizeof(field), "unset[%zu]", at);
    return err_field(err, field);
}

static bool is_protected(const struct env_var *var)
{
    static const char *const names[] = {"PATH", "HOME", "USER", "SHELL", PROCESS_MARKER};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strlen(names[i]) == var->name_len && memcmp(names[i], var->name, var->name_len) == 0)
            return true;
    return strncmp(var->name, SERVER_PREFIX, strlen(SERVER_PREFIX)) == 0;
}

static int check_names(const struct env_var *vars, size_t count, enum part part, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (env_name_valid(vars[i].name, vars[i].name_len))
            continue;
        err_set(err, ERR_INVALID_REQUEST, "names of variables are letters, digits and underscores, no digit first");
        return refuse(err, part, &vars[i], i);
    }
    return 0;
}

static int check_protected(const struct env_var *vars, size_t count, enum part part, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_protected(&vars[i]))
            continue;
        err_set(err, ERR_PROTECTED_VARIABLE, "%.40s stays as it is; nothing was changed", vars[i].name);
        return refuse(err, part, &vars[i], i);
    }
    return 0;
}

/* What GET /env shows of a value is not a value: a client that sends it back would lose the secret. */
static bool is_shown_mask(const struct env_overrides *env, const struct env_var *var)
{
    if (mask_is_secret_name(var->name, var->name_len))
        return strcmp(var->value, MASK_TEXT) == 0;
    const char *now = env_block_get(&env->effective, var->name);
    if (now == NULL || strstr(var->value, MASK_TEXT) == NULL || strcmp(now, var->value) == 0)
        return false;
    struct buf shown;
    buf_init(&shown, 4 * ENV_TOTAL_MAX_BYTES);
    bool same = mask_urls(&shown, now, strlen(now)) == 0 && shown.len == var->value_len &&
                memcmp(shown.data, var->value, shown.len) == 0;
    buf_deinit(&shown);
    return same;
}

static int check_value(const struct env_overrides *env, const struct env_var *var, struct err *err)
{
    if (memchr(var->value, '\0', var->value_len) != NULL)
        err_set(err, ERR_INVALID_REQUEST, "the value of a variable cannot hold a NUL byte");
    else if (var->name_len + 1 + var->value_len > ENV_VARIABLE_MAX_BYTES)
        err_set(err, ERR_PAYLOAD_TOO_LARGE,
                "a variable, NAME=VALUE, has at most %d bytes (128 KiB with its end), as no program takes more",
                ENV_VARIABLE_MAX_BYTES);
    else if (is_shown_mask(env, var))
        err_set(err, ERR_INVALID_REQUEST, MASK_TEXT " is shown for what is hidden: give the value itself");
    else
        return 0;
    return refuse(err, PART_SET, var, 0);
}

static int check(const struct env_overrides *env, const struct env_change *change, struct err *err)
{
    if (check_names(change->set, change->set_count, PART_SET, err) != 0 ||
        check_names(change->unset, change->unset_count, PART_UNSET, err) != 0 ||
        check_protected(change->set, change->set_count, PART_SET, err) != 0 ||
        check_protected(change->unset, change->unset_count, PART_UNSET, err) != 0)
        return -1;
    for (size_t i = 0; i < change->set_count; i++)
        if (check_value(env, &change->set[i], err) != 0)
            return -1;
    return 0;
}

/* --- the change, made on copies that take the place of what there was */

static size_t total_bytes(const struct env_block *block)
{
    size_t total = 0;
    for (size_t i = 0; i < block->count; i++)
        total += strlen(block->vars[i]) + 1;
    return total;
}

/* Names are valid here, so each ends with a NUL at name_len: they are strings of Lua. */
static int apply_set(struct env_overrides *next, const struct env_change *change, struct err *err)
{
    for (size_t i = 0; i < change->set_count; i++) {
        const struct env_var *var = &change->set[i];
        if (env_block_set(&next->effective, var->name, var->value) != 0 ||
            env_block_set(&next->names, var->name, "") != 0)
            return err_set(err, ERR_INTERNAL, "out of memory for an environment");
    }
    return 0;
}

static bool is_in(const struct env_block *names, const char *name)
{
    return env_block_get(names, name) != NULL;
}

/* What was never the server's own is forgotten: the names that are kept stay bounded. */
static int apply_unset(struct env_overrides *next, const struct env_overrides *env, const struct env_change *change,
                       const struct env_block *set_now, struct err *err)
{
    for (size_t i = 0; i < change->unset_count; i++) {
        const struct env_var *var = &change->unset[i];
        if (is_in(set_now, var->name)) {
            err_set(err, ERR_INVALID_REQUEST, "%.40s cannot be set and unset at once", var->name);
            return refuse(err, PART_UNSET, var, i);
        }
        env_block_unset(&next->effective, var->name);
        if (!is_in(&env->own, var->name))
            env_block_unset(&next->names, var->name);
        else if (env_block_set(&next->names, var->name, "") != 0)
            return err_set(err, ERR_INTERNAL, "out of memory for an environment");
    }
    return 0;
}

static int names_of(struct env_block *out, const struct env_change *change, struct err *err)
{
    for (size_t i = 0; i < change->set_count; i++) {
        if (is_in(out, change->set[i].name)) {
            err_set(err, ERR_INVALID_REQUEST, "%.40s is set twice", change->set[i].name);
            return refuse(err, PART_SET, &change->set[i], i);
        }
        if (env_block_set(out, change->set[i].name, "") != 0)
            return err_set(err, ERR_INTERNAL, "out of memory for an environment");
    }
    return 0;
}

static int check_total(const struct env_overrides *env, const struct env_overrides *next, struct err *err)
{
    size_t total = total_bytes(&next->effective);
    if (total <= ENV_TOTAL_MAX_BYTES || total <= total_bytes(&env->effective))
        return 0;
    err_set(err, ERR_PAYLOAD_TOO_LARGE,
            "all variables together, each NAME=VALUE with its end, have at most %d bytes (1 MiB); this would make %zu",
            ENV_TOTAL_MAX_BYTES, total);
    return err_field(err, "set");
}

int env_overrides_update(struct env_overrides *env, const struct env_change *change, struct err *err)
{
    if (check(env, change, err) != 0)
        return -1;
    struct env_overrides next;
    struct env_block set_now;
    env_overrides_init(&next);
    env_block_init(&set_now);
    int failed = 0;
    if (copy(&next.effective, &env->effective) != 0 || copy(&next.names, &env->names) != 0)
        failed = err_set(err, ERR_INTERNAL, "out of memory for an environment");
    if (failed != 0 || names_of(&set_now, change, err) != 0 || apply_set(&next, change, err) != 0 ||
        apply_unset(&next, env, change, &set_now, err) != 0 || check_total(env, &next, err) != 0) {
        failed = -1;
    } else {
        next.own = env->own;
        env_block_deinit(&env->effective);
        env_block_deinit(&env->names);
        *env = next;
        env_overrides_init(&next);
    }
    env_block_deinit(&set_now);
    env_overrides_deinit(&next);
    return failed;
}

/* --- what is shown */

static int compare_vars(const void *a, const void *b)
{
    const unsigned char *left = *(const unsigned char *const *)a, *right = *(const unsigned char *const *)b;
    while (*left == *right && *left != '=' && *left != '\0')
        left++, right++;
    int left_end = *left == '=' || *left == '\0', right_end = *right == '=' || *right == '\0';
    return left_end || right_end ? right_end - left_end : *left - *right;
}

/* The variables by name; the caller frees the vector, not what it points to. NULL out of memory. */
static char **sorted(const struct env_block *block)
{
    char **vars = malloc((block->count + 1) * sizeof(*vars));
    if (vars == NULL || block->count == 0)
        return vars;
    memcpy(vars, block->vars, block->count * sizeof(*vars));
    qsort(vars, block->count, sizeof(*vars), compare_vars);
    return vars;
}

static int write_name(struct buf *out, const char *comma, const char *var)
{
    return buf_append_text(out, comma) || json_write_string(out, var, strcspn(var, "="));
}

static int write_var(struct buf *out, struct buf *masked, struct buf *shown, const char *var)
{
    size_t name_len = strcspn(var, "=");
    const char *value = var + name_len + 1;
    size_t len = strlen(value);
    buf_reset(shown);
    bool secret = mask_is_secret_name(var, name_len);
    if (secret ? buf_append_text(shown, MASK_TEXT) : mask_urls(shown, value, len))
        return -1;
    bool hidden = secret || shown->len != len || (len > 0 && memcmp(shown->data, value, len) != 0);
    if (hidden && write_name(masked, masked->len > 0 ? "," : "", var) != 0)
        return -1;
    return buf_append_text(out, ":") || json_write_string(out, shown->data, shown->len);
}

static int write_vars(struct buf *out, struct buf *masked, char *const *vars, size_t count)
{
    struct buf shown;
    buf_init(&shown, out->max);
    int failed = buf_append_text(out, "{\"env\":{");
    for (size_t i = 0; i < count && failed == 0; i++)
        failed = write_name(out, i > 0 ? "," : "", vars[i]) || write_var(out, masked, &shown, vars[i]);
    buf_deinit(&shown);
    return failed;
}

int env_overrides_write(struct buf *out, const struct env_overrides *env)
{
    struct buf masked;
    buf_init(&masked, out->max);
    char **vars = sorted(&env->effective), **names = sorted(&env->names);
    int failed = vars == NULL || names == NULL || write_vars(out, &masked, vars, env->effective.count) ||
                 buf_append_text(out, "},\"overrides\":[");
    for (size_t i = 0; i < env->names.count && failed == 0; i++)
        failed = write_name(out, i > 0 ? "," : "", names[i]);
    failed = failed || buf_append_text(out, "],\"masked\":[") || buf_append(out, masked.data, masked.len) ||
             buf_append_text(out, "]}");
    free(vars);
    free(names);
    buf_deinit(&masked);
    return failed != 0 ? -1 : 0;
}
