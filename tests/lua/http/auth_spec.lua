local check = require("support.check")
local http = require("support.http")
local server = require("support.server")

local TOKEN = "tok-3fZ9"

--- Sends one request line and header lines as they are, with a token; false leaves it out.
local function send(abxd, line, headers, token)
  local lines = { line, table.unpack(headers) }
  if token ~= false then
    lines[#lines + 1] = "Authorization: Bearer " .. (token or TOKEN)
  end
  return http.raw(abxd, table.concat(lines, "\r\n") .. "\r\n\r\n", 10)
end

describe("the token", function()
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start { env = { ABX_SERVER_TOKEN = TOKEN } }
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  it("opens every route; without it only /health answers", function()
    assert.equal(200, abxd:get("/capabilities").status)
    assert.equal(200, abxd:get("/health", { token = false }).status)
    assert.equal(200, abxd:request("HEAD", "/health", { token = false }).status)
    for _, request in ipairs {
      { "GET", "/capabilities" }, { "GET", "/commands" }, { "POST", "/commands/x" }, { "POST", "/upload?path=x" },
      { "GET", "/download?path=x" }, { "POST", "/shell" }, { "POST", "/shell/stream" }, { "GET", "/openapi.json" },
      { "GET", "/nope" }, { "GET", "/" }, { "DELETE", "/shell" }, { "BREW", "/shell" },
    } do
      local answer = abxd:request(request[1], request[2], { token = false })
      check.problem(answer, 401, "unauthorized")
      assert.equal("Bearer", answer.headers["www-authenticate"]:match("^%a+"))
    end
  end)

  describe("is refused when it is", function()
    local cases = {
      ["a prefix"] = "Bearer " .. TOKEN:sub(1, -2), ["longer"] = "Bearer " .. TOKEN .. "x", ["empty"] = "Bearer ",
      ["no scheme"] = TOKEN, ["another scheme"] = "Basic " .. TOKEN, ["quoted"] = 'Bearer "' .. TOKEN .. '"',
      ["in another case"] = "Bearer " .. TOKEN:upper(), ["one of two"] = "Bearer x, Bearer " .. TOKEN,
    }
    for name, value in pairs(cases) do
      it(name, function()
        check.problem(abxd:get("/capabilities", { token = false, headers = { Authorization = value } }), 401,
          "unauthorized")
      end)
    end

    it("in the query", function()
      check.problem(abxd:get("/capabilities?token=" .. TOKEN, { token = false }), 401, "unauthorized")
    end)
  end)

  it("may follow its scheme in any case", function()
    assert.equal(200, abxd:get("/capabilities", { token = false, headers = { Authorization = "bearer " .. TOKEN } }).status)
  end)

  it("may have blanks around it, which belong to the header", function()
    for _, blanks in ipairs { " ", "  \t ", "\t" } do
      local answer = send(abxd, "GET /capabilities HTTP/1.1", { "Host: localhost",
        "Authorization: " .. blanks .. "Bearer " .. TOKEN .. blanks }, false)
      assert.equal(200, answer.status)
    end
    local answer = send(abxd, "GET /capabilities HTTP/1.1", { "Host: localhost", "Authorization: Bearer " .. TOKEN .. " x" },
      false)
    assert.equal(401, answer.status)
  end)

  it("is wanted before the body is looked at", function()
    check.problem(abxd:request("POST", "/shell", { token = false, body = ("["):rep(500000), headers = {
      ["Content-Type"] = "application/json" } }), 401, "unauthorized")
    check.problem(abxd:request("POST", "/upload?path=x", { token = false, body = ("x"):rep(500000) }), 401, "unauthorized")
    assert.same({}, require("support.files").list(abxd.base_dir))
  end)

  describe("is asked for on the path that is served:", function()
    local targets = {
      "/health/../capabilities", "/health/%2e%2e/capabilities", "//capabilities", "/./capabilities", "/CAPABILITIES",
      "/capabilities/", "/%63apabilities", "/%2563apabilities", "/capabilities%00", "/health%00/../capabilities",
      "/capabilities;x", "/capabilities?", "/capabilities?x=/health", "/health%2f..%2fcapabilities", "\\capabilities",
      "/health/", "/health%00", "/health;x", "//health/../capabilities", "/%zz", "/capabilities#/health",
      "http://127.0.0.1/capabilities", "http://127.0.0.1/health/../capabilities", "*", "capabilities",
    }
    for _, target in ipairs(targets) do
      it(target, function()
        local answer = send(abxd, "GET " .. target .. " HTTP/1.1", { "Host: localhost" }, false)
        assert.is_true(answer == nil or answer.status == 401 or answer.status == 404 or answer.status == 400,
          tostring(answer and answer.status))
      end)
    end
  end)

  describe("with it a path is decoded once:", function()
    local cases = {
      { "/%63apabilities", 200 }, { "/capabilities?", 200 }, { "/capabilities/", 404 }, { "/CAPABILITIES", 404 },
      { "//capabilities", 404 }, { "/./capabilities", 404 }, { "/health/../capabilities", 404 }, { "/%2563apabilities", 404 },
      { "/%zz", 400 }, { "/capabilities%4", 400 }, { "/health%2f..%2fcapabilities", 404 }, { "/capabilities%00", 404 },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        local answer = send(abxd, "GET " .. case[1] .. " HTTP/1.1", { "Host: localhost" })
        assert.is_true(answer.status == case[2] or (case[1]:find("%%00") and answer.status == 400), answer.status)
      end)
    end
  end)
end)

describe("a request's", function()
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start { env = { ABX_SERVER_TOKEN = TOKEN }, args = { "--allowed-hosts", "abx.example",
      "--allowed-origins", "https://app.example,http://dev.example:3000" } }
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  describe("Host", function()
    local cases = {
      { "localhost", 200 }, { "localhost:1", 200 }, { "LOCALHOST:8080", 200 }, { "127.0.0.1", 200 }, { "[::1]:8080", 200 },
      { "[::1]", 200 }, { "abx.example", 200 }, { "ABX.example:99", 200 },
      { "evil.example", 403 }, { "127.0.0.1.evil.example", 403 }, { "localhost.evil.example", 403 },
      { "abx.example.evil", 403 }, { "x.abx.example", 403 }, { "10.0.0.1", 403 }, { "localhost:80@evil", 400 }, { "", 400 },
      { "local host", 400 }, { "localhost:port", 400 },
    }
    for _, case in ipairs(cases) do
      it(("%q gives %d"):format(case[1], case[2]), function()
        for _, target in ipairs { "/health", "/capabilities" } do
          local answer = send(abxd, "GET " .. target .. " HTTP/1.1", { "Host: " .. case[1] })
          if case[2] == 200 then
            assert.equal(200, answer.status)
          elseif case[2] == 403 then
            check.problem(answer, 403, "host_not_allowed")
          else -- malformed ones may as well count as foreign
            assert.is_true(answer.status == 400 or answer.status == 403, answer.status)
          end
        end
      end)
    end

    it("must be there once", function()
      assert.equal(400, send(abxd, "GET /health HTTP/1.1", {}).status)
      assert.equal(400, send(abxd, "GET /health HTTP/1.1", { "Host: localhost", "Host: localhost" }).status)
      assert.equal(400, send(abxd, "GET /health HTTP/1.1", { "Host: localhost", "Host: evil.example" }).status)
    end)

    it("counts when the target is absolute, too", function()
      local answer = send(abxd, "GET http://evil.example/health HTTP/1.1", { "Host: localhost" })
      assert.is_true(answer.status >= 400 and answer.status < 500, answer.status)
    end)
  end)

  describe("Origin", function()
    local cases = {
      { "http://localhost:8080", 200 }, { "https://localhost:8080", 200 }, { "https://app.example", 200 },
      { "http://dev.example:3000", 200 },
      { "null", 403 }, { "https://evil.example", 403 }, { "http://localhost:8081", 403 }, { "http://localhost", 403 },
      { "http://127.0.0.1:8080", 403 }, { "http://app.example", 403 }, { "https://app.example:444", 403 },
      { "https://app.example.evil", 403 }, { "http://localhost:8080.evil.example", 403 }, { "ftp://localhost:8080", 403 },
      { "", 403 }, { "http://localhost:8080/", 403 },
    }
    for _, case in ipairs(cases) do
      it(("%q gives %d"):format(case[1], case[2]), function()
        for _, target in ipairs { "/health", "/capabilities" } do
          local answer = send(abxd, "GET " .. target .. " HTTP/1.1", { "Host: localhost:8080", "Origin: " .. case[1] })
          if case[2] == 200 then
            assert.equal(200, answer.status)
          else
            check.problem(answer, 403, "origin_not_allowed")
          end
        end
      end)
    end

    it("that is allowed is told so, and no other", function()
      local answer = abxd:get("/capabilities", { headers = { Origin = "https://app.example",
        ["Sec-Fetch-Site"] = "cross-site" } })
      assert.same({ 200, "https://app.example" }, { answer.status, answer.headers["access-control-allow-origin"] })
      assert.matches("[Oo]rigin", answer.headers.vary)
      answer = abxd:get("/capabilities")
      assert.is_nil(answer.headers["access-control-allow-origin"])
      answer = abxd:get("/capabilities", { headers = { Origin = "https://evil.example" } })
      assert.is_nil(answer.headers["access-control-allow-origin"])
    end)

    it("is not needed, but a cross-site request without one is refused", function()
      for site, status in pairs { ["cross-site"] = 403, ["same-origin"] = 200, none = 200 } do
        assert.equal(status, abxd:get("/capabilities", { headers = { ["Sec-Fetch-Site"] = site } }).status)
      end
    end)

    it("is checked before a body of any type is run", function()
      local answer = abxd:request("POST", "/shell", { body = '{"command":"touch x"}', headers = {
        ["Content-Type"] = "text/plain", Origin = "https://evil.example" } })
      check.problem(answer, 403, "origin_not_allowed")
      assert.same({}, require("support.files").list(abxd.base_dir))
    end)
  end)

  describe("preflight", function()
    local function preflight(origin, target, method)
      return abxd:request("OPTIONS", target or "/shell", { token = false, headers = { Origin = origin,
        ["Access-Control-Request-Method"] = method or "POST",
        ["Access-Control-Request-Headers"] = "authorization,content-type" } })
    end

    it("answers allowed origins without a token", function()
      local answer = preflight("https://app.example")
      assert.same({ 204, "", "https://app.example" }, { answer.status, answer.body,
        answer.headers["access-control-allow-origin"] })
      assert.matches("POST", answer.headers["access-control-allow-methods"])
      assert.matches("authorization", answer.headers["access-control-allow-headers"]:lower())
      assert.matches("content%-type", answer.headers["access-control-allow-headers"]:lower())
      assert.is_nil(answer.headers["access-control-allow-credentials"])
    end)

    it("refuses others", function()
      for _, origin in ipairs { "https://evil.example", "null" } do
        local answer = preflight(origin)
        check.problem(answer, 403, "origin_not_allowed")
        assert.is_nil(answer.headers["access-control-allow-origin"])
      end
    end)

    it("tells nothing about what exists", function()
      assert.equal(preflight("https://app.example", "/shell").status, preflight("https://app.example", "/nope").status)
    end)
  end)
end)

describe("without a token", function()
  it("every route answers on loopback", function()
    local abxd <close> = server.start()
    assert.equal(200, abxd:get("/capabilities").status)
    assert.equal(200, abxd:get("/capabilities", { headers = { Authorization = "Bearer whatever" } }).status)
  end)

  it("the server refuses to listen elsewhere", function()
    local files = require("support.files")
    local base = files.mkdtemp()
    local result = server.run { "--base-dir", base, "--host", "0.0.0.0", "--port", "0" }
    files.remove_tree(base)
    assert.equal(2, result.code)
    assert.matches("token", result.stderr)
  end)
end)

describe("beyond loopback", function()
  local HOSTS = { "localhost", "10.1.2.3:80", "[fd00::1]", "abx.example", "evil.example" }
  local cases = {
    { "any Host will do with a token", { "--token", TOKEN }, { 200, 200, 200, 200, 200 } },
    { "allowed_hosts counts", { "--token", TOKEN, "--allowed-hosts", "abx.example" }, { 200, 200, 200, 200, 403 } },
    { "a name must be allowed without a token", { "--allow-unauthenticated" }, { 200, 200, 200, 403, 403 } },
    { "an allowed name will do without a token", { "--allow-unauthenticated", "--allowed-hosts", "abx.example" },
      { 200, 200, 200, 200, 403 } },
  }
  for _, case in ipairs(cases) do
    it(case[1], function()
      local abxd <close> = server.start { args = { "--host", "0.0.0.0", table.unpack(case[2]) } }
      for i, host in ipairs(HOSTS) do
        local answer = send(abxd, "GET /health HTTP/1.1", { "Host: " .. host })
        assert.same({ host, case[3][i] }, { host, answer.status })
        if answer.status == 403 then
          assert.matches("allowed_hosts", check.problem(answer, 403, "host_not_allowed").detail)
        end
      end
    end)
  end
end)

describe("HTTP basics:", function()
  it("405 with Allow, 404, request ids", function()
    local abxd <close> = server.start()
    local answer = abxd:request("DELETE", "/health")
    check.problem(answer, 405, "method_not_allowed")
    assert.equal("GET, HEAD, OPTIONS", answer.headers.allow)
    check.problem(abxd:get("/nope"), 404, "not_found")
    assert.equal("Abc-1._x", abxd:get("/health", { headers = { ["X-Request-Id"] = "Abc-1._x" } }).headers["x-request-id"])
    for _, id in ipairs { "a b", ("x"):rep(65), "a/b", "ü" } do
      local made = abxd:get("/health", { headers = { ["X-Request-Id"] = id } }).headers["x-request-id"]
      assert.is_not.equal(id, made)
      assert.matches("^[%w._-]+$", made)
    end
    check.problem(abxd:get("/health?x=1"), 400, "invalid_request", "x")
  end)
end)
