--- Versions of the programs that agents look for, asked once for each file and then remembered.
local json = require("abx.json")
local proc = require("abx.proc")
local system = require("abx.system")
local time = require("abx.time")

local M = {}

local UNKNOWN = "unknown"
local AT_ONCE = 6
local PATIENCE_MS = 5000
local OUTPUT_BYTES = 8192
local TOO_MUCH_BYTES = 1024 * 1024
local UNKNOWN_FOR_MS = 10 * 60 * 1000 -- a tool may have been slow only once
local TURN_MS = 60 * 1000

-- What most tools begin their answer with: "git version 2.39.2", "v18.19.0", "jq-1.7.1".
local NUMBER = "(%d[%w.+~-]*)"
local DOTTED = "(%d+%.[%w.+~-]*)"

-- name; programs: other names that it goes by, the first one found counts; arguments that make it tell its version, if not
-- --version; pattern of the version in what it says.
local TOOLS = {
  { name = "bash", pattern = "version " .. DOTTED },
  { name = "bun", pattern = DOTTED },
  { name = "cargo", pattern = "cargo " .. DOTTED },
  { name = "chromium", pattern = DOTTED,
    programs = { "chromium", "chromium-browser", "google-chrome", "chromium-headless-shell" } },
  { name = "clang", pattern = "version " .. DOTTED },
  { name = "cmake", pattern = "version " .. DOTTED },
  { name = "curl", pattern = "curl " .. DOTTED },
  { name = "deno", pattern = "deno " .. DOTTED },
  { name = "docker", pattern = "version " .. DOTTED },
  { name = "gcc", pattern = "%) " .. DOTTED },
  { name = "git", pattern = "version " .. DOTTED },
  { name = "go", arguments = { "version" }, pattern = "go" .. DOTTED },
  { name = "java", arguments = { "-version" }, pattern = 'version "([%w.+~_-]+)"' }, -- the only one that Java 8 knows
  { name = "jq", pattern = "jq%-" .. NUMBER },
  { name = "make", pattern = "Make " .. DOTTED },
  { name = "node", pattern = "v" .. DOTTED },
  { name = "npm", pattern = DOTTED },
  { name = "perl", pattern = "%(v" .. DOTTED .. "%)" },
  { name = "php", pattern = "PHP " .. DOTTED },
  { name = "pip", programs = { "pip", "pip3" }, pattern = "pip " .. DOTTED },
  { name = "pnpm", pattern = DOTTED },
  { name = "python3", pattern = "Python " .. DOTTED },
  { name = "rg", pattern = "ripgrep " .. DOTTED },
  { name = "ruby", pattern = "ruby " .. DOTTED },
  { name = "rustc", pattern = "rustc " .. DOTTED },
  { name = "sqlite3", pattern = DOTTED },
  { name = "tar", pattern = DOTTED },
  { name = "uv", pattern = "uv " .. DOTTED },
  { name = "wget", pattern = "Wget " .. DOTTED },
  { name = "yarn", pattern = DOTTED },
}

-- Answers in English; and some tools would download another version of themselves first, as a file in the directory tells
-- them to.
local ENV = {
  LC_ALL = "C", GOTOOLCHAIN = "local", RUSTUP_AUTO_INSTALL = "0", COREPACK_ENABLE_NETWORK = "0",
  NPM_CONFIG_UPDATE_NOTIFIER = "false",
}

-- All requests of a generation share these.
local known = {} -- path and fingerprint → {version =, at_ms =}
local turn = {} -- owner: who asks tools now; until_ms: then whoever that was is taken for dead

local function find(tool)
  for _, name in ipairs(tool.programs or { tool.name }) do
    local path, fingerprint = system.find_program(name)
    if path then
      return path, path .. "\0" .. fingerprint
    end
  end
end

local function recall(key)
  local entry = known[key]
  if entry and (entry.version ~= UNKNOWN or time.now_ms() - entry.at_ms < UNKNOWN_FOR_MS) then
    return entry.version
  end
end

--- A run that tells the version; nil and whether trying again may help.
local function start(tool, path)
  local run, code = proc.start {
    argv = { path, table.unpack(tool.arguments or { "--version" }) },
    env = ENV,
    kind = "helper",
    timeout_ms = PATIENCE_MS,
    capture_bytes = OUTPUT_BYTES,
  }
  return run, code == "too_many_processes"
end

local function printed(run)
  local output = run:captured("utf-8")
  return output, output.stdout_bytes + output.stderr_bytes
end

--- Waits for its end, unless it prints without one.
local function wait(run)
  local stop_ms = time.now_ms() + PATIENCE_MS + 3000
  repeat
    if run:wait(100) then
      return
    end
  until select(2, printed(run)) > TOO_MUCH_BYTES or time.now_ms() > stop_ms
end

local function read(tool, run)
  local _ <close> = run -- stops it, where it still runs
  wait(run)
  local output = printed(run)
  local version = output.stdout:match(tool.pattern) or output.stderr:match(tool.pattern)
  return version and version:sub(1, 64) or UNKNOWN
end

--- Asks those tools, a few at once, and remembers what they say.
local function ask(wanted)
  local running, at_ms = {}, time.now_ms()
  local function finish_oldest()
    local first = table.remove(running, 1)
    known[first.key] = { version = read(first.tool, first.run), at_ms = at_ms }
  end
  for _, item in ipairs(wanted) do
    if #running == AT_ONCE then
      finish_oldest()
    end
    local run, later = start(item.tool, item.path)
    while later and #running > 0 do
      finish_oldest()
      run, later = start(item.tool, item.path)
    end
    if run then
      running[#running + 1] = { tool = item.tool, key = item.key, run = run }
    elseif not later then
      known[item.key] = { version = UNKNOWN, at_ms = at_ms }
    end
    time.sleep(0) -- starting one takes the loop's time: others come in between
  end
  while #running > 0 do
    finish_oldest()
  end
end

--- What is on PATH: name → version, or json.null; and the tools that have to be asked.
local function look()
  local versions, wanted = {}, {}
  for _, tool in ipairs(TOOLS) do
    local path, key = find(tool)
    local version = path and recall(key)
    if path and not version then
      wanted[#wanted + 1] = { tool = tool, path = path, key = key }
    end
    versions[tool.name] = path and (version or UNKNOWN) or json.null
  end
  return versions, wanted
end

local release = {
  __close = function(owner)
    if turn.owner == owner then
      turn.owner = nil
    end
  end,
}

--- Name → version, UNKNOWN where it says none, json.null where it is not there. Yields. What others ask just now is waited
--- for instead of asked again.
function M.versions()
  local versions, wanted = look()
  while #wanted > 0 and turn.owner and time.now_ms() < turn.until_ms do
    time.sleep(20)
    versions, wanted = look()
  end
  if #wanted > 0 then
    local owner <close> = setmetatable({}, release)
    turn.owner, turn.until_ms = owner, time.now_ms() + TURN_MS
    ask(wanted)
    versions = look()
  end
  return versions
end

return M
