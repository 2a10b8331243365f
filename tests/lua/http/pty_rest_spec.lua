--- Terminals by REST alone: opening, listing, closing. Whatever needs a WebSocket is in the other pty specs.
local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local process = require("support.process")
local server = require("support.server")

local TIME = "^%d+%-%d%d%-%d%dT[%d:]+%.%d%d%dZ$"

describe("terminals by REST", function()
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start { env = { SHELL = "/bin/sh", LINES = "7", COLUMNS = "7", TERM = "vt52" } }
    baseline = abxd:baseline()
  end)

  local function list(query)
    return check.ok(abxd:get("/pty" .. (query or ""))).terminals
  end

  local function close(id)
    return check.ok(abxd:request("DELETE", "/pty/" .. id))
  end

  after_each(function()
    for _, terminal in ipairs(list()) do
      close(terminal.id)
    end
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  --- Opens one; the decoded answer.
  local function create(fields, options)
    local answer = abxd:post("/pty", fields or {}, options)
    assert.equal(201, answer.status, answer.body)
    return answer:json()
  end

  local function find(id)
    for _, terminal in ipairs(list()) do
      if terminal.id == id then
        return terminal
      end
    end
  end

  --- What the process table tells once it has ended.
  local function ended(id)
    local found = check.ok(abxd:get("/processes/" .. id .. "?wait_ms=30000"))
    assert.equal("exited", found.state)
    return found
  end

  --- Runs a command on a terminal to its end; what it wrote into the file "out".
  local function run(fields)
    local id = create(fields).id
    assert.equal(0, ended(id).exit_code)
    close(id)
    return files.read(abxd.base_dir .. "/out")
  end

  describe("POST /pty", function()
    it("opens the login shell unless told another program", function()
      local made = create()
      assert.matches("^p%-%x+$", made.id)
      assert.matches("^%x+$", made.ticket)
      assert.same({ 32, 80, 24 }, { #made.ticket, made.cols, made.rows })
      assert.equal(("ws://127.0.0.1:%d/pty/%s"):format(abxd.ws_port, made.id), made.ws_url)
      local found = find(made.id)
      assert.same({ made.pid, { "/bin/sh" } }, { found.pid, found.argv })
      assert.equal("/bin/sh\0", files.read(("/proc/%d/cmdline"):format(made.pid)))
    end)

    it("takes no SHELL that nobody can log in with", function()
      for _, shell in ipairs { "/usr/sbin/nologin", "/bin/false", "sh", "/nowhere", "" } do
        local other <close> = server.start { env = { SHELL = shell } }
        local answer = other:post("/pty", {})
        assert.equal(201, answer.status, answer.body)
        local argv = check.ok(other:get("/pty")).terminals[1].argv
        assert.same({ 1, "/", true }, { #argv, argv[1]:sub(1, 1), argv[1] ~= shell })
        check.ok(other:request("DELETE", "/pty/" .. answer:json().id))
      end
    end)

    it("gives the program a terminal of that size and kind, in that place", function()
      files.mkdir(abxd.base_dir .. "/here")
      local script = "test -t 0 && test -t 1 && test -t 2 && { stty size; echo $TERM; pwd; echo ${LINES-none} ${COLUMNS-none};"
        .. " echo $A; ps -o sid=,pgid=,tpgid= -p $$ 2>/dev/null | tr -s ' ' '\\n' | sort -u | grep -c $$; } > "
        .. abxd.base_dir .. "/out 2>&1"
      local path = abxd.base_dir .. "/here\n"
      assert.equal("24 80\nxterm-256color\n" .. path .. "none none\nb c\n1\n",
        run { command = script, cwd = "here", env = { A = "b c" } })
      assert.equal("1000 1\nvt100\n" .. path .. "none none\n\n1\n",
        run { argv = { "/bin/sh", "-c", script }, cwd = "here", cols = 1, rows = 1000, term = "vt100" })
      assert.equal("1 1000\ndumb\n" .. path .. "5 6\n\n1\n", run {
        command = script, cwd = "here", cols = 1000, rows = 1, term = "vt100",
        env = { TERM = "dumb", LINES = "5", COLUMNS = "6" },
      })
      assert.equal("0\n", run { command = "env | grep -c ^TERM= > out; true", env = { TERM = json.null } })
    end)

    it("gives it what POST /env set, and nothing of the server's", function()
      check.ok(abxd:post("/env", { set = { ABX_SPEC = "from env" } }))
      local out = run { command = "{ echo $ABX_SPEC; env | grep -c ^ABX_SERVER_; ls /proc/self/fd; "
        .. "grep -E 'Sig(Blk|Ign)' /proc/self/status; } > out" }
      check.ok(abxd:post("/env", { unset = { "ABX_SPEC" } }))
      assert.equal("from env\n0\n0\n1\n2\n3\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n", out)
    end)

    it("refuses with all faulty fields at once", function()
      assert.same({ "cols", "rows", "tag", "term", "timeout_ms" }, check.faulty_fields(abxd:post("/pty", {
        cols = 0, rows = 1001, term = ("x"):rep(65), tag = ("x"):rep(257), timeout_ms = -1 })))
      assert.same({ "argv", "command", "term" }, check.faulty_fields(abxd:post("/pty", {
        command = "a", argv = { "a" }, term = "a b" })))
      for _, size in ipairs { 0, -1, 1001, 65536, 1000000000, 80.5, "80", "", true, {} } do
        assert.same({ "cols", "rows" }, check.faulty_fields(abxd:post("/pty", { cols = size, rows = size })))
      end
      for _, name in ipairs { "stdin", "stdin_encoding", "keep_stdin", "size" } do
        assert.same({ name }, check.faulty_fields(abxd:post("/pty", { [name] = "x" })))
      end
      assert.same({}, list())
    end)

    it("refuses what cannot be started", function()
      files.write(abxd.base_dir .. "/noexec", "#!/bin/sh\n")
      local cases = {
        { { argv = { "nosuchcmd_x" } }, 404, "executable_not_found", "argv[0]" },
        { { argv = { "./noexec" } }, 400, "not_executable", "argv[0]" },
        { { cwd = "nowhere" }, 400, "bad_cwd", "cwd" },
        { { cwd = "/" }, 403, "path_outside_base", "cwd" },
        { { env = { ABX_SERVER_X = "1" } }, 403, "protected_variable", "env" },
        { { env = { ["A;touch x"] = "1" } }, 400, "invalid_request", "env" },
        { { argv = { "echo", ("x"):rep(131072) } }, 413, "payload_too_large" },
      }
      for _, case in ipairs(cases) do
        check.problem(abxd:post("/pty", case[1]), case[2], case[3], case[4])
      end
      assert.same({}, list())
    end)

    it("tells every end truly", function()
      local ends = {
        { "kill -9 $$", 137, "SIGKILL" }, { "kill -SEGV $$", 139, "SIGSEGV" }, { "nosuchcmd_x", 127, json.null },
        { "exit 259", 3, json.null }, { "true", 0, json.null },
      }
      for _, case in ipairs(ends) do
        local id = create({ command = case[1] }).id
        local found = ended(id)
        assert.same({ case[1], case[2], case[3] }, { case[1], found.exit_code, found.signal })
        found = find(id)
        assert.same({ case[2], case[3], json.null, json.null }, {
          found.exit_code, found.signal, found.foreground, found.cwd })
      end
      local found = ended(create({ command = "exec sleep 3000", timeout_ms = 100 }).id)
      assert.same({ 143, "SIGTERM", true }, { found.exit_code, found.signal, found.timed_out })
    end)

    it("tells the address that its client has, or the one of the configuration", function()
      local function url(target, host)
        local made = create({}, { headers = { Host = host } })
        return made.ws_url:gsub("/pty/" .. made.id:gsub("%-", "%%-") .. "$", "") == target
      end
      for host, name in pairs { ["localhost:9"] = "localhost", ["localhost"] = "localhost", ["127.0.0.1"] = "127.0.0.1",
        ["[::1]:9"] = "[::1]", ["[::1]"] = "[::1]" } do
        assert.is_true(url(("ws://%s:%d"):format(name, abxd.ws_port), host), host)
      end
      local other <close> = server.start { args = { "--ws-public-url", "wss://box.example.org/term/" } }
      local made = other:post("/pty", {}):json()
      assert.equal("wss://box.example.org/term/pty/" .. made.id, made.ws_url)
      check.ok(other:request("DELETE", "/pty/" .. made.id))
    end)

    it("has a limit of its own", function()
      local other <close> = server.start { args = { "--limits-terminals", "2", "--limits-processes", "1" } }
      local ids = {}
      for i = 1, 2 do
        ids[i] = other:post("/pty", { command = "exec sleep 3000" }):json().id
      end
      check.problem(other:post("/pty", {}), 429, "too_many_terminals")
      assert.equal(0, check.ok(other:post("/shell", { command = "true" })).exit_code)
      assert.equal(2, check.ok(other:get("/system/metrics")).server.terminals)
      check.ok(other:request("DELETE", "/pty/" .. ids[1]))
      ids[1] = other:post("/pty", { command = "exec sleep 3000" }):json().id
      for _, id in ipairs(ids) do
        check.ok(other:request("DELETE", "/pty/" .. id))
      end
      assert.equal(0, check.ok(other:get("/system/metrics")).server.terminals)
    end)
  end)

  describe("GET /pty", function()
    it("tells what is where", function()
      assert.same({}, list())
      assert.is_true(json.is_array(list()))
      files.mkdir(abxd.base_dir .. "/there")
      local first = create { argv = { "bash", "--norc", "-c", "set -m; printf abc; cd there; sleep 3000", "--token=x" },
        tag = "mine", cols = 100, rows = 30 }
      local second = create { command = "exec sleep 3000" }
      local found
      assert(process.poll(20000, function()
        found = list()
        return found[1].foreground == "sleep" and found[1].offset == 3
      end), "it never came to the foreground")
      assert.same({ first.id, second.id }, { found[1].id, found[2].id })
      local told = found[1]
      for _, name in ipairs { "created_at", "started_at", "last_activity_at" } do
        assert.matches(TIME, told[name])
        told[name] = nil
      end
      assert.equal("integer", math.type(told.duration_ms))
      told.duration_ms = nil
      assert.same({
        id = first.id, pid = first.pid, tag = "mine", cols = 100, rows = 30, foreground = "sleep", offset = 3, clients = 0,
        command = "bash --norc -c set -m; printf abc; cd there; sleep 3000 --token=***",
        argv = { "bash", "--norc", "-c", "set -m; printf abc; cd there; sleep 3000", "--token=***" },
        cwd = abxd.base_dir .. "/there", exit_code = json.null, signal = json.null, timed_out = false,
      }, told)
      assert.same({ "exec sleep 3000", json.null, json.null, abxd.base_dir }, {
        found[2].command, found[2].argv, found[2].tag, found[2].cwd })
    end)

    it("gives the bytes of a directory that is not UTF-8", function()
      files.mkdir(abxd.base_dir .. "/b\xff")
      local id = create({ command = "cd b?; exec sleep 3000" }).id
      local found
      assert(process.poll(20000, function()
        found = find(id)
        return found.cwd_base64
      end))
      assert.equal(abxd.base_dir .. "/b\u{FFFD}", found.cwd)
      assert.equal(abxd.base_dir .. "/b\xff", (require("mime").unb64(found.cwd_base64)))
    end)

    it("makes a ticket for each where it is asked to", function()
      local seen, count = {}, 0
      for _ = 1, 2 do
        seen[create({ command = "exec sleep 3000" }).ticket] = true
      end
      for _, query in ipairs { "?tickets=true", "?tickets=true" } do
        for _, terminal in ipairs(list(query)) do
          assert.matches("^%x+$", terminal.ticket)
          seen[terminal.ticket] = true
        end
      end
      for ticket in pairs(seen) do
        assert.equal(32, #ticket)
        count = count + 1
      end
      assert.equal(6, count)
      assert.is_nil(list()[1].ticket)
      assert.is_nil(list("?tickets=false")[1].ticket)
      assert.same({ "tickets" }, check.faulty_fields(abxd:get("/pty?tickets=1")))
      assert.same({ "since" }, check.faulty_fields(abxd:get("/pty?since=1")))
    end)
  end)

  describe("DELETE /pty/{id}", function()
    it("hangs up, and tells the end", function()
      for _, fields in ipairs { {}, { command = "exec sleep 3000" }, { argv = { "bash", "--norc" } } } do
        local made = create(fields)
        -- A bash that is still starting may overlook the signal.
        assert.is_true(fields.command ~= nil or process.poll(10000, function()
          return find(made.id).offset > 0 or nil
        end))
        local answer = close(made.id)
        assert.same({ made.id, 129, "SIGHUP", false }, {
          answer.id, answer.exit_code, answer.signal, answer.timed_out })
        assert.matches(TIME, answer.started_at)
        assert.equal("integer", math.type(answer.duration_ms))
        assert.is_nil(process.stat(made.pid))
        assert.is_nil(find(made.id))
        check.problem(abxd:request("DELETE", "/pty/" .. made.id), 404, "terminal_not_found", "id")
        local told = ended(made.id)
        assert.same({ "terminal", 129, "SIGHUP", made.pid }, { told.kind, told.exit_code, told.signal, told.pid })
      end
    end)

    it("ends the whole tree, and what does not listen", function()
      local sleep = check.sleep(3001)
      local made = create { command = "trap '' HUP; " .. sleep .. " & (setsid " .. sleep .. " &); echo yes > ready; wait" }
      assert(process.poll(20000, function()
        return files.exists(abxd.base_dir .. "/ready") and #check.pids_of(sleep) == 2
      end))
      local answer = close(made.id)
      assert.same({ 137, "SIGKILL" }, { answer.exit_code, answer.signal })
      assert.equal(0, check.gone(sleep))
    end)

    it("of one that has ended tells how, then it is gone", function()
      local id = create({ command = "exit 5" }).id
      ended(id)
      local answer = close(id)
      assert.same({ 5, json.null }, { answer.exit_code, answer.signal })
      check.problem(abxd:request("DELETE", "/pty/" .. id), 404, "terminal_not_found", "id")
    end)

    it("goes on when its client leaves", function()
      local made = create { command = "trap '' HUP; echo yes > deaf; sleep 3000; sleep 3000" }
      assert(process.poll(20000, function()
        return files.exists(abxd.base_dir .. "/deaf")
      end))
      local conn = abxd:connect()
      conn:send_request("DELETE", "/pty/" .. made.id)
      assert(process.poll(20000, function()
        return not find(made.id)
      end))
      check.unanswered(conn)
      conn:abort()
      assert.equal("SIGKILL", ended(made.id).signal)
    end)

    it("knows terminals only", function()
      local made = create { command = "exec sleep 3000" }
      local other = abxd:post("/processes", { command = "exec sleep 3000" }):json()
      for _, id in ipairs { "p-0", other.id, tostring(other.pid), tostring(made.pid), made.id:upper(),
        made.id .. "x", "..%2Fpty%2F" .. made.id } do
        check.problem(abxd:request("DELETE", "/pty/" .. id), 404, "terminal_not_found", "id")
      end
      check.problem(abxd:request("DELETE", "/pty/" .. made.id .. "%00"), 400, "invalid_request")
      check.problem(abxd:request("DELETE", "/pty/" .. ("x"):rep(65)), 400, "invalid_request", "id")
      assert.equal(made.id, list()[1].id)
      check.ok(abxd:post("/processes/" .. other.id .. "/signal", { signal = "KILL", wait_ms = 30000 }))
    end)
  end)

  describe("in the process table", function()
    it("are listed and signalled like all others", function()
      local made = create { command = "exec sleep 3000", tag = "mine" }
      local found
      for _, entry in ipairs(check.ok(abxd:get("/processes")).processes) do
        found = entry.id == made.id and entry or found
      end
      assert.same({ "terminal", "mine", made.pid, "running" }, { found.kind, found.tag, found.pid, found.state })
      local answer = check.ok(abxd:post("/processes/" .. made.id .. "/signal", { signal = "INT", wait_ms = 30000 }))
      assert.same({ 130, "SIGINT" }, { answer.exit_code, answer.exit_signal })
    end)

    it("have no pipes: input and output say where theirs are", function()
      local made = create { command = "exec sleep 3000" }
      local target = "/processes/" .. made.id
      for _, answer in ipairs { abxd:get(target .. "/output"), abxd:get(target .. "/output?follow=true"),
        abxd:post(target .. "/stdin", { data = "x" }) } do
        assert.matches("WebSocket", check.problem(answer, 400, "invalid_request", "id").detail, 1, true)
      end
    end)
  end)

  it("are not there while the group is off", function()
    local tables = server.copy_tables()
    files.write(tables.lua_dir .. "/routes/mine.lua", [[
      local pty, proc, said = require("abx.pty"), require("abx.proc"), {}
      local function note(_, code, message)
        said[#said + 1] = ("%s: %s"):format(code, message)
      end
      return { group = "core", { method = "GET", path = "/mine", name = "mine", summary = "x", handler = function()
        note(pty.list(true))
        note(pty.close("p-0"))
        note(pty.ticket("p-0"))
        note(proc.start { command = "true", kind = "terminal" })
        return { said = said }
      end } }
    ]])
    local other <close> = server.start { tables = tables, args = { "--disabled-groups", "terminal" } }
    other.owns_tables = true
    local said = check.ok(other:get("/mine")).said
    assert.equal(4, #said)
    for _, text in ipairs(said) do
      assert.equal("unavailable: terminals are switched off", text)
    end
    for _, request in ipairs { { "POST", "/pty" }, { "GET", "/pty" }, { "DELETE", "/pty/p-0" } } do
      local problem = check.problem(other:request(request[1], request[2]), 403, "capability_disabled")
      assert.matches("terminal", problem.detail, 1, true)
    end
    assert.equal(json.null, check.ok(other:get("/capabilities")).websocket)
    assert.is_nil(other.ws_port)
    for _, row in ipairs(check.ok(other:get("/system/ports")).ports) do
      assert.is_true(row.port == other.port or not row.self)
    end
    assert.equal(0, check.ok(other:get("/system/metrics")).server.terminals)
    check.problem(other:get("/processes/p-0/output"), 404, "process_not_found")
  end)

  it("are told of by the capabilities", function()
    assert.same({ port = abxd.ws_port, path = "/pty/{id}" }, check.ok(abxd:get("/capabilities")).websocket)
  end)
end)
