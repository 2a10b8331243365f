local check = require("support.check")
local http = require("support.http")
local pty = require("support.pty")
local server = require("support.server")
local ws = require("support.ws")
local ws_frame = require("support.ws_frame")

local TOKEN = "tok-3fZ9"

--- Field faults 37 and 38, and what else arrives at a port.
describe("the terminals' port", function()
  local abxd, baseline, started

  lazy_setup(function()
    abxd = server.start { env = { ABX_SERVER_TOKEN = TOKEN }, args = { "--allowed-hosts", "abx.example",
      "--allowed-origins", "https://app.example" } }
    baseline = abxd:baseline()
  end)
  before_each(function()
    started = pty.start(abxd, "exec cat")
  end)
  after_each(function()
    assert.equal(0, pty.list(abxd)[started.id].clients)
    assert.equal(1, #check.ok(abxd:get("/processes?state=running")).processes)
    local answer = pty.accepted(abxd, started.id) -- it serves, whatever came
    assert.equal(101, answer.status)
    pty.clean(abxd)
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function accepted(options)
    return pty.accepted(abxd, started.id, options)
  end

  local function refused(status, code, options, where)
    return pty.refused(abxd, where or started.id, options, status, code)
  end

  local function connect()
    return http.connect { host = abxd.host, port = abxd.ws_port }
  end

  --- Sends bytes; the answer, or nil where the server only closed. It must close in either case.
  local function raw(bytes)
    local conn = connect()
    conn:send(bytes)
    local answer = conn:read_response("GET")
    assert.is_true(conn:is_closed(20))
    conn:close()
    return answer
  end

  it("knows no other path: 404", function()
    for _, where in ipairs { "/", "/pty", "/pty/", "/nope", "/pty/" .. started.id .. "/x", "/PTY/" .. started.id,
      "/pty/" .. ("x"):rep(65), "/health" } do
      refused(404, "not_found", {}, where)
    end
  end)

  it("takes an id to the letter", function()
    local id = started.id
    for _, target in ipairs { "/pty/../pty/" .. id, "//pty/" .. id, "/pty//" .. id, "/./pty/" .. id, "/pty/" .. id .. "/",
      "/pty/" .. id .. "%00", "/pty/x%2f..%2f" .. id, "/pty/" .. id:upper(), "/pty/" .. id .. "%20", "/pty/%2e/" .. id,
      "/pty/" .. id .. ";x", "/%2570ty/" .. id, "/pty/" .. id .. "#x", "/pty%2f" .. id, "/pty/" .. id .. "%zz",
      "/x/../pty/" .. id, "\\pty\\" .. id } do
      local conn = connect()
      conn:send((ws.request(abxd, "/", {}):gsub("^GET / ", function()
        return "GET " .. target .. " "
      end)))
      local answer = conn:read_head("GET")
      if answer.status == 101 then
        assert.same({ target, 4004 }, { target, (ws.over(conn):expect_close()) })
      else
        assert.is_true(answer.status == 404 or answer.status == 400, target .. " " .. answer.status)
      end
      conn:close()
    end
  end)

  describe("checks Host:", function()
    for _, case in ipairs { { "localhost", 101 }, { "LOCALHOST:8080", 101 }, { "127.0.0.1:1", 101 }, { "[::1]:8080", 101 },
      { "abx.example", 101 }, { "ABX.example:99", 101 }, { "evil.example", 403 }, { "127.0.0.1.evil.example", 403 },
      { "localhost.evil.example", 403 }, { "x.abx.example", 403 }, { "10.0.0.1", 403 }, { "localhost:80@evil", 400 },
      { "", 400 }, { "local host", 400 }, { "localhost:port", 400 } } do
      it(("%q gives %d"):format(case[1], case[2]), function()
        local options = { headers = { Host = case[1] } }
        if case[2] == 101 then
          accepted(options)
        elseif case[2] == 403 then
          refused(403, "host_not_allowed", options)
          options.token = false -- before the token
          refused(403, "host_not_allowed", options)
        else -- malformed ones may as well count as foreign
          local answer = ws.refused(abxd, started.id, options)
          assert.is_true(answer.status == 400 or answer.status == 403, answer.status)
        end
      end)
    end

    it("it must be there once", function()
      for _, host in ipairs { { "localhost", "localhost" }, { "localhost", "evil.example" }, { "evil.example", "localhost" } } do
        local answer = ws.refused(abxd, started.id, { headers = { Host = host } })
        assert.equal(400, answer.status)
      end
      assert.equal(400, ws.refused(abxd, started.id, { headers = { Host = false } }).status)
    end)

    it("an absolute target changes nothing", function()
      local answer = raw((ws.request(abxd, started.id, {})
        :gsub("^GET ", "GET http://evil.example")))
      assert.is_true(answer == nil or (answer.status >= 400 and answer.status < 500), answer and answer.status)
    end)
  end)

  describe("checks Origin:", function()
    local function origins()
      local port, ws_port = abxd.port, abxd.ws_port
      return {
        { "https://app.example", 101 }, { ("http://127.0.0.1:%d"):format(ws_port), 101 },
        { ("http://127.0.0.1:%d"):format(port), 101 }, { "https://evil.example", 403 }, { "null", 403 }, { "", 403 },
        { "http://127.0.0.1.evil.example", 403 }, { ("http://127.0.0.1:%d.evil.example"):format(port), 403 },
        { "http://127.0.0.1", 403 }, { "http://127.0.0.1:" .. (port == 65535 and 1 or port + 2), 403 },
        { ("http://localhost:%d"):format(port), 403 }, { "http://app.example", 403 }, { "https://app.example:444", 403 },
        { "https://app.example.evil", 403 }, { ("ftp://127.0.0.1:%d"):format(ws_port), 403 },
        { ("http://127.0.0.1:%d/"):format(ws_port), 403 },
      }
    end

    it("another page's is refused, before the token and before anything is opened", function()
      for _, case in ipairs(origins()) do
        local options = { headers = { Origin = case[1] } }
        if case[2] == 101 then
          accepted(options)
        else
          refused(403, "origin_not_allowed", options)
          options.token = false
          refused(403, "origin_not_allowed", options)
        end
      end
    end)

    it("two are refused, and a cross-site request without any", function()
      local answer = ws.refused(abxd, started.id, { headers = { Origin = { "https://app.example", "https://app.example" } } })
      assert.is_true(answer.status == 403 or answer.status == 400, answer.status)
      answer = ws.refused(abxd, started.id, { headers = { Origin = { "https://app.example", "https://evil.example" } } })
      assert.is_true(answer.status == 403 or answer.status == 400, answer.status)
      refused(403, "origin_not_allowed", { headers = { ["Sec-Fetch-Site"] = "cross-site" } })
      accepted { headers = { ["Sec-Fetch-Site"] = "same-origin" } }
    end)

    it("none is for clients that are no browsers: they need the token all the same", function()
      accepted {}
      refused(401, "unauthorized", { token = false })
    end)
  end)

  describe("tells plain HTTP that this is not its port:", function()
    for _, request in ipairs { { "GET", "/" }, { "GET", "/health" }, { "GET", "/pty/ID" }, { "HEAD", "/pty/ID" },
      { "OPTIONS", "/pty/ID" }, { "POST", "/pty" }, { "DELETE", "/pty/ID" }, { "GET", "/capabilities" } } do
      it(table.concat(request, " "), function()
        local target = request[2]:gsub("ID", started.id)
        local head = ("%s %s HTTP/1.1\r\nHost: localhost\r\n"):format(request[1], target)
        local answer = raw(head .. "Authorization: Bearer " .. TOKEN .. "\r\n\r\n")
        assert.equal(404, answer.status)
        if request[1] ~= "HEAD" then
          assert.equal("not_found", answer:json().code)
        end
        answer = raw(head .. "\r\n")
        assert.equal(401, answer.status)
      end)
    end

    it("a request with a body, and one behind it", function()
      local answer = raw(("POST /pty HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 2\r\n\r\n{}")
        :format(TOKEN) .. ws.request(abxd, started.id, {}))
      assert.equal(404, answer.status)
    end)

    it("an upgrade by another method, version or name", function()
      for _, change in ipairs { { "^GET", "POST" }, { "HTTP/1.1", "HTTP/1.0" }, { "Upgrade: websocket", "Upgrade: x" },
        { "Connection: Upgrade", "Connection: close" } } do
        local answer = raw((ws.request(abxd, started.id, {}):gsub(change[1], change[2])))
        assert.is_true(answer == nil or answer.status == 404 or answer.status == 400, change[2])
      end
    end)
  end)

  it("speaks no HTTP/2", function()
    local answer = raw((ws.request(abxd, started.id, { headers = { Upgrade = "h2c", Connection = "Upgrade, HTTP2-Settings",
      ["HTTP2-Settings"] = "AAMAAABkAAQAAP__" } })))
    assert.is_true(answer == nil or answer.status >= 400, answer and answer.status)
    answer = raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
    assert.is_true(answer == nil or answer.status >= 400, answer and answer.status)
  end)

  it("survives what is no HTTP", function()
    local hello = "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" .. ("\x5a"):rep(512)
    for _, bytes in ipairs { "\r\n\r\n\r\n\r\n", "\0\r\n\r\n", hello .. "\r\n\r\n", "GET\r\n\r\n", "GET /pty/x\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n", ("A"):rep(100000), "GET / HTTP/1.1\r\nX: " .. ("a"):rep(100000) .. "\r\n\r\n",
      "GET / HTTP/1.1\r\n" .. ("X: y\r\n"):rep(10000) .. "\r\n", "GET / HTTP/1.1\r\nNo colon\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n", "\x81\x85\0\0\0\0hello\r\n\r\n" } do
      local conn = connect()
      conn:send(bytes)
      conn:finish()
      local ok, answer = pcall(conn.read_response, conn, "GET") -- a reset will do
      assert.is_true(not ok or answer == nil or answer.status >= 400, ok and answer and answer.status)
      conn:close()
    end
  end)

  it("takes a head in single bytes, and forgets those that end in mid-head", function()
    local conn = connect()
    local head = ws.request(abxd, started.id, {})
    for i = 1, #head do
      conn:send(head:sub(i, i))
    end
    assert.equal(101, conn:read_head("GET").status)
    assert.equal(started.id, ws.over(conn):wait("ready").id)
    conn:close()
    for i = 1, #head - 1, 7 do
      local cut = connect()
      cut:send(head:sub(1, i))
      cut:close()
    end
    pty.wait_field(abxd, started.id, "clients", 0)
  end)

  it("takes what comes right behind the head", function()
    local conn = connect()
    conn:send(ws.request(abxd, started.id, {}) .. ws_frame.encode(ws_frame.TEXT, '{"type":"ping"}') ..
      ws_frame.encode(ws_frame.BINARY, "typed\n"))
    assert.equal(101, conn:read_head("GET").status)
    local client <close> = ws.over(conn)
    client:wait("pong")
    assert.equal("typed\r\ntyped\r\n", client:read_to(14))
    client:close()
    pty.wait_field(abxd, started.id, "clients", 0)
  end)
end)
