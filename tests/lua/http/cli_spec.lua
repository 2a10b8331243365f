local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local server = require("support.server")

describe("abxd", function()
  local root, base

  before_each(function()
    root = files.mkdtemp()
    base = files.mkdir(root .. "/base")
  end)
  after_each(function()
    files.remove_tree(root)
  end)

  it("version and --help answer", function()
    local result = server.run { "version" }
    assert.equal(0, result.code)
    assert.matches("^abxd %d+%.%d+%.%d+\n$", result.stdout)
    result = server.run { "--help" }
    assert.equal(0, result.code)
    assert.matches("--base-dir", result.stdout, 1, true)
  end)

  it("check finds nothing wrong with what ships", function()
    local result = server.run { "check", "--base-dir", base }
    assert.same({ 0, "" }, { result.code, result.stderr })
    assert.matches("^ok: %d+ routes in %d+ groups, %d+ commands\n$", result.stdout)
  end)

  it("--help says which flags have no effect yet", function()
    local help = server.run({ "--help" }).stdout
    local idle = {}
    for flag in help:gmatch("%-%-([%w-]+) [^\n]*no effect in this version") do
      idle[#idle + 1] = flag
    end
    assert.same({ "mcp-tools" }, idle)
  end)

  it("routes prints the table, as text or JSON", function()
    local result = server.run { "routes", "--base-dir", base }
    assert.equal(0, result.code)
    for _, line in ipairs { "GET +/health ", "POST +/shell/stream ", "POST +/commands/{name} " } do
      assert.matches(line, result.stdout)
    end
    result = server.run { "routes", "--json", "--base-dir", base }
    assert.equal(0, result.code)
    local names = {}
    local decoded = json.decode(result.stdout)
    for _, route in ipairs(decoded.routes or decoded) do
      names[route.name] = route.method .. " " .. route.path .. " " .. route.group
    end
    assert.equal("GET /health core", names.health)
    assert.equal("POST /upload commands", names.upload)
  end)

  describe("stops with 2 and one clear line for", function()
    local cases = {
      { "an unknown flag", { "--nonsense" }, "nonsense" },
      { "a misspelt flag", { "--base-dri", "/x" }, "(did you mean --base-dir?)" },
      { "a command behind flags", { "--port=1", "check" }, "unexpected argument check; the command comes first", true },
      { "an argument too many", { "check", "extra" }, "unexpected argument extra", true },
      { "an origin that is none", { "--allowed-origins", "https://a.example/" }, "scheme://host[:port]" },
      { "an unknown command", { "launch" }, "launch", true },
      { "a flag without value", { "--port" }, "port", true },
      { "a port that is none", { "--port", "x" }, "port" },
      { "a port that is too high", { "--port", "65536" }, "port" },
      { "a missing base", { "--base-dir", "/nonexistent/base" }, "/nonexistent/base", true },
      { "a file as base", { "--base-dir", "/etc/hostname" }, "/etc/hostname", true },
      { "a missing token file", { "--token-file", "/nonexistent/token" }, "/nonexistent/token" },
      { "a missing table directory", { "--lua-dir", "/nonexistent/lua" }, "/nonexistent/lua" },
      { "a missing directory of workers", { "--workers-dir", "/nonexistent/workers" }, "/nonexistent/workers" },
      { "an unknown pack", { "--packs", "nope" }, "nope" },
      { "an unknown log level", { "--log-level", "loud" }, "log" },
      { "a host beyond loopback without token", { "--host", "0.0.0.0" }, "token" },
      { "a limit that is none", { "--limits-processes", "-1" }, "processes" },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        local args = { table.unpack(case[2]) }
        if not case[4] then
          table.move({ "--base-dir", base, "--port", "0" }, 1, 4, #args + 1, args)
        end
        local result = server.run(args)
        assert.equal(2, result.code)
        assert.matches(case[3], result.stderr, 1, true)
        if not case[1]:find("table directory") and not case[1]:find("pack") then -- those list the faults of the tables
          assert.equal(1, select(2, result.stderr:gsub("\n", "")), result.stderr)
        end
      end)
    end

    it("a faulty configuration file, with its line", function()
      files.write(root .. "/server.lua", "return {\n  prot = 1,\n}\n")
      local result = server.run { "--config", root .. "/server.lua", "--base-dir", base, "--port", "0" }
      assert.equal(2, result.code)
      assert.matches("prot", result.stderr)
      files.write(root .. "/server.lua", "return {\n  port = = 1,\n}\n")
      result = server.run { "--config", root .. "/server.lua", "--base-dir", base, "--port", "0" }
      assert.equal(2, result.code)
      assert.matches("server%.lua:2:", result.stderr)
    end)

    it("all faults of a configuration file at once, for check and serve", function()
      files.write(root .. "/server.lua", "return {\n  -- port = 1,\n  prot = 1,\n  limits = 5,\n  port = 'x',\n}\n")
      local path = root .. "/server.lua"
      for _, verb in ipairs { "check", "serve" } do
        local result = server.run { verb, "--config", path, "--base-dir", base, "--lua-dir", root .. "/none" }
        assert.same({ 2, "" }, { result.code, result.stdout })
        assert.equal(path .. ":3: unknown key 'prot' (did you mean 'port'?)\n" .. path ..
          ":4: limits must be a table of names\n" .. path .. ":5: port must be a whole number, not a string\n",
          result.stderr)
      end
    end)

    it("tables at the default place that are not there", function()
      local result = server.run({ "check" }, { cwd = root })
      assert.same({ 2, "abxd: no tables at ./lua: run abxd in its source tree, or say --lua-dir\n" },
        { result.code, result.stderr })
    end)

    it("a misspelt --token, which is not told", function()
      for _, args in ipairs { { "--tokne", "s3cret" }, { "--tokne=s3cret" } } do
        local result = server.run(args)
        assert.equal(2, result.code)
        assert.is_nil(result.stderr:find("s3cret", 1, true))
      end
    end)

    it("tables, commands or configuration inside the base", function()
      for _, name in ipairs { "lua", "config" } do
        files.copy_tree(files.source_dir .. "/" .. name, base .. "/" .. name)
      end
      for _, args in ipairs { { "--lua-dir", base .. "/lua" }, { "--commands", base .. "/config/commands.lua" },
        { "--config", base .. "/config/server.lua" } } do
        local result = server.run { args[1], args[2], "--base-dir", base, "--port", "0" }
        assert.equal(2, result.code)
        assert.matches(base, result.stderr, 1, true)
      end
    end)

    it("a link among the tables that leads into the base", function()
      local tables = server.copy_tables()
      files.copy_tree(tables.lua_dir .. "/routes", base .. "/routes")
      files.remove_tree(tables.lua_dir .. "/routes")
      require("luv").fs_symlink(base .. "/routes", tables.lua_dir .. "/routes")
      local result = server.run { "--lua-dir", tables.lua_dir, "--base-dir", base, "--port", "0" }
      files.remove_tree(tables.dir)
      assert.equal(2, result.code)
      assert.matches("within reach of clients", result.stderr, 1, true)
    end)

    it("a faulty table, with file and line", function()
      local tables = server.copy_tables()
      files.write(tables.lua_dir .. "/routes/x.lua", "return {\n  group = = 1\n}\n")
      local result = server.run { "--lua-dir", tables.lua_dir, "--base-dir", base, "--port", "0" }
      files.remove_tree(tables.dir)
      assert.equal(2, result.code)
      assert.matches("x%.lua:2: ", result.stderr)
    end)
  end)

  it("takes lists with commas or blanks, and the empty one as core alone", function()
    for list, wanted in pairs { ["commands, system\tprocess"] = "commands,core,process,system", [""] = "core" } do
      local abxd <close> = server.start { args = { "--enabled-groups", list } }
      local on = {}
      for _, group in ipairs(check.ok(abxd:get("/capabilities")).groups) do
        if group.enabled then
          on[#on + 1] = group.name
        end
      end
      table.sort(on)
      assert.equal(wanted, table.concat(on, ","))
    end
  end)

  it("logs its pid, and variables that it does not know, without their values", function()
    local abxd <close> = server.start { env = { ABX_SERVER_BASE_DRI = "/v4lue", ABX_SERVER_X = "v4lue" } }
    local seen = {}
    for _, line in ipairs(abxd:log()) do
      seen[#seen + 1] = line.area == "server" and line.msg or nil
    end
    table.sort(seen)
    local all = table.concat(seen, "\n")
    assert.matches("unknown variable ABX_SERVER_BASE_DRI is ignored (did you mean ABX_SERVER_BASE_DIR?)", all, 1, true)
    assert.matches("unknown variable ABX_SERVER_X is ignored", all, 1, true)
    assert.matches("pid " .. abxd.pid, all, 1, true)
    assert.is_nil(abxd:log_text():find("v4lue", 1, true))
  end)

  it("takes the highest of file, environment and flags", function()
    files.write(root .. "/server.lua", "return { limits = { processes = 11, requests = 12, terminals = 13 } }\n")
    local tables = { lua_dir = files.source_dir .. "/lua", commands = files.source_dir .. "/config/commands.lua",
      config = root .. "/server.lua" }
    local abxd <close> = server.start { tables = tables, env = { ABX_SERVER_LIMITS_REQUESTS = "22",
      ABX_SERVER_LIMITS_TERMINALS = "23" }, args = { "--limits-terminals=33" } }
    local limits = check.ok(abxd:get("/capabilities")).limits
    assert.same({ 11, 22, 33 }, { limits.processes, limits.requests, limits.terminals })
  end)

  it("with the base / serves all but its own tables", function()
    local secret = root .. "/tables"
    files.mkdir(secret)
    files.copy_tree(files.source_dir .. "/lua", secret .. "/lua")
    files.copy_tree(files.source_dir .. "/config", secret .. "/config")
    local tables = { lua_dir = secret .. "/lua", commands = secret .. "/config/commands.lua",
      config = secret .. "/config/server.lua" }
    local abxd <close> = server.start { base_dir = "/", tables = tables }
    assert.equal(files.read("/etc/hostname"), abxd:get("/download?path=etc/hostname").body)
    assert.equal(files.read("/etc/hostname"), abxd:get("/download?path=/etc/hostname").body)
    for _, path in ipairs { tables.config, tables.commands, tables.lua_dir .. "/routes/core.lua" } do
      check.problem(abxd:get("/download?path=" .. path), 403, "permission_denied", "path")
      check.problem(abxd:request("POST", "/upload?path=" .. path, { body = "x" }), 403, "permission_denied", "path")
    end
    check.problem(abxd:get("/download?path=/proc/self/environ"), 400, "not_a_regular_file", "path")
    check.problem(abxd:get("/download?path=/sys/kernel/uevent_seqnum"), 400, "not_a_regular_file", "path")
    local answer = abxd:get("/download?archive=tar.gz&path=" .. secret)
    files.write(root .. "/archive", answer.body)
    local names = require("support.process").run({ "tar", "tzf", root .. "/archive" }).stdout
    assert.is_nil(names:find("server.lua", 1, true))
    assert.is_nil(names:find("core.lua", 1, true))
  end)
end)
