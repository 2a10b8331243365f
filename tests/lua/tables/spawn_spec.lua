require("tests.lua.tables.stubs")
local json = require("abx.json")
local spawn = require("abx.spawn")

local function fields_of(errors)
  local names = {}
  for _, fault in ipairs(errors) do
    names[#names + 1] = fault.field
  end
  return names
end

describe("spawn fields", function()
  it("have the default that the route wants", function()
    assert.are.equal(120000, spawn.fields({ timeout_ms = 120000 }).timeout_ms.default)
    assert.are.equal(0, spawn.fields({}).timeout_ms.default)
  end)

  it("come without stdin for terminals", function()
    assert.is_nil(spawn.fields({ stdin = false }).stdin)
    assert.is_nil(spawn.fields({ stdin = false }).stdin_encoding)
    assert.is_table(spawn.fields({}).stdin)
  end)

  it("tell which program runs where none is named", function()
    assert.matches("exactly one of command and argv", spawn.fields({}).command.doc, 1, true)
    assert.matches("the login shell unless", spawn.fields({ program = "the login shell" }).command.doc, 1, true)
  end)

  it("turn into what proc.start takes", function()
    assert.are.same(
      { command = "ls", cwd = "a", env = { A = "1", B = json.null }, stdin = "x", timeout_ms = 7 },
      spawn.to_spec {
        command = "ls", cwd = "a", env = { A = "1", B = json.null }, stdin = "x", stdin_encoding = "utf-8", timeout_ms = 7,
      }
    )
  end)

  it("decode stdin", function()
    assert.are.equal("a\0\xff", spawn.to_spec({ argv = { "cat" }, stdin = "YQD/", stdin_encoding = "base64" }).stdin)
  end)

  it("want exactly one of command and argv, and blame both", function()
    local spec, errors = spawn.to_spec {}
    assert.is_nil(spec)
    assert.are.same({ "command", "argv" }, fields_of(errors))
    spec, errors = spawn.to_spec { command = "ls", argv = { "ls" } }
    assert.is_nil(spec)
    assert.are.same({ "command", "argv" }, fields_of(errors))
  end)

  it("may go without both where the route has a program of its own", function()
    assert.are.same({ cwd = "a" }, spawn.to_spec({ cwd = "a" }, { needs_program = false }))
    local _, errors = spawn.to_spec({ command = "ls", argv = { "ls" } }, { needs_program = false })
    assert.are.same({ "command", "argv" }, fields_of(errors))
  end)

  it("name every fault at once", function()
    local _, errors = spawn.to_spec { argv = { "a", "b\0c", "\0" }, stdin = "?", stdin_encoding = "base64" }
    assert.are.same({ "argv[1]", "argv[2]", "stdin" }, fields_of(errors))
    _, errors = spawn.to_spec { command = "a\0b" }
    assert.are.same({ "command" }, fields_of(errors))
  end)
end)
