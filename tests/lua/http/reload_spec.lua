local check = require("support.check")
local files = require("support.files")
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")
local uv = require("luv")

--- A routes file with GET routes; each answers {value = TEXT}.
local function routes(list)
  local parts = {}
  for path, value in pairs(list) do
    parts[#parts + 1] = ("  { method = 'GET', path = '%s', name = 't%s', summary = 'x', handler = function() return { value "
      .. "= %s } end },\n"):format(path, path:gsub("/", "."), value)
  end
  return "local time = require('abx.time')\nreturn {\n  group = 'commands',\n" .. table.concat(parts) .. "}\n"
end

local GOOD = routes { ["/r1"] = "'one'" }

--- name, the file's text, what the log must say (a pattern; LINE stands for file:line).
local BROKEN = {
  { "a syntax error", "return {\n  group = = 1\n}\n", 2 },
  { "a half-written file", GOOD:sub(1, -30), "%d+" },
  { "an error while it runs", "\nerror('at load')\n", 2 },
  { "an error object", "\nerror({})\n" },
  { "nil", "return nil\n" },
  { "a number", "return 5\n" },
  { "no bytes", "" },
  { "a duplicate path", GOOD:gsub("}\n$", "  { method = 'GET', path = '/r1', name = 'other', summary = 'x', handler = function() "
    .. "return {} end },\n}\n"), "%d+" },
  { "a duplicate name", GOOD:gsub("}\n$", "  { method = 'GET', path = '/r2', name = 't.r1', summary = 'x', handler = "
    .. "function() return {} end },\n}\n"), "%d+" },
  { "a path that another file has", GOOD:gsub("/r1", "/health"), "%d+" },
  { "an unknown key", GOOD:gsub("summary", "sumary"), "%d+" },
  { "an unknown group", GOOD:gsub("'commands'", "'comands'"), "%d+" },
  { "no handler", GOOD:gsub("handler = .- end }", "}"), "%d+" },
  { "an unknown error code", GOOD:gsub("summary", "errors = { 'nope' }, summary"), "%d+" },
  { "a path parameter without schema", GOOD:gsub("'/r1'", "'/r1/{id}'"), "%d+" },
  { "an unknown key in a schema", "local P = require('abx.params')\nlocal s = P.string {\n  mx = 1 }\n" .. GOOD, "%d+" },
  { "an open route where its group has none", GOOD:gsub("summary", "auth_required = false, summary"), "%d+" },
  { "a missing module", "\nrequire('abx.nope')\n" .. GOOD, 2 },
  { "a broken module", "\nrequire('abx.broken')\n" .. GOOD },
  { "a module outside", "\nrequire('../../x')\n" .. GOOD, 2 },
  { "an endless loop", "while true do end\n", "1" },
  { "an endless loop in pcall", "while true do pcall(function() while true do end end) end\n", "1" },
  { "endless recursion", "local function f() return 1 + f() end\nf()\n", "1" },
  { "a giant string", "\nlocal s = ('x'):rep(1 << 40)\n", 2 },
  { "bytecode", string.dump(load(GOOD)), "" },
  { "a wait", "\nrequire('abx.time').sleep(1)\n" .. GOOD, 2 },
}

describe("a reload", function()
  local abxd, baseline, path

  lazy_setup(function()
    abxd = server.start { tables = true }
    path = abxd.tables.lua_dir .. "/routes/r.lua"
    files.write(abxd.tables.lua_dir .. "/abx/broken.lua", "return {\n")
    baseline = abxd:baseline()
  end)
  before_each(function()
    files.write(path, GOOD)
    abxd:reload()
    assert.equal("one", check.ok(abxd:get("/r1")).value)
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  it("brings new routes and takes old ones away", function()
    files.write(path, routes { ["/r2"] = "'two'" })
    assert.is_not.equal("error", abxd:reload().level)
    assert.equal("two", check.ok(abxd:get("/r2")).value)
    check.problem(abxd:get("/r1"), 404, "not_found")
    uv.fs_unlink(path)
    abxd:reload()
    check.problem(abxd:get("/r2"), 404, "not_found")
  end)

  describe("of a broken file keeps the old tables, and takes the mended one:", function()
    for _, case in ipairs(BROKEN) do
      it(case[1], function()
        if case[1]:find("endless loop") and server.sanitizer == "thread" then
          return skip("a reload of " .. case[1], "the thread sanitizer holds back the signal of the CPU budget")
        end
        files.write(path, case[2])
        local before = #abxd:log()
        abxd:reload()
        local place = case[1] == "a broken module" and "broken%.lua:%d+: " or "r%.lua:" .. (case[3] or "%d+") .. ": "
        place = place:gsub("::", ":") -- bytecode has no line
        abxd:wait_log(function(line)
          return line.level == "error" and line.msg:find(place)
        end, before)
        assert.equal("one", check.ok(abxd:get("/r1")).value)
        assert.equal("ok", check.ok(abxd:get("/health")).status)

        local result = server.run { "check", "--lua-dir", abxd.tables.lua_dir, "--commands", abxd.tables.commands,
          "--config", abxd.tables.config, "--base-dir", abxd.base_dir }
        assert.equal(2, result.code)
        assert.matches(place, result.stdout .. result.stderr)

        files.write(path, routes { ["/r1"] = "'mended'" })
        abxd:reload()
        assert.equal("mended", check.ok(abxd:get("/r1")).value)
      end)
    end
  end)

  it("reports every fault, not the first alone", function()
    files.write(path, (GOOD:gsub("summary", "sumary")))
    files.write(abxd.tables.lua_dir .. "/routes/s.lua", "return 5\n")
    local result = server.run { "check", "--lua-dir", abxd.tables.lua_dir, "--commands", abxd.tables.commands, "--config",
      abxd.tables.config, "--base-dir", abxd.base_dir }
    uv.fs_unlink(abxd.tables.lua_dir .. "/routes/s.lua")
    assert.equal(2, result.code)
    assert.matches("r%.lua:%d+: ", result.stdout .. result.stderr)
    assert.matches("s%.lua:%d+: ", result.stdout .. result.stderr)
  end)

  it("takes CRLF line ends", function()
    files.write(path, (GOOD:gsub("\n", "\r\n"):gsub("'one'", "'crlf'")))
    abxd:reload()
    assert.equal("crlf", check.ok(abxd:get("/r1")).value)
  end)

  it("reads required modules, groups and commands again", function()
    local module = abxd.tables.lua_dir .. "/abx/part.lua"
    files.write(module, "return 'a'\n")
    files.write(path, routes { ["/r1"] = "require('abx.part')" })
    abxd:reload()
    assert.equal("a", check.ok(abxd:get("/r1")).value)
    files.write(module, "return 'b'\n")
    local commands = files.read(abxd.tables.commands)
    files.write(abxd.tables.commands, "return { { name = 'only', description = 'x', argv = { 'echo', 'hi' } } }\n")
    abxd:reload()
    assert.equal("b", check.ok(abxd:get("/r1")).value)
    assert.equal("only", check.ok(abxd:get("/commands")).commands[1].name)
    assert.equal("hi\n", check.ok(abxd:post("/commands/only", {})).stdout)
    files.write(abxd.tables.commands, "return { { name = 'only' } }\n")
    local before = #abxd:log()
    abxd:reload()
    abxd:wait_log(function(line)
      return line.level == "error" and line.msg:find("commands%.lua:1: ")
    end, before)
    assert.equal("hi\n", check.ok(abxd:post("/commands/only", {})).stdout)
    files.write(abxd.tables.commands, commands)
  end)

  it("lets running requests end in the old tables", function()
    files.write(path, routes { ["/r1"] = "(function() time.sleep(700) return 'old' end)()" })
    abxd:reload()
    local conn = abxd:connect()
    conn:send_request("GET", "/r1")
    uv.sleep(200)
    files.write(path, routes { ["/r1"] = "'new'" })
    abxd:reload()
    assert.equal("new", check.ok(abxd:get("/r1")).value)
    assert.equal("old", check.ok(conn:read_response()).value)
    conn:close()
  end)

  it("200 times under load loses no request and no memory", function()
    local conns = {}
    for i = 1, 8 do
      conns[i] = abxd:connect()
    end
    local function burst()
      abxd.child:kill("sighup")
      for _, conn in ipairs(conns) do
        conn:send_request("GET", "/r1")
      end
      for _, conn in ipairs(conns) do
        assert.equal("one", check.ok(conn:read_response()).value)
      end
    end
    for _ = 1, 20 do
      burst()
    end
    local before = abxd:rss_bytes()
    for _ = 1, 180 do
      burst()
    end
    for _, conn in ipairs(conns) do
      conn:close()
    end
    if server.sanitizer == "none" then -- a sanitizer keeps what was freed
      assert.is_true(abxd:rss_bytes() - before < 8 * 1024 * 1024)
    end
  end)

  it("happens by itself with watch", function()
    local watching <close> = server.start { tables = true, args = { "--watch" } }
    local file = watching.tables.lua_dir .. "/routes/r.lua"
    local function becomes(value)
      return process.poll(5000, function()
        local answer = watching:get("/r1")
        return answer.status == 200 and answer:json().value == value
      end)
    end
    files.write(file, GOOD)
    assert.is_true(becomes("one"))
    local before = #watching:log()
    files.write(file, "return {\n  group = = 1\n}\n")
    watching:wait_log(function(line)
      return line.level == "error" and line.msg:find("r%.lua:2: ")
    end, before)
    assert.equal("one", check.ok(watching:get("/r1")).value)
    files.write(file .. ".tmp", routes { ["/r1"] = "'renamed'" })
    uv.fs_rename(file .. ".tmp", file)
    assert.is_true(becomes("renamed"))
    local commands = watching.tables.commands
    files.write(commands, "return { { name = 'only', description = 'x', argv = { 'echo', 'hi' } } }\n")
    assert.is_true(process.poll(5000, function()
      return watching:post("/commands/only", {}).status == 200
    end))
  end)

  it("is still noticed after folders were replaced, below folders and behind links", function()
    local watching <close> = server.start { tables = true, args = { "--watch" } }
    local lua_dir, commands = watching.tables.lua_dir, watching.tables.commands
    local function becomes(route, value)
      return process.poll(5000, function()
        local answer = watching:get(route)
        return answer.status == 200 and answer:json().value == value
      end)
    end
    for round = 1, 3 do
      local folder = round == 3 and lua_dir or lua_dir .. "/routes"
      files.copy_tree(folder, lua_dir .. ".kept")
      files.remove_tree(folder)
      files.copy_tree(lua_dir .. ".kept", folder)
      files.remove_tree(lua_dir .. ".kept")
      uv.sleep(400)
      files.write(lua_dir .. "/routes/r.lua", routes { ["/r1"] = tostring(round) })
      assert.is_true(becomes("/r1", round))
    end

    files.mkdir(lua_dir .. "/abx/deep")
    files.write(lua_dir .. "/abx/deep/m.lua", "return { value = 1 }\n")
    files.write(lua_dir .. "/routes/r.lua", routes { ["/r1"] = "require('abx.deep.m').value" })
    assert.is_true(becomes("/r1", 1))
    files.write(lua_dir .. "/abx/deep/m.lua", "return { value = 2 }\n")
    assert.is_true(becomes("/r1", 2))

    local target = watching.tables.dir .. "/elsewhere"
    files.mkdir(target)
    files.write(target .. "/c.lua", "return { { name = 'first', description = 'x', argv = { 'echo' } } }\n")
    uv.fs_unlink(commands)
    uv.fs_symlink(target .. "/c.lua", commands)
    for _, name in ipairs { "first", "second", "third" } do
      files.write(target .. "/c.lua", ("return { { name = '%s', description = 'x', argv = { 'echo' } } }\n"):format(name))
      assert.is_true(process.poll(5000, function()
        return watching:post("/commands/" .. name, {}).status == 200
      end))
    end
  end)
end)
