--- Cells of code as the specs of POST /code/execute run them.
local assert = require("luassert")
local check = require("support.check")
local http = require("support.http")
local json = require("support.json")
local server = require("support.server")
local sse = require("support.sse")

local M = {}

--- A server with the group on; options as server.start has them.
function M.server(options)
  options = options or {}
  options.args = options.args or {}
  table.insert(options.args, "--enabled-groups")
  table.insert(options.args, "core,commands,process,system,dev_tools")
  return server.start(options)
end

local function body_of(what, fields)
  local body = {}
  for name, value in pairs(fields or {}) do
    body[name] = value
  end
  body.code = what
  return body
end

--- The answer of a cell, decoded.
function M.run(abxd, code, fields)
  return check.ok(abxd:post("/code/execute", body_of(code, fields), { timeout_s = 120 }))
end

--- The answer of one that must succeed and print nothing on stderr.
function M.ok(abxd, code, fields)
  local answer = M.run(abxd, code, fields)
  assert.same({ "ok", "", json.null }, { answer.status, answer.stderr, answer.error })
  return answer
end

--- What a cell printed.
function M.stdout(abxd, code, fields)
  return M.ok(abxd, code, fields).stdout
end

--- The text of a cell's one result.
function M.value(abxd, code, fields)
  local results = M.ok(abxd, code, fields).results
  assert.equal(1, #results)
  return results[1]["text/plain"]
end

--- Sends a cell and does not wait: a connection whose read_response gives the answer. The caller closes it.
function M.send(abxd, code, fields)
  local conn = http.connect(abxd, 120)
  local body = json.encode(body_of(code, fields))
  conn:send(("POST /code/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    .. "%sContent-Length: %d\r\n\r\n%s"):format(abxd.token and "Authorization: Bearer " .. abxd.token .. "\r\n" or "", #body,
    body))
  return conn
end

--- Opens the stream of a cell's events.
function M.stream(abxd, code, fields)
  local answer = abxd:stream("POST", "/code/execute",
    { json = body_of(code, fields), headers = { Accept = "text/event-stream" }, timeout_s = 120 })
  assert.same({ 200, "text/event-stream" }, { answer.status, answer.headers["content-type"] })
  return sse.events(answer)
end

--- All events of a cell: the list, and its joined output {stdout=, stderr=}.
function M.events(abxd, code, fields)
  local stream = M.stream(abxd, code, fields)
  local events = stream:all(120)
  stream.response:close()
  local pieces = { stdout = {}, stderr = {} }
  for _, event in ipairs(events) do
    local list = pieces[event.event]
    if list then
      list[#list + 1] = event.data.data
    end
  end
  return events, { stdout = table.concat(pieces.stdout), stderr = table.concat(pieces.stderr) }
end

--- The functions above that take a cell, for cells of that language.
function M.of(language)
  local bound = {}
  for _, name in ipairs { "run", "ok", "stdout", "value", "send", "stream", "events" } do
    bound[name] = function(abxd, code, fields)
      local with_language = { language = language }
      for field, value in pairs(fields or {}) do
        with_language[field] = value
      end
      return M[name](abxd, code, with_language)
    end
  end
  return bound
end

--- The names of events, one after another.
function M.names(events)
  local names = {}
  for index, event in ipairs(events) do
    names[index] = event.event
  end
  return table.concat(names, " ")
end

--- Living entries of kind code in GET /processes.
function M.processes(abxd)
  local found = {}
  for _, entry in ipairs(check.ok(abxd:get("/processes?state=running")).processes) do
    if entry.kind == "code" then
      found[#found + 1] = entry
    end
  end
  return found
end

return M
