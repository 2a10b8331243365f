local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local json = require("support.json")
local process = require("support.process")
local pty = require("support.pty")
local server = require("support.server")
local skip = require("support.skip")
local ws = require("support.ws")

-- A /dev/pts of the server's own, where nobody else's terminals are counted.
local OWN_PTS = { "unshare", "--mount", "sh", "-c",
  [[mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts && mount --bind /dev/pts/ptmx /dev/ptmx && exec "$@"]], "sh" }

--- nil, or why this machine cannot run one so.
local function own_pts_refused()
  local result = process.run { table.unpack(OWN_PTS), "true" }
  return result.code ~= 0 and result.stderr:gsub("%s+$", "") or nil
end

describe("terminals", function()
  local abxd, baseline

  before_each(function()
    abxd = server.start { tables = true }
    baseline = abxd:baseline()
  end)
  after_each(function()
    pty.clean(abxd)
    abxd:assert_settled(baseline)
    abxd:stop()
  end)

  describe("DELETE /pty/{id}", function()
    it("hangs up, tells the exit, and lists it no more; the process table still knows it", function()
      local client <close>, started = pty.shell(abxd)
      local told = pty.delete(abxd, started.id)
      assert.same({ started.id, 129, "SIGHUP", false }, { told.id, told.exit_code, told.signal, told.timed_out })
      local exit, code = client:expect_exit()
      assert.same({ told.exit_code, told.signal, told.duration_ms, told.started_at, 1000 }, { exit.exit_code, exit.signal,
        exit.duration_ms, exit.started_at, code })
      assert.same({}, pty.list(abxd))
      check.problem(abxd:request("DELETE", "/pty/" .. started.id), 404, "terminal_not_found")
      local entry = check.ok(abxd:get("/processes/" .. started.id))
      assert.same({ "terminal", 129, "SIGHUP" }, { entry.kind, entry.exit_code, entry.signal })
      local late <close> = ws.connect(abxd, started.id)
      assert.equal(4004, (late:expect_close()))
    end)

    it("kills after 2 s what ignores that, with all of its tree", function()
      local sleeps = { check.sleep(4511), check.sleep(4512), check.sleep(4513) }
      local started = pty.start(abxd, ("trap '' HUP TERM; setsid %s & nohup %s & echo up; while :; do %s; done"):format(
        sleeps[1], sleeps[2], sleeps[3]))
      local client <close> = pty.attach(abxd, started.id)
      client:read_until("up\r\n", nil, true)
      for _, sleep in ipairs(sleeps) do
        assert.is_true(process.poll(20000, function()
          return #check.pids_of(sleep) == 1
        end))
      end
      local told = pty.delete(abxd, started.id)
      assert.same({ 137, "SIGKILL" }, { told.exit_code, told.signal })
      assert.is_true(told.duration_ms >= 2000)
      assert.equal(137, client:expect_exit().exit_code)
      for _, sleep in ipairs(sleeps) do
        assert.equal(0, check.gone(sleep, 20000))
      end
    end)

    it("of one that has ended tells how", function()
      local started = pty.start(abxd, "exit 5")
      pty.wait_end(abxd, started.id)
      assert.equal(5, pty.delete(abxd, started.id).exit_code)
      check.problem(abxd:request("DELETE", "/pty/" .. started.id), 404, "terminal_not_found")
      check.problem(abxd:request("DELETE", "/pty/nope"), 404, "terminal_not_found")
    end)

    it("by several at once is answered to each", function()
      local started = pty.start(abxd, "trap '' HUP; printf ready; while :; do sleep 0.1; done")
      assert.equal(5, pty.wait_field(abxd, started.id, "offset", 5))
      local conns = {}
      for i = 1, 5 do
        conns[i] = abxd:connect()
        conns[i]:send_request("DELETE", "/pty/" .. started.id)
      end
      local ended = 0
      for i = 1, 5 do
        local answer = conns[i]:read_response()
        assert.is_true(answer.status == 200 or answer.status == 404, answer.body)
        ended = ended + (answer.status == 200 and answer:json().exit_code == 137 and 1 or 0)
        conns[i]:close()
      end
      assert.is_true(ended >= 1)
    end)
  end)

  it("live on over a reload of the tables", function()
    local client <close>, started = pty.shell(abxd)
    for _ = 1, 3 do
      assert.is_not.equal("error", abxd:reload().level)
      pty.check_served(client)
    end
    assert.equal(started.pid, pty.list(abxd)[started.id].pid)
    local again <close> = pty.attach(abxd, started.id)
    again:read_to(client.offset)
    pty.check_served(again)
  end)

  it("see the changes of POST /env, and their own id", function()
    local value = "a\nb=c \"d\" 'e' $HOME $(id) \\"
    check.ok(abxd:post("/env", { set = { ABX_K = value, ABX_E = "" } }))
    local started = pty.start(abxd, [[printf '%s' "$ABX_K" | od -An -v -tx1 | tr -d ' \n'; echo
      echo ${ABX_E-unset}${ABX_N-none}; echo $ABX_PROCESS_ID]])
    local client <close> = ws.connect(abxd, started.id)
    assert.equal(0, client:expect_exit().exit_code)
    local hex = value:gsub(".", function(char)
      return ("%02x"):format(char:byte())
    end)
    assert.equal(hex .. "\r\nnone\r\n" .. started.id .. "\r\n", client:take_output())
  end)

  it("that come and go a hundred times leave nothing", function()
    for i = 1, 100 do
      local client, started = pty.shell(abxd)
      if i % 4 == 0 then
        client:input("exit 0\n")
        client:expect_exit()
      elseif i % 4 == 1 then
        client:abort()
      end
      pty.delete(abxd, started.id)
      client:close()
    end
    abxd:assert_settled(baseline)
  end)
end)

describe("a hundred terminals that come and go", function()
  it("leave no pty behind", function()
    local refused = own_pts_refused()
    if refused then
      return skip("ptys are given back", "no /dev/pts of its own: " .. refused)
    end
    local abxd <close> = server.start { prefix = OWN_PTS }
    local baseline = abxd:baseline()
    local function ptys()
      local names = files.list(("/proc/%d/root/dev/pts"):format(abxd.pid))
      return #names - 1 -- ptmx
    end
    assert.equal(0, ptys())
    for _ = 1, 10 do
      local clients = {}
      for i = 1, 10 do
        clients[i] = pty.attach(abxd, pty.start(abxd, i % 2 == 0 and "exec cat" or "echo short").id)
      end
      pty.clean(abxd)
      for i = 1, 10 do
        clients[i]:expect_exit()
        clients[i]:close()
      end
    end
    abxd:assert_settled(baseline)
    assert.equal(0, ptys())
  end)
end)

describe("when the server ends,", function()
  it("clients are told, new ones refused, and no program is left", function()
    local abxd = server.start()
    local sleeps = { check.sleep(4521), check.sleep(4522) }
    local shell = pty.shell(abxd) -- an interactive shell does not end by SIGTERM
    shell:input(sleeps[1] .. "\n")
    shell:read_until(sleeps[1] .. "\r\n", nil, true)
    local idle = pty.shell(abxd)
    local ended = pty.attach(abxd, pty.start(abxd, "echo bye; exit 3").id)
    assert.equal(3, ended:expect_exit().exit_code)
    local stubborn_id = pty.start(abxd, "trap '' HUP TERM INT; echo up; while :; do " .. sleeps[2] .. "; done").id
    local stubborn = pty.attach(abxd, stubborn_id)
    stubborn:read_until("up\r\n", nil, true)
    abxd.child:kill("sigterm")
    -- The stubborn one makes it drain for two seconds; the first thing that is refused tells that it has begun to.
    local answer
    process.poll(10000, function()
      local ok, status, client = pcall(ws.handshake, abxd, stubborn_id, { token = false })
      if ok and client then
        client:close()
      end
      answer = ok and status or answer
      return not ok or status.status == 503
    end)
    assert.equal(503, answer.status)
    assert.equal("shutting_down", answer:json().code)
    for _, client in ipairs { shell, idle, stubborn } do
      assert.equal(1001, (client:expect_close()))
      assert.is_true(client.exit == nil or client.exit.exit_code > 128)
      client:close()
    end
    assert.is_true(abxd.child:wait(10000 * check.slack))
    for _, sleep in ipairs(sleeps) do
      assert.equal(0, check.gone(sleep, 2000))
    end
    ended:close()
    abxd:stop() -- looks at the exit code and the log
  end)

  it("it does not wait for clients that read nothing", function()
    local abxd = server.start()
    local client = pty.attach(abxd, pty.start(abxd, "yes").id)
    local half = http.connect { host = abxd.host, port = abxd.ws_port }
    half:send("GET /pty/x HTT")
    local silent = http.connect { host = abxd.host, port = abxd.ws_port }
    abxd.child:kill("sigterm")
    assert.is_true(abxd.child:wait(10000 * check.slack))
    client:close()
    half:close()
    silent:close()
    abxd:stop()
  end)
end)

describe("as PID 1", function()
  it("the server loses no terminal's exit and leaves no zombie", function()
    local refused = process.run { "unshare", "--fork", "--pid", "--mount-proc", "true" }
    if refused.code ~= 0 then
      return skip("terminals as pid1", "no pid namespace: " .. refused.stderr:gsub("%s+$", ""))
    end
    local abxd <close> = server.start { prefix = { "unshare", "--fork", "--pid", "--mount-proc", "--kill-child" } }
    local baseline = abxd:baseline()
    for _ = 1, 10 do
      local clients = {}
      for i = 1, 10 do
        clients[i] = pty.attach(abxd, pty.start(abxd, "(setsid sleep 0.1 &) ; (setsid true &) ; exit 7").id)
      end
      for i = 1, 10 do
        assert.equal(7, clients[i]:expect_exit().exit_code)
        clients[i]:close()
      end
      pty.clean(abxd)
    end
    abxd:assert_settled(baseline) -- zombies count as children
  end)
end)

describe("the token", function()
  it("reaches no terminal", function()
    local TOKEN = "tok-9qW4xK"
    local abxd <close> = server.start { env = { ABX_SERVER_TOKEN = TOKEN }, args = { "--log-level", "debug" } }
    local client <close> = ws.connect(abxd, pty.start(abxd,
      "env; tr '\\0' '\\n' </proc/$PPID/environ; tr '\\0' ' ' </proc/$PPID/cmdline; env | grep -c ^ABX_SERVER_").id)
    assert.same({ 1, json.null }, { client:expect_exit().exit_code, client.exit.signal })
    local seen = client:take_output()
    assert.matches("ABX_PROCESS_ID=", seen, 1, true)
    assert.matches(" 0\r\n$", seen)
    assert.is_nil(seen:find(TOKEN, 1, true))
    assert.is_nil(abxd:log_text():find(TOKEN, 1, true))
  end)
end)
