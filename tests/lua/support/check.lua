--- What several specs assert or look up, with the exact values of the contract.
local assert = require("luassert")
local files = require("support.files")
local process = require("support.process")
local server = require("support.server")
local socket = require("socket")
local uv = require("luv")

local check = {}

--- Times that specs allow are multiplied by this: sanitizers slow the server down, not the clock. What must not be slow
--- is measured in CPU time, never by the clock, which tells more of the machine than of the server.
check.slack = server.sanitizer == "none" and 1 or 5

check.TITLES = {
  [400] = "Bad Request", [401] = "Unauthorized", [403] = "Forbidden", [404] = "Not Found", [405] = "Method Not Allowed",
  [409] = "Conflict",
}

--- Asserts that the loop computes for less than so many seconds before a new client has its answer from /health.
function check.prompt(abxd, limit_s)
  local before = process.main_thread_cpu_s(abxd.pid)
  assert.equal("ok", check.ok(abxd:get("/health")).status)
  local used_s = process.main_thread_cpu_s(abxd.pid) - before
  assert.is_true(used_s < limit_s * check.slack, ("the loop computed for %.3f s before it answered /health"):format(used_s))
end

--- Asserts that nothing was sent on a connection yet.
function check.unanswered(conn)
  assert.equal(0, #socket.select({ conn.sock }, nil, 0))
end

--- Asserts that an answer is that problem, well-formed; returns it decoded.
function check.problem(answer, status, code, field)
  assert.same({ status = status, code = code, type = "application/problem+json" }, { status = answer.status,
    code = answer.body:match('"code":"([%w_]+)"') or answer.body, type = answer.headers["content-type"] })
  local problem = answer:json()
  assert.equal(status, problem.status)
  assert.equal(check.TITLES[status] or problem.title, problem.title)
  assert.is_string(problem.title)
  assert.is_true(#problem.detail > 0)
  assert.equal(answer.headers["x-request-id"], problem.request_id)
  if field then
    assert.equal(field, problem.field)
  end
  return problem
end

--- The names of all faulty fields of a validation problem, sorted.
function check.faulty_fields(answer)
  local names = {}
  for _, fault in ipairs(check.problem(answer, 400, "invalid_request").errors) do
    assert.is_string(fault.problem)
    names[#names + 1] = fault.field
  end
  table.sort(names)
  return names
end

--- Asserts 200 and returns the decoded body.
function check.ok(answer)
  assert.same({ status = 200, type = "application/json" }, { status = answer.status,
    type = answer.headers["content-type"], body = answer.status ~= 200 and answer.body or nil })
  return answer:json()
end

--- The text of a sleep that no other run of the tests on this machine has too, to be looked for by pids_of and gone.
function check.sleep(seconds)
  return ("sleep %d.%d"):format(seconds, uv.os_getpid())
end

--- The pids of processes whose arguments, joined by spaces, are exactly that.
function check.pids_of(command_line)
  local pids = {}
  for _, name in ipairs(files.list("/proc")) do
    local file = name:match("^%d+$") and io.open("/proc/" .. name .. "/cmdline", "rb")
    if file then
      local words = (file:read("a") or ""):gsub("%z", " ")
      file:close()
      if words == command_line .. " " then
        pids[#pids + 1] = tonumber(name)
      end
    end
  end
  return pids
end

--- The pid of the only one, which may not have become it yet.
function check.pid_of(command_line)
  local pids
  assert.is_true(process.poll(10000, function()
    pids = check.pids_of(command_line)
    return #pids == 1
  end), command_line)
  return pids[1]
end

--- Waits until no process has exactly these arguments; how many still do.
function check.gone(command_line, timeout_ms)
  process.poll(timeout_ms or 6000, function()
    return #check.pids_of(command_line) == 0
  end)
  return #check.pids_of(command_line)
end

function check.sha256_of(path)
  -- A backslash leads the line where the name had to be escaped.
  return process.run({ "sha256sum", "--", path }).stdout:match("^\\?(%x+)")
end

--- Names in a folder, and in folders below it, that are not among those expected: what an upload left lying about.
function check.strays(dir, expected)
  local known, strays = {}, {}
  for _, name in ipairs(expected) do
    known[name] = true
  end
  for _, name in ipairs(files.list(dir)) do
    if not known[name] then
      strays[#strays + 1] = name
    end
  end
  return strays
end

return check
