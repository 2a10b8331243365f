/* prim/process_tree: what belongs to a tree, and that nothing else is hit. */
#include "prim/process_tree.h"

#include "process_fixture.h"
#include "without_cgroups.h"

#include <sys/wait.h>

static struct process_tree tree_of(struct process *process)
{
    return (struct process_tree){.leader = process_pid(process), .id = process_id(process)};
}

/* Waits until the tree has that many members; answers the last count. */
/* Shells on their way count too, so that it may be passed through before it lasts. */
static size_t wait_for_count(struct fixture *fixture, const struct process_tree *tree, size_t count)
{
    size_t living = process_tree_living(tree, 1);
    for (int i = 0, lasting = 0; i < 500 && lasting < 15; i++) {
        turn_for_ms(fixture, 20);
        living = process_tree_living(tree, 1);
        lasting = living == count ? lasting + 1 : 0;
    }
    return living;
}

static void finds_sessions_groups_parents_and_markers(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 8);
    /* a child, one in a session of its own, one orphaned in a session of its own, and one of the latter without its
     * environment: that one still has a parent in the tree */
    struct process_spec spec = spec_of(&fixture, "sleep 61 & setsid sleep 62 & "
                                                 "(setsid sh -c 'env -i sleep 63; :' &) ; sleep 64; :");
    struct process *process = start(&fixture, &spec);
    struct process_tree tree = tree_of(process);
    assert_int_equal(wait_for_count(&fixture, &tree, 6), 6); /* bash, four sleeps, sh */
    assert_int_equal(process_tree_signal(&tree, 1, SIGKILL), 6);
    struct process_exit exit = run_to_end(&fixture, process);
    assert_int_equal(exit.signal, SIGKILL);
    assert_int_equal(wait_for_count(&fixture, &tree, 0), 0);
    process_unref(process);
    fixture_close(&fixture);
}

static void odd_names_do_not_mislead(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 8);
    struct process_spec spec = spec_of(&fixture, "cp /bin/sleep '/tmp/test) R 1 1 (t' && "
                                                 "{ '/tmp/test) R 1 1 (t' 65 & } ; echo started; wait");
    struct process *process = start(&fixture, &spec);
    struct process_tree tree = tree_of(process);
    assert_int_equal(wait_for_count(&fixture, &tree, 2), 2);
    process_tree_signal(&tree, 1, SIGKILL);
    run_to_end(&fixture, process);
    assert_int_equal(wait_for_count(&fixture, &tree, 0), 0);
    unlink("/tmp/test) R 1 1 (t");
    process_unref(process);
    fixture_close(&fixture);
}

static void a_long_environment_hides_no_marker(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 8);
    char *value = malloc(100001);
    memset(value, 'v', 100000);
    value[100000] = '\0';
    assert_int_equal(env_block_set(&fixture.env, "FIRST", value), 0);
    assert_int_equal(env_block_set(&fixture.env, "NEXT", value), 0);
    free(value);
    for (int i = 0; i < 40; i++) { /* the marker falls on other offsets of the reads */
        char name[16];
        snprintf(name, sizeof(name), "PAD_%d", i * i);
        assert_int_equal(env_block_set(&fixture.env, name, name), 0);
        struct process_spec spec =
            spec_of(&fixture, "(FAKE=ABX_PROCESS_ID=p-000000000000 setsid sleep 66 &); sleep 0.05; exit 0");
        struct process *process = start(&fixture, &spec);
        run_to_end(&fixture, process);
        struct process_tree tree = tree_of(process);
        tree.reaped_ticks = 1; /* session and group are no evidence then: only the marker is */
        assert_int_equal(process_tree_signal(&tree, 1, SIGKILL), 1);
        process_unref(process);
    }
    fixture_close(&fixture);
}

static void spares_strangers_and_the_server(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 8);
    struct process_spec spec = spec_of(&fixture, "exec sleep 67");
    struct process *process = start(&fixture, &spec);
    pid_t bystander = fork();
    if (bystander == 0) {
        setsid();
        pause();
        _exit(0);
    }
    struct process_tree stranger = {.leader = process_pid(process), .reaped_ticks = 1, .id = "p-nothing"};
    assert_int_equal(process_tree_signal(&stranger, 1, SIGKILL), 0);
    assert_int_equal(process_state(process), PROCESS_RUNNING);
    assert_int_equal(kill(bystander, 0), 0);
    struct process_tree own = tree_of(process);
    assert_int_equal(process_tree_signal(&own, 1, SIGTERM), 1);
    assert_int_equal(run_to_end(&fixture, process).signal, SIGTERM);
    assert_int_equal(kill(bystander, SIGKILL), 0);
    while (kill(bystander, 0) == 0)
        turn_for_ms(&fixture, 5); /* reaped as an orphan would be */
    process_unref(process);
    fixture_close(&fixture);
}

/* In a child, because a mistake would end the test itself. */
static void never_signals_itself_or_its_ancestors(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        setsid();
        setenv("ABX_PROCESS_ID", "p-self", 1);
        if (fork() == 0) {
            /* session and group of the parent: it is an ancestor, and so are we ourselves in it */
            struct process_tree tree = {.leader = getppid(), .id = "p-self"};
            _exit(process_tree_signal(&tree, 1, SIGKILL) == 0 ? 42 : 1);
        }
        int status = 0;
        wait(&status);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

static void a_fork_storm_dies(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 8);
    /* each process starts its successor and ends: there is always one that was just born */
    struct process_spec spec = spec_of(&fixture, "f() { sleep 0.002; f & }; f & f & f & sleep 68");
    struct process *process = start(&fixture, &spec);
    turn_for_ms(&fixture, 200);
    process_stop(process);
    run_to_end(&fixture, process);
    struct process_tree tree = tree_of(process);
    size_t living = 1;
    for (int look = 0; look < 80 && living > 0; look++) { /* a busy machine takes longer to outrun them */
        turn_for_ms(&fixture, 100);
        living = process_tree_living(&tree, 1);
    }
    assert_int_equal(living, 0);
    process_unref(process);
    fixture_close(&fixture);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_signals_itself_or_its_ancestors),
        cmocka_unit_test(finds_sessions_groups_parents_and_markers),
        cmocka_unit_test(odd_names_do_not_mislead),
        cmocka_unit_test(a_long_environment_hides_no_marker),
        cmocka_unit_test(spares_strangers_and_the_server),
        cmocka_unit_test(a_fork_storm_dies),
    };
    return RUN_WITH_AND_WITHOUT_CGROUPS(tests, argc, argv);
}
