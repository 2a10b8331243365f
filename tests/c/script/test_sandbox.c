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
    "return (''):rep(1 << 60) == '' and (''):rep(1 << 60, '') == ''",
    "return not pcall(string.rep, 'x', 1 << 60) and not pcall(string.rep, 'x', 1 << 30)",
    "return not pcall(table.move, {}, 1, 1 << 60, 2) and not pcall(table.unpack, {}, 1, 1 << 60)",
    "return not pcall(table.concat, setmetatable({}, {__index = function() return '' end}), '', 1, 1 << 60)",
    "return not pcall(table.sort, setmetatable({}, {__len = function() return 1 << 40 end}))",
    "return not pcall(table.insert, setmetatable({}, {__len = function() return 1 << 40 end}), 1, 'x')",
    "return not pcall(os.date, '%Ez') and not pcall(os.date, ('%c'):rep(10) .. '%')",
    "return not pcall(function() return #req.nofield end) and not pcall(function() req.id = 1 end)",
    "local ok, e = pcall(function() local function f() return f() + 1 end return f() end) return not ok",
    "local ok, e = pcall(function() local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end end) "
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
};

static void test_loops(void **state)
{
    (void)state;
    char routes[4096];
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
        snprintf(routes, sizeof(routes), ROUTE("%s"), loops[i]);
        uint64_t before = loop_clock_ns();
        const char *answer = run_handler(&fixture, routes);
        uint64_t ms = (loop_clock_ns() - before) / 1000000;
        if (strncmp(answer, "handler_timeout: ", 17) != 0 && strstr(loops[i], "error('x')") == NULL)
            fail_msg("%s\n  answered %s", loops[i], answer);
        if (ms > 10000)
            fail_msg("%s\n  took %d ms", loops[i], (int)ms);
        assert_string_equal(run_handler(&fixture, ROUTE("return {ok = true}")), "{\"ok\":true}");
    }
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
        "return reply{bytes = {}}",
        "return reply{file = {}}",
        "return reply{stream = {}}",
        "return reply{json = {}, bytes = 'x'}",
        "return reply{unknown = 1}",
        "try(nil)",
        "fail('no_such_code')",
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
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_exhaustion),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
