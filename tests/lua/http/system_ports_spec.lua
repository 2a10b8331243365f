local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local process = require("support.process")
local server = require("support.server")
local socket = require("socket")
local sse = require("support.sse")
local uv = require("luv")

-- Listens at an address and prints the port; with `fork` in a grandchild that left its session and its environment.
local LISTEN = [[
import os, socket, sys, time
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = socket.socket(family)
s.bind((sys.argv[1], 0))
s.listen(1)
if sys.argv[2] == "fork":
    if os.fork():
        s.close()
        time.sleep(1000)
    os.setsid()
    os.set_inheritable(s.fileno(), True)
    open("port.tmp", "w").write(str(s.getsockname()[1]))
    os.rename("port.tmp", "port")
    os.execve("/bin/sleep", ["sleep", "1000"], {})
open("port.tmp", "w").write(str(s.getsockname()[1]))
os.rename("port.tmp", "port")
time.sleep(1000)
]]

describe("GET /system/ports", function()
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start()
    check.ok(abxd:get("/system/ports"))
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function rows(port)
    local found, last = {}, 0
    for _, row in ipairs(check.ok(abxd:get("/system/ports")).ports) do
      assert.is_true(row.port >= last)
      last = row.port
      if row.port == port then
        found[#found + 1] = row
      end
    end
    return found
  end

  it("tells the server's own", function()
    assert.same({ { port = abxd.port, address = "127.0.0.1", family = "ipv4", pid = abxd.pid, process = "abxd",
      managed_id = json.null, self = true } }, rows(abxd.port))
  end)

  it("tells of strangers, v4 and v6, and not of what does not listen", function()
    for _, case in ipairs { { "127.0.0.1", "ipv4", socket.tcp4 }, { "::1", "ipv6", socket.tcp6 } } do
      local listener = case[3]()
      if listener:bind(case[1], 0) then
        listener:listen(1)
        local port = tonumber((select(2, listener:getsockname())))
        local row = rows(port)[1]
        assert.same({ port = port, address = case[1], family = case[2], pid = uv.os_getpid(), process = row.process,
          managed_id = json.null, self = false }, row)
        assert.equal(1, #rows(port))
        local client = socket.tcp()
        assert(client:connect(case[1], port))
        assert.equal(1, #rows(port))
        assert.same({}, rows(tonumber((select(2, client:getsockname())))))
        client:close()
        listener:close()
        assert.same({}, rows(port))
      else
        listener:close()
        print("NOT RUN: " .. case[2] .. ": this machine has no such address")
      end
    end
  end)

  for _, how in ipairs { "plain", "fork" } do
    for _, address in ipairs { "127.0.0.1", "::1" } do
      it("tells which entry of the process table listens at " .. address .. " (" .. how .. ")", function()
        local port_file = abxd.base_dir .. "/port"
        os.remove(port_file)
        local stream = abxd:stream("POST", "/shell/stream", { json = {
          argv = { "python3", "-c", LISTEN, address, how } } })
        local event = sse.events(stream):next()
        local id = event.data.id
        local port = process.poll(20000, function()
          return files.exists(port_file) and tonumber(files.read(port_file))
        end)
        local row = process.poll(20000, function()
          local found = rows(port)[1]
          return found and (how == "plain" or found.process == "sleep") and found or nil
        end)
        assert.same({ address, address:find(":") and "ipv6" or "ipv4", id, false },
          { row.address, row.family, row.managed_id, row.self })
        if how == "plain" then
          assert.same({ event.data.pid, "python3" }, { row.pid, row.process:match("^python3") })
        end
        stream:close()
        process.poll(20000, function()
          return #rows(port) == 0
        end)
        assert.same({}, rows(port))
      end)
    end
  end

  it("does not hold up others", function()
    for _ = 1, 20 do
      check.ok(abxd:get("/system/ports"))
    end
    check.prompt(abxd, 0.05)
  end)
end)
