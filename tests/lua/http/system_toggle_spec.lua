--- The groups process and system are switched off: their routes and those that packs add to them.
local check = require("support.check")
local server = require("support.server")

local ROUTES = {
  process = {
    { "GET", "/processes" }, { "POST", "/processes" }, { "GET", "/processes/p-1" }, { "POST", "/processes/p-1/signal" },
    { "GET", "/processes/p-1/output" }, { "POST", "/processes/p-1/stdin" },
  },
  system = {
    { "GET", "/system/info" }, { "GET", "/system/metrics" }, { "GET", "/system/disk" }, { "GET", "/system/ports" },
    { "GET", "/env" }, { "POST", "/env" },
  },
}

local function group(abxd, name)
  for _, found in ipairs(check.ok(abxd:get("/capabilities")).groups) do
    if found.name == name then
      return found
    end
  end
end

local function assert_off(abxd, name)
  for _, route in ipairs(ROUTES[name]) do
    local problem = check.problem(abxd:request(route[1], route[2]), 403, "capability_disabled")
    assert.matches(name, problem.detail, 1, true)
  end
  assert.is_false(group(abxd, name).enabled)
end

describe("The groups process and system", function()
  for name, other in pairs { process = "system", system = "process" } do
    it(("are switched apart: %s off"):format(name), function()
      local abxd <close> = server.start { env = { ABX_SERVER_DISABLED_GROUPS = name } }
      assert_off(abxd, name)
      assert.is_true(group(abxd, other).enabled)
      assert.equal(200, abxd:get(ROUTES[other][1][2]).status)
    end)
  end

  it("are off where others are enabled", function()
    local abxd <close> = server.start { env = { ABX_SERVER_ENABLED_GROUPS = "commands" } }
    assert_off(abxd, "process")
    assert_off(abxd, "system")
    local answer = abxd:post("/shell", { command = "echo here" })
    assert.equal("here\n", check.ok(answer).stdout)
  end)

  it("have five endpoints, and six", function()
    local abxd <close> = server.start()
    local counts = {}
    for _, name in ipairs { "process", "system" } do
      counts[name] = 0
      for _, endpoint in ipairs(group(abxd, name).endpoints) do
        counts[name] = counts[name] + (endpoint.pack and 0 or 1)
      end
    end
    assert.same({ process = 5, system = 6 }, counts)
  end)
end)
