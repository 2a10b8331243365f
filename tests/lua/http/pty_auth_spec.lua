local check = require("support.check")
local http = require("support.http")
local mime = require("mime")
local pty = require("support.pty")
local server = require("support.server")
local ws = require("support.ws")

local TOKEN = "tok-7h/Q+x~9=" -- not all of it fits into the name of a sub-protocol

local function base64url(text)
  return (mime.b64(text):gsub("[+/=]", { ["+"] = "-", ["/"] = "_", ["="] = "" }))
end

local BEARER64 = "bearer64." .. base64url(TOKEN)

describe("the terminals' port", function()
  local abxd, baseline, started

  lazy_setup(function()
    abxd = server.start { env = { ABX_SERVER_TOKEN = TOKEN }, args = { "--log-level", "debug" } }
    baseline = abxd:baseline()
  end)
  before_each(function()
    started = pty.start(abxd, "exec cat")
  end)
  after_each(function()
    assert.equal(0, pty.list(abxd)[started.id].clients)
    assert.equal(1, #check.ok(abxd:get("/processes?state=running")).processes)
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
    local answer = pty.refused(abxd, where or started.id, options, status, code)
    assert.is_nil(answer.body:find(TOKEN, 1, true))
    return answer
  end

  local function protocols(...)
    return { token = false, protocols = { ... } }
  end

  describe("opens", function()
    it("with the token in the header", function()
      assert.is_nil(accepted {}.headers["sec-websocket-protocol"])
      assert.equal(ws.SUBPROTOCOL, accepted { protocols = { ws.SUBPROTOCOL } }.headers["sec-websocket-protocol"])
    end)

    it("with the token among the sub-protocols, in any order, in one line or two", function()
      for _, options in ipairs { protocols(ws.SUBPROTOCOL, BEARER64), protocols(BEARER64, ws.SUBPROTOCOL),
        protocols("other", ws.SUBPROTOCOL, BEARER64) } do
        assert.equal(ws.SUBPROTOCOL, accepted(options).headers["sec-websocket-protocol"])
      end
      local two = protocols(ws.SUBPROTOCOL)
      two.headers = { ["Sec-WebSocket-Protocol"] = { ws.SUBPROTOCOL, BEARER64 } }
      assert.equal(ws.SUBPROTOCOL, accepted(two).headers["sec-websocket-protocol"])
    end)

    it("with a ticket, once, whatever was refused before", function()
      refused(403, "origin_not_allowed", { ticket = started.ticket, headers = { Origin = "https://evil.example" } })
      refused(400, "invalid_request", { ticket = started.ticket, query = { cols = 0 } })
      refused(426, "invalid_request", { ticket = started.ticket, headers = { ["Sec-WebSocket-Version"] = "12" } })
      accepted { ticket = started.ticket }
      refused(401, "unauthorized", { ticket = started.ticket })
    end)

    it("with any one that is good, and keeps a ticket that was not needed", function()
      accepted { token = TOKEN, ticket = ("0"):rep(32) }
      accepted { token = "wrong", protocols = { ws.SUBPROTOCOL, BEARER64 } }
      accepted { token = TOKEN, ticket = started.ticket }
      accepted { token = "wrong", ticket = started.ticket }
      refused(401, "unauthorized", { token = "wrong", ticket = started.ticket })
    end)

    it("with each of the tickets that GET /pty gives", function()
      local seen = { [started.ticket] = true }
      for _ = 1, 3 do
        local listed = check.ok(abxd:get("/pty?tickets=true")).terminals[1]
        assert.is_nil(seen[listed.ticket])
        assert.matches("^%x+$", listed.ticket)
        assert.equal(32, #listed.ticket)
        seen[listed.ticket] = true
      end
      for ticket in pairs(seen) do
        accepted { ticket = ticket }
      end
      assert.is_nil(check.ok(abxd:get("/pty")).terminals[1].ticket)
    end)
  end)

  describe("refuses with 401", function()
    local function unauthorized(options, where)
      local answer = refused(401, "unauthorized", options, where)
      assert.matches("^Bearer", answer.headers["www-authenticate"])
    end

    it("no token, and tells nothing of what exists", function()
      for _, where in ipairs { started.id, "p-0", "/", "/pty", "/nope", "/pty/" .. started.id .. "/x", "/health" } do
        unauthorized({ token = false }, where)
      end
      check.problem(abxd:post("/pty", {}, { token = false }), 401, "unauthorized")
      check.problem(abxd:get("/pty?tickets=true", { token = false }), 401, "unauthorized")
    end)

    for name, value in pairs { ["a prefix"] = "Bearer " .. TOKEN:sub(1, -2), ["a longer one"] = "Bearer " .. TOKEN .. "x",
      ["an empty one"] = "Bearer ", ["no scheme"] = TOKEN, ["another scheme"] = "Basic " .. TOKEN } do
      it("a token in the header that is wrong: " .. name, function()
        unauthorized { headers = { Authorization = value } }
      end)
    end

    it("a token among the sub-protocols that is wrong", function()
      for _, name in ipairs { "bearer.wrong", "bearer.", "bearer64.", "bearer64." .. base64url(TOKEN .. "x"), "bearer64.!",
        "bearer64." .. base64url(TOKEN):sub(1, -2), "Bearer64." .. base64url(TOKEN), "bearer64" .. base64url(TOKEN),
        "bearer64." .. base64url(base64url(TOKEN)) } do
        unauthorized(protocols(ws.SUBPROTOCOL, name))
      end
      unauthorized(protocols(ws.SUBPROTOCOL, BEARER64, "bearer.wrong")) -- one of two
      unauthorized(protocols(ws.SUBPROTOCOL))
    end)

    it("the token in the query, or as the id", function()
      unauthorized { token = false, query = { token = TOKEN } }
      unauthorized { token = false, query = { ticket = TOKEN } }
      unauthorized({ token = false }, http.escape(TOKEN))
    end)

    it("a ticket of another terminal, or one that is none", function()
      local other = pty.start(abxd, "exec cat")
      unauthorized { ticket = other.ticket }
      for _, ticket in ipairs { "", "x", started.ticket:sub(1, -2), started.ticket .. "0", started.ticket:upper() .. "G",
        ("a"):rep(5000) } do
        unauthorized { token = false, query = { ticket = ticket } }
      end
      unauthorized { token = false, query = "ticket=" .. started.ticket .. "&ticket=" .. started.ticket }
      pty.delete(abxd, other.id)
      accepted { ticket = started.ticket }
    end)
  end)

  describe("refuses with 400", function()
    for query, field in pairs { ["cols=0"] = "cols", ["cols=1001"] = "cols", ["rows=-1"] = "rows", ["rows=2.5"] = "rows",
      ["cols="] = "cols", ["since=-2"] = "since", ["since=x"] = "since", ["since=1e3"] = "since", ["access=wo"] = "access",
      ["access=RW"] = "access", ["mode=text"] = "mode", ["nope=1"] = "nope", ["since=0&since=0"] = "since",
      ["since=%zz"] = "since", ["since=9223372036854775808"] = "since" } do
      it("the query " .. query, function()
        assert.equal(field, refused(400, "invalid_request", { query = query }):json().field)
      end)
    end

    it("sub-protocols without ours", function()
      refused(400, "invalid_request", { protocols = { "chat" } })
      refused(400, "invalid_request", protocols(BEARER64))
    end)

    it("a handshake without a key", function()
      local conn = http.connect { host = abxd.host, port = abxd.ws_port }
      conn:send(ws.request(abxd, started.id, { headers = { ["Sec-WebSocket-Key"] = false } }))
      local answer = conn:read_response()
      assert.is_true(answer == nil or answer.status == 400, answer and answer.status)
      conn:close()
    end)
  end)

  it("refuses another version with 426", function()
    for _, version in ipairs { "12", "14", "x", "", "130" } do
      local answer = refused(426, "invalid_request", { headers = { ["Sec-WebSocket-Version"] = version } })
      assert.equal("13", answer.headers["sec-websocket-version"])
    end
  end)

  it("writes no secret into the log", function()
    accepted { protocols = { ws.SUBPROTOCOL, BEARER64 } }
    refused(401, "unauthorized", { token = TOKEN .. "-x" })
    accepted { ticket = started.ticket }
    local log = abxd:log_text()
    for _, secret in ipairs { TOKEN, BEARER64, started.ticket } do
      assert.is_nil(log:find(secret, 1, true))
    end
  end)
end)

describe("without a token", function()
  it("the terminals' port opens on loopback, whatever token is shown, but not to other pages", function()
    local abxd <close> = server.start()
    local client <close>, started = pty.shell(abxd, nil, { token = "whatever" })
    pty.check_served(client)
    local bearer <close> = ws.connect(abxd, started.id, { protocols = { ws.SUBPROTOCOL, "bearer.any" } })
    bearer:wait("ready")
    assert.equal(403, ws.refused(abxd, started.id, { headers = { Origin = "https://evil.example" } }).status)
    assert.equal(403, ws.refused(abxd, started.id, { headers = { Host = "evil.example" } }).status)
  end)
end)
