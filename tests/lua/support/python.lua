--- Python contexts for specs, of both engines: a server each, whose PATH has the python3 that leads to it.
local check = require("support.check")
local files = require("support.files")
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")

local python = {}

local GROUPS = { ABX_SERVER_ENABLED_GROUPS = "core,dev_tools,process" }
local PLAIN = files.source_dir .. "/tests/tools/plain-python"

python.ENGINES = { "ipython", "plain" }

--- Whether the system's python3 can import all of these.
function python.has(...)
  return process.run({ "/usr/bin/python3", "-c", "import " .. table.concat({ ... }, ",") }, {}).code == 0
end

--- Inside a test: true when it was skipped for want of a module.
function python.lacks(name, module)
  if python.has(module) then
    return false
  end
  skip(name, "/usr/bin/python3 has no " .. module)
  return true
end

--- A server whose contexts have that engine.
function python.start(engine)
  local path = "PATH=" .. (engine == "plain" and PLAIN .. ":" or "") .. "/usr/bin:/bin"
  return server.start({ prefix = { "env", path }, env = GROUPS })
end

--- Runs a cell and returns the answer. fields: context, timeout_ms, env, cwd, reset.
function python.run(abxd, code, fields)
  local body = { code = code, language = "python" }
  for name, value in pairs(fields or {}) do
    body[name] = value
  end
  return check.ok(abxd:post("/code/execute", body))
end

--- Runs a cell that must end well; returns its output, and its results.
function python.print(abxd, code, fields)
  local cell = python.run(abxd, code, fields)
  assert(cell.status == "ok", ("%s: %s"):format(cell.status, type(cell.error) == "table" and cell.error.traceback))
  return cell.stdout, cell.results
end

--- The text of the only result of a cell.
function python.value(abxd, code, fields)
  local _, results = python.print(abxd, code, fields)
  assert(#results == 1, ("%d results"):format(#results))
  return results[1]["text/plain"]
end

return python
