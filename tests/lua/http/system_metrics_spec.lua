local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local process = require("support.process")
local server = require("support.server")
local uv = require("luv")

describe("GET /system/metrics", function()
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start()
  end)
  before_each(function()
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function metrics()
    return check.ok(abxd:get("/system/metrics"))
  end

  --- Bytes of all interfaces but lo: received, sent.
  local function network()
    local rx, tx = 0, 0
    for line in files.read("/proc/net/dev"):gmatch("[^\n]+") do
      local name, numbers = line:match("^%s*(.+):(.*)$")
      if name and name ~= "lo" then
        local fields = {}
        for number in numbers:gmatch("%d+") do
          fields[#fields + 1] = math.tointeger(tonumber(number))
        end
        rx, tx = rx + fields[1], tx + fields[9]
      end
    end
    return rx, tx
  end

  local function check_bounds(answer)
    local total = tonumber(files.read("/proc/meminfo"):match("MemTotal:%s*(%d+) kB")) * 1024
    local memory, cpu = answer.memory, answer.cpu
    assert.is_true(memory.used_bytes > 0 and memory.used_bytes <= memory.limit_bytes)
    assert.is_true(memory.limit_bytes <= total)
    assert.is_true(math.abs(memory.percent - 100 * memory.used_bytes / memory.limit_bytes) < 0.01)
    assert.is_true(memory.oom_kills == json.null or memory.oom_kills >= 0)
    assert.is_true(cpu.percent >= 0 and cpu.percent <= 100)
    assert.is_true(cpu.quota > 0 and cpu.quota <= tonumber(process.run({ "nproc" }).stdout))
    assert.equal(3, #cpu.load)
    assert.is_true(answer.pids.current >= 1)
    assert.is_true(answer.pids.max == json.null or answer.pids.max >= answer.pids.current)
  end

  it("tells what is used, within its bounds", function()
    local rx, tx = network()
    local answer = metrics()
    local rx_later, tx_later = network()
    check_bounds(answer)
    assert.is_true(answer.network.rx_bytes >= rx and answer.network.rx_bytes <= rx_later)
    assert.is_true(answer.network.tx_bytes >= tx and answer.network.tx_bytes <= tx_later)
    for _, name in ipairs { "read_bytes", "write_bytes" } do
      assert.is_true(answer.io[name] == json.null or answer.io[name] >= 0)
    end
  end)

  it("tells of the server what others see of it", function()
    local answer = metrics().server
    assert.is_true(math.abs(answer.fds - abxd:descriptor_count()) <= 3)
    assert.is_true(math.abs(answer.rss_bytes / abxd:rss_bytes() - 1) < 0.5)
    assert.same({ 1, 0, 0 }, { answer.requests, answer.processes, answer.terminals })

    local conn = abxd:connect()
    conn:send_request("POST", "/shell", { json = { argv = { "sleep", "1000" } } })
    assert.is_true(process.poll(10000, function()
      return #abxd:children() > 0
    end))
    answer = metrics().server
    assert.same({ 2, 1 }, { answer.requests, answer.processes })
    conn:close()
  end)

  it("compares over 100 ms when it is asked first", function()
    local fresh <close> = server.start()
    local began = uv.hrtime()
    local answer = check.ok(fresh:get("/system/metrics"))
    assert.is_true(uv.hrtime() - began >= 100 * 1000000)
    check_bounds(answer)
  end)

  it("shows what a busy loop uses", function()
    metrics()
    uv.sleep(120) -- what follows is compared with that
    local began = uv.hrtime()
    metrics()
    local answer = check.ok(abxd:post("/shell", { argv = { "python3", "-c", [[
import time
while time.process_time() < 1: pass
print(time.process_time())]] } }))
    local found = metrics()
    local wall_s = (uv.hrtime() - began) / 1e9
    local least = 100 * tonumber(answer.stdout) / (wall_s * found.cpu.quota)
    assert.is_true(found.cpu.percent >= least - 3, ("%.2f %%, at least %.2f"):format(found.cpu.percent, least))
    check_bounds(found)
  end)

  it("serves many at once, the first ones too, and the loop goes on", function()
    local fresh <close> = server.start()
    local conns = {}
    for i = 1, 20 do
      conns[i] = fresh:connect()
      conns[i]:send_request("GET", "/system/metrics")
    end
    check.prompt(fresh, 0.1)
    for _, conn in ipairs(conns) do
      check_bounds(check.ok(conn:read_response("GET")))
      conn:close()
    end
  end)

  it("goes on measuring over a reload", function()
    metrics()
    abxd:reload()
    check_bounds(metrics())
  end)

  it("lets clients leave", function()
    local fresh <close> = server.start()
    local before = fresh:baseline()
    for _ = 1, 10 do
      local conn = fresh:connect()
      conn:send_request("GET", "/system/metrics")
      conn:close()
    end
    check_bounds(check.ok(fresh:get("/system/metrics")))
    fresh:assert_settled(before)
  end)
end)
