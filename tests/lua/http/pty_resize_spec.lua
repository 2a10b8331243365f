local check = require("support.check")
local process = require("support.process")
local pty = require("support.pty")
local server = require("support.server")

--- Field fault 27.
describe("the size of a terminal", function()
  local abxd, baseline, client, started

  lazy_setup(function()
    abxd = server.start()
    baseline = abxd:baseline()
  end)
  before_each(function()
    client, started = pty.shell(abxd, { cols = 90, rows = 30 })
  end)
  after_each(function()
    client:close()
    pty.clean(abxd)
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function stty_size()
    return pty.ask(client, "stty size")
  end

  --- Asserts what GET /pty and the terminal itself say of it.
  local function check_size(cols, rows)
    assert.equal(("%d %d\r\n"):format(rows, cols), stty_size())
    local listed = pty.list(abxd)[started.id]
    assert.same({ cols, rows }, { listed.cols, listed.rows })
  end

  it("is what it was created with", function()
    assert.same({ 90, 30 }, { started.cols, started.rows })
    check_size(90, 30)
    local default <close> = pty.attach(abxd, pty.start(abxd, "exec cat").id)
    assert.same({ 80, 24 }, { default.ready.cols, default.ready.rows })
  end)

  it("cannot be created out of range", function()
    for _, value in ipairs { "0", "-1", "1001", "65536", "80.5", '"80"', "1e9", "{}" } do
      local answer = abxd:request("POST", "/pty", { body = ('{"cols":%s,"rows":%s}'):format(value, value), headers = {
        ["Content-Type"] = "application/json" } })
      assert.same({ "cols", "rows" }, check.faulty_fields(answer))
    end
  end)

  it("changes with a message, up to both borders, and the program hears of it", function()
    pty.ask(client, "trap 'echo W; stty size' WINCH")
    for _, size in ipairs { { 100, 40 }, { 1, 1 }, { 1000, 1000 }, { 100, 41 } } do
      client:resize(size[1], size[2])
      client:input("\n") -- bash runs a trap when it has read a line
      client:read_until(("W\r\n%d %d\r\n"):format(size[2], size[1]), nil, true)
      client:read_until(pty.PROMPT .. "$")
      assert.equal(size[1], pty.wait_field(abxd, started.id, "cols", size[1]))
    end
    client:resize(100, 41) -- the same
    assert.equal("", pty.ask(client, "true"))
    check_size(100, 41)
  end)

  it("stays as it is after nonsense, which is an error and no close", function()
    client:resize(101, 31)
    local bad = { '"cols":0,"rows":0', '"cols":-1,"rows":5', '"cols":5,"rows":-1', '"cols":65535,"rows":65535',
      '"cols":65536,"rows":1', '"cols":1001,"rows":24', '"cols":80,"rows":1001', '"cols":1000000000,"rows":1',
      '"cols":1e9,"rows":1', '"cols":80.5,"rows":24', '"cols":"80","rows":"24"', '"cols":null,"rows":null',
      '"cols":true,"rows":24', '"cols":[80],"rows":24', '"cols":80', '"rows":24', '"cols":80,"rows":24,"px":5',
      '"cols":18446744073709551697,"rows":24', '"cols":4294967376,"rows":24' }
    for _, members in ipairs(bad) do
      client:send_text(('{"type":"resize",%s}'):format(members))
      assert.same({ members, "invalid_request" }, { members, client:wait("error").code })
    end
    for _, text in ipairs { '{"type":"resize"}', '{"type":"resize","cols":NaN,"rows":NaN}', '{"type":"resize",null}' } do
      client:send_text(text)
      assert.matches("^invalid_", client:wait("error").code)
    end
    check_size(101, 31)
    client:resize(102, 32)
    check_size(102, 32)
  end)

  it("is told to the others, and to them only", function()
    local others = {}
    for i = 1, 3 do
      others[i] = pty.attach(abxd, started.id, i == 3 and { access = "ro" } or nil)
    end
    client:resize(111, 22)
    for i = 1, 3 do
      assert.same({ type = "resized", cols = 111, rows = 22 }, others[i]:wait("resized"))
    end
    client:resize(111, 22) -- no change
    client:resize(112, 22)
    for i = 1, 3 do
      assert.equal(112, others[i]:wait("resized").cols)
    end
    others[1]:resize(50, 20)
    assert.same({ type = "resized", cols = 50, rows = 20 }, client:wait("resized"))
    assert.equal(1, #client.messages - 1) -- beside ready: not of its own
    check_size(50, 20)
    for i = 1, 3 do
      others[i]:close()
    end
  end)

  it("changes as a client attaches with one, or with half of one", function()
    local second <close> = pty.attach(abxd, started.id, { cols = 120, rows = 50 })
    assert.same({ 120, 50 }, { second.ready.cols, second.ready.rows })
    assert.same({ type = "resized", cols = 120, rows = 50 }, client:wait("resized"))
    check_size(120, 50)
    local third <close> = pty.attach(abxd, started.id, { cols = 121 })
    assert.same({ 121, 50 }, { third.ready.cols, third.ready.rows })
    local fourth <close> = pty.attach(abxd, started.id, { rows = 51, mode = "json" })
    assert.same({ 121, 51 }, { fourth.ready.cols, fourth.ready.rows })
    check_size(121, 51)
    second:close()
    third:close()
    fourth:close()
    check_size(121, 51) -- it stays when they leave
  end)

  it("may change as often as a window is dragged", function()
    local other <close> = pty.attach(abxd, started.id)
    for i = 1, 500 do
      client:resize(100 + i % 400, 20 + i % 80)
    end
    client:resize(77, 33)
    check_size(77, 33)
    repeat
      local said = other:wait("resized")
    until said.cols == 77 and said.rows == 33
    pty.check_served(client)
  end)

  it("of one that has ended changes nothing", function()
    client:input("exit 0\n")
    client:resize(55, 55)
    assert.equal(0, client:expect_exit().exit_code)
    assert.is_nil(process.stat(started.pid))
    local late <close> = pty.attach(abxd, started.id, { cols = 44, rows = 44 })
    assert.equal(0, late:expect_exit().exit_code)
  end)
end)
