/* What abxd-helper git tells of a repository's state. */
#include "git_fixture.h"

enum { MANY_FILES = 6000 };

/* The entry of that path; NULL where there is none. */
static const cJSON *file(const cJSON *result, const char *path)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, member_at(result, "files"))
    {
        if (strcmp(text_of(entry, "path"), path) == 0)
            return entry;
    }
    return NULL;
}

static void check_file(const cJSON *result, const char *path, const char *index, const char *worktree)
{
    const cJSON *entry = file(result, path);
    if (!entry)
        fail_msg("%s is missing", path);
    assert_string_equal(text_of(entry, "index"), index);
    assert_string_equal(text_of(entry, "worktree"), worktree);
}

static void test_files(void **state)
{
    (void)state;
    sh("git init -q -b main r; cd r; for f in a b c e t 'sp ace'; do echo \"content of $f\" >\"$f\"; done; mkdir d; "
       "echo d >d/f; echo '*.o' >.gitignore; git add .; git commit -qm one; echo 1 >>a; git add a; echo 2 >>a; rm b; "
       "git rm -q c; git mv 'sp ace' 'x -> y'; rm t; ln -s a t; echo new >'café'; git add 'café'; mkdir u; touch u/1 "
       "u/2 i.o; touch \"$(printf 'n\\nl')\" \"$(printf 'b\\244')\"");
    const cJSON *result = ask("status", "r", " ");
    assert_int_equal(number_of(result, "clean"), 0);
    assert_int_equal(count_of(result, "files"), 9);
    check_file(result, "a", "modified", "modified");
    check_file(result, "b", "null", "deleted");
    check_file(result, "c", "deleted", "null");
    check_file(result, "x -> y", "renamed", "null");
    assert_string_equal(text_of(file(result, "x -> y"), "old_path"), "sp ace");
    check_file(result, "t", "null", "typechange");
    check_file(result, "caf\xc3\xa9", "new", "null");
    check_file(result, "u/", "null", "untracked");
    check_file(result, "n\nl", "null", "untracked");
    check_file(result, "b\xef\xbf\xbd", "null", "untracked");
    assert_string_equal(text_of(file(result, "b\xef\xbf\xbd"), "path_base64"), "YqQ=");
    assert_int_equal(count_of(ask("status", "r", "'untracked':false"), "files"), 6);
    result = ask("status", "r", "'ignored':true");
    check_file(result, "i.o", "null", "ignored");
    result = ask("status", "r", "'limit':2");
    assert_int_equal(count_of(result, "files"), 2);
    assert_int_equal(number_of(result, "truncated"), 1);
}

static void test_branches(void **state)
{
    (void)state;
    sh("git init -q -b main o; cd o; git commit -q --allow-empty -m one; cd ..; git clone -q o r; cd o; git commit -q "
       "--allow-empty -m theirs; cd ../r; git commit -q --allow-empty -m 'ours'; git commit -q --allow-empty -m 'two'; "
       "git fetch -q");
    const cJSON *result = ask("status", "r", " ");
    assert_string_equal(text_of(result, "branch"), "main");
    assert_string_equal(text_of(result, "upstream"), "origin/main");
    assert_int_equal(number_of(result, "ahead"), 2);
    assert_int_equal(number_of(result, "behind"), 1);
    assert_int_equal(number_of(result, "clean"), 1);
    assert_int_equal(number_of(result, "unborn"), 0);
    assert_string_equal(text_of(result, "head.summary"), "two");
    assert_string_equal(text_of(result, "head.author.email"), "ann@example.org");
    assert_string_equal(text_of(result, "state"), "clean");
    sh("cd r; git checkout -q --detach");
    result = ask("status", "r", " ");
    assert_string_equal(text_of(result, "branch"), "null");
    assert_int_equal(number_of(result, "detached"), 1);
    assert_string_equal(text_of(result, "upstream"), "null");
    sh("cd r; git checkout -q --orphan fresh");
    result = ask("status", "r", " ");
    assert_string_equal(text_of(result, "branch"), "fresh");
    assert_int_equal(number_of(result, "unborn"), 1);
    assert_string_equal(text_of(result, "head"), "null");
    sh("git clone -q --bare o b.git");
    result = ask("status", "b.git", " ");
    assert_string_equal(text_of(result, "branch"), "main");
    assert_int_equal(count_of(result, "files"), 0);
    assert_int_equal(number_of(result, "clean"), 1);
}

static void test_states(void **state)
{
    (void)state;
    sh("git init -q -b main r; cd r; echo a >a; git add a; git commit -qm one; git checkout -qb o; echo o >a; git "
       "commit "
       "-qam o; git checkout -q main; echo m >a; git commit -qam m; git cherry-pick o >/dev/null 2>&1 || true");
    const cJSON *result = ask("status", "r", " ");
    assert_string_equal(text_of(result, "state"), "cherrypick");
    assert_int_equal(number_of(file(result, "a"), "conflicted"), 1);
    sh("cd r; git cherry-pick --abort; git rebase o >/dev/null 2>&1 || true");
    assert_string_equal(text_of(ask("status", "r", " "), "state"), "rebase");
    sh("cd r; git rebase --abort; git bisect start >/dev/null");
    assert_string_equal(text_of(ask("status", "r", " "), "state"), "bisect");
}

/* What is not of a merge goes on after a commit, a reset and a forced checkout. */
static void test_what_is_in_progress_goes_on(void **state)
{
    (void)state;
    sh("git init -q -b main r; cd r; for i in 1 2 3 4; do echo $i >a; git add a; git commit -qm $i; done; "
       "git bisect start HEAD HEAD~3 >/dev/null");
    ask("reset", "r", "'mode':'hard','ref':'HEAD~1'");
    ask("commit", "r", "'message':'m','allow_empty':true");
    ask("checkout", "r", "'ref':'HEAD','force':true");
    assert_string_equal(text_of(ask("status", "r", " "), "state"), "bisect");
    sh("cd r; git bisect reset main >/dev/null 2>&1; git reset -q --hard; git checkout -qb o HEAD~2; echo o >a; "
       "git commit -qam o; git rebase main >/dev/null 2>&1 || true; echo mended >a");
    ask("add", "r", "'paths':['a']");
    ask("commit", "r", "'message':'mended'");
    assert_string_equal(text_of(ask("status", "r", " "), "state"), "rebase");
    assert_string_equal(sh("cd r; GIT_EDITOR=true git rebase --continue >/dev/null 2>&1; git log -2 --format=%%s; "
                           "git symbolic-ref HEAD"),
                        "mended\n4\nrefs/heads/o");
    sh("cd r; git checkout -q main; git cherry-pick o >/dev/null 2>&1 || true; git revert --no-commit HEAD "
       ">/dev/null 2>&1 || true; echo x >a; git add a");
    ask("commit", "r", "'message':'picked'");
    assert_string_equal(text_of(ask("status", "r", " "), "state"), "clean");
    assert_string_equal(sh("cd r/.git; ls | grep -E '^(MERGE|CHERRY|REVERT|SQUASH)' || true"), "");
}

/* Touched files are read once, and then remembered in the index; a locked index is no obstacle. */
static void test_index_is_refreshed(void **state)
{
    (void)state;
    sh("git init -q -b main r; cd r; for i in 1 2 3; do echo $i >$i; done; git add .; git commit -qm one; "
       "touch -d '2001-01-01' 1 2 3");
    sh("touch r/.git/index.lock");
    assert_int_equal(count_of(ask("status", "r", " "), "files"), 0);
    sh("rm r/.git/index.lock");
    assert_true(sh_is("! git -C r diff-files --quiet"));
    assert_int_equal(count_of(ask("status", "r", " "), "files"), 0);
    assert_true(sh_is("git -C r diff-files --quiet"));
}

static void test_many_files(void **state)
{
    (void)state;
    sh("git init -q -b main r; cd r; seq %d | sed 's/^/f/' | xargs touch", MANY_FILES);
    const cJSON *result = ask("status", "r", " ");
    assert_int_equal(count_of(result, "files"), 5000);
    assert_int_equal(number_of(result, "truncated"), 1);
    result = ask("add", "r", "'all':true");
    assert_int_equal(number_of(result, "count"), MANY_FILES);
    assert_int_equal(number_of(result, "truncated"), 1);
    assert_int_equal(count_of(ask("status", "r", "'limit':10000"), "files"), MANY_FILES);
}

/* f is changed in the second of its commit, to something as long. Operations of a later second write the index. */
static void check_hidden_change(const char *operation, const char *params)
{
    sh("rm -rf r; git init -q -b main r; cd r; while [ $(date +%%1N) != 0 ]; do sleep 0.02; done; "
       "printf aaaa >f; git add f; git commit -qm one; printf bbbb >f; echo g >g; sleep 1.1");
    ask(operation, "r", "%s", params);
    assert_true(sh_is("git -C r status --porcelain | grep -qx ' M f'"));
}

static void test_git_sees_what_changed_in_the_same_second(void **state)
{
    (void)state;
    check_hidden_change("add", "'paths':['g']");
    check_hidden_change("reset", " ");
    check_hidden_change("checkout", "'ref':'new','create':true");
    check_hidden_change("status", " ");
}

/* Enough for a working tree that is looked at in parts: one folder that holds most of it, and names between which "/"
 * sorts. */
static void test_parts(void **state)
{
    (void)state;
    sh("git init -q -b main r; cd r; mkdir -p s/deep/er a.b a z; (cd s/deep/er; seq %d | sed 's/^/f/' | xargs touch); "
       "for i in $(seq 300); do echo $i >a/$i; echo $i >a.b/$i; echo $i >z/$i; done; echo q >a-b; echo x >s.c; "
       "echo y >s/deep.c; printf '*.o\\n/ign/\\n' >.gitignore; git add -A; git commit -qm one",
       MANY_FILES);
    assert_int_equal(number_of(ask("status", "r", " "), "clean"), 1);
    sh("cd r; echo 1 >>a/7; echo 2 >>a-b; git add a-b; echo 3 >>a-b; rm a.b/9; git mv z/11 z/moved; echo n "
       ">s/deep/er/new; "
       "rm s/deep/er/f5; ln -s f6 s/deep/er/f5; mkdir s/deep/u ign; touch s/deep/u/1 ign/1 z/i.o; git rm -q --cached "
       "z/12; "
       "rm s/deep.c; mkdir s/deep.c; touch s/deep.c/in new");
    const cJSON *result = ask("status", "r", "'ignored':true");
    check_file(result, "a/7", "null", "modified");
    check_file(result, "a-b", "modified", "modified");
    check_file(result, "a.b/9", "null", "deleted");
    check_file(result, "z/moved", "renamed", "null");
    check_file(result, "s/deep/er/new", "null", "untracked");
    check_file(result, "s/deep/er/f5", "null", "typechange");
    check_file(result, "s/deep/u/", "null", "untracked");
    check_file(result, "ign/", "null", "ignored");
    check_file(result, "z/i.o", "null", "ignored");
    check_file(result, "z/12", "deleted", "untracked");
    check_file(result, "s/deep.c", "null", "deleted");
    check_file(result, "s/deep.c/", "null", "untracked");
    check_file(result, "new", "null", "untracked");
    assert_int_equal(count_of(result, "files"), 13);
    const cJSON *entry;
    const char *before = "";
    cJSON_ArrayForEach(entry, member_at(result, "files"))
    {
        assert_true(strcmp(before, text_of(entry, "path")) < 0);
        before = text_of(entry, "path");
    }
    /* A part whose index another part wrote meanwhile is refreshed by the next call. */
    sh("cd r; git reset -q --hard; git clean -qfdx; find . -path ./.git -prune -o -type f -exec touch -d 2001-01-01 {} "
       "+");
    for (int i = 0; i < 4; i++)
        assert_int_equal(number_of(ask("status", "r", " "), "clean"), 1);
    assert_true(sh_is("git -C r diff-files --quiet"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        git_test(test_files),
        git_test(test_branches),
        git_test(test_states),
        git_test(test_what_is_in_progress_goes_on),
        git_test(test_index_is_refreshed),
        git_test(test_many_files),
        git_test(test_parts),
        git_test(test_git_sees_what_changed_in_the_same_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
