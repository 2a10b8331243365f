--- A base in memory: the loop itself reads and writes what is little there, and answers many at a time together.
local check = require("support.check")
local files = require("support.files")
local server = require("support.server")
local skip = require("support.skip")
local uv = require("luv")

local CLIENTS, ROUNDS = 24, 8
local MIB = 1024 * 1024

describe("files in memory", function()
  local abxd, base, baseline

  before_each(function()
    base = uv.fs_mkdtemp("/dev/shm/abxd-test-XXXXXX")
    if base then
      abxd = server.start { base_dir = base }
      baseline = abxd:baseline()
    end
  end)
  after_each(function()
    if base then
      abxd:assert_settled(baseline)
      abxd:stop()
      files.remove_tree(base)
    end
  end)

  --- test(conns): connections of many clients, which are open already.
  local function case(name, test)
    it(name, function()
      if not base then
        return skip("files_memory", "no /dev/shm to write to")
      end
      local conns = {}
      for i = 1, CLIENTS do
        conns[i] = abxd:connect()
      end
      test(conns)
      for _, conn in ipairs(conns) do
        conn:close()
      end
    end)
  end

  --- send(conn, i) for each before any answer is looked at; the answers, in their order.
  local function all_at_once(conns, send)
    for i, conn in ipairs(conns) do
      send(conn, i)
    end
    local answers = {}
    for i, conn in ipairs(conns) do
      answers[i] = conn:read_response()
    end
    return answers
  end

  local function path_of(i)
    return ("f%d.txt"):format(i)
  end

  case("are exact for many clients, each with its own", function(conns)
    for round = 1, ROUNDS do
      local function content(i)
        return ("%d of %d\n"):format(i, round):rep(100 * i)
      end
      local written = all_at_once(conns, function(conn, i)
        conn:send_request("POST", "/files/write", { json = { path = path_of(i), content = content(i) } })
      end)
      local read = all_at_once(conns, function(conn, i)
        conn:send_request("GET", "/files/read?path=" .. path_of(i))
      end)
      for i = 1, CLIENTS do
        assert.equal(round == 1 and 201 or 200, written[i].status)
        local told, seen = written[i]:json(), check.ok(read[i])
        assert.same({ base .. "/" .. path_of(i), #content(i), round == 1 }, { told.path, told.size, told.created })
        assert.same({ content(i), told.etag, told.path }, { seen.content, seen.etag, seen.path })
      end
    end
    assert.equal(CLIENTS, #files.list(base))
  end)

  -- What is large is written by threads, which may hold the file when the loop gets to a small one.
  case("are written by one at a time", function(conns)
    local sizes = {}
    local answers = all_at_once(conns, function(conn, i)
      local size = i % 4 == 1 and 2 * MIB + i or 1000 + i
      sizes[size] = true
      conn:send_request("POST", "/files/write", { json = { path = "f", content = string.char(64 + i):rep(size) } })
    end)
    local made, etags, count = 0, {}, 0
    for _, answer in ipairs(answers) do
      local told = answer:json()
      made = made + (answer.status == 201 and 1 or 0)
      assert.is_true(sizes[told.size])
      count = count + (etags[told.etag] and 0 or 1)
      etags[told.etag] = true
    end
    assert.same({ 1, CLIENTS }, { made, count })
    local content = files.read(base .. "/f")
    assert.is_true(sizes[#content])
    assert.equal(content, content:sub(1, 1):rep(#content))
    assert.same({ "f" }, files.list(base))
  end)

  case("with if_match are changed by one of many", function(conns)
    local etag = abxd:post("/files/write", { path = "f", content = "old" }):json().etag
    local statuses = {}
    for _, answer in ipairs(all_at_once(conns, function(conn, i)
      conn:send_request("POST", "/files/write", { json = { path = "f", content = "new " .. i, if_match = etag } })
    end)) do
      statuses[answer.status] = (statuses[answer.status] or 0) + 1
    end
    assert.same({ [200] = 1, [409] = CLIENTS - 1 }, statuses)
  end)

  case("are whole or old where the clients leave", function(conns)
    for round = 1, ROUNDS do
      for i, conn in ipairs(conns) do
        conn:send_request("POST", "/files/write", { json = { path = path_of(i), content = "whole" } })
        conn:send_request("GET", "/files/read?path=" .. path_of(i))
        if (i + round) % 2 == 0 then
          conn:abort()
          conns[i] = abxd:connect()
        end
      end
      for i, conn in ipairs(conns) do
        if (i + round) % 2 ~= 0 then
          assert.equal("whole", conn:read_response() and check.ok(conn:read_response()).content)
        end
      end
    end
    for _, name in ipairs(files.list(base)) do
      assert.equal("whole", files.read(base .. "/" .. name))
    end
  end)
end)
