/* Loading: every fault is found, with file and line; groups are switched; reloading leaves no memory behind. */
#include "script_fixture.h"

#include "base/log.h"

#include <malloc.h>

static struct fixture fixture;

static int setup(void **state)
{
    (void)state;
    log_configure(LOG_LEVEL_OFF, false);
    fixture_open(&fixture);
    fixture_write(&fixture, "lua/groups/system.lua", "return {name='system', description='d', default_on=false}");
    fixture_write(&fixture, "lua/packs/extra.lua",
                  "return {name='extra', group='core', {method='GET', path='/extra', name='extra', handler=print}}");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&fixture);
    return 0;
}

static void expect(const char *file, const char *text, const char *faults)
{
    fixture_write(&fixture, file, text);
    const char *found = fixture_load(&fixture);
    if (strcmp(found, faults) != 0)
        fail_msg("%s\n  found    %s\n  wanted   %s", text, found, faults);
}

#define ENTRY(rest) "return {group='core', {method='GET', path='/t', name='t', handler=print,\n" rest "}}"

static void test_route_faults(void **state)
{
    (void)state;
    static const struct {
        const char *text, *faults;
    } cases[] = {
        {ENTRY(""), ""},
        {"", "lua/routes/t.lua:1: must return a table, not nothing\n"},
        {"return 1", "lua/routes/t.lua:1: must return a table, not a number\n"},
        {"\n\nx = 1", "lua/routes/t.lua:3: undeclared global or read-only table: cannot set 'x'\n"},
        {"\nreturn {", "lua/routes/t.lua:2: unexpected symbol near <eof>\n"},
        {"\n\nerror({})", "lua/routes/t.lua:1: an error value that is no string\n"},
        {"\x1bLua", "lua/routes/t.lua: is compiled Lua, only source text is taken\n"},
        {"\nrequire('nosuch')", "lua/routes/t.lua:2: no module 'nosuch' (lua/nosuch.lua)\n"},
        {"\nrequire('abx.time').sleep(1)",
         "lua/routes/t.lua:2: sleep works for a request: it cannot be used while tables load\n"},
        {"return {}", "lua/routes/t.lua:1: declares no route\n"},
        {"\xef\xbb\xbfreturn {group='core',\r\n {method='GET', path='/t', name='t', handler=print}}", ""},
        {ENTRY("statsu=200"), "lua/routes/t.lua:2: route t: unknown key 'statsu' (did you mean 'status'?)\n"},
        {ENTRY("status='x'"), "lua/routes/t.lua:2: route t: 'status' must be an integer, not a string\n"},
        {ENTRY("status=99"), "lua/routes/t.lua:2: route t: 'status' is 99, which is not between 200 and 599\n"},
        {ENTRY("group='cores'"), "lua/routes/t.lua:1: route t: unknown group 'cores'\n"},
        {ENTRY("group='system', auth_required=false"),
         "lua/routes/t.lua:2: route t: auth_required = false is not allowed in the group system\n"},
        {ENTRY("body='form'"), "lua/routes/t.lua:2: route t: 'body' must be json, stream or none\n"},
        {ENTRY("errors={'bussy'}"), "lua/routes/t.lua:2: route t: unknown error code 'bussy'\n"},
        {ENTRY("params={a={type='strung'}}"), "lua/routes/t.lua:2: route t: params.a unknown type 'strung'\n"},
        {ENTRY("params={\na={type='string', required=true, default='x'}}"),
         "lua/routes/t.lua:3: route t: params.a is required, and has a default: only one of them makes sense\n"},
        {ENTRY("params={a={type='integer', min=2, default=1}}"),
         "lua/routes/t.lua:2: route t: params.a bad default: must be at least 2\n"},
        {ENTRY("params={a={type='integer', min=2, max=1}}"),
         "lua/routes/t.lua:2: route t: params.a 'min' is greater than 'max'\n"},
        {ENTRY("params={a={type='bytes'}}"),
         "lua/routes/t.lua:2: route t: params.a the type bytes is for answers only\n"},
        {ENTRY("params={a={type='array', items={type='object', fields={b=1}}}}"),
         "lua/routes/t.lua:2: route t: params.a[].b must be a schema (see abx.params)\n"},
        {ENTRY("returns={[99]={type='any'}}"),
         "lua/routes/t.lua:1: route t: 'returns' must be a schema, or schemas by status\n"},
        {"return {{method='GET', path='/t', name='t', handler=print}}",
         "lua/routes/t.lua:1: route t: names no group, and its file does not either\n"},
        {"return {group='core', {method='HEAD', path='/t/', name='T'}}",
         "lua/routes/t.lua:1: route T: 'method' must be GET, POST, PUT, PATCH or DELETE\n"
         "lua/routes/t.lua:1: route T: 'name' must be [a-z0-9_.]+, as in files.read\n"
         "lua/routes/t.lua:1: route T: the path '/t/' has an empty segment, or ends with a slash\n"
         "lua/routes/t.lua:1: route T: 'handler' is missing\n"},
        {"return {group='core', {method='GET', path='/t/{a}/{a}', name='t', handler=print}}",
         "lua/routes/t.lua:1: route t: the path '/t/{a}/{a}' has {a} twice\n"},
        {"return {group='core', {method='GET', path='/t/{a}', name='t', handler=print}}",
         "lua/routes/t.lua:1: route t: the path parameter {a} has no schema in params\n"},
        {"return {group='core',\n{method='GET', path='/t/{a}', name='t', handler=print, params={a={type='string'}}},\n"
         "{method='GET', path='/t/{b}', name='t', handler=print, params={b={type='string'}}}}",
         "lua/routes/t.lua:2: route t: the name is taken already (lua/routes/t.lua:2)\n"
         "lua/routes/t.lua:2: route t: GET /t/{b} is taken already by t (lua/routes/t.lua:2)\n"},
        {"require('abx.tables').fault('odd', 1)\nreturn 7",
         "lua/routes/t.lua:1: odd\nlua/routes/t.lua:1: must return a table, not a number\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect("lua/routes/t.lua", cases[i].text, cases[i].faults);
    fixture_write(&fixture, "lua/a.lua", "\nreturn require('b')");
    fixture_write(&fixture, "lua/b.lua", "return require('a')");
    expect("lua/routes/t.lua", "require('a')", "lua/b.lua:1: module 'a' is required in a circle\n");
    fixture.options.limits.load_cpu_ms = 200;
    expect("lua/routes/t.lua", "while true do pcall(function() while true do end end) end",
           "lua/routes/t.lua:1: the tables take more than 200 ms of computing to load\n");
    fixture.options.limits.load_cpu_ms = 2000;
    expect("lua/routes/t.lua", "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
           "lua/routes/t.lua:1: out of memory: all tables together may take 67108864 bytes\n");
    expect("lua/routes/t.lua", ENTRY(""), "");
}

static void test_commands(void **state)
{
    (void)state;
    static char path[128];
    snprintf(path, sizeof(path), "%s/config/commands.lua", fixture.dir);
    fixture.options.commands_file = path;
#define COMMAND(rest) "return {{name='go', description='d',\n" rest "}}"
    static const struct {
        const char *text, *faults;
    } cases[] = {
        {COMMAND("argv={'git', {arg='n'}}, params={n={type='integer'}}, cwd={arg='n'}, env={A='b'}"), ""},
        {COMMAND("run=print"), ""},
        {COMMAND("run=print, argv={'a'}"),
         "config/commands.lua:2: command go: needs exactly one of 'argv' and 'run'\n"},
        {COMMAND("timeout_ms=1"), "config/commands.lua:1: command go: needs exactly one of 'argv' and 'run'\n"},
        {COMMAND("argv={}"), "config/commands.lua:2: command go: 'argv' must begin with the program, a plain string\n"},
        {COMMAND("argv={'a', {arg='n'}}"),
         "config/commands.lua:2: command go: 'argv' uses arg\"n\", which is not declared in params\n"},
        {COMMAND("argv={'a', 1}"),
         "config/commands.lua:2: command go: 'argv' takes strings and arg\"name\", not a number\n"},
        {COMMAND("run=print}, {name='go', description='d', run=print"),
         "config/commands.lua:1: command go: the name is taken already\n"},
        {"return {{name='-x', description='d', run=print}}",
         "config/commands.lua:1: command -x: 'name' must be [a-z0-9][a-z0-9_-]*\n"},
        {"return {1}", "config/commands.lua:1: entry 1 must be a table, not a number\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect("config/commands.lua", cases[i].text, cases[i].faults);
    fixture.options.commands_file = "/nonexistent/commands.lua";
    expect("config/commands.lua", "", "/nonexistent/commands.lua: No such file or directory\n");
    fixture.options.commands_file = NULL;
}

static void test_groups_and_packs(void **state)
{
    (void)state;
    expect("lua/routes/t.lua", ENTRY(""), "");
    assert_int_equal(generation_group_count(fixture.generation), 2);
    assert_true(generation_group(fixture.generation, 0)->enabled);
    assert_false(generation_group(fixture.generation, 1)->enabled);

    fixture.options.enabled_groups = (const char *const[]){"system", NULL};
    fixture.options.disabled_groups = (const char *const[]){"core", NULL};
    fixture.options.packs = (const char *const[]){"extra", NULL};
    assert_string_equal(fixture_load(&fixture), "");
    assert_true(generation_group(fixture.generation, 0)->enabled); /* always on */
    assert_true(generation_group(fixture.generation, 1)->enabled);
    assert_int_equal(generation_route_count(fixture.generation), 2);
    assert_string_equal(generation_route(fixture.generation, 1)->pack, "extra");
    assert_ptr_equal(generation_route(fixture.generation, 1)->group, generation_group(fixture.generation, 0));

    fixture.options.enabled_groups = (const char *const[]){"sytem", NULL};
    fixture.options.packs = (const char *const[]){"../x", NULL};
    assert_string_equal(fixture_load(&fixture),
                        "configuration: enabled_groups: unknown group 'sytem' (known: core, system)\n"
                        "configuration: packs: unknown pack '../x' (known: extra)\n");
    fixture.options.enabled_groups = fixture.options.disabled_groups = fixture.options.packs = NULL;
}

static void test_tables_library(void **state)
{
    (void)state;
    static const char routes[] =
        "local tables, json = require('abx.tables'), require('abx.json')\n"
        "return {group='core', {method='GET', path='/t', name='t', handler=function()\n"
        "  local r = tables.routes()[1] local ok, code, message, errors = tables.check({n={type='integer', max=3}}, "
        "{n=4, m=1})\n"
        "  table.remove(tables.routes())\n"
        "  return {r.name, r.group, r.status, r.auth_required, r.body, r.file, r.line, r.enabled, #tables.groups(),\n"
        "    tables.groups()[1].enabled, tables.check({n={type='integer', default=3}}, {}).n, code, #errors,\n"
        "    tables.command('x') == nil, #tables.routes()}\n"
        "end}}";
    assert_string_equal(
        run_handler(&fixture, routes),
        "[\"t\",\"core\",200,true,\"none\",\"lua/routes/t.lua\",2,true,2,true,3,\"invalid_request\",2,true,1]");
}

static void test_reloads(void **state)
{
    (void)state;
    expect("lua/routes/t.lua", ENTRY(""), "");
    size_t before = 0;
    for (int i = 0; i < 200; i++) {
        assert_string_equal(fixture_load(&fixture), "");
        if (i == 50)
            before = mallinfo2().uordblks;
    }
    assert_true(mallinfo2().uordblks <= before + 64 * 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_route_faults),   cmocka_unit_test(test_commands), cmocka_unit_test(test_groups_and_packs),
        cmocka_unit_test(test_tables_library), cmocka_unit_test(test_reloads),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
