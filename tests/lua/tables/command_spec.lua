local stubs = require("tests.lua.tables.stubs")
local command = require("abx.command")
local arg = command.arg

describe("argv of a command", function()
  it("puts an argument in as one word, whatever it holds", function()
    assert.are.same(
      { "echo", "a b; rm -rf / $(id) 'x' \"y\"" },
      command.argv({ "echo", arg "text" }, { text = "a b; rm -rf / $(id) 'x' \"y\"" })
    )
    assert.are.same({ "echo", "" }, command.argv({ "echo", arg "text" }, { text = "" }))
  end)

  it("writes numbers and booleans as JSON does", function()
    assert.are.same(
      { "x", "12", "1.5", "true", "false" },
      command.argv({ "x", arg "i", arg "n", arg "t", arg "f" }, { i = 12, n = 1.5, t = true, f = false })
    )
  end)

  it("gives a word for each item of an array, and none for what is missing", function()
    assert.are.same({ "x", "a", "b", "end" }, command.argv({ "x", arg "list", arg "gone", "end" }, { list = { "a", "b" } }))
    assert.are.same({ "x", "end" }, command.argv({ "x", arg "list", "end" }, { list = {} }))
  end)
end)

describe("the run of a command", function()
  it("fills cwd, env and stdin", function()
    local spec = command.to_spec({
      name = "c", argv = { "cat" }, cwd = arg "dir", stdin = arg "text", env = { A = "1", B = arg "b", C = arg "c" },
    }, { dir = "sub", text = "hello", b = 7 })
    assert.are.same({
      argv = { "cat" }, cwd = "sub", stdin = "hello", env = { A = "1", B = "7" }, timeout_ms = 120000,
      capture_bytes = 2 * 1024 * 1024, kind = "shell", tag = "c",
    }, spec)
  end)

  it("has the command's own limit", function()
    assert.are.equal(5, command.to_spec({ name = "c", argv = { "x" }, timeout_ms = 5 }, {}).timeout_ms)
  end)
end)

describe("the shipped commands", function()
  before_each(stubs.load)

  it("are these", function()
    local names = {}
    for _, declaration in ipairs(stubs.commands) do
      names[#names + 1] = declaration.name .. (declaration.hidden and " (hidden)" or "")
    end
    assert.are.same({ "disk-usage", "git-summary", "find-large-files", "runtime-versions", "ping (hidden)" }, names)
  end)

  it("name only parameters that they declare", function()
    local function check(declaration, value)
      if type(value) == "table" and value.arg then
        assert.is_table(declaration.params[value.arg], declaration.name .. " has no " .. value.arg)
      end
    end
    for _, declaration in ipairs(stubs.commands) do
      for _, word in ipairs(declaration.argv or {}) do
        check(declaration, word)
      end
      check(declaration, declaration.cwd)
      check(declaration, declaration.stdin)
    end
  end)

  it("start where the path says", function()
    local spec = command.to_spec(stubs.commands[2], { path = "repo", count = 3 })
    assert.are.equal("repo", spec.cwd)
    assert.are.equal("3", spec.argv[#spec.argv])
  end)

  it("tell versions through runs that are closed", function()
    local runs = {}
    stubs.start = function(spec)
      if spec.argv[1] == "git" then
        return nil, "executable_not_found", "no git"
      end
      runs[#runs + 1] = stubs.fake_run { stdout = spec.argv[1] .. " 1.0\nmore\n" }
      return runs[#runs]
    end
    local result = stubs.commands[4].run { only = { "bash", "git" } }
    assert.are.same({ versions = { bash = "bash 1.0" } }, result)
    assert.are.equal("close", runs[1].done[#runs[1].done])
  end)
end)
