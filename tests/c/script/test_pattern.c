/* The matcher of scripts against Lua's own: the same results and the same refusals, over many subjects and patterns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "script/sandbox.h"

#include <lauxlib.h>
#include <lualib.h>

static const char compare[] =
    "local seed = 7\n"
    "local function random(n) seed = (seed * 1103515245 + 12345) % 2147483648 return seed // 65536 % n + 1 end\n"
    "local function pick(list) return list[random(#list)] end\n"
    "local function text(items, most) local t = {} for i = 1, random(most) - 1 do t[i] = pick(items) end\n"
    "  return table.concat(t) end\n"
    "local letters = {'a', 'b', 'c', ' ', '1', '.', '%', '\\0', '(', ')', '[', ']', '-', '\\255', 'A', '_'}\n"
    "local parts = {'a', 'b', '.', '%a', '%s', '%d', '%W', '%%', '[ab]', '[^a]', '[a-c]', '[%d%s]', '[]]', '[^]]', "
    "'[a-]',\n"
    "  '*', '+', '-', '?', '(', ')', '()', '^', '$', '%b()', '%f[%w]', '%1', '%2', '%', '[', '\\0', '(a*)', '(.-)', "
    "'%g', '%x'}\n"
    "local function all(f, ...) local r = table.pack(pcall(f, ...))\n"
    "  for i = 1, r.n do r[i] = tostring(r[i]):gsub('^.-: ', '') end return table.concat(r, '|', 1, r.n) end\n"
    "local function each(f, s, p) local t = {} local n = 0\n"
    "  for a, b in f(s, p) do n = n + 1 t[n] = tostring(a) .. '/' .. tostring(b) if n > 100 then break end end\n"
    "  return table.concat(t, ',') end\n"
    "local replacements = {'x', '%0', '<%1>', '%%', '%2', '%', string.upper, {a = 'A', b = false}, function() end, 7}\n"
    "local count = 0\n"
    "for i = 1, 30000 do\n"
    "  local s, p, init = text(letters, 14), text(parts, 7), random(20) - 10\n"
    "  local function same(name, ...)\n"
    "    local real, own = all(string[name], ...), all(ours[name], ...)\n"
    "    if real ~= own then error(('%s(%q, %q, %d): %s, not %s'):format(name, s, p, init, own, real)) end\n"
    "    if real:find('^true|.') then count = count + 1 end\n"
    "  end\n"
    "  same('find', s, p, init) same('match', s, p, init) same('find', s, p, init, true)\n"
    "  same('gsub', s, p, pick(replacements)) same('gsub', s, p, '', random(4) - 1)\n"
    "  local real, own = all(each, string.gmatch, s, p), all(each, ours.gmatch, s, p)\n"
    "  if real ~= own then error(('gmatch(%q, %q): %s, not %s'):format(s, p, own, real)) end\n"
    "end\n"
    "return count\n";

static void test_same_as_lua(void **state)
{
    (void)state;
    static const luaL_Reg ours[] = {{"find", sandbox_find},
                                    {"match", sandbox_match},
                                    {"gmatch", sandbox_gmatch},
                                    {"gsub", sandbox_gsub},
                                    {NULL, NULL}};
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    luaL_newlib(L, ours);
    lua_setglobal(L, "ours");
    if (luaL_dostring(L, compare) != LUA_OK)
        fail_msg("%s", lua_tostring(L, -1));
    assert_true(lua_tointeger(L, -1) > 30000); /* it did match now and then */
    lua_close(L);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_as_lua)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
