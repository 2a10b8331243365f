--- Starts a program with its output in files, waits for it, and looks at it through /proc.
local files = require("support.files")
local uv = require("luv")

local process = {}
process.__index = process

local function environment(extra)
  local list = { "PATH=" .. os.getenv("PATH"), "HOME=" .. (os.getenv("HOME") or "/"), "LC_ALL=C.UTF-8" }
  for name, value in pairs(extra or {}) do
    list[#list + 1] = name .. "=" .. value
  end
  return list
end

--- argv[1] is the program. options: env (added to a bare environment), cwd, stdout and stderr (paths; nil: dropped).
--- The program gets SIGKILL when the test runner dies, so that nothing outlives a broken run.
function process.start(argv, options)
  local self = setmetatable({ code = nil, signal = nil }, process)
  local out = options.stdout or "/dev/null"
  local out_fd = assert(uv.fs_open(out, "a", tonumber("644", 8)))
  local err_fd = assert(uv.fs_open(options.stderr or "/dev/null", "a", tonumber("644", 8)))
  local args = { "--pdeathsig", "KILL", "--", table.unpack(argv) }
  self.handle, self.pid = uv.spawn("setpriv", {
    args = args,
    env = environment(options.env),
    cwd = options.cwd,
    stdio = { nil, out_fd, err_fd },
  }, function(code, signal)
    self.code, self.signal = code, signal
    self.handle:close()
  end)
  local why = self.pid
  uv.fs_close(out_fd)
  uv.fs_close(err_fd)
  assert(self.handle, ("%s: %s"):format(argv[1], why))
  return self
end

function process:is_running()
  uv.run("nowait")
  return self.code == nil
end

function process:kill(signal)
  if self:is_running() then
    assert(uv.kill(self.pid, signal))
  end
end

--- Calls check every few milliseconds until it gives something true, which is returned; nil after timeout_ms.
function process.poll(timeout_ms, check)
  local stop = uv.hrtime() + timeout_ms * 1000000
  repeat
    local result = check()
    if result then
      return result
    end
    uv.sleep(5)
    uv.run("nowait")
  until uv.hrtime() > stop
  return check()
end

--- Waits for the end; true, or false when it still runs after timeout_ms.
function process:wait(timeout_ms)
  return process.poll(timeout_ms, function()
    return not self:is_running()
  end) or false
end

--- Runs a program to its end: {code=, signal=, stdout=, stderr=}. options as for start, and timeout_ms (20000).
function process.run(argv, options)
  options = options or {}
  local root = files.mkdtemp()
  local child = process.start(argv, { env = options.env, cwd = options.cwd, stdout = root .. "/out",
    stderr = root .. "/err" })
  local ended = child:wait(options.timeout_ms or 20000)
  if not ended then
    child:kill("sigkill")
    child:wait(5000)
  end
  local result = { code = child.code, signal = child.signal, stdout = files.read(root .. "/out"),
    stderr = files.read(root .. "/err") }
  files.remove_tree(root)
  assert(ended, ("%s did not end; stderr: %s"):format(table.concat(argv, " "), result.stderr))
  return result
end

-- /proc ---------------------------------------------------------------------------------------------------------------

local function slurp(path)
  local file = io.open(path, "rb")
  local content = file and file:read("a")
  if file then
    file:close()
  end
  return content
end

--- {pid=, comm=, state=, ppid=} of a process, nil where there is none.
function process.stat(pid)
  local text = slurp(("/proc/%d/stat"):format(pid))
  local comm, state, ppid = (text or ""):match("^%d+ %((.*)%) (%a) (%d+)")
  return comm and { pid = pid, comm = comm, state = state, ppid = tonumber(ppid) } or nil
end

--- Every process below pid, zombies too.
function process.descendants(pid)
  local by_parent = {}
  for _, name in ipairs(files.list("/proc")) do
    local entry = name:match("^%d+$") and process.stat(tonumber(name))
    if entry then
      by_parent[entry.ppid] = by_parent[entry.ppid] or {}
      table.insert(by_parent[entry.ppid], entry)
    end
  end
  local found, queue = {}, { pid }
  while #queue > 0 do
    for _, entry in ipairs(by_parent[table.remove(queue)] or {}) do
      entry.argv = (slurp(("/proc/%d/cmdline"):format(entry.pid)) or ""):gsub("%z", " ")
      found[#found + 1] = entry
      queue[#queue + 1] = entry.pid
    end
  end
  return found
end

--- What each open descriptor leads to: {[number]="socket:[123]"}. nil where the kernel does not show them.
function process.descriptors(pid)
  local dir = ("/proc/%d/fd"):format(pid)
  local scan = uv.fs_scandir(dir)
  if not scan then
    return nil
  end
  local found = {}
  for name in uv.fs_scandir_next, scan do
    found[tonumber(name)] = uv.fs_readlink(dir .. "/" .. name) or "?"
  end
  return found
end

function process.thread_count(pid)
  return #files.list(("/proc/%d/task"):format(pid))
end

--- CPU seconds that a process's first thread has used: unlike time, it does not grow with what else the machine does.
function process.main_thread_cpu_s(pid)
  return tonumber(slurp(("/proc/%d/task/%d/schedstat"):format(pid, pid)):match("^(%d+)")) / 1e9
end

--- CPU seconds that all threads of a process have used.
function process.cpu_s(pid)
  local sum = 0
  for _, thread in ipairs(files.list(("/proc/%d/task"):format(pid))) do
    local text = slurp(("/proc/%d/task/%s/schedstat"):format(pid, thread))
    sum = sum + (text and tonumber(text:match("^(%d+)")) or 0)
  end
  return sum / 1e9
end

--- Resident bytes now.
function process.rss_bytes(pid)
  local kib = slurp(("/proc/%d/status"):format(pid)):match("VmRSS:%s*(%d+) kB")
  return tonumber(kib) * 1024
end

return process
