local stubs = require("tests.lua.tables.stubs")

--- The first Lua block below that heading of the README.
local function example(heading)
  local file = assert(io.open("README.md", "rb"))
  local text = file:read("a")
  file:close()
  local from = assert(text:find("\n## " .. heading .. "\n", 1, true), "no section " .. heading)
  return assert(text:match("\n```lua\n(.-)\n```\n", from), "no example in " .. heading)
end

describe("the README's examples", function()
  before_each(stubs.load)

  it("load as a route file, and the route works", function()
    local declared = assert(load(example("Write a route"), "=example", "t"))()
    assert.are.same({}, stubs.faults)
    assert.are.equal("commands", declared.group)
    local run = stubs.fake_run { stdout = "git version 2.39.5\n" }
    stubs.start = function(spec)
      assert.are.same({ "git", "--version" }, spec.argv)
      return run
    end
    local handler = declared[1].handler
    assert.are.same({ program = "git", version = "2.39.5" }, handler { params = { program = "git", full = false } })
    assert.are.equal("close", run.done[#run.done])
    run = stubs.fake_run { stdout = "" }
    local ok, fault = pcall(handler, { params = { program = "git", full = false } })
    assert.is_false(ok)
    assert.are.equal("unavailable", fault.code)
  end)

  it("load as commands, and the commands work", function()
    local list = assert(load(example("Write a command"), "=example", "t"))()
    assert.are.same({}, stubs.faults)
    local spec = require("abx.command").to_spec(list[1], { path = "src", files = { "a", "-b" } })
    assert.are.same({ "wc", "-l", "--", "a", "-b" }, spec.argv)
    assert.are.equal("src", spec.cwd)
    assert.are.same({ sum = 3 }, list[2].run { a = 2, b = 1 })
  end)
end)
