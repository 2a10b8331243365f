--- Stands in for the server's C libraries, so that tables run in a plain Lua 5.4. Run from the top of the tree.
local dkjson = require("dkjson")

package.path = "./lua/?.lua;" .. package.path

local M = { faults = {} }

local function preload(name, library)
  package.loaded[name] = library
end

--- Marks empty tables, which dkjson takes for lists, as the objects that they are for us.
local function mark_objects(value)
  if type(value) == "table" and not getmetatable(value) then
    if next(value) == nil then
      setmetatable(value, { __jsontype = "object" })
    end
    for _, item in pairs(value) do
      mark_objects(item)
    end
  end
  return value
end

preload("abx.json", {
  null = dkjson.null,
  array = function(list)
    return setmetatable(list, { __jsontype = "array" })
  end,
  encode = function(value)
    return dkjson.encode(mark_objects(value))
  end,
  decode = dkjson.decode,
})

--- UTF-8 as the server has it: each bad byte becomes U+FFFD (short of its exact rules for cut sequences).
local function scrub(bytes)
  local out, position = {}, 1
  while position <= #bytes do
    local ok, bad = utf8.len(bytes, position)
    local last = ok and #bytes or bad - 1
    out[#out + 1] = bytes:sub(position, last)
    if not ok then
      out[#out + 1] = "\u{FFFD}"
    end
    position = ok and #bytes + 1 or bad + 1
  end
  local text = table.concat(out)
  return text, text ~= bytes
end

local mime = require("mime") -- of lua-socket

preload("abx.text", {
  utf8_scrub = scrub,
  mask = function(text)
    return text
  end,
  base64_encode = function(bytes)
    return (mime.b64(bytes))
  end,
  base64_decode = function(coded)
    local body = coded:match("^([A-Za-z0-9+/]*)=?=?$")
    if not body or #coded % 4 ~= 0 then
      return nil, "invalid_request", "not base64"
    end
    return (mime.unb64(coded)) or ""
  end,
})

preload("abx.server", {
  version = "1.2.3",
  uptime_ms = function()
    return 5
  end,
  workers = function()
    return {}
  end,
  draining = function()
    return M.draining or false
  end,
  config = function()
    return {
      base_dir = "/base", shell = "/bin/bash", port = 8080, ws_port = M.ws_port, ws_public_url = M.ws_public_url,
      limits = { requests = 512 }, defaults = { timeout_ms = 120000 }, process_tree = "walk",
    }
  end,
})

local tables = {
  groups = function()
    return M.groups
  end,
  routes = function()
    return M.routes
  end,
  packs = function()
    return M.packs
  end,
  commands = function()
    return M.commands
  end,
  command = function(name)
    for _, declaration in ipairs(M.commands) do
      if declaration.name == name then
        return declaration
      end
    end
  end,
  check = function(fields, value)
    return M.check(fields, value)
  end,
  hint = function()
    return " (did you mean?)"
  end,
  fault = function(message, level)
    local where = debug.getinfo(level + 1, "Sl")
    M.faults[#M.faults + 1] = { message = message, source = where.short_src, line = where.currentline }
  end,
}
preload("abx.tables", tables)
preload("abx.proc", {
  start = function(spec)
    return M.start(spec)
  end,
})
preload("abx.pty", {
  shell = function()
    return "/bin/zsh"
  end,
  ticket = function(id)
    return "ticket-of-" .. id
  end,
  list = function(with_tickets)
    return { terminals = {}, with_tickets = with_tickets }
  end,
  close = function(id)
    if id ~= "p-1" then
      return nil, "terminal_not_found", "no terminal has the id " .. id, "id"
    end
    return { id = id, exit_code = 129 }
  end,
})
preload("abx.fs", {
  upload = function(...)
    return M.upload(...)
  end,
  open_file = function(...)
    return M.open_file(...)
  end,
  archive = function(...)
    return M.archive(...)
  end,
})
preload("abx.session", {
  enter = function(name)
    return M.enter(name)
  end,
})
preload("abx.env", {})
preload("abx.cell", {
  start = function(spec)
    return M.start_cell(spec)
  end,
})

preload("abx.git", {
  place = function(path, kind)
    return M.git_place(path, kind)
  end,
  call = function(place, options, params)
    return M.git_call(place, options, params)
  end,
})
preload("abx.browser", {
  available = function()
    return M.browser_available()
  end,
  call = function(options, params)
    return M.browser_call(options, params)
  end,
})
preload("abx.system", {
  find_program = function(name)
    return M.find_program(name)
  end,
})
preload("abx.time", {
  now_ms = function()
    return 0
  end,
  sleep = function() end,
})

function _G.fail(code, message, field)
  error({ code = code, message = message, field = field }, 0)
end

function _G.try(value, ...)
  if not value then
    fail(...)
  end
  return value, ...
end

function _G.reply(fields)
  fields.is_reply = true
  return fields
end

local DEFAULT_BODY = { GET = "none", DELETE = "none" }

--- The route declarations of a file, with what the loader fills in.
local function load_file(file, pack)
  local declared = assert(loadfile(file))()
  local routes = {}
  for _, route in ipairs(declared) do
    route.group = route.group or declared.group
    route.status = route.status or 200
    route.auth_required = route.auth_required ~= false
    route.streaming = route.streaming or false
    route.body = route.body or DEFAULT_BODY[route.method] or "json"
    route.params = route.params or {}
    route.pack, route.enabled = pack, true
    routes[#routes + 1] = route
  end
  return routes
end

--- Loads all that ships, into M.groups, M.routes, M.packs and M.commands.
function M.load()
  M.groups, M.routes, M.packs, M.faults, M.draining = {}, {}, { "openapi", "extras" }, {}, false
  M.ws_port, M.ws_public_url = 8081, nil
  for _, name in ipairs { "core", "commands", "file_ops", "process", "system", "terminal", "dev_tools", "browser" } do
    local group = assert(loadfile("lua/groups/" .. name .. ".lua"))()
    group.enabled = group.always_on or group.default_on
    M.groups[#M.groups + 1] = group
  end
  for _, source in ipairs {
    { "lua/routes/core.lua" }, { "lua/routes/process.lua" }, { "lua/routes/pty.lua" }, { "lua/routes/system.lua" },
    { "lua/packs/openapi.lua", "openapi" }, { "lua/packs/extras.lua", "extras" },
  } do
    local routes = load_file(table.unpack(source))
    table.move(routes, 1, #routes, #M.routes + 1, M.routes)
  end
  M.commands = assert(loadfile("config/commands.lua"))()
  M.check = function(_, value)
    return value
  end
end

--- Loads a file of a group that is off by default, too.
function M.add(file)
  local routes = load_file(file)
  table.move(routes, 1, #routes, #M.routes + 1, M.routes)
end

--- The route of that name.
function M.route(name)
  for _, route in ipairs(M.routes) do
    if route.name == name then
      return route
    end
  end
end

--- A run as abx.proc gives it; `said` is what answer_output() and exit() answer, and it records what was done to it.
function M.fake_run(said)
  local run = { id = "p-1", pid = 42, cwd = "/base", done = {} }
  local function note(what)
    run.done[#run.done + 1] = what
  end
  function run.wait(_, timeout_ms)
    note("wait " .. tostring(timeout_ms))
    return said.ended ~= false
  end
  function run.detach()
    note("detach")
  end
  function run.captured(_, encoding)
    note("captured " .. encoding)
    return { stdout = said.stdout or "", stderr = "", lossy = false }
  end
  function run.answer_output(_, encoding)
    note("output " .. encoding)
    return { stdout = said.stdout or "", stderr = "", lossy = false }
  end
  function run.exit()
    return { exit_code = said.ended == false and dkjson.null or 0, signal = dkjson.null, timed_out = false }
  end
  function run.stream(_, _, options)
    run.stream_options = options
    return said.streamed
  end
  return setmetatable(run, {
    __close = function()
      note("close")
    end,
  })
end

return M
