/* What one run of a shell session hands to the next; called by prim/session.
 *
 * A shell tells its state by itself: an EXIT trap, put before the command on its first line, writes the working
 * directory and the environment to a private file. */
#include "prim/session_state.h"

#include "base/buf.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A state beyond these bounds is not kept. */
enum { STATE_MAX_BYTES = 2 * 1024 * 1024, VARS_MAX = 4096, VAR_NAME_MAX = 4096 };

void session_state_deinit(struct session_state *state)
{
    free(state->cwd);
    env_block_deinit(&state->set);
    env_block_deinit(&state->unset);
    *state = (struct session_state){0};
}

static void split_name(const char *var, char *name, size_t size, const char **out_value)
{
    size_t len = strcspn(var, "=");
    snprintf(name, size, "%.*s", (int)len, var);
    *out_value = var + len + (var[len] == '=');
}

int session_state_apply(const struct session_state *state, struct env_block *env)
{
    char name[VAR_NAME_MAX];
    const char *value;
    for (size_t i = 0; i < state->unset.count; i++) {
        split_name(state->unset.vars[i], name, sizeof(name), &value);
        env_block_unset(env, name);
    }
    for (size_t i = 0; i < state->set.count; i++) {
        split_name(state->set.vars[i], name, sizeof(name), &value);
        if (env_block_set(env, name, value) != 0)
            return -1;
    }
    return 0;
}

/* Appends text in single quotes, as one word of the shell. */
static int append_quoted(struct buf *out, const char *text)
{
    int failed = buf_append_text(out, "'");
    for (; *text != '\0' && failed == 0; text++)
        failed = *text == '\'' ? buf_append_text(out, "'\\''") : buf_append(out, text, 1);
    return failed != 0 ? failed : buf_append_text(out, "'");
}

/* The exit status stays what it was: a trap that does not call exit cannot change it, but a failure under set -e or a
 * signal could. So all is done in a subshell, where a limit on files (ulimit -f) is an error like any other, and whose
 * failure counts for nothing. Closing stderr, unlike /dev/null, needs no descriptor (ulimit -n) and takes what set -x
 * prints. An empty record at the end tells that it got so far. */
static int append_trap_body(struct buf *out, const char *path)
{
    const char *env = access("/usr/bin/env", X_OK) == 0 ? "/usr/bin/env" : "command -p env";
    static const char end[] = " ) 2>&- || :";
    int failed = buf_printf(out,
                            "( trap '' %d %d; "
                            "{ command pwd -P && command printf '\\0' && %s -0 && command printf '\\0'; } >|",
                            SIGXFSZ, SIGPIPE, env);
    failed |= append_quoted(out, path);
    return failed | buf_append(out, end, sizeof(end)); /* with its NUL */
}

char *session_state_prologue(const char *dir, const char *file)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    struct buf body, text;
    buf_init(&body, 8 * PATH_MAX);
    buf_init(&text, 32 * PATH_MAX);
    char *prologue = NULL;
    if (append_trap_body(&body, path) == 0 && buf_append_text(&text, "trap ") == 0 &&
        append_quoted(&text, body.data) == 0 && buf_append(&text, " EXIT; ", sizeof(" EXIT; ")) == 0) {
        size_t len;
        prologue = buf_steal(&text, &len);
    }
    buf_deinit(&body);
    buf_deinit(&text);
    return prologue;
}

/* What every shell and every run of ours sets for itself, and what no child may carry. */
static bool is_state(const char *name)
{
    static const char *const others[] = {"PWD", "OLDPWD", "SHLVL", "_", "ABX_PROCESS_ID"};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (strcmp(name, others[i]) == 0)
            return false;
    return strncmp(name, "ABX_SERVER_", strlen("ABX_SERVER_")) != 0;
}

/* The file as the shell left it; NULL where there is none, it is not whole, or it is no plain file of a sane size:
 * anything of the same user can have put something else there. */
static char *read_file(int dir_fd, const char *file, size_t *out_len)
{
    int fd = openat(dir_fd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    struct stat st;
    char *text = NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 2 && st.st_size <= STATE_MAX_BYTES)
        text = malloc((size_t)st.st_size);
    if (text != NULL) {
        ssize_t len = read(fd, text, (size_t)st.st_size);
        if (len == st.st_size && text[len - 1] == '\0' && text[len - 2] == '\0') {
            *out_len = (size_t)len;
        } else {
            free(text);
            text = NULL;
        }
    }
    close(fd);
    return text;
}

/* Fills the difference between the environment that the run was given and the records it ended with. */
static int compare_env(const struct env_block *base, const char *records, const char *end, struct env_block *set,
                       struct env_block *unset)
{
    char name[VAR_NAME_MAX];
    const char *value;
    struct env_block last;
    env_block_init(&last);
    int failed = 0;
    size_t count = 0;
    for (const char *var = records; var < end && failed == 0; var += strlen(var) + 1) {
        if (++count > VARS_MAX) {
            failed = -1;
            break;
        }
        size_t name_len = strcspn(var, "=");
        if (name_len == 0 || name_len >= sizeof(name) || var[name_len] != '=')
            continue;
        split_name(var, name, sizeof(name), &value);
        failed = env_block_set(&last, name, value);
        const char *before = env_block_get(base, name);
        if (failed == 0 && is_state(name) && (before == NULL || strcmp(before, value) != 0))
            failed = env_block_set(set, name, value);
    }
    for (size_t i = 0; i < base->count && failed == 0; i++) {
        split_name(base->vars[i], name, sizeof(name), &value);
        if (is_state(name) && env_block_get(&last, name) == NULL)
            failed = env_block_set(unset, name, "");
    }
    env_block_deinit(&last);
    return failed;
}

int session_state_read(struct session_state *state, int dir_fd, const char *file, const struct env_block *base)
{
    size_t len;
    char *text = read_file(dir_fd, file, &len);
    if (text == NULL)
        return -1;
    struct session_state read = {0};
    size_t cwd_len = strlen(text); /* ends in time: the last byte is NUL */
    int failed = -1;
    if (cwd_len > 1 && text[cwd_len - 1] == '\n' && text[0] == '/') {
        read.cwd = strndup(text, cwd_len - 1);
        failed = read.cwd == NULL ? -1 : compare_env(base, text + cwd_len + 1, text + len, &read.set, &read.unset);
    }
    free(text);
    if (failed != 0) {
        session_state_deinit(&read);
        return -1;
    }
    session_state_deinit(state);
    *state = read;
    return 0;
}
