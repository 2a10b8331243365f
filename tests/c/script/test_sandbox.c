/* The sandbox: what scripts find, and one case for each known way out of it or of their budget. */
#include "script_fixture.h"

#include "base/log.h"

static struct fixture fixture;

static int setup(void **state)
{
    (void)state;
    log_configure(LOG_LEVEL_OFF, false);
    fixture_open(&fixture);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&fixture);
    return 0;
}

/* Each is an expression or a function body that must answer true. */
static const char *const holds[] = {
    "return io == nil and debug == nil and package == nil and dofile == nil and loadfile == nil and warn == nil",
    "return string.dump == nil and coroutine.running == nil and math.randomseed == nil",
    "return os.execute == nil and os.getenv == nil and os.exit == nil and os.remove == nil and type(os.time()) == "
    "'number'",
    "return not pcall(function() newglobal = 1 end)",
    "return not pcall(function() _G.newglobal = 1 end)",
    "return not pcall(function() _ENV.print = 1 end)",
    "return not pcall(function() string.rep = 1 end) and not pcall(rawset, string, 'rep', 1)",
    "return not pcall(rawset, _G, 'x', 1) and not pcall(setmetatable, _G, {}) and getmetatable(_G) == false",
    "return not pcall(table.insert, string, 1) and not pcall(table.move, {1}, 1, 1, 1, _G)",
    "return getmetatable('') == nil and not pcall(function() getmetatable('').__index = {} end)",
    "return not pcall(function() ('').rep = 1 end)",
    "local _, t = pairs(string) return t == string and not pcall(function() t.rep = 1 end)",
    "local n = 0 for k, v in pairs(string) do n = n + 1 end return n > 10",
    "return not pcall(setmetatable, {}, {__gc = function() end})",
    "return getmetatable(req) == nil and getmetatable(json.array{}) == false and not pcall(setmetatable, json.array{}, "
    "{})",
    "return not pcall(setmetatable, setmetatable({}, {__metatable = 1}), {})",
    "return load('\\27Lua') == nil and load('return 1')() == 1 and not pcall(load, function() return 'x' end)",
    "local f, why = load('\\27Lua', 'x', 'b') return f == nil",
    "return not pcall(load('x = 1'))",
    "local e = {} load('x = 1', 'c', 't', e)() return e.x == 1",
    "return not pcall(collectgarbage, 'stop') and collectgarbage('count') > 10 and collectgarbage() > 10",
    "return not pcall(require, '../x') and not pcall(require, '.x') and not pcall(require, 'a/b') and not "
    "pcall(require, 'nosuch')",
    "return not pcall(coroutine.yield, 1)",
    "return ('ab'):rep(5, '-') == 'ab-ab-ab-ab-ab' and ('ab'):rep(1, '-') == 'ab' and ('x'):rep(-1) == '' and "
    "(''):rep(4, 'y') == 'yyy' and ('a'):rep(7) == 'aaaaaaa' and (''):rep(1, 'y') == ''",
    "return (''):rep(1 << 60) == '' and (''):rep(1 << 60, '') == ''",
    "return not pcall(string.rep, 'x', 1 << 60) and not pcall(string.rep, 'x', 1 << 30)",
    "return not pcall(table.move, {}, 1, 1 << 60, 2) and not pcall(table.unpack, {}, 1, 1 << 60)",
    "return not pcall(table.concat, setmetatable({}, {__index = function() return '' end}), '', 1, 1 << 60)",
    "return not pcall(table.sort, setmetatable({}, {__len = function() return 1 << 40 end}))",
    "return not pcall(table.insert, setmetatable({}, {__len = function() return 1 << 40 end}), 1, 'x')",
    "return ('%5.1s|%-3s|%%|%q|%s|%d'):format('abc', 'd', 'e', 'f', 7) == '    a|d  |%|\"e\"|f|7'",
    "local t = {'b', 'a\\0b', 'a', 'a\\0a', '', 'ab', 'b'} table.sort(t) return table.concat(t, ',') == "
    "',a,a\\0a,a\\0b,ab,b,b'",
    "local t = {3, 1, 2.5} table.sort(t) return t[1] == 1 and t[3] == 3 and not pcall(table.sort, {1, 'x'}) and not "
    "pcall(table.sort, {1, 2}, 3)",
    "local t = {1, 3, 2} table.sort(t, function(a, b) return a > b end) local u = {1, 3, 2} table.sort(u, math.ult) "
    "return table.concat(t) == '321' and table.concat(u) == '123'",
    "return not pcall(os.date, '%Ez') and not pcall(os.date, ('%c'):rep(10) .. '%')",
    "return not pcall(function() return #req.nofield end) and not pcall(function() req.id = 1 end)",
    "local ok, e = pcall(function() local function f() return f() + 1 end return f() end) return not ok",
    "local ok, e = pcall(function() local s, t = ('x'):rep(1000), {} for i = 1, 1e9 do t[i] = s .. i end end) "
    "return not ok and tostring(e):find('memory') ~= nil",
    "local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) return not pcall(function() return "
    "t[1] end)",
    "local co = coroutine.wrap(function() time.sleep(0) end) local ok, e = pcall(co) "
    "return not ok and e:find('coroutine of your own') ~= nil",
    "local ok, e = pcall(table.sort, {3, 2, 1}, function() time.sleep(0) end) return not ok and e:find('sleep waits') "
    "~= nil",
    "local ok, e = pcall(string.gsub, 'abc', '.', function() time.sleep(0) end) return not ok and e:find('waits') ~= "
    "nil",
    "local a, b = xpcall(function() error({7}) end, function(e) return e[1] + 1 end) return a == false and b == 8",
    "local a, b, c = xpcall(function(...) time.sleep(0) return ... end, print, 1, 2) return a and b == 1 and c == 2",
    "local s for a, b in coroutine.wrap(function() coroutine.yield(1, 2) end) do s = a + b end return s == 3",
    "local co = coroutine.create(function(x) local y = coroutine.yield(x + 1) error('boom' .. y) end) "
    "local _, a = coroutine.resume(co, 1) local s = coroutine.status(co) local ok, e = coroutine.resume(co, 5) "
    "return a == 2 and s == 'suspended' and not ok and e:find('boom5') ~= nil and coroutine.status(co) == 'dead' "
    "and not coroutine.resume(co)",
    "local closed = false local co = coroutine.create(function() local x <close> = setmetatable({}, "
    "{__close = function() closed = true end}) coroutine.yield() end) coroutine.resume(co) "
    "return coroutine.close(co) and closed",
    "local log = {} do local x <close> = setmetatable({}, {__close = function() time.sleep(1) log[1] = 1 end}) end "
    "return log[1] == 1",
};

static void test_holds(void **state)
{
    (void)state;
    char routes[4096];
    for (size_t i = 0; i < sizeof(holds) / sizeof(holds[0]); i++) {
        snprintf(routes, sizeof(routes), ROUTE("local function f() %s end return {ok = f()}"), holds[i]);
        const char *answer = run_handler(&fixture, routes);
        if (strcmp(answer, "{\"ok\":true}") != 0)
            fail_msg("%s\n  answered %s", holds[i], answer);
    }
}

/* What all requests share: m was required by the routes file, late is by the handler. */
static const char *const shared[] = {
    "local function fails(...) return not pcall(...) end return fails(function() m.f = nil end) and "
    "fails(function() m.list[3] = 1 end) and fails(function() m.map.a.b = 2 end) and fails(rawset, m, 'f', 1) and "
    "fails(table.insert, m.list, 1) and fails(table.sort, m.list) and fails(setmetatable, m.map, {}) and "
    "fails(function() late.x = 1 end) and fails(function() late.list[1] = 1 end) and fails(table.move, {1}, 1, 1, 1, "
    "m.list) and fails(json.array, m.map)",
    "local n = 0 for i, v in ipairs(m.list) do n = n + v end for k, v in pairs(m.list) do n = n + v end "
    "return n == 6 and #m.list == 2 and rawlen(m.list) == 2 and rawget(m.list, 2) == 2 and next(m.map) == 'a' and "
    "next(m.map, 'a') == nil and next(m.empty) == nil and select('#', next(m.empty)) == 1",
    "return m.self == m and m.map.a == m.same and m.f() == 1 and table.concat(m.list, ',') == '1,2' and "
    "select('#', table.unpack(m.list)) == 2 and #table.move(m.list, 1, 2, 1, {}) == 2",
    "return json.encode({m.list, m.map, m.empty, m.array}) == '[[1,2],{\"a\":{\"b\":1}},{},[]]' and "
    "json.is_array(m.list) and json.is_array(m.array) and not json.is_array(m.map) and json.array(m.array) == m.array",
    "return m.object.x == 1 and pcall(function() m.object.x = nil end) and getmetatable(m.list) == false",
    "return m.count() == 1 and m.count() == 2",
    "local t = require('abx.tables') local r = t.routes()[1] return r.name == 't' and not pcall(function() r.name = "
    "'x' "
    "end) and not pcall(function() r.params.p.type = 'any' end) and not pcall(rawset, r, 'x', 1)",
    "local t = require('abx.tables') local c = t.command('c') local _, _, _, errors = t.check(c.params, {p = 1}) "
    "return not pcall(function() c.argv[1] = 'rm' end) and c.argv[1] == 'true' and c.params.p.type == 'string' and "
    "errors[1].field == 'p' and t.check(m.fields, {q = 'x'}).q == 'x' and t.check(m.fields, {}).q == 'd' and "
    "t.check({l = {type = 'array'}}, {l = m.list}).l[2] == 2 and t.hint('bq', m.fields) == \" (did you mean 'q'?)\"",
};

static void test_shared(void **state)
{
    (void)state;
    char routes[4096], commands[160];
    fixture_write(&fixture, "lua/m.lua",
                  "local same, n = {b = 1}, 0\n"
                  "local M = {list = {1, 2}, map = {a = same}, same = same, empty = {}, f = function() return 1 end,\n"
                  "  array = require('abx.json').array {}, object = setmetatable({x = 1}, {__index = {y = 2}}),\n"
                  "  fields = {q = {type = 'string', default = 'd', choices = {'d', 'x'}}},\n"
                  "  count = function() n = n + 1 return n end}\n"
                  "M.self = M M.open = 1 return M");
    fixture_write(&fixture, "lua/late.lua", "return {list = {}}");
    fixture_write(&fixture, "commands.lua",
                  "return {{name = 'c', description = 'd', argv = {'true'}, params = {p = {type = 'string'}}}}");
    snprintf(commands, sizeof(commands), "%s/commands.lua", fixture.dir);
    fixture.options.commands_file = commands;
    for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
        snprintf(routes, sizeof(routes),
                 "local m, json = require('m'), require('abx.json') m.written_while_tables_load = 1\n"
                 "return {group='core', {method='GET', path='/t', name='t', summary='s', errors={'busy'},\n"
                 "  params={p={type='string'}}, handler=function(req) local late = require('late')\n"
                 "local function f() %s end return {ok = f()} end}}",
                 shared[i]);
        const char *answer = run_handler(&fixture, routes);
        if (strcmp(answer, "{\"ok\":true}") != 0)
            fail_msg("%s\n  answered %s", shared[i], answer);
    }
    fixture.options.commands_file = NULL;
}

/* Each would run for ever, or nearly so. */
static const char *const loops[] = {
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "while true do xpcall(function() while true do end end, function() while true do end end) end",
    "xpcall(function() while true do end end, function() while true do end end)",
    "xpcall(error, function() while true do end end)",
    "local co = coroutine.wrap(function() while true do end end) while true do pcall(co) end",
    "while true do local co = coroutine.create(function() while true do end end) coroutine.resume(co) end",
    "while true do coroutine.resume(coroutine.create(function() coroutine.resume(coroutine.create(function() "
    "while true do pcall(error) end end)) while true do end end)) end",
    "local x <close> = setmetatable({}, {__close = function() while true do end end}) while true do end",
    "local x <close> = setmetatable({}, {__close = function() while true do pcall(error) end end}) error('x')",
    "local x <close> = setmetatable({}, {__close = function() while true do end end}) "
    "table.sort({1, 2, 3}, function() while true do end end)",
    "local co = coroutine.create(function() local x <close> = setmetatable({}, {__close = function() while true do end "
    "end}) coroutine.yield() end) coroutine.resume(co) coroutine.close(co) while true do end",
    "local co = coroutine.wrap(function() local x <close> = setmetatable({}, {__close = function() while true do end "
    "end}) error('x') end) while true do pcall(co) end",
    "return {x = #setmetatable({}, {__len = function() while true do end end})}",
    "for _ in pairs(setmetatable({}, {__pairs = function() while true do end end})) do end",
    "tostring(setmetatable({}, {__tostring = function() while true do end end}))",
    "string.format('%s', setmetatable({}, {__tostring = function() while true do end end}))",
    "local t = setmetatable({}, {__eq = function() while true do end end}) "
    "return {x = t == setmetatable({}, getmetatable(t))}",
    "('x'):gsub('.', function() while true do end end)",
    "table.sort({1, 2, 3}, function() while true do pcall(error) end end)",
    "('a'):rep(24000):find('.-.-.-b')",
    "while true do pcall(string.find, ('a'):rep(24000), '.-.-.-b') end",
    "for _ in ('a'):rep(24000):gmatch('.-.-.-b') do end",
    "('a'):rep(24000):gsub('.-.-.-b', '')",
    "load('while true do end')()",
    "while true do load('return 1') end",
    "goto a ::a:: goto a",
    "for i = 1, math.huge do end",
    "local function f() return f() end f()",
    "local t = {} t = setmetatable(t, {__index = function(_, k) while true do end end}) return {x = t.x}",
    "while true do table.concat({}, '', 1, 0) end",
    /* one call of C */
    "local s, t = ('x'):rep(1e6), {} for i = 1, 5 do t[i] = s .. i end local u = {} "
    "for i = 1, 1e5 do u[i] = t[i % 5 + 1] end table.sort(u)",
    "local s, t = ('x'):rep(1e6), {} for i = 1, 1e5 do t[i] = s end table.sort(t, string.find)",
    "('a'):rep(1e6):find('[' .. ('b'):rep(1e6) .. ']')",
    "('a'):rep(1e6):find('[^' .. ('b'):rep(1e6) .. ']*c')",
    "('a'):rep(1e6):find('%f[' .. ('b'):rep(1e6) .. ']')",
    "('x'):rep(1e6):find('(.*)%1y')",
    "('x'):rep(1e6):gsub('(y*)x', ('%1'):rep(1e6))",
    "local t = {1} for i = 1, 60 do t = {t, t} end return t",
    "local c = {} for i = 1, 190 do c[i] = 'v' .. i end "
    "load(('return function() local ' .. table.concat(c, ',') .. ' '):rep(70) .. ('x=x '):rep(2e5) .. (' "
    "end'):rep(70))",
};

static void test_loops(void **state)
{
    (void)state;
    char routes[4096];
    unsigned cpu_ms = fixture.options.limits.cpu_ms;
    fixture.options.limits.cpu_ms = 100;
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
        snprintf(routes, sizeof(routes), ROUTE("%s"), loops[i]);
        uint64_t before = loop_clock_ns();
        const char *answer = run_handler(&fixture, routes);
        uint64_t ms = (loop_clock_ns() - before) / 1000000;
        if (strncmp(answer, "handler_timeout: ", 17) != 0 && strstr(loops[i], "error('x')") == NULL)
            fail_msg("%s\n  answered %s", loops[i], answer);
        if (ms > 5000)
            fail_msg("%s\n  took %d ms", loops[i], (int)ms);
        assert_string_equal(run_handler(&fixture, ROUTE("return {ok = true}")), "{\"ok\":true}");
    }
    fixture.options.limits.cpu_ms = cpu_ms;
}

/* Memory, the stack and errors cost that request only. */
static void test_exhaustion(void **state)
{
    (void)state;
    static const char failed[] = "internal_error: the handler failed; the log has the details under this request id";
    static const char *const bodies[] = {
        "local s = 'x' while true do s = s .. s end",
        "local t = {} while true do t[#t + 1] = {} end",
        "return {s = ('x'):rep(10 * 1000 * 1000 * 1000)}",
        "local function f() return 1 + f() end return {f()}",
        "error()",
        "error({})",
        "error('x')",
        "return nil",
        "return 1",
        "return 'text'",
        "return {print}",
        "local t = {} t[1] = t return t",
        "return {[1] = 1, x = 2}",
        "return {[2.5] = 1}",
        "return {[1] = 1, [3] = 3, [1000] = 4}",
        "return coroutine.create(print)",
        "return req",
        "return reply{json = {print}}",
        "return reply{status = 99}",
        "return reply{status = 700, json = {}}",
        "return reply{headers = {['a b'] = 'x'}}",
        "return reply{headers = {a = 'x\\ny'}}",
        "return reply{headers = {a = {}}}",
        "return reply{headers = {a = ('x'):rep(8193)}}",
        "return reply{headers = {a = ('x'):rep(8192), b = ('x'):rep(8192)}}",
        "return reply{bytes = {}}",
        "return reply{file = {}}",
        "return reply{stream = {}}",
        "return reply{json = {}, bytes = 'x'}",
        "return reply{unknown = 1}",
        "try(nil)",
        "fail('no_such_code')",
        "return {#string.format('%q', ('\\0'):rep(2e6))}",
        "local t = {('x'):rep(7e6)} for i = 2, 99 do t[i] = t[1] end return {('%.1s'):rep(99):format(table.unpack(t))}",
        "return {#string.format(('%d'):rep(1e5), table.unpack({}, 1, 1e5))}",
        "return {#os.date(('%n'):rep(1e6))}",
    };
    char routes[4096];
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        snprintf(routes, sizeof(routes), ROUTE("%s"), bodies[i]);
        const char *answer = run_handler(&fixture, routes);
        if (strcmp(answer, failed) != 0)
            fail_msg("%s\n  answered %s", bodies[i], answer);
    }
    assert_string_equal(run_handler(&fixture, ROUTE("return {ok = true}")), "{\"ok\":true}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holds),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_exhaustion),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
