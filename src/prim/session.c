/* Shell sessions: what one run ends with, the next begins with; bind_session and bind_proc use them. */
#include "prim/session.h"

#include "base/log.h"
#include "prim/secret.h"
#include "prim/session_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_NAME_BYTES = 8 };

struct session_table {
    struct loop *loop;
    const struct confine *confine;
    char dir[PATH_MAX];
    int dir_fd;
    struct list sessions; /* the longest unused one first */
    size_t count;
};

struct session {
    struct list node;
    struct list turns; /* the first one has the turn, the others queue */
    char name[SESSION_NAME_MAX + 1];
    struct session_state state;
};

struct session_turn {
    struct session_table *table;
    struct session *session;
    struct list node;
    struct loop_defer granted;
    loop_fn fn;
    void *ctx;
    bool left;               /* the caller let go */
    struct process *process; /* bound */
    struct env_block base;   /* what the run was given before the session's own */
    char file[2 * FILE_NAME_BYTES + 1];
    char *prologue;
};

/* --- the table */

static bool inside_base(const struct confine *confine, const char *dir)
{
    const char *base = confine_base_dir(confine);
    size_t len = strlen(base);
    return len > 1 && strncmp(dir, base, len) == 0 && (dir[len] == '/' || dir[len] == '\0');
}

/* In the first of the usual places that can be written to and is not inside the base (which may be "/": then anywhere).
 */
static int make_dir(struct session_table *table, struct err *err)
{
    const char *places[] = {getenv("XDG_RUNTIME_DIR"), "/run", "/tmp", "/var/tmp", "/dev/shm"};
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        char place[PATH_MAX];
        if (places[i] == NULL || realpath(places[i], place) == NULL || inside_base(table->confine, place))
            continue;
        int len = snprintf(table->dir, sizeof(table->dir), "%s/abxd-sessions-XXXXXX", place);
        if (len < 0 || (size_t)len >= sizeof(table->dir) || mkdtemp(table->dir) == NULL)
            continue;
        table->dir_fd = open(table->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (table->dir_fd >= 0)
            return 0;
    }
    return err_set(err, ERR_INTERNAL, "no place outside the base directory for the sessions' state files");
}

struct session_table *session_table_new(struct loop *loop, const struct confine *confine, struct err *err)
{
    struct session_table *table = calloc(1, sizeof(*table));
    if (table == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory for the sessions");
        return NULL;
    }
    table->loop = loop;
    table->confine = confine;
    list_init(&table->sessions);
    if (make_dir(table, err) != 0) {
        free(table);
        return NULL;
    }
    return table;
}

static void turn_free(struct session_turn *turn)
{
    list_remove(&turn->node);
    loop_defer_stop(&turn->granted);
    if (turn->process != NULL) {
        process_on_exit(turn->process, NULL, NULL);
        process_unref(turn->process);
    }
    if (turn->prologue != NULL) {
        unlinkat(turn->table->dir_fd, turn->file, 0);
        free(turn->prologue);
    }
    env_block_deinit(&turn->base);
    free(turn);
}

static void session_free(struct session_table *table, struct session *session)
{
    list_remove(&session->node);
    table->count--;
    session_state_deinit(&session->state);
    free(session);
}

void session_table_free(struct session_table *table)
{
    if (table == NULL)
        return;
    LIST_EACH (&table->sessions, node) {
        struct session *session = LIST_ENTRY(node, struct session, node);
        LIST_EACH (&session->turns, turn_node)
            turn_free(LIST_ENTRY(turn_node, struct session_turn, node));
        session_free(table, session);
    }
    close(table->dir_fd);
    if (rmdir(table->dir) != 0)
        log_warn("session", "cannot remove %s: %s", table->dir, strerror(errno));
    free(table);
}

/* --- turns */

static struct session *find_or_make(struct session_table *table, const char *name, size_t name_len, struct err *err)
{
    struct session *unused = NULL;
    LIST_EACH (&table->sessions, node) {
        struct session *session = LIST_ENTRY(node, struct session, node);
        if (strlen(session->name) == name_len && memcmp(session->name, name, name_len) == 0)
            return session;
        if (unused == NULL && list_empty(&session->turns))
            unused = session;
    }
    if (table->count >= SESSIONS_MAX) {
        if (unused == NULL) {
            err_set(err, ERR_BUSY, "all %d sessions are running something", SESSIONS_MAX);
            return NULL;
        }
        session_free(table, unused);
    }
    struct session *session = calloc(1, sizeof(*session));
    if (session == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory for a session");
        return NULL;
    }
    memcpy(session->name, name, name_len);
    list_init(&session->turns);
    list_append(&table->sessions, &session->node);
    table->count++;
    return session;
}

static void grant_first(struct session *session)
{
    if (!list_empty(&session->turns)) {
        struct session_turn *turn = LIST_ENTRY(session->turns.next, struct session_turn, node);
        loop_defer_start(turn->table->loop, &turn->granted, turn->fn, turn->ctx);
    }
}

static bool is_first(const struct session_turn *turn)
{
    return turn->session->turns.next == &turn->node;
}

struct session_turn *session_enter(struct session_table *table, const char *name, size_t name_len, loop_fn fn,
                                   void *ctx, struct err *err)
{
    if (name_len == 0 || name_len > SESSION_NAME_MAX || memchr(name, '\0', name_len) != NULL) {
        err_set(err, ERR_INVALID_REQUEST, "a session's name has 1 to %d bytes, none of them NUL", SESSION_NAME_MAX);
        err_field(err, "session");
        return NULL;
    }
    struct session_turn *turn = calloc(1, sizeof(*turn));
    if (turn == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory for a session");
        return NULL;
    }
    turn->session = find_or_make(table, name, name_len, err);
    if (turn->session == NULL) {
        free(turn);
        return NULL;
    }
    turn->table = table;
    turn->fn = fn;
    turn->ctx = ctx;
    list_append(&turn->session->turns, &turn->node);
    list_remove(&turn->session->node); /* the newest used is last */
    list_append(&table->sessions, &turn->session->node);
    if (is_first(turn))
        grant_first(turn->session);
    return turn;
}

static void turn_over(struct session_turn *turn)
{
    struct session *session = turn->session;
    bool first = is_first(turn);
    turn_free(turn);
    if (first)
        grant_first(session);
}

void session_leave(struct session_turn *turn)
{
    if (turn->process != NULL)
        turn->left = true;
    else if (turn->session != NULL)
        turn_over(turn);
    else /* its process has ended before */
        turn_free(turn);
}

/* --- before the run */

bool session_usable(const struct session_turn *turn)
{
    return turn->session != NULL && turn->process == NULL && is_first(turn);
}

int session_cwd(struct session_turn *turn, struct err *err)
{
    const struct confine *confine = turn->table->confine;
    if (turn->session->state.cwd != NULL) {
        int fd = confine_open_dir(confine, turn->session->state.cwd, strlen(turn->session->state.cwd), err);
        if (fd >= 0)
            return fd;
    }
    return confine_open_dir(confine, "", 0, err);
}

int session_apply_env(struct session_turn *turn, struct env_block *env)
{
    env_block_deinit(&turn->base);
    if (env->count > 0 && env_block_inherit(&turn->base, env->vars) != 0)
        return -1;
    return session_state_apply(&turn->session->state, env);
}

const char *session_prologue(struct session_turn *turn)
{
    if (turn->prologue != NULL)
        return turn->prologue;
    secret_random_hex(turn->file, FILE_NAME_BYTES);
    turn->prologue = session_state_prologue(turn->table->dir, turn->file);
    return turn->prologue != NULL ? turn->prologue : ""; /* out of memory: the state stays as it was */
}

/* --- after the run */

static void on_run_exit(struct process *process, void *ctx)
{
    struct session_turn *turn = ctx;
    struct session *session = turn->session;
    (void)process;
    if (turn->prologue != NULL &&
        session_state_read(&session->state, turn->table->dir_fd, turn->file, &turn->base) != 0)
        log_write(LOG_LEVEL_DEBUG, "session", NULL, "a run of session %s left its state as it was", session->name);
    process_on_exit(turn->process, NULL, NULL);
    process_unref(turn->process);
    turn->process = NULL;
    if (turn->left) {
        turn_over(turn);
        return;
    }
    list_remove(&turn->node);
    turn->session = NULL;
    grant_first(session);
}

int session_bind(struct session_turn *turn, struct process *process, struct err *err)
{
    if (!session_usable(turn))
        return err_set(err, ERR_INVALID_REQUEST, "this turn of the session is used already");
    turn->process = process_ref(process);
    process_on_exit(process, on_run_exit, turn);
    return 0;
}
