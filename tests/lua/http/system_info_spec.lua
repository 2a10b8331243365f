local check = require("support.check")
local files = require("support.files")
local process = require("support.process")
local server = require("support.server")
local json = require("support.json")
local uv = require("luv")

describe("GET /system/info", function()
  local function told_by(...)
    return (process.run({ ... }).stdout:gsub("\n$", ""))
  end

  local function info(abxd)
    return check.ok(abxd:get("/system/info"))
  end

  it("tells what this machine and its system are", function()
    local abxd <close> = server.start()
    local answer = info(abxd)
    local release = {}
    for name, variable in pairs { id = "ID", name = "NAME", version = "VERSION_ID" } do
      release[name] = told_by("sh", "-c", ". /etc/os-release; printf %s \"${" .. variable .. ":-unknown}\"")
    end
    assert.same(release, answer.os)
    assert.equal(told_by("uname", "-n"), answer.hostname)
    assert.equal(told_by("uname", "-r"), answer.kernel)
    assert.equal(told_by("uname", "-m"), answer.arch)
    assert.equal(tonumber(told_by("nproc")), answer.cpu.count)
    assert.is_true(#answer.cpu.model > 0)
    local total = tonumber(files.read("/proc/meminfo"):match("MemTotal:%s*(%d+) kB")) * 1024
    assert.equal(total, answer.memory.total_bytes)
    assert.is_true(answer.memory.limit_bytes == json.null or answer.memory.limit_bytes > 0)
    local user = { name = told_by("id", "-un"), uid = tonumber(told_by("id", "-u")), gid = tonumber(told_by("id", "-g")) }
    assert.same(user, answer.user)
    assert.equal(files.read("/proc/1/comm"):gsub("\n$", ""), answer.pid1)
    local uptime_ms = tonumber(files.read("/proc/uptime"):match("^[%d.]+")) * 1000
    assert.is_true(answer.uptime_ms > 0 and answer.uptime_ms <= uptime_ms)
  end)

  it("tells what the server is", function()
    local abxd <close> = server.start()
    local answer, health = info(abxd), check.ok(abxd:get("/health"))
    assert.equal(abxd.base_dir, answer.base_dir)
    assert.equal(health.version, answer.server.version)
    assert.equal(abxd.pid, answer.server.pid)
    assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$", answer.server.started_at)
  end)

  it("tells versions as the tools themselves do", function()
    local abxd <close> = server.start()
    local tools = info(abxd).tools
    assert.equal(process.run({ "python3", "--version" }).stdout:match("Python (%S+)"), tools.python3)
    assert.equal(process.run({ "git", "--version" }).stdout:match("version (%S+)"), tools.git)
    assert.equal(process.run({ "bash", "--version" }).stdout:match("version ([%d.]+)"), tools.bash)
    assert.is_true(tools.chromium == json.null or type(tools.chromium) == "string")
  end)

  describe("with tools of the test's own", function()
    local root, dir, log

    --- A shell script that logs each of its runs.
    local function tool(name, text, mode)
      files.write(dir .. "/" .. name, ("#!/bin/sh\necho %s \"$@\" >>%s\n%s\n"):format(name, log, text))
      assert(uv.fs_chmod(dir .. "/" .. name, mode or tonumber("755", 8)))
    end

    local function runs()
      local lines = {}
      for line in files.read(log):gmatch("[^\n]+") do
        lines[#lines + 1] = line
      end
      table.sort(lines)
      return lines
    end

    local function start(options)
      options = options or {}
      options.prefix = { "env", "PATH=" .. dir }
      return server.start(options)
    end

    --- Those that are there.
    local function present(answer)
      local found = {}
      for name, version in pairs(answer.tools) do
        found[name] = version ~= json.null and version or nil
      end
      return found
    end

    before_each(function()
      root = files.mkdtemp()
      dir, log = files.mkdir(root .. "/bin"), root .. "/log"
      files.write(log, "")
      -- What the command line of a test's server may need.
      assert(uv.fs_symlink("/usr/bin/setarch", dir .. "/setarch"))
    end)
    after_each(function()
      files.remove_tree(root)
    end)

    it("asks each file once, and again when it changes", function()
      tool("python3", "echo Python 3.99.1")
      tool("go", "echo go version go1.21.5 linux/amd64")
      tool("java", "echo 'openjdk version \"17.0.1\" 2021-10-19' >&2")
      tool("google-chrome", "echo 'Google Chrome 120.0.6099.1 '")
      local abxd <close> = start()
      local expected = { python3 = "3.99.1", go = "1.21.5", java = "17.0.1", chromium = "120.0.6099.1" }
      assert.same(expected, present(info(abxd)))
      local asked = { "go version", "google-chrome --version", "java -version", "python3 --version" }
      assert.same(asked, runs())

      local baseline = abxd:baseline()
      for _ = 1, 3 do
        assert.same(expected, present(info(abxd)))
      end
      assert.same(asked, runs())
      abxd:assert_settled(baseline)

      tool("python3", "echo Python 3.100.22")
      assert(uv.fs_unlink(dir .. "/java"))
      tool("chromium", "echo Chromium 121.0")
      expected = { python3 = "3.100.22", go = "1.21.5", chromium = "121.0" }
      assert.same(expected, present(info(abxd)))
      assert.same({ "chromium --version", "go version", "google-chrome --version", "java -version", "python3 --version",
        "python3 --version" }, runs())
    end)

    it("asks once for many that want to know at once", function()
      for _, name in ipairs { "python3", "ruby", "git" } do
        tool(name, "/bin/sleep 0.2; echo Python 3.1, ruby 3.1, git version 3.1")
      end
      local abxd <close> = start()
      local expected = { python3 = "3.1", ruby = "3.1", git = "3.1" }
      local conns = {}
      for i = 1, 12 do
        conns[i] = abxd:connect()
        conns[i]:send_request("GET", "/system/info")
      end
      for _, conn in ipairs(conns) do
        assert.same(expected, present(check.ok(conn:read_response("GET"))))
        conn:close()
      end
      assert.same({ "git --version", "python3 --version", "ruby --version" }, runs())
    end)

    it("takes no harm from tools that say nothing, too much or nonsense, or wait for input", function()
      tool("gcc", "exit 1")
      tool("git", "exec /usr/bin/yes 'version 9.9 is a lie?'")
      tool("cmake", "printf 'cmake version 3.1\\377\\000\\n'")
      tool("npm", "printf '\\377\\376\\n'")
      tool("perl", "if read line; then exit 1; else echo 'This is perl 5, (v5.36.0) built'; fi")
      tool("ruby", "echo ruby 3." .. ("1"):rep(200))
      tool("curl", "kill -9 $$")
      tool("make", "", tonumber("644", 8))
      files.mkdir(dir .. "/node")
      assert(uv.fs_symlink("/nowhere", dir .. "/rg"))
      files.write(dir .. "/jq", "\127ELFnot")
      assert(uv.fs_chmod(dir .. "/jq", tonumber("755", 8)))
      local abxd <close> = start()
      local baseline = abxd:baseline()
      local found = present(info(abxd))
      found.git = nil -- it may have said something before it was too much
      assert.same({ gcc = "unknown", cmake = "3.1", npm = "unknown", perl = "5.36.0", ruby = "3." .. ("1"):rep(62),
        curl = "unknown", jq = "unknown" }, found)
      assert.is_true(abxd:rss_bytes() < 400 * 1024 * 1024)
      local asked = runs()
      info(abxd)
      assert.same(asked, runs())
      abxd:assert_settled(baseline)
    end)

    it("gives up a tool that hangs, and serves others in the meantime", function()
      local sleep = check.sleep(1000)
      tool("node", "trap '' TERM\n/bin/" .. sleep .. "\n/bin/" .. sleep)
      tool("python3", "echo Python 3.1")
      local abxd <close> = start()
      local baseline = abxd:baseline()
      local conn = abxd:connect(60)
      conn:send_request("GET", "/system/info")
      assert.is_true(process.poll(10000, function()
        return #runs() == 2
      end))
      check.prompt(abxd, 0.1)
      check.unanswered(conn)
      assert.same({ node = "unknown", python3 = "3.1" }, present(check.ok(conn:read_response("GET"))))
      conn:close()
      assert.equal(0, check.gone("/bin/" .. sleep))
      assert.same({ node = "unknown", python3 = "3.1" }, present(info(abxd)))
      assert.same({ "node --version", "python3 --version" }, runs())
      abxd:assert_settled(baseline)
    end)

    it("stops asking when its client leaves, and asks anew for the next", function()
      local sleep = check.sleep(1001)
      tool("node", "exec /bin/" .. sleep)
      local abxd <close> = start()
      local baseline = abxd:baseline()
      local conn = abxd:connect()
      conn:send_request("GET", "/system/info")
      assert.is_true(process.poll(10000, function()
        return #check.pids_of("/bin/" .. sleep) == 1
      end))
      conn:close()
      assert.equal(0, check.gone("/bin/" .. sleep))
      tool("node", "echo v20.1.0")
      assert.same({ node = "v20.1.0" }, { node = "v" .. present(info(abxd)).node })
      abxd:assert_settled(baseline)
    end)

    it("asks one after another where no more processes may run", function()
      for _, name in ipairs { "python3", "ruby", "git" } do
        tool(name, "/bin/sleep 0.1; echo Python 3.1, ruby 3.1, git version 3.1")
      end
      local config = root .. "/limits.lua"
      files.write(config, "return { limits = { processes = 1 } }")
      local abxd <close> = start { args = { "--config", config } }
      assert.same({ python3 = "3.1", ruby = "3.1", git = "3.1" }, present(info(abxd)))
    end)
  end)
end)
