--- The group file_ops is switched by the environment: its routes, and what /capabilities counts.
local check = require("support.check")
local file_verbs = require("support.file_verbs")
local files = require("support.files")
local server = require("support.server")

local ROUTES = {
  { "GET", "/files/read?path=f" }, { "POST", "/files/write" }, { "GET", "/files/list" }, { "GET", "/files/stat?path=f" },
  { "POST", "/files/mkdir" }, { "DELETE", "/files/delete?path=f" }, { "POST", "/files/move" }, { "POST", "/files/copy" },
  { "POST", "/files/search" },
}

--- The answer of /capabilities, and how many endpoints of enabled groups it lists.
local function capabilities(abxd)
  local answer = check.ok(abxd:get("/capabilities"))
  local groups, listed = {}, 0
  for _, group in ipairs(answer.groups) do
    groups[group.name] = group
    for _, endpoint in ipairs(group.endpoints) do
      listed = listed + ((group.enabled and not endpoint.pack) and 1 or 0)
    end
  end
  assert.equal(listed, answer.endpoint_count)
  return answer, groups
end

local function start(env)
  local abxd = server.start { env = env }
  files.write(abxd.base_dir .. "/f", "inner")
  return abxd
end

local function assert_on(abxd)
  assert.equal("inner", check.ok(file_verbs.send(abxd, file_verbs.read, "f")).content)
  assert.equal(200, file_verbs.send(abxd, file_verbs.write, "f").status)
  assert.equal("written", files.read(abxd.base_dir .. "/f"))
  local _, groups = capabilities(abxd)
  assert.same({ true, 9 }, { groups.file_ops.enabled, #groups.file_ops.endpoints })
end

local function assert_off(abxd)
  for _, route in ipairs(ROUTES) do
    local problem = check.problem(abxd:request(route[1], route[2]), 403, "capability_disabled")
    assert.matches("file_ops", problem.detail, 1, true)
  end
  for _, verb in ipairs { file_verbs.write, file_verbs.delete, file_verbs.mkdir, file_verbs["move, source"] } do
    check.problem(file_verbs.send(abxd, verb, "f"), 403, "capability_disabled")
  end
  assert.same({ "f" }, files.list(abxd.base_dir))
  assert.equal("inner", files.read(abxd.base_dir .. "/f"))
  local answer, groups = capabilities(abxd)
  assert.is_false(groups.file_ops.enabled)
  assert.equal("ok", check.ok(abxd:get("/health")).status)
  return answer, groups
end

describe("The group file_ops", function()
  local usual

  lazy_setup(function()
    local abxd <close> = server.start()
    usual = capabilities(abxd).endpoint_count
  end)

  it("is on unless said otherwise", function()
    local abxd <close> = start()
    assert_on(abxd)
  end)

  it("is off by ABX_SERVER_DISABLED_GROUPS, and is counted no more", function()
    local abxd <close> = start { ABX_SERVER_DISABLED_GROUPS = "file_ops" }
    assert.equal(usual - 9, assert_off(abxd).endpoint_count)
    assert.equal("inner", file_verbs.send(abxd, file_verbs.download, "f").body) -- of another group
  end)

  it("is off where ABX_SERVER_ENABLED_GROUPS leaves it out", function()
    local abxd <close> = start { ABX_SERVER_ENABLED_GROUPS = "commands" }
    assert.equal(2 + 6, assert_off(abxd).endpoint_count) -- of core, and of commands
  end)

  it("is on alone by ABX_SERVER_ENABLED_GROUPS", function()
    local abxd <close> = start { ABX_SERVER_ENABLED_GROUPS = "file_ops" }
    assert_on(abxd)
    local _, groups = capabilities(abxd)
    assert.same({ true, false, false }, { groups.core.enabled, groups.commands.enabled, groups.process.enabled })
    check.problem(file_verbs.send(abxd, file_verbs.download, "f"), 403, "capability_disabled")
  end)

  it("is off where both name it", function()
    local abxd <close> = start { ABX_SERVER_ENABLED_GROUPS = "file_ops,commands",
      ABX_SERVER_DISABLED_GROUPS = "file_ops" }
    local _, groups = assert_off(abxd)
    assert.same({ true, false }, { groups.commands.enabled, groups.process.enabled })
  end)

  it("is not touched by disabling core, nor is core", function()
    local abxd <close> = start { ABX_SERVER_DISABLED_GROUPS = "core" }
    assert_on(abxd)
    local answer, groups = capabilities(abxd)
    assert.same({ usual, true }, { answer.endpoint_count, groups.core.enabled })
    local without <close> = start { ABX_SERVER_DISABLED_GROUPS = "core,file_ops" }
    assert.equal(usual - 9, assert_off(without).endpoint_count)
  end)
end)
