local server = require("support.server")

describe("GET /health", function()
  local abxd, baseline

  setup(function()
    abxd = server.start()
    baseline = abxd:baseline()
  end)

  teardown(function()
    abxd:stop()
  end)

  after_each(function()
    abxd:assert_settled(baseline)
  end)

  it("tells that the server is up, its version and for how long", function()
    local answer = abxd:get("/health")
    assert.equal(200, answer.status)
    assert.equal("application/json", answer.headers["content-type"])
    local health = answer:json()
    assert.equal("ok", health.status)
    assert.matches("^%d+%.%d+%.%d+$", health.version)
    assert.equal("integer", math.type(health.uptime_ms))
    assert.is_true(health.uptime_ms >= 0)
  end)

  it("answers many times on one connection", function()
    local conn <close> = abxd:connect()
    for _ = 1, 20 do
      assert.equal("ok", conn:request("GET", "/health"):json().status)
    end
  end)

  it("answers many connections that ask at the same time, again and again, each with its own answer", function()
    local conns <close> = setmetatable({}, { __close = function(list)
      for _, conn in ipairs(list) do
        conn:close()
      end
    end })
    for i = 1, 24 do
      conns[i] = abxd:connect()
    end
    local seen = {}
    for round = 1, 10 do
      for i, conn in ipairs(conns) do
        conn:send(("%s /health HTTP/1.1\r\nHost: localhost\r\n\r\n"):format((i + round) % 3 == 0 and "HEAD" or "GET"))
      end
      for i, conn in ipairs(conns) do
        local is_head = (i + round) % 3 == 0
        local answer = conn:read_response(is_head and "HEAD" or "GET")
        assert.equal(200, answer.status)
        assert.equal(not is_head, answer.body:find('"status":"ok"', 1, true) ~= nil)
        assert.is_nil(seen[answer.headers["x-request-id"]])
        seen[answer.headers["x-request-id"]] = true
      end
    end
  end)

  it("answers HEAD with the same headers and no body", function()
    local get, head = abxd:get("/health"), abxd:request("HEAD", "/health")
    assert.equal(200, head.status)
    assert.equal("", head.body)
    assert.equal(get.headers["content-type"], head.headers["content-type"])
  end)

  it("needs no token", function()
    local guarded <close> = server.start { env = { ABX_SERVER_TOKEN = "a-token-for-this-spec" } }
    assert.equal(200, guarded:get("/health", { token = false }).status)
    assert.equal(401, guarded:get("/capabilities", { token = false }).status)
    assert.equal(200, guarded:get("/capabilities").status)
  end)
end)
