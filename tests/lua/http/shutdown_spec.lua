local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local process = require("support.process")
local server = require("support.server")
local sse = require("support.sse")
local uv = require("luv")

local SLEEP = check.sleep

describe("SIGTERM and SIGINT", function()
  --- Starts a run that outlives SIGTERM, so that the server drains for about two seconds.
  local function start_stubborn(abxd, seconds)
    local stream = sse.events(abxd:stream("POST", "/shell/stream", { json = {
      command = "trap '' TERM; while :; do " .. SLEEP(seconds) .. "; done" } }))
    stream:wait("start")
    assert.is_true(process.poll(5000, function()
      return #check.pids_of(SLEEP(seconds)) == 1
    end))
    return stream
  end

  for _, signal in ipairs { "sigterm", "sigint" } do
    it(signal .. " ends streams and children, and the server, in time", function()
      local abxd = server.start()
      local conns = {}
      for i = 1, 3 do
        conns[i] = sse.events(abxd:stream("POST", "/shell/stream", { json = { command = SLEEP(4461) .. "; " .. SLEEP(4461) } }))
        conns[i]:wait("start")
      end
      local shell = abxd:connect()
      shell:send_request("POST", "/shell", { json = {
        command = "echo kept; (setsid " .. SLEEP(4462) .. " &) ; " .. SLEEP(4463) } })
      local idle, slow = abxd:connect(), abxd:connect()
      slow:send("GET /health HTTP/1.1\r\nHos")
      assert.is_true(process.poll(5000, function()
        return #check.pids_of(SLEEP(4463)) == 1
      end))
      local start = uv.hrtime()
      abxd.child:kill(signal)
      for i = 1, 3 do
        local events = conns[i]:all(10) -- raises where the stream is cut
        local last = events[#events]
        assert.is_true(last.event == "exit" or (last.event == "error" and last.data.code == "shutting_down"), last.event)
        conns[i].response:close()
      end
      local answer = shell:read_response()
      assert.is_true(answer.status == 200 or answer.status == 503, answer.status)
      if answer.status == 200 then
        assert.same({ "kept\n", 143 }, { answer:json().stdout, answer:json().exit_code })
      end
      assert.is_true(abxd.child:wait(8000 * check.slack))
      assert.is_true(uv.hrtime() - start < 8e9 * check.slack)
      for _, seconds in ipairs { 4461, 4462, 4463 } do
        assert.equal(0, check.gone(SLEEP(seconds), 100))
      end
      shell:close()
      idle:close()
      slow:close()
      abxd:stop() -- looks at the exit code and the log
    end)
  end

  it("while it drains, new requests get 503", function()
    local abxd = server.start()
    local stream = start_stubborn(abxd, 4464)
    local conns = {}
    for i = 1, 3 do
      conns[i] = abxd:connect()
      assert.equal(200, conns[i]:request("GET", "/health").status)
    end
    abxd.child:kill("sigterm")
    uv.sleep(300)
    local health = conns[1]:request("GET", "/health")
    assert.same({ 503, { status = "shutting_down" } }, { health.status, health:json() })
    check.problem(conns[2]:request("POST", "/shell", { json = { command = "true" } }), 503, "shutting_down")
    check.problem(conns[3]:request("GET", "/commands"), 503, "shutting_down")
    for i = 1, 3 do
      conns[i]:close()
    end
    stream:all(10)
    stream.response:close()
    assert.is_true(abxd.child:wait(8000 * check.slack))
    assert.equal(0, check.gone(SLEEP(4464), 100))
    abxd:stop()
  end)

  it("removes what an upload has begun", function()
    local base = files.mkdtemp()
    local abxd = server.start { base_dir = base }
    files.write(base .. "/v", "v1")
    local conn = abxd:connect()
    conn:send(http.head("POST", "/upload?path=v", "localhost", { headers = { ["Content-Length"] = 10000000 } })
      .. ("x"):rep(3000000))
    uv.sleep(200)
    abxd.child:kill("sigterm")
    assert.is_true(abxd.child:wait(8000 * check.slack))
    conn:close()
    assert.same({ "v" }, files.list(base))
    assert.equal("v1", files.read(base .. "/v"))
    abxd:stop()
    files.remove_tree(base)
  end)

  it("the port is free at once, whatever its programs hold", function()
    local abxd = server.start()
    local port = abxd.port
    check.ok(abxd:post("/shell", { command = SLEEP(4465) .. " & echo" }))
    abxd:stop()
    local again <close> = server.start { args = { "--port", tostring(port) } }
    assert.equal(port, again.port)
    local result = server.run { "--base-dir", again.base_dir, "--port", tostring(port) }
    assert.equal(1, result.code)
    assert.matches("in use", result.stderr)
  end)
end)
