local stubs = require("tests.lua.tables.stubs")
local json = require("abx.json")

describe("terminals", function()
  local run, spec
  before_each(function()
    stubs.load()
    run, spec = stubs.fake_run {}, nil
    stubs.start = function(given)
      spec = given
      return run
    end
  end)

  --- POST /pty with what the schema would have filled in.
  local function create(params, host)
    for name, value in pairs { cols = 80, rows = 24, term = "xterm-256color", timeout_ms = 0 } do
      params[name] = params[name] or value
    end
    return stubs.route("pty.create").handler { params = params, id = "r-1", headers = { host = host or "localhost:8080" } }
  end

  it("run the login shell unless told another program, and go on by themselves", function()
    assert.are.same({
      id = "p-1", pid = 42, cols = 80, rows = 24, ws_url = "ws://localhost:8081/pty/p-1", ticket = "ticket-of-p-1",
    }, create {})
    assert.are.same({
      kind = "terminal", argv = { "/bin/zsh" }, cols = 80, rows = 24, timeout_ms = 0,
      env = { TERM = "xterm-256color", LINES = json.null, COLUMNS = json.null },
    }, spec)
    assert.are.same({ "detach", "close" }, run.done)
    create { command = "top", cols = 1, rows = 1000, tag = "t" }
    assert.are.same({ "top", nil, 1, 1000, "t" }, { spec.command, spec.argv, spec.cols, spec.rows, spec.tag })
    create { argv = { "top" } }
    assert.are.same({ "top" }, spec.argv)
  end)

  it("take TERM and the size from env where it has them", function()
    create { term = "vt100", env = { TERM = json.null, LINES = "5", A = "b" } }
    assert.are.same({ TERM = json.null, LINES = "5", COLUMNS = json.null, A = "b" }, spec.env)
    create { term = "vt100", env = { A = "b" } }
    assert.are.equal("vt100", spec.env.TERM)
  end)

  it("are refused with all faults at once", function()
    for _, term in ipairs { "a b", "a=b", "x\0", "a/b", "\u{e9}" } do
      local answer = create { term = term, command = "a", argv = { "b" } }
      assert.are.equal(400, answer.status)
      local fields = {}
      for _, fault in ipairs(answer.json.errors) do
        fields[#fields + 1] = fault.field
      end
      assert.are.same({ "command", "argv", "term" }, fields)
    end
    assert.is_nil(spec)
    for _, term in ipairs { "xterm", "tmux-256color", "screen.xterm+x_1", "-" } do
      assert.is_nil(create({ term = term }).is_reply)
    end
  end)

  it("are reached at the host of the request, or where the configuration says", function()
    for host, base in pairs {
      ["127.0.0.1:1"] = "ws://127.0.0.1:8081", ["[::1]:8080"] = "ws://[::1]:8081", ["[::1]"] = "ws://[::1]:8081",
      ["box.example.org"] = "ws://box.example.org:8081",
    } do
      assert.are.equal(base .. "/pty/p-1", create({}, host).ws_url)
    end
    stubs.ws_public_url = "wss://box.example.org/term"
    assert.are.equal("wss://box.example.org/term/pty/p-1", create({}).ws_url)
  end)

  it("are stopped again where the answer cannot be made", function()
    local pty = require("abx.pty")
    local ticket = pty.ticket
    pty.ticket = function()
      return nil, "internal_error", "no ticket"
    end
    local ok, fault = pcall(create, {})
    pty.ticket = ticket
    assert.are.same({ false, "internal_error" }, { ok, fault.code })
    assert.are.same({ "close" }, run.done)
  end)

  it("are listed and closed", function()
    local listed = stubs.route("pty.list").handler { params = { tickets = true } }
    assert.are.same({ terminals = {}, with_tickets = true }, listed.json)
    local close = stubs.route("pty.close").handler
    assert.are.same({ id = "p-1", exit_code = 129 }, close({ params = { id = "p-1" } }).json)
    local ok, fault = pcall(close, { params = { id = "p-2" } })
    assert.are.same({ false, "terminal_not_found", "id" }, { ok, fault.code, fault.field })
  end)
end)
