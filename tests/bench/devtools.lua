--- Measures git and the code interpreter: against git itself and against Jupyter's client. Run by script/bench.
local bench = require("bench")
local files = require("support.files")
local http = require("support.http")
local git_http = require("support.git_http")
local process = require("support.process")
local server = require("support.server")
local uv = require("luv")

local HTTP_CLIENT = files.source_dir .. "/build/bench/http_client"
local CELLS = bench.SHORT and 20 or 300
local STATUS_FILES = bench.SHORT and 500 or 50000
local CLONE_FILES = bench.SHORT and 200 or 10000
local SPARE_READY_MS = 3000

local function call(side, method, target, body)
  local answer = http.request(side, method, target, { json = body, timeout_s = 120 })
  assert(answer.status < 300, target .. ": " .. answer.body)
  return answer
end

local function milliseconds(fn)
  local begin = uv.hrtime()
  fn()
  return { ms = (uv.hrtime() - begin) / 1e6 }
end

local function git(...)
  local result = process.run({ "git", ... }, { timeout_ms = 120000 })
  assert(result.code == 0, result.stderr)
  return result.stdout
end

--- A repository with so many small files in folders of a hundred, all committed.
local function make_repository(dir, count)
  files.mkdir(dir)
  local script = ([[
    cd "$1" && git init -q -b main . && git config user.name bench && git config user.email bench@localhost &&
    git config gc.auto 0 &&
    for i in $(seq $(($2 / 100))); do mkdir "d$i"; for j in $(seq 100); do echo "$i $j" >"d$i/f$j"; done; done &&
    git add -A && git commit -q -m all && git gc -q]])
  local result = process.run({ "bash", "-c", script, "-", dir, tostring(count) }, { timeout_ms = 600000 })
  assert(result.code == 0, result.stderr)
end

local function execute(side, context)
  local body = call(side, "POST", "/code/execute", { code = "1+1", context = context }):json()
  assert(body.status == "ok" and body.results[1]["text/plain"] == "2", body.status)
  return body
end

local function measure_cells(round, side)
  execute(side, "warm")
  bench.both(round, "cell", function()
    local out = bench.client { HTTP_CLIENT, "latency", side.port, CELLS, "POST", "/code/execute",
      '{"code":"1+1","context":"warm"}' }
    return { ms = bench.number_of(out, "([%d.]+)") / 1000 }
  end, function()
    local out = bench.client { "/usr/bin/python3", files.source_dir .. "/tests/bench/jupyter_cells.py", tostring(CELLS) }
    local first, median = out:match("([%d.]+) ([%d.]+)")
    return { ms = tonumber(median), first = tonumber(first) }
  end)
end

--- From a server that has not run a cell yet, and then with the spare that its first one left.
local function measure_first(round, start)
  local side = start()
  bench.both(round, "first", function()
    return milliseconds(function()
      execute(side, "cold")
    end)
  end, function()
    return {}
  end)
  uv.sleep(SPARE_READY_MS)
  bench.both(round, "spare", function()
    return milliseconds(function()
      execute(side, "second")
    end)
  end, function()
    return {}
  end)
  side:stop()
end

local function measure_git(round, side, base, remote)
  bench.both(round, "status", function()
    return milliseconds(function()
      assert(call(side, "GET", "/git/status?path=many"):json().clean)
    end)
  end, function()
    return milliseconds(function()
      assert(git("-C", base .. "/many", "status", "--porcelain=v2", "--branch"):find("branch.head main", 1, true))
    end)
  end)
  bench.both(round, "clone", function()
    local took = milliseconds(function()
      call(side, "POST", "/git/clone", { url = remote:url("plain/source/.git"), path = "clone" })
    end)
    files.remove_tree(base .. "/clone")
    return took
  end, function()
    local took = milliseconds(function()
      git("clone", "-q", remote:url("plain/source/.git"), base .. "/clone-ref")
    end)
    files.remove_tree(base .. "/clone-ref")
    return took
  end)
end

local dir = assert(uv.fs_mkdtemp("/dev/shm/abxd-bench-XXXXXX"))
local base = dir .. "/base"
files.mkdir(base)
files.mkdir(dir .. "/remotes")
make_repository(base .. "/many", STATUS_FILES)
make_repository(dir .. "/remotes/source", CLONE_FILES)
local tables = server.copy_tables()
local function start()
  return server.start { tables = tables, base_dir = base, args = { "--log-level", "warn", "--enabled-groups", "core,dev_tools" } }
end

local side, remote = start(), git_http.start(dir .. "/remotes")
local ok, why = xpcall(function()
  call(side, "GET", "/git/status?path=many") -- the first one writes the index anew, as git's does
  git("-C", base .. "/many", "status")
  for round = 1, bench.ROUNDS do
    io.stderr:write(("round %d of %d\n"):format(round, bench.ROUNDS))
    measure_cells(round, side)
    measure_first(round, start)
    measure_git(round, side, base, remote)
  end
end, debug.traceback)
remote:stop()
side:stop()
files.remove_tree(dir)
files.remove_tree(tables.dir)
if not ok then
  print("the measurement broke off: " .. tostring(why))
  return
end
bench.print_row("work", "unit", "abxd", "reference", "ratio", "wanted")
bench.report("1+1 on a warm context, over HTTP (Jupyter)", "ms", "cell", "ms", "<= 2 ms")
bench.report("first result of a new context, cold", "ms", "first", "ms", "<= 1000 ms")
bench.report("  with the spare", "ms", "spare", "ms", "<= 50 ms")
bench.report(("status of %d clean files (git status)"):format(STATUS_FILES), "ms", "status", "ms", "<= 1.3")
bench.report(("clone of %d files over http (git clone)"):format(CLONE_FILES), "ms", "clone", "ms", "<= 1.2")
