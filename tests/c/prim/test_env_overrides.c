/* prim/env_overrides: changes are whole or not at all, and what is shown hides secrets. */
#include "prim/env_overrides.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct env_overrides env;

static int set_up(void **state)
{
    (void)state;
    char *envp[] = {"PATH=/bin", "ABX_SERVER_TOKEN=x", "ABX_PROCESS_ID=p-1", "A=1", "URL=db://u:pw@h/x", NULL};
    env_overrides_init(&env);
    return env_overrides_inherit(&env, envp);
}

static int tear_down(void **state)
{
    (void)state;
    env_overrides_deinit(&env);
    return 0;
}

/* "NAME=VALUE" sets, "NAME" alone unsets. */
static int change_by(struct err *err, const char *const *words)
{
    struct env_var set[8], unset[8];
    static char names[8][64];
    struct env_change change = {.set = set, .unset = unset};
    for (size_t i = 0; words[i] != NULL; i++) {
        const char *equals = strchr(words[i], '=');
        size_t len = strcspn(words[i], "=");
        snprintf(names[i], sizeof(names[i]), "%.*s", (int)len, words[i]);
        struct env_var *var = equals != NULL ? &set[change.set_count++] : &unset[change.unset_count++];
        *var = (struct env_var){.name = names[i], .name_len = len};
        if (equals != NULL) {
            var->value = equals + 1;
            var->value_len = strlen(equals + 1);
        }
    }
    return env_overrides_update(&env, &change, err);
}

static void assert_written(const char *want)
{
    struct buf out;
    buf_init(&out, 64 * 1024);
    assert_int_equal(env_overrides_write(&out, &env), 0);
    assert_int_equal(buf_append(&out, "", 1), 0);
    assert_string_equal(out.data, want);
    buf_deinit(&out);
}

#define CHANGE(err, ...) change_by(err, (const char *const[]){__VA_ARGS__, NULL})

static void assert_refused(enum err_code code, const char *field, const struct err *err)
{
    assert_int_equal(err->code, code);
    assert_string_equal(err->field, field);
    assert_written("{\"env\":{\"A\":\"1\",\"PATH\":\"/bin\",\"URL\":\"db://u:***@h/x\"},\"overrides\":[],"
                   "\"masked\":[\"URL\"]}");
}

static void begins_with_the_servers_own(void **state)
{
    (void)state;
    assert_int_equal(env.own.count, 3);
    assert_int_equal(env.effective.count, 3);
    assert_written("{\"env\":{\"A\":\"1\",\"PATH\":\"/bin\",\"URL\":\"db://u:***@h/x\"},\"overrides\":[],"
                   "\"masked\":[\"URL\"]}");
}

static void sets_and_unsets_and_keeps_its_own(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(CHANGE(&err, "B=a\nb=c", "E=", "A", "MISSING", "AB_TOKEN=t"), 0);
    assert_string_equal(env_block_get(&env.effective, "B"), "a\nb=c");
    assert_null(env_block_get(&env.effective, "A"));
    assert_string_equal(env_block_get(&env.own, "A"), "1");
    assert_null(env_block_get(&env.own, "B"));
    assert_written("{\"env\":{\"AB_TOKEN\":\"***\",\"B\":\"a\\nb=c\",\"E\":\"\",\"PATH\":\"/bin\",\"URL\":"
                   "\"db://u:***@h/x\"},\"overrides\":[\"A\",\"AB_TOKEN\",\"B\",\"E\"],"
                   "\"masked\":[\"AB_TOKEN\",\"URL\"]}");
    /* What was only set is forgotten when it goes. */
    assert_int_equal(CHANGE(&err, "A=2", "B", "E", "AB_TOKEN"), 0);
    assert_written("{\"env\":{\"A\":\"2\",\"PATH\":\"/bin\",\"URL\":\"db://u:***@h/x\"},\"overrides\":[\"A\"],"
                   "\"masked\":[\"URL\"]}");
}

static void refuses_names_that_are_none(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(CHANGE(&err, "A=9", "1B=x"), -1);
    assert_refused(ERR_INVALID_REQUEST, "set.1B", &err);
    assert_int_equal(CHANGE(&err, "A=9", "=x"), -1);
    assert_refused(ERR_INVALID_REQUEST, "set.", &err);
    assert_int_equal(CHANGE(&err, "A=9", "B", "B;x"), -1);
    assert_refused(ERR_INVALID_REQUEST, "unset[1]", &err);
    assert_int_equal(CHANGE(&err, "A=9", "B\xff=1"), -1);
    assert_refused(ERR_INVALID_REQUEST, "set.B?", &err);
    struct env_var nul = {.name = "B\0C", .value = "", .name_len = 3};
    struct env_change change = {.set = &nul, .set_count = 1};
    assert_int_equal(env_overrides_update(&env, &change, &err), -1);
    assert_refused(ERR_INVALID_REQUEST, "set.B", &err);
}

static void protects_what_the_server_stands_on(void **state)
{
    (void)state;
    static const char *const names[] = {"PATH", "HOME", "USER", "SHELL", "ABX_SERVER_X", "ABX_PROCESS_ID"};
    struct err err;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char set[64], field[64];
        snprintf(set, sizeof(set), "%s=x", names[i]);
        snprintf(field, sizeof(field), "set.%s", names[i]);
        assert_int_equal(CHANGE(&err, "A=9", set), -1);
        assert_refused(ERR_PROTECTED_VARIABLE, field, &err);
        assert_int_equal(CHANGE(&err, "A=9", "A", names[i]), -1);
        assert_refused(ERR_PROTECTED_VARIABLE, "unset[1]", &err);
    }
    assert_int_equal(CHANGE(&err, "PATHS=x", "SHELLS=x", "HOM=x", "ABX_SERVER=x"), 0);
}

static void refuses_values_that_cannot_be(void **state)
{
    (void)state;
    struct err err;
    struct env_var nul = {.name = "B", .value = "x\0y", .name_len = 1, .value_len = 3};
    struct env_change change = {.set = &nul, .set_count = 1};
    assert_int_equal(env_overrides_update(&env, &change, &err), -1);
    assert_refused(ERR_INVALID_REQUEST, "set.B", &err);
    assert_int_equal(CHANGE(&err, "API_KEY=***"), -1);
    assert_refused(ERR_INVALID_REQUEST, "set.API_KEY", &err);
    assert_int_equal(CHANGE(&err, "URL=db://u:***@h/x"), -1);
    assert_refused(ERR_INVALID_REQUEST, "set.URL", &err);
    assert_int_equal(CHANGE(&err, "B=1", "B=2"), -1);
    assert_refused(ERR_INVALID_REQUEST, "set.B", &err);
    assert_int_equal(CHANGE(&err, "B=1", "C", "B"), -1);
    assert_refused(ERR_INVALID_REQUEST, "unset[1]", &err);
    assert_int_equal(CHANGE(&err, "B=***", "URL2=db://u:***@h/x", "C", "C"), 0);
}

static int set_long(const char *name, size_t value_len, struct err *err)
{
    char *value = malloc(value_len + 1);
    assert_non_null(value);
    memset(value, 'x', value_len);
    value[value_len] = '\0';
    struct env_var var = {.name = name, .value = value, .name_len = strlen(name), .value_len = value_len};
    struct env_change change = {.set = &var, .set_count = 1};
    int failed = env_overrides_update(&env, &change, err);
    free(value);
    return failed;
}

static void bounds_a_variable_and_all_together(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(set_long("B", ENV_VARIABLE_MAX_BYTES - 1, &err), -1);
    assert_refused(ERR_PAYLOAD_TOO_LARGE, "set.B", &err);
    char name[] = "A0";
    for (int i = 0; i < 7; i++, name[1]++)
        assert_int_equal(set_long(name, ENV_VARIABLE_MAX_BYTES - 3, &err), 0);
    size_t count = env.effective.count;
    /* Seven times 128 KiB are there; the rest of the MiB less what there was at first. */
    size_t left = ENV_TOTAL_MAX_BYTES - 7 * (128 * 1024) - sizeof("A=1") - sizeof("PATH=/bin") -
                  sizeof("URL=db://u:pw@h/x") - sizeof("B=");
    assert_int_equal(set_long("B", left + 1, &err), -1);
    assert_int_equal(err.code, ERR_PAYLOAD_TOO_LARGE);
    assert_string_equal(err.field, "set");
    assert_non_null(strstr(err.text, "1048576"));
    assert_int_equal(env.effective.count, count);
    assert_int_equal(set_long("B", left, &err), 0);
    assert_int_equal(CHANGE(&err, "B", "A0"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(begins_with_the_servers_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sets_and_unsets_and_keeps_its_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_names_that_are_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(protects_what_the_server_stands_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_values_that_cannot_be, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bounds_a_variable_and_all_together, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
