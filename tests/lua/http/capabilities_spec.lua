local check = require("support.check")
local json = require("support.json")
local server = require("support.server")

describe("GET /capabilities", function()
  local function capabilities(abxd)
    local answer = check.ok(abxd:get("/capabilities"))
    local groups = {}
    for _, group in ipairs(answer.groups) do
      groups[group.name] = group
    end
    return answer, groups
  end

  --- name → enabled, of all groups.
  local function switches(abxd)
    local enabled = {}
    for name, group in pairs((select(2, capabilities(abxd)))) do
      enabled[name] = group.enabled
    end
    return enabled
  end

  local function with(overrides)
    local all = { core = true, commands = true, file_ops = true, process = true, system = true, terminal = true,
      dev_tools = false, browser = false }
    for name, value in pairs(overrides) do
      all[name] = value
    end
    return all
  end

  it("tells groups, endpoints, limits and defaults", function()
    local abxd <close> = server.start()
    local answer, groups = capabilities(abxd)
    assert.same(with {}, switches(abxd))
    assert.is_true(groups.core.always_on)
    assert.is_false(groups.commands.always_on)
    assert.equal(check.ok(abxd:get("/health")).version, answer.version)
    assert.same({ base_dir = abxd.base_dir, shell = "/bin/bash", timeout_ms = 120000 }, answer.defaults)
    assert.equal("integer", math.type(answer.websocket.port))
    assert.equal("/pty/{id}", answer.websocket.path)
    assert.is_true(answer.process_tree == "walk" or answer.process_tree == "cgroup")
    assert.equal(512, answer.limits.processes)
    assert.is_true(json.is_array(answer.workers))
    for _, worker in ipairs(answer.workers) do
      assert.is_true(#worker.name > 0)
      assert.same({ "boolean", "integer", "integer" },
        { type(worker.running), math.type(worker.load), math.type(worker.calls) })
      assert.equal(worker.running, worker.pid ~= json.null)
    end
    assert.same({ true, "openapi" }, { json.is_array(answer.packs), answer.packs[1] })

    local count = 0
    for _, group in ipairs(answer.groups) do
      assert.is_string(group.description)
      assert.is_boolean(group.available)
      assert.equal(not group.available, group.reason ~= nil)
      assert.is_true(json.is_array(group.endpoints))
      for _, endpoint in ipairs(group.endpoints) do
        count = count + ((group.enabled and not endpoint.pack) and 1 or 0)
      end
    end
    assert.equal(count, answer.endpoint_count)
    assert.is_true(count >= 8)

    local by_name = {}
    for _, group in ipairs { groups.core, groups.commands } do
      for _, endpoint in ipairs(group.endpoints) do
        by_name[endpoint.name] = endpoint
      end
    end
    local function flags(name)
      local endpoint = by_name[name]
      assert.is_true(#endpoint.summary > 0)
      return { endpoint.method, endpoint.path, endpoint.auth_required, endpoint.streaming }
    end
    assert.same({ "GET", "/health", false, false }, flags("health"))
    assert.same({ "GET", "/capabilities", true, false }, flags("capabilities"))
    assert.same({ "GET", "/commands", true, false }, flags("commands.list"))
    assert.same({ "POST", "/commands/{name}", true, false }, flags("commands.run"))
    assert.same({ "POST", "/upload", true, false }, flags("upload"))
    assert.same({ "GET", "/download", true, false }, flags("download"))
    assert.same({ "POST", "/shell", true, false }, flags("shell"))
    assert.same({ "POST", "/shell/stream", true, true }, flags("shell.stream"))
  end)

  it("a disabled group answers 403 and names itself", function()
    local abxd <close> = server.start { env = { ABX_SERVER_DISABLED_GROUPS = "commands,core" } }
    assert.same(with { commands = false }, switches(abxd))
    for _, request in ipairs { { "POST", "/shell" }, { "POST", "/upload?path=x" }, { "GET", "/commands" },
      { "POST", "/commands/x" }, { "GET", "/download?path=x" } } do
      local problem = check.problem(abxd:request(request[1], request[2]), 403, "capability_disabled")
      assert.matches("commands", problem.detail, 1, true)
    end
    assert.equal(200, abxd:get("/health").status)
    local answer = capabilities(abxd)
    local count = 0
    for _, group in ipairs(answer.groups) do
      for _, endpoint in ipairs(group.endpoints) do
        count = count + ((group.enabled and not endpoint.pack) and 1 or 0)
      end
    end
    assert.equal(count, answer.endpoint_count)
  end)

  it("enabled groups replace the set, and disabled ones take away from it", function()
    local abxd <close> = server.start { args = { "--enabled-groups", "commands,browser", "--disabled-groups", "browser" } }
    assert.same(with { file_ops = false, process = false, system = false, terminal = false }, switches(abxd))
  end)

  it("an unknown group stops the start with the list of those known", function()
    for _, name in ipairs { "ENABLED", "DISABLED" } do
      local base = require("support.files").mkdtemp()
      local result = server.run({ "--base-dir", base, "--port", "0" }, { env = {
        ["ABX_SERVER_" .. name .. "_GROUPS"] = "comands" } })
      require("support.files").remove_tree(base)
      assert.equal(2, result.code)
      for _, known in ipairs { "comands", "core", "commands", "file_ops", "process", "system", "terminal", "dev_tools",
        "browser" } do
        assert.matches(known, result.stderr, 1, true)
      end
    end
  end)
end)
