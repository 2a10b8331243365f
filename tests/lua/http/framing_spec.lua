local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local server = require("support.server")

local BODY = '{"command":"touch ran"}'
local LENGTH = "Content-Length: " .. #BODY
local CHUNKED = "Transfer-Encoding: chunked"
local CHUNKS = ("%x\r\n%s\r\n0\r\n\r\n"):format(#BODY, BODY)
local MARKER = "GET /marker HTTP/1.1\r\nHost: localhost\r\n\r\n"

describe("framing", function()
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start()
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function post(headers, body, version)
    return ("POST /shell HTTP/%s\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n\r\n%s"):format(
      version or "1.1", headers, body)
  end

  --- Sends bytes and a second request at once. The statuses of all answers, and whether the server closed.
  local function exchange(bytes)
    local conn = abxd:connect()
    conn:send(bytes .. MARKER)
    local statuses = {}
    repeat
      local ok, answer = pcall(conn.read_response, conn, "GET")
      statuses[#statuses + 1] = ok and answer and answer.status or nil
    until not ok or not answer or #statuses == 2
    local closed = conn:is_closed(0)
    conn:close()
    return statuses, closed
  end

  describe("that is ambiguous is refused and the connection closed:", function()
    local long = ("x"):rep(100 * 1024)
    local cases = {
      { "length and chunks", post(LENGTH .. "\r\n" .. CHUNKED, CHUNKS) },
      { "chunks and length", post(CHUNKED .. "\r\n" .. LENGTH, CHUNKS) },
      { "chunks and length 0", post(CHUNKED .. "\r\nContent-Length: 0", CHUNKS) },
      { "two lengths", post(LENGTH .. "\r\nContent-Length: 5", BODY) },
      { "two equal lengths", post(LENGTH .. "\r\n" .. LENGTH, BODY) },
      { "a list of lengths", post(LENGTH .. ", " .. #BODY, BODY) },
      { "length +", post("Content-Length: +" .. #BODY, BODY) },
      { "length -1", post("Content-Length: -1", BODY) },
      { "length in hex", post("Content-Length: 0x5", BODY) },
      { "an empty length", post("Content-Length:", BODY) },
      { "a length of 20 digits", post("Content-Length: 99999999999999999999", BODY), 413 },
      { "two words as length", post("Content-Length: 5 5", BODY) },
      { "xchunked", post("Transfer-Encoding: xchunked", CHUNKS) },
      { "gzip", post("Transfer-Encoding: gzip", CHUNKS) },
      { "chunked, gzip", post("Transfer-Encoding: chunked, gzip", CHUNKS) },
      { "chunked twice", post(CHUNKED .. "\r\n" .. CHUNKED, CHUNKS) },
      { "a space before the colon", post("Transfer-Encoding : chunked", CHUNKS) },
      { "a space before the colon of the length", post("Content-Length : " .. #BODY, BODY) },
      { "a folded header", post(LENGTH .. "\r\nX-A: b\r\n c", BODY) },
      { "a folded length", post("Content-Length:\r\n " .. #BODY, BODY) },
      { "a header name that is no token", post(LENGTH .. "\r\nX(A): b", BODY) },
      { "a header without a name", post(LENGTH .. "\r\n: b", BODY) },
      { "a header without a colon", post(LENGTH .. "\r\nXA", BODY) },
      { "a NUL in a header", post(LENGTH .. "\r\nX-A: b\0c", BODY) },
      { "a bare CR in a header", post(LENGTH .. "\r\nX-A: b\rContent-Length: 1", BODY) },
      { "a header of 100 KB", post(LENGTH .. "\r\nX-A: " .. long, BODY), 431 },
      { "a thousand headers", post(LENGTH .. ("\r\nX-A: " .. ("y"):rep(90)):rep(1000), BODY), 431 },
      { "a target of 100 KB", "GET /" .. long .. " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414 },
      { "an unknown version", "GET /health HTTP/3.0\r\nHost: localhost\r\n\r\n", 505 },
      { "no request line", "hello\r\n\r\n" },
      { "TLS", "\22\3\1\2\0\1\0\1\252\3\3" .. ("\0"):rep(200) .. "\r\n\r\n" },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        local statuses, closed = exchange(case[2])
        assert.is_true(closed)
        assert.is_true(#statuses <= 1, table.concat(statuses, " "))
        if #statuses == 1 then
          local expected = case[3] or 400
          assert.is_true(statuses[1] == expected or (expected ~= 400 and statuses[1] == 400), statuses[1])
        end
        assert.is_false(files.exists(abxd.base_dir .. "/ran"))
      end)
    end
  end)

  describe("of a chunk that is broken ends the connection and runs nothing:", function()
    local cases = {
      { "a size in 0x", "0x17\r\n" .. BODY .. "\r\n0\r\n\r\n" },
      { "17 digits", "00000000000000017\r\n" .. BODY .. "\r\n0\r\n\r\n", true }, -- zeros in front are harmless
      { "a size over 64 bits", "FFFFFFFFFFFFFFFFF\r\n" .. BODY .. "\r\n0\r\n\r\n" },
      { "a negative size", "-17\r\n" .. BODY .. "\r\n0\r\n\r\n" },
      { "no size", "\r\n" .. BODY .. "\r\n0\r\n\r\n" },
      { "no CRLF at its end", ("%x\r\n%sX\r\n0\r\n\r\n"):format(#BODY, BODY) },
      { "a size that is too small", ("%x\r\n%s\r\n0\r\n\r\n"):format(#BODY - 2, BODY) },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        local statuses, closed = exchange(post(CHUNKED, case[2]))
        if case[3] and statuses[1] == 200 then
          assert.same({ 200, 404 }, statuses)
          files.remove_tree(abxd.base_dir .. "/ran")
          return
        end
        assert.is_true(closed)
        assert.is_true(#statuses <= 1, table.concat(statuses, " "))
        assert.is_true(#statuses == 0 or statuses[1] == 400 or statuses[1] == 413, statuses[1])
        assert.is_false(files.exists(abxd.base_dir .. "/ran"))
      end)
    end
  end)

  it("with chunks in HTTP/1.0 closes", function()
    local statuses, closed = exchange(post(CHUNKED, CHUNKS, "1.0"))
    assert.is_true(closed)
    assert.is_true(#statuses <= 1)
    files.remove_tree(abxd.base_dir .. "/ran")
  end)

  it("that is legal works: chunks, extensions, trailers, odd spelling", function()
    local chunked = {
      CHUNKS, ("1\r\n{\r\n%X;a=b\r\n%s\r\n000\r\nX-T: y\r\n\r\n"):format(#BODY - 1, BODY:sub(2)),
    }
    for _, chunks in ipairs(chunked) do
      assert.same({ 200, 404 }, (exchange(post("transfer-encoding: Chunked", chunks))))
    end
    assert.same({ 200, 404 }, (exchange(post("content-length:   " .. #BODY, BODY))))
    files.remove_tree(abxd.base_dir .. "/ran")
  end)

  it("is kept with any number of parameters", function()
    for _, count in ipairs { 480, 500, 1000, 3500 } do
      local conn = abxd:connect()
      local answer = conn:request("GET", "/health?" .. ("a=b&"):rep(count) .. "c=d", { timeout = 2 })
      assert.is_true(answer.status == 200 or answer.status == 400, answer.status)
      assert.equal(200, conn:request("GET", "/commands").status)
      conn:close()
    end
  end)

  it("stays in step when requests are pipelined", function()
    local conn = abxd:connect()
    local get = "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
    conn:send(get:format("/health") .. get:format("/nope") .. post(LENGTH, BODY) .. get:format("/commands"))
    local statuses = {}
    for i = 1, 4 do
      statuses[i] = conn:read_response().status
    end
    assert.same({ 200, 404, 200, 200 }, statuses)
    conn:send("GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nGET " .. get:format("/commands"))
    local first = conn:read_response()
    assert.is_true(first.status == 200 or first.status == 400)
    local second = conn:read_response() -- nil: closed instead
    assert.is_true(second == nil or second:json().commands ~= nil)
    conn:close()
    files.remove_tree(abxd.base_dir .. "/ran")
  end)

  it("keeps a connection after errors, and closes when asked to", function()
    local conn = abxd:connect()
    for _ = 1, 3 do
      check.problem(conn:request("POST", "/shell", { json = {} }), 400, "invalid_request")
      check.problem(conn:request("POST", "/shell", { body = "x" }), 415, "unsupported_media_type")
      check.problem(conn:request("GET", "/nope"), 404, "not_found")
    end
    assert.equal(200, conn:request("GET", "/health", { headers = { Connection = "close" } }).status)
    assert.is_true(conn:is_closed(2))
    conn:close()
  end)

  it("drops a body that breaks off without running it", function()
    local conn = abxd:connect()
    conn:send(post("Content-Length: 1000", BODY))
    conn:finish()
    local answer = conn:read_response()
    assert.is_true(answer == nil or answer.status == 400)
    conn:close()
    assert.is_false(files.exists(abxd.base_dir .. "/ran"))
  end)

  it("takes heads and bodies byte by byte", function()
    local conn = abxd:connect()
    for byte in post(LENGTH, BODY):gmatch(".") do
      conn:send(byte)
    end
    assert.equal(0, check.ok(conn:read_response()).exit_code)
    conn:close()
    files.remove_tree(abxd.base_dir .. "/ran")
  end)

  it("throws away the rest of a body that is refused early", function()
    local answer = http.request(abxd, "POST", "/shell", { body = ("x"):rep(3 * 1024 * 1024), headers = {
      ["Content-Type"] = "text/plain" } })
    check.problem(answer, 415, "unsupported_media_type")
  end)
end)
