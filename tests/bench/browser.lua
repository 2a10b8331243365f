--- Measures the browser against a plain Playwright script on the same browser. Run by script/bench.
local bench = require("bench")
local browser = require("support.browser")
local files = require("support.files")
local json = require("support.json")
local pages = require("support.pages")
local process = require("support.process")
local uv = require("luv")

local HTTP_CLIENT = files.source_dir .. "/build/bench/http_client"
local CALLS = bench.SHORT and 3 or 40
local LIBRARY = files.source_dir .. "/workers/node_modules/playwright-core"
local SLOWER_MS = 10 -- calls that take less may take 3 ms more

local PAGE = [[<!doctype html><title>bench</title><h1>A page</h1><button>press</button><input>
<ul>]] .. ("<li>An item of a list, and <a href='/x'>a link</a></li>"):rep(200) .. "</ul>"

-- name, method, target or body
local OPERATIONS = {
  { "navigate", "POST", "/browser/navigate" },
  { "screenshot", "POST", "/browser/screenshot", "{}" },
  { "content", "GET", "/browser/content", "" },
  { "evaluate", "POST", "/browser/evaluate", '{"expression":"6 * 7"}' },
  { "click", "POST", "/browser/click", '{"selector":"button"}' },
  { "type", "POST", "/browser/type", '{"selector":"input","text":"some words","clear":true}' },
  { "pdf", "POST", "/browser/pdf", "{}" },
}

local function rss_bytes(pids)
  local sum = 0
  for _, pid in ipairs(pids) do
    sum = sum + process.rss_bytes(pid)
  end
  return sum
end

--- Ours: a server that has not used its browser yet.
local function measure_ours(url)
  local side <close> = browser.server { args = { "--log-level", "warn" } }
  local begin = uv.hrtime()
  browser.go(side, url)
  local times = { cold = (uv.hrtime() - begin) / 1e6 }
  for _, operation in ipairs(OPERATIONS) do
    local name, method, target, body = table.unpack(operation)
    local out = bench.client { HTTP_CLIENT, "latency", side.port, CALLS, method, target, body or json.encode { url = url } }
    times[name] = bench.number_of(out, "([%d.]+)") / 1000
  end
  local worker = browser.worker_pid(side)
  local chromium = {}
  for _, one in ipairs(browser.processes(side)) do
    chromium[#chromium + 1] = one.pid
  end
  times.worker_mib = rss_bytes { worker } / 2 ^ 20
  times.browser_mib = rss_bytes(chromium) / 2 ^ 20
  return times
end

local function measure_theirs(url, executable)
  local result = process.run({ "node", "tests/bench/playwright_calls.mjs", LIBRARY, executable, url, tostring(CALLS) },
    { timeout_ms = 600000 })
  assert(result.code == 0, result.stderr)
  return json.decode(result.stdout)
end

local web <close> = pages.start { ["bench.html"] = PAGE }
local url = web:url("bench.html")
local executable
do -- the one that the server chooses
  local side <close> = browser.server()
  browser.go(side, url)
  executable = browser.processes(side)[1].argv:match("^(%S+)")
end
for round = 1, bench.ROUNDS do
  io.stderr:write(("round %d of %d\n"):format(round, bench.ROUNDS))
  bench.both(round, "browser", function()
    return measure_ours(url)
  end, function()
    return measure_theirs(url, executable)
  end)
end
bench.print_row("work", "unit", "abxd", "reference", "ratio", "wanted")
bench.report("first navigation, cold (plain Playwright)", "ms", "browser", "cold", "<= 1.2")
for _, operation in ipairs(OPERATIONS) do
  bench.report(operation[1] .. ", warm, over HTTP (plain Playwright)", "ms", "browser", operation[1],
    ("<= 1.15, + 3 ms below %d"):format(SLOWER_MS))
end
bench.report("memory of the worker", "MiB", "browser", "worker_mib", "told")
bench.report("  of the browser's processes", "MiB", "browser", "browser_mib", "told")
