/* What the browser is put together from, found in trees that look like a machine. */
#include "machine_tree.h"

#include "prim/browser_parts.h"

static struct browser_places places;
static struct browser_parts parts;
static struct err err;
static char workers[PATH_MAX], path[PATH_MAX];

/* A file of the machine; its path there. */
static const char *put(const char *name, mode_t mode)
{
    static char full[PATH_MAX];
    snprintf(full, sizeof(full), "%s/%s", machine, name);
    machine_file(full + strlen(machine), "");
    assert_int_equal(chmod(full, mode), 0);
    return full;
}

static void put_module(const char *dir, const char *name)
{
    char manifest[256];
    snprintf(manifest, sizeof(manifest), "%s/%s/package.json", dir, name);
    put(manifest, 0644);
}

/* Its programs are in usr/bin, ours in opt/abxd/workers. */
static int set_up(void **state)
{
    int failed = machine_set_up(state);
    snprintf(workers, sizeof(workers), "%s/opt/abxd/workers", machine);
    snprintf(path, sizeof(path), "/nowhere:%s/usr/bin", machine);
    places = (struct browser_places){.root = machine, .workers_dir = workers, .path = path};
    return failed;
}

static void put_all(void)
{
    put("usr/bin/node", 0755);
    put_module("opt/abxd/workers/node_modules", "playwright-core");
    put("usr/lib/chromium/chromium-headless-shell", 0755);
}

static void assert_below_top(const char *found, const char *name)
{
    size_t len = strlen(machine);
    assert_memory_equal(found, machine, len);
    assert_string_equal(found + len + 1, name);
}

static void assert_missing(const char *text)
{
    err = (struct err){0};
    assert_int_equal(browser_parts_find(&places, &parts, &err), -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    if (!strstr(err.text, text))
        fail_msg("'%s' is not in: %s", text, err.text);
}

static void assert_library(const char *name)
{
    assert_int_equal(browser_parts_find(&places, &parts, &err), 0);
    assert_below_top(parts.library, name);
}

static void test_all_of_it(void **state)
{
    (void)state;
    put_all();
    assert_int_equal(browser_parts_find(&places, &parts, &err), 0);
    assert_below_top(parts.node, "usr/bin/node");
    assert_below_top(parts.library, "opt/abxd/workers/node_modules/playwright-core");
    assert_string_equal(parts.turndown, "");
    assert_below_top(parts.executable, "usr/lib/chromium/chromium-headless-shell");
    put_module("opt/abxd/node_modules", "turndown");
    assert_int_equal(browser_parts_find(&places, &parts, &err), 0);
    assert_below_top(parts.turndown, "opt/abxd/node_modules/turndown");
}

/* Step by step, as somebody installs it: each message names what comes next, and nothing is remembered. */
static void test_each_that_is_missing(void **state)
{
    (void)state;
    places.workers_dir = NULL;
    assert_missing("set workers_dir");
    places.workers_dir = workers;
    assert_missing("the program node, which is not here: apt-get install nodejs");
    put("usr/bin/node", 0644);
    assert_missing("apt-get install nodejs"); /* it is no program */
    put("usr/bin/node", 0755);
    assert_missing("script/bootstrap --with-browser, or npm install playwright-core@1.64.1 --prefix ");
    assert_non_null(strstr(err.text, workers));
    put_module("opt/abxd/workers/node_modules", "playwright-core");
    assert_missing("apt-get install chromium-headless-shell");
    put("usr/lib/chromium/chromium-headless-shell", 0755);
    assert_int_equal(browser_parts_find(&places, &parts, &err), 0);
    assert_int_equal(unlink(put("usr/bin/node", 0755)), 0);
    assert_missing("apt-get install nodejs");
}

static void test_nothing_is_written_where_something_is_missing(void **state)
{
    struct browser_parts before;
    (void)state;
    put("usr/bin/node", 0755);
    memset(&parts, 'x', sizeof(parts));
    before = parts;
    assert_missing("playwright-core");
    assert_memory_equal(&parts, &before, sizeof(parts));
}

static void test_a_command_is_never_cut(void **state)
{
    char deep[PATH_MAX];
    (void)state;
    put("usr/bin/node", 0755);
    int len = snprintf(deep, sizeof(deep), "%s/", machine);
    memset(deep + len, 'd', 200);
    deep[len + 200] = '\0';
    places.workers_dir = deep;
    assert_missing("npm install playwright-core@1.64.1 --prefix WORKERS_DIR");
}

/* From the last place to the first: each new one comes before the others. */
static void test_where_modules_are(void **state)
{
    char listed[PATH_MAX];
    (void)state;
    put("usr/bin/node", 0755);
    put("usr/lib/chromium/chromium", 0755);
    put_module("usr/share/nodejs", "playwright-core");
    assert_library("usr/share/nodejs/playwright-core");
    put_module("usr/local/lib/node_modules", "playwright-core");
    assert_library("usr/local/lib/node_modules/playwright-core");
    put_module("usr/lib/node_modules", "playwright-core"); /* beside usr/bin/node */
    assert_library("usr/lib/node_modules/playwright-core");
    snprintf(listed, sizeof(listed), ":listed:%s/nothing:%s/listed/", machine, machine);
    places.node_path = listed;
    assert_library("usr/lib/node_modules/playwright-core");
    put_module("listed", "playwright-core");
    assert_library("listed//playwright-core");
    put_module("node_modules", "playwright-core");
    assert_library("node_modules/playwright-core");
    put_module("opt/abxd/node_modules", "playwright-core");
    assert_library("opt/abxd/node_modules/playwright-core");
    put_module("opt/abxd/workers/node_modules", "playwright-core");
    assert_library("opt/abxd/workers/node_modules/playwright-core");
}

/* A version manager: the program is a link into its own prefix. */
static void test_beside_the_node_that_a_link_leads_to(void **state)
{
    char link[PATH_MAX];
    (void)state;
    put("versions/20/bin/node", 0755);
    put("usr/bin/npm", 0755);
    snprintf(link, sizeof(link), "%s/usr/bin/node", machine);
    assert_int_equal(symlink("../../versions/20/bin/node", link), 0);
    put("usr/lib/chromium/chromium", 0755);
    put_module("versions/20/lib/node_modules", "playwright-core");
    assert_library("versions/20/lib/node_modules/playwright-core");
    assert_below_top(parts.node, "usr/bin/node");
}

static void test_a_folder_without_a_manifest_is_no_module(void **state)
{
    (void)state;
    put("usr/bin/node", 0755);
    put("opt/abxd/workers/node_modules/playwright-core/index.js", 0644);
    assert_missing("playwright-core");
    put_module("opt/abxd/workers/node_modules/playwright-core/package.json", "x");
    assert_missing("playwright-core");
}

static void test_browsers_in_their_order(void **state)
{
    static const char *const names[] = {"usr/bin/google-chrome",     "usr/bin/chromium-browser",
                                        "usr/bin/chromium",          "usr/bin/chromium-headless-shell",
                                        "usr/lib/chromium/chromium", "usr/lib/chromium/chromium-headless-shell"};
    char folder[PATH_MAX];
    (void)state;
    put("usr/bin/node", 0755);
    put_module("opt/abxd/workers/node_modules", "playwright-core");
    put("usr/bin/google-chrome/x", 0755); /* a folder of that name */
    assert_missing("chromium-headless-shell");
    assert_int_equal(unlink(put("usr/bin/google-chrome/x", 0755)), 0);
    snprintf(folder, sizeof(folder), "%s/usr/bin/google-chrome", machine);
    assert_int_equal(rmdir(folder), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        put(names[i], 0755);
        assert_int_equal(browser_parts_find(&places, &parts, &err), 0);
        assert_below_top(parts.executable, names[i]);
    }
}

/* Entries of PATH that are relative would mean the directory of the clients. */
static void test_relative_entries_of_path_are_left_out(void **state)
{
    char before[PATH_MAX];
    (void)state;
    put_all();
    assert_non_null(getcwd(before, sizeof(before)));
    snprintf(path, sizeof(path), "%s/usr", machine);
    assert_int_equal(chdir(path), 0);
    places.path = "bin";
    assert_missing("apt-get install nodejs");
    places.path = ":./bin";
    assert_missing("apt-get install nodejs");
    assert_int_equal(chdir(before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_of_it, set_up, machine_tear_down),
        cmocka_unit_test_setup_teardown(test_each_that_is_missing, set_up, machine_tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_is_written_where_something_is_missing, set_up, machine_tear_down),
        cmocka_unit_test_setup_teardown(test_a_command_is_never_cut, set_up, machine_tear_down),
        cmocka_unit_test_setup_teardown(test_where_modules_are, set_up, machine_tear_down),
        cmocka_unit_test_setup_teardown(test_beside_the_node_that_a_link_leads_to, set_up, machine_tear_down),
        cmocka_unit_test_setup_teardown(test_a_folder_without_a_manifest_is_no_module, set_up, machine_tear_down),
        cmocka_unit_test_setup_teardown(test_browsers_in_their_order, set_up, machine_tear_down),
        cmocka_unit_test_setup_teardown(test_relative_entries_of_path_are_left_out, set_up, machine_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
