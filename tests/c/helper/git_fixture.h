/* A base directory, one beside it that nothing may touch, and an `abxd-helper git` that is driven over its channel;
 * for tests of its operations. Repositories are made, and looked at, by the git command line. */
#ifndef ABX_TESTS_GIT_FIXTURE_H
#define ABX_TESTS_GIT_FIXTURE_H

#include "base/base64.h"
#include "base/buf.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Directories of a test: base and outside, beside a private TMPDIR and HOME; and where its scripts run. */
static char git_root[64], git_base[80], git_outside[80], git_scripts[96];
static FILE *git_channel;
static pid_t git_pid;
static char git_guards[2][400]; /* words for protected paths; "": none */
static const cJSON *git_answer; /* the last message */

/* What lives until the test ends. */
static struct {
    void *items[4096];
    size_t count;
} git_texts, git_answers;

static char *keep_text(char *text)
{
    assert_true(git_texts.count < sizeof git_texts.items / sizeof git_texts.items[0]);
    return git_texts.items[git_texts.count++] = text;
}

/* --- the git command line */

/* Runs a shell script, with OUT set to the outside. Its output without the last newline is kept in *output. */
static int run_script(const char *script, char **output)
{
    char *command, *text = NULL;
    size_t len = 0;
    assert_true(asprintf(&command,
                         "set -e; export LC_ALL=C OUT='%s' HOME='%s/home' GIT_CONFIG_NOSYSTEM=1 "
                         "GIT_AUTHOR_NAME='Ann Author' GIT_AUTHOR_EMAIL=ann@example.org "
                         "GIT_COMMITTER_NAME='Carl Committer' GIT_COMMITTER_EMAIL=carl@example.org; cd '%s'; %s",
                         git_outside, git_root, git_scripts, script) >= 0);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    FILE *memory = open_memstream(&text, &len);
    for (int c; (c = fgetc(out)) != EOF;)
        fputc(c, memory);
    fclose(memory);
    free(command);
    if (len > 0 && text[len - 1] == '\n')
        text[len - 1] = '\0';
    *output = keep_text(text);
    return pclose(out);
}

/* The output of a script, which must succeed. */
__attribute__((format(printf, 1, 2), unused)) static char *sh(const char *format, ...)
{
    char *script, *output;
    va_list args;
    va_start(args, format);
    assert_true(vasprintf(&script, format, args) >= 0);
    va_end(args);
    if (run_script(script, &output) != 0)
        fail_msg("the script failed: %s\n%s", script, output);
    free(script);
    return output;
}

static inline bool sh_is(const char *script)
{
    char *output;
    return run_script(script, &output) == 0;
}

/* --- the helper */

static void git_helper_start(bool landlock)
{
    int pair[2];
    char tmp[96], home[96];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    snprintf(tmp, sizeof tmp, "TMPDIR=%s/tmp", git_root);
    snprintf(home, sizeof home, "HOME=%s/home", git_root);
    char *argv[7] = {"abxd-helper", "git"};
    size_t argc = 2;
    if (!landlock)
        argv[argc++] = "--no-landlock";
    argv[argc++] = git_base;
    for (size_t i = 0; i < 2 && git_guards[i][0]; i++)
        argv[argc++] = git_guards[i];
    char *env[] = {tmp, home, "PATH=/usr/bin:/bin", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pair[1], 3);
    posix_spawn_file_actions_addchdir_np(&actions, git_base);
    assert_int_equal(posix_spawn(&git_pid, ABX_BINARY_DIR "/abxd-helper", &actions, NULL, argv, env), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(pair[1]);
    git_channel = fdopen(pair[0], "r+");
    assert_non_null(git_channel);
}

/* What the helper ended with. */
static int git_helper_end(void)
{
    int status = -1;
    fclose(git_channel);
    assert_int_equal(waitpid(git_pid, &status, 0), git_pid);
    return status;
}

/* *state: NULL or anything: with Landlock or without. Scripts run in the base. */
static int git_set_up(void **state)
{
    snprintf(git_root, sizeof git_root, "/tmp/test-git-XXXXXX");
    if (!mkdtemp(git_root))
        return -1;
    snprintf(git_base, sizeof git_base, "%s/base", git_root);
    snprintf(git_outside, sizeof git_outside, "%s/outside", git_root);
    snprintf(git_scripts, sizeof git_scripts, "%s", git_base);
    char command[400];
    snprintf(command, sizeof command, "cd %s && mkdir base outside tmp home && echo secret >outside/secret", git_root);
    if (system(command) != 0)
        return -1;
    git_helper_start(*state == NULL);
    return 0;
}

/* The same with an empty repository `repo` in the base, in which scripts run. */
static inline int git_set_up_repository(void **state)
{
    if (git_set_up(state) != 0)
        return -1;
    sh("git init -q -b main repo");
    snprintf(git_scripts, sizeof git_scripts, "%s/repo", git_base);
    return 0;
}

static int git_tear_down(void **state)
{
    (void)state;
    char command[256];
    int status = git_helper_end();
    git_answer = NULL;
    while (git_texts.count > 0)
        free(git_texts.items[--git_texts.count]);
    while (git_answers.count > 0)
        cJSON_Delete(git_answers.items[--git_answers.count]);
    snprintf(command, sizeof command, "chmod -R u+rwX '%s'; rm -rf '%s'", git_root, git_root);
    return system(command) == 0 && status == 0 ? 0 : -1;
}

#define git_test(function) cmocka_unit_test_setup_teardown(function, git_set_up, git_tear_down)
#define repository_test(function) cmocka_unit_test_setup_teardown(function, git_set_up_repository, git_tear_down)

/* --- its answers */

/* Member by member: "files.0.path". */
static const cJSON *member_at(const cJSON *value, const char *path)
{
    char name[64];
    while (value && *path) {
        size_t len = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)len, path);
        value = cJSON_IsArray(value) ? cJSON_GetArrayItem(value, atoi(name))
                                     : cJSON_GetObjectItemCaseSensitive(value, name);
        path += len + (path[len] == '.');
    }
    return value;
}

static const char *text_of(const cJSON *value, const char *path)
{
    const cJSON *found = member_at(value, path);
    return cJSON_IsString(found) ? found->valuestring : cJSON_IsNull(found) ? "null" : "(missing)";
}

/* -1 where it is missing or null; true is 1. */
static inline int number_of(const cJSON *value, const char *path)
{
    const cJSON *found = member_at(value, path);
    return cJSON_IsNumber(found) ? found->valueint : cJSON_IsBool(found) ? cJSON_IsTrue(found) : -1;
}

static inline int count_of(const cJSON *value, const char *path)
{
    return cJSON_GetArraySize(member_at(value, path));
}

static inline bool is_true(const cJSON *value, const char *path)
{
    return cJSON_IsTrue(member_at(value, path));
}

/* One member of each item of a list, each on lines of its own: what git prints with a format. */
static inline char *column(const cJSON *value, const char *list, const char *member)
{
    char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    const cJSON *item;
    cJSON_ArrayForEach(item, member_at(value, list))
    {
        const cJSON *found = member ? member_at(item, member) : item;
        fflush(memory);
        const char *before = len > 0 && text[len - 1] != '\n' ? "\n" : "";
        if (cJSON_IsNumber(found))
            fprintf(memory, "%s%.0f", before, found->valuedouble);
        else
            fprintf(memory, "%s%s", before, cJSON_IsString(found) ? found->valuestring : "null");
    }
    fclose(memory);
    return keep_text(text);
}

/* --- calls. The path is below the base; params are JSON members, in which ' stands for "; " " for none. */

static void call(const char *operation, const char *path, const char *format, va_list args)
{
    static int id;
    char *params, *line = NULL, full[PATH_MAX];
    size_t line_cap = 0;
    struct buf encoded;
    assert_true(vasprintf(&params, format, args) >= 0);
    for (char *c = params; *c; c++)
        if (*c == '\'')
            *c = '"';
    buf_init(&encoded, 2 * PATH_MAX);
    snprintf(full, sizeof full, "%s/%s", git_base, path);
    assert_int_equal(base64_encode(&encoded, full, strlen(full)), 0);
    fprintf(git_channel,
            "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\",\"params\":{\"path_base64\":\"%.*s\"%s%s}}\n", ++id,
            operation, (int)encoded.len, encoded.data, params[0] == ' ' ? "" : ",", params);
    assert_int_equal(fflush(git_channel), 0);
    buf_deinit(&encoded);
    free(params);
    assert_true(getline(&line, &line_cap, git_channel) > 0);
    cJSON *answer = cJSON_Parse(line);
    assert_non_null(answer);
    free(line);
    assert_int_equal(number_of(answer, "id"), id);
    assert_true(git_answers.count < sizeof git_answers.items / sizeof git_answers.items[0]);
    git_answers.items[git_answers.count++] = answer;
    git_answer = answer;
}

/* The operation's result; it must succeed. */
__attribute__((format(printf, 3, 4), unused)) static const cJSON *ask(const char *operation, const char *path,
                                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    call(operation, path, format, args);
    va_end(args);
    const cJSON *result = member_at(git_answer, "result");
    if (!result)
        fail_msg("%s was refused: %s", operation, text_of(git_answer, "error.message"));
    return member_at(result, "result");
}

/* The refusal's data; it must be refused with that code. */
__attribute__((format(printf, 4, 5), unused)) static const cJSON *refused(const char *code, const char *operation,
                                                                          const char *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    call(operation, path, format, args);
    va_end(args);
    const cJSON *data = member_at(git_answer, "error.data");
    if (strcmp(text_of(data, "code"), code) != 0)
        fail_msg("%s should be refused with %s, not %s: %s", operation, code, text_of(data, "code"),
                 text_of(git_answer, "error.message"));
    return data;
}

#endif
