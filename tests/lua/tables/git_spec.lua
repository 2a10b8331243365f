local stubs = require("tests.lua.tables.stubs")
local codes = require("abx.codes")
local json = require("abx.json")
local mime = require("mime")
local operations = require("abx.git_operations")

describe("git", function()
  local asked
  before_each(function()
    stubs.load()
    stubs.add("lua/routes/devtools.lua")
    asked = {}
    stubs.git_place = function(path, kind)
      asked.path, asked.kind = path, kind
      return setmetatable({}, {
        __close = function()
          asked.closed = true
        end,
      })
    end
    stubs.git_call = function(_, options, params)
      asked.options, asked.params = options, params
      return "the answer"
    end
  end)

  local function run(operation, arguments)
    return stubs.route("git.run").handler { id = "r-1", params = { operation = operation, arguments = arguments } }
  end

  it("declares each operation once, with known codes and a summary", function()
    local seen = {}
    for _, operation in ipairs(operations.list) do
      assert.is_nil(seen[operation.name])
      seen[operation.name] = true
      assert.are.equal(operation, operations.by_name[operation.name])
      assert.is_true(#operation.summary > 0)
      assert.are.equal("object", operation.returns.type)
      assert.are.same({ "path", "integer" }, { operation.fields.path.type, operation.fields.timeout_ms.type })
      for _, code in ipairs(operation.errors) do
        assert.is_number(codes[code], code)
      end
    end
    assert.are.equal(19, #operations.list)
    for _, code in ipairs(stubs.route("git.run").errors) do
      assert.is_number(codes[code], code)
    end
  end)

  it("documents every operation with its parameters in the route's description", function()
    local description = stubs.route("git.run").description
    for _, operation in ipairs(operations.list) do
      assert.matches("\n- " .. operation.name .. " {", description)
    end
    assert.matches("- log {limit: integer 1..10000 = 50, paths: [path], ref: string, skip: integer", description, 1, true)
    assert.matches("- reset {mode: mixed|soft|hard = mixed, ", description, 1, true)
    assert.matches("- init {bare: boolean = false, ", description, 1, true)
    assert.matches("author: {email (required): string, name (required): string}", description, 1, true)
  end)

  it("asks for the place that the operation wants, and gives it up afterwards", function()
    local answer = run("log", { path = "r", timeout_ms = 5, limit = 50, skip = 0 })
    assert.are.same({ true, "the answer" }, { answer.is_reply, answer.json })
    assert.are.same({
      path = "r", kind = "existing", closed = true, params = { limit = 50, skip = 0 },
      options = { operation = "log", timeout_ms = 5 },
    }, asked)
    run("init", { path = "n" })
    assert.are.equal("new", asked.kind)
    run("clone", { path = "n", url = "u" })
    assert.are.same({ "clone", true, { url = "u" } }, { asked.kind, asked.options.single, asked.params })
    for _, name in ipairs { "fetch", "pull", "push" } do
      run(name, { path = "r" })
      assert.is_true(asked.options.single)
    end
  end)

  it("sends the bytes of a file's path that is not UTF-8", function()
    run("blame", { path = "r", file = "a\xa4" })
    assert.are.same({ file_base64 = mime.b64("a\xa4") }, asked.params)
    run("blame", { path = "r", file = "caf\u{e9}" })
    assert.are.same({ file = "caf\u{e9}" }, asked.params)
  end)

  it("refuses NULs and what is not base64, all at once", function()
    local answer = run("commit", { message = "a\0", author = { name = "\0", email = "x" } })
    local fields = {}
    for i, fault in ipairs(answer.json.errors) do
      fields[i] = fault.field
    end
    assert.are.same({ 400, { "author.name", "message" } }, { answer.status, fields })
    answer = run("add", { paths_base64 = { "!", mime.b64("\0"), mime.b64("a"), mime.b64(("a"):rep(4096)) } })
    assert.are.same({ "paths_base64[0]", "paths_base64[1]", "paths_base64[3]" },
      { answer.json.errors[1].field, answer.json.errors[2].field, answer.json.errors[3].field })
    assert.is_nil(asked.path)
  end)

  it("orders what it finds itself, after what the schemas found", function()
    stubs.check = function()
      return nil, "invalid_request", "", { { field = "zzz", problem = "must be a boolean" } }
    end
    local answer = run("commit", { message = "\0", author = { name = "\0", email = "\0" } })
    local fields = {}
    for i, fault in ipairs(answer.json.errors) do
      fields[i] = fault.field
    end
    assert.are.same({ "zzz", "author.email", "author.name", "message" }, fields)
  end)

  it("names what an operation takes to who gives it something else", function()
    stubs.check = function()
      return nil, "invalid_request", "", {
        { field = "author.mail", problem = "is not a known member" }, { field = "brnch", problem = "is not a known parameter" },
      }
    end
    local answer = run("blame", { brnch = "x" })
    assert.are.same({
      { field = "author.mail", problem = "is not a known member" },
      {
        field = "brnch",
        problem = "is not a known parameter of blame, which takes end_line, file, file_base64, path, path_base64, ref, "
          .. "start_line, timeout_ms",
      },
    }, answer.json.errors)
  end)

  it("tells what there is to who asks for another operation", function()
    local ok, fault = pcall(run, "nope", {})
    assert.are.same({ false, "operation_not_found", "operation" }, { ok, fault.code, fault.field })
    assert.matches("init clone fetch", fault.message, 1, true)
  end)

  it("passes on what a refusal tells beside its code", function()
    stubs.git_call = function()
      return nil, "merge_conflict", "3 files", nil, { code = "merge_conflict", conflicts = json.array { "a", "b" }, status = 1 }
    end
    local answer = run("merge", { ref = "x" })
    assert.are.equal(409, answer.status)
    assert.are.equal("application/problem+json", answer.headers["Content-Type"])
    assert.are.same({
      status = 409, title = "Conflict", code = "merge_conflict", detail = "3 files", request_id = "r-1",
      conflicts = json.array { "a", "b" },
    }, answer.json)
    stubs.git_call = function()
      return nil, "busy", "locked", "path", { code = "busy", field = "path" }
    end
    local ok, fault = pcall(run, "add", { all = true })
    assert.are.same({ false, "busy", "path" }, { ok, fault.code, fault.field })
  end)

  it("answers the status flat", function()
    local answer = stubs.route("git.status").handler {
      id = "r-1", params = { path = ".", untracked = true, ignored = false, limit = 10, timeout_ms = 7 },
    }
    assert.are.equal("the answer", answer.json)
    assert.are.same({ operation = "status", timeout_ms = 7, flat = true }, asked.options)
    assert.are.same({ untracked = true, ignored = false, limit = 10 }, asked.params)
  end)
end)
