local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local process = require("support.process")
local pty = require("support.pty")
local server = require("support.server")
local ws = require("support.ws")
local ws_frame = require("support.ws_frame")

describe("a client that comes and goes", function()
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

  it("does not end the terminal by leaving, however it leaves", function()
    local first, started = pty.shell(abxd)
    local pid = pty.ask(first, "echo $$")
    assert.equal(started.pid .. "\r\n", pid)
    local ways = {
      function(client)
        assert.equal(1000, client:leave(1000, "bye"))
      end,
      function(client)
        assert.equal(1001, client:leave(1001))
      end,
      function(client) -- a close without a code
        client.leaving = true
        client:send_frame(ws_frame.CLOSE, "")
        client:expect_close()
        client:close()
      end,
      function(client)
        client:close()
      end,
      function(client)
        client:abort()
      end,
      function(client)
        client:input("sleep 0.2\n")
        client:abort()
      end,
      function(client) -- within a frame
        client:send_raw("\x81\xfe\x10")
        client:close()
      end,
      function(client) -- within a message
        client:send_frame(ws_frame.TEXT, '{"type":', { fin = false })
        client:close()
      end,
    }
    first:close()
    for _, leave in ipairs(ways) do
      leave(pty.attach(abxd, started.id, { since = -1 }))
    end
    local last <close> = pty.attach(abxd, started.id, { since = -1 })
    last:input("echo $((100*10)) $$\n")
    last:read_until("1000 " .. pid, nil, true)
    assert.equal(1, pty.wait_field(abxd, started.id, "clients", 1))
  end)

  --- One message, or none where none comes soon.
  local function step_if_any(client)
    local ok, why = pcall(client.step, client, 0.05)
    assert(ok or why:find("no whole frame came", 1, true), why)
  end

  it("loses and repeats nothing over 200 reconnects under constant output", function()
    -- 3.9 MB at most, so that all of it is kept whatever the machine does meanwhile; then silence until the end.
    local LINES, STEP = 350000, 500
    local started = pty.start(abxd, ([[i=100000000; while ! [ -e go ]; do
      if [ $i -lt %d ]; then seq $i $((i + %d)); i=$((i + %d)); fi; sleep 0.01; done; exit 6]]):format(100000000 + LINES,
      STEP - 1, STEP))
    local offset, parts = 0, {}
    for i = 1, 200 do
      local client = pty.attach(abxd, started.id, { since = offset })
      assert.equal(offset, client.ready.offset)
      for _ = 1, i % 4 do -- leaves in the middle of whatever comes
        step_if_any(client)
      end
      assert.same({}, client.gaps)
      parts[i] = client:take_output()
      offset = client.offset
      if i % 3 == 0 then
        client:abort()
      elseif i % 3 == 1 then
        client:close()
      else
        client:send_frame(ws_frame.CLOSE, ws_frame.close_payload(1000))
        client:close()
      end
    end
    files.write(abxd.base_dir .. "/go", "")
    local last <close> = pty.attach(abxd, started.id, { since = offset })
    assert.equal(6, last:expect_exit().exit_code)
    parts[#parts + 1] = last:take_output()
    local text = table.concat(parts)
    assert.equal(pty.list(abxd)[started.id].offset, #text)
    assert.is_true(offset > pty.numbered_bytes(STEP))
    pty.check_numbered(0, text)
    assert.equal(0, pty.wait_field(abxd, started.id, "clients", 0))
  end)

  it("may be one of a hundred", function()
    local first, started = pty.shell(abxd)
    local clients = { first }
    for i = 2, 100 do
      clients[i] = pty.attach(abxd, started.id, { since = -1 })
    end
    assert.equal(100, pty.list(abxd)[started.id].clients)
    first:input("echo $((1000*1000)); exit 2\n")
    for i = 1, 100 do
      local exit, code = clients[i]:expect_exit()
      assert.same({ 2, 1000 }, { exit.exit_code, code })
      assert.matches("1000000\r\n", clients[i]:take_output(), 1, true)
      clients[i]:close()
    end
    assert.equal(0, pty.wait_field(abxd, started.id, "clients", 0))
    assert.is_nil(process.stat(started.pid))
  end)
end)

describe("where connections are limited", function()
  it("a terminal's client waits until another has left", function()
    local LIMIT = 8
    local abxd <close> = server.start { args = { "--limits-connections", tostring(LIMIT) } }
    local started = pty.start(abxd, "exec cat")
    local clients = {}
    for i = 1, LIMIT do
      clients[i] = pty.attach(abxd, started.id)
    end
    local late = http.connect { host = abxd.host, port = abxd.ws_port }
    late:send(ws.request(abxd, started.id))
    clients[1]:send_json { type = "ping" }
    clients[1]:wait("pong")
    check.unanswered(late)
    assert.equal(LIMIT, pty.list(abxd)[started.id].clients)
    clients[2]:close()
    assert.equal(101, late:read_head("GET").status)
    late:close()
    for _, client in ipairs(clients) do
      client:close()
    end
  end)
end)
