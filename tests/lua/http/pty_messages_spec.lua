local check = require("support.check")
local json = require("support.json")
local pty = require("support.pty")
local server = require("support.server")
local ws_frame = require("support.ws_frame")

local MIB = 1024 * 1024
local PING_MESSAGE = '{"type":"ping"}'

describe("a message of a terminal's client", function()
  local abxd, baseline, client, started

  lazy_setup(function()
    abxd = server.start()
    baseline = abxd:baseline()
  end)
  before_each(function()
    client, started = pty.shell(abxd)
  end)
  after_each(function()
    client:close()
    pty.clean(abxd)
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  --- Asserts that a text gets that error, with words in its detail, and that the connection goes on.
  local function check_error(text, code, words)
    client:send_text(text)
    local said = client:wait("error")
    assert.same({ text, code }, { text, said.code })
    assert.is_true(#said.detail > 0)
    if words then
      assert.matches(words, said.detail, 1, true)
    end
    client:send_text(PING_MESSAGE)
    assert.same({ type = "pong" }, client:wait("pong"))
  end

  it("that is no JSON gets an error, not a close", function()
    for _, text in ipairs { "", " ", "ping", "{", '{"type":"ping"', '{"type":"ping"}}', '{"type":"ping"} x', "{'type':'ping'}",
      '{"type":"ping","type":"ping"}', '{"type":"ping",}', "\u{FEFF}" .. PING_MESSAGE, '{"type":"input","data":"\\ud800"}',
      '{"type":"input","data":"\n"}', '{"type":"resize","cols":01,"rows":2}', '{"type":"resize","cols":NaN,"rows":2}',
      '{"type":"resize","cols":1,"rows":0x10}', PING_MESSAGE .. PING_MESSAGE } do
      check_error(text, "invalid_json")
    end
  end)

  it("that is deep gets an error, however deep it is", function()
    for _, depth in ipairs { 65, 100, 1000, 10000, 100000 } do
      check_error('{"x":' .. ("["):rep(depth) .. ("]"):rep(depth) .. "}", "invalid_json")
      check_error(('{"":'):rep(depth) .. "1" .. ("}"):rep(depth), "invalid_json")
      check_error(("["):rep(depth), "invalid_json")
    end
    check_error(("["):rep(MIB), "invalid_json")
  end)

  it("that means nothing gets an error that tells what is wrong", function()
    for _, case in ipairs {
      { "null" }, { "5" }, { '"ping"' }, { "[]" }, { "true" }, { "{}", "type" }, { '{"type":null}', "type" },
      { '{"type":5}', "type" }, { '{"type":"pong"}', "type" }, { '{"type":"Ping"}', "type" }, { '{"type":"ping","x":1}', "x" },
      { '{"type":"input"}', "data" }, { '{"type":"input","data":5}', "data" }, { '{"type":"input","data":null}', "data" },
      { '{"type":"input","data":"","eof":true}', "eof" }, { '{"type":"signal"}', "signal" },
      { '{"type":"signal","signal":2}', "signal" },
      { '{"type":"signal","signal":"SIGNOPE"}' }, { '{"type":"signal","signal":""}' },
    } do
      check_error(case[1], "invalid_request", case[2])
    end
  end)

  it("with a signal that clients may not send is told so", function()
    for _, name in ipairs { "SIGSEGV", "ABRT", "SIGCHLD", "SIGTSTP", "SIGRTMIN" } do
      check_error(json.encode { type = "signal", signal = name }, "signal_not_allowed")
    end
    pty.check_served(client)
  end)

  it("may hold spaces, escapes and members in any order", function()
    client:send_text(' {\n"data" : "ec\\u0068o $((5*5))\\n"\t,"\\u0074ype":"inp\\u0075t" }\r\n')
    client:read_until("\r\n25\r\n" .. pty.PROMPT, nil, true)
    client:send_text('{"data":"","type":"input"}')
    pty.check_served(client)
  end)

  it("may be a hundred thousand bad ones of a client that reads nothing: memory stays flat", function()
    local before = abxd:rss_bytes()
    local bad = ws_frame.encode(ws_frame.TEXT, '{"type":"nonsense"}'):rep(1000)
    local pings = (ws_frame.encode(ws_frame.TEXT, PING_MESSAGE) .. ws_frame.encode(ws_frame.PING, ("p"):rep(125))):rep(1000)
    -- Not through client:send_raw, which takes in what comes.
    client.sock:settimeout(0.05)
    local stalled = false
    for i = 1, 100 do
      local bytes, at = i % 2 == 0 and bad or pings, 1
      while at <= #bytes and not stalled do
        local sent, why, last = client.sock:send(bytes, at)
        stalled = not sent and why == "timeout" and last == at - 1
        at = (sent or last) + 1
      end
    end
    local grown = abxd:rss_bytes() - before
    assert.is_true(grown < 24 * MIB * check.slack, grown)
    check.prompt(abxd, 0.1)
    local other <close> = pty.attach(abxd, started.id)
    other:read_until(pty.PROMPT, nil, true)
    pty.check_served(other)
    client:abort()
  end)

  it("may be anything at all", function()
    local seed = 1
    local function random(limit)
      seed = (seed * 1103515245 + 12345) % 2147483648
      return seed // 65536 % limit
    end
    for _ = 1, 150 do
      local fuzzed = pty.attach(abxd, started.id, { access = "ro", since = -1 })
      local bytes = {}
      for i = 1, 1 + random(200) do
        bytes[i] = string.char(random(256))
      end
      fuzzed:send_raw(table.concat(bytes))
      fuzzed:send_frame(random(16), table.concat(bytes), { fin = random(2) == 0, rsv = random(4) == 0 and random(8) or 0 })
      if random(2) == 0 then
        fuzzed:abort()
      else
        fuzzed:close()
      end
    end
    pty.check_served(client)
    assert.equal(1, pty.wait_field(abxd, started.id, "clients", 1))
  end)
end)
