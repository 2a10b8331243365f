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
    local null = require("abx.json").null
    assert.are.same({ "x", "b" }, command.argv({ "x", arg "list", arg "gone" }, { list = { null, "b" }, gone = null }))
  end)

  it("tells whose fault each word is", function()
    local _, params = command.argv({ "x", arg "list", arg "gone", "-n", arg "n" }, { list = { "a", "b" }, n = 1 })
    assert.are.same({ [2] = "list[0]", [3] = "list[1]", [5] = "n" }, params)
  end)

  it("has no place for an argument within a word", function()
    local function line_of(write)
      local ok, message = pcall(write)
      assert.is_false(ok)
      assert.matches("arg stands for a whole word; give the option as a word of its own", message, 1, true)
      return math.tointeger(tonumber(message:match("command_spec.lua:(%d+):")))
    end
    local here = debug.getinfo(1, "l").currentline
    assert.are.equal(here + 1, line_of(function() return "--n=" .. arg "n" end))
    assert.are.equal(here + 2, line_of(function() return arg "n" .. "x" end))
    assert.are.equal(here + 3, line_of(function() local word = ("--n=%s"):format(arg "n") return word end))
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

describe("the start of a command", function()
  local declaration = {
    name = "c", argv = { "git", "-C", arg "words" }, cwd = arg "path", stdin = "fixed", env = { A = arg "a", B = "b" },
  }

  local function refused(code, field)
    stubs.start = function()
      return nil, code, "why", field
    end
    return { select(2, command.start(declaration, { words = { "x", "y" }, path = "p", a = "z" })) }
  end

  it("answers the run", function()
    local run = stubs.fake_run {}
    stubs.start = function(spec)
      assert.are.same({ "git", "-C", "x" }, spec.argv)
      return run
    end
    assert.are.equal(run, command.start(declaration, { words = "x" }))
  end)

  it("blames the parameter of a faulty value, and none for the operator's own", function()
    assert.are.same({ "bad_cwd", "why", "path" }, refused("bad_cwd", "cwd"))
    assert.are.same({ "invalid_request", "why", "words[1]" }, refused("invalid_request", "argv[3]"))
    assert.are.same({ "invalid_request", "why", "a" }, refused("invalid_request", "env.A"))
    assert.are.same({ "invalid_request", "why" }, refused("invalid_request", "env.B"))
    assert.are.same({ "invalid_request", "why" }, refused("invalid_request", "argv[1]"))
    assert.are.same({ "invalid_request", "why" }, refused("invalid_request", "stdin"))
    assert.are.same({ "busy", "why" }, refused("busy"))
  end)

  it("has no fault of the client where the program cannot be started", function()
    assert.are.same({ "unavailable", "the program git is not installed" }, refused("executable_not_found", "argv[0]"))
    assert.are.same({ "unavailable", "the program git cannot be executed" }, refused("not_executable", "argv[0]"))
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
