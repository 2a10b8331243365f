local check = require("support.check")
local files = require("support.files")
local server = require("support.server")
local sse = require("support.sse")

local CPU_MS = 300

--- A routes file with one route for each handler, GET /NAME.
local function routes_of(handlers, more)
  local lines = { "local time = require('abx.time')\nreturn { group = 'commands',\n" }
  for name, body in pairs(handlers) do
    lines[#lines + 1] = ("{ method = 'GET', path = '/h/%s', name = 'h.%s', summary = 'x', %s\nhandler = function(req) %s end "
      .. "},\n"):format(name, name, more and more[name] or "", body)
  end
  lines[#lines + 1] = "}\n"
  return table.concat(lines)
end

-- What must cost its request 504, within the budget.
local ENDLESS = {
  loop = "while true do end",
  warm = "local n = 0 for i = 1, 100000 do n = n + i end while true do n = n + 1 end",
  pcall = "while true do pcall(function() while true do end end) end",
  pcall_error = "while true do pcall(error) end",
  coroutine = "coroutine.wrap(function() while true do end end)()",
  coroutine_pcall = "while true do pcall(coroutine.wrap(function() while true do end end)) end",
  metamethod = "local t = setmetatable({}, { __index = function() while true do end end }) return { t.x }",
  close = "local x <close> = setmetatable({}, { __close = function() while true do end end }) error('x')",
  tail = "local function f() return f() end return f()",
  iterator = "for _ in function() return 1 end do end",
  sort = "local t = {} for i = 1, 1000 do t[i] = i end table.sort(t, function() while true do end end)",
  gsub = "string.gsub('x', 'x', function() while true do end end)",
  strings = "while true do local s = ('x'):rep(1000) .. 'y' end",
  memory_pcall = "local keep = {} while true do pcall(function() keep[#keep + 1] = ('x'):rep(1000000) .. #keep end) end",
  goto_loop = "::again:: goto again",
  sleeps = "while true do time.sleep(0) end",
  deadline = "time.sleep(60000)",
  many_naps = "while true do time.sleep(10) end",
  huge_strings = "local s, t = ('x'):rep(1e7), {} for i = 1, 3 do t[i] = s .. i end for i = 4, 1e4 do t[i] = t[i % 3 + 1] end "
    .. "table.sort(t)",
  huge_set = "return { ('a'):rep(1e6):find('[^' .. ('b'):rep(1e6) .. ']*c') }",
  works_between_waits = "local run <close> = try(require('abx.proc').start { command = 'exec sleep 60' }) "
    .. "while true do local t = os.clock() while os.clock() - t < 0.05 do end run:wait(1) end",
}
local DEADLINES = {
  sleeps = "deadline_ms = 500,", deadline = "deadline_ms = 500,", many_naps = "deadline_ms = 500,",
  works_between_waits = "deadline_ms = 500,",
}

-- What must cost its request 500.
local FAULTY = {
  ["nil"] = "return nil", nothing = "", number = "return 5", string = "return 'x'", boolean = "return true",
  ["function"] = "return print", error_string = "error('secret-word')", error_table = "error({})", error_nil = "error(nil)",
  error_number = "error(5)", assert_false = "assert(false)", arithmetic = "return nil + 1", index = "return req.nope.x",
  cycle = "local t = {} t.t = t return t", deep = "local t = {} for i = 1, 1000 do t = { t } end return { t }",
  holds_function = "return { x = print }", mixed_keys = "return { 1, 2, x = 3 }",
  reply_twice = "return reply { json = {}, bytes = 'x' }",
  status_99 = "return reply { status = 99, json = {} }", status_word = "return reply { status = 'ok', json = {} }",
  unknown_key = "return reply { body = 'x' }", split_header = "return reply { bytes = 'x', headers = { A = 'b\\r\\nC: d' } }",
  bad_header = "return reply { bytes = 'x', headers = { ['A b'] = 'c' } }", unknown_code = "fail('no_such_code', 'x')",
  gigabytes = "return { #('x'):rep(10 * 2^30 | 0) }",
  gc = "setmetatable({}, { __gc = function() while true do end end })", hook = "debug.sethook() while true do end",
  own_coroutine = "return { coroutine.wrap(function() return time.sleep(1) end)() }",
  huge_header = "return reply { bytes = 'x', headers = { A = ('b'):rep(60000) } }",
  unpack = "return { table.unpack({}, 1, 1e8) }", format = "return { x = ('%99999999d'):format(1) }",
}

-- What runs into the memory limit or that of the stack, or into the time limit where a sanitizer makes memory slow.
local GREEDY = {
  concat = "local t = {} for i = 1, 200 do t[i] = ('x'):rep(1000000) end return { table.concat(t) }",
  doubling = "local s = ('x'):rep(1000) while true do s = s .. s end",
  table_growth = "local t = {} while true do t[#t + 1] = {} end",
  recursion = "local function f() return 1 + f() end return { f() }",
}

-- Answers what each misuse raises.
local MISUSE = [[
  local proc, said = require("abx.proc"), {}
  local function note(f, ...)
    local ok, message = pcall(f, ...)
    said[#said + 1] = ok and "nothing" or message:gsub("^.-:%d+: ", "")
  end
  local run <close> = proc.start { command = "echo x" }
  note(proc.start, { command = "true", cdw = "." })
  note(proc.start, { command = "true", whatever = 1 })
  note(proc.start, { command = "true", 1 })
  note(proc.start, { command = "true", kind = "terminal", stdin = "x" })
  note(proc.start, { command = "true", cols = 80 })
  note(proc.start, { command = "true", kind = "tty" })
  note(run.captured, run)
  note(reply, { jsn = {} })
  return { said = said }
]]

describe("a handler", function()
  local abxd, baseline

  lazy_setup(function()
    local tables = server.copy_tables()
    files.write(tables.lua_dir .. "/routes/endless.lua", routes_of(ENDLESS, DEADLINES))
    files.write(tables.lua_dir .. "/routes/faulty.lua", routes_of(FAULTY))
    files.write(tables.lua_dir .. "/routes/greedy.lua", routes_of(GREEDY))
    files.write(tables.lua_dir .. "/routes/others.lua", routes_of {
      good = "return { ok = true }",
      nap = "time.sleep(1000) return { ok = true }",
      pattern = "return { x = (('a'):rep(24000):find('.-.-.-b')) or 0 }",
      coded = "fail('busy', 'come again', 'x')",
      tried = "try(nil, 'file_not_found', 'no such file: x', 'path')",
      caught = "local ok, failure = pcall(fail, 'busy', 'x') return { ok = ok }",
      status = "return reply { status = 202, headers = { ['X-A'] = 'b' }, json = { 1 } }",
      bytes = "return reply { bytes = 'a\\0b', headers = { ['Content-Type'] = 'text/x' } }",
      stream = "return reply { headers = { ['Content-Type'] = 'text/plain' }, stream = function(out) for i = 1, 3 do "
        .. "out:write(i .. ';') time.sleep(1) end end }",
      sse_breaks = "return reply { headers = { ['Content-Type'] = 'text/event-stream' }, stream = function(out) "
        .. "out:event('a', { n = 1 }) error('secret-word') end }",
      stream_breaks = "return reply { headers = { ['Content-Type'] = 'text/plain' }, stream = function(out) "
        .. "out:write('x') error('bug') end }",
      stream_loops = "return reply { headers = { ['Content-Type'] = 'text/event-stream' }, stream = function(out) "
        .. "out:event('a', {}) while true do end end }",
      globals = "x_global = 1",
      forgets = "local turn = try(require('abx.session').enter('forgotten')) "
        .. "try(require('abx.proc').start { command = 'exec sleep 60', session = turn }) error('x')",
      module = "require('abx.params').string = nil",
      misuse = MISUSE,
      sees = "local names = {} for name in pairs(req.params) do names[#names + 1] = name end "
        .. "return { method = req.method, path = req.path, id = req.id, agent = req.headers['user-agent'], n = #names }",
    })
    abxd = server.start { tables = tables, args = { "--limits-cpu-ms", tostring(CPU_MS) } }
    abxd.owns_tables = true
    baseline = abxd:baseline()
  end)
  after_each(function()
    assert.is_true(check.ok(abxd:get("/h/good")).ok)
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  it("is told its misuse", function()
    assert.same({
      "proc.start: unknown key 'cdw' (did you mean 'cwd'?)", "proc.start: unknown key 'whatever'",
      "proc.start: unknown key '1'", "'stdin' means nothing for a terminal", "'cols' is for terminals",
      "'kind' must be shell, process, terminal or helper, not tty",
      "this run keeps no output: start it with capture_bytes",
      "reply: unknown key 'jsn' (did you mean 'json'?)",
    }, check.ok(abxd:get("/h/misuse")).said)
  end)

  describe("that never ends costs 504 within its budget:", function()
    for name in pairs(ENDLESS) do
      it(name, function()
        local conn = abxd:connect()
        conn:send_request("GET", "/h/" .. name)
        check.prompt(abxd, 1)
        local problem = check.problem(conn:read_response(), 504, "handler_timeout")
        conn:close()
        assert.is_nil(problem.detail:find("%.lua"))
      end)
    end
  end)

  describe("that is faulty costs 500:", function()
    for name in pairs(FAULTY) do
      it(name, function()
        local answer = abxd:get("/h/" .. name, { timeout_s = 30 })
        local problem = check.problem(answer, 500, "internal_error")
        assert.is_nil(answer.body:find("secret-word", 1, true))
        assert.is_nil(answer.body:find("faulty.lua", 1, true))
        local line = abxd:wait_log(function(entry)
          return entry.level == "error" and entry.request_id == problem.request_id
        end)
        assert.equal("h." .. name, line.route)
      end)
    end
  end)

  describe("that wants too much memory costs 500:", function()
    local patient

    lazy_setup(function()
      -- Where page faults are slow, 64 MiB take longer than the budget of the others.
      patient = server.start { tables = abxd.tables, args = { "--limits-cpu-ms", "20000" } }
    end)
    lazy_teardown(function()
      patient:stop()
    end)

    for name in pairs(GREEDY) do
      it(name, function()
        local before = patient:rss_bytes()
        check.problem(patient:get("/h/" .. name, { timeout_s = 60 }), 500, "internal_error")
        if server.sanitizer == "none" then -- a sanitizer keeps what was freed
          assert.is_true(patient:rss_bytes() - before < 100 * 1024 * 1024)
        end
        assert.is_true(check.ok(patient:get("/h/good")).ok)
      end)
    end
  end)

  it("that matches a pathological pattern is bounded", function()
    local conn = abxd:connect()
    conn:send_request("GET", "/h/pattern")
    check.prompt(abxd, 1.5)
    local status = conn:read_response().status
    conn:close()
    assert.is_true(status == 500 or status == 504, status)
  end)

  it("cannot leave a global behind", function()
    check.problem(abxd:get("/h/globals"), 500, "internal_error")
  end)

  it("cannot change what others share", function()
    check.problem(abxd:get("/h/module"), 500, "internal_error")
  end)

  it("that forgets to close a run and a session's turn leaves neither", function()
    check.problem(abxd:get("/h/forgets"), 500, "internal_error")
    local answer = check.ok(abxd:post("/shell", { command = "echo x", session = "forgotten" }))
    assert.equal("x\n", answer.stdout)
  end)

  it("lets others run while it waits", function()
    local conn = abxd:connect()
    conn:send_request("GET", "/h/nap")
    assert.is_true(check.ok(abxd:get("/h/good")).ok)
    check.unanswered(conn)
    assert.is_true(check.ok(conn:read_response()).ok)
    conn:close()
  end)

  it("fails by a code, and answers in full", function()
    local problem = check.problem(abxd:get("/h/coded"), 409, "busy", "x")
    assert.equal("come again", problem.detail)
    problem = check.problem(abxd:get("/h/tried"), 404, "file_not_found", "path")
    assert.equal("no such file: x", problem.detail)
    assert.is_false(check.ok(abxd:get("/h/caught")).ok)
    local answer = abxd:get("/h/status")
    assert.same({ 202, "b", "[1]", "application/json" }, { answer.status, answer.headers["x-a"], answer.body,
      answer.headers["content-type"] })
    answer = abxd:get("/h/bytes")
    assert.same({ 200, "a\0b", "text/x" }, { answer.status, answer.body, answer.headers["content-type"] })
    answer = abxd:get("/h/stream")
    assert.same({ "1;2;3;", "chunked" }, { answer.body, answer.headers["transfer-encoding"] })
  end)

  it("sees its request", function()
    assert.same({ method = "GET", path = "/h/sees", id = "r-1", agent = "busted", n = 0 }, check.ok(abxd:get("/h/sees", {
      headers = { ["X-Request-Id"] = "r-1", ["User-Agent"] = "busted" } })))
  end)

  it("that breaks in a stream ends it visibly", function()
    local answer = abxd:stream("GET", "/h/sse_breaks")
    local events = sse.events(answer)
    assert.equal("a", events:next().event)
    local event = events:next()
    assert.same({ "error", 500, "internal_error" }, { event.event, event.data.status, event.data.code })
    assert.is_nil(event.raw:find("secret-word", 1, true))
    assert.has_error(function()
      events:next()
    end, "the stream was cut")
    answer:close()

    answer = abxd:stream("GET", "/h/stream_breaks"):finish()
    assert.same({ "x", true }, { answer.body, answer.cut })
    answer:close()

    answer = abxd:stream("GET", "/h/stream_loops")
    events = sse.events(answer)
    assert.equal("a", events:next().event)
    event = events:next()
    assert.same({ "error", "handler_timeout" }, { event.event, event.data.code })
    answer:close()
  end)

  it("ends when its client leaves", function()
    for _ = 1, 20 do
      local conn = abxd:connect()
      conn:send_request("GET", "/h/nap")
      conn:abort()
    end
  end)
end)
