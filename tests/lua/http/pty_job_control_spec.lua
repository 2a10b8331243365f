local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local process = require("support.process")
local pty = require("support.pty")
local server = require("support.server")
local ws = require("support.ws")

--- Session, process group, terminal and foreground group of a process, as the kernel has them.
local function ids(pid)
  local text = files.read(("/proc/%d/stat"):format(pid))
  local pgid, sid, tty, tpgid = text:match("%) %a %d+ (%d+) (%d+) (%-?%d+) (%-?%d+)")
  return { pgid = tonumber(pgid), sid = tonumber(sid), tty = tonumber(tty), tpgid = tonumber(tpgid) }
end

--- Field fault 29.
describe("in a terminal", function()
  local abxd, baseline, client, started

  lazy_setup(function()
    abxd = server.start { env = { LINES = "7", COLUMNS = "9" } }
    baseline = abxd:baseline()
  end)
  before_each(function()
    client, started = pty.shell(abxd, { cols = 91, rows = 31 })
  end)
  after_each(function()
    client:close()
    pty.clean(abxd)
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  --- Starts a sleep in the foreground that is this test's own, and waits until it runs; its pid.
  local function start_sleep(seconds)
    client:input(check.sleep(seconds) .. "\n")
    local pids
    process.poll(20000, function()
      pids = check.pids_of(check.sleep(seconds))
      return #pids == 1
    end)
    assert.equal(1, #pids)
    client:read_until(check.sleep(seconds) .. "\r\n", nil, true)
    return pids[1]
  end

  local function read_prompt()
    return client:read_until(pty.PROMPT .. "$"):sub(1, -#pty.PROMPT - 1)
  end

  it("a program leads a session of its own, whose controlling terminal it is", function()
    assert.same({ pgid = started.pid, sid = started.pid, tpgid = started.pid }, { pgid = ids(started.pid).pgid,
      sid = ids(started.pid).sid, tpgid = ids(started.pid).tpgid })
    assert.is_true(ids(started.pid).tty ~= 0)
    local tty = pty.ask(client, "tty")
    assert.matches("^/dev/pts/%d+\r\n$", tty)
    assert.equal("here\r\n", pty.ask(client, "echo here > /dev/tty"))
    local sid, pgid, tpgid, pid = pty.ask(client, "ps -o sid=,pgid=,tpgid=,pid= -p $$"):match("^ *(%d+) +(%d+) +(%d+) +(%d+)\r\n")
    assert.same({ started.pid, started.pid, started.pid }, { tonumber(sid), tonumber(pgid), tonumber(pid) })
    assert.is_true(tonumber(tpgid) ~= started.pid) -- ps itself was in the foreground
    local alone = pty.start(abxd, { argv = { "sleep", "3000" } })
    assert.same({ alone.pid, alone.pid, alone.pid }, { ids(alone.pid).pgid, ids(alone.pid).sid, ids(alone.pid).tpgid })
  end)

  it("bash -i has job control and line editing", function()
    local shell <close> = ws.connect(abxd, pty.start(abxd, { argv = { "bash", "--norc", "--noprofile", "-i" },
      env = { PS1 = pty.PROMPT } }).id)
    local before = shell:read_until(pty.PROMPT, nil, true)
    assert.is_nil(before:find("job control", 1, true), before)
    shell:input("echo $((7*6)\27[D\27[C)\n") -- moves to and fro in the line
    shell:read_until("[\r\n]42\r\n")
    shell:input("echo one tw\1\5o\n") -- to its begin and end
    shell:read_until("[\r\n]one two\r\n")
  end)

  it("the login shell starts where nothing is said", function()
    local shell <close> = ws.connect(abxd, pty.start(abxd).id)
    shell:input("echo $((20000+202)) $0\n")
    shell:read_until("20202 [^\r]*sh\r\n")
  end)

  it("Ctrl-C ends the job, not the shell", function()
    start_sleep(4481)
    client:input("\3")
    assert.equal("^C\r\n", read_prompt())
    assert.equal("130\r\n", pty.ask(client, "echo $?"))
    assert.equal(0, check.gone(check.sleep(4481)))
    client:input("half a line\3")
    read_prompt()
    pty.check_served(client)
  end)

  it("Ctrl-\\ and Ctrl-D do what they do", function()
    start_sleep(4482)
    client:input("\28")
    assert.matches("Quit", read_prompt())
    assert.equal("131\r\n", pty.ask(client, "echo $?"))
    client:input("cat\n")
    client:read_until("cat\r\n", nil, true)
    client:input("in\n\4")
    assert.equal("in\r\nin\r\n", read_prompt())
    client:input("\4")
    local exit, code = client:expect_exit()
    assert.same({ 0, 1000 }, { exit.exit_code, code })
  end)

  it("Ctrl-Z stops a job, fg and bg go on with it", function()
    local pid = start_sleep(4483)
    client:input("\26")
    assert.matches("Stopped", read_prompt())
    assert.equal("T", process.stat(pid).state)
    assert.matches("Stopped +" .. check.sleep(4483):gsub("%p", "%%%0"), pty.ask(client, "jobs"))
    pty.ask(client, "bg")
    assert.matches("Running", pty.ask(client, "jobs"))
    assert.is_true(process.stat(pid).state ~= "T")
    client:input("fg\n")
    assert.equal(pid, process.poll(20000, function()
      return ids(started.pid).tpgid == pid and pid
    end))
    client:input("\3")
    read_prompt()
    assert.equal(0, check.gone(check.sleep(4483)))
  end)

  it("Ctrl-C in one terminal is not felt in another, nor by the server", function()
    local other <close>, other_started = pty.shell(abxd)
    other:input(check.sleep(4484) .. "\n")
    other:read_until(check.sleep(4484) .. "\r\n", nil, true)
    start_sleep(4485)
    client:input("\3")
    read_prompt()
    assert.equal(1, #check.pids_of(check.sleep(4484)))
    assert.equal("sleep", pty.wait_field(abxd, other_started.id, "foreground", "sleep"))
    assert.is_true(abxd.child:is_running())
    other:input("\3")
    other:read_until("^C", nil, true)
  end)

  describe("a signal message", function()
    it("reaches the foreground job and nobody else", function()
      for _, case in ipairs { { "SIGINT", 130 }, { "TERM", 143 }, { "SIGKILL", 137 }, { "hup", 129 }, { "SIGUSR1", 138 },
        { "QUIT", 131 } } do
        start_sleep(4486)
        client:signal(case[1])
        read_prompt()
        assert.same({ case[1], case[2] .. "\r\n" }, { case[1], pty.ask(client, "echo $?") })
        assert.equal(0, check.gone(check.sleep(4486)))
      end
      assert.equal(started.pid .. "\r\n", pty.ask(client, "echo $$"))
    end)

    it("reaches all of a pipeline", function()
      client:input(check.sleep(4487) .. " | " .. check.sleep(4488) .. "\n")
      assert.is_true(process.poll(20000, function()
        return #check.pids_of(check.sleep(4487)) == 1 and #check.pids_of(check.sleep(4488)) == 1
      end))
      client:read_until("\r\n", nil, true)
      client:signal("SIGTERM")
      read_prompt()
      assert.equal("143 143\r\n", pty.ask(client, "echo ${PIPESTATUS[@]}"))
      assert.same({ 0, 0 }, { check.gone(check.sleep(4487)), check.gone(check.sleep(4488)) })
    end)

    it("stops, goes on, and is caught", function()
      local pid = start_sleep(4489)
      client:signal("SIGSTOP")
      assert.matches("Stopped", read_prompt())
      client:input("fg\n")
      assert.equal(pid, process.poll(20000, function()
        return ids(started.pid).tpgid == pid and pid
      end))
      client:signal("SIGINT")
      read_prompt()
      client:input("sh -c 'trap \"echo caught\" USR2; echo re''ady; while :; do sleep 0.05; done'\n")
      client:read_until("ready\r\n", nil, true)
      client:signal("USR2")
      client:read_until("caught\r\n", nil, true)
      client:signal("KILL")
      read_prompt()
      pty.check_served(client)
    end)

    it("to the shell itself may end it, and the exit tells so", function()
      local alone <close> = pty.attach(abxd, pty.start(abxd, { argv = { "sleep", "3000" } }).id)
      alone:signal("SIGTERM")
      local exit, code = alone:expect_exit()
      assert.same({ 143, "SIGTERM", 1000 }, { exit.exit_code, exit.signal, code })
    end)
  end)

  it("the settings are sane", function()
    local settings = pty.ask(client, "stty -a")
    assert.matches("rows 31; columns 91;", settings, 1, true)
    assert.matches("intr = ^C; quit = ^\\; erase = ^?;", settings, 1, true)
    for _, word in ipairs { "isig", "icanon", "iexten", "echo", "echoe", "echok", "icrnl", "opost", "onlcr", "iutf8", "ixon",
      "cread" } do
      assert.matches("[ \n]" .. word .. "[ ;\r]", settings)
    end
    client:input("echo 'é\127'\n") -- erase takes the whole character away
    assert.matches("'\r\n\r\n$", read_prompt())
  end)

  it("TERM, the size and nothing of the server's own terminal is in the environment", function()
    assert.equal("xterm-256color\r\n", pty.ask(client, "echo $TERM"))
    assert.equal("91\r\n31\r\n", pty.ask(client, "tput cols; tput lines"))
    local plain <close> = ws.connect(abxd, pty.start(abxd, { command = "env", term = "vt100" }).id)
    assert.equal(0, plain:expect_exit().exit_code)
    local env = plain:take_output()
    assert.matches("TERM=vt100\r\n", env, 1, true)
    assert.is_nil(env:find("LINES=", 1, true))
    assert.is_nil(env:find("COLUMNS=", 1, true))
    local own <close> = ws.connect(abxd, pty.start(abxd, { command = "echo $TERM $COLUMNS", term = "vt100",
      env = { TERM = "dumb", COLUMNS = "55" } }).id)
    assert.equal(0, own:expect_exit().exit_code)
    assert.equal("dumb 55\r\n", own:take_output())
  end)

  it("a program has descriptors 0 to 2 only, no signal ignored or blocked", function()
    local others = {}
    for i = 1, 5 do
      others[i] = pty.attach(abxd, pty.start(abxd, "exec cat").id)
    end
    local one <close> = ws.connect(abxd, pty.start(abxd, "ls -l /proc/self/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status").id)
    assert.equal(0, one:expect_exit().exit_code)
    local text = one:take_output()
    local fds = {}
    for fd, path in text:gmatch("(%d+) %-> (%S+)") do
      fds[#fds + 1] = fd
      assert.matches(#fds <= 3 and "^/dev/pts/%d+$" or "^/proc/", path)
    end
    assert.same({ "0", "1", "2", "3" }, fds) -- the last is ls's own
    assert.matches("SigBlk:%s*0+\r\nSigIgn:%s*0+\r\n", text)
    for i = 1, 5 do
      others[i]:close()
    end
  end)

  it("GET /pty tells the foreground program and its directory as they are now", function()
    assert.equal("bash", pty.wait_field(abxd, started.id, "foreground", "bash"))
    assert.equal(abxd.base_dir, pty.list(abxd)[started.id].cwd)
    pty.ask(client, "mkdir -p 'sub dir' && cd 'sub dir'")
    assert.equal(abxd.base_dir .. "/sub dir", pty.list(abxd)[started.id].cwd)
    start_sleep(4490)
    assert.equal("sleep", pty.wait_field(abxd, started.id, "foreground", "sleep"))
    client:input("\3")
    read_prompt()
    assert.equal("bash", pty.wait_field(abxd, started.id, "foreground", "bash"))
    client:input("cd /; env -C /usr " .. check.sleep(4491) .. "\n")
    assert.equal("/usr", pty.wait_field(abxd, started.id, "cwd", "/usr"))
    client:input("\3")
    client:read_until("^C", nil, true)
    read_prompt()
    assert.equal("/", pty.wait_field(abxd, started.id, "cwd", "/"))
    client:input("exit 0\n")
    client:expect_exit()
    local ended = pty.list(abxd)[started.id]
    assert.same({ json.null, json.null, 0 }, { ended.foreground, ended.cwd, ended.exit_code })
  end)
end)
