/* log, show, diff and blame of abxd-helper git, against what the git command line says of the same repository. */
#include "git_fixture.h"

/* A commit at a time of its own, 100 seconds after the one before. */
static void commit_at(int number, const char *message)
{
    sh("git add -A; GIT_AUTHOR_DATE='%d +0200' GIT_COMMITTER_DATE='%d +0000' git commit -q --allow-empty -m '%s'",
       1700000000 + number * 100, 1700000000 + number * 100, message);
}

/* Two branches that both touch a, one of which is merged; then a rename. */
static void make_history(void)
{
    sh("printf '1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n' >a; mkdir d; echo x >d/b; echo z >'sp ace'");
    commit_at(0, "first");
    sh("sed -i 's/^2/two/' a");
    commit_at(1, "two");
    sh("git checkout -q -b side HEAD~1; sed -i 's/^7/seven/' a");
    commit_at(2, "seven on side");
    sh("echo more >>d/b");
    commit_at(4, "b on side");
    sh("git checkout -q main; echo y >c");
    commit_at(3, "c");
    sh("GIT_AUTHOR_DATE='1700001000 +0000' GIT_COMMITTER_DATE='1700001000 +0000' git merge -q --no-edit side");
    sh("git mv a renamed; echo tail >>renamed");
    commit_at(20, "rename");
    sh("git tag -a -m 'the tag' v1 HEAD~1");
}

static void log_is_as_git_has_it(void **state)
{
    (void)state;
    make_history();
    const cJSON *log = ask("log", "repo", " ");
    assert_string_equal(column(log, "commits", "sha"), sh("git log --format=%%H"));
    assert_false(is_true(log, "truncated"));
    const cJSON *merge = cJSON_GetArrayItem(cJSON_GetObjectItem(log, "commits"), 1);
    assert_string_equal(column(merge, "parents", NULL), sh("git log -1 --format=%%P HEAD~1 | tr ' ' '\\n'"));
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(log, "commits"), 6);
    assert_string_equal(text_of(first, "message"), "first\n");
    assert_string_equal(text_of(cJSON_GetObjectItem(first, "author"), "name"), "Ann Author");
    assert_string_equal(text_of(cJSON_GetObjectItem(first, "author"), "time"), "2023-11-14T22:13:20.000Z");
    assert_string_equal(text_of(cJSON_GetObjectItem(first, "committer"), "email"), "carl@example.org");

    log = ask("log", "repo", "'ref':'side','limit':2,'skip':1");
    assert_string_equal(column(log, "commits", "sha"), sh("git log -2 --skip=1 --format=%%H side"));
    assert_false(is_true(log, "truncated"));
    log = ask("log", "repo", "'ref':'v1','limit':3");
    assert_string_equal(column(log, "commits", "sha"), sh("git log -3 --format=%%H v1"));
    assert_true(is_true(log, "truncated"));
    assert_string_equal(text_of(refused("reference_not_found", "log", "repo", "'ref':'nowhere'"), "field"), "ref");
}

static void log_of_paths_simplifies_as_git(void **state)
{
    (void)state;
    make_history();
    static const char *const paths[] = {"a", "d", "d/b", "c", "renamed", "missing", "sp ace", "a/below"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const cJSON *log = ask("log", "repo", "'paths':['%s']", paths[i]);
        assert_string_equal(column(log, "commits", "sha"), sh("git log --format=%%H -- '%s'", paths[i]));
        assert_false(is_true(log, "truncated"));
    }
    assert_string_equal(column(ask("log", "repo", "'paths':['c','d/b']"), "commits", "sha"),
                        sh("git log --format=%%H -- c d/b"));
    const cJSON *one = ask("log", "repo", "'paths':['a'],'limit':1");
    assert_true(is_true(one, "truncated"));
    assert_string_equal(column(one, "commits", "sha"), sh("git log -1 --format=%%H -- a"));
}

static void log_ends_where_a_shallow_clone_does(void **state)
{
    (void)state;
    make_history();
    sh("git clone -q --depth 2 file://$PWD ../shallow");
    const cJSON *log = ask("log", "shallow", " ");
    assert_string_equal(column(log, "commits", "sha"), sh("git -C ../shallow log --format=%%H"));
    assert_true(is_true(log, "truncated"));
    /* The last one is shown as if it was the first. */
    const cJSON *show = ask("show", "shallow", "'ref':'HEAD~1'");
    assert_string_equal(column(show, "files", "path"), sh("git -C ../shallow show --format= --name-only HEAD~1"));
    assert_string_equal(column(ask("log", "shallow", "'paths':['a']"), "commits", "sha"),
                        sh("git -C ../shallow log --format=%%H -- a"));
}

static void an_unborn_branch_has_no_history(void **state)
{
    (void)state;
    const cJSON *log = ask("log", "repo", " ");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(log, "commits")), 0);
    assert_false(is_true(log, "truncated"));
    refused("reference_not_found", "show", "repo", " ");
    refused("reference_not_found", "blame", "repo", "'file':'a'");
    sh("echo 1 >a; git add a; echo 2 >>a");
    assert_string_equal(column(ask("diff", "repo", "'staged':true"), "files", "status"), "added");
    const cJSON *diff = ask("diff", "repo", " ");
    assert_string_equal(column(diff, "files", "patch"), sh("git diff; echo"));
}

static void long_history_in_pages(void **state)
{
    (void)state;
    sh("for i in $(seq 2000); do echo \"commit refs/heads/main\ncommitter C <c@example.org> $((1600000000 + i)) +0000\n"
       "data <<E\nnumber $i\nE\nM 100644 inline f$((i %% 7))\ndata <<E\n$i\nE\n\"; done | git fast-import --quiet;"
       "git checkout -q -f main");
    assert_string_equal(column(ask("log", "repo", "'limit':2000"), "commits", "sha"), sh("git log --format=%%H"));
    const cJSON *page = ask("log", "repo", "'limit':100,'skip':1900");
    assert_string_equal(column(page, "commits", "sha"), sh("git log --format=%%H --skip=1900"));
    assert_false(is_true(page, "truncated"));
    assert_true(is_true(ask("log", "repo", "'limit':100,'skip':1899"), "truncated"));
    assert_string_equal(column(ask("log", "repo", "'limit':1000,'paths':['f3']"), "commits", "sha"),
                        sh("git log --format=%%H -- f3"));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(ask("log", "repo", "'skip':5000"), "commits")), 0);
    refused("upstream_timeout", "log", "repo", "'limit':2000,'timeout_ms':1");
}

static void show_is_the_patch_against_the_first_parent(void **state)
{
    (void)state;
    make_history();
    const cJSON *show = ask("show", "repo", " ");
    assert_string_equal(text_of(cJSON_GetObjectItem(show, "commit"), "message"), "rename\n");
    /* The two do not measure likeness alike. */
    char *patch = column(show, "files", "patch"), *expected = sh("git show --format=; echo");
    assert_int_equal(strncmp(patch, "diff --git a/a b/renamed\nsimilarity index ", 42), 0);
    assert_string_equal(strstr(patch, "\nrename from"), strstr(expected, "\nrename from"));
    const cJSON *file = cJSON_GetArrayItem(cJSON_GetObjectItem(show, "files"), 0);
    assert_string_equal(text_of(file, "old_path"), "a");
    assert_string_equal(text_of(file, "path"), "renamed");
    assert_string_equal(text_of(file, "status"), "renamed");
    assert_string_equal(column(ask("show", "repo", "'ref':'v1'"), "files", "path"), sh("git diff --name-only v1^1 v1"));
    char *root = sh("git rev-list --max-parents=0 HEAD");
    assert_string_equal(column(ask("show", "repo", "'ref':'%s'", root), "files", "path"),
                        sh("git show --format= --name-only %s", root));
}

/* files of an answer as `git diff --numstat` has them. */
static char *numstat(const cJSON *diff)
{
    char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    const cJSON *file;
    cJSON_ArrayForEach(file, cJSON_GetObjectItem(diff, "files"))
    {
        if (is_true(file, "binary"))
            fprintf(memory, "-\t-\t%s\n", text_of(file, "path"));
        else
            fprintf(memory, "%d\t%d\t%s\n", cJSON_GetObjectItem(file, "additions")->valueint,
                    cJSON_GetObjectItem(file, "deletions")->valueint, text_of(file, "path"));
    }
    fclose(memory);
    if (len > 0)
        text[len - 1] = '\0';
    return keep_text(text);
}

static void diff_between_each_two_places(void **state)
{
    (void)state;
    make_history();
    sh("printf 'bin\\0ary' >bin; echo staged >c; git add -A; echo worktree >>c; rm d/b; echo new >untracked;"
       "printf 'bin\\0ARY' >bin; chmod +x 'sp ace'");
    assert_string_equal(numstat(ask("diff", "repo", " ")), sh("git diff --numstat"));
    assert_string_equal(numstat(ask("diff", "repo", "'staged':true")), sh("git diff --numstat --cached"));
    assert_string_equal(numstat(ask("diff", "repo", "'from':'HEAD~2'")),
                        sh("git diff --numstat HEAD~2 | sed 's/a => //'"));
    assert_string_equal(numstat(ask("diff", "repo", "'from':'side','staged':true")),
                        sh("git diff --numstat --cached side | sed 's/a => //'"));
    assert_string_equal(numstat(ask("diff", "repo", "'from':'side','to':'main~1'")),
                        sh("git diff --numstat side main~1"));
    assert_string_equal(column(ask("diff", "repo", "'from':'side','to':'main~1'"), "files", "patch"),
                        sh("git diff side main~1; echo"));
    assert_string_equal(
        column(ask("diff", "repo", "'from':'side','to':'main','context':0,'paths':['c']"), "files", "patch"),
        sh("git diff -U0 side main -- c; echo"));
    assert_string_equal(column(ask("diff", "repo", " "), "files", "status"), "modified\nmodified\ndeleted\nmodified");
    const cJSON *binary = cJSON_GetArrayItem(cJSON_GetObjectItem(ask("diff", "repo", " "), "files"), 0);
    assert_true(is_true(binary, "binary"));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(binary, "patch")));
    assert_string_equal(text_of(refused("invalid_request", "diff", "repo", "'to':'main'"), "field"), "to");
    assert_string_equal(
        text_of(refused("invalid_request", "diff", "repo", "'from':'side','to':'main','staged':true"), "field"), "to");
    assert_string_equal(text_of(refused("reference_not_found", "diff", "repo", "'from':'side','to':'gone'"), "field"),
                        "to");
    refused("path_outside_base", "diff", "repo", "'paths':['../x']");
}

static void diff_is_bounded_in_bytes(void **state)
{
    (void)state;
    sh("seq 100000 >big; echo 1 >a; echo 1 >z; git add -A");
    const cJSON *diff = ask("diff", "repo", "'staged':true,'max_bytes':1000");
    assert_true(is_true(diff, "truncated"));
    assert_string_equal(column(diff, "files", "path"), "a\nbig\nz");
    assert_string_equal(numstat(diff), sh("git diff --numstat --cached"));
    const cJSON *files = cJSON_GetObjectItem(diff, "files");
    assert_true(cJSON_IsString(cJSON_GetObjectItem(cJSON_GetArrayItem(files, 0), "patch")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetArrayItem(files, 1), "patch")));
    assert_true(cJSON_IsString(cJSON_GetObjectItem(cJSON_GetArrayItem(files, 2), "patch")));
    assert_false(is_true(ask("diff", "repo", "'staged':true"), "truncated"));
}

static void names_are_exact(void **state)
{
    (void)state;
    sh("echo 1 >'caf\xc3\xa9.txt'; echo 1 >'a -> b'; echo 1 >'\"q\"'; echo 1 >\"$(printf 'n\\nl')\"; echo 1 "
       ">\"$(printf 'b\\244')\"");
    commit_at(0, "odd");
    const cJSON *show = ask("show", "repo", " ");
    assert_string_equal(column(show, "files", "path"), "\"q\"\na -> b\nb\xef\xbf\xbd\ncaf\xc3\xa9.txt\nn\nl");
    const cJSON *file = cJSON_GetArrayItem(cJSON_GetObjectItem(show, "files"), 2);
    assert_string_equal(text_of(file, "path_base64"), "YqQ=");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(ask("log", "repo", "'paths_base64':['YqQ=']"), "commits")),
                     1);
    assert_string_equal(
        text_of(cJSON_GetArrayItem(cJSON_GetObjectItem(ask("blame", "repo", "'file_base64':'YqQ='"), "lines"), 0),
                "text"),
        "1");
    sh("printf 'latin \\344\\n' >'a -> b'");
    file = cJSON_GetArrayItem(cJSON_GetObjectItem(ask("diff", "repo", " "), "files"), 0);
    assert_true(is_true(file, "lossy"));
    assert_non_null(strstr(text_of(file, "patch"), "+latin \xef\xbf\xbd\n"));
}

static void links_are_not_followed(void **state)
{
    (void)state;
    sh("mkdir d; echo inside >d/f; echo inside >g; mkdir ../outside; echo secret >../outside/f");
    commit_at(0, "one");
    sh("rm -r d g; ln -s ../outside d; ln -s ../outside/f g");
    const cJSON *diff = ask("diff", "repo", " ");
    char *text = cJSON_PrintUnformatted(diff);
    assert_null(strstr(text, "secret"));
    free(text);
    assert_string_equal(column(diff, "files", "path"), "d/f\ng\ng");
    assert_string_equal(column(diff, "files", "status"), "deleted\ndeleted\nadded");
    assert_string_equal(column(diff, "files", "patch"), sh("git diff; echo"));
    refused("path_outside_base", "diff", "repo", "'paths':['d/f']");
}

/* `git blame -p` as lines of "sha line text". */
static char *blame_of_git(const char *args)
{
    return sh("git blame -p %s | awk '!/^\\t/ && length($1) == 40 {s=$1; n=$3} /^\\t/{print s, n, substr($0, 2)}'",
              args);
}

static char *blame_lines(const cJSON *blame)
{
    char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    const cJSON *line;
    cJSON_ArrayForEach(line, cJSON_GetObjectItem(blame, "lines")) fprintf(
        memory, "%s %d %s\n", text_of(line, "sha"), cJSON_GetObjectItem(line, "line")->valueint, text_of(line, "text"));
    fclose(memory);
    if (len > 0)
        text[len - 1] = '\0';
    return keep_text(text);
}

static void blame_is_as_git_has_it(void **state)
{
    (void)state;
    make_history();
    assert_string_equal(blame_lines(ask("blame", "repo", "'file':'renamed'")), blame_of_git("HEAD renamed"));
    assert_string_equal(blame_lines(ask("blame", "repo", "'file':'a','ref':'v1','start_line':2,'end_line':7")),
                        blame_of_git("-L 2,7 v1 a"));
    const cJSON *one = ask("blame", "repo", "'file':'renamed','start_line':9,'end_line':500");
    const cJSON *line = cJSON_GetArrayItem(cJSON_GetObjectItem(one, "lines"), 0);
    assert_string_equal(text_of(line, "text"), "tail");
    assert_string_equal(text_of(line, "author"), "Ann Author");
    assert_string_equal(text_of(line, "time"), "2023-11-14T22:46:40.000Z");
    assert_false(is_true(one, "truncated"));
    assert_string_equal(text_of(refused("file_not_found", "blame", "repo", "'file':'a'"), "field"), "file");
    refused("is_a_directory", "blame", "repo", "'file':'d'");
    refused("path_outside_base", "blame", "repo", "'file':'../x'");
    assert_string_equal(
        text_of(refused("invalid_request", "blame", "repo", "'file':'renamed','start_line':10"), "field"),
        "start_line");
    assert_string_equal(
        text_of(refused("invalid_request", "blame", "repo", "'file':'renamed','start_line':3,'end_line':2"), "field"),
        "end_line");
    sh("printf 'a\\0b' >bin; : >empty; printf 'no newline' >last");
    commit_at(30, "more");
    refused("binary_file", "blame", "repo", "'file':'bin'");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(ask("blame", "repo", "'file':'empty'"), "lines")), 0);
    assert_string_equal(column(ask("blame", "repo", "'file':'last'"), "lines", "text"), "no newline");

    assert_string_equal(blame_lines(ask("blame", "repo/d", "'file':'b'")), blame_of_git("HEAD -- d/b"));
}

static void blame_of_merges_and_moved_lines(void **state)
{
    (void)state;
    make_history();
    sh("git checkout -q -b left; sed -i '1i top' renamed; sed -i '/^5/d' renamed; echo left >>renamed");
    commit_at(21, "left");
    sh("git checkout -q main; (tail -n 3 renamed; head -n 6 renamed) >r; mv r renamed; git mv renamed moved");
    commit_at(22, "moved");
    sh("sed -i 's/^3/three/;$d' moved; printf 'a\\0b\\n' >>moved");
    commit_at(23, "binary");
    sh("sed -i '$d' moved; seq 20 30 >>moved");
    commit_at(24, "text again");
    /* A merge whose file has lines of both sides, and one of its own. */
    sh("git checkout -q left; git merge -q main >/dev/null 2>&1 || :; git rm -q --cached --ignore-unmatch renamed;"
       "(git show main:moved; echo own; git show left:renamed | head -n 4) >moved; rm -f renamed moved~*");
    commit_at(25, "mended");
    assert_string_equal(sh("git rev-list --parents -1 HEAD | wc -w; git ls-files"), "3\nc\nd/b\nmoved\nsp ace");
    assert_string_equal(blame_lines(ask("blame", "repo", "'file':'moved'")), blame_of_git("HEAD moved"));
    assert_string_equal(blame_lines(ask("blame", "repo", "'file':'moved','ref':'main'")), blame_of_git("main moved"));
    assert_string_equal(blame_lines(ask("blame", "repo", "'file':'moved','start_line':4,'end_line':9")),
                        blame_of_git("-L 4,9 HEAD moved"));
    sh("git clone -q --depth 2 file://$PWD ../shallow");
    assert_string_equal(column(ask("blame", "shallow", "'file':'moved'"), "lines", "sha"),
                        sh("cd ../shallow; git blame -s -l HEAD moved | sed 's/^\\^//' | cut -d' ' -f1 | sed "
                           "'s/^\\(.\\{39\\}\\).*/\\1/' "
                           "| while read s; do git rev-parse $s; done"));
}

static void blame_of_many_lines(void **state)
{
    (void)state;
    sh("seq 100000 >big");
    commit_at(0, "big");
    for (int i = 1; i <= 20; i++) {
        sh("sed -i '%d~37s/$/x/' big", i);
        commit_at(i, "some");
    }
    const cJSON *blame = ask("blame", "repo", "'file':'big'");
    int count = cJSON_GetArraySize(cJSON_GetObjectItem(blame, "lines"));
    assert_int_equal(count == 100000, !is_true(blame, "truncated"));
    assert_true(count > 50000);
    char *expected = blame_of_git("HEAD big"), *got = blame_lines(blame);
    assert_int_equal(strncmp(expected, got, strlen(got)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        repository_test(log_is_as_git_has_it),
        repository_test(log_of_paths_simplifies_as_git),
        repository_test(log_ends_where_a_shallow_clone_does),
        repository_test(an_unborn_branch_has_no_history),
        repository_test(long_history_in_pages),
        repository_test(show_is_the_patch_against_the_first_parent),
        repository_test(diff_between_each_two_places),
        repository_test(diff_is_bounded_in_bytes),
        repository_test(names_are_exact),
        repository_test(links_are_not_followed),
        repository_test(blame_is_as_git_has_it),
        repository_test(blame_of_merges_and_moved_lines),
        repository_test(blame_of_many_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
