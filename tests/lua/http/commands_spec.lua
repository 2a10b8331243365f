local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local server = require("support.server")

local COMMANDS = [[
local arg = require("abx.command").arg
local P = require("abx.params")
local proc = require("abx.proc")

return {
  {
    name = "words", description = "Shows its words",
    params = {
      one = P.string { required = true }, count = P.integer { min = 1, max = 9, default = 2 },
      more = P.array { of = P.string {} },
    },
    argv = { "printf", "<%s>", arg "one", arg "count", arg "more", "$HOME" },
    timeout_ms = 5000,
  },
  {
    name = "placed", description = "Uses cwd, env and stdin", params = { text = P.string {}, where = P.path {} },
    argv = { "sh", "-c", "pwd; printf '%s|' \"$T\"; cat; exit 3" },
    cwd = arg "where", env = { T = arg "text" }, stdin = arg "text",
  },
  { name = "slow", description = "Takes too long", argv = { "sleep", "SECONDS" }, timeout_ms = 300 },
  { name = "missing", description = "Not installed", argv = { "nosuchcmd_x" } },
  {
    name = "lua", description = "Uses the primitives", params = { text = P.string { default = "x" } },
    run = function(args)
      local run <close> = try(proc.start { argv = { "printf", "%s", args.text }, capture_bytes = 100, kind = "shell" })
      run:wait()
      return { said = run:captured("utf-8").stdout, exit_code = run:exit().exit_code }
    end,
  },
  { name = "nothing", description = "Answers nothing", run = function() end },
  { name = "fails", description = "Fails by a code", run = function() fail("busy", "come again") end },
  { name = "breaks", description = "Has a bug", run = function() return nil + 1 end },
  { name = "hidden", description = "Not shown", hidden = true, argv = { "echo", "found" } },
}
]]

describe("registered commands", function()
  local abxd, baseline

  lazy_setup(function()
    local tables = server.copy_tables()
    files.write(tables.commands, (COMMANDS:gsub("SECONDS", check.sleep(4362):match("%S+$"))))
    abxd = server.start { tables = tables }
    abxd.owns_tables = true
    files.mkdir(abxd.base_dir .. "/sub")
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function run(name, args)
    return abxd:post("/commands/" .. name, args or {})
  end

  it("are listed in their order, without the hidden ones", function()
    local names, by_name = {}, {}
    for _, command in ipairs(check.ok(abxd:get("/commands")).commands) do
      names[#names + 1] = command.name
      by_name[command.name] = command
    end
    assert.same({ "words", "placed", "slow", "missing", "lua", "nothing", "fails", "breaks" }, names)
    assert.same({ "description", "name", "parameters", "timeout_ms" }, (function()
      local keys = {}
      for key in pairs(by_name.words) do
        keys[#keys + 1] = key
      end
      table.sort(keys)
      return keys
    end)())
    assert.same({ "Shows its words", 5000 }, { by_name.words.description, by_name.words.timeout_ms })
    local schema = by_name.words.parameters
    assert.same({ "object", { "one" }, false }, { schema.type, schema.required, schema.additionalProperties })
    assert.same({ "integer", 1, 9, 2 }, { schema.properties.count.type, schema.properties.count.minimum,
      schema.properties.count.maximum, schema.properties.count.default })
    assert.same({ "array", "string" }, { schema.properties.more.type, schema.properties.more.items.type })
  end)

  it("pass arguments as whole words, never as shell text", function()
    local answer = check.ok(run("words", { one = "a b; touch x $(touch y) `touch z`", more = { "-rf", "", "*" } }))
    assert.equal("<a b; touch x $(touch y) `touch z`><2><-rf><><*><$HOME>", answer.stdout)
    assert.equal("<x><9><$HOME>", check.ok(run("words", { one = "x", count = 9 })).stdout)
    assert.same({ "sub" }, files.list(abxd.base_dir))
  end)

  it("answer like /shell where they wrap a program", function()
    local answer = check.ok(run("placed", { text = "a$b", where = "sub" }))
    assert.equal("string", type(answer.id))
    assert.equal("integer", math.type(answer.pid))
    answer.id, answer.pid, answer.started_at, answer.duration_ms = nil, nil, nil, nil
    local out = abxd.base_dir .. "/sub\na$b|a$b"
    assert.same({
      stdout = out, stderr = "", stdout_bytes = #out, stderr_bytes = 0, truncated = { stdout = false, stderr = false },
      lossy = false, running = false, cwd = abxd.base_dir .. "/sub", exit_code = 3, signal = json.null, timed_out = false,
    }, answer)
    assert.equal(abxd.base_dir .. "\n|", check.ok(run("placed")).stdout)
  end)

  it("have their own timeout", function()
    local answer = check.ok(run("slow"))
    assert.same({ true, 143 }, { answer.timed_out, answer.exit_code })
    assert.equal(0, check.gone(check.sleep(4362)))
  end)

  it("written in Lua answer name, result and duration", function()
    local answer = check.ok(run("lua", { text = "hé" }))
    assert.equal("integer", math.type(answer.duration_ms))
    answer.duration_ms = nil
    assert.same({ name = "lua", result = { said = "hé", exit_code = 0 } }, answer)
    assert.equal(json.null, check.ok(run("nothing")).result)
    check.problem(run("fails"), 409, "busy")
    local problem = check.problem(run("breaks"), 500, "internal_error")
    assert.is_nil(problem.detail:find("nil", 1, true))
    assert.is_nil(problem.detail:find("%.lua"))
    assert.is_table(abxd:wait_log(function(line)
      return line.request_id == problem.request_id and line.level == "error"
    end))
  end)

  it("check all their arguments at once", function()
    assert.same({ "count", "more[0]", "nonsense", "one" }, check.faulty_fields(run("words", { count = 10, more = { 1 },
      nonsense = true })))
    check.problem(run("placed", { where = "" }), 400, "invalid_path", "where")
    check.problem(abxd:request("POST", "/commands/words", { body = "[]", headers = {
      ["Content-Type"] = "application/json" } }), 400, "invalid_request")
  end)

  it("blame the parameter that was sent", function()
    check.problem(run("placed", { where = ".." }), 403, "path_outside_base", "where")
    check.problem(run("placed", { where = "nowhere" }), 400, "bad_cwd", "where")
    check.problem(run("placed", { text = "a\0b" }), 400, "invalid_request", "text")
    check.problem(run("words", { one = "x", more = { "y", "a\0b" } }), 400, "invalid_request", "more[1]")
    local problem = check.problem(run("missing"), 503, "unavailable")
    assert.equal("the program nosuchcmd_x is not installed", problem.detail)
    assert.is_nil(problem.field)
    problem = check.problem(run("words", { one = 1, count = 10 }), 400, "invalid_request")
    assert.equal("2 fields are not valid, see errors; the first: count: must be between 1 and 9", problem.detail)
  end)

  it("run without a body where nothing is required", function()
    assert.equal(200, abxd:request("POST", "/commands/lua").status)
  end)

  it("that are hidden run all the same, and no 404 names them", function()
    assert.equal("found\n", check.ok(run("hidden")).stdout)
    local problem = check.problem(run("hid"), 404, "command_not_found", "name")
    assert.is_nil(problem.detail:find("hidden", 1, true))
    check.problem(run("a%2Fb"), 404, "command_not_found")
    check.problem(run("hidden/x"), 404, "not_found")
    check.problem(run("%2e%2e"), 404, "command_not_found")
  end)

  it("come with a useful start", function()
    local shipped <close> = server.start()
    local names = {}
    for _, command in ipairs(check.ok(shipped:get("/commands")).commands) do
      names[#names + 1] = command.name
    end
    assert.same({ "disk-usage", "git-summary", "find-large-files", "runtime-versions" }, names)
    files.write(shipped.base_dir .. "/f", ("x"):rep(5000))
    assert.matches("^%d+\t%.\n$", check.ok(shipped:post("/commands/disk-usage", {})).stdout)
    check.problem(shipped:post("/commands/disk-usage", { path = "/" }), 403, "path_outside_base")
    assert.equal("pong", check.ok(shipped:post("/commands/ping", {})).stdout)
    local versions = check.ok(shipped:post("/commands/runtime-versions", { only = { "bash", "nosuchcmd_x" } })).result.versions
    assert.matches("^GNU bash", versions.bash)
    assert.is_nil(versions.nosuchcmd_x)
  end)
end)
