local http = require("support.http")
local process = require("support.process")
local pty = require("support.pty")
local server = require("support.server")
local socket = require("socket")
local uv = require("luv")
local ws = require("support.ws")

--- What takes half a minute, all at once: each of these is begun, then waited for together.
describe("a terminal's client, after half a minute:", function()
  local abxd, baseline, idle, started, slow, half, begun

  lazy_setup(function()
    abxd = server.start { env = { ABX_SERVER_TOKEN = "tok-2Lm" } }
    baseline = abxd:baseline()
    started = pty.start(abxd, "exec cat")
    idle = pty.attach(abxd, started.id)
    slow = pty.attach(abxd, pty.start(abxd, "yes").id) -- reads nothing from now on
    half = http.connect { host = abxd.host, port = abxd.ws_port }
    half:send("GET /pty/" .. started.id .. " HTTP/1.1\r\nHost: localhost\r\n")
    begun = uv.hrtime()
  end)
  lazy_teardown(function()
    for _, one in ipairs { idle, slow, half } do
      one:close()
    end
    pty.clean(abxd)
    abxd:assert_settled(baseline)
    abxd:stop()
  end)

  local function wait_until(seconds)
    uv.sleep(math.max(0, math.ceil((seconds * 1e9 - (uv.hrtime() - begun)) / 1e6)))
  end

  it("its head did not come in time: the connection was closed", function()
    assert.is_true(half:is_closed(25))
    assert.is_true(half.buffer == "" or half.buffer:find("^HTTP/1%.1 408 ") ~= nil, half.buffer)
  end)

  it("it has got a ping, and stays as long as it answers", function()
    local stop = socket.gettime() + 60
    while idle.pings < 1 do
      pcall(idle.step, idle, 1)
      assert.is_true(idle.closed == nil and not idle.ended)
      assert.is_true(socket.gettime() < stop, "no ping for a minute")
    end
    local seconds = (uv.hrtime() - begun) / 1e9
    assert.is_true(seconds > 15, seconds)
    idle:input("still here\n")
    idle:read_until("still here\r\nstill here\r\n", nil, true)
  end)

  it("its ticket is no longer good", function()
    wait_until(31)
    assert.equal(401, ws.refused(abxd, started.id, { ticket = started.ticket }).status)
    idle:close()
    pty.accepted(abxd, started.id)
  end)

  it("one that read nothing no longer holds the program up, and finds a gap", function()
    -- What it may hold up at most: sockets, and the mebibyte it may be behind.
    local past = slow.offset + 32 * 1024 * 1024
    assert.is_true(process.poll(120000, function()
      return pty.list(abxd)[slow.ready.id].offset > past
    end))
    repeat
      slow:step()
    until #slow.gaps > 0
    assert.is_true(slow.gaps[1].to > slow.gaps[1].from)
    slow:read_to(slow.gaps[1].to + 1000)
  end)
end)
