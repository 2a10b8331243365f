--- The specs' WebSocket client against a far end that the specs play themselves: it must be strict, or faults of the server
--- pass unseen.
local http = require("support.http")
local json = require("support.json")
local socket = require("socket")
local ws = require("support.ws")
local ws_frame = require("support.ws_frame")

local ACCEPTED = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n" ..
  "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
local READY = '{"type":"ready","id":"p-1","cols":80,"rows":24,"offset":%d}'

local function plain(opcode, payload, options)
  options = options or {}
  options.mask = false
  return ws_frame.encode(opcode, payload, options)
end

local function text(value)
  return plain(ws_frame.TEXT, value)
end

local function close(code, reason)
  return plain(ws_frame.CLOSE, ws_frame.close_payload(code, reason))
end

local function binary(value)
  return plain(ws_frame.BINARY, value)
end

describe("the tests' WebSocket frames", function()
  it("are those of the RFC's examples", function()
    assert.equal("\x81\x05Hello", text("Hello"))
    assert.equal("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58",
      ws_frame.encode(ws_frame.TEXT, "Hello", { mask = "\x37\xfa\x21\x3d" }))
    assert.equal("\x01\x03Hel\x80\x02lo", plain(ws_frame.TEXT, "Hel", { fin = false }) .. plain(0, "lo"))
    assert.equal("\x82\x7e\x01\x00" .. ("x"):rep(256), binary(("x"):rep(256)))
    assert.equal("\x82\x7f\0\0\0\0\0\1\0\0" .. ("x"):rep(65536), binary(("x"):rep(65536)))
    assert.equal("\x88\x05\x03\xe8bye", close(1000, "bye"))
  end)

  for _, size in ipairs { 0, 1, 125, 126, 511, 512, 513, 65535, 65536, 1000003 } do
    it(("come back as they were sent, with %d bytes under a mask"):format(size), function()
      local payload = ("0123456789abcdefg"):rep(size // 17 + 1):sub(1, size)
      local bytes = ws_frame.encode(ws_frame.BINARY, payload, { fin = false, rsv = 5 })
      local frame, next_at = ws_frame.decode("??" .. bytes .. "rest", 3)
      assert.equal(#bytes + 3, next_at)
      assert.is_true(frame.payload == payload)
      assert.same({ false, 5, ws_frame.BINARY, true }, { frame.fin, frame.rsv, frame.opcode, frame.masked })
      assert.is_nil((ws_frame.decode(bytes:sub(1, -2), 1)))
    end)
  end

  it("may declare what is not true", function()
    assert.equal("\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xffx", plain(ws_frame.TEXT, "x", { length = math.maxinteger }))
    assert.equal("\x81\x7e\0\1x", plain(ws_frame.TEXT, "x", { wide = 16 }))
    assert.equal("\x81\x7f\0\0\0\0\0\0\0\1x", plain(ws_frame.TEXT, "x", { wide = 64 }))
  end)
end)

describe("the tests' WebSocket client", function()
  local listener, target, conn, far

  before_each(function()
    listener = assert(socket.bind("127.0.0.1", 0))
    local _, port = listener:getsockname()
    target = { host = "127.0.0.1", ws_port = math.tointeger(tonumber(port)), token = "secret" }
    conn = http.connect({ host = target.host, port = target.ws_port })
    far = listener:accept()
    far:settimeout(5)
  end)

  after_each(function()
    conn:close()
    far:close()
    listener:close()
  end)

  local function open(bytes, options)
    far:send(bytes or "")
    local client = ws.over(conn)
    client.mode = options and options.mode or client.mode
    return client
  end

  --- The next frame that the client has sent.
  local function sent()
    local bytes, frame = ""
    repeat
      bytes = bytes .. assert(far:receive(1))
      frame = ws_frame.decode(bytes, 1)
    until frame
    return frame
  end

  it("asks as the options say", function()
    local asked = ws.request(target, "p-1", { query = { since = -1, mode = "raw" }, protocols = { "a", "b" } })
    assert.equal(("GET /pty/p-1?mode=raw&since=-1 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\n" ..
      "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" ..
      "Sec-WebSocket-Protocol: a, b\r\nAuthorization: Bearer secret\r\n\r\n"):format(target.ws_port), asked)
    asked = ws.request(target, "/x/../pty", { ticket = "a+b", headers = { host = { "one", "two" }, Upgrade = false } })
    assert.equal("GET /x/../pty?ticket=a%2Bb HTTP/1.1\r\nConnection: Upgrade\r\nSec-WebSocket-Key: " ..
      "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n", asked:match("^(.-\r\n)host"))
    assert.truthy(asked:find("\r\nhost: one\r\nhost: two\r\n", 1, true))
    assert.falsy(asked:find("Authorization") or asked:find("Upgrade: "))
  end)

  it("takes a 101 with what comes in the same segment", function()
    far:send(ACCEPTED .. "Sec-WebSocket-Protocol: abx.pty.v1\r\n\r\n" .. text(READY:format(7)) .. binary("hello"))
    local answer, client = ws.handshake(target, "p-1", { conn = conn, protocols = { "abx.pty.v1", "bearer.x" } })
    assert.equal(101, answer.status)
    assert.equal("hello", client:read_until("lo"))
    assert.equal(12, client.offset)
  end)

  it("gives a refusal with its body", function()
    far:send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\nWWW-Authenticate: Bearer\r\n\r\nnope")
    local answer = ws.refused(target, "p-1", { conn = conn })
    assert.same({ 401, "nope", "Bearer" }, { answer.status, answer.body, answer.headers["www-authenticate"] })
  end)

  for what, fault in pairs {
    ["no Sec-WebSocket-Accept"] = { "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n", "Sec-WebSocket-Accept" },
    ["a sub-protocol that was not offered"] = { ACCEPTED .. "Sec-WebSocket-Protocol: abx.pty.v2\r\n", "v2 was not offered" },
    ["no sub-protocol where some were offered"] = { ACCEPTED, "nil was not offered" },
    ["an extension"] = { ACCEPTED .. "Sec-WebSocket-Extensions: x\r\n", "an extension" },
  } do
    it("refuses a 101 with " .. what, function()
      far:send(fault[1] .. "\r\n")
      local ok, why = pcall(ws.handshake, target, "p-1", { conn = conn, protocols = { ws.SUBPROTOCOL } })
      assert.is_false(ok)
      assert.truthy(why:find(fault[2], 1, true), why)
    end)
  end

  it("joins fragments, answers pings between them, and returns what was left for the next read", function()
    local client = open(text(READY:format(0)) .. plain(ws_frame.BINARY, "one ", { fin = false }) ..
      plain(ws_frame.PING, "p") .. plain(0, "two three"))
    assert.equal("one two", client:read_until("two", nil, true))
    assert.equal(" three", client:read_until("e+$"))
    assert.equal(1, client.pings)
    local pong = sent()
    assert.same({ ws_frame.PONG, "p", true }, { pong.opcode, pong.payload, pong.masked })
  end)

  it("finds a match that spans messages in output of any length", function()
    local client = open(text(READY:format(0)) .. binary(("x"):rep(30000) .. "EN") .. binary("D" .. "after"))
    assert.equal(30003, #client:read_until("END"))
    assert.equal("after", client:read_to(30008))
  end)

  it("follows offsets through gaps, and returns what the server said in order", function()
    local client = open(text(READY:format(100)) .. binary("abc") .. text('{"type":"gap","from":103,"to":200}') ..
      binary("d") .. text('{"type":"pong"}') .. text('{"type":"resized","cols":1,"rows":2}'))
    assert.equal(2, client:wait("resized").rows)
    assert.equal(201, client.offset)
    assert.same({ { type = "gap", from = 103, to = 200 } }, client.gaps)
    assert.equal("abcd", client:take_output())
  end)

  it("takes the gap of a since that is no longer kept, of which ready tells the end", function()
    local client = open(text(READY:format(50)) .. text('{"type":"gap","from":7,"to":50}') .. binary("abc"))
    assert.equal("abc", client:read_to(53))
    assert.equal(7, client.gaps[1].from)
  end)

  it("tells how a terminal ended", function()
    local client = open(text(READY:format(0)) .. binary("Z") .. text('{"type":"exit","exit_code":5}') .. close(1000))
    far:shutdown("send")
    local exit, code, reason = client:expect_exit()
    assert.same({ 5, 1000, "Z" }, { exit.exit_code, code, client:take_output() })
    assert.equal("", reason)
    local raw = open(binary("Z") .. close(1000, '{"exit_code":5}'), { mode = "raw" })
    raw.buffer, raw.ended = binary("Z") .. close(1000, '{"exit_code":5}'), true
    assert.equal(5, raw:expect_exit().exit_code)
  end)

  it("says good-bye", function()
    local client = open(text(READY:format(0)) .. close(1000))
    far:shutdown("send")
    assert.equal(1000, client:leave(1000, "done"))
    local frame = sent()
    assert.same({ ws_frame.CLOSE, "\x03\xe8done" }, { frame.opcode, frame.payload })
  end)

  it("types", function()
    local client = open(text(READY:format(0)))
    client:input("é\n\0\27[A")
    assert.same({ type = "input", data = "é\n\0\27[A" }, json.decode(sent().payload))
  end)

  it("sends more than the pipes hold while as much comes", function()
    local size = 6 * 1024 * 1024
    local client = open(text(READY:format(0)))
    local out, out_at, taken = binary(("o"):rep(size)), 1, 0
    far:settimeout(0)
    -- The far end moves whenever the client does, and takes nothing before it has sent everything.
    local function move()
      if out_at <= #out then
        local last, _, part = far:send(out, out_at)
        out_at = (last or part) + 1
      else
        local data, _, part = far:receive(1 << 20)
        taken = taken + #(data or part)
      end
    end
    local near = client.sock
    client.sock = {
      settimeout = function(_, ...) return near:settimeout(...) end,
      getfd = function() return near:getfd() end,
      dirty = function() return near:dirty() end,
      receive = function(_, ...)
        move()
        return near:receive(...)
      end,
      send = function(_, ...)
        move()
        return near:send(...)
      end,
    }
    assert.is_true(client:send_binary(("i"):rep(size)))
    assert.equal(size, #client:read_to(size))
    assert.is_true(taken > 0)
  end)

  local ready = text(READY:format(5))
  for _, fault in ipairs {
    { "masks its frames", ready .. ws_frame.encode(ws_frame.BINARY, "x") },
    { "reserved bits", plain(ws_frame.TEXT, READY:format(0), { rsv = 4 }) },
    { "an unknown opcode", ready .. plain(3, "x") },
    { "an unknown control frame", ready .. plain(11, "x") },
    { "fragmented or long", ready .. plain(ws_frame.PING, ("x"):rep(126)) },
    { "fragmented or long", ready .. plain(ws_frame.PING, "x", { fin = false }) },
    { "a close frame of one byte", ready .. plain(ws_frame.CLOSE, "x") },
    { "a fragment out of order", ready .. plain(ws_frame.CONTINUATION, "x") },
    { "a fragment out of order", ready .. plain(ws_frame.BINARY, "x", { fin = false }) .. binary("x") },
    { "not UTF-8", text("\xff") },
    { "invalid JSON", text("{}}") },
    { "ready must be the first", text('{"type":"pong"}') },
    { "output before ready", binary("x") },
    { "come once", ready .. ready },
    { "output after the exit", ready .. text('{"type":"exit"}') .. binary("x") },
    { "a message after the exit", ready .. text('{"type":"exit"}') .. text('{"type":"pong"}') },
    { "where the output stands", ready .. text('{"type":"gap","from":6,"to":9}') },
    { "a gap without bytes", ready .. text('{"type":"gap","from":5,"to":5}') },
    { "a frame after the close", ready .. close(1000) .. binary("x") },
    { "in the middle of a frame", ready .. binary("xyz"):sub(1, -2) },
    { "in the middle of a message", ready .. plain(ws_frame.BINARY, "x", { fin = false }) },
    { "without a close", ready .. text('{"type":"exit"}') },
    { "without an exit", ready .. close(1000) },
    { "a text with mode=raw", text("x"), "raw" },
  } do
    it(("complains of %q"):format(fault[1]), function()
      local client = open(fault[2], { mode = fault[3] })
      far:shutdown("send")
      local ok, why = pcall(client.expect_exit, client, 5)
      assert.is_false(ok)
      assert.truthy(why:find(fault[1], 1, true), why)
    end)
  end

  it("says what it waited for", function()
    local client = open(text(READY:format(0)) .. binary("some text"))
    local ok, why = pcall(client.read_until, client, "other", 0.05)
    assert.is_false(ok)
    assert.truthy(why:find('no "other": ', 1, true) and why:find('ended in "some text"', 1, true), why)
    assert.equal("some text", client:take_output())
  end)
end)
