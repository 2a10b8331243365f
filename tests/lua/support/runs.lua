--- Processes as the specs of their routes start and read them.
local assert = require("luassert")
local json = require("support.json")
local http = require("support.http")
local mime = require("mime")
local process = require("support.process")
local sse = require("support.sse")
local uv = require("luv")

local M = {}

--- Starts a program by POST /processes; its id and pid. what: a command, or the whole body.
function M.start(abxd, what)
  local answer = abxd:post("/processes", type(what) == "string" and { command = what } or what)
  assert.equal(201, answer.status, answer.body)
  local started = answer:json()
  return started.id, started.pid
end

--- Kills a program and waits until the server has noticed.
function M.stop(abxd, id)
  local stream, answer = M.follow(abxd, id, { tail_bytes = 0 })
  uv.kill(stream:next().data.pid, "sigkill")
  answer:close()
  M.wait_end(abxd, id)
end

function M.target(id, query)
  local words = {}
  for name, value in pairs(query or {}) do
    words[#words + 1] = name .. "=" .. http.escape(tostring(value))
  end
  table.sort(words)
  return "/processes/" .. id .. "/output?" .. table.concat(words, "&")
end

--- GET /processes/{id}/output, decoded.
function M.output(abxd, id, query)
  local answer = abxd:get(M.target(id, query))
  assert.equal(200, answer.status, answer.body)
  return answer:json()
end

--- The answer of output once the program has ended.
function M.wait_end(abxd, id)
  local last
  assert(process.poll(20000, function()
    last = M.output(abxd, id, { tail_bytes = 0 })
    return last.exit_code ~= json.null
  end), id .. " does not end")
  return last
end

--- Opens the stream of events; options as for server:stream.
function M.follow(abxd, id, query, options)
  query = query or {}
  query.follow = true
  local answer = abxd:stream("GET", M.target(id, query), options)
  assert.equal(200, answer.status)
  assert.equal("text/event-stream", answer.headers["content-type"])
  return sse.events(answer), answer
end

--- The bytes of an event.
function M.bytes(event)
  return event.data.encoding == "base64" and mime.unb64(event.data.data) or event.data.data
end

--- Puts events of a stream together: {stdout=, stderr=, gaps=, exits=, id= (the last one)}; asserts that each event goes
--- on where the one before it ended, from these offsets on. Text must not be lossy.
function M.join(events, offsets)
  local at = { stdout = offsets and offsets[1] or 0, stderr = offsets and offsets[2] or 0 }
  local joined = { stdout = {}, stderr = {}, gaps = {}, exits = 0 }
  for _, event in ipairs(events) do
    local name, data = event.event, event.data
    if name == "stdout" or name == "stderr" then
      assert.equal(at[name], data.offset)
      local bytes = M.bytes(event)
      assert.is_nil(data.lossy)
      at[name] = at[name] + #bytes
      table.insert(joined[name], bytes)
    elseif name == "gap" then
      assert.equal(at[data.stream], data.from)
      at[data.stream] = data.to
      table.insert(joined.gaps, data)
    elseif name == "exit" then
      joined.exits = joined.exits + 1
      joined.exit = data
    end
    assert.equal(at.stdout .. "." .. at.stderr, event.id)
    joined.id = event.id
  end
  joined.stdout, joined.stderr = table.concat(joined.stdout), table.concat(joined.stderr)
  joined.offsets = { at.stdout, at.stderr }
  return joined
end

return M
