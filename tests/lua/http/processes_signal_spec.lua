local cgroups = require("support.cgroups")
local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")
local uv = require("luv")

local SLEEP = check.sleep
local FIELDS = { "duration_ms", "escalated", "exit_code", "exit_signal", "id", "pid", "signal", "signalled", "started_at",
  "state", "timed_out" }

local function start(abxd, command)
  local answer = abxd:post("/processes", { command = command })
  assert.equal(201, answer.status, answer.body)
  return answer:json()
end

local function post(abxd, id, fields)
  return abxd:post("/processes/" .. id .. "/signal", fields or {})
end

local function signal(abxd, id, fields)
  return check.ok(post(abxd, id, fields))
end

--- Waits until that many processes have exactly these arguments.
local function wait_for(command_line, count)
  assert.is_true(process.poll(10000, function()
    return #check.pids_of(command_line) == count
  end), command_line)
  return check.pids_of(command_line)[1]
end

--- A process of nobody's, in a session of its own; the caller ends it.
local function stranger(words)
  local child = process.start({ "setsid", "--wait", table.unpack(words) }, {})
  return child, wait_for(table.concat(words, " "), 1)
end

local function state_of(pid)
  return (process.stat(pid) or {}).state
end

--- The same specs for both ways to find a tree.
local function specs(mode, options)
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start(options)
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  it("tells in /capabilities how it finds trees", function()
    assert.equal(mode, check.ok(abxd:get("/capabilities")).process_tree)
  end)

  it("answers with every field, and no other", function()
    local run = start(abxd, "exec " .. SLEEP(5501))
    wait_for(SLEEP(5501), 1)
    local answer = signal(abxd, run.id, { wait_ms = 10000 })
    local names = {}
    for name in pairs(answer) do
      names[#names + 1] = name
    end
    table.sort(names)
    assert.same(FIELDS, names)
    assert.equal("integer", math.type(answer.duration_ms))
    answer.duration_ms = nil
    assert.same({ id = run.id, pid = run.pid, signal = "SIGTERM", exit_signal = "SIGTERM", signalled = 1, escalated = false,
      state = "exited", exit_code = 143, timed_out = false, started_at = run.started_at }, answer)
    check.problem(post(abxd, run.id), 409, "already_exited", "id")
    check.problem(post(abxd, run.id, { scope = "process" }), 409, "already_exited", "id")
  end)

  it("TERM reaches all that a command started", function()
    local run = start(abxd, ("%s & %s; echo x"):format(SLEEP(5502), SLEEP(5503)))
    wait_for(SLEEP(5502), 1)
    wait_for(SLEEP(5503), 1)
    local answer = signal(abxd, run.id, { signal = "TERM", wait_ms = 10000 })
    assert.same({ 3, "exited", 143, "SIGTERM" }, { answer.signalled, answer.state, answer.exit_code, answer.exit_signal })
    assert.same({ 0, 0 }, { check.gone(SLEEP(5502)), check.gone(SLEEP(5503)) })
  end)

  it("who ignores TERM is told to run still, until KILL", function()
    local run = start(abxd, "trap '' TERM; while :; do " .. SLEEP(5504) .. "; done")
    wait_for(SLEEP(5504), 1)
    local answer = signal(abxd, run.id, { scope = "process", wait_ms = 300 })
    assert.same({ 1, "running", json.null, json.null, false },
      { answer.signalled, answer.state, answer.exit_code, answer.exit_signal, answer.escalated })
    answer = signal(abxd, run.id, { signal = "SIGKILL", wait_ms = 10000 })
    assert.same({ 2, "exited", 137, "SIGKILL", "SIGKILL" },
      { answer.signalled, answer.state, answer.exit_code, answer.signal, answer.exit_signal })
    assert.equal(0, check.gone(SLEEP(5504)))
  end)

  it("reaches three shells deep, other sessions and orphans", function()
    local run = start(abxd, ([[bash -c 'bash -c "%s; :"; :' & (setsid %s &) ; setsid %s & wait]]):format(SLEEP(5505),
      SLEEP(5506), SLEEP(5507)))
    for seconds = 5505, 5507 do
      wait_for(SLEEP(seconds), 1)
    end
    assert.equal(6, signal(abxd, run.id, { signal = "kill", wait_ms = 10000 }).signalled)
    for seconds = 5505, 5507 do
      assert.equal(0, check.gone(SLEEP(seconds)))
    end
  end)

  it("a child with no trace of its origin: " .. (mode == "cgroup" and "gone too" or "out of reach"), function()
    local run = start(abxd, ("(env -i setsid -f %s) ; %s; :"):format(SLEEP(5508), SLEEP(5509)))
    local pid = wait_for(SLEEP(5508), 1)
    wait_for(SLEEP(5509), 1)
    local answer = signal(abxd, run.id, { signal = "KILL", wait_ms = 10000 })
    assert.equal(mode == "cgroup" and 3 or 2, answer.signalled)
    if mode == "cgroup" then
      assert.equal(0, check.gone(SLEEP(5508)))
    else
      assert.equal(1, #check.pids_of(SLEEP(5508)))
      uv.kill(pid, "sigkill")
    end
    assert.equal(0, check.gone(SLEEP(5509)))
  end)

  it("STOP and CONT", function()
    local run = start(abxd, "exec " .. SLEEP(5510))
    wait_for(SLEEP(5510), 1)
    assert.equal("running", signal(abxd, run.id, { signal = "STOP" }).state)
    assert.is_true(process.poll(5000, function()
      return state_of(run.pid) == "T"
    end))
    assert.equal("SIGCONT", signal(abxd, run.id, { signal = "sigcont" }).signal)
    assert.is_true(process.poll(5000, function()
      return state_of(run.pid) == "S"
    end))
    signal(abxd, run.id, { signal = "STOP", scope = "process" })
    local answer = signal(abxd, run.id, { wait_ms = 10000 }) -- TERM is of no use to one that is stopped
    assert.same({ "exited", "SIGTERM" }, { answer.state, answer.exit_signal })
  end)

  it("scope process leaves the others alone", function()
    local run = start(abxd, ("trap 'echo got' USR1; %s & while :; do wait; done"):format(SLEEP(5511)))
    wait_for(SLEEP(5511), 1)
    assert.equal(1, signal(abxd, run.id, { signal = "USR1", scope = "process" }).signalled)
    assert.equal(1, signal(abxd, run.id, { signal = "KILL", scope = "process", wait_ms = 10000 }).signalled)
    assert.equal(1, #check.pids_of(SLEEP(5511)))
    -- it has ended, what it left behind has not
    check.problem(post(abxd, run.id, { scope = "process" }), 409, "already_exited", "id")
    local answer = signal(abxd, run.id, { escalate_ms = 10000 })
    assert.same({ 1, "exited", 137, false }, { answer.signalled, answer.state, answer.exit_code, answer.escalated })
    assert.equal(0, check.gone(SLEEP(5511)))
    check.problem(post(abxd, run.id), 409, "already_exited", "id")
  end)

  describe("escalate_ms", function()
    it("kills what outlived the signal, and the answer waits for that", function()
      local run = start(abxd, ("trap '' TERM; (setsid sh -c 'while :; do %s; done' &) ; while :; do %s; done"):format(
        SLEEP(5512), SLEEP(5513)))
      wait_for(SLEEP(5512), 1)
      wait_for(SLEEP(5513), 1)
      local answer = signal(abxd, run.id, { escalate_ms = 300 })
      assert.same({ "SIGTERM", true, "exited", 137, "SIGKILL" },
        { answer.signal, answer.escalated, answer.state, answer.exit_code, answer.exit_signal })
      assert.same({ 0, 0 }, { #check.pids_of(SLEEP(5512)), #check.pids_of(SLEEP(5513)) })
    end)

    it("is not needed where all are gone before", function()
      local run = start(abxd, SLEEP(5514) .. "; :")
      wait_for(SLEEP(5514), 1)
      local begin = uv.hrtime()
      local answer = signal(abxd, run.id, { escalate_ms = 60000 })
      assert.is_true(uv.hrtime() - begin < 30e9)
      assert.same({ false, "exited", 143 }, { answer.escalated, answer.state, answer.exit_code })
    end)

    it("reaches a grandchild that outlives its parent", function()
      local run = start(abxd, ("(trap '' TERM; setsid sh -c '%s; :') & %s"):format(SLEEP(5515), SLEEP(5516)))
      wait_for(SLEEP(5515), 1)
      local answer = signal(abxd, run.id, { escalate_ms = 300 })
      assert.same({ true, "exited", 143 }, { answer.escalated, answer.state, answer.exit_code })
      assert.equal(0, #check.pids_of(SLEEP(5515)))
    end)

    it("happens although the client left, and the tables were loaded again", function()
      local run = start(abxd, "trap '' TERM; while :; do " .. SLEEP(5517) .. "; done")
      wait_for(SLEEP(5517), 1)
      local conn = abxd:connect()
      conn:send_request("POST", "/processes/" .. run.id .. "/signal", { json = { escalate_ms = 1000 } })
      uv.sleep(200)
      conn:close()
      abxd:reload()
      assert.equal(0, check.gone(SLEEP(5517)))
      check.problem(post(abxd, run.id), 409, "already_exited", "id")
    end)

    it("of scope process spares the others", function()
      local run = start(abxd, ("trap '' TERM; %s & while :; do wait; done"):format(SLEEP(5518)))
      wait_for(SLEEP(5518), 1)
      uv.sleep(100)
      local answer = signal(abxd, run.id, { scope = "process", escalate_ms = 100 })
      assert.same({ true, "exited", "SIGKILL" }, { answer.escalated, answer.state, answer.exit_signal })
      assert.equal(1, #check.pids_of(SLEEP(5518)))
      assert.equal(1, signal(abxd, run.id, { signal = "KILL" }).signalled)
      assert.equal(0, check.gone(SLEEP(5518)))
    end)
  end)

  it("a client that leaves while it waits leaves nothing behind", function()
    local run = start(abxd, SLEEP(5519))
    wait_for(SLEEP(5519), 1)
    local conn = abxd:connect()
    conn:send_request("POST", "/processes/" .. run.id .. "/signal", { json = { signal = "WINCH", wait_ms = 60000 } })
    uv.sleep(100)
    conn:close()
    assert.equal("running", signal(abxd, run.id, { signal = "WINCH" }).state)
    assert.equal("exited", signal(abxd, run.id, { wait_ms = 10000 }).state)
  end)

  it("a hundred at once are all ended", function()
    local runs = {}
    for i = 1, 100 do
      runs[i] = start(abxd, ("%s & setsid %s & wait"):format(SLEEP(5520), SLEEP(5520)))
    end
    wait_for(SLEEP(5520), 200)
    local conns = {}
    for i, run in ipairs(runs) do
      conns[i] = abxd:connect(60)
      conns[i]:send_request("POST", "/processes/" .. run.id .. "/signal", { json = { escalate_ms = 30000 } })
    end
    for i = 1, #runs do
      local answer = check.ok(conns[i]:read_response())
      assert.same({ "exited", 143, 3 }, { answer.state, answer.exit_code, answer.signalled })
      conns[i]:close()
    end
    assert.equal(0, check.gone(SLEEP(5520)))
  end)

  describe("processes that were not started here", function()
    it("get it by their pid, with all below them", function()
      local words = { "sh", "-c", ("setsid %s & %s & wait"):format(SLEEP(5521), SLEEP(5522)) }
      local child, pid = stranger(words)
      wait_for(SLEEP(5521), 1)
      wait_for(SLEEP(5522), 1)
      local answer = signal(abxd, tostring(pid), { wait_ms = 10000 })
      assert.same({ tostring(pid), pid, 3, "exited", json.null, json.null, "SIGTERM" }, { answer.id, answer.pid,
        answer.signalled, answer.state, answer.exit_code, answer.exit_signal, answer.signal })
      assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$", answer.started_at)
      assert.is_true(child:wait(5000))
      assert.same({ 0, 0 }, { check.gone(SLEEP(5521)), check.gone(SLEEP(5522)) })
      check.problem(post(abxd, tostring(pid)), 404, "process_not_found", "id")
    end)

    it("are killed when it is time, those too that lost their parents", function()
      local child, pid = stranger { "sh", "-c",
        ("(trap '' TERM; setsid sh -c 'while :; do %s; done') & %s; :"):format(SLEEP(5523), SLEEP(5524)) }
      wait_for(SLEEP(5523), 1)
      wait_for(SLEEP(5524), 1)
      local answer = signal(abxd, tostring(pid), { escalate_ms = 300 })
      assert.same({ true, "exited" }, { answer.escalated, answer.state })
      assert.is_true(child:wait(5000))
      assert.same({ 0, 0 }, { check.gone(SLEEP(5523)), check.gone(SLEEP(5524)) })
    end)

    it("alone, where scope is process", function()
      local child, pid = stranger { "sh", "-c", SLEEP(5525) .. " & wait" }
      local below = wait_for(SLEEP(5525), 1)
      assert.equal(1, signal(abxd, tostring(pid), { scope = "process", signal = "KILL", wait_ms = 10000 }).signalled)
      assert.is_true(child:wait(5000))
      assert.equal(1, #check.pids_of(SLEEP(5525)))
      assert.equal(1, signal(abxd, tostring(below), { signal = "HUP", wait_ms = 10000 }).signalled)
      assert.equal(0, check.gone(SLEEP(5525)))
    end)
  end)

  it("an entry answers to its pid as well", function()
    local run = start(abxd, "exec " .. SLEEP(5526))
    wait_for(SLEEP(5526), 1)
    local answer = signal(abxd, tostring(run.pid), { signal = "INT", wait_ms = 10000 })
    assert.same({ run.id, 130, "SIGINT" }, { answer.id, answer.exit_code, answer.exit_signal })
    check.problem(post(abxd, tostring(run.pid)), 409, "already_exited", "id")
  end)

  describe("never signals", function()
    local function refused(id, scope)
      for _, name in ipairs { "TERM", "KILL", "CONT" } do
        check.problem(post(abxd, id, { signal = name, scope = scope, escalate_ms = 0 }), 403, "signal_not_allowed", "id")
      end
    end

    for _, scope in ipairs { "tree", "process" } do
      it("pid 1, all, groups, the server and its ancestors, scope " .. scope, function()
        for _, id in ipairs { "1", "0", "-0", "-1", "-2", "00", "-" .. abxd.pid, tostring(abxd.pid) } do
          refused(id, scope)
        end
        local pid = abxd.pid
        while pid > 0 do
          refused(tostring(pid), scope)
          pid = process.stat(pid).ppid
        end
        assert.equal("ok", check.ok(abxd:get("/health")).status)
      end)

      it("what is in their sessions, scope " .. scope, function()
        local child = process.start({ "sleep", "5527" }, {}) -- in the session of this test, the server's parent
        refused(tostring(child.pid), scope)
        assert.is_true(child:is_running())
        child:kill("sigkill")
        child:wait(5000)
      end)
    end
  end)

  it("refuses what is no signal, and what is none for clients", function()
    local run = start(abxd, SLEEP(5528))
    for _, name in ipairs { "FOO", "9", "15", "SIG", "SIGSIG", "SIGRTMIN+99", "TERM ", "-TERM", "SIGTERM\0", "RTMIN-1" } do
      check.problem(post(abxd, run.id, { signal = name }), 400, "invalid_request")
    end
    assert.same({ "signal" }, check.faulty_fields(post(abxd, run.id, { signal = "" })))
    assert.equal("signal", check.problem(post(abxd, run.id, { signal = "FOO" }), 400, "invalid_request").field)
    for _, name in ipairs { "SEGV", "SIGRTMIN+1", "ALRM", "SIGCHLD", "PIPE", "ABRT", "TSTP", "RTMAX", "IOT", "sigsegv" } do
      check.problem(post(abxd, run.id, { signal = name }), 403, "signal_not_allowed", "signal")
    end
    for _, name in ipairs { "WINCH", "SIGWINCH", "winch", "SigWinch" } do
      assert.equal("SIGWINCH", signal(abxd, run.id, { signal = name }).signal)
    end
    assert.same({ "escalate_ms", "scope", "wait_ms" },
      check.faulty_fields(post(abxd, run.id, { escalate_ms = -1, scope = "all", wait_ms = 300001 })))
    signal(abxd, run.id, { signal = "KILL", wait_ms = 10000 })
  end)

  it("finds nothing by other names", function()
    for _, id in ipairs { "p-000000000000", "999999999", "99999999999999999999", "1x", "+1", "01", "%201", "--1", "p-" } do
      check.problem(post(abxd, id), 404, "process_not_found", "id")
    end
  end)

  it("a run that /shell waits for can be ended from elsewhere", function()
    local conn = abxd:connect()
    conn:send_request("POST", "/shell", { json = { command = "echo $$; exec " .. SLEEP(5529) } })
    local pid = wait_for(SLEEP(5529), 1)
    assert.equal("exited", signal(abxd, tostring(pid), { wait_ms = 10000 }).state)
    local answer = check.ok(conn:read_response())
    conn:close()
    assert.same({ 143, "SIGTERM", false }, { answer.exit_code, answer.signal, answer.timed_out })
  end)
end

describe("POST /processes/{id}/signal", function()
  local probe <close> = server.start()
  local found = check.ok(probe:get("/capabilities")).process_tree
  probe:stop()

  if found == "cgroup" then
    describe("with control groups", function()
      specs("cgroup")

      it("removes them with the server, and with them what a program left behind", function()
        local abxd = server.start()
        start(abxd, ("(env -i setsid -f %s)"):format(SLEEP(5530)))
        local group = "abxd-" .. abxd.pid
        local dir
        for line in files.read("/proc/mounts"):gmatch("[^\n]+") do
          dir = dir or line:match("^%S+ (%S+) cgroup2 ")
        end
        wait_for(SLEEP(5530), 1)
        local own = files.read("/proc/" .. abxd.pid .. "/cgroup"):match("0::/?([^\n]*)")
        local path = ("%s/%s/%s"):format(dir, own, group)
        assert.is_true(files.exists(path))
        abxd:stop()
        assert.equal(0, check.gone(SLEEP(5530)))
        assert.is_false(files.exists(path))
      end)

      it("reaches one that moved itself out", function()
        local abxd <close> = server.start()
        local run = start(abxd, ([[
          cd "$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)$(sed -n 's/^0:://p' /proc/self/cgroup)/../.." || exit 1
          sh -c 'echo $$ > cgroup.procs && exec %s' & %s]]):format(SLEEP(5531), SLEEP(5532)))
        local pid = wait_for(SLEEP(5531), 1)
        wait_for(SLEEP(5532), 1)
        assert.is_nil(files.read("/proc/" .. pid .. "/cgroup"):match("0::[^\n]*abxd"))
        assert.equal(3, signal(abxd, run.id, { wait_ms = 10000 }).signalled)
        assert.same({ 0, 0 }, { check.gone(SLEEP(5531)), check.gone(SLEEP(5532)) })
      end)

      it("costs the same however many others live", function()
        local abxd <close> = server.start()
        local runs = {}
        for i = 1, 300 do
          runs[i] = start(abxd, "exec " .. SLEEP(5535))
        end
        wait_for(SLEEP(5535), 300)
        local conns = {}
        local before = process.main_thread_cpu_s(abxd.pid)
        for i = 1, 50 do
          conns[i] = abxd:connect(60)
          conns[i]:send_request("POST", "/processes/" .. runs[i].id .. "/signal", { json = { escalate_ms = 30000 } })
        end
        check.prompt(abxd, 0.06)
        for i = 1, 50 do
          local answer = check.ok(conns[i]:read_response())
          assert.same({ "exited", 143, 1 }, { answer.state, answer.exit_code, answer.signalled })
          conns[i]:close()
        end
        local used_s = process.main_thread_cpu_s(abxd.pid) - before
        assert.is_true(used_s < 0.06 * check.slack, ("50 signals took %.3f s of the loop"):format(used_s))
        assert.equal(250, #check.pids_of(SLEEP(5535)))
      end)

      it("ends nobody who put the server itself into a program's group", function()
        local abxd <close> = server.start()
        local own = files.read("/proc/" .. abxd.pid .. "/cgroup"):match("0::([^\n]*)")
        local dir
        for line in files.read("/proc/mounts"):gmatch("[^\n]+") do
          dir = dir or line:match("^%S+ (%S+) cgroup2 ")
        end
        local run = start(abxd, SLEEP(5533))
        wait_for(SLEEP(5533), 1)
        local group = files.read("/proc/" .. run.pid .. "/cgroup"):match("0::([^\n]*)")
        files.write(dir .. group .. "/cgroup.procs", tostring(abxd.pid))
        check.problem(post(abxd, run.id, { signal = "KILL" }), 403, "signal_not_allowed", "id")
        local timed = check.ok(abxd:post("/shell", { command = SLEEP(5534), timeout_ms = 200 }))
        assert.is_true(timed.timed_out)
        files.write(dir .. own .. "/cgroup.procs", tostring(abxd.pid))
        assert.equal("exited", signal(abxd, run.id, { signal = "KILL", wait_ms = 10000 }).state)
      end)
    end)
  end

  if found ~= "cgroup" then
    it("finds trees by control groups", function()
      skip("processes_signal", "no control group can be made")
    end)
  end

  describe("without control groups", function()
    local refused = cgroups.refused()
    if refused and found == "cgroup" then
      it("finds trees", function()
        skip("processes_signal", refused)
      end)
    else
      specs("walk", { prefix = found == "cgroup" and cgroups.WITHOUT or nil })
    end
  end)
end)
