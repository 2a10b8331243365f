/* Repositories that lead out of the base, or would run programs, and what abxd-helper git does with them: with Landlock
 * and without. */
#include "git_fixture.h"

/* One commit with a and d/f. */
#define MAKE_REPO "git init -q -b main r; cd r; mkdir d; echo a >a; echo f >d/f; git add .; git commit -qm one; "

static bool not_run;

static bool outside_is_untouched(void)
{
    return sh_is("[ \"$(ls -A $OUT | tr '\\n' ' ')\" = 'secret ' ] && [ \"$(cat $OUT/secret)\" = secret ]");
}

static void test_discovery_stops_at_the_base(void **state)
{
    (void)state;
    sh("git init -q -b main ..; mkdir x");
    refused("repository_not_found", "status", "x", " ");
    refused("repository_not_found", "status", "", " ");
    refused("repository_not_found", "status", "x/nothing", " ");
    sh("rm -rf ../.git");
}

static void test_discovery_climbs_inside(void **state)
{
    (void)state;
    char root[128];
    sh(MAKE_REPO);
    snprintf(root, sizeof root, "%s/r", git_base);
    assert_string_equal(text_of(ask("status", "r/d", " "), "root"), root);
    assert_string_equal(text_of(ask("status", "r/d/f", " "), "root"), root);
    sh("git init -q -b main .");
    assert_string_equal(text_of(ask("status", "", " "), "root"), git_base);
}

static void test_git_file(void **state)
{
    (void)state;
    sh("git init -q -b main $OUT/o; mkdir x; echo gitdir: $OUT/o/.git >x/.git");
    refused("path_outside_base", "status", "x", " ");
    sh("echo gitdir: ../../outside/o/.git >x/.git");
    refused("path_outside_base", "status", "x", " ");
    sh("rm x/.git; ln -s $OUT/o/.git x/.git");
    refused("path_outside_base", "status", "x", " ");
    refused("already_exists", "init", "x", " ");
    sh("rm -rf $OUT/o; git init -q -b main in; rm x/.git; echo gitdir: ../in/.git >x/.git");
    assert_string_equal(text_of(ask("status", "x", " "), "branch"), "main");
    assert_true(outside_is_untouched());
}

static void test_worktrees(void **state)
{
    (void)state;
    sh(MAKE_REPO "git worktree add -q ../w -b other");
    assert_string_equal(text_of(ask("status", "w", " "), "branch"), "other");
    sh("git init -q -b main $OUT/o; echo $OUT/o/.git >r/.git/worktrees/w/commondir");
    refused("path_outside_base", "status", "w", " ");
    sh("rm -rf $OUT/o");
    sh("git -C r config core.worktree $OUT");
    refused("path_outside_base", "status", "r", " ");
    refused("path_outside_base", "add", "r", "'all':true");
    assert_true(outside_is_untouched());
}

static void test_links_in_the_git_directory(void **state)
{
    (void)state;
    static const char *const entries[] = {"objects",    "refs",         "config", "HEAD", "index",
                                          "refs/heads", "objects/pack", "logs",   "info"};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        sh("rm -rf r $OUT/moved; " MAKE_REPO "mv .git/%s $OUT/moved; ln -s $OUT/moved .git/%s", entries[i], entries[i]);
        refused("path_outside_base", "status", "r", " ");
    }
    sh("rm -rf $OUT/moved; rm -rf r; " MAKE_REPO "ln -s $OUT/new .git/refs/heads/x");
    refused("path_outside_base", "status", "r", " ");
    sh("rm -rf r; " MAKE_REPO "mv .git/objects ../shared; ln -s ../../shared .git/objects");
    assert_string_equal(text_of(ask("status", "r", " "), "head.summary"), "one");
    sh("ln -s . r/.git/refs/heads/circle");
    refused("invalid_request", "status", "r", " ");
    assert_true(outside_is_untouched());
}

static void test_alternates(void **state)
{
    (void)state;
    sh(MAKE_REPO "mv ../r $OUT/o; cd ..; git clone -q -s $OUT/o r");
    refused("path_outside_base", "status", "r", " ");
    sh("rm -rf r; mv $OUT/o o; git clone -q -s o r");
    assert_string_equal(text_of(ask("status", "r", " "), "head.summary"), "one");
    sh("echo ../../../../outside >o/.git/objects/info/alternates");
    refused("path_outside_base", "status", "r", " ");
}

static void test_included_configuration(void **state)
{
    (void)state;
    static const char *const spellings[] = {
        "[include]\\n\\tpath = %s\\n",
        "[InClude]\\n path=\\\"%s\\\"\\n",
        "[includeIf \\\"gitdir:/**\\\"]\\n\\tpath = %s\\n",
    };
    sh(MAKE_REPO "printf '[user]\\n\\tname = Out\\n\\temail = o@o\\n' >$OUT/c; cp .git/config ../config");
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        char line[200];
        snprintf(line, sizeof line, spellings[i], "$OUT/c");
        sh("cp config r/.git/config; printf \"%s\" >>r/.git/config", line);
        refused("path_outside_base", "status", "r", " ");
    }
    static const char *const odd[] = {
        "[core] [include] path = $OUT/c\\n",
        "[include] path = $OUT/c\\n",
        "[include]\\n\\tpath = \\\\\\n$OUT/c\\n",
        "[include]\\n\\tpath = ~/c\\n",
    };
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        sh("cp config r/.git/config; printf \"%s\" >>r/.git/config", odd[i]);
        refused("invalid_request", "status", "r", " ");
    }
    sh("cp config r/.git/config; printf '[include]\\n\\tpath = ../in\\n' >>r/.git/config; "
       "printf '[user]\\n\\tname = In\\n\\temail = i@i\\n' >r/in");
    ask("commit", "r", "'message':'two','allow_empty':true");
    assert_string_equal(text_of(member_at(git_answer, "result"), "head.author.name"), "In");
    sh("printf '[include]\\n\\tpath = ../../outside/c\\n' >>r/in");
    refused("path_outside_base", "status", "r", " ");
}

static void test_configured_files_outside(void **state)
{
    (void)state;
    sh(MAKE_REPO "echo '*.log' >$OUT/patterns; touch x.log; git config core.excludesFile $OUT/patterns; "
                 "git config core.attributesFile $OUT/patterns");
    assert_string_equal(text_of(ask("status", "r", " "), "files.0.path"), "x.log");
    sh("cp $OUT/patterns r/.git/mine; git -C r config core.excludesFile $(pwd)/r/.git/mine");
    assert_int_equal(count_of(ask("status", "r", " "), "files"), 0);
    /* What is set goes to the repository's own file still. */
    ask("reset", "r", " ");
    assert_true(sh_is("[ \"$(git -C r config core.attributesFile)\" = $OUT/patterns ]"));
}

static void test_users_configuration_does_not_count(void **state)
{
    (void)state;
    sh(MAKE_REPO "printf '[user]\\nname = Home\\nemail = h@h\\n[core]\\nexcludesFile = ~/ig\\n' >$HOME/.gitconfig; "
                 "echo '*' >$HOME/ig; mkdir -p $HOME/.config/git; echo '*' >$HOME/.config/git/ignore; touch new");
    const cJSON *result = ask("status", "r", " ");
    assert_int_equal(count_of(result, "files"), 1);
    assert_string_equal(text_of(result, "files.0.path"), "new");
    ask("commit", "r", "'message':'two','allow_empty':true");
    assert_string_equal(text_of(member_at(git_answer, "result"), "head.author.name"), "abxd");
}

static void test_repositories_of_others(void **state)
{
    (void)state;
    if (geteuid() != 0) { /* who is nobody else cannot give files away, and has none of others */
        print_message("NOT RUN: test_repositories_of_others: needs root\n");
        not_run = true;
        return;
    }
    sh(MAKE_REPO "chown -R 12345 .");
    assert_string_equal(text_of(ask("status", "r", " "), "head.summary"), "one");
}

static void test_reset_through_links(void **state)
{
    (void)state;
    sh(MAKE_REPO "rm -r d; ln -s $OUT d; rm a; ln -s $OUT/secret a; cp $OUT/secret $OUT/f");
    ask("reset", "r", "'mode':'hard'");
    assert_true(sh_is("[ \"$(cat $OUT/f $OUT/secret | tr '\\n' ' ')\" = 'secret secret ' ] && rm $OUT/f"));
    assert_true(sh_is("[ ! -L r/a ] && [ ! -L r/d ] && [ \"$(cat r/a r/d/f | tr '\\n' ' ')\" = 'a f ' ]"));
    assert_true(outside_is_untouched());
    /* A link that the tree wants stays one. */
    sh("cd r; ln -s a link; git add link; git commit -qm two; rm link; ln -s $OUT/secret link");
    ask("reset", "r", "'mode':'hard'");
    assert_true(sh_is("[ \"$(readlink r/link)\" = a ]"));
    assert_true(outside_is_untouched());
}

/* d/f is what HEAD has and the target has not; d-x sorts between d and d/f. */
static void test_removal_through_links(void **state)
{
    (void)state;
    sh(MAKE_REPO "echo g >d/g; echo x >d-x; git add .; git commit -qm two; git checkout -qb gone; git rm -qr d; "
                 "echo y >d-x; git commit -qam gone; git checkout -q main; rm -r d; ln -s $OUT d; "
                 "cp $OUT/secret $OUT/f; cp $OUT/secret $OUT/g");
    refused("worktree_dirty", "checkout", "r", "'ref':'gone'");
    refused("worktree_dirty", "merge", "r", "'ref':'gone'");
    sh("cd r; git branch -q kept; git commit -q --allow-empty -m more");
    refused("worktree_dirty", "merge", "r", "'ref':'gone'");
    sh("[ -e $OUT/f ] && [ -e $OUT/g ] && [ -L r/d ]; cd r; git stash list >/dev/null");
    ask("checkout", "r", "'ref':'gone','force':true");
    sh("[ -e $OUT/f ] && [ -e $OUT/g ]; cd r; git checkout -qf main; rm -r d; ln -s $OUT d");
    ask("restore", "r", "'paths':['.'],'source':'gone'");
    sh("[ -e $OUT/f ] && [ -e $OUT/g ]; cd r; git reset -q --hard; rm -r d; ln -s $OUT d");
    ask("reset", "r", "'mode':'hard','ref':'gone'");
    sh("[ -e $OUT/f ] && [ -e $OUT/g ]; cd r; git reset -q --hard kept; git rm -qr d; echo z >d-x; git stash -q; "
       "rm -r d; ln -s $OUT d");
    refused("worktree_dirty", "stash", "r", "'action':'apply'");
    sh("rm $OUT/f $OUT/g");
    assert_true(outside_is_untouched());
}

static void test_restore_through_links(void **state)
{
    (void)state;
    sh(MAKE_REPO "rm -r d; ln -s $OUT d; rm a; ln -s $OUT/secret a");
    refused("path_outside_base", "restore", "r", "'paths':['d/f']");
    ask("restore", "r", "'paths':['d','a']");
    assert_true(sh_is("[ \"$(cat r/a r/d/f | tr '\\n' ' ')\" = 'a f ' ] && [ ! -L r/d ]"));
    sh("cd r; rm -r d; ln -s $OUT d; rm a; ln -s $OUT/secret a");
    ask("restore", "r", "'paths':['.'],'source':'HEAD'");
    assert_true(sh_is("[ \"$(cat r/a r/d/f | tr '\\n' ' ')\" = 'a f ' ] && [ ! -L r/d ]"));
    assert_true(outside_is_untouched());
}

static void test_add_through_links(void **state)
{
    (void)state;
    sh(MAKE_REPO "ln -s $OUT l; ln -s $OUT/secret s");
    refused("path_outside_base", "add", "r", "'paths':['l/secret']");
    refused("path_outside_base", "add", "r", "'paths':['../../outside/secret']");
    char outside[200];
    snprintf(outside, sizeof outside, "\"paths\":[\"%s/secret\"]", git_outside);
    refused("path_outside_base", "add", "r", "%s", outside);
    refused("invalid_path", "add", "r", "'paths':['.git/config']");
    ask("add", "r", "'paths':['l','s']");
    /* The links themselves, not what they lead to. */
    assert_true(sh_is("[ \"$(git -C r ls-files -s l s | cut -c1-6 | tr '\\n' ' ')\" = '120000 120000 ' ]"));
    assert_true(sh_is("[ \"$(git -C r cat-file -p :s)\" = $OUT/secret ]"));
}

/* Files with conflicts are written by a way of their own. */
static void test_conflicts_through_links(void **state)
{
    (void)state;
    sh(MAKE_REPO "echo s >d/f; git stash -q; echo m >d/f; git commit -qam two; rm -r d; ln -s $OUT d; "
                 "cp $OUT/secret $OUT/f");
    refused("worktree_dirty", "stash", "r", "'action':'apply'");
    sh("grep -q secret $OUT/f; cd r; rm d; git checkout -q d; git stash pop -q || true; rm -r d; ln -s $OUT d");
    assert_string_equal(text_of(refused("merge_conflict", "restore", "r", "'paths':['.']"), "conflicts.0"), "d/f");
    sh("grep -q secret $OUT/f; rm $OUT/f");
    assert_true(outside_is_untouched());
    /* The other files can be had. */
    sh("cd r; rm d; echo x >a");
    ask("restore", "r", "'paths':['a']");
    ask("restore", "r", "'paths':['d'],'source':'HEAD'");
    assert_true(sh_is("[ \"$(cat r/a r/d/f | tr '\\n' ' ')\" = 'a m ' ]"));
}

/* A link is staged as one, also where it leads to a repository. */
static void test_add_of_a_link_to_a_repository(void **state)
{
    (void)state;
    sh("git init -q -b main $OUT/o; " MAKE_REPO "ln -s $OUT/o l");
    ask("add", "r", "'paths':['l']");
    assert_true(sh_is("[ \"$(git -C r ls-files -s l | cut -c1-6)\" = 120000 ]"));
    sh("rm -rf $OUT/o");
}

static void test_submodules_that_lead_out(void **state)
{
    (void)state;
    sh(MAKE_REPO
       "mv ../r $OUT/o; cd ..; git init -q -b main in; cd in; git -c protocol.file.allow=always submodule add "
       "-q $OUT/o sub; git commit -qm sub; rm -rf .git/modules; echo gitdir: $OUT/o/.git >sub/.git; "
       "mkdir other; echo gitdir: $OUT/o/.git >other/.git; touch other/x");
    const cJSON *result = ask("status", "in", " ");
    for (int i = 0; i < count_of(result, "files"); i++) {
        char path[32];
        snprintf(path, sizeof path, "files.%d.path", i);
        assert_string_not_equal(text_of(result, path), "sub");
    }
    refused("invalid_request", "add", "in", "'paths':['other']");
    refused("path_outside_base", "add", "in", "'all':true");
    refused("path_outside_base", "status", "in/sub", " ");
}

/* Each program that the configuration names would leave a file behind. */
static void test_no_program_runs(void **state)
{
    (void)state;
    sh(MAKE_REPO "printf '#!/bin/sh\\necho $0 >>$OUT/ran\\ncat\\n' >$OUT/trap; chmod +x $OUT/trap; mkdir ../hooks; "
                 "for h in pre-commit commit-msg prepare-commit-msg post-commit post-checkout post-index-change "
                 "reference-transaction pre-push post-merge; do cp $OUT/trap ../hooks/$h; cp $OUT/trap .git/hooks/$h; "
                 "done; git config core.hooksPath $PWD/../hooks; git config core.fsmonitor $OUT/trap; "
                 "git config filter.x.clean $OUT/trap; git config filter.x.smudge $OUT/trap; "
                 "git config filter.x.process $OUT/trap; git config filter.x.required true; "
                 "git config diff.external $OUT/trap; git config diff.y.textconv $OUT/trap; "
                 "git config core.sshCommand $OUT/trap; git config gpg.program $OUT/trap; "
                 "git config commit.gpgSign true; git config core.editor $OUT/trap; "
                 "git config core.pager $OUT/trap; git config credential.helper \"!$OUT/trap\"; "
                 "printf '* filter=x diff=y\\n' >.gitattributes; echo new >>a");
    ask("status", "r", " ");
    ask("add", "r", "'all':true");
    ask("commit", "r", "'message':'two'");
    sh("echo more >>r/a");
    ask("reset", "r", "'mode':'hard','ref':'HEAD~1'");
    ask("restore", "r", "'paths':['a']");
    assert_true(sh_is("[ ! -e $OUT/ran ] && [ ! -e ran ] && [ ! -e r/ran ] && [ \"$(cat r/a)\" = a ]"));
}

static int without_landlock;

#define BOTH(test)                                                                                                     \
    cmocka_unit_test_setup_teardown(test, git_set_up, git_tear_down),                                                  \
    {                                                                                                                  \
#test " without Landlock", test, git_set_up, git_tear_down, &without_landlock                                  \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_discovery_stops_at_the_base),
        BOTH(test_discovery_climbs_inside),
        BOTH(test_git_file),
        BOTH(test_worktrees),
        BOTH(test_links_in_the_git_directory),
        BOTH(test_alternates),
        BOTH(test_included_configuration),
        BOTH(test_configured_files_outside),
        BOTH(test_users_configuration_does_not_count),
        BOTH(test_repositories_of_others),
        BOTH(test_reset_through_links),
        BOTH(test_removal_through_links),
        BOTH(test_restore_through_links),
        BOTH(test_add_through_links),
        BOTH(test_conflicts_through_links),
        BOTH(test_add_of_a_link_to_a_repository),
        BOTH(test_submodules_that_lead_out),
        BOTH(test_no_program_runs),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed == 0 && not_run ? 77 : failed;
}
