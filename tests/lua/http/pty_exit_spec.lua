local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local process = require("support.process")
local pty = require("support.pty")
local server = require("support.server")
local ws = require("support.ws")

--- Field faults 24 and 22.
describe("the end of a terminal's program", function()
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start()
    baseline = abxd:baseline()
  end)
  after_each(function()
    pty.clean(abxd)
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  --- Starts `count` terminals of a command, ten at a time, and attaches to each at once; asserts output and exit code.
  local function check_all(count, command, expected, exit_code)
    for _ = 1, count // 10 do
      local clients = {}
      for i = 1, 10 do
        clients[i] = ws.connect(abxd, pty.start(abxd, command).id)
      end
      for i = 1, 10 do
        local exit, code = clients[i]:expect_exit()
        assert.same({ exit_code, json.null, 1000 }, { exit.exit_code, exit.signal, code })
        local output = clients[i]:take_output()
        assert.is_true(output == expected, ("%d bytes came instead of %d"):format(#output, #expected))
        clients[i]:close()
      end
      pty.clean(abxd)
    end
  end

  it("comes after all of 20480 bytes, 200 times", function()
    check_all(200, "printf 'hello%.0s' $(seq 4096)", ("hello"):rep(4096), 0)
  end)

  it("comes after the only line, 200 times", function()
    check_all(200, "echo Z; exit 5", "Z\r\n", 5)
  end)

  it("is the same for who attaches only when it is over, 200 times", function()
    local ids = {}
    for i = 1, 200 do
      ids[i] = pty.start(abxd, i % 2 == 0 and "printf 'hello%.0s' $(seq 4096)" or "echo Z; exit 5").id
    end
    for i = 1, 200 do
      pty.wait_end(abxd, ids[i])
      local client <close> = ws.connect(abxd, ids[i])
      local exit, code = client:expect_exit()
      local output = client:take_output()
      assert.same({ i % 2 == 0 and 0 or 5, 1000 }, { exit.exit_code, code })
      assert.is_true(output == (i % 2 == 0 and ("hello"):rep(4096) or "Z\r\n"), #output)
    end
  end)

  it("has a status that is true, whatever ended it, and the process table tells the same", function()
    files.write(abxd.base_dir .. "/noexec", "#!/bin/sh\n")
    for _, case in ipairs { { "kill -9 $$", 137, "SIGKILL" }, { "kill -SEGV $$", 139, "SIGSEGV" },
      { "kill -TERM $$", 143, "SIGTERM" }, { "kill -HUP $$", 129, "SIGHUP" },
      { "nosuchcmd_x", 127 }, { "./noexec", 126 }, { "exit 259", 3 }, { "exit 255", 255 },
      { "true", 0 }, { "false", 1 }, { "exec >&- 2>&- <&-; exit 6", 6 } } do
      local id = pty.start(abxd, case[1]).id
      local client <close> = ws.connect(abxd, id)
      local exit, code = client:expect_exit()
      assert.same({ case[1], case[2], case[3] or json.null, false, 1000 }, { case[1], exit.exit_code, exit.signal, exit.timed_out,
        code })
      for _, told in ipairs { check.ok(abxd:get("/processes/" .. id)), pty.list(abxd)[id] } do
        for _, name in ipairs { "exit_code", "signal", "timed_out", "started_at", "duration_ms" } do
          assert.equal(exit[name], told[name])
        end
      end
    end
  end)

  it("is told at once where it cannot begin", function()
    check.problem(abxd:post("/pty", { argv = { "/nonexistent/program" } }), 404, "executable_not_found")
    check.problem(abxd:post("/pty", { argv = { abxd.base_dir } }), 400, "not_executable")
    check.problem(abxd:post("/pty", { command = "true", cwd = "nope" }), 400, "bad_cwd")
    check.problem(abxd:post("/pty", { argv = { "echo", ("x"):rep(200000) } }), 413, "payload_too_large")
    assert.same({}, pty.list(abxd))
  end)

  it("may be a timeout's", function()
    local client <close> = ws.connect(abxd, pty.start(abxd, { command = "echo before; exec sleep 3000", timeout_ms = 300 }).id)
    local exit, code = client:expect_exit()
    assert.same({ 143, "SIGTERM", true, 1000 }, { exit.exit_code, exit.signal, exit.timed_out, code })
    assert.equal("before\r\n", client:take_output())
  end)

  it("does not wait for what holds the terminal open", function()
    local sleep = check.sleep(4501)
    local started = pty.start(abxd, "setsid " .. sleep .. " & read -r line; echo bye; exit 4")
    local client <close> = ws.connect(abxd, started.id)
    assert.is_true(process.poll(20000, function()
      return #check.pids_of(sleep) == 1
    end))
    client:input("\n")
    local exit, code = client:expect_exit()
    assert.same({ 4, 1000, "\r\nbye\r\n" }, { exit.exit_code, code, client:take_output() })
    assert.equal(1, #check.pids_of(sleep)) -- it lives on
    pty.delete(abxd, started.id)
    assert.equal(0, check.gone(sleep, 20000))
  end)

  it("does not wait for what prints on and on", function()
    local started = pty.start(abxd, "setsid sh -c 'while :; do echo endless; done' & read -r line; echo bye; exit 4")
    local client <close> = ws.connect(abxd, started.id)
    client:read_until("endless\r\n", nil, true)
    client:input("\n")
    local exit, code = client:expect_exit()
    assert.same({ 4, 1000 }, { exit.exit_code, code })
    assert.matches("bye\r\n", client:take_output(), 1, true)
    pty.delete(abxd, started.id)
  end)

  it("is awaited where the program closes the terminal for a while, and that costs nothing", function()
    local client <close> = ws.connect(abxd, pty.start(abxd, "echo open; exec <&- >&- 2>&-; sleep 1; exec >/dev/tty; " ..
      "echo again; exec >&-; sleep 0.1; exit 6").id)
    client:read_until("open\r\n", nil, true)
    local before = process.cpu_s(abxd.pid)
    client:read_until("again\r\n", nil, true)
    local used = process.cpu_s(abxd.pid) - before
    assert.is_true(used < 0.2 * check.slack, used)
    assert.equal(6, client:expect_exit().exit_code)
  end)
end)
