--- A plain HTTP/1.1 client over a raw socket: exact about what it sends, so that malformed requests can be sent too.
local json = require("support.json")
local socket = require("socket")

local http = {}

local DEFAULT_TIMEOUT_S = 20

--- A port that was free a moment ago, for a program that cannot choose one itself.
function http.free_port()
  local listener = assert(socket.bind("127.0.0.1", 0))
  local _, port = listener:getsockname()
  listener:close()
  return math.tointeger(tonumber(port))
end

-- Connections ---------------------------------------------------------------------------------------------------------

local connection = {}
connection.__index = connection

--- Opens a connection to {host=, port=}. Close it when done, or hold it in a <close> variable: the checks for leaks count
--- what is left open.
function http.connect(target, timeout_s)
  local sock = assert(socket.connect(target.host, target.port))
  sock:setoption("tcp-nodelay", true)
  return setmetatable({ sock = sock, buffer = "", host = target.host, port = target.port, token = target.token,
    timeout_s = timeout_s or DEFAULT_TIMEOUT_S, closed = false }, connection)
end

function connection:close()
  self.sock:close()
end
connection.__close = connection.close

--- Closes with a reset instead of an orderly end, as a client that died does.
function connection:abort()
  self.sock:setoption("linger", { on = true, timeout = 0 })
  self.sock:close()
end

--- Says that nothing more will be sent; answers can still be read.
function connection:finish()
  self.sock:shutdown("send")
end

--- Sends bytes as they are. True, or nil and "closed" or "timeout" and how many bytes went out.
function connection:send(bytes)
  self.sock:settimeout(self.timeout_s)
  local sent, why, last = self.sock:send(bytes)
  if not sent then
    return nil, why, last
  end
  return true
end

--- Takes what has arrived into the buffer, waiting for at least one byte. False at the end of the connection; raises
--- when nothing comes in time.
function connection:fill(timeout_s)
  if self.closed then
    return false
  end
  timeout_s = timeout_s or self.timeout_s
  if not next((socket.select({ self.sock }, nil, timeout_s))) then
    error(("nothing arrived for %g s; so far: %q"):format(timeout_s, self.buffer:sub(1, 200)), 0)
  end
  self.sock:settimeout(0)
  local data, why, part = self.sock:receive(65536)
  local piece = data or part or ""
  self.buffer = self.buffer .. piece
  if why and why ~= "timeout" then
    self.closed = true
    self.close_reason = why
    return #piece > 0
  end
  return true
end

--- Whether the server has closed this connection; waits for that at most timeout_s.
function connection:is_closed(timeout_s)
  local stop = socket.gettime() + (timeout_s or 0)
  repeat
    local ok, more = pcall(self.fill, self, math.max(0, stop - socket.gettime()))
    if ok and not more then
      return true
    end
  until socket.gettime() >= stop
  return self.closed
end

function connection:take(count)
  local piece = self.buffer:sub(1, count)
  self.buffer = self.buffer:sub(count + 1)
  return piece
end

--- One line without its CRLF; nil at the end of the connection.
function connection:read_line()
  while true do
    local stop = self.buffer:find("\r\n", 1, true)
    if stop then
      local line = self:take(stop + 1)
      return line:sub(1, -3)
    elseif not self:fill() then
      return nil
    end
  end
end

-- Answers -------------------------------------------------------------------------------------------------------------

local response = {}
response.__index = response

--- The body as JSON; raises when it is not JSON to the letter.
function response:json()
  return json.decode(self.body)
end

--- The next piece of the body as it arrives (the size of a piece means nothing), nil at its end. response.cut tells that
--- the connection ended before the body did.
function response:read(timeout_s)
  local conn = self.conn
  if self.done then
    return nil
  elseif self.left == 0 and self.chunked then
    self:next_chunk()
    if self.done then
      return nil
    end
  elseif self.left == 0 then
    self.done = true
    return nil
  end
  if conn.buffer == "" and not conn:fill(timeout_s) then
    self.done, self.cut = true, self.left ~= math.huge
    return nil
  end
  local piece = conn:take(self.left == math.huge and #conn.buffer or self.left)
  self.left = self.left - #piece
  if self.chunked and self.left == 0 and conn:read_line() ~= "" then
    self.done, self.cut = true, true
  end
  return piece
end

function response:next_chunk()
  local line = self.conn:read_line()
  local size = line and tonumber(line:match("^%x+"), 16)
  if not size then
    self.done, self.cut = true, true
  elseif size == 0 then
    repeat
      line = self.conn:read_line()
    until line == "" or line == nil
    self.done, self.cut = true, line == nil
  else
    self.left = size
  end
end

--- Reads the rest of the body into response.body.
function response:finish()
  local parts = {}
  local piece = self:read()
  while piece do
    parts[#parts + 1] = piece
    piece = self:read()
  end
  self.body = table.concat(parts)
  return self
end

--- Ends the connection of a streamed answer, whether its body has been read or not.
function response:close()
  self.conn:close()
end
response.__close = response.close

--- Reads the head of an answer: {status=, reason=, headers= (lower case, repeated ones joined by ", ")}. nil when the
--- connection ended first.
function connection:read_head(method)
  local line
  repeat
    line = self:read_line()
    if not line then
      return nil
    end
    local is_interim = line:match("^HTTP/1%.1 1%d%d") and not line:match("^HTTP/1%.1 101")
    while is_interim and self:read_line() ~= "" do end
  until not is_interim
  local status, reason = line:match("^HTTP/1%.[01] (%d%d%d) ?(.*)$")
  if not status then
    error(("no status line: %q"):format(line), 0)
  end
  local headers = {}
  while true do
    line = self:read_line()
    if not line or line == "" then
      break
    end
    local name, value = line:match("^([^:%s]+):%s*(.-)%s*$")
    assert(name, "no header line: " .. line)
    name = name:lower()
    headers[name] = headers[name] and headers[name] .. ", " .. value or value
  end
  local answer = setmetatable({ conn = self, status = tonumber(status), reason = reason, headers = headers,
    chunked = (headers["transfer-encoding"] or ""):lower() == "chunked" }, response)
  if method == "HEAD" or answer.status == 204 or answer.status == 304 or answer.chunked then
    answer.left = 0
    answer.done = not answer.chunked or method == "HEAD"
  else
    answer.left = headers["content-length"] and math.tointeger(tonumber(headers["content-length"])) or math.huge
  end
  return answer
end

--- Reads one whole answer.
function connection:read_response(method)
  local answer = self:read_head(method)
  return answer and answer:finish()
end

-- Requests ------------------------------------------------------------------------------------------------------------

--- The bytes of a request's head. options.headers: {name=value}; false leaves a default header out.
function http.head(method, target, host, options)
  local headers = { Host = host }
  for name, value in pairs(options.headers or {}) do
    if name:lower() == "host" then
      headers.Host = nil
    end
    headers[name] = value or nil
  end
  local lines = { ("%s %s HTTP/1.1"):format(method, target) }
  for name, value in pairs(headers) do
    lines[#lines + 1] = name .. ": " .. value
  end
  return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

--- Sends a request. options: headers; json (a value to encode), body (bytes), or chunks (an iterator of pieces that are
--- sent with chunked encoding, or with options.length as Content-Length); token (false: send none).
function connection:send_request(method, target, options)
  options = options or {}
  local headers, body = {}, options.body
  if options.json ~= nil then
    body = json.encode(options.json)
    headers["Content-Type"] = "application/json"
  end
  if body then
    headers["Content-Length"] = #body
  elseif options.chunks then
    headers[options.length and "Content-Length" or "Transfer-Encoding"] = options.length or "chunked"
  elseif method == "POST" or method == "PUT" then
    headers["Content-Length"] = 0
  end
  local token = options.token == nil and self.token or options.token
  if token then
    headers.Authorization = "Bearer " .. token
  end
  for name, value in pairs(options.headers or {}) do
    for default in pairs(headers) do
      if default:lower() == name:lower() then
        headers[default] = nil
      end
    end
    headers[name] = value
  end
  local head = http.head(method, target, self.host .. ":" .. self.port, { headers = headers })
  local sent, why = self:send(head .. (body or ""))
  if sent and options.chunks then
    for piece in options.chunks do
      sent, why = self:send(options.length and piece or ("%x\r\n%s\r\n"):format(#piece, piece))
      if not sent then
        return nil, why
      end
    end
    if not options.length then
      sent, why = self:send("0\r\n\r\n")
    end
  end
  return sent, why
end

--- One request and its whole answer, on this connection.
function connection:request(method, target, options)
  self:send_request(method, target, options)
  return self:read_response(method) or error(method .. " " .. target .. ": the connection ended without an answer", 2)
end

--- One request on a connection of its own; the whole answer.
function http.request(target, method, path, options)
  local conn = http.connect(target, options and options.timeout_s)
  conn:send_request(method, path, options)
  local ok, answer = pcall(conn.read_response, conn, method)
  conn:close()
  if not ok or not answer then
    error(("%s %s: %s"):format(method, path, ok and "the connection ended without an answer" or answer), 2)
  end
  return answer
end

--- One request whose body is read as it comes, by response:read or sse.events. The caller calls response:close().
function http.stream(target, method, path, options)
  local conn = http.connect(target, options and options.timeout_s)
  conn:send_request(method, path, options)
  local answer = conn:read_head(method)
  return answer or error(method .. " " .. path .. ": the connection ended without an answer", 2)
end

--- Sends bytes on a connection of their own; the answer, or nil where the server only closed.
function http.raw(target, bytes, timeout_s)
  local conn = http.connect(target, timeout_s)
  conn:send(bytes)
  local ok, answer = pcall(conn.read_response, conn, "GET")
  conn:close()
  if not ok then
    error(answer, 2)
  end
  return answer
end

--- A body of multipart/form-data. parts: {name=, filename=, content_type=, content=}. The body and its content type.
function http.multipart(parts, boundary)
  boundary = boundary or "----abx-test-boundary"
  local out = {}
  for _, part in ipairs(parts) do
    local filename = part.filename and ("; filename=\"%s\""):format(part.filename) or ""
    out[#out + 1] = ("--%s\r\nContent-Disposition: form-data; name=\"%s\"%s\r\n"):format(boundary, part.name, filename)
    if part.content_type then
      out[#out + 1] = "Content-Type: " .. part.content_type .. "\r\n"
    end
    out[#out + 1] = "\r\n" .. part.content .. "\r\n"
  end
  out[#out + 1] = "--" .. boundary .. "--\r\n"
  return table.concat(out), "multipart/form-data; boundary=" .. boundary
end

--- Percent-encodes everything but unreserved characters, for a value in a query or one segment of a path.
function http.escape(text)
  return (text:gsub("[^%w%-%._~]", function(char)
    return ("%%%02X"):format(char:byte())
  end))
end

return http
