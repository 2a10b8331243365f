local stubs = require("tests.lua.tables.stubs")
local json = require("abx.json")

describe("the OpenAPI document", function()
  local document
  before_each(function()
    stubs.load()
    document = stubs.route("openapi").handler()
  end)

  it("has each enabled route", function()
    local count = 0
    for _ in pairs(document.paths) do
      count = count + 1
    end
    assert.are.equal("3.1.0", document.openapi)
    assert.are.equal("1.2.3", document.info.version)
    assert.are.equal(21, count) -- three paths have two methods
    assert.are.equal("shell.stream", document.paths["/shell/stream"].post.operationId)
    stubs.route("upload").enabled = false
    assert.is_nil(stubs.route("openapi").handler().paths["/upload"])
  end)

  it("tags with the groups that have routes", function()
    local names = {}
    for i, tag in ipairs(document.tags) do
      names[i] = tag.name
    end
    assert.are.same({ "core", "commands", "process", "system", "terminal" }, names)
    assert.are.same({ "commands" }, document.paths["/shell"].post.tags)
  end)

  it("puts parameters into path, query and body", function()
    local run = document.paths["/commands/{name}"].post
    assert.are.equal("path", run.parameters[1]["in"])
    assert.is_true(run.parameters[1].required)
    assert.is_true(run.requestBody.content["application/json"].schema.additionalProperties)

    local names = {}
    for _, parameter in ipairs(document.paths["/download"].get.parameters) do
      names[#names + 1] = parameter.name .. " " .. parameter["in"]
    end
    assert.are.same({ "archive query", "inline query", "path query", "path_base64 query" }, names)

    local shell = document.paths["/shell"].post
    assert.is_nil(shell.parameters)
    assert.are.equal(120000, shell.requestBody.content["application/json"].schema.properties.timeout_ms.default)
    assert.is_table(document.paths["/upload"].post.requestBody.content["multipart/form-data"])
  end)

  it("tells answers and refusals by status", function()
    local shell = document.paths["/shell"].post.responses
    assert.are.equal("Refused: executable_not_found", shell["404"].description)
    assert.is_table(shell["401"])
    assert.is_table(shell["200"].content["application/json"].schema.properties.exit_code)
    assert.is_table(document.paths["/shell/stream"].post.responses["200"].content["text/event-stream"])
    assert.is_table(document.paths["/upload"].post.responses["201"])
    local output = document.paths["/processes/{id}/output"].get.responses["200"].content
    assert.is_table(output["application/json"].schema.properties.eof)
    assert.are.same({ schema = { type = "string" } }, output["text/event-stream"])
    local health = document.paths["/health"].get
    assert.are.same(json.array {}, health.security)
    assert.is_nil(health.responses["401"])
    assert.is_table(health.responses["503"].content["application/json"])
    assert.is_table(health.responses["503"].content["application/problem+json"])
    assert.is_nil(document.paths["/download"].get.responses["304"].content)
  end)

  it("has a path of its own for each variant of a path parameter", function()
    stubs.add("lua/routes/devtools.lua")
    stubs.route("git.run").enabled = true
    document = stubs.route("openapi").handler()
    assert.are.equal("git.run", document.paths["/git/{operation}"].post.operationId)
    local count = 0
    for path, methods in pairs(document.paths) do
      count = count + (path:find("^/git/%l+$") and methods.post and 1 or 0)
    end
    assert.are.equal(19, count)
    local clone = document.paths["/git/clone"].post
    assert.are.same({ "git.run.clone", nil }, { clone.operationId, clone.parameters })
    local body = clone.requestBody.content["application/json"].schema
    assert.are.same({ false, { "url" } }, { body.additionalProperties, body.required })
    assert.are.same({ "path", "path_base64" }, { body.allOf[1].oneOf[1].required[1], body.allOf[1].oneOf[2].required[1] })
    assert.are.same({ "password", "token", "username" }, (function(properties)
      local names = {}
      for name in pairs(properties) do
        names[#names + 1] = name
      end
      table.sort(names)
      return names
    end)(body.properties.credentials.properties))
    local answer = clone.responses["200"].content["application/json"].schema.properties
    assert.are.same({ "integer", "boolean" }, { answer.duration_ms.type, answer.result.properties.empty.type })
    assert.matches("already_exists", clone.responses["409"].description)
    assert.is_nil(document.paths["/git/add"].post.responses["409"].description:find("already_exists", 1, true))
  end)

  it("is JSON", function()
    local text = json.encode(document)
    assert.are.equal("abxd", json.decode(text).info.title)
  end)
end)
