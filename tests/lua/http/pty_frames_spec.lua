local pty = require("support.pty")
local server = require("support.server")
local ws_frame = require("support.ws_frame")

local MIB = 1024 * 1024
local CONTINUATION, TEXT, BINARY = ws_frame.CONTINUATION, ws_frame.TEXT, ws_frame.BINARY
local CLOSE, PING, PONG = ws_frame.CLOSE, ws_frame.PING, ws_frame.PONG
local PING_MESSAGE = '{"type":"ping"}'

--- Field fault 28 with part of 41. After each the terminal and another client, of another terminal, are served.
describe("frames of a terminal's client:", function()
  local abxd, baseline, started, bystander, client

  lazy_setup(function()
    abxd = server.start()
    baseline = abxd:baseline()
  end)
  before_each(function()
    bystander = pty.shell(abxd)
    client, started = pty.shell(abxd)
  end)
  after_each(function()
    client:close()
    pty.check_served(bystander)
    bystander:close()
    local again <close> = pty.attach(abxd, started.id)
    again:input("\necho $((7*7))\n")
    again:read_until("49\r\n" .. pty.PROMPT, nil, true)
    again:close()
    pty.clean(abxd)
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  --- Asserts that a message gets that error and the connection goes on.
  local function check_error(code)
    assert.equal(code, client:wait("error").code)
    client:send_text(PING_MESSAGE)
    assert.same({ type = "pong" }, client:wait("pong"))
  end

  --- Asserts that the server closes with that code and ends the connection.
  local function check_closed(code)
    assert.equal(code, (client:expect_close()))
  end

  --- Waits for the pong to a ping frame, and returns what it holds: it may come behind what was sent later.
  local function wait_pong()
    while #client.pongs == 0 do
      client:send_text(PING_MESSAGE)
      client:wait("pong")
    end
    return table.remove(client.pongs, 1)
  end

  --- A message of so many bytes that means a ping.
  local function long_ping(size)
    return '{"type":"ping"' .. (" "):rep(size - #PING_MESSAGE) .. "}"
  end

  it("fragments with a ping in between are one message", function()
    client:send_frame(TEXT, '{"type":"input","data":"ec', { fin = false })
    client:send_frame(PING, "between")
    client:send_frame(CONTINUATION, 'ho h"', { fin = false })
    client:send_frame(PONG, "nobody asked")
    client:send_frame(CONTINUATION, "", { fin = false })
    client:send_frame(CONTINUATION, "}")
    client:send_binary("\n")
    client:read_until("\r\nh\r\n" .. pty.PROMPT, nil, true)
    assert.equal("between", wait_pong())
  end)

  it("a message in frames of one byte, and in segments of one byte", function()
    local letters = {}
    for letter in ('{"type":"input","data":"echo é\\u00e9\\n"}'):gmatch(".") do
      letters[#letters + 1] = letter -- é is cut in two
    end
    client:send_fragments(TEXT, letters)
    client:read_until("\r\néé\r\n" .. pty.PROMPT, nil, true)
    for byte in ws_frame.encode(TEXT, '{"type":"input","data":"echo $((3*3))\\n"}'):gmatch(".") do
      client:send_raw(byte)
    end
    client:read_until("\r\n9\r\n" .. pty.PROMPT, nil, true)
    for letter in ("echo $((4*4))\n"):gmatch(".") do
      client:send_binary(letter)
    end
    client:read_until("\r\n16\r\n" .. pty.PROMPT, nil, true)
  end)

  it("lengths of each width, a zero mask, a ping as long as may be", function()
    for _, mask in ipairs { "\0\0\0\0", "\xff\xff\xff\xff" } do
      client:send_frame(TEXT, PING_MESSAGE, { mask = mask })
      client:wait("pong")
    end
    for _, size in ipairs { 125, 126, 127, 65535, 65536, MIB } do
      client:send_text(long_ping(size))
      client:wait("pong")
    end
    for _, payload in ipairs { "", "x", ("p"):rep(125) } do
      client:send_frame(PING, payload)
      assert.equal(payload, wait_pong())
    end
  end)

  it("empty ones", function()
    client:send_binary("")
    client:send_fragments(BINARY, { "", "", "" })
    client:send_frame(PONG, "")
    client:send_text("")
    check_error("invalid_json")
    client:send_fragments(TEXT, { "", "", "" })
    check_error("invalid_json")
    pty.check_served(client)
  end)

  it("a hundred thousand empty fragments cost no memory", function()
    local before = abxd:rss_bytes()
    client:send_frame(TEXT, '{"type":', { fin = false })
    local thousand = ws_frame.encode(CONTINUATION, "", { fin = false }):rep(1000)
    for _ = 1, 100 do
      if not client:send_raw(thousand) then
        break -- it may close, too
      end
    end
    client:send_frame(CONTINUATION, '"ping"}')
    local ok, pong = pcall(client.wait, client, "pong")
    assert.is_true(ok and pong.type == "pong" or client.closed ~= nil, pong)
    assert.is_true(abxd:rss_bytes() - before < 16 * MIB)
  end)

  describe("over 1 MiB are closed with 1009:", function()
    it("20 MB at once, and the sender gets to see it", function()
      client:send_text(long_ping(20 * 1000 * 1000))
      check_closed(1009)
    end)

    it("20 MB of binary", function()
      client:input("cat >/dev/null\n")
      client:send_binary(("x"):rep(20 * 1000 * 1000))
      check_closed(1009)
      local again <close> = pty.attach(abxd, started.id)
      again:input("\3")
      again:read_until(pty.PROMPT .. "$")
    end)

    it("one byte more than 1 MiB, in one frame or in fragments", function()
      client:send_text(long_ping(MIB + 1))
      check_closed(1009)
      client:close()
      client = pty.attach(abxd, started.id)
      local half = long_ping(MIB // 2)
      client:send_fragments(TEXT, { half:sub(1, -2), (" "):rep(MIB // 2), " }" })
      check_closed(1009)
    end)

    it("a length of 2^32 and more that never comes", function()
      client:send_frame(TEXT, "x", { length = 1 << 33 })
      client:send_raw((" "):rep(2 * MIB))
      check_closed(1009)
    end)
  end)

  describe("against the protocol are closed with 1002:", function()
    for rsv = 1, 7 do
      it("reserved bits " .. rsv, function()
        client:send_frame(TEXT, PING_MESSAGE, { rsv = rsv })
        check_closed(1002)
        assert.equal(1, #client.messages) -- ready
      end)
    end

    for _, opcode in ipairs { 3, 4, 5, 6, 7, 11, 12, 13, 14, 15 } do
      it("opcode " .. opcode, function()
        client:send_frame(opcode, "x")
        check_closed(1002)
      end)
    end

    it("a continuation of nothing", function()
      client:send_frame(CONTINUATION, PING_MESSAGE)
      check_closed(1002)
    end)

    it("and nothing follows the close, nor is what follows input", function()
      client:input("while :; do echo on and on; done\n")
      client:read_until("on and on\r\n", nil, true)
      local bad = ws_frame.encode(3, ("\x81\x05exit\n"):rep(20), { mask = "\0\0\0\0" })
      client:send_raw(ws_frame.encode(TEXT, "", { rsv = 3 }) .. bad:rep(20))
      check_closed(1002) -- the client refuses what comes behind it
      client:close()
      client = pty.attach(abxd, started.id, { since = -1 })
      client:input("\3")
      client:read_until(pty.PROMPT .. "$")
    end)

    it("a message within a message", function()
      client:send_frame(TEXT, '{"type":', { fin = false })
      client:send_frame(TEXT, PING_MESSAGE)
      check_closed(1002)
    end)

    for width, sizes in pairs { [16] = { 0, 125 }, [64] = { 0, 125, 126, 65535 } } do
      for _, size in ipairs(sizes) do
        it(("a length of %d in %d bits"):format(size, width), function()
          client:send_frame(BINARY, ("x"):rep(size), { wide = width })
          check_closed(1002)
        end)
      end
    end

    it("a length of 2^63", function()
      client:send_frame(TEXT, "x", { length = math.mininteger, wide = 64 })
      check_closed(1002)
    end)

    for name, opcode in pairs { text = TEXT, binary = BINARY, ping = PING, close = CLOSE } do
      it("a frame that is not masked: " .. name, function()
        client:send_frame(opcode, "# not masked\n", { mask = false })
        check_closed(1002)
        assert.equal(1, #client.messages) -- ready
      end)
    end

    for _, opcode in ipairs { CLOSE, PING, PONG } do
      for _, size in ipairs { 126, 65536 } do
        it(("a control frame %d of %d bytes"):format(opcode, size), function()
          client:send_frame(opcode, ("\3\xe8"):rep(size // 2))
          check_closed(1002)
        end)
      end

      it(("a control frame %d in fragments"):format(opcode), function()
        client:send_frame(opcode, "\3\xe8", { fin = false })
        check_closed(1002)
      end)
    end

    for _, code in ipairs { 0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 65535 } do
      it("the close code " .. code, function()
        client:send_frame(CLOSE, ws_frame.close_payload(code))
        check_closed(1002)
      end)
    end
  end)

  describe("the client's close is answered, once:", function()
    before_each(function()
      client.leaving = true -- does not answer a close
    end)

    for _, code in ipairs { 1000, 1001, 1011, 3000, 4999 } do
      it("with its code " .. code, function()
        client:send_frame(CLOSE, ws_frame.close_payload(code, "good-bye"))
        check_closed(code)
        assert.equal("good-bye", client.closed.reason)
      end)
    end

    it("without a code where it has none", function()
      client:send_frame(CLOSE, "")
      check_closed(nil)
      assert.not_nil(client.closed)
    end)

    it("where it is one byte", function()
      client:send_frame(CLOSE, "\3")
      check_closed(nil)
      assert.not_nil(client.closed)
    end)

    it("where its reason is not UTF-8", function()
      client:send_frame(CLOSE, ws_frame.close_payload(1000, "\xff\xfe"))
      check_closed(1007)
    end)

    it("where more follows, which is not input", function()
      client:send_raw(ws_frame.encode(CLOSE, ws_frame.close_payload(1000)) .. ws_frame.encode(BINARY, "exit\n"))
      check_closed(1000)
    end)

    it("where it comes twice", function()
      client:send_raw(ws_frame.encode(CLOSE, ws_frame.close_payload(1000)):rep(2))
      check_closed(1000)
    end)

    it("in pieces of one byte", function()
      for byte in ws_frame.encode(CLOSE, ws_frame.close_payload(1000, "bye")):gmatch(".") do
        client:send_raw(byte)
      end
      check_closed(1000)
    end)
  end)

  describe("text that is not UTF-8 is closed with 1007:", function()
    for _, text in ipairs { "\xff", '{"type":"input","data":"\xc3"}', "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
      "\xf8\x88\x80\x80\x80", '{"type":"input","data":"\xe2\x82"}', "\x80" } do
      it(("%q"):format(text), function()
        client:send_text(text)
        check_closed(1007)
      end)
    end

    it("over fragments, too", function()
      client:send_fragments(TEXT, { '{"type":"input","data":"\xe2', "\x82", 'x"}' })
      check_closed(1007)
    end)
  end)
end)
