--- Starts a real abxd for a spec, with a base directory of its own, and fails the spec for whatever it leaks.
local files = require("support.files")
local http = require("support.http")
local json = require("support.json")
local process = require("support.process")
local uv = require("luv")

local server = {}
server.__index = server

--- The binary under test: ABX_TEST_BINARY, else the one built with the address sanitizer.
server.binary = os.getenv("ABX_TEST_BINARY") or files.source_dir .. "/build/asan/abxd"
if server.binary:sub(1, 1) ~= "/" then
  server.binary = files.source_dir .. "/" .. server.binary
end
--- Which sanitizer it was built with, as script/test says: "address", "thread" or "none". Time and memory limits of
--- specs depend on it.
server.sanitizer = os.getenv("ABX_TEST_SANITIZER") or (server.binary:match("build/asan/") and "address") or "none"

local START_TIMEOUT_MS = 20000
local STOP_TIMEOUT_MS = 20000
local SETTLE_TIMEOUT_MS = 10000
local POOL_THREADS = 4 + 8 -- libuv's pool and the one for long walks start at their first use
local REPORTS = { "AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error:", "Assertion" }

local SANITIZER_ENV = {
  ASAN_OPTIONS = "detect_leaks=1:exitcode=99:detect_stack_use_after_return=1:allocator_may_return_null=1",
  LSAN_OPTIONS = "exitcode=98",
  UBSAN_OPTIONS = "print_stacktrace=1:halt_on_error=1",
  TSAN_OPTIONS = "exitcode=97:second_deadlock_stack=1:suppressions=" .. files.source_dir .. "/tests/c/tsan.supp",
}

--- The path of a program that stands beside the C tests of the same build; nil where it was built without tests.
function server.tool(name)
  local path = server.binary:match("^(.*)/") .. "/tests/c/" .. name
  return files.exists(path) and path or nil
end

local function with_sanitizer_env(env)
  local all = {}
  for name, value in pairs(SANITIZER_ENV) do
    all[name] = value
  end
  for name, value in pairs(env or {}) do
    all[name] = value
  end
  return all
end

--- The command line of a server; thread sanitizer needs an address space that is not shuffled.
local function command_line(args)
  local argv = { server.binary, table.unpack(args) }
  if server.sanitizer == "thread" then
    table.insert(argv, 1, "setarch")
    table.insert(argv, 2, "-R")
  end
  return argv
end

--- Runs `abxd ARGS` to its end: {code=, signal=, stdout=, stderr=}. options: env, cwd, timeout_ms.
function server.run(args, options)
  options = options or {}
  return process.run(command_line(args), { env = with_sanitizer_env(options.env), cwd = options.cwd,
    timeout_ms = options.timeout_ms })
end

--- Copies lua/ and config/ to a folder where a spec may change them: {dir=, lua_dir=, commands=, config=}. The caller
--- removes tables.dir.
function server.copy_tables()
  local dir = files.mkdtemp()
  files.copy_tree(files.source_dir .. "/lua", dir .. "/lua")
  files.copy_tree(files.source_dir .. "/config", dir .. "/config")
  return { dir = dir, lua_dir = dir .. "/lua", commands = dir .. "/config/commands.lua",
    config = dir .. "/config/server.lua" }
end

--- Starts a server and waits until it listens. options:
---   args      further flags, {"--log-level", "debug"}
---   env       added to a bare environment, {ABX_SERVER_TOKEN = "x"}
---   tables    true: a copy of lua/ and config/ of its own, at server.tables; or what copy_tables gave
---   base_dir  a folder that exists, instead of a new one that is removed at the end
---   prefix    the beginning of its command line, {"unshare", "--fork", "--pid"}; the server is that program's child, or
---             takes its place
--- The server has: host, port, ws_port, pid, base_dir, tables, token.
function server.start(options)
  options = options or {}
  local root = files.mkdtemp()
  local self = setmetatable({ root = root, host = "127.0.0.1", base_dir = options.base_dir or root .. "/base" }, server)
  if not options.base_dir then
    files.mkdir(self.base_dir)
  end
  self.tables = options.tables == true and server.copy_tables() or options.tables
  self.owns_tables = options.tables == true
  self.token = options.env and options.env.ABX_SERVER_TOKEN
  self.log_path, self.out_path = root .. "/log", root .. "/out"

  local tables = self.tables or { lua_dir = files.source_dir .. "/lua", commands = files.source_dir ..
    "/config/commands.lua", config = files.source_dir .. "/config/server.lua" }
  local args = { "--base-dir", self.base_dir, "--lua-dir", tables.lua_dir, "--commands", tables.commands, "--config",
    tables.config, "--port", "0", "--ws-port", "0", table.unpack(options.args or {}) }
  local argv = { table.unpack(options.prefix or {}) }
  for _, word in ipairs(command_line(args)) do
    argv[#argv + 1] = word
  end
  self.child = process.start(argv, { env = with_sanitizer_env(options.env), stdout = self.out_path,
    stderr = self.log_path })
  self.pid = self.child.pid

  local address = process.poll(START_TIMEOUT_MS, function()
    local text = files.read(self.out_path) .. "\n" .. files.read(self.log_path)
    return text:match("listening http=(%S+)") or (not self.child:is_running() and "")
  end)
  self.port = tonumber((address or ""):match(":(%d+)"))
  if not self.port then
    local log = files.read(self.log_path)
    self.child:kill("sigkill")
    self.child:wait(5000)
    self:remove_files()
    error(("abxd did not start (exit %s): %s"):format(self.child.code, log), 2)
  end
  local text = files.read(self.out_path) .. "\n" .. files.read(self.log_path)
  self.ws_port = tonumber(text:match("listening http=%S+ ws=%S-:(%d+)"))
  if options.prefix then
    local child = process.descendants(self.pid)[1]
    self.pid = child and child.pid or self.pid
  end
  return self
end

function server:signal(signal)
  if self.child:is_running() then
    uv.kill(self.pid, signal)
  end
end

function server:remove_files()
  files.remove_tree(self.root)
  if self.owns_tables then
    files.remove_tree(self.tables.dir)
  end
end

-- Requests ------------------------------------------------------------------------------------------------------------

--- One request on a connection of its own; see http.request.
function server:request(method, target, options)
  return http.request(self, method, target, options)
end

function server:get(target, options)
  return http.request(self, "GET", target, options)
end

--- POST with a value as the JSON body.
function server:post(target, value, options)
  options = options or {}
  options.json = value
  return http.request(self, "POST", target, options)
end

--- Several requests one after another: http.connect(server). The caller closes it.
function server:connect(timeout_s)
  return http.connect(self, timeout_s)
end

--- An answer to be read as it comes; see http.stream.
function server:stream(method, target, options)
  return http.stream(self, method, target, options)
end

-- The log -------------------------------------------------------------------------------------------------------------

--- All log lines so far, decoded; lines that are no JSON come as {text=line}.
function server:log()
  local lines = {}
  for line in files.read(self.log_path):gmatch("([^\n]*)\n") do
    local ok, entry = pcall(json.decode, line)
    lines[#lines + 1] = ok and type(entry) == "table" and entry or { text = line }
  end
  return lines
end

--- The whole log as text: to assert that a secret is not in it.
function server:log_text()
  return files.read(self.out_path) .. files.read(self.log_path)
end

--- Waits for a log line that check(line) accepts and returns it. `after`: how many of the first lines to leave out.
function server:wait_log(check, after, timeout_ms)
  return process.poll(timeout_ms or 10000, function()
    local lines = self:log()
    for i = (after or 0) + 1, #lines do
      if check(lines[i]) then
        return lines[i]
      end
    end
  end) or error("no such log line; the log is:\n" .. files.read(self.log_path), 2)
end

-- Life ----------------------------------------------------------------------------------------------------------------

--- Sends SIGHUP and waits until the log tells what came of it; returns that line ("generation N serves …" or "the reload
--- was refused …", with level "error").
function server:reload()
  local before = #self:log()
  self.child:kill("sighup")
  return self:wait_log(function(line)
    return line.area == "tables" and (line.msg:find("^generation %d+ serves") or line.msg:find("reload was refused"))
  end, before)
end

--- Ends the server by SIGTERM; raises unless it exits with 0 in time and no sanitizer had anything to say.
function server:stop()
  self.stopped = true
  self:signal("sigterm")
  local ended = self.child:wait(STOP_TIMEOUT_MS)
  if not ended then
    self.child:kill("sigkill")
    self.child:wait(5000)
  end
  local log = self:log_text()
  self:remove_files()
  local faults = {}
  for _, report in ipairs(REPORTS) do
    if log:find(report, 1, true) then
      faults[#faults + 1] = "a report of " .. report
    end
  end
  if not ended then
    faults[#faults + 1] = "it did not end after SIGTERM"
  elseif self.child.code ~= 0 or self.child.signal ~= 0 then
    faults[#faults + 1] = ("exit code %d, signal %d"):format(self.child.code, self.child.signal)
  end
  if #faults > 0 then
    error("abxd: " .. table.concat(faults, "; ") .. "\n" .. log, 2)
  end
end

--- `local abxd <close> = server.start()`: stops it, or kills it when the spec failed on the way.
function server:__close(failure)
  if failure then
    self:kill()
  elseif not self.stopped then
    self:stop()
  end
end

--- Ends it without any check and without a chance to clean up, for specs about crashes.
function server:kill()
  self.child:kill("sigkill")
  self.child:wait(5000)
  self:remove_files()
end

-- Leaks ---------------------------------------------------------------------------------------------------------------

--- Every process below the server: {pid=, ppid=, comm=, state=, argv=}.
function server:children()
  return process.descendants(self.pid)
end

function server:descriptor_count()
  local count = 0
  for _ in pairs(assert(process.descriptors(self.pid), "the kernel hides the server's descriptors")) do
    count = count + 1
  end
  return count
end

function server:rss_bytes()
  return process.rss_bytes(self.pid)
end

--- What the server holds now, for assert_settled. Takes one request first, so that what starts lazily has started.
function server:baseline()
  self:get("/health")
  uv.sleep(50)
  return { descriptors = process.descriptors(self.pid), children = #self:children(),
    threads = process.thread_count(self.pid) }
end

--- What is held beyond the baseline, as text; nil where all is back.
local function surplus(self, baseline)
  local extra, count, allowed = {}, 0, 0
  for fd, leads_to in pairs(process.descriptors(self.pid) or {}) do
    count = count + 1
    if baseline.descriptors[fd] ~= leads_to then
      extra[#extra + 1] = ("%d -> %s"):format(fd, leads_to)
    end
  end
  for _ in pairs(baseline.descriptors or {}) do
    allowed = allowed + 1
  end
  if count > allowed then
    return ("%d descriptors, %d before: %s"):format(count, allowed, table.concat(extra, ", "))
  end
  local children = self:children()
  if #children > baseline.children then
    local names = {}
    for i, child in ipairs(children) do
      names[i] = ("%d (%s) %s %s"):format(child.pid, child.comm, child.state, child.argv)
    end
    return ("%d children, %d before: %s"):format(#children, baseline.children, table.concat(names, ", "))
  end
  local threads = process.thread_count(self.pid)
  if threads > baseline.threads + POOL_THREADS then
    return ("%d threads, %d before"):format(threads, baseline.threads)
  end
end

--- For after_each: waits until descriptors, children and threads are back to server:baseline(), else raises with what is
--- left over. The spec closes its own connections first.
function server:assert_settled(baseline)
  assert(self.child:is_running(), "the server has ended")
  local left
  process.poll(SETTLE_TIMEOUT_MS, function()
    left = surplus(self, baseline)
    return not left
  end)
  if left then
    error("the server did not settle: " .. left, 2)
  end
end

return server
