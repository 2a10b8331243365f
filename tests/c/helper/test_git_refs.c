/* branch, tag and checkout of abxd-helper git, against what the git command line says of the same repository. */
#include "git_fixture.h"

static void make_two_commits(void)
{
    sh("echo 1 >a; echo 1 >b; echo .x >.gitignore; git add -A; git commit -q -m one;"
       "git checkout -q -b side; echo 2 >a; mkdir d; echo 2 >d/f; git add -A; git commit -q -m two; git checkout -q "
       "main");
}

static void branches_are_listed(void **state)
{
    (void)state;
    assert_string_equal(column(ask("branch", "repo", " "), "branches", "name"), "");
    make_two_commits();
    sh("git branch deep/er; git branch zz; git pack-refs --all; git clone -q . ../copy; cd ../copy; git checkout -q "
       "side; git pack-refs --all; git branch own; git branch a/first");
    const cJSON *list = ask("branch", "copy", "'action':'list'");
    assert_string_equal(column(list, "branches", "name"), sh("git -C ../copy branch --format='%%(refname:short)'"));
    assert_string_equal(column(list, "branches", "sha"), sh("git -C ../copy branch --format='%%(objectname)'"));
    assert_string_equal(column(list, "branches", "upstream"), "null\norigin/main\nnull\norigin/side");
    assert_string_equal(column(list, "remote_branches", "name"),
                        sh("git -C ../copy for-each-ref --format='%%(refname:lstrip=2)' refs/remotes"));
    const cJSON *branch;
    cJSON_ArrayForEach(branch, cJSON_GetObjectItem(list, "branches"))
        assert_int_equal(is_true(branch, "current"), strcmp(text_of(branch, "name"), "side") == 0);
}

static void branches_are_made_and_deleted(void **state)
{
    (void)state;
    make_two_commits();
    const cJSON *made = ask("branch", "repo", "'action':'create','name':'new','start':'side'");
    assert_string_equal(text_of(made, "sha"), sh("git rev-parse new side | uniq"));
    assert_string_equal(text_of(refused("already_exists", "branch", "repo", "'action':'create','name':'new'"), "field"),
                        "name");
    refused("already_exists", "branch", "repo", "'action':'create','name':'new/below'");
    ask("branch", "repo", "'action':'create','name':'fol/der'");
    refused("already_exists", "branch", "repo", "'action':'create','name':'fol'");
    sh("git branch -D -q fol/der");
    refused("invalid_request", "branch", "repo", "'action':'create','name':'a..b'");
    refused("invalid_request", "branch", "repo", "'action':'create','name':'-x'");
    assert_string_equal(text_of(refused("invalid_request", "branch", "repo", "'action':'create'"), "field"), "name");
    assert_string_equal(
        text_of(refused("reference_not_found", "branch", "repo", "'action':'create','name':'n','start':'gone'"),
                "field"),
        "start");
    refused("busy", "branch", "repo", "'action':'delete','name':'main'");
    refused("reference_not_found", "branch", "repo", "'action':'delete','name':'gone'");
    assert_string_equal(text_of(ask("branch", "repo", "'action':'delete','name':'side'"), "sha"),
                        sh("git rev-parse new"));
    assert_string_equal(sh("git branch --format='%%(refname:short)'"), "main\nnew");
    /* What is checked out in another working tree is in use too. */
    sh("git worktree add -q ../other new");
    refused("busy", "branch", "repo", "'action':'delete','name':'new'");
}

static void branches_are_renamed(void **state)
{
    (void)state;
    assert_true(
        cJSON_IsNull(cJSON_GetObjectItem(ask("branch", "repo", "'action':'rename','new_name':'trunk'"), "sha")));
    assert_string_equal(sh("git symbolic-ref HEAD"), "refs/heads/trunk");
    ask("branch", "repo", "'action':'rename','name':'trunk','new_name':'main'");
    make_two_commits();
    sh("git config branch.side.description kept");
    ask("branch", "repo", "'action':'rename','name':'side','new_name':'aside'");
    assert_string_equal(sh("git config branch.aside.description"), "kept");
    ask("branch", "repo", "'action':'rename','new_name':'trunk'");
    assert_string_equal(sh("git symbolic-ref HEAD; git branch --format='%%(refname:short)'"),
                        "refs/heads/trunk\naside\ntrunk");
    assert_string_equal(
        text_of(refused("already_exists", "branch", "repo", "'action':'rename','new_name':'aside'"), "field"),
        "new_name");
    refused("reference_not_found", "branch", "repo", "'action':'rename','name':'gone','new_name':'x'");
    refused("invalid_request", "branch", "repo", "'action':'rename','name':'aside','new_name':'x y'");
    sh("git checkout -q --detach");
    refused("invalid_request", "branch", "repo", "'action':'rename','new_name':'x'");
}

static void tags(void **state)
{
    (void)state;
    assert_string_equal(column(ask("tag", "repo", " "), "tags", "name"), "");
    refused("reference_not_found", "tag", "repo", "'action':'create','name':'v0'");
    make_two_commits();
    assert_false(is_true(ask("tag", "repo", "'action':'create','name':'light'"), "annotated"));
    ask("tag", "repo",
        "'action':'create','name':'v1','ref':'side','message':'first\\nline','author':{'name':'T','email':'t@x'}");
    assert_string_equal(sh("git cat-file -t light; git cat-file -t v1; git rev-parse v1^{commit} side | uniq | wc -l"),
                        "commit\ntag\n1");
    assert_string_equal(sh("git for-each-ref --format='%%(taggername) %%(taggeremail) %%(contents)' refs/tags/v1"),
                        "T <t@x> first\nline\n");
    sh("git tag odd/name; git pack-refs --all; git tag zz v1");
    const cJSON *list = ask("tag", "repo", "'action':'list'");
    assert_string_equal(column(list, "tags", "name"), sh("git tag"));
    assert_string_equal(column(list, "tags", "sha"), sh("for t in $(git tag); do git rev-parse $t^{}; done"));
    assert_string_equal(column(list, "tags", "message"), "null\nnull\nfirst\nline\nfirst\nline\n");
    refused("already_exists", "tag", "repo", "'action':'create','name':'light'");
    refused("already_exists", "tag", "repo", "'action':'create','name':'v1','message':'m'");
    refused("invalid_request", "tag", "repo", "'action':'create','name':'a b'");
    assert_string_equal(
        text_of(refused("reference_not_found", "tag", "repo", "'action':'create','name':'x','ref':'gone'"), "field"),
        "ref");
    ask("tag", "repo", "'action':'delete','name':'odd/name'");
    refused("reference_not_found", "tag", "repo", "'action':'delete','name':'odd/name'");
    assert_string_equal(sh("git tag"), "light\nv1\nzz");
}

static void checkout_goes_to_branches_and_commits(void **state)
{
    (void)state;
    make_two_commits();
    sh("git tag -a -m tag v1");
    const cJSON *done = ask("checkout", "repo", "'ref':'side'");
    assert_string_equal(text_of(done, "branch"), "side");
    assert_false(is_true(done, "detached"));
    assert_string_equal(sh("git status --porcelain -b; cat a d/f"), "## side\n2\n2");
    done = ask("checkout", "repo", "'ref':'v1'");
    assert_true(is_true(done, "detached"));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(done, "branch")));
    assert_string_equal(text_of(done, "sha"), sh("git rev-parse HEAD main | uniq"));
    assert_string_equal(sh("git status --porcelain; cat a; ls; git symbolic-ref -q HEAD || echo detached"),
                        "1\na\nb\ndetached");
    ask("checkout", "repo", "'ref':'%s'", sh("git rev-parse --short side"));
    assert_string_equal(sh("git rev-parse HEAD side | uniq | wc -l; git symbolic-ref -q HEAD || echo detached"),
                        "1\ndetached");
    done = ask("checkout", "repo", "'ref':'fresh','create':true");
    assert_true(is_true(done, "created"));
    assert_string_equal(sh("git symbolic-ref HEAD; git rev-parse HEAD side | uniq | wc -l"), "refs/heads/fresh\n1");
    assert_string_equal(text_of(ask("checkout", "repo", "'ref':'HEAD'"), "branch"), "fresh");
    assert_string_equal(text_of(refused("already_exists", "checkout", "repo", "'ref':'main','create':true"), "field"),
                        "ref");
    assert_string_equal(text_of(refused("reference_not_found", "checkout", "repo", "'ref':'gone'"), "field"), "ref");
    refused("invalid_request", "checkout", "repo", " ");
}

static void checkout_of_a_remote_branch_follows_it(void **state)
{
    (void)state;
    make_two_commits();
    sh("git branch at/both side; git clone -q . ../copy; git clone -q . ../third; cd ../copy; git remote add second "
       "../third;"
       "git -C ../third branch at/both origin/at/both; git fetch -q second");
    const cJSON *done = ask("checkout", "copy", "'ref':'side'");
    assert_true(is_true(done, "created"));
    assert_string_equal(sh("cd ../copy; git status --porcelain -b; git config branch.side.merge"),
                        "## side...origin/side\nrefs/heads/side");
    assert_string_equal(text_of(refused("reference_not_found", "checkout", "copy", "'ref':'at/both'"), "field"), "ref");
    assert_true(is_true(ask("checkout", "copy", "'ref':'origin/at/both'"), "detached"));
    /* Nothing is left of a branch whose files could not be checked out. */
    sh("cd ../copy; git checkout -q main; git branch -D -q side; echo local >a");
    refused("worktree_dirty", "checkout", "copy", "'ref':'side'");
    assert_string_equal(sh("git -C ../copy branch --format='%%(refname:short)'"), "main");
}

static void checkout_keeps_local_changes(void **state)
{
    (void)state;
    make_two_commits();
    sh("echo mine >a; mkdir d; echo untracked >d/f; echo other >b; echo staged >s; git add s");
    const cJSON *data = refused("worktree_dirty", "checkout", "repo", "'ref':'side'");
    assert_string_equal(column(data, "files", NULL), "a\nd/f");
    assert_string_equal(sh("git symbolic-ref HEAD; cat a d/f; git status --porcelain"),
                        "refs/heads/main\nmine\nuntracked\n M a\n M b\nA  s\n?? d/");
    /* What the other branch has alike goes along. */
    sh("git checkout -q a; rm -r d");
    ask("checkout", "repo", "'ref':'side'");
    assert_string_equal(sh("git symbolic-ref HEAD; cat a b; git status --porcelain"),
                        "refs/heads/side\n2\nother\n M b\nA  s");
    sh("echo untracked >u; echo mine >a; git rm -q --cached d/f");
    ask("checkout", "repo", "'ref':'main','force':true");
    assert_string_equal(sh("git symbolic-ref HEAD; cat a b; git status --porcelain; ls"),
                        "refs/heads/main\n1\n1\n?? d/\n?? u\na\nb\nd\nu");
}

static void checkout_while_unborn_or_locked(void **state)
{
    (void)state;
    const cJSON *done = ask("checkout", "repo", "'ref':'start','create':true");
    assert_string_equal(text_of(done, "branch"), "start");
    assert_string_equal(sh("git symbolic-ref HEAD"), "refs/heads/start");
    refused("reference_not_found", "checkout", "repo", "'ref':'gone'");
    ask("checkout", "repo", "'ref':'main','create':true");
    make_two_commits();
    sh("git symbolic-ref HEAD refs/heads/orphan; git rm -rq --cached . ; rm -r a b .gitignore");
    ask("checkout", "repo", "'ref':'side'");
    assert_string_equal(sh("git status --porcelain -b; ls"), "## side\na\nb\nd");
    sh(": >.git/index.lock");
    refused("busy", "checkout", "repo", "'ref':'main'");
    sh("rm .git/index.lock");
    ask("checkout", "repo", "'ref':'main'");
}

/* HEAD is unborn, but not every branch. */
static void an_unborn_branch_takes_no_others_name(void **state)
{
    (void)state;
    make_two_commits();
    sh("git symbolic-ref HEAD refs/heads/orphan");
    assert_string_equal(text_of(refused("already_exists", "checkout", "repo", "'ref':'side','create':true"), "field"),
                        "ref");
    assert_string_equal(
        text_of(refused("already_exists", "branch", "repo", "'action':'rename','new_name':'side'"), "field"),
        "new_name");
    refused("already_exists", "checkout", "repo", "'ref':'side/below','create':true");
    assert_string_equal(sh("git symbolic-ref HEAD"), "refs/heads/orphan");
}

static void checkout_leaves_branches_of_other_worktrees(void **state)
{
    (void)state;
    make_two_commits();
    sh("git worktree add -q ../other side");
    assert_string_equal(text_of(refused("busy", "checkout", "repo", "'ref':'side'"), "field"), "ref");
    refused("busy", "checkout", "repo", "'ref':'side','force':true");
    assert_string_equal(sh("git symbolic-ref HEAD; git status --porcelain; cat a"), "refs/heads/main\n1");
    ask("checkout", "repo", "'ref':'main'");
}

static void checkout_writes_through_no_link(void **state)
{
    (void)state;
    make_two_commits();
    sh("mkdir ../outside; echo keep >../outside/f; echo keep >../outside/a; ln -s ../outside d");
    refused("worktree_dirty", "checkout", "repo", "'ref':'side'");
    ask("checkout", "repo", "'ref':'side','force':true");
    assert_string_equal(sh("cat ../outside/f d/f; git status --porcelain"), "keep\n2");
    sh("rm a; ln -s ../outside/a a");
    refused("worktree_dirty", "checkout", "repo", "'ref':'main'");
    ask("checkout", "repo", "'ref':'main','force':true");
    assert_string_equal(sh("cat ../outside/a a; git status --porcelain"), "keep\n1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        repository_test(branches_are_listed),
        repository_test(branches_are_made_and_deleted),
        repository_test(branches_are_renamed),
        repository_test(tags),
        repository_test(checkout_goes_to_branches_and_commits),
        repository_test(checkout_of_a_remote_branch_follows_it),
        repository_test(checkout_keeps_local_changes),
        repository_test(checkout_while_unborn_or_locked),
        repository_test(an_unborn_branch_takes_no_others_name),
        repository_test(checkout_leaves_branches_of_other_worktrees),
        repository_test(checkout_writes_through_no_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
