--- A WebSocket client for a server's terminals, over the raw sockets of support.http: exact about what it sends, and as
--- strict with what comes as a browser. Sending takes in what comes meanwhile, so that two full pipes never wait for
--- each other.
---   local client <close> = ws.connect(abxd, id)
---   client:input("echo hello\n")
---   client:read_until("hello\r\n")
local ws_frame = require("support.ws_frame")
local http = require("support.http")
local json = require("support.json")
local socket = require("socket")

local ws = {}

local DEFAULT_TIMEOUT_S = 60 -- for what fails only when the server hangs; sanitizers are slow
local RECEIVE_BYTES = 256 * 1024
local MATCH_BYTES = 8 * 1024 -- what read_until looks for is shorter
-- The key of RFC 6455's example, whose answer is known without SHA-1.
local KEY, ACCEPT = "dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
ws.SUBPROTOCOL = "abx.pty.v1"

local client = {}
client.__index = client

-- Connecting ----------------------------------------------------------------------------------------------------------

--- Starts a terminal; the decoded 201: {id=, pid=, cols=, rows=, ws_url=, ticket=}. fields: the body of POST /pty.
function ws.create(abxd, fields)
  local answer = abxd:post("/pty", fields or {})
  assert(answer.status == 201, answer.body)
  return answer:json()
end

local function query_of(options)
  if type(options.query) == "string" then
    return "?" .. options.query
  end
  local parts = {}
  for name, value in pairs(options.query or {}) do
    parts[#parts + 1] = name .. "=" .. http.escape(tostring(value))
  end
  if options.ticket then
    parts[#parts + 1] = "ticket=" .. http.escape(options.ticket)
  end
  table.sort(parts)
  return #parts > 0 and "?" .. table.concat(parts, "&") or ""
end

--- The bytes of the request. where: a terminal's id, or a whole target that begins with "/". See ws.handshake.
function ws.request(abxd, where, options)
  options = options or {}
  local target = (where:sub(1, 1) == "/" and where or "/pty/" .. where) .. query_of(options)
  local token = options.token
  if token == nil then
    token = not options.ticket and abxd.token
  end
  local headers = {
    { "Host", ("%s:%d"):format(abxd.host, abxd.ws_port) },
    { "Upgrade", "websocket" },
    { "Connection", "Upgrade" },
    { "Sec-WebSocket-Key", KEY },
    { "Sec-WebSocket-Version", "13" },
    { "Sec-WebSocket-Protocol", options.protocols and table.concat(options.protocols, ", ") },
    { "Authorization", token and "Bearer " .. token },
  }
  for name, value in pairs(options.headers or {}) do
    for i = #headers, 1, -1 do
      if headers[i][1]:lower() == name:lower() then
        table.remove(headers, i)
      end
    end
    for _, one in ipairs(type(value) == "table" and value or { value }) do
      headers[#headers + 1] = { name, one }
    end
  end
  local lines = { ("GET %s HTTP/1.1"):format(target) }
  for _, header in ipairs(headers) do
    lines[#lines + 1] = header[2] and header[1] .. ": " .. header[2] or nil
  end
  return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

--- Raises unless an answer of 101 is one that a browser takes.
local function check_accepted(answer, options)
  local headers = answer.headers
  assert(headers.upgrade and headers.upgrade:lower() == "websocket", "101 without Upgrade: websocket")
  assert(headers.connection and headers.connection:lower() == "upgrade", "101 without Connection: upgrade")
  assert(headers["sec-websocket-accept"] == ACCEPT, "101 with another Sec-WebSocket-Accept")
  assert(not headers["sec-websocket-extensions"], "an extension nobody asked for")
  local chosen, offered = headers["sec-websocket-protocol"], false
  for _, name in ipairs(options.protocols or {}) do
    offered = offered or name == chosen
  end
  assert(offered == (options.protocols ~= nil) and (offered or not chosen),
    ("the sub-protocol %s was not offered"):format(chosen))
end

--- Wraps an http connection that is a WebSocket already.
function ws.over(conn)
  return setmetatable({ conn = conn, sock = conn.sock, buffer = conn.buffer, at = 1, timeout_s = DEFAULT_TIMEOUT_S,
    ended = false, pings = 0, pongs = {}, messages = {}, seen = 0, gaps = {}, pieces = {}, mode = "json" }, client)
end

--- Asks for a WebSocket; the answer {status=, headers=, body=} and, where it is 101, the client. options:
---   token      instead of the server's own; false: none (a ticket counts as none needed)
---   ticket     of POST /pty
---   query      {since=0, cols=100, mode="raw"}, or the text behind "?" as it is (the ticket is then left out)
---   protocols  the sub-protocols to offer, a list
---   headers    {name=value}, added or instead of the usual one; false leaves it out, a list repeats it
---   conn       an http connection to ask on, instead of a new one
function ws.handshake(abxd, where, options)
  options = options or {}
  local conn = options.conn or http.connect({ host = abxd.host, port = abxd.ws_port }, options.timeout_s or DEFAULT_TIMEOUT_S)
  conn:send(ws.request(abxd, where, options))
  local answer = conn:read_head("GET")
  if not answer then
    conn:close()
    error("the connection ended without an answer to the handshake", 2)
  elseif answer.status ~= 101 then
    answer:finish()
    conn:close()
    return answer
  end
  check_accepted(answer, options)
  local self = ws.over(conn)
  self.answer = answer
  self.mode = type(options.query) == "table" and options.query.mode or
    (type(options.query) == "string" and options.query:match("mode=(%a+)")) or "json"
  return answer, self
end

--- The client of an accepted handshake; raises where it is refused.
function ws.connect(abxd, where, options)
  local answer, self = ws.handshake(abxd, where, options)
  return self or error(("the handshake was refused: %d %s"):format(answer.status, answer.body), 2)
end

--- The answer of a handshake that must be refused, for check.problem.
function ws.refused(abxd, where, options)
  local answer, self = ws.handshake(abxd, where, options)
  if self then
    self:close()
    error("the handshake was accepted", 2)
  end
  return answer
end

--- Ends the connection without a close frame, as a browser does whose tab crashed.
function client:close()
  self.conn:close()
end
client.__close = client.close

--- Closes with a reset.
function client:abort()
  self.conn:abort()
end

-- Sending -------------------------------------------------------------------------------------------------------------

--- Takes in what has arrived, without waiting. False at the end of the connection.
local function take_in(self)
  self.sock:settimeout(0)
  local data, why, part = self.sock:receive(RECEIVE_BYTES)
  local piece = data or part or ""
  if #piece > 0 then
    self.buffer, self.at = self.buffer:sub(self.at) .. piece, 1
  end
  if why and why ~= "timeout" then
    self.ended = true
  end
  return not self.ended
end

--- Sends bytes as they are. False when the server ended the connection before it took them all.
function client:send_raw(bytes)
  self.sock:settimeout(0)
  local stop = socket.gettime() + self.timeout_s
  local at = 1
  while at <= #bytes do
    local sent, why, last = self.sock:send(bytes, at)
    at = (sent or last) + 1
    if why and why ~= "timeout" then
      return false
    elseif why then
      local left = stop - socket.gettime()
      assert(left > 0, "the server takes nothing any more")
      local readable = socket.select(not self.ended and { self.sock } or nil, { self.sock }, left)
      if readable[1] then
        take_in(self)
        self.sock:settimeout(0)
      end
    end
  end
  return true
end

--- Sends one frame; options as in ws_frame.encode.
function client:send_frame(opcode, payload, options)
  return self:send_raw(ws_frame.encode(opcode, payload, options))
end

function client:send_text(text)
  return self:send_frame(ws_frame.TEXT, text)
end

function client:send_binary(bytes)
  return self:send_frame(ws_frame.BINARY, bytes)
end

--- Sends one message in several frames.
function client:send_fragments(opcode, fragments)
  for i, fragment in ipairs(fragments) do
    if not self:send_frame(i == 1 and opcode or ws_frame.CONTINUATION, fragment, { fin = i == #fragments }) then
      return false
    end
  end
  return true
end

function client:send_json(value)
  return self:send_text(json.encode(value))
end

--- Types text: as an input message, or with mode=raw as it is.
function client:input(text)
  if self.mode == "raw" then
    return self:send_text(text)
  end
  return self:send_json { type = "input", data = text }
end

function client:resize(cols, rows)
  return self:send_json { type = "resize", cols = cols, rows = rows }
end

function client:signal(name)
  return self:send_json { type = "signal", signal = name }
end

-- Receiving -----------------------------------------------------------------------------------------------------------

--- The next frame as it came; nil at the end of the connection. Raises when none comes in time.
function client:frame(timeout_s)
  local stop = socket.gettime() + (timeout_s or self.timeout_s)
  while true do
    local frame, next_at = ws_frame.decode(self.buffer, self.at)
    if frame then
      assert(not frame.masked, "the server masks its frames")
      self.at = next_at
      return frame
    elseif self.ended then
      assert(self.at > #self.buffer, "the connection ended in the middle of a frame")
      return nil
    end
    local left = stop - socket.gettime()
    if left <= 0 or not socket.select({ self.sock }, nil, left)[1] then
      error(("no whole frame came in %g s"):format(timeout_s or self.timeout_s), 2)
    end
    take_in(self)
  end
end

local function close_message(self, frame)
  assert(#frame.payload ~= 1, "a close frame of one byte")
  local code = #frame.payload >= 2 and string.unpack(">I2", frame.payload) or nil
  local reason = frame.payload:sub(3)
  assert(utf8.len(reason), "the close reason is not UTF-8")
  self.closed = { code = code, reason = reason }
  if not self.leaving then
    self:send_frame(ws_frame.CLOSE, frame.payload:sub(1, 2))
  end
  return { kind = "close", code = code, reason = reason }
end

--- Answers a control frame; the message where it is a close.
local function control(self, frame)
  assert(frame.fin and #frame.payload <= 125, "a control frame that is fragmented or long")
  if frame.opcode == ws_frame.PING then
    self.pings = self.pings + 1
    self:send_frame(ws_frame.PONG, frame.payload)
  elseif frame.opcode == ws_frame.PONG then
    table.insert(self.pongs, frame.payload)
  else
    assert(frame.opcode == ws_frame.CLOSE, "an unknown control frame")
    return close_message(self, frame)
  end
end

--- The next message: {kind="text", "binary" or "close", data=, code=, reason=}. Pings are answered. nil at the end of the
--- connection; where no close came before it, client.closed is nil.
function client:message(timeout_s)
  local stop = socket.gettime() + (timeout_s or self.timeout_s)
  local kind, parts
  while true do
    local frame = self:frame(math.max(0, stop - socket.gettime()))
    if not frame then
      assert(not kind, "the connection ended in the middle of a message")
      return nil
    end
    assert(frame.rsv == 0, "a frame with reserved bits")
    assert(not self.closed, "a frame after the close")
    if frame.opcode >= 8 then
      local message = control(self, frame)
      if message then
        return message
      end
    else
      assert((frame.opcode == ws_frame.CONTINUATION) == (kind ~= nil), "a fragment out of order")
      assert(frame.opcode <= ws_frame.BINARY, "an unknown opcode")
      kind = kind or (frame.opcode == ws_frame.TEXT and "text" or "binary")
      if frame.fin then
        local data = parts and table.concat(parts) .. frame.payload or frame.payload
        assert(kind == "binary" or utf8.len(data), "a text that is not UTF-8")
        return { kind = kind, data = data }
      end
      parts = parts or {}
      parts[#parts + 1] = frame.payload
    end
  end
end

-- A terminal's messages -----------------------------------------------------------------------------------------------

--- Follows what the server says of offsets: nothing may come twice or be missing.
local function note_said(self, said)
  assert(not self.exit, "a message after the exit")
  assert((said.type == "ready") == (self.ready == nil), "ready must be the first message, and come once")
  if said.type == "ready" then
    self.ready, self.offset = said, said.offset
  elseif said.type == "gap" then
    assert(said.to > said.from, "a gap without bytes")
    -- Of what was asked for by `since`, ready tells where it ends already.
    local at_start = self.offset == self.ready.offset and said.to == self.offset
    assert(said.from == self.offset or at_start, "a gap that does not begin where the output stands")
    table.insert(self.gaps, said)
    self.offset = said.to
  elseif said.type == "exit" then
    self.exit = said
  end
  table.insert(self.messages, said)
end

--- Reads one message and files it: output in client.pieces, with client.offset behind it; what the server said, decoded, in
--- client.messages; ready, exit and gaps under these names too. Returns the message, nil at the end.
function client:step(timeout_s)
  local message = self:message(timeout_s)
  if not message then
    return nil
  elseif message.kind == "binary" then
    assert(not self.exit, "output after the exit")
    assert(self.ready or self.mode == "raw", "output before ready")
    self.pieces[#self.pieces + 1] = message.data
    self.offset = self.offset and self.offset + #message.data
  elseif message.kind == "text" then
    assert(self.mode ~= "raw", "a text with mode=raw")
    note_said(self, json.decode(message.data))
  end
  return message
end

--- What has come and was not taken yet; it is taken now.
function client:take_output()
  local output = table.concat(self.pieces)
  self.pieces = {}
  return output
end

--- Reads until the output matches a Lua pattern (or, if plain, holds a text); returns it from where the last read ended to
--- the end of the match. The rest stays for the next read. A match must be shorter than 8 KiB.
function client:read_until(pattern, timeout_s, plain)
  local stop = socket.gettime() + (timeout_s or self.timeout_s)
  local before, window = {}, self:take_output()
  while true do
    local _, last = window:find(pattern, 1, plain)
    if last then
      local rest = window:sub(last + 1)
      self.pieces = { rest ~= "" and rest or nil }
      return table.concat(before) .. window:sub(1, last)
    end
    if #window > MATCH_BYTES then
      before[#before + 1] = window:sub(1, -MATCH_BYTES - 1)
      window = window:sub(-MATCH_BYTES)
    end
    local left = stop - socket.gettime()
    local ok, message = pcall(self.step, self, math.max(0, left))
    if not ok or not message or message.kind == "close" then
      local why = ok and "the connection ended" or tostring(message)
      self.pieces = { table.concat(before), window }
      error(("no %q: %s; the output ended in %q"):format(pattern, why, window:sub(-400)), 2)
    end
    window = window .. self:take_output()
  end
end

--- Reads until client.offset has reached an absolute offset; what came since the last read.
function client:read_to(offset, timeout_s)
  local stop = socket.gettime() + (timeout_s or self.timeout_s)
  while not self.offset or self.offset < offset do
    local message = self:step(math.max(0, stop - socket.gettime()))
    assert(message and message.kind ~= "close", "the connection ended before that offset")
  end
  return self:take_output()
end

--- Reads on until the server has said something of that type ("ready", "resized", "gap", "error", "pong", "exit") that no
--- earlier wait has returned; returns it.
function client:wait(kind, timeout_s)
  local stop = socket.gettime() + (timeout_s or self.timeout_s)
  while true do
    while self.seen < #self.messages do
      self.seen = self.seen + 1
      if self.messages[self.seen].type == kind then
        return self.messages[self.seen]
      end
    end
    local message = self:step(math.max(0, stop - socket.gettime()))
    if not message or message.kind == "close" then
      error("the connection ended without " .. kind, 2)
    end
  end
end

--- Reads to the server's close and the end of the connection: the close code and reason, nil where none came. Output stays
--- for take_output.
function client:expect_close(timeout_s)
  local stop = socket.gettime() + (timeout_s or self.timeout_s)
  while self:step(math.max(0, stop - socket.gettime())) do end
  if self.closed then
    return self.closed.code, self.closed.reason
  end
end

--- Reads to the end of a terminal that ends: the exit message (with mode=raw the reason, decoded), the close code and the
--- reason. Output stays for take_output.
function client:expect_exit(timeout_s)
  local code, reason = self:expect_close(timeout_s)
  assert(code, "the connection ended without a close")
  local exit = self.exit
  if self.mode == "raw" then
    exit = json.decode(reason)
  end
  return assert(exit, ("closed with %d %s and without an exit"):format(code, reason)), code, reason
end

--- Says good-bye as a browser does, and waits for the server's answer; the code it closes with.
function client:leave(code, reason)
  self.leaving = true
  self:send_frame(ws_frame.CLOSE, ws_frame.close_payload(code or 1000, reason))
  local answered = self:expect_close()
  self:close()
  return answered
end

return ws
