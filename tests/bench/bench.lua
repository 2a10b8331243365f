--- What the benchmarks share: clients on a core of their own, rounds in turn, medians as ratios.
local files = require("support.files")
local process = require("support.process")
local server = require("support.server")

local M = { SHORT = arg[1] == "short" }

M.ROUNDS = M.SHORT and 1 or 7
M.WRK_SECONDS = M.SHORT and 1 or 3
-- Both sides run on one core, what measures them on another.
M.SERVER_CORE, M.CLIENT_CORE = "0", "1"

function M.number_of(text, pattern)
  return tonumber(text:match(pattern) or error("no " .. pattern .. " in: " .. text, 2))
end

function M.client(argv)
  local result = process.run({ "taskset", "-c", M.CLIENT_CORE, table.unpack(argv) }, { timeout_ms = 600000 })
  assert(result.code == 0, table.concat(argv, " ") .. ": " .. result.stderr .. result.stdout)
  return result.stdout
end

function M.pin(pid)
  process.run { "taskset", "-a", "-c", "-p", M.SERVER_CORE, tostring(pid) }
end

--- On the server's core, unless it is free to use all.
function M.start_abxd(tables, base_dir, free)
  local side = server.start { tables = tables, base_dir = base_dir, args = { "--log-level", "warn" } }
  if not free then
    M.pin(side.pid)
  end
  return side
end

--- CPU seconds that a process has used.
function M.cpu_s(pid)
  local fields = {}
  for field in files.read(("/proc/%d/stat"):format(pid)):match("%) (.*)"):gmatch("%S+") do
    fields[#fields + 1] = field
  end
  return (tonumber(fields[12]) + tonumber(fields[13])) / 100
end

--- Requests a second, and CPU for each. script: a file for wrk that makes other requests than GET.
function M.rate(side, target, connections, script)
  local before = M.cpu_s(side.pid)
  local argv = { "wrk", "-t1", "-c" .. connections, "-d" .. M.WRK_SECONDS .. "s" }
  if script then
    table.move({ "-s", script }, 1, 2, #argv + 1, argv)
  end
  argv[#argv + 1] = ("http://127.0.0.1:%d%s"):format(side.port, target)
  local out = M.client(argv)
  assert(not out:find("Non-2xx", 1, true), out)
  local requests = M.number_of(out, "(%d+) requests in")
  return { per_s = M.number_of(out, "Requests/sec:%s*([%d.]+)"), cpu_us = (M.cpu_s(side.pid) - before) / requests * 1e6 }
end

local samples = {}

local function note(name, value)
  samples[name] = samples[name] or {}
  table.insert(samples[name], value)
end

local function median(name)
  local list = samples[name]
  table.sort(list)
  return list[(#list + 1) // 2]
end

--- Adds a round's numbers of both sides under row/side/name; the side that begins changes with the round.
function M.both(round, row, ours, theirs)
  local order = { { "abxd", ours }, { "ref", theirs } }
  if round % 2 == 0 then
    order[1], order[2] = order[2], order[1]
  end
  for _, side in ipairs(order) do
    for name, value in pairs(side[2]()) do
      note(("%s/%s/%s"):format(row, side[1], name), value)
    end
  end
end

function M.print_row(work, unit, ours, theirs, ratio, wanted)
  print(("%-44s %12s %12s %-7s %6s  %s"):format(work, ours, theirs, unit, ratio, wanted))
end

--- One line of the table; the ratio is ours / theirs, whichever way is better.
function M.report(work, unit, row, name, wanted)
  local ours = median(row .. "/abxd/" .. name)
  local theirs = samples[row .. "/ref/" .. name] and median(row .. "/ref/" .. name)
  M.print_row(work, unit, ("%.1f"):format(ours), theirs and ("%.1f"):format(theirs) or "-",
    theirs and wanted ~= "flat" and ("%.2f"):format(ours / theirs) or "-", wanted)
end

return M
