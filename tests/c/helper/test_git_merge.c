/* merge and stash of abxd-helper git, against what the git command line says of the same repository. */
#include "git_fixture.h"

/* main and side both change f (in different lines unless `same`); side adds s. */
static void make_sides(bool same)
{
    sh("seq 9 >f; echo 1 >g; echo ign >.gitignore; git add -A; git commit -q -m base; git checkout -q -b side;"
       "sed -i '%ds/$/ theirs/' f; echo s >s; git add -A; git commit -q -m theirs; git checkout -q main;"
       "sed -i '1s/$/ ours/' f; git commit -q -a -m ours",
       same ? 1 : 9);
}

static void merge_fast_forwards(void **state)
{
    (void)state;
    make_sides(false);
    sh("git checkout -q side~1; git checkout -q -b late; echo local >>g; echo staged >new; git add new");
    const cJSON *done = ask("merge", "repo", "'ref':'side'");
    assert_string_equal(text_of(done, "kind"), "fast_forward");
    assert_string_equal(text_of(done, "sha"), sh("git rev-parse late side HEAD | uniq"));
    assert_string_equal(sh("git symbolic-ref HEAD; git status --porcelain; git reflog -1 --format=%%gs"),
                        "refs/heads/late\n M g\nA  new\nmerge side: Fast-forward");
    assert_string_equal(text_of(ask("merge", "repo", "'ref':'side~1'"), "kind"), "up_to_date");
    refused("reference_not_found", "merge", "repo", "'ref':'gone'");
    refused("invalid_request", "merge", "repo", " ");
    refused("invalid_request", "merge", "repo", "'abort':true");
}

static void merge_makes_a_commit(void **state)
{
    (void)state;
    make_sides(false);
    sh("git branch again");
    const cJSON *done = ask("merge", "repo", "'ref':'side','author':{'name':'M','email':'m@x'}");
    assert_string_equal(text_of(done, "kind"), "merge");
    assert_string_equal(text_of(done, "sha"), sh("git rev-parse HEAD"));
    assert_string_equal(
        sh("git log -1 --format='%%an %%ae|%%B'; git status --porcelain; ls; ls .git | grep ^MERGE || :"),
        "M m@x|Merge branch 'side'\n\nf\ng\ns");
    /* git itself comes to the same tree. */
    sh("git checkout -q again; git merge -q -m 'by git' side");
    assert_string_equal(
        sh("git rev-parse main^{tree} again^{tree} | uniq | wc -l; git rev-parse main^1 again^1 | uniq | wc -l;"
           "git rev-parse main^2 again^2 | uniq | wc -l"),
        "1\n1\n1");
    sh("git reset -q --hard HEAD~1");
    ask("merge", "repo", "'ref':'side','message':'my words'");
    assert_string_equal(sh("git log -1 --format=%%B"), "my words\n");
    sh("git reset -q --hard HEAD~1; git tag v1 side");
    ask("merge", "repo", "'ref':'v1'");
    assert_string_equal(sh("git log -1 --format=%%s"), "Merge tag 'v1' into again");
}

static void merge_leaves_conflicts_and_gives_up(void **state)
{
    (void)state;
    make_sides(true);
    sh("echo local >>g");
    char *before = sh("git rev-parse HEAD; git status --porcelain; cat f");
    const cJSON *data = refused("merge_conflict", "merge", "repo", "'ref':'side'");
    assert_string_equal(column(data, "conflicts", NULL), "f");
    assert_string_equal(sh("cat .git/MERGE_HEAD"), sh("git rev-parse side"));
    assert_string_equal(sh("git status --porcelain; head -n 6 f"),
                        "UU f\n M g\nA  s\n<<<<<<< HEAD\n1 ours\n=======\n1 theirs\n>>>>>>> side\n2");
    refused("merge_conflict", "merge", "repo", "'ref':'side'");
    refused("merge_conflict", "checkout", "repo", "'ref':'side'");
    refused("merge_conflict", "stash", "repo", " ");
    assert_string_equal(text_of(ask("merge", "repo", "'abort':true"), "kind"), "aborted");
    assert_string_equal(sh("git rev-parse HEAD; git status --porcelain; cat f"), before);
    assert_string_equal(sh("! ls .git | grep ^MERGE; ls"), "f\ng");
    /* Mended by hand and committed by git. */
    refused("merge_conflict", "merge", "repo", "'ref':'side'");
    sh("git checkout -q g; echo mended >f; git add f");
    refused("busy", "merge", "repo", "'ref':'side'");
    sh("git commit -q --no-edit");
    assert_string_equal(sh("git rev-parse HEAD^2"), sh("git rev-parse side"));
    /* A forced checkout ends a merge too. */
    sh("git reset -q --hard HEAD~1");
    refused("merge_conflict", "merge", "repo", "'ref':'side'");
    ask("checkout", "repo", "'ref':'main','force':true");
    assert_string_equal(sh("git status --porcelain; ! ls .git | grep ^MERGE; ls"), "f\ng");
}

static void conflicts_of_all_kinds(void **state)
{
    (void)state;
    sh("echo 1 >both; echo 1 >gone-here; echo 1 >gone-there; printf 'b\\0' >bin; git add -A; git commit -q -m base;"
       "git checkout -q -b side; echo theirs >both; echo t >gone-here; git rm -q gone-there; printf 'b\\0t' >bin;"
       "echo t >\"$(printf 'n\\nl')\"; git add -A; git commit -q -m theirs; git checkout -q main; echo ours >both;"
       "git rm -q gone-here; echo o >gone-there; printf 'b\\0o' >bin; echo o >\"$(printf 'n\\nl')\"; git add -A;"
       "git commit -q -m ours");
    const cJSON *data = refused("merge_conflict", "merge", "repo", "'ref':'side'");
    assert_string_equal(column(data, "conflicts", NULL), "bin\nboth\ngone-here\ngone-there\nn\nl");
    char *ours = sh("git ls-files -u");
    ask("merge", "repo", "'abort':true");
    assert_string_equal(sh("git status --porcelain; git merge side >/dev/null || git ls-files -u"), ours);
}

static void merge_refuses_local_changes(void **state)
{
    (void)state;
    make_sides(false);
    sh("echo mine >>f; echo untracked >s");
    const cJSON *data = refused("worktree_dirty", "merge", "repo", "'ref':'side'");
    assert_string_equal(column(data, "files", NULL), "f\ns");
    assert_string_equal(sh("git status --porcelain; tail -n 1 f; cat s; ls .git | grep ^MERGE || :"),
                        " M f\n?? s\nmine\nuntracked");
    sh("rm s; git checkout -q f; echo staged >g; git add g");
    assert_string_equal(column(refused("worktree_dirty", "merge", "repo", "'ref':'side'"), "files", NULL), "g");
    sh("git reset -q --hard; git checkout -q -b conflict side; sed -i '1s/$/ other/' f; git commit -q -a -m c;"
       "git checkout -q main; echo mine >>f; echo untracked >s");
    data = refused("worktree_dirty", "merge", "repo", "'ref':'conflict'");
    assert_string_equal(column(data, "files", NULL), "f\ns");
    assert_string_equal(sh("git status --porcelain; ls .git | grep ^MERGE || :"), " M f\n?? s");
    sh("git checkout -q f; rm s; git checkout -q --orphan alone; git commit -q -m alone; git checkout -q main");
    refused("invalid_request", "merge", "repo", "'ref':'alone'");
}

static void merge_writes_through_no_link(void **state)
{
    (void)state;
    make_sides(false);
    sh("git checkout -q side; mkdir d; echo x >d/f; git add -A; git commit -q -m d; git checkout -q main;"
       "mkdir ../outside; echo keep >../outside/f; ln -s ../outside d");
    refused("worktree_dirty", "merge", "repo", "'ref':'side'");
    assert_string_equal(sh("cat ../outside/f; git status --porcelain"), "keep\n?? d");
    sh("git checkout -q side~1; rm d; ln -s ../outside d");
    refused("worktree_dirty", "merge", "repo", "'ref':'side'");
    assert_string_equal(sh("cat ../outside/f; ls ../outside"), "keep\nf");
}

static void merge_into_an_unborn_branch(void **state)
{
    (void)state;
    make_sides(false);
    sh("git init -q -b main ../empty; cd ../empty; git fetch -q ../repo side:side");
    assert_string_equal(text_of(ask("merge", "empty", "'ref':'side'"), "kind"), "fast_forward");
    assert_string_equal(
        sh("cd ../empty; git symbolic-ref HEAD; git rev-parse main side | uniq | wc -l; git status --porcelain; ls"),
        "refs/heads/main\n1\nf\ng\ns");
    refused("invalid_request", "stash", "empty", "'action':'fly'");
}

static void stash_puts_aside_and_back(void **state)
{
    (void)state;
    make_sides(false);
    const cJSON *done = ask("stash", "repo", "'action':'push'");
    assert_false(is_true(done, "stashed"));
    sh("echo changed >g; echo staged >n; git add n; echo u >u; echo i >ign");
    done = ask("stash", "repo", "'message':'my words'");
    assert_true(is_true(done, "stashed"));
    assert_string_equal(text_of(done, "sha"), sh("git rev-parse stash@{0}"));
    assert_string_equal(sh("git status --porcelain; git stash list; ls"),
                        "?? u\nstash@{0}: On main: my words\nf\ng\nign\nu");
    sh("echo again >g");
    ask("stash", "repo", "'untracked':true");
    assert_string_equal(sh("git status --porcelain; ls"), "f\ng\nign");
    const cJSON *list = ask("stash", "repo", "'action':'list'");
    assert_string_equal(column(list, "stashes", "message"), sh("git stash list --format=%%gs"));
    assert_string_equal(column(list, "stashes", "sha"), sh("git stash list --format=%%H"));
    assert_string_equal(column(list, "stashes", "index"), "0\n1");
    assert_string_equal(text_of(refused("reference_not_found", "stash", "repo", "'action':'pop','index':2"), "field"),
                        "index");
    ask("stash", "repo", "'action':'apply','index':1");
    assert_string_equal(sh("cat g n; git stash list | wc -l"), "changed\nstaged\n2");
    sh("git reset -q --hard");
    ask("stash", "repo", "'action':'pop'");
    assert_string_equal(sh("cat g u; git stash list"), "again\nu\nstash@{0}: On main: my words");
    /* What git put aside comes back too, and the other way round. */
    sh("git checkout -q g; rm u; echo by git >g; git stash -q");
    ask("stash", "repo", "'action':'pop'");
    assert_string_equal(sh("cat g; git stash -q; git stash drop -q; git stash pop -q; cat g n"),
                        "by git\nchanged\nstaged");
    sh("git reset -q --hard; rm -f n; echo x >g");
    ask("stash", "repo", "'action':'push'");
    ask("stash", "repo", "'action':'drop'");
    refused("reference_not_found", "stash", "repo", "'action':'drop'");
    assert_string_equal(sh("git stash list; cat g"), "1");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(ask("stash", "repo", "'action':'list'"), "stashes")), 0);
}

static void stash_keeps_what_is_in_the_way(void **state)
{
    (void)state;
    make_sides(false);
    sh("echo aside >g; git stash -q; echo mine >g");
    const cJSON *data = refused("worktree_dirty", "stash", "repo", "'action':'pop'");
    assert_string_equal(column(data, "files", NULL), "g");
    assert_string_equal(sh("cat g; git stash list | wc -l"), "mine\n1");
    sh("git commit -q -a -m mine");
    data = refused("merge_conflict", "stash", "repo", "'action':'pop'");
    assert_string_equal(column(data, "conflicts", NULL), "g");
    assert_string_equal(sh("git status --porcelain; git stash list | wc -l; grep -c '^<<<<<<<' g"), "UU g\n1\n1");
    sh("git reset -q --hard; git checkout -q HEAD~1; git rm -q g; git commit -q -m gone; git stash drop -q");
    sh("git checkout -q main; echo new >u; git stash -q -u; echo in the way >u");
    data = refused("worktree_dirty", "stash", "repo", "'action':'apply'");
    assert_string_equal(sh("cat u; git stash list | wc -l"), "in the way\n1");
}

static void stash_writes_through_no_link(void **state)
{
    (void)state;
    make_sides(false);
    sh("mkdir d; echo x >d/f; git add -A; git commit -q -m d; mkdir ../outside; echo keep >../outside/f; rm -r d;"
       "ln -s ../outside d; echo changed >g");
    refused("worktree_dirty", "stash", "repo", " ");
    sh("rm d; git checkout -q d; rm f; ln -s ../outside/f f");
    refused("worktree_dirty", "stash", "repo", " ");
    assert_string_equal(sh("cat ../outside/f; git stash list; git checkout -q f; git status --porcelain"),
                        "keep\n M g");
    /* A folder that became a file, and a file that became a folder, are put aside all the same. */
    sh("rm -r d; echo file >d; rm f; mkdir f; echo deep >f/x");
    ask("stash", "repo", "'untracked':true");
    assert_string_equal(sh("git status --porcelain; cat d/f; head -n1 f"), "x\n1 ours");
    sh("rm -r d; ln -s ../outside d");
    refused("worktree_dirty", "stash", "repo", "'action':'pop'");
    assert_string_equal(sh("cat ../outside/f; ls ../outside"), "keep\nf");
}

static void stash_needs_a_commit(void **state)
{
    (void)state;
    sh("echo 1 >a; git add a");
    refused("reference_not_found", "stash", "repo", " ");
    assert_string_equal(sh("git status --porcelain"), "A  a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        repository_test(merge_fast_forwards),
        repository_test(merge_makes_a_commit),
        repository_test(merge_leaves_conflicts_and_gives_up),
        repository_test(conflicts_of_all_kinds),
        repository_test(merge_refuses_local_changes),
        repository_test(merge_writes_through_no_link),
        repository_test(merge_into_an_unborn_branch),
        repository_test(stash_puts_aside_and_back),
        repository_test(stash_keeps_what_is_in_the_way),
        repository_test(stash_writes_through_no_link),
        repository_test(stash_needs_a_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
