/* Protected paths inside the base, which abxd-helper git neither writes nor reads. */
#include "git_fixture.h"

/* Protects two paths below the base, of which the second need not exist, in a new helper. */
static void protect(const char *first, const char *second)
{
    const char *paths[] = {first, second};
    git_helper_end();
    for (size_t i = 0; i < 2; i++) {
        char dir[PATH_MAX], full[PATH_MAX];
        struct stat about = {0}, above;
        snprintf(full, sizeof full, "%s/%s", git_base, paths[i]);
        if (lstat(full, &about) != 0)
            about = (struct stat){0};
        snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(full, '/') - full), full);
        assert_int_equal(stat(dir, &above), 0);
        snprintf(git_guards[i], sizeof git_guards[i], "%llu:%llu:%llu:%llu:%s", (unsigned long long)about.st_dev,
                 (unsigned long long)about.st_ino, (unsigned long long)above.st_dev, (unsigned long long)above.st_ino,
                 strrchr(full, '/') + 1);
    }
    git_helper_start(false);
}

static int set_up(void **state)
{
    memset(git_guards, 0, sizeof git_guards);
    return git_set_up(state);
}

/* r: t/table is "one", "two" on the branch o, where t/later is new; and the working tree has "one". */
static void make_repository(void)
{
    sh("git init -q -b main r; cd r; mkdir t; echo one >t/table; echo a >a; git add .; git commit -qm one; "
       "git checkout -qb o; echo two >t/table; git commit -qam two; git checkout -q main; git checkout -qb l; "
       "echo x >t/later; git add .; git commit -qm later; git checkout -q main");
    protect("r/t/table", "r/t/later");
}

static void test_the_working_tree(void **state)
{
    (void)state;
    make_repository();
    refused("permission_denied", "checkout", "r", "'ref':'o'");
    refused("permission_denied", "checkout", "r", "'ref':'o','force':true");
    refused("permission_denied", "checkout", "r", "'ref':'l'");
    refused("permission_denied", "merge", "r", "'ref':'o'");
    refused("permission_denied", "reset", "r", "'mode':'hard','ref':'o'");
    refused("permission_denied", "restore", "r", "'paths':['t'],'source':'o'");
    assert_true(sh_is("[ \"$(cat r/t/table)\" = one ] && [ ! -e r/t/later ]"));
    sh("cd r; echo mine >t/table; echo mine >t/later; echo b >>a");
    refused("permission_denied", "add", "r", "'all':true");
    refused("permission_denied", "commit", "r", "'all':true,'message':'x'");
    refused("permission_denied", "restore", "r", "'paths':['.']");
    refused("permission_denied", "stash", "r", " ");
    refused("permission_denied", "stash", "r", "'untracked':true");
    assert_true(sh_is("[ \"$(cat r/t/table r/t/later | tr '\\n' ' ')\" = 'mine mine ' ]"));
    const cJSON *diff = ask("diff", "r", " ");
    assert_string_equal(text_of(diff, "files.1.path"), "t/table");
    assert_string_equal(text_of(diff, "files.1.patch"), "null");
    ask("add", "r", "'paths':['a']");
    ask("commit", "r", "'message':'a'");
}

/* o has no t/table, and everything else that o changes is allowed to. */
static void test_removal(void **state)
{
    (void)state;
    sh("git init -q -b main r; cd r; mkdir t; echo one >t/table; echo a >a; git add .; git commit -qm one; "
       "git checkout -qb o; git rm -q t/table; git commit -qm o; git checkout -q main; git checkout -qb c; echo c >a; "
       "git commit -qam c; git checkout -qb oc o; echo oc >a; git commit -qam oc; git checkout -q main; "
       "git rm -q t/table; git stash -q");
    protect("r/t/table", "r/none");
    refused("permission_denied", "checkout", "r", "'ref':'o'");
    refused("permission_denied", "checkout", "r", "'ref':'o','force':true");
    refused("permission_denied", "merge", "r", "'ref':'o'");
    refused("permission_denied", "reset", "r", "'mode':'hard','ref':'o'");
    refused("permission_denied", "restore", "r", "'paths':['.'],'source':'o'");
    refused("permission_denied", "stash", "r", "'action':'pop'");
    ask("checkout", "r", "'ref':'c'");
    refused("permission_denied", "merge", "r", "'ref':'o'");
    refused("permission_denied", "merge", "r", "'ref':'oc'");
    assert_true(sh_is("[ \"$(cat r/t/table)\" = one ] && [ ! -e r/.git/MERGE_HEAD ]"));
}

/* A folder gives way to a file where nothing protected is in it. */
static void test_folders_without(void **state)
{
    (void)state;
    sh("git init -q -b main r; cd r; mkdir -p d/e t; echo one >d/e/f; echo one >t/table; git add .; git commit -qm "
       "one; "
       "git checkout -qb o; git rm -qr d; echo file >d; git add d; git commit -qm o; git checkout -qb p main; "
       "git rm -qr t; echo file >t; git add t; git commit -qm p; git checkout -q main");
    protect("r/t/table", "r/t/later");
    ask("checkout", "r", "'ref':'o'");
    assert_true(sh_is("[ \"$(cat r/d)\" = file ]"));
    ask("checkout", "r", "'ref':'main'");
    refused("permission_denied", "checkout", "r", "'ref':'p'");
    refused("permission_denied", "checkout", "r", "'ref':'p','force':true");
    assert_true(sh_is("[ \"$(cat r/t/table)\" = one ]"));
}

static void test_conflicts_and_folders(void **state)
{
    (void)state;
    sh("git init -q -b main r; cd r; echo one >table; git add .; git commit -qm one; git checkout -qb o; "
       "echo two >table; echo t >t; git add .; git commit -qam two; git checkout -q main; echo three >table; "
       "git commit -qam three; mkdir t; echo op >t/x");
    protect("r/table", "r/t/x");
    refused("permission_denied", "merge", "r", "'ref':'o'");
    refused("permission_denied", "checkout", "r", "'ref':'o','force':true");
    assert_true(sh_is("[ \"$(cat r/table r/t/x | tr '\\n' ' ')\" = 'three op ' ] && [ ! -e r/.git/MERGE_HEAD ]"));
}

static void test_repositories_around_them(void **state)
{
    (void)state;
    sh("mkdir e; echo mine >e/config; git init -q -b main p");
    protect("e/config", "p/.git/config");
    refused("permission_denied", "init", "e", "'bare':true");
    refused("permission_denied", "init", "e/config", " ");
    refused("permission_denied", "remote", "p", "'action':'add','name':'o','url':'http://127.0.0.1/'");
    assert_true(sh_is("[ \"$(ls -A e)\" = config ] && [ \"$(cat e/config)\" = mine ]"));
    ask("init", "e/f", " ");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, git_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_working_tree),         TEST(test_removal),
        TEST(test_folders_without),          TEST(test_conflicts_and_folders),
        TEST(test_repositories_around_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
