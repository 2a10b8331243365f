--- Measures abxd against nginx and bare C loops, round by round in turn, and prints the medians as ratios. Run by
--- script/bench; the first argument is "short" for one small round that only shows that everything runs.
local bench = require("bench")
local files = require("support.files")
local http = require("support.http")
local process = require("support.process")
local server = require("support.server")
local sse = require("support.sse")
local socket = require("socket")
local uv = require("luv")

local SHORT, ROUNDS, number_of, client, both, report = bench.SHORT, bench.ROUNDS, bench.number_of, bench.client, bench.both,
  bench.report
local STREAM_MIB = SHORT and 8 or 256
local FILE_MIB = SHORT and 16 or 1024
local SPAWNS = SHORT and 20 or 300
local TOOLS = files.source_dir .. "/build/bench/"

-- The two sides -------------------------------------------------------------------------------------------------------

local NGINX_CONF = [[
daemon off;
user root;
worker_processes 1;
pid ROOT/nginx.pid;
error_log ROOT/error.log;
include /etc/nginx/modules-enabled/*.conf;
events { worker_connections 2048; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  client_max_body_size 0;
  client_body_temp_path ROOT/body;
  server {
    listen 127.0.0.1:PORT backlog=1024;
    default_type application/octet-stream;
    location = /health {
      content_by_lua_block {
        local body = string.format('{"status":"ok","version":"1","uptime_ms":%d}', ngx.now() * 1000)
        ngx.header.content_type = "application/json"
        ngx.header.content_length = #body
        ngx.print(body)
      }
    }
    location = /bench/yield {
      content_by_lua_block {
        ngx.sleep(0)
        ngx.header.content_type = "application/json"
        ngx.header.content_length = 15
        ngx.print('{"status":"ok"}')
      }
    }
    location /files/ { root ROOT; dav_methods PUT; }
  }
}
]]

local function answers(target)
  local ok, answer = pcall(http.request, target, "GET", "/health")
  return ok and answer.status == 200
end

local function start_nginx(root)
  local side = { host = "127.0.0.1", port = http.free_port() }
  local conf = NGINX_CONF:gsub("ROOT", root):gsub("PORT", tostring(side.port))
  files.write(root .. "/nginx.conf", conf)
  side.child = process.start({ "nginx", "-c", root .. "/nginx.conf" }, { stderr = root .. "/error.log" })
  assert(process.poll(10000, function()
    return answers(side)
  end), "nginx did not start: " .. files.read(root .. "/error.log"))
  side.pid = process.descendants(side.child.pid)[1].pid -- the worker
  bench.pin(side.pid)
  return side
end

local function stop_nginx(side)
  side.child:kill("sigquit")
  side.child:wait(10000)
end

-- Measurements: each gives {name=number} of one round -------------------------------------------------------------------

local function peak_mib(pid)
  return number_of(files.read(("/proc/%d/status"):format(pid)), "VmHWM:%s*(%d+)") / 1024
end

local function latency_us(side, method, target, body)
  return number_of(client { TOOLS .. "http_client", "latency", side.port, SPAWNS, method, target, body }, "([%d.]+)")
end

--- MiB a second of one transfer of that many MiB, and how far it pushed up the server's peak of memory.
local function transfer(side, method, target, body, mib, want)
  local before = peak_mib(side.pid)
  local out = client { TOOLS .. "http_client", "transfer", side.port, method, target, body }
  local status, _, seconds = out:match("(%d+) (%d+) ([%d.]+)")
  assert(want[tonumber(status)], target .. " answered " .. out)
  return { mib_s = mib / tonumber(seconds), grown_mib = peak_mib(side.pid) - before }
end

--- Milliseconds from the moment a program wrote to the moment the event was here.
local function first_event_ms(side)
  local answer <close> = http.stream(side, "POST", "/shell/stream", { json = { command = "date +%s.%N; sleep 0.2" } })
  local written = tonumber(sse.events(answer):wait("stdout").data.data)
  return (socket.gettime() - written) * 1000
end

--- Milliseconds from exec to the first answer, and MiB resident (with children) a moment later.
local function start_cost(argv, target)
  local begin = uv.hrtime()
  local child = process.start(argv, {})
  while not answers(target) do
    assert((uv.hrtime() - begin) < 10e9 and child:is_running(), argv[1] .. " does not answer")
  end
  local start_ms = (uv.hrtime() - begin) / 1e6
  uv.sleep(300)
  local resident = process.rss_bytes(child.pid)
  for _, below in ipairs(process.descendants(child.pid)) do
    resident = resident + process.rss_bytes(below.pid)
  end
  child:kill("sigterm")
  child:wait(10000)
  return { start_ms = start_ms, resident_mib = resident / 1048576 }
end

local function measure(abxd, nginx, dir, tables)
  local stream = ("head -c %d /dev/zero | base64 -w0"):format(STREAM_MIB * 1048576 // 4 * 3)
  local file = FILE_MIB .. "m.bin"
  local idle_port, nginx_idle_port = http.free_port(), http.free_port()
  local idle_root = files.mkdir(dir .. "/idle")
  local conf = NGINX_CONF:gsub("ROOT", idle_root):gsub("PORT", tostring(nginx_idle_port))
  files.write(idle_root .. "/nginx.conf", conf)

  for round = 1, ROUNDS do
    io.stderr:write(("round %d of %d\n"):format(round, ROUNDS))
    for _, connections in ipairs { 1, 32, 256 } do
      both(round, "health" .. connections, function()
        return bench.rate(abxd, "/health", connections)
      end, function()
        return bench.rate(nginx, "/health", connections)
      end)
    end
    both(round, "yield", function()
      return bench.rate(abxd, "/bench/yield", 32)
    end, function()
      return bench.rate(nginx, "/bench/yield", 32)
    end)
    both(round, "shell", function()
      return { us = latency_us(abxd, "POST", "/shell", '{"command":"true"}') }
    end, function()
      return { us = number_of(process.run({ "taskset", "-c", bench.SERVER_CORE, TOOLS .. "spawn_loop", tostring(SPAWNS) }).stdout,
        "([%d.]+)") }
    end)
    both(round, "stream", function()
      local numbers = transfer(abxd, "POST", "/shell/stream", ('{"command":"%s"}'):format(stream), STREAM_MIB, { [200] = true })
      numbers.first_ms = first_event_ms(abxd)
      return numbers
    end, function()
      return { mib_s = STREAM_MIB / number_of(client { TOOLS .. "pipe_reader", stream }, " ([%d.]+)") }
    end)
    both(round, "upload", function()
      return transfer(abxd, "POST", "/upload?path=" .. file, "@" .. FILE_MIB, FILE_MIB, { [201] = true })
    end, function()
      return transfer(nginx, "PUT", "/files/" .. file, "@" .. FILE_MIB, FILE_MIB, { [201] = true, [204] = true })
    end)
    both(round, "download", function()
      return transfer(abxd, "GET", "/download?path=" .. file, "", FILE_MIB, { [200] = true })
    end, function()
      return transfer(nginx, "GET", "/files/" .. file, "", FILE_MIB, { [200] = true })
    end)
    both(round, "idle", function()
      return start_cost({ server.binary, "--lua-dir", tables.lua_dir, "--commands", tables.commands, "--config", tables.config,
        "--base-dir", abxd.base_dir, "--port", tostring(idle_port) }, { host = "127.0.0.1", port = idle_port })
    end, function()
      return start_cost({ "nginx", "-c", idle_root .. "/nginx.conf" },
        { host = "127.0.0.1", port = nginx_idle_port })
    end)
  end
end

local function print_table()
  bench.print_row("work", "unit", "abxd", "reference", "ratio", "wanted")
  for _, connections in ipairs { 1, 32, 256 } do
    local row = "health" .. connections
    report(("GET /health, %d connections (nginx)"):format(connections), "req/s", row, "per_s", ">= 1.0")
    report("  CPU a request", "us", row, "cpu_us", "< 1.0")
  end
  report("a handler that yields once (ngx.sleep(0))", "req/s", "yield", "per_s", ">= 1.05")
  report("POST /shell true (posix_spawn loop)", "us", "shell", "us", "<= 1.1")
  report(("POST /shell/stream, %d MiB (pipe reader)"):format(STREAM_MIB), "MiB/s", "stream", "mib_s", "report")
  report("  growth of the peak of memory", "MiB", "stream", "grown_mib", "flat")
  report("  byte written to event received", "ms", "stream", "first_ms", "< 10 ms")
  report(("upload of %d MiB on tmpfs (nginx dav PUT)"):format(FILE_MIB), "MiB/s", "upload", "mib_s", ">= 1.0")
  report("  growth of the peak of memory", "MiB", "upload", "grown_mib", "flat")
  report(("download of %d MiB (nginx sendfile)"):format(FILE_MIB), "MiB/s", "download", "mib_s", ">= 1.0")
  report("  growth of the peak of memory", "MiB", "download", "grown_mib", "flat")
  report("idle, all tables loaded: resident (nginx + lua)", "MiB", "idle", "resident_mib", "<= 12 MiB")
  report("  start to first answer", "ms", "idle", "start_ms", "<= 40 ms")
end

local dir = assert(uv.fs_mkdtemp("/dev/shm/abxd-bench-XXXXXX"))
files.mkdir(dir .. "/base")
files.mkdir(dir .. "/files")
local tables = server.copy_tables()
assert(uv.fs_copyfile(files.source_dir .. "/tests/bench/route.lua", tables.lua_dir .. "/routes/bench.lua"))
local abxd, nginx = bench.start_abxd(tables, dir .. "/base"), start_nginx(dir)
local ok, why = xpcall(measure, debug.traceback, abxd, nginx, dir, tables)
stop_nginx(nginx)
local stopped, fault = pcall(abxd.stop, abxd)
files.remove_tree(dir)
files.remove_tree(tables.dir)
if ok and stopped then
  print_table()
else
  print("the measurement broke off: " .. tostring(why or fault))
end
