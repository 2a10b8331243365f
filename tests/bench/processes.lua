--- Measures the process endpoints: starts against a bare loop in C, lists against ps, and what many programs that print
--- cost the server. Run by script/bench.
local bench = require("bench")
local files = require("support.files")
local http = require("support.http")
local process = require("support.process")
local server = require("support.server")
local uv = require("luv")

local TOOLS = files.source_dir .. "/build/bench/"
local STARTS = bench.SHORT and 20 or 300
local PRINTERS = bench.SHORT and 10 or 200
local LISTED = bench.SHORT and 20 or 500
local IN_A_ROW = bench.SHORT and 50 or 1000
local HEALTH_CALLS = bench.SHORT and 100 or 3000
-- The next start waits for the last program's end, and so long does the loop in C.
local PAUSE_US = "3000"

local function call(side, method, target, body)
  local answer = http.request(side, method, target, { json = body, timeout_s = 60 })
  assert(answer.status < 300, target .. ": " .. answer.body)
  return answer
end

local function latency_us(side, count, method, target, body, pause_us)
  local out = bench.client { TOOLS .. "http_client", "latency", side.port, count, method, target, body, pause_us }
  local median, worst = out:match("([%d.]+) ([%d.]+)")
  return tonumber(median), tonumber(worst)
end

local function start_many(side, count, argv)
  local ids = {}
  for i = 1, count do
    ids[i] = call(side, "POST", "/processes", { argv = argv }):json().id
  end
  return ids
end

local function kill_all(side, ids)
  for _, id in ipairs(ids) do
    call(side, "POST", "/processes/" .. id .. "/signal", { signal = "KILL", wait_ms = 5000 })
  end
end

local function milliseconds(fn)
  local begin = uv.hrtime()
  fn()
  return { ms = (uv.hrtime() - begin) / 1e6 }
end

local function measure_starts(round, pinned)
  bench.both(round, "start", function()
    return { us = (latency_us(pinned, STARTS, "POST", "/processes", '{"argv":["/bin/true"]}', PAUSE_US)) }
  end, function()
    local out = process.run { "taskset", "-c", bench.SERVER_CORE, TOOLS .. "spawn_loop", tostring(STARTS), "start", PAUSE_US }
    return { us = bench.number_of(out.stdout, "([%d.]+)") }
  end)
end

local function measure_list(round, free)
  bench.both(round, "list", function()
    return milliseconds(function()
      local _, count = call(free, "GET", "/processes?scope=all").body:gsub('"pid":', "")
      assert(count >= LISTED)
    end)
  end, function()
    return milliseconds(function()
      process.run { "ps", "-eo", "pid,ppid,user,rss,args" }
    end)
  end)
end

--- Milliseconds of /health while many print, and the part of one processor that the server takes for it.
local function measure_printing(round, free)
  local ids = start_many(free, PRINTERS, { TOOLS .. "printer", "10" })
  uv.sleep(500)
  bench.both(round, "printing", function()
    local cpu_before, begin = bench.cpu_s(free.pid), uv.hrtime()
    uv.sleep(1000)
    local cpu = (bench.cpu_s(free.pid) - cpu_before) / ((uv.hrtime() - begin) / 1e9)
    local median_us, worst_us = latency_us(free, HEALTH_CALLS, "GET", "/health", "", "1000")
    return { cpu = cpu * 100, median_ms = median_us / 1000, p99_ms = worst_us / 1000 }
  end, function()
    return {}
  end)
  kill_all(free, ids)
end

local function state_of(side)
  local fds = 0
  uv.sleep(300) -- the last connection is to be closed by then
  for _ in pairs(process.descriptors(side.pid) or {}) do
    fds = fds + 1
  end
  local threads = bench.number_of(files.read(("/proc/%d/status"):format(side.pid)), "Threads:%s*(%d+)")
  return { fds = fds, threads = threads, mib = process.rss_bytes(side.pid) / 1048576 }
end

local function measure_in_a_row(round, free)
  local function run_all()
    for _ = 1, IN_A_ROW do
      local started = call(free, "POST", "/processes", { argv = { "/bin/true" } }):json()
      call(free, "GET", "/processes/" .. started.id .. "?wait_ms=10000")
    end
  end
  if round == 1 then
    run_all() -- what stays for the newest 256 is there from then on
  end
  bench.both(round, "row", function()
    local before = state_of(free)
    run_all()
    local after = state_of(free)
    return { fds = after.fds - before.fds, threads = after.threads - before.threads, mib = after.mib - before.mib }
  end, function()
    return {}
  end)
end

local function measure(pinned, free)
  for round = 1, bench.ROUNDS do
    io.stderr:write(("round %d of %d\n"):format(round, bench.ROUNDS))
    measure_starts(round, pinned)
    measure_printing(round, free)
    measure_in_a_row(round, free)
  end
  local ids = start_many(free, LISTED, { "/bin/sleep", "3600" })
  for round = 1, bench.ROUNDS do
    measure_list(round, free)
  end
  kill_all(free, ids)
end

local function print_table()
  bench.print_row("work", "unit", "abxd", "reference", "ratio", "wanted")
  bench.report("POST /processes to its 201 (posix_spawn)", "us", "start", "us", "<= 1.2")
  bench.report(("list with %d processes (ps)"):format(LISTED), "ms", "list", "ms", "<= 1.5")
  bench.report(("GET /health while %d print, median"):format(PRINTERS), "ms", "printing", "median_ms", "report")
  bench.report("  99th percentile", "ms", "printing", "p99_ms", "< 20 ms")
  bench.report("  CPU of the server", "%", "printing", "cpu", "report")
  bench.report(("%d started and ended in a row: descriptors"):format(IN_A_ROW), "more", "row", "fds", "0")
  bench.report("  threads", "more", "row", "threads", "0")
  bench.report("  resident", "MiB", "row", "mib", "flat")
end

local dir = assert(uv.fs_mkdtemp("/dev/shm/abxd-bench-XXXXXX"))
files.mkdir(dir .. "/base")
local tables = server.copy_tables()
local pinned, free = bench.start_abxd(tables, dir .. "/base"), bench.start_abxd(tables, dir .. "/base", true)
local ok, why = xpcall(measure, debug.traceback, pinned, free)
pinned:stop()
free:stop()
files.remove_tree(dir)
files.remove_tree(tables.dir)
if ok then
  print_table()
else
  print("the measurement broke off: " .. tostring(why))
end
