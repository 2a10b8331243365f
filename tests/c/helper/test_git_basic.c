/* init, add, reset, restore and commit of abxd-helper git, seen by the git command line. */
#include "git_fixture.h"

#define MAKE_REPO "git init -q -b main r; cd r; mkdir d; echo a >a; echo f >d/f; git add .; git commit -qm one; "

static void test_init(void **state)
{
    (void)state;
    const cJSON *result = ask("init", "new/deep", " ");
    assert_int_equal(number_of(result, "reinitialised"), 0);
    assert_int_equal(number_of(result, "bare"), 0);
    assert_true(cJSON_IsNull(member_at(git_answer, "result.head")));
    assert_true(sh_is("[ \"$(git -C new/deep symbolic-ref HEAD)\" = refs/heads/main ]"));
    assert_int_equal(number_of(ask("init", "new/deep", "'initial_branch':'x'"), "reinitialised"), 1);
    assert_true(sh_is("[ \"$(git -C new/deep symbolic-ref HEAD)\" = refs/heads/main ]"));
    assert_int_equal(number_of(ask("init", "b.git", "'bare':true,'initial_branch':'trunk'"), "bare"), 1);
    assert_true(sh_is("[ \"$(git -C b.git symbolic-ref HEAD)\" = refs/heads/trunk ] && [ ! -e b.git/hooks/x ]"));
    refused("invalid_request", "init", "other", "'initial_branch':'a..b'");
    assert_string_equal(text_of(git_answer, "error.data.field"), "initial_branch");
    sh("touch file");
    refused("already_exists", "init", "file", " ");
    /* What a half-made one leads to is not written to. */
    sh("mkdir -p half/.git; ln -s $OUT half/.git/refs");
    refused("path_outside_base", "init", "half", " ");
    assert_true(sh_is("[ \"$(ls $OUT)\" = secret ]"));
}

static void test_add_names(void **state)
{
    (void)state;
    sh(MAKE_REPO "touch -- 'café.txt' 'a -> b' 'sp ace' '\"q\"' -f '*' 'a?' 'b[c]'; printf x >\"$(printf 'n\\nl')\"; "
                 "printf x >\"$(printf 'b\\244')\"; echo '*.o' >.gitignore; touch x.o");
    const cJSON *result = ask("add", "r", "'paths':['*']");
    assert_int_equal(number_of(result, "count"), 1);
    assert_string_equal(text_of(result, "staged.0"), "*");
    result = ask("add", "r/d", "'paths':['../caf\\u00e9.txt','../n\\nl','../-f'],'paths_base64':['Li4vYqQ=']");
    assert_int_equal(number_of(result, "count"), 4);
    assert_int_equal(number_of(ask("add", "r", "'paths':['a -> b','sp ace','\\\"q\\\"','a?']"), "count"), 4);
    assert_int_equal(number_of(ask("add", "r", "'paths':['b[c]']"), "count"), 1);
    refused("invalid_request", "add", "r", "'paths':['x.o']");
    refused("file_not_found", "add", "r", "'paths':['nothing']");
    assert_string_equal(text_of(git_answer, "error.data.field"), "paths");
    refused("invalid_request", "add", "r", " ");
    refused("invalid_request", "add", "r", "'paths':['a'],'all':true");
    refused("invalid_path", "add", "r", "'paths_base64':['AAA=']");
    assert_string_equal(text_of(git_answer, "error.data.field"), "paths_base64");
    sh("cd r; rm a; echo new >>d/f");
    result = ask("add", "r", "'paths':['a','d']");
    assert_int_equal(number_of(result, "count"), 2);
    assert_true(sh_is("[ \"$(git -C r diff --cached --name-status -- a d/f | tr '\\n\\t' '  ')\" = 'D a M d/f ' ]"));
    ask("add", "r", "'all':true");
    assert_true(sh_is("[ -z \"$(git -C r status --porcelain | grep -v '^[AMD] ')\" ]"));
}

static void test_commit(void **state)
{
    (void)state;
    sh(MAKE_REPO "git config user.name R; git config user.email r@r; echo b >>a");
    refused("invalid_request", "commit", "r", "'message':'x'");
    refused("invalid_request", "commit", "r", "'all':true");
    assert_string_equal(text_of(git_answer, "error.data.field"), "message");
    refused("invalid_request", "commit", "r", "'message':'  \\n','all':true");
    refused("invalid_request", "commit", "r", "'message':'x','all':true,'author':{'name':'','email':'e'}");
    assert_string_equal(text_of(git_answer, "error.data.field"), "author");
    const cJSON *result =
        ask("commit", "r", "'message':'two\\n\\n# kept','all':true,'author':{'name':'A','email':'a@a'}");
    assert_int_equal(strlen(text_of(result, "sha")), 40);
    assert_int_equal(count_of(result, "parents"), 1);
    assert_string_equal(text_of(result, "message"), "two\n\n# kept\n");
    assert_true(sh_is("[ \"$(git -C r log -1 --format=%an/%ae/%cn)\" = A/a@a/R ] && git -C r fsck --strict"));
    ask("commit", "r", "'amend':true,'message':'three'");
    assert_true(sh_is("[ \"$(git -C r log --format=%an/%s | tr '\\n' ' ')\" = 'A/three Ann Author/one ' ]"));
    ask("commit", "r", "'allow_empty':true,'message':'empty'");
    assert_true(sh_is("[ $(git -C r rev-list --count HEAD) = 3 ]"));
    sh("touch r/.git/index.lock; echo c >>r/a");
    refused("busy", "commit", "r", "'message':'x','all':true");
    refused("busy", "add", "r", "'all':true");
    sh("rm r/.git/index.lock");
    ask("commit", "r", "'message':'x','all':true");
}

static void test_first_commit(void **state)
{
    (void)state;
    sh("git init -q -b main r; echo a >r/a");
    refused("reference_not_found", "commit", "r", "'message':'x','amend':true");
    refused("reference_not_found", "reset", "r", "'mode':'hard'");
    ask("add", "r", "'all':true");
    ask("reset", "r", "'paths':['a']");
    assert_true(sh_is("[ \"$(git -C r status --porcelain)\" = '?? a' ]"));
    ask("add", "r", "'all':true");
    ask("reset", "r", " ");
    assert_true(sh_is("[ \"$(git -C r status --porcelain)\" = '?? a' ]"));
    ask("add", "r", "'all':true");
    ask("restore", "r", "'paths':['.'],'staged':true");
    assert_true(sh_is("[ \"$(git -C r status --porcelain)\" = '?? a' ]"));
    ask("add", "r", "'all':true");
    assert_int_equal(count_of(ask("commit", "r", "'message':'first'"), "parents"), 0);
    assert_string_equal(text_of(member_at(git_answer, "result"), "head.summary"), "first");
}

static void test_commit_of_a_merge(void **state)
{
    (void)state;
    sh(MAKE_REPO "git checkout -qb other; echo o >a; git commit -qam other; git checkout -q main; echo m >a; "
                 "git commit -qam main; git merge other >/dev/null || true");
    assert_string_equal(text_of(ask("status", "r", " "), "state"), "merge");
    refused("merge_conflict", "commit", "r", "'message':'x'");
    assert_string_equal(text_of(git_answer, "error.data.conflicts.0"), "a");
    sh("echo mended >r/a");
    refused("invalid_request", "commit", "r", "'message':'x','amend':true,'all':true");
    ask("add", "r", "'paths':['a']");
    const cJSON *result = ask("commit", "r", " ");
    assert_int_equal(count_of(result, "parents"), 2);
    assert_string_equal(text_of(result, "message"), "Merge branch 'other'\n");
    assert_true(
        sh_is("[ \"$(git -C r rev-parse HEAD^2)\" = \"$(git -C r rev-parse other)\" ] && [ ! -e r/.git/MERGE_HEAD ]"));
    assert_string_equal(text_of(ask("status", "r", " "), "state"), "clean");
}

static void test_reset(void **state)
{
    (void)state;
    sh(MAKE_REPO "echo b >>a; git commit -qam two; echo c >>a; git add a; touch u 'x*' xy; git add 'x*' xy");
    ask("reset", "r", "'paths':['x*']");
    assert_true(sh_is("[ \"$(git -C r diff --cached --name-only | tr '\\n' ' ')\" = 'a xy ' ]"));
    refused("file_not_found", "reset", "r", "'paths':['nothing']");
    refused("invalid_request", "reset", "r", "'paths':['a'],'mode':'hard'");
    refused("invalid_request", "reset", "r", "'mode':'odd'");
    refused("reference_not_found", "reset", "r", "'ref':'--output=x'");
    assert_string_equal(text_of(git_answer, "error.data.field"), "ref");
    refused("reference_not_found", "reset", "r", "'ref':'HEAD:a'");
    ask("reset", "r", "'paths':['a'],'ref':'HEAD~1'");
    assert_true(sh_is("[ \"$(git -C r cat-file -p :a)\" = a ]"));
    ask("reset", "r", "'mode':'soft','ref':'HEAD~1'");
    assert_string_equal(text_of(member_at(git_answer, "result"), "head.summary"), "one");
    ask("reset", "r", " ");
    assert_true(sh_is("[ \"$(git -C r status --porcelain | tr '\\n' ' ')\" = ' M a ?? u ?? x* ?? xy ' ]"));
    ask("reset", "r", "'mode':'hard'");
    assert_true(sh_is("[ \"$(cat r/a)\" = a ] && [ -e r/u ]"));
    sh("git clone -q --bare r b.git");
    ask("reset", "b.git", "'mode':'soft'");
    refused("invalid_request", "reset", "b.git", "'mode':'hard'");
    refused("invalid_request", "add", "b.git", "'all':true");
}

static void test_restore(void **state)
{
    (void)state;
    sh(MAKE_REPO
       "echo b >>a; touch d/g; git add .; git commit -qm two; echo staged >a; git add a; echo more >>a; rm d/f; "
       "touch '*'");
    refused("invalid_request", "restore", "r", " ");
    refused("file_not_found", "restore", "r", "'paths':['*']");
    const cJSON *result = ask("restore", "r", "'paths':['a','d']");
    assert_int_equal(number_of(result, "count"), 2);
    assert_string_equal(text_of(result, "restored.0"), "a");
    assert_true(sh_is("[ \"$(cat r/a r/d/f | tr '\\n' ' ')\" = 'staged f ' ]"));
    ask("restore", "r", "'paths':['a'],'staged':true");
    assert_true(sh_is("[ \"$(git -C r status --porcelain a)\" = ' M a' ] && [ \"$(cat r/a)\" = staged ]"));
    ask("restore", "r", "'paths':['a'],'source':'HEAD~1'");
    assert_true(sh_is("[ \"$(cat r/a)\" = a ] && [ \"$(git -C r status --porcelain a)\" = ' M a' ]"));
    ask("restore", "r", "'paths':['d'],'source':'HEAD~1'");
    assert_true(sh_is("[ ! -e r/d/g ] && [ -e r/d/f ] && [ -e 'r/*' ]"));
    refused("reference_not_found", "restore", "r", "'paths':['a'],'source':'nowhere'");
    assert_string_equal(text_of(git_answer, "error.data.field"), "source");
}

static void test_the_channel(void **state)
{
    (void)state;
    refused("operation_not_found", "nonsense", "", " ");
    sh(MAKE_REPO);
    fputs("{\"jsonrpc\":\"2.0\",\"method\":\"cancel\",\"params\":{\"id\":99999}}\n", git_channel);
    ask("status", "r", " ");
    refused("reference_not_found", "reset", "r", "'mode':'hard','timeout_ms':0,'ref':'nowhere'");
    sh("echo x >r/a");
    refused("upstream_timeout", "reset", "r", "'mode':'hard','timeout_ms':0");
    assert_true(sh_is("[ \"$(cat r/a)\" = x ] && [ ! -e r/.git/index.lock ]"));
    ask("reset", "r", "'mode':'hard'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        git_test(test_init),         git_test(test_add_names),         git_test(test_commit),
        git_test(test_first_commit), git_test(test_commit_of_a_merge), git_test(test_reset),
        git_test(test_restore),      git_test(test_the_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
