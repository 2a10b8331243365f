--- What /git refuses, and what it survives: bad parameters, paths that lead away, helpers that die, clients that leave.
local check = require("support.check")
local files = require("support.files")
local git = require("support.git")
local mime = require("mime")
local process = require("support.process")
local server = require("support.server")
local socket = require("socket")
local uv = require("luv")

describe("/git", function()
  local abxd, baseline, outside

  local function helpers()
    local found = {}
    for _, child in ipairs(abxd:children()) do
      if child.argv:find("abxd-helper git ", 1, true) then
        found[#found + 1] = child
      end
    end
    return found
  end

  --- As many status calls at once; their answers.
  local function at_once(count, target)
    local conns, answers = {}, {}
    for i = 1, count do
      conns[i] = abxd:connect()
      conns[i]:send_request("GET", target)
    end
    for i = 1, count do
      answers[i] = conns[i]:read_response()
      conns[i]:close()
    end
    return answers
  end

  --- Both helpers that stay: a call would start the second one, were it missing.
  local function both_helpers()
    for _ = 1, 50 do
      local found = helpers()
      if #found == 2 then
        return found
      end
      at_once(8, "/git/status?path=r")
    end
    error("there are not two helpers")
  end

  lazy_setup(function()
    abxd = server.start { env = { ABX_SERVER_TOKEN = "t", ABX_SERVER_ENABLED_GROUPS = git.groups.ABX_SERVER_ENABLED_GROUPS } }
    git.repository(abxd.base_dir .. "/r", { a = "a\n", ["d/b"] = "b\n" })
    outside = files.mkdtemp()
    git.repository(outside .. "/r", { secret = "s\n" })
    both_helpers()
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
    files.remove_tree(outside)
  end)

  it("is off unless it is enabled", function()
    local plain <close> = server.start()
    for _, request in ipairs { { "GET", "/git/status" }, { "POST", "/git/log" }, { "POST", "/git/nope" } } do
      local problem = check.problem(plain:request(request[1], request[2]), 403, "capability_disabled")
      assert.matches("dev_tools", problem.detail, 1, true)
    end
  end)

  it("needs the token", function()
    assert.equal(401, abxd:request("GET", "/git/status?path=r", { token = false }).status)
    assert.equal(401, abxd:request("POST", "/git/nope", { token = false }).status)
  end)

  it("knows its operations and lists them to who asks for another", function()
    for _, name in ipairs { "nope", "status", "Log", "log%20", "__proto__", "cancel" } do
      local problem = check.problem(abxd:post("/git/" .. name, {}), 404, "operation_not_found", "operation")
      for _, known in ipairs { "init", "clone", "fetch", "pull", "push", "add", "reset", "restore", "commit", "log", "show",
        "diff", "blame", "branch", "checkout", "merge", "stash", "tag", "remote" } do
        assert.matches("%f[%a]" .. known .. "%f[%A]", problem.detail)
      end
    end
  end)

  it("tells all faulty fields at once", function()
    local function faulty(operation, params)
      return check.faulty_fields(abxd:post("/git/" .. operation, params))
    end
    assert.same({ "limit", "nope", "path", "skip" }, faulty("log", { path = 5, limit = 0, skip = "x", nope = true }))
    assert.same({ "author.email", "author.name", "message", "timeout_ms" },
      faulty("commit", { author = { name = "a\0b" }, message = "a\0b", timeout_ms = 0 }))
    assert.same({ "path", "url" }, faulty("clone", {}))
    assert.same({ "paths_base64[0]", "paths_base64[2]" },
      faulty("add", { paths_base64 = { "!", (mime.b64("ok")), (mime.b64("a\0b")) } }))
    assert.same({ "file" }, faulty("blame", {}))
    assert.same({ "credentials.password", "credentials.user" },
      faulty("fetch", { credentials = { password = 5, user = "x" } }))
    assert.same({ "strategy" }, faulty("pull", { strategy = "rebase" }))
    assert.same({ "action" }, faulty("branch", { action = "fly" }))
    check.problem(abxd:post("/git/add", { paths = { "a\0b" } }), 400, "invalid_path", "paths[0]")
    check.problem(abxd:post("/git/log", { path = "" }), 400, "invalid_path", "path")
    check.problem(abxd:get("/git/status?path=r%00"), 400, "invalid_path", "path")
    assert.same({ "ignored", "limit", "x" }, check.faulty_fields(abxd:get("/git/status?limit=-1&ignored=maybe&x=1")))
  end)

  it("takes a path that is not UTF-8 by its bytes", function()
    git.repository(abxd.base_dir .. "/\xa4", { a = "1\n" })
    local answer = check.ok(abxd:get("/git/status?path_base64=" .. (mime.b64(abxd.base_dir .. "/\xa4")):gsub("+", "%%2B")))
    assert.equal(mime.b64(abxd.base_dir .. "/\xa4"), answer.root_base64)
    assert.equal(abxd.base_dir .. "/\u{FFFD}", answer.root)
    assert.same({}, answer.files)
  end)

  describe("never leaves the base:", function()
    lazy_setup(function()
      assert(uv.fs_symlink(outside .. "/r", abxd.base_dir .. "/l"))
      assert(uv.fs_symlink("../..", abxd.base_dir .. "/up"))
      git.repository(abxd.base_dir .. "-evil", { a = "1\n" })
    end)
    lazy_teardown(function()
      files.remove_tree(abxd.base_dir .. "-evil")
      uv.fs_unlink(abxd.base_dir .. "/l")
      uv.fs_unlink(abxd.base_dir .. "/up")
    end)

    for _, path in ipairs { "l", "l/.", "up", "..", "../base-evil", "r/../../base-evil", "OUT/r", "/", "/etc", "BASE-evil" } do
      it(path, function()
        local place = path:gsub("OUT", function()
          return outside
        end):gsub("BASE", function()
          return abxd.base_dir
        end)
        check.problem(abxd:get("/git/status?path=" .. place), 403, "path_outside_base", "path")
        for _, operation in ipairs { "log", "init", "add" } do
          check.problem(abxd:post("/git/" .. operation, { path = place, all = operation == "add" or nil }), 403,
            "path_outside_base", "path")
        end
        check.problem(abxd:post("/git/clone", { path = place .. "/new", url = "r" }), 403, "path_outside_base", "path")
        assert.is_false(files.exists(outside .. "/r/new"))
      end)
    end
  end)

  it("tells what is no repository, no directory, or not there", function()
    files.mkdir(abxd.base_dir .. "/plain")
    for _, operation in ipairs { "log", "show", "diff", "branch", "tag", "stash", "remote" } do
      check.problem(abxd:post("/git/" .. operation, { path = "plain" }), 404, "repository_not_found")
    end
    check.problem(abxd:get("/git/status?path=plain"), 404, "repository_not_found")
    check.problem(abxd:get("/git/status"), 404, "repository_not_found")
    check.problem(abxd:get("/git/status?path=r/a"), 400, "not_a_directory", "path")
    check.problem(abxd:get("/git/status?path=nowhere"), 404, "file_not_found", "path")
  end)

  it("a clone's target must be new or empty, and below the base", function()
    files.mkdir(abxd.base_dir .. "/full")
    files.write(abxd.base_dir .. "/full/x", "")
    files.write(abxd.base_dir .. "/file", "")
    for path, code in pairs { full = "already_exists", file = "already_exists", r = "already_exists" } do
      check.problem(abxd:post("/git/clone", { url = "r", path = path }), 409, code, "path")
    end
    check.problem(abxd:post("/git/clone", { url = "r", path = "." }), 409, "already_exists", "path")
    check.problem(abxd:post("/git/clone", { url = "r", path = "file/x" }), 400, "not_a_directory", "path")
  end)

  it("a clone that fails leaves nothing, not even the folders made for it", function()
    local answer = abxd:post("/git/clone", { url = "nowhere", path = "made/for/it" })
    assert.is_true(answer.status >= 400 and answer.status < 500, answer.body)
    assert.is_true(process.poll(5000, function()
      return not files.exists(abxd.base_dir .. "/made")
    end))
    files.mkdir(abxd.base_dir .. "/kept")
    assert.is_true(abxd:post("/git/clone", { url = "nowhere", path = "kept/a/b" }).status >= 400)
    assert.is_true(process.poll(5000, function()
      return #files.list(abxd.base_dir .. "/kept") == 0
    end))
  end)

  describe("a clone from a server that stays silent", function()
    local listener, url

    --- The helper of the clone: the one that is neither of the two that stay.
    local function cloning(known)
      return process.poll(10000, function()
        for _, helper in ipairs(helpers()) do
          if not known[helper.pid] then
            return helper.pid
          end
        end
      end)
    end

    local function known_helpers()
      local known = {}
      for _, helper in ipairs(helpers()) do
        known[helper.pid] = true
      end
      return known
    end

    local function nothing_left()
      assert.is_true(process.poll(10000, function()
        return not files.exists(abxd.base_dir .. "/silent")
      end))
      for _, name in ipairs(files.list(abxd.base_dir)) do
        assert.is_nil(name:match("^%.abx%-"), name)
      end
    end

    before_each(function()
      listener = socket.bind("127.0.0.1", 0)
      url = ("http://127.0.0.1:%d/x.git"):format((select(2, listener:getsockname())))
    end)
    after_each(function()
      listener:close()
      nothing_left()
    end)

    it("whose helper is killed is an error", function()
      local known, conn = known_helpers(), abxd:connect()
      conn:send_request("POST", "/git/clone", { json = { url = url, path = "silent/a/b" } })
      uv.kill(cloning(known), "sigkill")
      check.problem(conn:read_response(), 500, "internal_error")
      conn:close()
    end)

    it("is stopped when its client leaves", function()
      local known, conn = known_helpers(), abxd:connect()
      conn:send_request("POST", "/git/clone", { json = { url = url, path = "silent/a/b" } })
      local pid = cloning(known)
      conn:abort()
      assert.is_true(process.poll(10000, function()
        return process.stat(pid) == nil
      end))
    end)

    it("is late when its time is over", function()
      local answer = abxd:post("/git/clone", { url = url, path = "silent/a/b", timeout_ms = 300 })
      assert.matches("git clone", check.problem(answer, 504, "upstream_timeout").detail, 1, true)
    end)
  end)

  it("serves two clients at once by two helpers, and many in turn", function()
    for _, answer in ipairs(at_once(40, "/git/status?path=r")) do
      assert.equal(abxd.base_dir .. "/r", check.ok(answer).root)
    end
    assert.equal(2, #helpers())
  end)

  it("its helpers stand among the processes", function()
    local listed = check.ok(abxd:get("/processes?state=running")).processes
    assert.equal(2, #listed)
    for _, entry in ipairs(listed) do
      assert.same({ "git", "git", "running", abxd.base_dir }, { entry.kind, entry.tag, entry.state, entry.cwd })
    end
  end)

  it("a helper that is killed fails its call at most; the next one works", function()
    for _, helper in ipairs(helpers()) do
      uv.kill(helper.pid, "sigkill")
    end
    local failed = 0
    for _, answer in ipairs(at_once(4, "/git/status?path=r")) do
      if answer.status ~= 200 then
        check.problem(answer, 500, "internal_error")
        failed = failed + 1
      end
    end
    assert.is_true(failed <= 2)
    assert.equal("main", check.ok(abxd:get("/git/status?path=r")).branch)
  end)

  it("a helper that is killed in a call says so, and how", function()
    for _, helper in ipairs(both_helpers()) do
      uv.kill(helper.pid, "sigstop")
    end
    local conns = {}
    for i = 1, 2 do
      conns[i] = abxd:connect()
      conns[i]:send_request("GET", "/git/status?path=r")
    end
    uv.sleep(300)
    for _, helper in ipairs(helpers()) do
      uv.kill(helper.pid, "sigkill")
    end
    for i = 1, 2 do
      local problem = check.problem(conns[i]:read_response(), 500, "internal_error")
      assert.matches("signal 9", problem.detail, 1, true)
      conns[i]:close()
    end
    assert.equal("main", check.ok(abxd:get("/git/status?path=r")).branch)
  end)

  it("one that does not end in time is 504 and names the operation", function()
    for _, helper in ipairs(both_helpers()) do
      uv.kill(helper.pid, "sigstop")
    end
    local problem = check.problem(abxd:get("/git/status?path=r&timeout_ms=50"), 504, "upstream_timeout")
    assert.matches("git status", problem.detail, 1, true)
    for _, helper in ipairs(helpers()) do
      uv.kill(helper.pid, "sigkill")
    end
    assert.is_true(process.poll(5000, function() -- a call that comes before the server knows fails with them
      return abxd:get("/git/status?path=r").status == 200
    end))
  end)

  it("a client that leaves takes its call with it", function()
    for _, helper in ipairs(both_helpers()) do
      uv.kill(helper.pid, "sigstop")
    end
    for _ = 1, 6 do
      local conn = abxd:connect()
      conn:send_request("GET", "/git/status?path=r")
      uv.sleep(20)
      conn:abort()
    end
    -- Those that ran are given up after their grace, with the helpers that do not answer.
    assert.equal("main", check.ok(abxd:get("/git/status?path=r")).branch)
  end)

  it("a shutdown does not wait for a helper that hangs", function()
    local other = server.start { env = git.groups }
    git.repository(other.base_dir .. "/r", { a = "1\n" })
    check.ok(other:get("/git/status?path=r"))
    for _, child in ipairs(other:children()) do
      uv.kill(child.pid, "sigstop")
    end
    local conn = other:connect()
    conn:send_request("GET", "/git/status?path=r")
    uv.sleep(100)
    other:signal("sigterm")
    local answer = conn:read_response()
    assert.is_true(answer.status == 500 or answer.status == 503, answer.body)
    conn:close()
    other:stop()
  end)
end)
