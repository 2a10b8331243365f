local stubs = require("tests.lua.tables.stubs")
local json = require("abx.json")
local P = require("abx.params")
local schema = require("abx.schema")

describe("makers of schemas", function()
  before_each(function()
    stubs.faults = {}
  end)

  it("fault an unknown key at the line that wrote it", function()
    P.string { maximum = 3 }
    local line = debug.getinfo(1, "l").currentline - 1
    assert.are.equal(1, #stubs.faults)
    assert.are.equal("P.string: unknown key 'maximum' (did you mean?)", stubs.faults[1].message)
    assert.are.equal(line, stubs.faults[1].line)
    assert.truthy(stubs.faults[1].source:find("schema_spec.lua", 1, true))
  end)

  it("fault an unknown key of a choice", function()
    assert.are.same({ "a" }, P.choice({ "a", min = 1 }).choices)
    assert.are.equal("P.choice: unknown key 'min' (did you mean?)", stubs.faults[1].message)
  end)

  it("give a choice its first value as default, unless it is required", function()
    assert.are.equal("a", P.choice({ "a", "b" }).default)
    assert.are.equal("b", P.choice({ "a", "b", default = "b" }).default)
    assert.is_nil(P.choice({ "a", "b", required = true }).default)
  end)

  it("merge fields without touching theirs", function()
    local one, two = { a = 1 }, { b = 2 }
    assert.are.same({ a = 1, b = 2 }, P.merge(one, two))
    assert.are.same({ a = 1 }, one)
  end)
end)

describe("JSON Schema", function()
  it("has bounds by type", function()
    assert.are.same(
      { type = "integer", minimum = 1, maximum = 9, default = 3, description = "d" },
      schema.of(P.integer { min = 1, max = 9, default = 3, doc = "d" })
    )
    assert.are.same({ type = "string", minLength = 1, maxLength = 2 }, schema.of(P.string { min = 1, max = 2 }))
    assert.are.same(
      { type = "array", items = { type = "string" }, minItems = 1 },
      schema.of(P.array { of = P.string {}, min = 1 })
    )
  end)

  it("allows null in type and choices", function()
    assert.are.same({ type = { "string", "null" } }, schema.of(P.string { nullable = true }))
    assert.are.same(
      { type = { "string", "null" }, enum = { "a", json.null }, default = "a" },
      schema.of(P.choice { "a", nullable = true })
    )
  end)

  it("leaves the declaration as it was", function()
    local choice = P.choice { "a", nullable = true }
    schema.of(choice)
    assert.are.same({ "a" }, choice.choices)
  end)

  it("lets a map hold what it says, or anything", function()
    assert.are.same(
      { type = "object", additionalProperties = { type = "string" } },
      schema.of(P.map { of = P.string {} })
    )
    assert.are.same({ type = "object", additionalProperties = true }, schema.of(P.map {}))
  end)

  it("asks of a request for what is required, and refuses the rest", function()
    assert.are.same({
      type = "object",
      properties = { a = { type = "string" }, b = { type = "boolean" } },
      required = { "a" },
      additionalProperties = false,
    }, schema.object { a = P.string { required = true }, b = P.boolean {} })
  end)

  it("promises in an answer what is not optional, and stays open", function()
    assert.are.same({
      type = "object",
      properties = { a = { type = "string" }, b = { type = "boolean" } },
      required = { "a" },
    }, schema.object({ a = P.string {}, b = P.boolean { required = false } }, true))
  end)

  it("gives each path its twin, one of the two where it is required", function()
    local of_path = schema.object { path = P.path { required = true } }
    assert.are.same({ type = "string", minLength = 1, maxLength = 4095 }, of_path.properties.path)
    assert.are.equal("base64", of_path.properties.path_base64.contentEncoding)
    assert.are.same({ { oneOf = { { required = { "path" } }, { required = { "path_base64" } } } } }, of_path.allOf)
    assert.is_nil(of_path.required)
  end)

  it("goes into nested objects", function()
    local nested = schema.of(P.object { fields = { author = P.object { fields = { name = P.string {} } } } }, true)
    assert.are.same({ "author" }, nested.required)
    assert.are.same({ "name" }, nested.properties.author.required)
  end)
end)
