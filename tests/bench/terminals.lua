--- Measures terminals against ttyd and a bare read: how fast output comes through, how soon a key is echoed, what idle ones
--- weigh, and what one that prints costs the other clients. Run by script/bench; ABX_BENCH_TTYD is the path of a ttyd.
local bench = require("bench")
local files = require("support.files")
local http = require("support.http")
local process = require("support.process")
local server = require("support.server")
local uv = require("luv")

local TOOLS = files.source_dir .. "/build/bench/"
local TTYD = os.getenv("ABX_BENCH_TTYD")
local TEXT_MIB = bench.SHORT and 4 or 60
local KEYS = bench.SHORT and 100 or 3000
local IDLE = bench.SHORT and 10 or 200
local KERNEL_STACK_KIB = 16 -- of a thread, on x86-64 and arm64
local KEY_PAUSE_US = "1000"
-- Each program says that it is there, and outlives what is measured: ttyd loses output of a program that has ended.
local SHOW = "printf ready; read -r go; cat %s; read -r go"
local ECHO = "stty -icanon min 1; printf ready; exec cat >/dev/null" -- the terminal echoes, no line ever fills up
local SLEEP = "printf ready; exec sleep 3600"

-- The two sides -------------------------------------------------------------------------------------------------------

local function answers(side)
  local ok, answer = pcall(http.request, side, "GET", "/")
  return ok and answer.status == 200
end

--- ttyd serves one program, which it starts for each client.
local function start_ttyd(root, program)
  local side = { host = "127.0.0.1", port = http.free_port(), kind = "ttyd" }
  local log = ("%s/ttyd-%d.log"):format(root, side.port)
  side.child = process.start({ TTYD, "-d", "3", "-W", "-i", "lo", "-p", tostring(side.port), "/bin/sh", "-c", program },
    { stdout = log, stderr = log })
  assert(process.poll(10000, function()
    return answers(side)
  end), "ttyd did not start: " .. files.read(log))
  side.pid, side.ws_port = side.child.pid, side.port
  function side:stop()
    self.child:kill("sigkill")
    self.child:wait(5000)
  end
  return side
end

--- Both sides with a program behind each connection; theirs is nil where there is no ttyd. pinned: to one core.
local function pair(abxd, root, program, pinned)
  local ttyd = TTYD and start_ttyd(root, program) or nil
  if ttyd and pinned then
    bench.pin(ttyd.pid)
  end
  return { abxd = abxd, ttyd = ttyd, program = program, pinned = pinned }
end

--- Opens a terminal of abxd and calls fn with its target; the terminal is closed behind it.
local function with_terminal(abxd, argv, fn)
  local answer = http.request(abxd, "POST", "/pty", { json = { argv = argv } })
  assert(answer.status == 201, answer.body)
  local id = answer:json().id
  local result = fn("/pty/" .. id)
  http.request(abxd, "DELETE", "/pty/" .. id)
  return result
end

--- What measure(kind, port, target) returns for a server, and the CPU that the server took for it.
local function measured(side, kind, target, measure)
  local before = bench.cpu_s(side.pid)
  local result = measure(kind, side.ws_port, target)
  result.cpu_ms = (bench.cpu_s(side.pid) - before) * 1000
  return result
end

--- Calls measure for each side, in turn, and notes what it returns.
local function both(round, row, sides, measure)
  bench.both(round, row, function()
    return with_terminal(sides.abxd, { "/bin/sh", "-c", sides.program }, function(target)
      return measured(sides.abxd, "abxd", target, measure)
    end)
  end, function()
    return sides.ttyd and measured(sides.ttyd, "ttyd", "/ws", measure) or {}
  end)
end

-- The measurements ----------------------------------------------------------------------------------------------------

--- A text file of short lines, and how many bytes a terminal makes of it and of the line that is typed before.
local function write_text(path)
  local line = "The quick brown fox jumps over the lazy dog, and then some more of the same text: %07d\n"
  local lines = TEXT_MIB * 1048576 // #line:format(0)
  local parts = {}
  for i = 1, lines do
    parts[i] = line:format(i)
  end
  files.write(path, table.concat(parts))
  return lines * (#parts[1] + 1) + 2
end

local function throughput(out, bytes)
  local count, seconds = out:match("(%d+) ([%d.]+)")
  assert(tonumber(count) == bytes, ("%s bytes came, %d were shown"):format(count, bytes))
  return { mib_s = bytes / 1048576 / tonumber(seconds) }
end

local function measure_text(round, row, sides, bytes)
  local function through(kind, port, target)
    return throughput(bench.client { TOOLS .. "ws_reader", "bulk", kind, port, target, bytes }, bytes)
  end
  both(round, row, sides, through)
  bench.both(round, row .. "-bare", function()
    return with_terminal(sides.abxd, { "/bin/sh", "-c", sides.program }, function(target)
      return through("abxd", sides.abxd.ws_port, target)
    end)
  end, function()
    local cores = sides.pinned and bench.SERVER_CORE or bench.SERVER_CORE .. "," .. bench.CLIENT_CORE
    local result = process.run({ "taskset", "-c", cores, TOOLS .. "pty_reader", tostring(bytes), sides.program },
      { timeout_ms = 600000 })
    assert(result.code == 0, result.stderr)
    return throughput(result.stdout, bytes)
  end)
end

local function measure_echo(round, sides)
  both(round, "echo", sides, function(kind, port, target)
    local out = bench.client { TOOLS .. "ws_reader", "echo", kind, port, target, KEYS, KEY_PAUSE_US }
    local median, worst = out:match("([%d.]+) ([%d.]+)")
    return { median_us = tonumber(median), p99_us = tonumber(worst) }
  end)
end

--- MiB of a process. whole: PSS with what the kernel holds for its threads and address space, which PSS leaves out.
local function memory(pid)
  local rollup = files.read(("/proc/%d/smaps_rollup"):format(pid))
  local status = files.read(("/proc/%d/status"):format(pid))
  local pss = bench.number_of(rollup, "\nPss:%s*(%d+)")
  local kernel = bench.number_of(status, "VmPTE:%s*(%d+)") + bench.number_of(status, "Threads:%s*(%d+)") * KERNEL_STACK_KIB
  return { pss_mib = pss / 1024, rss_mib = bench.number_of(rollup, "Rss:%s*(%d+)") / 1024, whole_mib = (pss + kernel) / 1024 }
end

--- Holds a client at each of IDLE terminals and looks at the server's memory. before: that of the server without
--- any. arguments: of ws_reader idle.
local function weigh(side, root, before, arguments)
  local log = root .. "/idle.log"
  files.write(log, "")
  local holder = process.start({ TOOLS .. "ws_reader", "idle", table.unpack(arguments) }, { stdout = log, stderr = log })
  assert(process.poll(60000, function()
    return files.read(log):find("ready", 1, true)
  end), "the idle clients did not connect: " .. files.read(log))
  uv.sleep(500)
  local after = memory(side.pid)
  holder:kill("sigkill")
  holder:wait(5000)
  after.each_kib = (after.whole_mib - before.whole_mib) * 1024 / IDLE
  return after
end

--- Each side is started anew and alone: what the others' libraries share with it, or its past, must not count.
local function measure_idle(round, dir, tables)
  bench.both(round, "idle", function()
    local abxd = bench.start_abxd(tables, dir .. "/base", true)
    http.request(abxd, "GET", "/health")
    local before, targets = memory(abxd.pid), {}
    for i = 1, IDLE do
      local answer = http.request(abxd, "POST", "/pty", { json = { argv = { "/bin/sh", "-c", SLEEP } } })
      assert(answer.status == 201, answer.body)
      targets[i] = "/pty/" .. answer:json().id
    end
    files.write(dir .. "/targets", table.concat(targets, "\n") .. "\n")
    local result = weigh(abxd, dir, before, { "abxd", tostring(abxd.ws_port), tostring(IDLE), dir .. "/targets" })
    abxd:stop()
    return result
  end, function()
    if not TTYD then
      return {}
    end
    local ttyd = start_ttyd(dir, SLEEP)
    local result = weigh(ttyd, dir, memory(ttyd.pid), { "ttyd", tostring(ttyd.port), tostring(IDLE) })
    ttyd:stop()
    return result
  end)
end

--- The main thread and the client that asks are on one core; the terminals' thread and what prints have the other.
local function spread(abxd)
  process.run { "taskset", "-a", "-c", "-p", bench.SERVER_CORE, tostring(abxd.pid) }
  process.run { "taskset", "-c", "-p", bench.CLIENT_CORE, tostring(abxd.pid) }
end

local function measure_health(round, abxd)
  bench.both(round, "health", function()
    return with_terminal(abxd, { "taskset", "-c", bench.SERVER_CORE, "yes" }, function()
      uv.sleep(200)
      return bench.rate(abxd, "/health", 1)
    end)
  end, function()
    return bench.rate(abxd, "/health", 1)
  end)
end

local function measure(dir, abxd)
  local bytes = write_text(dir .. "/text")
  local show = SHOW:format(dir .. "/text")
  local one_core, both_cores = pair(abxd.pinned, dir, show, true), pair(abxd.free, dir, show)
  local echo = pair(abxd.pinned, dir, ECHO, true)
  for round = 1, bench.ROUNDS do
    io.stderr:write(("round %d of %d\n"):format(round, bench.ROUNDS))
    measure_text(round, "both-cores", both_cores, bytes)
    measure_text(round, "one-core", one_core, bytes)
    measure_echo(round, echo)
    measure_health(round, abxd.spread)
  end
  for _, sides in ipairs { one_core, both_cores, echo } do
    if sides.ttyd then
      sides.ttyd:stop()
    end
  end
end

local function print_table()
  bench.print_row("work", "unit", "abxd", "reference", "ratio", "wanted")
  local text = ("cat of %d MB to a client"):format(TEXT_MIB)
  bench.report(text .. " (ttyd)", "MiB/s", "both-cores", "mib_s", ">= 1.1")
  bench.report("  CPU of the server for it (ttyd)", "ms", "both-cores", "cpu_ms", "report")
  bench.report("  against a bare read of the terminal", "MiB/s", "both-cores-bare", "mib_s", "report")
  bench.report("  server and cat on one core (ttyd)", "MiB/s", "one-core", "mib_s", "report")
  bench.report("  the same against a bare read", "MiB/s", "one-core-bare", "mib_s", "report")
  bench.report("echo of a key, median (ttyd)", "us", "echo", "median_us", "<= 1.0")
  bench.report("  99th percentile", "us", "echo", "p99_us", "<= 1.0")
  bench.report(("%d idle with a client each, PSS (ttyd)"):format(IDLE), "MiB", "idle", "pss_mib", "<= 0.7")
  bench.report("  RSS", "MiB", "idle", "rss_mib", "report")
  bench.report("  PSS, page tables, stacks in the kernel", "MiB", "idle", "whole_mib", "report")
  bench.report("  what each adds to that", "KiB", "idle", "each_kib", "report")
  bench.report("GET /health while a terminal prints (none)", "per s", "health", "per_s", ">= 0.9")
  if not TTYD then
    print("ttyd rows not measured: set ABX_BENCH_TTYD")
  end
end

local dir = assert(uv.fs_mkdtemp("/dev/shm/abxd-bench-XXXXXX"))
files.mkdir(dir .. "/base")
local tables = server.copy_tables()
-- Idle ones first, while no other server of the same build shares its pages.
local ok, why = xpcall(function()
  for round = 1, bench.ROUNDS do
    measure_idle(round, dir, tables)
  end
end, debug.traceback)
local abxd = {}
for _, name in ipairs { "pinned", "free", "spread" } do
  abxd[name] = bench.start_abxd(tables, dir .. "/base", name ~= "pinned")
end
spread(abxd.spread)
if ok then
  ok, why = xpcall(measure, debug.traceback, dir, abxd)
end
for _, side in pairs(abxd) do
  side:stop()
end
files.remove_tree(dir)
files.remove_tree(tables.dir)
if ok then
  print_table()
else
  print("the measurement broke off: " .. tostring(why))
end
