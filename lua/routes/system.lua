--- The server and its machine.
local json = require("abx.json")
local P = require("abx.params")
local server = require("abx.server")
local tables = require("abx.tables")

local ENDPOINT = P.object {
  fields = {
    method = P.string {},
    path = P.string {},
    name = P.string {},
    summary = P.string {},
    auth_required = P.boolean {},
    streaming = P.boolean {},
    pack = P.string { required = false, doc = "the pack that brought it" },
  },
}

local GROUP = P.object {
  fields = {
    name = P.string {},
    description = P.string {},
    enabled = P.boolean {},
    always_on = P.boolean {},
    available = P.boolean { doc = "whether it can work here" },
    reason = P.string { required = false, doc = "why it cannot" },
    endpoints = P.array { of = ENDPOINT },
  },
}

local function endpoints_of(group)
  local endpoints = json.array {}
  for _, route in ipairs(tables.routes()) do
    if route.group == group.name then
      endpoints[#endpoints + 1] = {
        method = route.method,
        path = route.path,
        name = route.name,
        summary = route.summary,
        auth_required = route.auth_required,
        streaming = route.streaming,
        pack = route.pack,
      }
    end
  end
  return endpoints
end

local function group_entries()
  local entries = json.array {}
  for _, group in ipairs(tables.groups()) do
    local endpoints = endpoints_of(group)
    local available = #endpoints > 0
    entries[#entries + 1] = {
      name = group.name,
      description = group.description,
      enabled = group.enabled,
      always_on = group.always_on,
      available = available,
      reason = not available and "this version has no routes for it" or nil,
      endpoints = endpoints,
    }
  end
  return entries
end

-- A pack is another face of the same table, so its routes do not count.
local function endpoint_count()
  local count = 0
  for _, route in ipairs(tables.routes()) do
    if route.enabled and not route.pack then
      count = count + 1
    end
  end
  return count
end

return {
  group = "system",
  {
    method = "GET", path = "/capabilities", name = "capabilities", group = "core",
    summary = "What this server can do",
    description = "Its groups with their endpoints, on or off; packs, limits and defaults.",
    read_only = true, idempotent = true,
    returns = P.object {
      doc = "as the server runs now",
      fields = {
        version = P.string {},
        groups = P.array { of = GROUP },
        packs = P.array { of = P.string {} },
        endpoint_count = P.integer { min = 0, doc = "enabled endpoints, without those of packs" },
        websocket = P.object { fields = { port = P.integer {}, path = P.string {} }, doc = "where terminals are reached" },
        process_tree = P.choice { "cgroup", "walk", required = true, doc = "how the tree of a program is found" },
        limits = P.map { of = P.any {} },
        defaults = P.object {
          fields = { base_dir = P.path {}, shell = P.string {}, timeout_ms = P.integer { doc = "of POST /shell" } },
        },
      },
    },
    handler = function()
      local config = server.config()
      return {
        version = server.version,
        groups = group_entries(),
        packs = json.array(P.join(tables.packs())),
        endpoint_count = endpoint_count(),
        websocket = { port = config.ws_port, path = "/pty/{id}" },
        process_tree = config.process_tree,
        limits = config.limits,
        defaults = { base_dir = config.base_dir, shell = config.shell, timeout_ms = config.defaults.timeout_ms },
      }
    end,
  },
}
