--- The server and its machine. What the machine tells is JSON that the primitives made on a thread.
local env = require("abx.env")
local json = require("abx.json")
local P = require("abx.params")
local problem = require("abx.problem")
local server = require("abx.server")
local system = require("abx.system")
local tables = require("abx.tables")
local tools = require("abx.tools")
local variables = require("abx.variables")

local TOOLS_DEADLINE_MS = 120 * 1000 -- all of them may hang, and somebody else may be asking them first

local COUNT = P.integer { min = 0 }
local LIMIT = P.integer { min = 0, nullable = true, doc = "null: no limit" }
local ROOM = P.integer { min = 0, nullable = true, doc = "null: the file system does not answer" }
local NAMES = P.array { of = P.string {} }

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

local WORKER = P.object {
  fields = {
    name = P.string { doc = "what it is for, as the tag of its process tells, too" },
    running = P.boolean { doc = "whether its process lives; it is started with the next call" },
    pid = P.integer { nullable = true },
    load = P.integer { min = 0, doc = "calls that wait or run" },
    calls = P.integer { min = 0, doc = "that were answered, by all its processes" },
  },
}

local function worker_entries()
  local entries = json.array {}
  for _, worker in ipairs(server.workers()) do
    worker.pid = worker.pid or json.null
    entries[#entries + 1] = worker
  end
  return entries
end

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

--- Whether the group can work here; else why not. What it needs may come and go while the server runs, so it is asked.
local function availability(group, endpoints)
  if #endpoints == 0 then
    return false, "this version has no routes for it"
  elseif group.available then
    return group.available()
  end
  return true
end

local function group_entries()
  local entries = json.array {}
  for _, group in ipairs(tables.groups()) do
    local endpoints = endpoints_of(group)
    local available, reason = availability(group, endpoints)
    entries[#entries + 1] = {
      name = group.name,
      description = group.description,
      enabled = group.enabled,
      always_on = group.always_on,
      available = available,
      reason = reason,
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

--- What is malformed in a change of the environment, all of it; abx.env would refuse the first.
local function env_faults(set, unset)
  local errors = variables.faults("set", set)
  for index, name in ipairs(unset) do
    local fault = variables.name_fault(name)
    if fault then
      errors[#errors + 1] = { field = ("unset[%d]"):format(index - 1), problem = fault }
    end
  end
  return errors
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
        websocket = P.object {
          nullable = true, doc = "where terminals are reached; null while the group terminal is off",
          fields = { port = P.integer {}, path = P.string {} },
        },
        workers = P.array { of = WORKER, doc = "helper processes of the groups dev_tools and browser" },
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
        websocket = config.ws_port > 0 and { port = config.ws_port, path = "/pty/{id}" } or json.null,
        workers = worker_entries(),
        process_tree = config.process_tree,
        limits = config.limits,
        defaults = { base_dir = config.base_dir, shell = config.shell, timeout_ms = config.defaults.timeout_ms },
      }
    end,
  },
  {
    method = "GET", path = "/system/info", name = "system.info",
    summary = "The machine, its system and its tools",
    read_only = true, idempotent = true, deadline_ms = TOOLS_DEADLINE_MS,
    returns = P.object {
      doc = "as it is now; the versions of tools are asked once for each file",
      fields = {
        hostname = P.string {},
        os = P.object { fields = { id = P.string { example = "debian" }, name = P.string {}, version = P.string {} } },
        kernel = P.string { example = "6.1.0" },
        arch = P.string { example = "x86_64" },
        cpu = P.object {
          fields = {
            model = P.string {},
            count = P.integer { min = 1, doc = "that the server may run on" },
            quota = P.number { nullable = true, doc = "in processors, of the control group; null: no limit" },
          },
        },
        memory = P.object { fields = { total_bytes = COUNT, limit_bytes = LIMIT } },
        uptime_ms = P.integer { min = 0, doc = "of the machine" },
        user = P.object { fields = { name = P.string {}, uid = COUNT, gid = COUNT } },
        base_dir = P.path {},
        container = P.string { nullable = true, example = "docker", doc = "what kind of container this is; null: none is seen" },
        pid1 = P.string { doc = "the name of process 1" },
        tools = P.map { of = P.string { nullable = true }, doc = "version of each on PATH; null where it is not there" },
        server = P.object {
          fields = { version = P.string {}, pid = P.integer {}, started_at = P.string { format = "date-time" } },
        },
      },
    },
    handler = function()
      return reply {
        json = try(system.info {
          tools = tools.versions(),
          server = { version = server.version, pid = server.pid, started_at = server.started_at },
        }),
      }
    end,
  },
  {
    method = "GET", path = "/system/metrics", name = "system.metrics",
    summary = "What is used of the machine's share",
    description = "Of the control group that the server is in (v2 or v1), else of the machine.",
    read_only = true, idempotent = true,
    returns = P.object {
      doc = "now; what cannot be told is null",
      fields = {
        cpu = P.object {
          fields = {
            percent = P.number {
              min = 0, max = 100,
              doc = "of quota, since this was asked last, over 100 ms or more; a burst past it shows as 100",
            },
            quota = P.number { doc = "in processors: the group's limit, but not more than there are" },
            load = P.array { of = P.number {}, doc = "over 1, 5 and 15 minutes" },
          },
        },
        memory = P.object {
          fields = {
            used_bytes = P.integer { min = 0, doc = "without the cache of files that can be dropped" },
            limit_bytes = P.integer { min = 0, doc = "of the control group, else all that the machine has" },
            percent = P.number { min = 0, max = 100 },
            oom_kills = P.integer { min = 0, nullable = true },
          },
        },
        pids = P.object {
          doc = "processes and threads: of the group; without one, of the machine",
          fields = { current = COUNT, max = LIMIT },
        },
        io = P.object {
          fields = { read_bytes = P.integer { min = 0, nullable = true }, write_bytes = P.integer { min = 0, nullable = true } },
        },
        network = P.object { doc = "without lo", fields = { rx_bytes = COUNT, tx_bytes = COUNT } },
        server = P.object {
          fields = {
            rss_bytes = COUNT,
            fds = COUNT,
            requests = P.integer { min = 0, doc = "that run now, this one too" },
            processes = P.integer { min = 0, doc = "of the process table that live, without terminals" },
            terminals = P.integer { min = 0, doc = "that live" },
          },
        },
      },
    },
    handler = function()
      return reply { json = try(system.metrics()) }
    end,
  },
  {
    method = "GET", path = "/system/disk", name = "system.disk",
    summary = "The file systems that hold something",
    description = "One that does not answer in time (its network is gone, say) has null for its numbers: the others are waited "
      .. "for 2 s in all.",
    read_only = true, idempotent = true,
    returns = P.object {
      doc = "by path, one for each file system, where its shortest path is; without those of the kernel",
      fields = {
        filesystems = P.array {
          of = P.object {
            fields = {
              path = P.path {},
              type = P.string { example = "ext4" },
              total_bytes = ROOM,
              used_bytes = ROOM,
              available_bytes = ROOM,
              percent = P.number { min = 0, max = 100, nullable = true, doc = "used, of what its user can have, as df tells" },
              inodes_total = ROOM,
              inodes_used = ROOM,
              read_only = P.boolean {},
            },
          },
        },
      },
    },
    handler = function()
      return reply { json = try(system.disks()) }
    end,
  },
  {
    method = "GET", path = "/system/ports", name = "system.ports",
    summary = "Where programs listen",
    description = "TCP sockets that listen, in the network namespace of the server.",
    read_only = true, idempotent = true,
    returns = P.object {
      doc = "by port",
      fields = {
        ports = P.array {
          of = P.object {
            fields = {
              port = P.integer { min = 1, max = 65535 },
              address = P.string { example = "127.0.0.1" },
              family = P.choice { "ipv4", "ipv6", required = true },
              pid = P.integer { nullable = true, doc = "null where it is not the server's to see" },
              process = P.string { nullable = true, doc = "the name of that process" },
              managed_id = P.string { nullable = true, doc = "the entry of the process table that it belongs to" },
              self = P.boolean { doc = "the server's own" },
            },
          },
        },
      },
    },
    handler = function()
      return reply { json = try(system.ports()) }
    end,
  },
  {
    method = "GET", path = "/env", name = "env.get",
    summary = "The environment that a new process gets",
    read_only = true, idempotent = true,
    returns = P.object {
      doc = "as it is now",
      fields = {
        env = P.map { of = P.string {}, doc = "secret values are ***" },
        overrides = P.array { of = P.string {}, doc = "names that POST /env set or unset" },
        masked = P.array { of = P.string {}, doc = "names whose value, or a password in it, is not shown" },
      },
    },
    handler = function()
      return reply { json = env.get() }
    end,
  },
  {
    method = "POST", path = "/env", name = "env.set",
    summary = "Set and unset variables of later processes",
    description = "Of every later shell, process, command, terminal and code context; all of the request or nothing of it. "
      .. "What runs already keeps what it has. A shell session that goes on sees the change too, unless it exported or unset "
      .. "that name itself; what one run is given in env comes last. PATH, HOME, USER, SHELL, ABX_SERVER_* and ABX_PROCESS_ID "
      .. "stay as they are; all others may be set, LD_PRELOAD too, as each program can be given them anyway. A name in unset "
      .. "that is not set does no harm. The server's own workers never see any of it.",
    destructive = true, idempotent = true,
    params = {
      set = P.map {
        of = P.string {}, max = 4096,
        doc = "values by name, exactly so; NAME=VALUE at most 131,071 bytes, all together 1 MiB",
      },
      unset = P.array { of = P.string {}, max = 4096 },
    },
    returns = P.object { doc = "done", fields = { set = NAMES, unset = NAMES } },
    errors = { "invalid_request", "protected_variable", "payload_too_large" },
    handler = function(req)
      local set, unset = req.params.set or {}, req.params.unset or {}
      local errors = env_faults(set, unset)
      if #errors > 0 then
        return problem.invalid(req, errors)
      end
      return try(env.update(set, unset))
    end,
  },
}
