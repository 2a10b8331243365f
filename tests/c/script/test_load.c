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
    fixture_write(
        &fixture, "lua/packs/extra.lua",
        "return {name='extra', group='core', {method='GET', path='/extra', name='extra', summary='s', handler=print}}");
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

#define ENTRY(rest) "return {group='core', {method='GET', path='/t', name='t', summary='s', handler=print,\n" rest "}}"

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
        {"\n\nerror({})", "lua/routes/t.lua:3: an error value that is no string\n"},
        {"\n\n\nerror(nil)", "lua/routes/t.lua:4: an error value that is no string\n"},
        {"\n\n\nerror(5)", "lua/routes/t.lua:4: an error value that is no string\n"},
        {"\nerror('odd', 0)", "lua/routes/t.lua:2: odd\n"},
        {"\nfail('busy', 'odd')", "lua/routes/t.lua:2: odd\n"},
        {"\x1bLua", "lua/routes/t.lua: is compiled Lua, only source text is taken\n"},
        {"\nrequire('nosuch')", "lua/routes/t.lua:2: no module 'nosuch' (lua/nosuch.lua)\n"},
        {"\nrequire('abx.time').sleep(1)",
         "lua/routes/t.lua:2: sleep works for a request: it cannot be used while tables load\n"},
        {"return {}", "lua/routes/t.lua:1: declares no route\n"},
        {"\xef\xbb\xbfreturn {group='core',\r\n {method='GET', path='/t', name='t', summary='s', handler=print}}", ""},
        {ENTRY("statsu=200"), "lua/routes/t.lua:2: route t: unknown key 'statsu' (did you mean 'status'?)\n"},
        {ENTRY("status='x'"), "lua/routes/t.lua:2: route t: 'status' must be an integer, not a string\n"},
        {ENTRY("status=99"), "lua/routes/t.lua:2: route t: 'status' is 99, which is not between 200 and 599\n"},
        {ENTRY("group='cores'"),
         "lua/routes/t.lua:2: route t: unknown group 'cores' (known: core, system; a group is a "
         "file of lua/groups)\n"},
        {ENTRY("body='json'"),
         "lua/routes/t.lua:2: route t: a GET takes no body: its parameters come from the path and "
         "the query\n"},
        {ENTRY("group='system', auth_required=false"),
         "lua/routes/t.lua:2: route t: auth_required = false is not allowed in the group system\n"},
        {ENTRY("body='form'"), "lua/routes/t.lua:2: route t: 'body' must be json, stream or none\n"},
        {ENTRY("errors={'bussy'}"), "lua/routes/t.lua:2: route t: unknown error code 'bussy'\n"},
        {ENTRY("params={a={type='string', mn=1}}"),
         "lua/routes/t.lua:2: route t: params.a unknown key 'mn' (did you mean 'min'?)\n"},
        {ENTRY("params={a={type='strung'}}"), "lua/routes/t.lua:2: route t: params.a unknown type 'strung'\n"},
        {ENTRY("params={\na={type='string', required=true, default='x'}}"),
         "lua/routes/t.lua:3: route t: params.a is required, and has a default: only one of them makes sense\n"},
        {ENTRY("params={a={type='integer', min=2, default=1}}"),
         "lua/routes/t.lua:2: route t: params.a bad default: must be at least 2\n"},
        {ENTRY("params={a={type='integer', min=2, max=1}}"),
         "lua/routes/t.lua:2: route t: params.a 'min' is greater than 'max'\n"},
        {ENTRY("params={\na={type='any', example=print}}"),
         "lua/routes/t.lua:3: route t: params.a bad example: a function is not JSON\n"},
        {ENTRY("params={a={type='integer', example='x'}}"),
         "lua/routes/t.lua:2: route t: params.a bad example: must be an integer\n"},
        {ENTRY("returns={type='any', example={n={1/0}}}"),
         "lua/routes/t.lua:2: route t: returns bad example: holds a number that JSON does not have\n"},
        {ENTRY("returns={type='integer', example='x'}"),
         "lua/routes/t.lua:2: route t: returns bad example: must be an integer\n"},
        {ENTRY("returns={type='object', fields={a={type='string'}}, example={more=1}}"), ""},
        {ENTRY("params={a={type='number', default=0/0}}"),
         "lua/routes/t.lua:2: route t: params.a bad default: holds a number that JSON does not have\n"},
        {ENTRY("params={a={type='number', max=1/0}}"),
         "lua/routes/t.lua:2: route t: params.a 'max' must be a number\n"},
        {ENTRY("params={a={type='string', doc=print, format={}}}"),
         "lua/routes/t.lua:2: route t: params.a 'doc' must be a string, not a function\n"
         "lua/routes/t.lua:2: route t: params.a 'format' must be a string, not a table\n"},
        {ENTRY("params={a={type='path'},\na_base64={type='string'}}"),
         "lua/routes/t.lua:3: route t: params.a_base64 is what the path a is in base64: that is there without being "
         "declared\n"},
        {ENTRY("params={a={type='string'}, a_base64={type='string'}}"), ""},
        {ENTRY("params={['']={type='string'}}"),
         "lua/routes/t.lua:2: route t: params has a member whose name is empty or holds a NUL byte\n"},
        {ENTRY("params={['a\\0b']={type='string'}}"),
         "lua/routes/t.lua:2: route t: params has a member whose name is empty or holds a NUL byte\n"},
        {ENTRY("params={a={type='string', min=-1}}"),
         "lua/routes/t.lua:2: route t: params.a a length or count is never negative: 'min' and 'max' must not be\n"},
        {ENTRY("params={a={type='string', choices={'x', 'y', 'x'}}}"),
         "lua/routes/t.lua:2: route t: params.a the choice 'x' is there twice\n"},
        {ENTRY("params={a={type='string', choices={'x\\0'}}}"),
         "lua/routes/t.lua:2: route t: params.a the choice 'x' holds a NUL byte\n"},
        {ENTRY("params={a={type='map'},\nb={type='object', fields={}}}"),
         "lua/routes/t.lua:2: route t: params.a comes from the query: it cannot be an array, object or map\n"
         "lua/routes/t.lua:3: route t: params.b comes from the query: it cannot be an array, object or map\n"},
        {ENTRY("path='/t/{a}', method='POST', params={a={type='array'}, b={type='array'}}"),
         "lua/routes/t.lua:2: route t: params.a comes from the path: it cannot be an array, object or map\n"},
        {ENTRY("method='PUT', body='stream', params={a={type='map'}}"),
         "lua/routes/t.lua:2: route t: params.a comes from the query: it cannot be an array, object or map\n"},
        {ENTRY("path='/t\\0/x'"), "lua/routes/t.lua:1: route t: 'path' holds a NUL byte\n"},
        {ENTRY("params={a={type='bytes'}}"),
         "lua/routes/t.lua:2: route t: params.a the type bytes is for answers only\n"},
        {ENTRY("method='PUT', params={a={type='array', items={type='object', fields={b=1}}}}"),
         "lua/routes/t.lua:2: route t: params.a[].b must be a schema (see abx.params)\n"},
        {ENTRY("returns={[99]={type='any'}}"),
         "lua/routes/t.lua:2: route t: 'returns' must be a schema, or schemas by status\n"},
        {"return {{method='GET', path='/t', name='t', summary='s', handler=print}}",
         "lua/routes/t.lua:1: route t: names no group, and its file does not either\n"},
        {"return {group='core', {method='HEAD', path='/t/', name='T'}}",
         "lua/routes/t.lua:1: route T: 'summary' is missing\n"
         "lua/routes/t.lua:1: route T: 'handler' is missing\n"
         "lua/routes/t.lua:1: route T: 'method' must be GET, POST, PUT, PATCH or DELETE\n"
         "lua/routes/t.lua:1: route T: 'name' must be [a-z0-9_.]+, as in files.read\n"
         "lua/routes/t.lua:1: route T: the path '/t/' has an empty segment, or ends with a slash\n"},
        {"return {group='core',\n{summary='s', handler=function() end}}",
         "lua/routes/t.lua:2: route ?: 'method' is missing\n"
         "lua/routes/t.lua:2: route ?: 'path' is missing\n"
         "lua/routes/t.lua:2: route ?: 'name' is missing\n"},
        {"return {group='core', {method='GET', path='/t/{a}/{a}', name='t', summary='s', handler=print}}",
         "lua/routes/t.lua:1: route t: the path '/t/{a}/{a}' has {a} twice\n"},
        {"return {group='core', {method='GET', path='/t/{a}', name='t', summary='s', handler=print}}",
         "lua/routes/t.lua:1: route t: the path parameter {a} has no schema in params\n"},
        {"return {group='core',\n{method='GET', path='/t/{a}', name='t', summary='s', handler=print, "
         "params={a={type='string'}}},\n"
         "{method='GET', path='/t/{b}', name='t', summary='s', handler=print, params={b={type='string'}}}}",
         "lua/routes/t.lua:3: route t: the name is taken already (lua/routes/t.lua:2)\n"
         "lua/routes/t.lua:3: route t: GET /t/{b} is taken already by t (lua/routes/t.lua:2)\n"},
        {"return {group='core',\n{method='GET',\npath='/t',\nname='t',\nsummary='s', handler=print},\n"
         "{method='PIT',\npath='u',\nname='t',\nsummary='s', statsu=1,\nhandler=print,\nparams={path={type='x'}}}}",
         "lua/routes/t.lua:9: route t: unknown key 'statsu' (did you mean 'status'?)\n"
         "lua/routes/t.lua:6: route t: 'method' must be GET, POST, PUT, PATCH or DELETE\n"
         "lua/routes/t.lua:7: route t: the path 'u' must begin with a slash\n"
         "lua/routes/t.lua:11: route t: params.path unknown type 'x'\n"
         "lua/routes/t.lua:8: route t: the name is taken already (lua/routes/t.lua:4)\n"},
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
    expect("lua/routes/t.lua", "local n = 0\n\n\nwhile true do n = n + 1 end",
           "lua/routes/t.lua:4: the tables take more than 200 ms of computing to load\n");
    fixture_write(&fixture, "lua/a.lua", "\nreturn {spin=function()\n while true do end end}");
    expect("lua/routes/t.lua", "\nlocal spin = require('a').spin\ncoroutine.wrap(function() pcall(spin) end)()",
           "lua/routes/t.lua:3: the tables take more than 200 ms of computing to load\n");
    expect("lua/routes/t.lua", "\nrequire('a').spin()",
           "lua/a.lua:3: the tables take more than 200 ms of computing to load\n");
    fixture.options.limits.load_cpu_ms = 2000;
    expect("lua/routes/t.lua", "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
           "lua/routes/t.lua:1: out of memory: all tables together may take 67108864 bytes\n");
    expect("lua/routes/t.lua", ENTRY(""), "");
}

/* The makers as they ship. */
static void test_makers(void **state)
{
    (void)state;
    char text[16 * 1024];
    FILE *file = fopen(ABX_SOURCE_DIR "/lua/abx/params.lua", "re");
    assert_non_null(file);
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    assert_int_equal(fclose(file), 0);
    text[len] = '\0';
    fixture_write(&fixture, "lua/abx/params.lua", text);
    expect("lua/routes/t.lua",
           "local P = require('abx.params')\n" ENTRY("params={a=P.string 'x',\nb=P.choice(5), c=P.integer{mn=1},\n"
                                                     "d=P.choice{'x', 'y'}, e=P.any()}, returns=P.optional('x')"),
           "lua/routes/t.lua:3: P.string takes a table, not a string\n"
           "lua/routes/t.lua:4: P.choice takes a table, not a number\n"
           "lua/routes/t.lua:4: P.integer: unknown key 'mn' (did you mean 'min'?)\n"
           "lua/routes/t.lua:5: P.optional takes a schema, not a string\n"
           "lua/routes/t.lua:5: route t: 'returns' must be a table, not a string\n"
           "lua/routes/t.lua:4: route t: params.b 'choices' must be a list of strings\n");
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
        {COMMAND("argv={'git', {arg='n'}}, params={n={type='integer'}}, cwd='x', stdin={arg='n'}, "
                 "env={A='b'}"),
         ""},
        {COMMAND("run=print"), ""},
        {COMMAND("run=print, argv={'a'}"),
         "config/commands.lua:2: command go: needs exactly one of 'argv' and 'run'\n"},
        {COMMAND("timeout_ms=1"), "config/commands.lua:1: command go: needs exactly one of 'argv' and 'run'\n"},
        {COMMAND("argv={}"), "config/commands.lua:2: command go: 'argv' must begin with the program, a plain string\n"},
        {COMMAND("argv={'a', {arg='n'}}"),
         "config/commands.lua:2: command go: 'argv' uses arg\"n\", which is not declared in params\n"},
        {COMMAND("argv={'a', 1}"),
         "config/commands.lua:2: command go: 'argv' takes strings and arg\"name\", not a number\n"},
        {COMMAND("argv={'a'},\ncwd={arg='n'}, params={n={type='integer'}}"),
         "config/commands.lua:3: command go: 'cwd' uses arg\"n\", which must be a path or a string\n"},
        {COMMAND("argv={'a'},\nstdin={arg='l'}, env={A={arg='l'}}, params={l={type='array'}}"),
         "config/commands.lua:3: command go: 'stdin' uses arg\"l\", which must be a plain value\n"
         "config/commands.lua:3: command go: 'env' uses arg\"l\", which must be a plain value\n"},
        {COMMAND("argv={'a', {arg='m'}}, params={m={type='map'}}"),
         "config/commands.lua:2: command go: 'argv' uses arg\"m\", which must be a plain value or an array of them\n"},
        {COMMAND("argv={'a', nil, 'b'}"),
         "config/commands.lua:2: command go: 'argv' has a hole: one of its words is nil\n"},
        {COMMAND("argv={'a', 'b\\0c'}, stdin='a\\0b'"),
         "config/commands.lua:2: command go: 'argv' holds a NUL byte, which no program can be given\n"},
        {COMMAND("argv={'a'}, env={['A-B']='x'}"),
         "config/commands.lua:2: command go: 'env' sets 'A-B': names are letters, digits and underscores, no digit "
         "first\n"},
        {COMMAND("argv={'a'}, env={ABX_SERVER_KEY='x'}"),
         "config/commands.lua:2: command go: 'env' sets ABX_SERVER_KEY, but ABX_SERVER_* is the server's own\n"},
        {COMMAND("run=print,\ntimeout_ms=1, cwd='x', env={}, stdin=''"),
         "config/commands.lua:3: command go: 'timeout_ms' is for the program of 'argv': it does nothing for 'run'\n"
         "config/commands.lua:3: command go: 'cwd' is for the program of 'argv': it does nothing for 'run'\n"
         "config/commands.lua:3: command go: 'env' is for the program of 'argv': it does nothing for 'run'\n"
         "config/commands.lua:3: command go: 'stdin' is for the program of 'argv': it does nothing for 'run'\n"},
        {COMMAND("run=print},\n{name='go', description='d', run=print, timout_ms=1"),
         "config/commands.lua:3: command go: the name is taken already (config/commands.lua:1)\n"
         "config/commands.lua:3: command go: unknown key 'timout_ms' (did you mean 'timeout_ms'?)\n"},
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
    fixture.options.packs = (const char *const[]){"extra", NULL};
    assert_string_equal(fixture_load(&fixture), "");
    assert_true(generation_group(fixture.generation, 0)->enabled); /* always on */
    assert_true(generation_group(fixture.generation, 1)->enabled);
    assert_int_equal(generation_route_count(fixture.generation), 2);
    assert_string_equal(generation_route(fixture.generation, 1)->pack, "extra");
    assert_ptr_equal(generation_route(fixture.generation, 1)->group, generation_group(fixture.generation, 0));

    fixture.options.disabled_groups = (const char *const[]){"core", "system", NULL};
    assert_string_equal(fixture_load(&fixture), "");
    assert_true(generation_group(fixture.generation, 0)->enabled); /* whatever is said */
    assert_false(generation_group(fixture.generation, 1)->enabled);

    fixture.options.enabled_groups = (const char *const[]){"sytem", NULL};
    fixture.options.packs = (const char *const[]){"../x", NULL};
    assert_string_equal(fixture_load(&fixture),
                        "configuration: enabled_groups: unknown group 'sytem' (known: core, system)\n"
                        "configuration: packs: unknown pack '../x' (known: extra)\n");
    fixture.options.enabled_groups = fixture.options.disabled_groups = fixture.options.packs = NULL;
}

static void test_keys_of_options(void **state)
{
    (void)state;
    assert_string_equal(run_handler(&fixture, ROUTE("local ok, message = pcall(reply, {jsn = {}}) return {message}")),
                        "[\"reply: unknown key 'jsn' (did you mean 'json'?)\"]");
}

static void test_tables_library(void **state)
{
    (void)state;
    static const char routes[] =
        "local tables, json = require('abx.tables'), require('abx.json')\n"
        "return {group='core', {method='GET', path='/t', name='t', summary='s', handler=function()\n"
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
        cmocka_unit_test(test_route_faults),    cmocka_unit_test(test_makers),
        cmocka_unit_test(test_commands),        cmocka_unit_test(test_groups_and_packs),
        cmocka_unit_test(test_keys_of_options), cmocka_unit_test(test_tables_library),
        cmocka_unit_test(test_reloads),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
