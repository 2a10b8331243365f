--- Work on large trees keeps neither the loop nor short work waiting: told by the order of answers and by the CPU time of
--- the loop's thread, not by the clock.
local check = require("support.check")
local files = require("support.files")
local server = require("support.server")

local DIRECTORIES, FILES_EACH = 30, 100
local PROBES = 20

--- Clients that always have a request under way, each of its kind.
local function start_clients(abxd)
  local clients = {}
  local function add(next_request)
    local client = { conn = abxd:connect(120), turn = 0, answers = 0 }
    function client.go_on()
      client.turn = client.turn + 1
      client.conn:send_request(next_request(client.turn))
    end
    --- Whether it still waits; takes an answer that has come and sends the next request.
    function client.is_waiting()
      if pcall(check.unanswered, client.conn) then
        return true
      end
      local answer = client.conn:read_response()
      assert.equal(200, answer.status, answer.body:sub(1, 300))
      client.answers = client.answers + 1
      client.last = answer
      client.go_on()
      return false
    end
    clients[#clients + 1] = client
    client.go_on()
  end
  add(function()
    return "GET", "/files/list?path=tree&recursive=true&limit=10000"
  end)
  add(function()
    return "POST", "/files/search", { json = { path = "tree", pattern = "no\\s+such (text|line)$" } }
  end)
  for i = 1, 2 do
    add(function(turn)
      return "POST", "/files/copy", { json = { source = "tree", destination = ("copy-%d-%d"):format(i, turn) } }
    end)
  end
  return clients
end

--- Which clients wait now.
local function waiting(clients)
  local found = {}
  for i, client in ipairs(clients) do
    found[i] = client.is_waiting() and client.turn or nil
  end
  return found
end

--- Whether each of these clients still waits for the same answer.
local function are_still_waiting(clients, found)
  for i, client in ipairs(clients) do
    if not (found[i] == client.turn and pcall(check.unanswered, client.conn)) then
      return false
    end
  end
  return true
end

describe("Lists, searches and copies of a tree of 3,000 files", function()
  local abxd, base

  lazy_setup(function()
    abxd = server.start()
    base = abxd.base_dir
    files.mkdir(base .. "/tree")
    local text = ("some line of text that nobody looks for\n"):rep(20)
    for i = 1, DIRECTORIES do
      local dir = files.mkdir(("%s/tree/%d"):format(base, i))
      for j = 1, FILES_EACH do
        files.write(("%s/%d.txt"):format(dir, j), text)
      end
    end
    files.write(base .. "/small", "inner")
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  it("keep neither /health nor /files/read waiting", function()
    local baseline = abxd:baseline()
    local clients = start_clients(abxd)
    local overtaken = { health = 0, read = 0 }
    for _ = 1, PROBES do
      local before = waiting(clients)
      check.prompt(abxd, 0.05)
      overtaken.health = overtaken.health + (are_still_waiting(clients, before) and 1 or 0)
      before = waiting(clients)
      assert.equal("inner", check.ok(abxd:get("/files/read?path=small")).content)
      overtaken.read = overtaken.read + (are_still_waiting(clients, before) and 1 or 0)
    end
    -- While every one of the clients waited.
    assert.is_true(overtaken.health > 0 and overtaken.read > 0, ("%d and %d of %d probes were answered before all others")
      :format(overtaken.health, overtaken.read, PROBES))
    for _, client in ipairs(clients) do
      if client.answers == 0 then
        client.last = client.conn:read_response()
      end
      client.conn:close()
    end
    assert.equal(DIRECTORIES * (FILES_EACH + 1), #clients[1].last:json().entries)
    assert.equal(DIRECTORIES * FILES_EACH, clients[2].last:json().files_searched)
    assert.equal(DIRECTORIES * FILES_EACH, clients[3].last:json().files)
    abxd:assert_settled(baseline)
  end)
end)
