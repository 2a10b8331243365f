--- Measures the file endpoints: small ones against GET /health of the same server, whole trees against find, rg and cp on
--- the same tree, round by round in turn. On tmpfs. Run by script/bench.
local bench = require("bench")
local files = require("support.files")
local http = require("support.http")
local json = require("support.json")
local process = require("support.process")
local server = require("support.server")
local uv = require("luv")

local ENTRIES = bench.SHORT and 500 or 50000
local FILE_KIB = 10
local SMALL_FILES = bench.SHORT and 200 or 20000
local LARGE_MIB = bench.SHORT and 16 or 1024
local PER_DIR = 100

local function seconds(fn)
  local begin = uv.hrtime()
  fn()
  return { ms = (uv.hrtime() - begin) / 1e6 }
end

local function run(argv, codes)
  local result = process.run(argv, { timeout_ms = 600000 })
  assert((codes or { [0] = true })[result.code], table.concat(argv, " ") .. ": " .. result.stderr)
  return result.stdout
end

--- count files of text below dir, PER_DIR in each folder; every thousandth holds "needle" and a number.
local function make_tree(dir, count, kib)
  local line = "the quick brown fox jumps over the lazy dog and does it again 0123456789\n"
  local text = line:rep(kib * 1024 // #line)
  for i = 0, count - 1 do
    local folder = ("%s/d%04d"):format(dir, i // PER_DIR)
    if i % PER_DIR == 0 then
      files.mkdir(folder)
    end
    files.write(("%s/f%05d.txt"):format(folder, i), i % 1000 == 0 and text .. "needle " .. i .. "\n" or text)
  end
end

local function call(side, method, target, body)
  local answer = http.request(side, method, target, { json = body, timeout_s = 600 })
  assert(answer.status < 300, target .. ": " .. answer.body:sub(1, 300))
  return answer
end

--- All pages; only next_cursor is looked for, so that the client's parsing is not measured.
local function list_all(side, path)
  local cursor, count = nil, 0
  repeat
    local answer = call(side, "GET", ("/files/list?path=%s&recursive=true&limit=10000%s"):format(path,
      cursor and "&cursor=" .. http.escape(cursor) or ""))
    count = count + select(2, answer.body:gsub('"modified_at":', ""))
    cursor = answer.body:match('"next_cursor":"([^"]+)"')
  until not cursor
  return count
end

local function search(side, pattern, regex)
  local answer = call(side, "POST", "/files/search", { path = "tree", pattern = pattern, regex = regex, exclude = json.array {} })
  local found = answer:json()
  assert(#found.matches == (ENTRIES + 999) // 1000 and not found.timed_out, #found.matches .. " matches")
end

local function rg(dir, kind, pattern)
  return run { "rg", "--no-ignore", "--hidden", "--no-messages", "-j", tostring(uv.available_parallelism()), "-n", kind,
    pattern, dir .. "/base/tree" }
end

local function measure_small(round, abxd, write_script)
  bench.both(round, "read", function()
    return bench.rate(abxd, "/files/read?path=4k.txt", 32)
  end, function()
    return bench.rate(abxd, "/health", 32)
  end)
  bench.both(round, "write", function()
    return bench.rate(abxd, "/files/write", 32, write_script)
  end, function()
    return bench.rate(abxd, "/health", 32)
  end)
end

local function measure_trees(round, free, dir)
  local base = dir .. "/base"
  bench.both(round, "list", function()
    return seconds(function()
      assert(list_all(free, "tree") == ENTRIES + (ENTRIES + PER_DIR - 1) // PER_DIR)
    end)
  end, function()
    return seconds(function()
      run { "find", base .. "/tree", "-printf", "%p %f %y %s %m %u %g %TY-%Tm-%TdT%TH:%TM:%TSZ %l\n" }
    end)
  end)
  for row, pattern in pairs { literal = "needle ", regex = "n[e]+dle [0-9]+$" } do
    bench.both(round, row, function()
      return seconds(function()
        search(free, pattern, row == "regex")
      end)
    end, function()
      return seconds(function()
        rg(dir, row == "literal" and "-Fe" or "-e", pattern)
      end)
    end)
  end
  for row, source in pairs { copy_large = "large.bin", copy_small = "small" } do
    -- Memory that was in use a moment ago is faster than that which the machine has to find: the first would pay for both.
    run { "cp", "-a", base .. "/" .. source, base .. "/copied" }
    files.remove_tree(base .. "/copied")
    bench.both(round, row, function()
      local taken = seconds(function()
        call(free, "POST", "/files/copy", { source = source, destination = "copied" })
      end)
      files.remove_tree(base .. "/copied")
      return taken
    end, function()
      local taken = seconds(function()
        run { "cp", "-a", base .. "/" .. source, base .. "/copied" }
      end)
      files.remove_tree(base .. "/copied")
      return taken
    end)
  end
end

local function measure(abxd, free, dir)
  local write_script = dir .. "/write.lua"
  files.write(write_script, ("wrk.method = 'POST' wrk.headers['Content-Type'] = 'application/json' wrk.body = %q"):format(
    json.encode { path = "written.txt", content = ("x"):rep(4095) .. "\n" }))
  files.write(dir .. "/base/4k.txt", ("y"):rep(4095) .. "\n")
  make_tree(files.mkdir(dir .. "/base/tree"), ENTRIES, FILE_KIB)
  make_tree(files.mkdir(dir .. "/base/small"), SMALL_FILES, 1)
  run { "dd", "if=/dev/urandom", "of=" .. dir .. "/base/large.bin", "bs=1M", "count=" .. LARGE_MIB, "status=none" }
  for round = 1, bench.ROUNDS do
    io.stderr:write(("round %d of %d\n"):format(round, bench.ROUNDS))
    measure_small(round, abxd, write_script)
    measure_trees(round, free, dir)
  end
end

local function print_table()
  bench.print_row("work", "unit", "abxd", "reference", "ratio", "wanted")
  bench.report("read of 4 KiB (GET /health)", "req/s", "read", "per_s", ">= 0.5")
  bench.report("write of 4 KiB (GET /health)", "req/s", "write", "per_s", ">= 0.4")
  bench.report(("recursive list of %d entries (find)"):format(ENTRIES), "ms", "list", "ms", "<= 1.5")
  bench.report(("search of a literal in %d files (rg)"):format(ENTRIES), "ms", "literal", "ms", "<= 1.5")
  bench.report(("search of a regex in %d files (rg)"):format(ENTRIES), "ms", "regex", "ms", "<= 1.5")
  bench.report(("copy of %d MiB (cp -a)"):format(LARGE_MIB), "ms", "copy_large", "ms", "<= 1.1")
  bench.report(("copy of %d small files (cp -a)"):format(SMALL_FILES), "ms", "copy_small", "ms", "<= 1.3")
end

local dir = assert(uv.fs_mkdtemp("/dev/shm/abxd-bench-XXXXXX"))
files.mkdir(dir .. "/base")
local tables = server.copy_tables()
local abxd, free = bench.start_abxd(tables, dir .. "/base"), bench.start_abxd(tables, dir .. "/base", true)
local ok, why = xpcall(measure, debug.traceback, abxd, free, dir)
abxd:stop()
free:stop()
files.remove_tree(dir)
files.remove_tree(tables.dir)
if ok then
  print_table()
else
  print("the measurement broke off: " .. tostring(why))
end
