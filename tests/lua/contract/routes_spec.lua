--- A route, or a change of one, must be meant: the table is compared with a committed snapshot. script/snapshot renews it.
local files = require("support.files")
local json = require("support.json")
local server = require("support.server")

local TABLES = { "--lua-dir", files.source_dir .. "/lua", "--config", files.source_dir .. "/config/server.lua", "--commands",
  files.source_dir .. "/config/commands.lua" }

local function abxd(args)
  return server.run(table.move(TABLES, 1, #TABLES, #args + 1, args))
end

describe("the route table", function()
  it("is the committed one", function()
    local result = abxd({ "routes", "--json" })
    assert.equal("", result.stderr)
    assert.equal(0, result.code)
    assert.equal(files.read(files.source_dir .. "/tests/lua/contract/routes.json"), result.stdout)
  end)

  it("is valid JSON, and the same routes stand in the text for people", function()
    local routes = json.decode(abxd({ "routes", "--json" }).stdout)
    local lines = {}
    for line in abxd({ "routes" }).stdout:gmatch("[^\n]+") do
      lines[#lines + 1] = line
    end
    assert.equal(#routes, #lines)
    for i, route in ipairs(routes) do
      assert.same({ route.method, route.path, route.name, route.group }, { lines[i]:match("^(%S+) +(%S+) +(%S+) +(%S+)") })
    end
  end)
end)
