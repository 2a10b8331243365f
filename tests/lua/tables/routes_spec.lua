local stubs = require("tests.lua.tables.stubs")
local codes = require("abx.codes")
local json = require("abx.json")
local problem = require("abx.problem")

local function call(name, params)
  return stubs.route(name).handler { params = params, id = "r-1", headers = {} }
end

describe("the shipped routes", function()
  before_each(stubs.load)

  it("declare without a fault", function()
    assert.are.same({}, stubs.faults)
  end)

  it("are those of core, commands, processes, terminals and the system, and those of the packs", function()
    local found = {}
    for _, route in ipairs(stubs.routes) do
      found[#found + 1] = ("%s %s %s"):format(route.method, route.path, route.group)
    end
    assert.are.same({
      "GET /health core", "GET /commands commands", "POST /commands/{name} commands", "POST /upload commands",
      "GET /download commands", "POST /shell commands", "POST /shell/stream commands",
      "GET /processes process", "POST /processes process", "GET /processes/{id} process",
      "POST /processes/{id}/signal process", "GET /processes/{id}/output process",
      "POST /pty terminal", "GET /pty terminal", "DELETE /pty/{id} terminal",
      "GET /capabilities core", "GET /system/info system", "GET /system/metrics system", "GET /system/disk system",
      "GET /system/ports system", "GET /env system", "POST /env system",
      "GET /openapi.json core", "POST /processes/{id}/stdin process",
    }, found)
  end)

  it("are open for health only", function()
    for _, route in ipairs(stubs.routes) do
      assert.are.equal(route.name ~= "health", route.auth_required, route.name)
    end
  end)

  it("name only codes that there are", function()
    for _, route in ipairs(stubs.routes) do
      for _, code in ipairs(route.errors or {}) do
        assert.is_number(codes[code], code)
      end
    end
  end)
end)

describe("error codes for documents", function()
  it("are those of the server", function()
    local in_c = {}
    for line in io.lines("src/base/err.h") do
      local status, code = line:match('X%(%w[%w_]*, (%d+), "([%w_]+)"%)')
      if code then
        in_c[code] = tonumber(status)
      end
    end
    assert.are.equal(404, in_c.file_not_found)
    assert.are.same(in_c, codes)
  end)

  it("have the server's titles", function()
    local in_c = {}
    for line in io.lines("src/request/problem.c") do
      local status, title = line:match('{(%d%d%d), "([%a ]+)"}')
      if status then
        in_c[tonumber(status)] = title
      end
    end
    assert.are.equal("Not Found", in_c[404])
    assert.are.same(in_c, problem.titles)
    for code, status in pairs(codes) do
      assert.is_string(problem.titles[status], code)
    end
  end)
end)

describe("GET /health", function()
  before_each(stubs.load)

  it("tells version and uptime", function()
    assert.are.same({ status = "ok", version = "1.2.3", uptime_ms = 5 }, call("health", {}))
  end)

  it("is 503 while the server drains", function()
    stubs.draining = true
    local answer = call("health", {})
    assert.are.equal(503, answer.status)
    assert.are.same({ status = "shutting_down" }, answer.json)
  end)
end)

describe("GET /capabilities", function()
  before_each(stubs.load)

  it("counts the enabled routes of no pack", function()
    assert.are.equal(22, call("capabilities", {}).endpoint_count)
    stubs.route("shell").enabled = false
    assert.are.equal(21, call("capabilities", {}).endpoint_count)
  end)

  it("lists all groups, with a reason where there is nothing yet", function()
    local answer = call("capabilities", {})
    assert.are.equal(8, #answer.groups)
    local core, browser = answer.groups[1], answer.groups[8]
    assert.are.equal("core", core.name)
    assert.is_true(core.available)
    assert.is_nil(core.reason)
    assert.are.equal(3, #core.endpoints)
    assert.are.same({
      method = "GET", path = "/health", name = "health", summary = "Whether the server is up", auth_required = false,
      streaming = false,
    }, core.endpoints[1])
    assert.are.equal("openapi", core.endpoints[3].pack)
    assert.is_false(browser.enabled)
    assert.is_false(browser.available)
    assert.are.equal("this version has no routes for it", browser.reason)
  end)

  it("tells where terminals are, and the defaults", function()
    local answer = call("capabilities", {})
    assert.are.same({ port = 8081, path = "/pty/{id}" }, answer.websocket)
    stubs.ws_port = 0
    assert.are.equal(json.null, call("capabilities", {}).websocket)
    assert.are.same({ base_dir = "/base", shell = "/bin/bash", timeout_ms = 120000 }, answer.defaults)
    assert.are.equal("walk", answer.process_tree)
  end)
end)

describe("commands", function()
  before_each(stubs.load)

  it("are listed with JSON Schema, the hidden ones not", function()
    local list = call("commands.list", {}).commands
    assert.are.equal(4, #list)
    assert.are.equal("disk-usage", list[1].name)
    assert.are.equal(60000, list[1].timeout_ms)
    assert.are.equal("integer", list[1].parameters.properties.depth.type)
    assert.is_false(list[1].parameters.additionalProperties)
    assert.are.equal("runtime-versions", list[4].name)
  end)

  it("that do not exist are 404 and name no other", function()
    local ok, fault = pcall(call, "commands.run", { name = "pong", arguments = {} })
    assert.is_false(ok)
    assert.are.equal("command_not_found", fault.code)
    assert.is_nil(fault.message:find("ping", 1, true))
  end)

  it("refuse faulty arguments, all at once", function()
    stubs.check = function()
      return nil, "invalid_request", "2 faults", { { field = "a", problem = "p" }, { field = "b", problem = "q" } }
    end
    local answer = call("commands.run", { name = "ping", arguments = {} })
    assert.are.equal(400, answer.status)
    assert.are.equal("application/problem+json", answer.headers["Content-Type"])
    assert.are.equal("invalid_request", answer.json.code)
    assert.are.equal("r-1", answer.json.request_id)
    assert.are.equal(2, #answer.json.errors)
  end)

  it("that wrap a program answer like a shell run, hidden or not", function()
    local run = stubs.fake_run { stdout = "hello" }
    stubs.start = function(spec)
      assert.are.same({ "printf", "%s", "hello" }, spec.argv)
      return run
    end
    local answer = call("commands.run", { name = "ping", arguments = { message = "hello" } })
    assert.are.equal("hello", answer.stdout)
    assert.are.equal(0, answer.exit_code)
    assert.is_false(answer.running)
    assert.are.same({ "wait nil", "output utf-8", "close" }, run.done)
  end)

  it("that are Lua answer their result, also when it is nothing or false", function()
    stubs.commands = {
      { name = "nothing", run = function() end },
      { name = "no", run = function() return false end },
      { name = "sum", run = function(args) return args.a + 1 end },
    }
    assert.are.same(
      { name = "nothing", result = json.null, duration_ms = 0 },
      call("commands.run", { name = "nothing", arguments = {} })
    )
    assert.are.equal(false, call("commands.run", { name = "no", arguments = {} }).result)
    assert.are.equal(3, call("commands.run", { name = "sum", arguments = { a = 2 } }).result)
  end)
end)

describe("POST /shell", function()
  local run, spec
  before_each(function()
    stubs.load()
    run = stubs.fake_run { stdout = "out" }
    stubs.start = function(given)
      spec = given
      return run
    end
  end)

  local function shell(params)
    params.encoding = params.encoding or "utf-8"
    params.max_output_bytes = 100
    return call("shell", params)
  end

  it("waits and answers", function()
    local answer = shell { command = "ls", timeout_ms = 5 }
    assert.are.equal("ls", spec.command)
    assert.are.equal(100, spec.capture_bytes)
    assert.are.equal("p-1", answer.id)
    assert.are.equal(42, answer.pid)
    assert.are.equal("/base", answer.cwd)
    assert.are.equal("out", answer.stdout)
    assert.is_false(answer.running)
    assert.are.same({ "wait nil", "output utf-8", "close" }, run.done)
  end)

  it("answers after wait_ms and lets the run go on", function()
    run = stubs.fake_run { ended = false }
    local answer = shell { command = "sleep 9", wait_ms = 10 }
    assert.is_true(answer.running)
    assert.are.equal(json.null, answer.exit_code)
    assert.are.equal(json.null, answer.signal)
    assert.are.same({ "wait 10", "detach", "output utf-8", "close" }, run.done)
  end)

  it("lets go at once where a leaving client must not matter", function()
    shell { command = "ls", on_disconnect = "continue" }
    assert.are.same({ "detach", "wait nil", "output utf-8", "close" }, run.done)
  end)

  it("holds a session's turn for the run", function()
    local closed = 0
    stubs.enter = function(name)
      return setmetatable({ name = name }, { __close = function() closed = closed + 1 end })
    end
    shell { command = "cd /", session = "s" }
    assert.are.equal("s", spec.session.name)
    assert.are.equal(1, closed)
  end)

  it("refuses a session with argv", function()
    local answer = shell { argv = { "ls" }, session = "s" }
    assert.are.equal(400, answer.status)
    assert.are.equal("session", answer.json.errors[1].field)
  end)

  it("refuses neither and both of command and argv", function()
    assert.are.equal(2, #shell({}).json.errors)
    assert.are.equal(2, #shell({ command = "a", argv = { "a" } }).json.errors)
  end)

  it("gives the bytes of a directory that is not UTF-8", function()
    run.cwd = "/base/\xff"
    local answer = shell { command = "pwd" }
    assert.are.equal("/base/\u{FFFD}", answer.cwd)
    assert.are.equal("L2Jhc2Uv/w==", answer.cwd_base64)
  end)
end)

describe("POST /shell/stream", function()
  local run
  before_each(function()
    stubs.load()
    run = stubs.fake_run { streamed = true }
    stubs.start = function(spec)
      assert.is_true(spec.pace)
      return run
    end
  end)

  it("streams after the handler is over", function()
    local answer = call("shell.stream", { command = "ls", encoding = "base64" })
    assert.are.same({
      ["Content-Type"] = "text/event-stream", ["Cache-Control"] = "no-cache", ["X-Accel-Buffering"] = "no",
    }, answer.headers)
    assert.are.same({}, run.done)
    answer.stream("out")
    assert.are.equal("base64", run.stream_options.encoding)
    assert.are.same({ "close" }, run.done)
  end)

  it("ends after wait_ms and lets the run go on", function()
    run = stubs.fake_run { streamed = nil }
    call("shell.stream", { command = "sleep 9", wait_ms = 10 }).stream("out")
    assert.are.equal(10, run.stream_options.wait_ms)
    assert.are.same({ "detach", "close" }, run.done)
  end)

  it("lets the run go on where it is told to", function()
    call("shell.stream", { command = "ls", on_disconnect = "continue" }).stream("out")
    assert.are.same({ "detach", "close" }, run.done)
  end)
end)

describe("POST /upload", function()
  before_each(stubs.load)

  it("hands on the body and what it goes by", function()
    local given
    stubs.upload = function(body, options)
      given = { body, options }
      return json.array { { path = "/base/a", size = 1, sha256 = "00", created = true } }
    end
    local answer = stubs.route("upload").handler {
      body = "body", headers = { ["content-type"] = "text/plain" },
      params = { path = "a", overwrite = true, create_parents = false, mode = "0600", sha256 = ("A"):rep(64) },
    }
    assert.are.same({ "body", {
      content_type = "text/plain", path = "a", overwrite = true, create_parents = false, mode = "0600", sha256 = ("a"):rep(64),
    } }, given)
    assert.are.equal("/base/a", answer.files[1].path)
  end)
end)
