local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local pty = require("support.pty")
local runs = require("support.runs")
local server = require("support.server")
local ws = require("support.ws")

describe("a client that attaches to a terminal", function()
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start()
    baseline = abxd:baseline()
  end)
  after_each(function()
    os.remove(abxd.base_dir .. "/go")
    pty.clean(abxd)
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  --- Until go() a program prints nothing more.
  local WAIT = "; while ! [ -e go ]; do sleep 0.02; done; "

  local function go()
    files.write(abxd.base_dir .. "/go", "")
  end

  it("is told ready first, then what was printed before it came", function()
    local started = pty.start(abxd, { command = "printf early; exec cat", cols = 101, rows = 33 })
    assert.equal(5, pty.wait_field(abxd, started.id, "offset", 5))
    assert.equal(0, pty.list(abxd)[started.id].clients)
    local client <close> = ws.connect(abxd, started.id)
    assert.equal("text", client:step().kind)
    assert.same({ type = "ready", id = started.id, cols = 101, rows = 33, offset = 0 }, client.ready)
    assert.equal("early", client:read_to(5))
    assert.equal(1, pty.list(abxd)[started.id].clients)
    client:input("later\n")
    assert.equal("later\r\nlater\r\n", client:read_to(19))
    assert.equal(19, pty.list(abxd)[started.id].offset)
  end)

  describe("begins where since says:", function()
    local started

    before_each(function()
      started = pty.start(abxd, "printf '0123456789'" .. WAIT .. "printf ABC; exec cat")
      pty.wait_field(abxd, started.id, "offset", 10)
    end)

    for since, expected in pairs { [0] = "0123456789ABC", [1] = "123456789ABC", [9] = "9ABC", [10] = "ABC", [-1] = "ABC" } do
      it(since .. "", function()
        local client <close> = pty.attach(abxd, started.id, { since = since })
        assert.equal(13 - #expected, client.ready.offset)
        go()
        assert.equal(expected, client:read_to(13))
        assert.same({}, client.gaps)
      end)
    end

    it("an offset that has not come yet is refused", function()
      for _, since in ipairs { "11", "99999999999", "9223372036854775807" } do
        check.problem(ws.refused(abxd, started.id, { query = { since = since } }), 400, "invalid_request", "since")
      end
      assert.equal(0, pty.list(abxd)[started.id].clients)
    end)
  end)

  it("shares the terminal with others", function()
    local one <close>, started = pty.shell(abxd)
    local two <close> = pty.attach(abxd, started.id)
    two:read_until(pty.PROMPT, nil, true)
    assert.equal(2, pty.list(abxd)[started.id].clients)
    assert.equal("1\r\n", pty.ask(one, "echo $((0+1))"))
    assert.equal("echo $((0+1))\r\n1\r\n" .. pty.PROMPT, two:read_to(one.offset))
    assert.equal("2\r\n", pty.ask(two, "echo $((1+1))"))
    assert.equal("echo $((1+1))\r\n2\r\n" .. pty.PROMPT, one:read_to(two.offset))
    one:close()
    assert.equal(1, pty.wait_field(abxd, started.id, "clients", 1))
    pty.check_served(two)
  end)

  it("can be read-only: its input and signals are errors, its size is ignored", function()
    local other <close>, started = pty.shell(abxd)
    local watcher <close> = pty.attach(abxd, started.id, { access = "ro", cols = 33, rows = 11 })
    assert.same({ 80, 24 }, { watcher.ready.cols, watcher.ready.rows })
    watcher:input("echo no\n")
    assert.equal("permission_denied", watcher:wait("error").code)
    watcher:send_binary("echo no\n")
    assert.equal("permission_denied", watcher:wait("error").code)
    watcher:signal("SIGKILL")
    assert.equal("permission_denied", watcher:wait("error").code)
    watcher:resize(44, 22)
    watcher:send_json { type = "ping" }
    assert.same({ type = "pong" }, watcher:wait("pong"))
    assert.equal("24 80\r\n", pty.ask(other, "stty size"))
    watcher:read_to(other.offset)
    assert.equal("pong", watcher.messages[#watcher.messages].type)
    assert.equal("ready", other.messages[#other.messages].type)
  end)

  it("hears of the exit after the last byte, and is closed with 1000", function()
    local clients, started = {}, pty.start(abxd, "printf abc" .. WAIT .. "printf def; exit 3")
    for i = 1, 3 do
      clients[i] = pty.attach(abxd, started.id, i == 3 and { access = "ro" } or nil)
    end
    go()
    for i = 1, 3 do
      local exit, code, reason = clients[i]:expect_exit() -- the client refuses bytes after the exit
      assert.same({ 3, json.null, false, 1000, "" }, { exit.exit_code, exit.signal, exit.timed_out, code, reason })
      assert.equal("abcdef", clients[i]:take_output())
      local listed, names = pty.list(abxd)[started.id], {}
      for name, value in pairs(exit) do
        names[#names + 1] = name
        assert.is_true(name == "type" or listed[name] == value, name)
      end
      assert.equal(6, #names) -- type and the five exit fields
      assert.matches("^%d+%-%d%d%-%d%dT[%d:]+%.%d%d%dZ$", exit.started_at)
      clients[i]:close()
    end
    assert.equal(0, pty.wait_field(abxd, started.id, "clients", 0))
  end)

  it("gets everything and the exit after the end, too, as often as it comes", function()
    local started = pty.start(abxd, "printf abc; exit 4")
    assert.equal(4, pty.wait_end(abxd, started.id).exit_code)
    for since, expected in pairs { [0] = "abc", [2] = "c", [3] = "", [-1] = "" } do
      local client <close> = pty.attach(abxd, started.id, { since = since })
      local exit, code = client:expect_exit()
      assert.same({ expected, 4, 1000 }, { client:take_output(), exit.exit_code, code })
    end
  end)

  it("is closed with 4004 where there is no such terminal", function()
    local gone = pty.start(abxd, "exit 0")
    pty.delete(abxd, gone.id)
    local run = runs.start(abxd, "exit 0")
    for _, id in ipairs { gone.id, run, "p-0", "x", ("y"):rep(64) } do
      for _, mode in ipairs { "json", "raw" } do
        local client <close> = ws.connect(abxd, id, { query = { mode = mode } })
        local code = client:expect_close()
        assert.same({ id, 4004 }, { id, code })
        assert.same({}, client.messages)
        assert.equal("", client:take_output())
      end
    end
  end)

  describe("with mode=raw", function()
    it("gets bytes and nothing else, types with text and binary frames, and reads the exit from the close", function()
      local started = pty.start(abxd, pty.shell_body())
      local client <close> = ws.connect(abxd, started.id, { query = { mode = "raw" } })
      client:read_until(pty.PROMPT, nil, true)
      pty.check_served(client)
      client:send_binary("echo $((2+3))\n")
      assert.equal("echo $((2+3))\r\n5\r\n" .. pty.PROMPT, client:read_until(pty.PROMPT, nil, true))
      client:input('{"type":"resize","cols":10,"rows":10}\n') -- keystrokes, too
      assert.matches("resize", client:read_until(pty.PROMPT, nil, true))
      assert.equal("24 80\r\n", pty.ask(client, "stty size"))
      client:input("exit 7\n")
      local exit, code, reason = client:expect_exit() -- the client refuses texts
      assert.same({ exit_code = 7 }, exit)
      assert.same({ 1000, '{"exit_code":7}' }, { code, reason })
      assert.matches("^exit 7\r\n", client:take_output())
    end)

    it("and read-only, types nothing", function()
      local other <close>, started = pty.shell(abxd)
      local watcher <close> = ws.connect(abxd, started.id, { query = { mode = "raw", access = "ro" } })
      watcher:read_until(pty.PROMPT, nil, true)
      watcher:input("echo no\n")
      watcher:send_binary("echo no\n")
      pty.check_served(other)
      watcher:read_until("42\r\n" .. pty.PROMPT, nil, true)
      assert.equal(1000, watcher:leave()) -- what it sent before has been seen
      assert.equal("", pty.ask(other, "true"))
    end)

    it("begins where since says", function()
      local started = pty.start(abxd, "printf 0123456789; exit 1")
      pty.wait_end(abxd, started.id)
      for since, expected in pairs { [0] = "0123456789", [8] = "89", [-1] = "" } do
        local client <close> = ws.connect(abxd, started.id, { query = { mode = "raw", since = since } })
        assert.same({ exit_code = 1 }, (client:expect_exit()))
        assert.equal(expected, client:take_output())
      end
    end)
  end)
end)
