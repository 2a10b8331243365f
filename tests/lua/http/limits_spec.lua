local check = require("support.check")
local server = require("support.server")
local socket = require("socket")
local sse = require("support.sse")

local SLEEP = check.sleep

describe("under pressure", function()
  local function close_all(conns)
    for _, conn in ipairs(conns) do
      conn:close()
    end
  end

  it("200 slow clients delay nobody, and are dropped in the end", function()
    local abxd <close> = server.start { args = { "--limits-head-timeout-ms", "1500", "--limits-body-timeout-ms", "1500" } }
    local baseline = abxd:baseline()
    local pieces = {
      "GET /health HTTP/1.1\r\nHost: loc", "POST /shell HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        .. "Content-Length: 100\r\n\r\n{", "POST /upload?path=x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked"
        .. "\r\n\r\n5\r\nab", "G",
    }
    local conns = {}
    for i = 1, 200 do
      conns[i] = abxd:connect()
      conns[i]:send(pieces[i % 4 + 1])
    end
    check.prompt(abxd, 0.3)
    local stop = socket.gettime() + 1
    while socket.gettime() < stop do -- a byte now and then must not keep a head alive
      for i = 3, 200, 40 do
        conns[i]:send("x")
      end
      socket.sleep(0.2)
    end
    for i = 1, 200 do
      assert.is_true(conns[i]:is_closed(5 * check.slack), ("client %d is still there"):format(i))
    end
    close_all(conns)
    abxd:assert_settled(baseline)
    assert.same({}, require("support.files").list(abxd.base_dir))
  end)

  it("50 clients that leave streams and runs leave nothing", function()
    local abxd <close> = server.start()
    local baseline = abxd:baseline()
    local loops = { "while :; do echo x; sleep .05; done", SLEEP(4561) .. "; :", "yes", "setsid " .. SLEEP(4562) .. " & wait" }
    for round = 1, 2 do
      local conns = {}
      for i = 1, 50 do
        local target = i % 5 == 0 and "/shell" or "/shell/stream"
        conns[i] = abxd:connect()
        conns[i]:send_request("POST", target, { json = { command = loops[i % 4 + 1] } })
        if target == "/shell/stream" and round == 1 then
          sse.events(conns[i]:read_head("POST")):wait("start", 20)
        end
      end
      for i, conn in ipairs(conns) do
        conn[i % 2 == 0 and "abort" or "close"](conn)
      end
      abxd:assert_settled(baseline)
    end
    assert.equal(0, check.gone(SLEEP(4561)))
    assert.equal(0, check.gone(SLEEP(4562)))
    check.prompt(abxd, 0.3)
  end)

  it("200 idle streams delay nobody", function()
    local abxd <close> = server.start()
    local baseline = abxd:baseline()
    local conns = {}
    for i = 1, 200 do
      conns[i] = abxd:connect()
      conns[i]:send_request("POST", "/shell/stream", { json = { argv = { "sleep", "4563" } } })
    end
    for i = 1, 200 do
      assert.equal(200, conns[i]:read_head("POST").status)
    end
    check.prompt(abxd, 0.3)
    close_all(conns)
    abxd:assert_settled(baseline)
  end)

  it("past the limits there is 429 with Retry-After, and room again later", function()
    local abxd <close> = server.start { args = { "--limits-processes", "3", "--limits-requests", "5" } }
    local baseline = abxd:baseline()
    local streams = {}
    for i = 1, 3 do
      streams[i] = abxd:stream("POST", "/shell/stream", { json = { argv = { "sleep", "4564" } } })
      assert.equal(200, streams[i].status)
    end
    local answer = abxd:post("/shell", { command = "true" })
    check.problem(answer, 429, "too_many_processes")
    assert.matches("^%d+$", answer.headers["retry-after"])
    streams[1]:close()
    assert.equal(0, (function()
      for _ = 1, 50 do
        answer = abxd:post("/shell", { command = "true" })
        if answer.status == 200 then
          return answer:json().exit_code
        end
        socket.sleep(0.1)
      end
    end)())

    local conns = {}
    for i = 1, 3 do -- with the two streams: five requests
      conns[i] = abxd:connect()
      conns[i]:send("POST /upload?path=x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
    end
    socket.sleep(0.3)
    answer = abxd:get("/commands")
    check.problem(answer, 429, "too_many_requests")
    assert.matches("^%d+$", answer.headers["retry-after"])
    close_all(conns)
    streams[2]:close()
    streams[3]:close()
    abxd:assert_settled(baseline)
    assert.equal(200, abxd:get("/commands").status)
  end)

  it("a stream and an upload that end in the same moment leave nothing", function()
    local abxd <close> = server.start()
    local baseline = abxd:baseline()
    local stream = abxd:stream("POST", "/shell/stream", { json = { argv = { "sleep", "4565" } } })
    local upload = abxd:connect()
    upload:send("POST /upload?path=x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
    socket.sleep(0.3)
    upload:close()
    stream:close()
    abxd:assert_settled(baseline) -- and no other request comes that would wake the server
  end)

  it("connections that come and go leave nothing", function()
    local abxd <close> = server.start()
    local baseline = abxd:baseline()
    for i = 1, 300 do
      local conn = abxd:connect()
      if i % 3 == 0 then
        conn:send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
      end
      conn[i % 2 == 0 and "abort" or "close"](conn)
    end
    abxd:assert_settled(baseline)
  end)
end)
