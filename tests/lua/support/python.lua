--- Python contexts for specs, of both engines: a server each, whose PATH has the python3 that leads to it.
local cells = require("support.cells")
local files = require("support.files")
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")

local python = {}

local GROUPS = { ABX_SERVER_ENABLED_GROUPS = "core,dev_tools,process" }
local PLAIN = files.source_dir .. "/tests/tools/plain-python"

python.ENGINES = { "ipython", "plain" }

local importable = {} -- the answers: each import takes its time

--- Whether the system's python3 can import the module.
function python.has(module)
  if importable[module] == nil then
    importable[module] = process.run({ "/usr/bin/python3", "-c", "import " .. module }, {}).code == 0
  end
  return importable[module]
end

--- Inside a test: true when it was skipped for want of a module.
function python.lacks(name, module)
  if python.has(module) then
    return false
  end
  skip(name, "/usr/bin/python3 has no " .. module)
  return true
end

--- Where the system's python3 has its packages, as PYTHONPATH has it.
function python.packages()
  local code = "import sys; print(*(path for path in sys.path if path.endswith('-packages')), sep=':', end='')"
  return process.run({ "/usr/bin/python3", "-c", code }, {}).stdout
end

--- A server, with more variables NAME=VALUE, whose contexts have that engine, and what specs do with it: start and stop
--- for lazy_setup and lazy_teardown, abxd between the two, and functions that are given the code of a cell and
--- {context, timeout_ms, env, cwd, reset}.
function python.contexts(engine, ...)
  local contexts = {}
  local path = "PATH=" .. (engine == "plain" and PLAIN .. ":" or "") .. "/usr/bin:/bin"
  local prefix = { "env", path, ... }

  function contexts.start()
    contexts.abxd = server.start({ prefix = prefix, env = GROUPS })
  end

  function contexts.stop()
    contexts.abxd:stop()
  end

  --- The answer of a cell.
  function contexts.run(code, fields)
    local all = { language = "python" }
    for name, value in pairs(fields or {}) do
      all[name] = value
    end
    return cells.run(contexts.abxd, code, all)
  end

  --- The answer of one that must end well.
  function contexts.ok(code, fields)
    local cell = contexts.run(code, fields)
    assert(cell.status == "ok", ("%s: %s"):format(cell.status, type(cell.error) == "table" and cell.error.traceback))
    return cell
  end

  function contexts.output(code, fields)
    return contexts.ok(code, fields).stdout
  end

  function contexts.results(code, fields)
    return contexts.ok(code, fields).results
  end

  --- The text of the only result of a cell.
  function contexts.value(code, fields)
    local results = contexts.results(code, fields)
    assert(#results == 1, ("%d results"):format(#results))
    return results[1]["text/plain"]
  end

  --- What is told of a cell that must fail, and its answer.
  function contexts.failure(code, fields)
    local cell = contexts.run(code, fields)
    assert(cell.status == "error", cell.status)
    return cell.error, cell
  end

  return contexts
end

return python
