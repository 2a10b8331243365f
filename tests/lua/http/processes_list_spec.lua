--- GET /processes and GET /processes/{id}.
local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local json = require("support.json")
local mime = require("mime")
local process = require("support.process")
local server = require("support.server")
local uv = require("luv")

--- Every field, by the type of its value; null where the type ends in ?.
local FIELDS = {
  id = "string", pid = "integer", ppid = "integer?", kind = "string?", tag = "string?", command = "string", argv = "table?",
  cwd = "string", user = "string", state = "string", cpu_percent = "number?", rss_bytes = "integer?",
  exit_code = "integer?", signal = "string?", timed_out = "boolean", started_at = "string", duration_ms = "integer",
}

local function type_of(value)
  return math.type(value) == "integer" and "integer" or type(value)
end

local function assert_fields(entry)
  for name, kind in pairs(FIELDS) do
    local value, is = entry[name], type_of(entry[name])
    local right = kind == is .. "?" or kind == is or (value == json.null and kind:sub(-1) == "?") or
      (kind:find("^number") and is == "integer")
    assert.is_true(right, ("%s is %s"):format(name, tostring(value)))
  end
  for name in pairs(entry) do
    assert.is_true(FIELDS[name] ~= nil or name == "children", name)
  end
end

describe("the lists of processes", function()
  local abxd, baseline, started

  lazy_setup(function()
    abxd = server.start { env = { ABX_SERVER_TOKEN = "t" } }
    baseline = abxd:baseline()
  end)
  before_each(function()
    started = {}
  end)
  after_each(function()
    for _, pid in ipairs(started) do
      uv.kill(-pid, "sigkill")
    end
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  --- Starts a program, to be killed with its group after the test; {id=, pid=, started_at=}.
  local function start(fields)
    local answer = abxd:post("/processes", fields)
    assert.equal(201, answer.status, answer.body)
    local run = answer:json()
    started[#started + 1] = run.pid
    return run
  end

  local function list(query)
    return check.ok(abxd:get("/processes" .. (query or ""))).processes
  end

  local function get(id, query)
    return abxd:get("/processes/" .. http.escape(tostring(id)) .. (query or ""))
  end

  --- The one with that pid, or nil.
  local function of_pid(entries, pid)
    local found
    for _, entry in ipairs(entries) do
      if entry.pid == pid then
        assert.is_nil(found, "it is listed once")
        found = entry
      end
    end
    return found
  end

  --- Waits until what a program runs as is what is expected of it; its pid.
  local function await(run, accept)
    local found
    assert(process.poll(10000, function()
      found = check.ok(get(run.id, ""))
      return accept(found)
    end), "it did not come that far")
    return found
  end

  --- Starts a command that leads to a child, and waits for it.
  local function start_with_child(command)
    local run = start { command = command }
    return run, await(run, function(found)
      local child = found.children[1]
      return child and child.argv[1] ~= "/bin/bash" -- no longer the shell's copy
    end).children[1]
  end

  it("show what was started", function()
    local run = start { argv = { "sleep", "100" }, tag = "mine" }
    await(run, function(found)
      return found.rss_bytes > 0 -- none yet while it still loads its program
    end)
    local entry = of_pid(list(), run.pid)
    assert_fields(entry)
    assert.same({ id = run.id, kind = "process", tag = "mine", command = "sleep 100", argv = { "sleep", "100" },
      cwd = abxd.base_dir, state = "running", exit_code = json.null, signal = json.null, timed_out = false,
      started_at = run.started_at, ppid = abxd.pid },
      { id = entry.id, kind = entry.kind, tag = entry.tag, command = entry.command, argv = entry.argv, cwd = entry.cwd,
        state = entry.state, exit_code = entry.exit_code, signal = entry.signal, timed_out = entry.timed_out,
        started_at = entry.started_at, ppid = entry.ppid })
    assert.equal(process.run({ "id", "-un" }).stdout, entry.user .. "\n")
    for _, id in ipairs { run.id, run.pid } do
      local one = check.ok(get(id))
      assert_fields(one)
      assert.equal(run.id, one.id)
      assert.equal(0, #one.children)
    end
  end)

  it("tell of the end, by the id and no longer by the pid", function()
    local run = start { command = "kill -9 $$" }
    local ended = check.ok(get(run.id, "?wait_ms=60000"))
    assert_fields(ended)
    assert.same({ "exited", 137, "SIGKILL", json.null, json.null, json.null, 0 }, { ended.state, ended.exit_code, ended.signal,
      ended.ppid, ended.cpu_percent, ended.rss_bytes, #ended.children })
    check.problem(get(run.pid), 404, "process_not_found", "id")
    assert.equal(137, of_pid(list("?state=exited"), run.pid).exit_code)
    assert.equal(ended.duration_ms, of_pid(list(), run.pid).duration_ms)
    for code, command in pairs { [3] = "exit 259", [127] = "nosuchcmd_x", [139] = "kill -SEGV $$" } do
      assert.equal(code, check.ok(get(start({ command = command }).id, "?wait_ms=60000")).exit_code)
    end
    started = {}
  end)

  it("are by state and scope, in the order of the starts", function()
    local first = start { command = "exit 4" }
    assert.equal("exited", check.ok(get(first.id, "?wait_ms=60000")).state)
    table.remove(started)
    local second, third = start { command = "exec sleep 100" }, start { argv = { "sleep", "101" } }
    local order = {}
    for _, entry in ipairs(list("?state=all")) do
      if entry.pid == first.pid or entry.pid == second.pid or entry.pid == third.pid then
        order[#order + 1] = entry.id
      end
    end
    assert.same({ first.id, second.id, third.id }, order)
    assert.is_nil(of_pid(list("?state=exited"), second.pid))
    assert.is_nil(of_pid(list("?state=running"), first.pid))
    assert.is_nil(of_pid(list("?scope=managed"), abxd.pid))
    local all = list("?scope=all&state=running")
    assert.is_nil(of_pid(all, first.pid))
    assert.equal(second.id, of_pid(all, second.pid).id)
    local own = of_pid(all, abxd.pid)
    assert_fields(own)
    assert.same({ tostring(abxd.pid), json.null, json.null, "running" }, { own.id, own.kind, own.tag, own.state })
    local last_pid = 0
    for _, entry in ipairs(all) do
      if entry.kind == json.null then
        assert.is_true(entry.pid > last_pid)
        last_pid = entry.pid
      end
    end
    assert.equal("integer", math.type(of_pid(all, uv.os_getpid()).rss_bytes))
    assert.same({ "scope", "state" }, check.faulty_fields(abxd:get("/processes?scope=x&state=y")))
  end)

  it("stay valid whatever bytes are in names and arguments", function()
    local run = start { command = "printf 'o) (\\n\\377 1' >/proc/$$/comm; exec -a $'a\\xe4\\nb' sleep 100" }
    local odd = await(run, function()
      return process.stat(run.pid).comm == "sleep"
    end)
    assert.equal("running", odd.state)
    local parent, child = start_with_child(
      "(printf 'o) (\\n\\377 1' >/proc/$BASHPID/comm; exec -a $'a\\xe4\\n\"b' sleep $'100.0') & wait; :")
    child = assert(process.poll(10000, function()
      local found = check.ok(get(child.pid))
      return found.argv[1] == "a\u{fffd}\n\"b" and found
    end))
    assert.equal("a\u{fffd}\n\"b 100.0", child.command)
    assert.same({ "a\u{fffd}\n\"b", "100.0" }, child.argv)
    assert.equal(parent.pid, child.ppid)
    local named = start { command = "printf 'o) (\\n\\377 S 1' >/proc/$$/comm; sleep 100; :" }
    await(named, function(found)
      return #found.children == 1
    end)
    local entry = of_pid(list("?scope=all"), named.pid)
    assert.equal(abxd.pid, entry.ppid)
    assert.is_true(entry.rss_bytes > 0 and entry.rss_bytes < 1 << 30)
    assert.equal(named.pid, check.ok(get(of_pid(list("?scope=all"), named.pid).id)).children[1].ppid)
  end)

  it("give a directory that is not UTF-8 in its twin, too", function()
    local dir = abxd.base_dir .. "/d\xe4"
    files.mkdir(dir)
    local run, child = start_with_child("cd $'d\\xe4'; sleep 100 & cd ..; wait; :")
    assert.equal(abxd.base_dir .. "/d\u{fffd}", child.cwd)
    assert.equal(dir, (mime.unb64(child.cwd_base64)))
    assert.equal(abxd.base_dir, check.ok(get(run.id)).cwd)
  end)

  it("mask what is secret, of strangers too", function()
    local secret = ("s3cr%dt"):format(uv.os_getpid())
    local run, child = start_with_child(("X_TOKEN=%s; : https://u:%s@host/; bash -c 'sleep 100; :' x --password %s & wait; :")
      :format(secret, secret, secret))
    local by_argv = start { argv = { "bash", "-c", "sleep 100; :", "x", "--api-key", secret, "--db-password=" .. secret } }
    process.poll(10000, function()
      return check.ok(get(child.pid)).command:find("password")
    end)
    assert.matches("^X_TOKEN=%*%*%*; : https://u:%*%*%*@host/; bash", check.ok(get(run.id)).command)
    assert.matches("x %-%-password %*%*%*$", check.ok(get(child.pid)).command)
    assert.same({ "bash", "-c", "sleep 100; :", "x", "--api-key", "***", "--db-password=***" }, check.ok(get(by_argv.id)).argv)
    for _, query in ipairs { "", "?scope=all" } do
      local body = abxd:get("/processes" .. query).body
      assert.is_truthy(body:find("%-%-api%-key"))
      assert.is_nil(body:find(secret, 1, true))
    end
    assert.is_nil(abxd:log_text():find(secret, 1, true))
  end)

  it("mask what is secret in JSON, headers, shell and encoded URLs", function()
    local run = start { command = [[: "$(:)" -H "X-Auth-Token: s3cr t" -d '{"password":"s3cr t","a":1}' ]] ..
      [[https%3A//u%3As3cr%40h; TOKEN=$(echo s3cr t); TOKEN=(a s3cr); TOKEN[0]=s3cr; sleep 100; :]] }
    assert.equal([[: "$(:)" -H "X-Auth-Token: ***" -d '{"password":"***","a":1}' ]] ..
      [[https%3A//u%3A***%40h; TOKEN=***; TOKEN=***; TOKEN[0]=***; sleep 100; :]], check.ok(get(run.id)).command)
    local by_argv = start { argv = { "bash", "-c", "sleep 100; :", "-H", "X-Api-Key: s3cr t", "--header=X-Token: s3cr t",
      "-d", [[{\"token\":\"s3cr t\"}]], "x.c: token: expected ','", "--token", "", "x" } }
    assert.same({ "bash", "-c", "sleep 100; :", "-H", "X-Api-Key: ***", "--header=X-Token: ***",
      "-d", [[{\"token\":\"***\"}]], "x.c: token: expected ','", "--token", "", "x" }, check.ok(get(by_argv.id)).argv)
    assert.is_nil(abxd:get("/processes").body:find("s3cr", 1, true))
  end)

  it("cut long command lines at 8 KiB, and tell so", function()
    local long = ("x"):rep(100000)
    local run, child = start_with_child("bash -c 'sleep 100; :' " .. long .. " & wait; :")
    local entry = of_pid(list(), run.pid)
    assert.is_true(entry.command_truncated)
    assert.equal(8192, #entry.command)
    child = assert(process.poll(10000, function()
      local found = check.ok(get(child.pid))
      return found.command_truncated and found
    end))
    assert.equal("bash -c sleep 100; : xxx", child.command:sub(1, 24))
    assert.equal(8192, #child.command)
    assert.equal(8192 - #"bash -c sleep 100; : ", #child.argv[4])
  end)

  it("have zombies of others as exited, and not as children", function()
    local run = start { command = "sleep 0.2 & exec sleep 100" }
    local zombie = assert(process.poll(10000, function()
      for _, below in ipairs(process.descendants(run.pid)) do
        if below.state == "Z" then
          return below.pid
        end
      end
    end))
    local entry = of_pid(list("?scope=all&state=exited"), zombie)
    assert.same({ "exited", json.null, json.null, "[sleep] <defunct>", {} }, { entry.state, entry.exit_code, entry.signal,
      entry.command, entry.argv })
    assert.is_nil(of_pid(list("?scope=all&state=running"), zombie))
    assert.equal(0, #check.ok(get(run.id)).children)
    assert.same(entry.state, check.ok(get(zombie, "?wait_ms=5000")).state)
    check.problem(abxd:post(("/processes/%d/signal"):format(zombie), {}), 409, "already_exited", "id")
  end)

  it("leave out what vanishes while they are read", function()
    start { command = "while :; do (:); (:) & (:); wait; done" }
    for _ = 1, 50 do
      for _, entry in ipairs(list("?scope=all")) do
        assert.is_true(entry.pid > 0 and #entry.command > 0)
      end
    end
  end)

  it("count a program's CPU time over its life", function()
    local run = start { command = "while :; do :; done" }
    local busy = await(run, function(found)
      return found.cpu_percent > 1
    end)
    assert.is_true(busy.cpu_percent <= 200)
    assert.equal(0, start({ argv = { "sleep", "100" } }) and of_pid(list(), started[#started]).cpu_percent)
  end)

  it("hold 500 processes", function()
    local conn = abxd:connect()
    for i = 1, 500 do
      local answer = conn:request("POST", "/processes", { json = { argv = { "sleep", "100" } } })
      assert.equal(201, answer.status)
      started[i] = answer:json().pid
    end
    conn:close()
    for _, query in ipairs { "?state=running", "?scope=all&state=running" } do
      local entries, known = list(query), {}
      for _, entry in ipairs(entries) do
        known[entry.pid] = entry
      end
      for _, pid in ipairs(started) do
        assert.equal("sleep 100", known[pid].command)
        assert.is_true(known[pid].id:find("^p%-") ~= nil)
      end
    end
    check.prompt(abxd, 0.2)
    assert.equal(500, #check.ok(get(abxd.pid)).children)
  end)

  describe("one process", function()
    it("has children, the managed ones with their ids", function()
      local run, child = start_with_child("sleep 100 & wait; :")
      assert_fields(child)
      assert.same({ tostring(child.pid), "sleep 100", json.null, "running" },
        { child.id, child.command, child.kind, child.state })
      local children, ids = check.ok(get(abxd.pid)).children, {}
      for _, entry in ipairs(children) do
        assert.equal(abxd.pid, entry.ppid)
        ids[entry.id] = true
      end
      assert.is_true(ids[run.id])
      assert.is_nil(ids[child.id])
    end)

    it("shows what lost its parent, also after its end", function()
      local run = start { command = "(sleep 101 &); setsid sleep 102 & exec sleep 0.5" }
      local function commands()
        local found = {}
        for _, child in ipairs(check.ok(get(run.id)).children) do
          found[#found + 1] = child.command
          started[#started + 1] = child.command == "sleep 102" and child.pid or nil
        end
        table.sort(found)
        return found
      end
      assert.is_true(process.poll(5000, function()
        return #commands() == 2
      end))
      assert.equal("exited", check.ok(get(run.id, "?wait_ms=5000")).state)
      assert.same({ "sleep 101", "sleep 102" }, commands())
    end)

    it("is waited for as long as wait_ms says", function()
      local run = start { command = "sleep 100" }
      local waited = check.ok(get(run.id, "?wait_ms=50"))
      assert.equal("running", waited.state)
      assert.is_true(waited.duration_ms >= 50)
      local conns = {}
      for i, id in ipairs { run.id, tostring(run.pid), run.id } do
        conns[i] = abxd:connect()
        conns[i]:send_request("GET", "/processes/" .. id .. "?wait_ms=300000", { headers = abxd.headers })
      end
      check.prompt(abxd, 0.1)
      check.unanswered(conns[1])
      uv.kill(-run.pid, "sigterm")
      for _, conn in ipairs(conns) do
        local ended = check.ok(conn:read_response())
        assert.same({ "exited", 143, "SIGTERM" }, { ended.state, ended.exit_code, ended.signal })
        conn:close()
      end
      assert.equal("exited", check.ok(get(run.id, "?wait_ms=300000")).state)
      started = {}
    end)

    it("that was not started here is waited for too", function()
      local stranger = process.start({ "sleep", "100" }, {})
      assert(process.poll(10000, function()
        return check.ok(get(stranger.pid)).command == "sleep 100"
      end))
      assert.equal("running", check.ok(get(stranger.pid, "?wait_ms=30")).state)
      local conn = abxd:connect()
      conn:send_request("GET", "/processes/" .. stranger.pid .. "?wait_ms=300000")
      uv.sleep(100) -- so that it is seen before, mostly
      check.prompt(abxd, 0.1)
      stranger:kill("sigkill")
      local ended = check.ok(conn:read_response())
      conn:close()
      assert_fields(ended)
      assert.same({ "exited", json.null, json.null, json.null, 0, tostring(stranger.pid) },
        { ended.state, ended.exit_code, ended.signal, ended.rss_bytes, #ended.children, ended.id })
      assert.is_true(ended.command == "sleep 100" or ended.command == "[sleep]", ended.command) -- by how early it ended
      assert.is_true(stranger:wait(10000))
      check.problem(get(stranger.pid), 404, "process_not_found", "id")
    end)

    it("is no longer waited for when the client leaves", function()
      local stranger = process.start({ "sleep", "100" }, {})
      local run = start { command = "sleep 100" }
      local before = abxd:baseline()
      for _ = 1, 20 do
        local conns = {}
        for i, id in ipairs { stranger.pid, run.id, uv.os_getpid() } do
          conns[i] = abxd:connect()
          conns[i]:send_request("GET", ("/processes/%s?wait_ms=300000"):format(id))
        end
        for _, conn in ipairs(conns) do
          conn:close()
        end
      end
      abxd:assert_settled(before)
      stranger:kill("sigkill")
      assert.is_true(stranger:wait(10000))
    end)

    for _, id in ipairs { "0", "-1", "007", "99999999999999999999", "4294967297", "2147483647", "sleep", "p-", "p-000000000000",
      "1x", " 1", "1 ", "+1", "0x1", "%EF%BF%BD" } do
      it(("%q is not found"):format(id), function()
        local target = "/processes/" .. (id:find("%", 1, true) and id or http.escape(id))
        check.problem(abxd:get(target), 404, "process_not_found", "id")
        check.problem(abxd:get(target .. "?wait_ms=1000"), 404, "process_not_found", "id")
      end)
    end

    it("has no NUL in its id, nor more than 64 bytes", function()
      check.problem(get("1\0"), 400, "invalid_request")
      assert.same({ "id" }, check.faulty_fields(get(("1"):rep(65))))
      check.problem(get(("1"):rep(64)), 404, "process_not_found", "id")
    end)

    it("needs a wait_ms that is one", function()
      for _, wait_ms in ipairs { "-1", "300001", "x", "1.5" } do
        assert.same({ "wait_ms" }, check.faulty_fields(get("1", "?wait_ms=" .. wait_ms)))
      end
    end)
  end)

  it("survive a reload", function()
    local run, ended = start { command = "sleep 100" }, start { command = "exit 5" }
    assert.equal(5, check.ok(get(ended.id, "?wait_ms=60000")).exit_code)
    table.remove(started)
    local conn = abxd:connect()
    conn:send_request("GET", "/processes/" .. run.id .. "?wait_ms=300000")
    check.prompt(abxd, 0.1)
    assert.matches("serves", abxd:reload().msg)
    assert.equal("running", of_pid(list(), run.pid).state)
    assert.equal(5, of_pid(list(), ended.pid).exit_code)
    uv.kill(-run.pid, "sigkill")
    table.remove(started)
    assert.equal(137, check.ok(conn:read_response()).exit_code)
    conn:close()
  end)

  it("are over at a shutdown, and so is what waits for one", function()
    local other <close> = server.start()
    local conn, run = other:connect(), other:post("/processes", { command = "sleep 100" }):json()
    conn:send_request("GET", "/processes/" .. run.id .. "?wait_ms=300000")
    check.prompt(other, 0.1)
    for _ = 1, 20 do
      local lister = other:connect()
      lister:send_request("GET", "/processes?scope=all")
      lister:close()
    end
    other:stop()
    conn:close()
  end)
end)
