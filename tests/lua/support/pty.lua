--- Terminals as their specs start, attach, ask and end them.
local assert = require("luassert")
local check = require("support.check")
local json = require("support.json")
local process = require("support.process")
local ws = require("support.ws")

local pty = {}

--- What pty.shell prints when it waits for a line. No command holds it, so its echo cannot be taken for it.
pty.PROMPT = "ready> "
--- A line of pty.numbered: nine digits, CR, LF. It begins with this number: what is not to be padded comes faster.
local NUMBERED_BYTES, NUMBERED_FIRST = 11, 100000000

--- Starts a terminal by POST /pty, asserts the answer and returns it. what: a command, or the whole body.
function pty.start(abxd, what)
  local answer = abxd:post("/pty", type(what) == "string" and { command = what } or what or {})
  assert.equal(201, answer.status, answer.body)
  return answer:json()
end

--- The body of POST /pty for a shell that reads no start-up file, leaves echo and editing to the terminal, and prints
--- pty.PROMPT.
function pty.shell_body(fields)
  local body = { argv = { "bash", "--norc", "--noprofile", "--noediting", "-i" }, env = { PS1 = pty.PROMPT } }
  for name, value in pairs(fields or {}) do
    if name == "env" then
      for variable, text in pairs(value) do
        body.env[variable] = text
      end
    else
      body[name] = value
    end
  end
  return body
end

--- Starts such a shell, attaches and waits for its prompt; the client and the answer of POST /pty. options: of
--- ws.connect.
function pty.shell(abxd, fields, options)
  local terminal = pty.start(abxd, pty.shell_body(fields))
  local client = ws.connect(abxd, terminal.id, options)
  client:read_until(pty.PROMPT, nil, true)
  return client, terminal
end

--- Types a line at that prompt and waits for the next one; what was printed between.
function pty.ask(client, line)
  client:input(line .. "\n")
  local text = client:read_until(pty.PROMPT, nil, true)
  local echo = line .. "\r\n"
  assert.equal(echo, text:sub(1, #echo))
  return text:sub(#echo + 1, -#pty.PROMPT - 1)
end

--- Asserts that a client of such a shell is served.
function pty.check_served(client)
  assert.equal("42\r\n", pty.ask(client, "echo $((6*7))"))
end

--- Attaches, waits for what the server says first, and returns the client.
function pty.attach(abxd, id, query)
  local client = ws.connect(abxd, id, { query = query })
  client:wait("ready")
  return client
end

--- All terminals that are listed, by id.
function pty.list(abxd)
  local found = {}
  for _, terminal in ipairs(check.ok(abxd:get("/pty")).terminals) do
    assert.is_nil(found[terminal.id])
    found[terminal.id] = terminal
  end
  return found
end

--- Polls until a listed terminal has that value in a field; what it has in the end.
function pty.wait_field(abxd, id, field, value, timeout_ms)
  local last
  process.poll(timeout_ms or 20000, function()
    last = pty.list(abxd)[id][field]
    return last == value
  end)
  return last
end

--- Polls until its program has ended; the listed terminal.
function pty.wait_end(abxd, id)
  return process.poll(60000, function()
    local terminal = pty.list(abxd)[id]
    return terminal.exit_code ~= json.null and terminal
  end) or error(id .. " does not end", 2)
end

--- DELETE /pty/{id}; what it answers.
function pty.delete(abxd, id)
  return check.ok(abxd:request("DELETE", "/pty/" .. id))
end

--- Deletes all that are listed.
function pty.clean(abxd)
  for id in pairs(pty.list(abxd)) do
    pty.delete(abxd, id)
  end
end

--- Asserts that a handshake is accepted and leads to that terminal; the answer, when the client has left again.
function pty.accepted(abxd, id, options)
  local answer, client = ws.handshake(abxd, id, options)
  assert.equal(101, answer.status, answer.body)
  assert.equal(id, client:wait("ready").id)
  client:close()
  assert.equal(0, pty.wait_field(abxd, id, "clients", 0))
  return answer
end

--- Asserts that a handshake is refused with that problem; the answer.
function pty.refused(abxd, where, options, status, code)
  local answer = ws.refused(abxd, where, options)
  assert.same({ status = status, code = code, type = "application/problem+json" }, { status = answer.status,
    code = answer.body:match('"code":"([%w_]+)"') or answer.body, type = answer.headers["content-type"] })
  local problem = answer:json()
  assert.equal(status, problem.status)
  assert.is_true(#problem.detail > 0)
  return answer
end

--- A command that prints so many lines of numbers, all of one length, so that each byte follows from its offset.
function pty.numbered(lines)
  return ("seq %d %d"):format(NUMBERED_FIRST, NUMBERED_FIRST + lines - 1)
end

--- How many bytes the terminal makes of so many lines.
function pty.numbered_bytes(lines)
  return lines * NUMBERED_BYTES
end

--- Asserts that text is what pty.numbered prints from an offset on.
function pty.check_numbered(offset, text)
  local first = offset // NUMBERED_BYTES
  local lines = {}
  for i = first, (offset + #text) // NUMBERED_BYTES do
    lines[#lines + 1] = NUMBERED_FIRST + i .. "\r\n"
  end
  local skip = offset - first * NUMBERED_BYTES
  local expected = table.concat(lines):sub(skip + 1, skip + #text)
  if expected ~= text then
    local at = 1
    while expected:byte(at) == text:byte(at) do
      at = at + 1
    end
    error(("at offset %d %q came instead of %q"):format(offset + at - 1, text:sub(at, at + 40), expected:sub(at, at + 40)), 2)
  end
end

return pty
