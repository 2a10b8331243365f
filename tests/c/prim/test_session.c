/* prim/session: what goes from one run to the next, what does not, and who waits for whom. */
#include "prim/session.h"

#include "process_fixture.h"

#include <sys/stat.h>

static struct fixture fixture;
static struct confine *confine;
static struct session_table *sessions;
static char base[] = "/tmp/test-session-XXXXXX";

static int set_up_group(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(base));
    char folder[sizeof(base) + 16];
    snprintf(folder, sizeof(folder), "%s/a 'b", base);
    return mkdir(folder, 0755);
}

static int tear_down_group(void **state)
{
    (void)state;
    char command[sizeof(base) + 16];
    snprintf(command, sizeof(command), "rm -rf %s", base);
    return system(command);
}

static int set_up(void **state)
{
    (void)state;
    struct err err;
    fixture_open(&fixture, 512);
    confine = confine_new(base, false, &err);
    assert_non_null(confine);
    sessions = session_table_new(fixture.loop, confine, &err);
    assert_non_null(sessions);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    session_table_free(sessions);
    confine_free(confine);
    fixture_close(&fixture);
    return 0;
}

/* Starts a run with a granted turn. */
static struct process *start_in(struct session_turn *turn, const char *command)
{
    struct err err = {0};
    struct env_block env;
    struct process_spec spec = spec_of(&fixture, command);
    env_block_init(&env);
    assert_int_equal(env_block_inherit(&env, fixture.env.vars), 0);
    assert_int_equal(session_apply_env(turn, &env), 0);
    spec.cwd_fd = session_cwd(turn, &err);
    assert_true(spec.cwd_fd >= 0);
    spec.env = &env;
    spec.command_prefix = session_prologue(turn);
    struct process *process = start(&fixture, &spec);
    close(spec.cwd_fd);
    env_block_deinit(&env);
    assert_int_equal(session_bind(turn, process, &err), 0);
    return process;
}

static struct session_turn *enter(const char *name)
{
    struct err err = {0};
    bool granted = false;
    struct session_turn *turn = session_enter(sessions, name, strlen(name), set_true, &granted, &err);
    if (turn == NULL)
        fail_msg("%s", err.text);
    assert_false(granted);
    while (!granted)
        loop_turn(fixture.loop, true);
    return turn;
}

static void expect_in(const char *name, const char *command, int exit_code, const char *expected)
{
    struct session_turn *turn = enter(name);
    struct process *process = start_in(turn, command);
    struct process_exit exit = run_to_end(&fixture, process);
    expect_output(process, PROCESS_STDERR, "");
    expect_output(process, PROCESS_STDOUT, expected);
    assert_int_equal(exit.exit_code, exit_code);
    process_unref(process);
    session_leave(turn);
}

static void expect_cwd(const char *name, const char *below)
{
    char expected[PATH_MAX];
    snprintf(expected, sizeof(expected), "%s%s\n", confine_base_dir(confine), below);
    expect_in(name, "pwd", 0, expected);
}

static void directory_and_variables_go_on(void **state)
{
    (void)state;
    expect_cwd("s", "");
    expect_in("s", "cd \"a 'b\"; export A=\"x 'y\nz\" B=2; C=3; unset PATH; exit 7", 7, "");
    expect_in("s", "echo \"$A|$B|$C|$(/usr/bin/printenv PATH || echo none)\"; pwd | /usr/bin/tail -c 5; unset B; false",
              1, "x 'y\nz|2||none\na 'b\n");
    expect_in("s", "echo \"${B-none}\"; export PATH=/bin", 0, "none\n");
    expect_in("s", "echo $PATH $SHLVL", 0, "/bin 1\n");
    expect_in("other", "echo \"$A\"", 0, "\n");
    expect_cwd("other", "");
}

static void line_numbers_and_exit_status_stay(void **state)
{
    (void)state;
    expect_in("s", "echo $LINENO\necho $LINENO; exit 3", 3, "1\n2\n");
    expect_in("s", "set -e; false; echo no", 1, "");
    expect_in("s", "set -u; set -o noclobber; export D=4", 0, "");
    expect_in("s", "echo $D; (exit 9)", 9, "4\n");
    expect_in("s", "exec 3>&2 2>/dev/null; set -x; export E=5; BASH_XTRACEFD=9 exec 2>&3", 0, "");
    expect_in("s", "f() { export F=6; }; f; declare -xf f", 0, "");
    expect_in("s", "echo $E$F; type -t f", 0, "56\nfunction\n");
}

static void what_does_not_end_as_usual_leaves_the_state(void **state)
{
    (void)state;
    expect_in("s", "export A=1", 0, "");
    expect_in("s", "export A=2; exec true", 0, "");
    expect_in("s", "echo $A; export A=3; kill -9 $$", 137, "1\n");
    expect_in("s", "echo $A; trap 'echo mine' EXIT; export A=4", 0, "1\nmine\n");
    expect_in("s", "echo $A; (export A=5; cd /); : & wait", 0, "1\n");
    expect_in("s", "echo $A; for i in $(seq 5000); do export V$i=; done", 0, "1\n");
    expect_in("s", "echo $A$V9; export B=$(head -c 120000 /dev/zero | tr '\\0' x)", 0, "1\n");
    expect_in("s", "echo $A${#B}", 0, "1120000\n");
}

static void a_directory_that_is_gone_or_outside_is_the_base(void **state)
{
    (void)state;
    expect_in("s", "mkdir gone; cd gone; rmdir ../gone", 0, "");
    expect_cwd("s", "");
    expect_in("s", "mkdir in; cd in", 0, "");
    expect_cwd("s", "/in");
    expect_in("s", "cd /; export STILL=here", 0, "");
    expect_in("s", "echo $STILL; pwd | grep -c session", 0, "here\n1\n");
}

static void secrets_of_ours_are_no_state(void **state)
{
    (void)state;
    expect_in("s", "export ABX_SERVER_TOKEN=x ABX_PROCESS_ID=p-fake SHLVL=9 OLDPWD=/x", 0, "");
    expect_in("s", "echo \"$ABX_SERVER_TOKEN\" ${#ABX_PROCESS_ID} $SHLVL \"$OLDPWD\"", 0, " 14 1 \n");
}

/* What the trap cannot do is no affair of the command's. */
static void limits_of_the_shell_change_no_result(void **state)
{
    (void)state;
    expect_in("s", "export A=1", 0, "");
    expect_in("s", "ulimit -f 0; export A=2; true", 0, "");
    expect_in("s", "ulimit -f 1; export A=3 B=$(printf %2000s); exit 6", 6, "");
    expect_in("s", "set -e; ulimit -f 0; export A=4; true", 0, "");
    expect_in("s", "set -e; ulimit -n 0; export A=5; true", 0, "");
    expect_in("s", "trap '' PIPE; exec >&- 2>&-; cd /", 0, "");
    expect_in("s", "echo $A; pwd | grep -c session; exec 2>/dev/null; set -ex; export A=6", 0, "1\n1\n");
    expect_in("s", "echo $A", 0, "6\n");
}

/* The shell may put something else where its state should be. */
static void the_state_file_is_not_trusted(void **state)
{
    (void)state;
    expect_in("s", "export A=1", 0, "");
    expect_in("s",
              "f=$(trap | grep -o '/[^ ]*abxd-sessions[^ ]*/[0-9a-f]*'); export A=2; ln -s /etc/passwd \"$f\"; "
              "[ -d \"${f%/*}\" ] && stat -c %a \"${f%/*}\"; trap - EXIT",
              0, "700\n");
    expect_in("s", "echo $A; f=$(trap | grep -o '/[^ ]*abxd-sessions[^ ]*/[0-9a-f]*'); mkfifo \"$f\"; trap - EXIT", 0,
              "1\n");
    expect_in("s",
              "echo $A; f=$(trap | grep -o '/[^ ]*abxd-sessions[^ ]*/[0-9a-f]*'); truncate -s 3G \"$f\"; trap - EXIT",
              0, "1\n");
    expect_in("s",
              "echo $A; f=$(trap | grep -o '/[^ ]*abxd-sessions[^ ]*/[0-9a-f]*'); printf '/\\n\\0A=3\\0' >\"$f\"; trap "
              "- EXIT",
              0, "1\n");
    expect_in("s", "echo $A", 0, "1\n");
}

/* --- turns */

static void turns_queue_in_order(void **state)
{
    (void)state;
    struct err err;
    bool second_granted = false, third_granted = false, other_granted = false;
    struct session_turn *first = enter("s");
    struct session_turn *second = session_enter(sessions, "s", 1, set_true, &second_granted, &err);
    struct session_turn *third = session_enter(sessions, "s", 1, set_true, &third_granted, &err);
    struct session_turn *other = session_enter(sessions, "t", 1, set_true, &other_granted, &err);
    turn_for_ms(&fixture, 20);
    assert_true(other_granted);
    assert_false(second_granted);
    session_leave(other);
    struct process *process = start_in(first, "sleep 0.1; export A=first");
    session_leave(first); /* the process holds the turn now */
    turn_for_ms(&fixture, 20);
    assert_false(second_granted);
    session_leave(second); /* leaves the queue */
    assert_int_equal(run_to_end(&fixture, process).exit_code, 0);
    process_unref(process);
    turn_for_ms(&fixture, 5);
    assert_false(second_granted);
    assert_true(third_granted);
    process = start_in(third, "echo $A");
    run_to_end(&fixture, process);
    expect_output(process, PROCESS_STDOUT, "first\n");
    assert_int_equal(session_bind(third, process, &err), -1);
    process_unref(process);
    session_leave(third);
}

static void a_turn_given_back_unused_passes_on(void **state)
{
    (void)state;
    struct err err;
    bool granted = false;
    struct session_turn *first = enter("s");
    struct session_turn *second = session_enter(sessions, "s", 1, set_true, &granted, &err);
    session_prologue(first);
    session_leave(first);
    turn_for_ms(&fixture, 5);
    assert_true(granted);
    session_leave(second);
}

static void names_are_bounded(void **state)
{
    (void)state;
    struct err err = {0};
    char name[SESSION_NAME_MAX + 2];
    memset(name, 'n', sizeof(name));
    assert_null(session_enter(sessions, "", 0, set_true, NULL, &err));
    assert_int_equal(err.code, ERR_INVALID_REQUEST);
    assert_string_equal(err.field, "session");
    assert_null(session_enter(sessions, "a\0b", 3, set_true, NULL, &err));
    assert_null(session_enter(sessions, name, SESSION_NAME_MAX + 1, set_true, NULL, &err));
    bool granted;
    struct session_turn *turn = session_enter(sessions, name, SESSION_NAME_MAX, set_true, &granted, &err);
    assert_non_null(turn);
    session_leave(turn);
}

static void the_longest_unused_goes(void **state)
{
    (void)state;
    struct err err = {0};
    bool granted;
    struct session_turn *turns[SESSIONS_MAX];
    expect_in("old", "export A=old", 0, "");
    expect_in("used", "export A=used", 0, "");
    for (int i = 0; i < SESSIONS_MAX - 2; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", i);
        turns[i] = session_enter(sessions, name, strlen(name), set_true, &granted, &err);
    }
    expect_in("old", "echo $A", 0, "old\n");
    turns[SESSIONS_MAX - 2] = session_enter(sessions, "new", 3, set_true, &granted, &err); /* "used" gives way */
    expect_in("old", "echo $A", 0, "old\n");
    turns[SESSIONS_MAX - 1] = session_enter(sessions, "old", 3, set_true, &granted, &err);
    assert_null(session_enter(sessions, "one more", 8, set_true, &granted, &err));
    assert_int_equal(err.code, ERR_BUSY);
    for (int i = 0; i < SESSIONS_MAX; i++)
        session_leave(turns[i]);
    expect_in("used", "echo \"$A\"", 0, "\n");
}

#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SESSION_TEST(directory_and_variables_go_on),
        SESSION_TEST(line_numbers_and_exit_status_stay),
        SESSION_TEST(what_does_not_end_as_usual_leaves_the_state),
        SESSION_TEST(a_directory_that_is_gone_or_outside_is_the_base),
        SESSION_TEST(secrets_of_ours_are_no_state),
        SESSION_TEST(limits_of_the_shell_change_no_result),
        SESSION_TEST(the_state_file_is_not_trusted),
        SESSION_TEST(turns_queue_in_order),
        SESSION_TEST(a_turn_given_back_unused_passes_on),
        SESSION_TEST(names_are_bounded),
        SESSION_TEST(the_longest_unused_goes),
    };
    return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
