local check = require("support.check")
local files = require("support.files")
local fresh_base = require("support.fresh_base")
local http = require("support.http")
local mime = require("mime")
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")
local uv = require("luv")

local MIB = 1024 * 1024

describe("POST /files/write", function()
  local abxd, baseline, outside, base

  lazy_setup(function()
    -- A body of 27 MB is copied on the loop: page faults alone take a third of a second under the sanitizer.
    abxd = server.start { args = { "--limits-cpu-ms", "5000" } }
    baseline = abxd:baseline()
  end)
  lazy_teardown(function()
    abxd:stop()
  end)
  -- Each test begins with a fresh base, and must leave nothing but what it says.
  before_each(function()
    base, outside = fresh_base.begin(abxd)
  end)
  after_each(function()
    fresh_base.check(abxd, baseline)
  end)

  local function write(spec)
    return abxd:post("/files/write", spec)
  end

  local function answer_of(answer, status)
    assert.same({ status, "application/json" }, { answer.status, answer.headers["content-type"], answer.status ~= status
      and answer.body or nil })
    local written = answer:json()
    assert.equal(status == 201, written.created)
    return written
  end
  local function created(answer)
    return answer_of(answer, 201)
  end
  local function replaced(answer)
    return answer_of(answer, 200)
  end

  local function mode_of(path)
    return ("%o"):format(assert(uv.fs_stat(path)).mode & 4095)
  end

  --- What GET /files/stat and /files/read tell as etag too.
  local function etag_of(path)
    local stat = assert(uv.fs_stat(path))
    local function ns(time)
      return ("%x"):format(time.sec * 1000000000 + time.nsec)
    end
    return ('"%x-%x-%s-%s"'):format(stat.ino, stat.size, ns(stat.mtime), ns(stat.ctime))
  end

  describe("of content", function()
    it("makes a file, and its directories", function()
      local written = created(write { path = "a/b/c.txt", content = "hello ü\n" })
      assert.same({ path = base .. "/a/b/c.txt", size = 9, created = true, etag = etag_of(base .. "/a/b/c.txt") }, written)
      assert.equal("hello ü\n", files.read(base .. "/a/b/c.txt"))
      assert.same({ "c.txt" }, files.list(base .. "/a/b"))
    end)

    it("replaces a file, and keeps its mode", function()
      files.write(base .. "/f", "a longer old content")
      uv.fs_chmod(base .. "/f", tonumber("640", 8))
      local written = replaced(write { path = base .. "/f", content = "new" })
      assert.same({ path = base .. "/f", size = 3, created = false, etag = etag_of(base .. "/f") }, written)
      assert.same({ "new", "640" }, { files.read(base .. "/f"), mode_of(base .. "/f") })
      replaced(write { path = "f", content = "", mode = "0600" })
      assert.same({ "", "600" }, { files.read(base .. "/f"), mode_of(base .. "/f") })
      created(write { path = "g", content = "", mode = "4755" })
      assert.equal("4755", mode_of(base .. "/g"))
    end)

    it("keeps owner and extended attributes", function()
      files.write(base .. "/f", "old")
      if process.run({ "chown", "1234:5678", base .. "/f" }).code ~= 0 then
        return skip("owner", "chown needs root")
      end
      local set = process.run { "python3", "-c", "import os, sys; os.setxattr(sys.argv[1], 'user.note', b'v\\0')", base .. "/f" }
      replaced(write { path = "f", content = "new" })
      replaced(write { path = "f", edits = { { old = "new", new = "newer" } } })
      local stat = uv.fs_stat(base .. "/f")
      assert.same({ 1234, 5678, "newer" }, { stat.uid, stat.gid, files.read(base .. "/f") })
      if set.code ~= 0 then
        return skip("xattrs", "no user attributes here")
      end
      assert.equal("b'v\\x00'\n", process.run({ "python3", "-c",
        "import os, sys; print(os.getxattr(sys.argv[1], 'user.note'))", base .. "/f" }).stdout)
    end)

    it("takes any text, and base64 for any bytes", function()
      local text = "\0\1\r\n\u{FFFD}\u{1F600}\u{FEFF}"
      created(write { path = "t", content = text })
      assert.equal(text, files.read(base .. "/t"))
      local bytes = {}
      for byte = 0, 255 do
        bytes[#bytes + 1] = string.char(byte)
      end
      bytes = table.concat(bytes)
      assert.equal(256, created(write { path = "b", content = mime.b64(bytes), encoding = "base64" }).size)
      assert.equal(bytes, files.read(base .. "/b"))
      for _, bad in ipairs { "AA", "AA=A", "AA==\n", "*AAA", "AB==" } do
        check.problem(write { path = "b", content = bad, encoding = "base64" }, 400, "invalid_request", "content")
      end
      assert.equal(bytes, files.read(base .. "/b"))
      assert.same({ "b", "t" }, files.list(base))
    end)

    it("takes many MiB", function()
      for _, size in ipairs { 200 * 1024, 20 * MIB } do
        local content = ("0123456789abcde\n"):rep(size // 16)
        assert.equal(size, write({ path = "big", content = content }):json().size)
        local expected = process.run({ "bash", "-c", ("yes 0123456789abcde | head -c %d | sha256sum"):format(size) })
        assert.equal(expected.stdout:match("^%x+"), check.sha256_of(base .. "/big"))
      end
      check.problem(write { path = "big", content = ("x"):rep(32 * MIB) }, 413, "payload_too_large")
      assert.equal(20 * MIB, uv.fs_stat(base .. "/big").size)
    end)

    it("works on every name", function()
      for _, name in ipairs { "a b", "%41", "n\nl", "ü", "-rf", "~", '"', "\\", ("x"):rep(255) } do
        assert.equal(base .. "/" .. name, created(write { path = name, content = name }).path)
        replaced(write { path = name, content = "+", append = true })
        replaced(write { path = name, edits = { { old = "+", new = "" } } })
        assert.equal(name, files.read(base .. "/" .. name))
      end
      local written = created(write { path_base64 = mime.b64("d\xA4/b\xA4"), content = "x" })
      assert.same({ base .. "/d\u{FFFD}/b\u{FFFD}", mime.b64(base .. "/d\xA4/b\xA4") }, { written.path, written.path_base64 })
      replaced(write { path_base64 = written.path_base64, content = "y" })
      assert.equal("y", files.read(base .. "/d\xA4/b\xA4"))
      assert.equal(10, #files.list(base))
    end)

    it("writes through links that stay inside", function()
      files.write(base .. "/real", "old")
      uv.fs_symlink("real", base .. "/rel")
      uv.fs_symlink(base .. "/real", base .. "/abs")
      uv.fs_symlink("abs", base .. "/chain")
      for _, link in ipairs { "rel", "abs", "chain" } do
        assert.equal(base .. "/real", replaced(write { path = link, content = link }).path)
        replaced(write { path = link, content = "+", append = true })
        replaced(write { path = link, edits = { { old = link, new = "edited" } } })
        assert.equal("edited+", files.read(base .. "/real"))
        assert.equal("link", uv.fs_lstat(base .. "/" .. link).type)
      end
    end)
  end)

  describe("that appends", function()
    it("adds to the end in place, and makes what is missing", function()
      created(write { path = "d/log", content = "one\n", append = true })
      local inode = uv.fs_stat(base .. "/d/log").ino
      local written = replaced(write { path = "d/log", content = mime.b64("two\n\xFF"), encoding = "base64", append = true })
      assert.same({ 9, etag_of(base .. "/d/log") }, { written.size, written.etag })
      assert.same({ "one\ntwo\n\xFF", inode }, { files.read(base .. "/d/log"), uv.fs_stat(base .. "/d/log").ino })
      replaced(write { path = "d/log", content = "", append = true, mode = "0600", if_match = written.etag })
      assert.equal("600", mode_of(base .. "/d/log"))
      check.problem(write { path = "d/log", content = "x", append = true, if_match = written.etag }, 409, "stale_write",
        "if_match")
      check.problem(write { path = "d/log", content = "x", append = true, overwrite = false }, 409, "already_exists", "path")
      assert.equal("one\ntwo\n\xFF", files.read(base .. "/d/log"))
      assert.same({ "log" }, files.list(base .. "/d"))
    end)
  end)

  describe("with edits", function()
    before_each(function()
      files.write(base .. "/f", "local a = 1\r\nlocal b = 1\r\n\xFF\0end")
    end)

    it("replaces what occurs once, one after another", function()
      local written = replaced(write { path = "f", edits = { { old = "a = 1", new = "a = 2" },
        { old = "a = 2\r\n", new = "a = 3\r\n-- ü\r\n" }, { old = "end", new = "" } } })
      assert.equal("local a = 3\r\n-- ü\r\nlocal b = 1\r\n\xFF\0", files.read(base .. "/f"))
      assert.same({ path = base .. "/f", size = 35, created = false, etag = etag_of(base .. "/f") }, written)
      replaced(write { path = "f", edits = { { old = "local", new = "global", all = true } } })
      assert.equal("global a = 3\r\n-- ü\r\nglobal b = 1\r\n\xFF\0", files.read(base .. "/f"))
    end)

    it("refuses what is not there or not alone, and changes nothing", function()
      local old = files.read(base .. "/f")
      local good = { old = "a = 1", new = "a = 2" }
      local cases = {
        { { good, { old = "none", new = "x" } }, "edits[1].old", "occurs 0 times" },
        { { good, good }, "edits[1].old", "occurs 0 times" },
        { { { old = "local", new = "x" }, good }, "edits[0].old", "occurs 2 times" },
        { { { old = "none", new = "x", all = true } }, "edits[0].old", "occurs 0 times" },
        { { { old = "\n", new = "" } }, "edits[0].old", "occurs 2 times" },
        { { { old = "LOCAL A", new = "" } }, "edits[0].old", "occurs 0 times" },
        { { { old = "%w+", new = "" } }, "edits[0].old", "occurs 0 times" },
      }
      for _, case in ipairs(cases) do
        local problem = check.problem(write { path = "f", edits = case[1] }, 409, "ambiguous_edit", case[2])
        assert.truthy(problem.detail:find(case[3], 1, true), problem.detail)
      end
      assert.equal(old, files.read(base .. "/f"))
      assert.same({ "f" }, files.list(base))
    end)

    it("needs a file, not too large", function()
      local edits = { { old = "a", new = "b" } }
      check.problem(write { path = "none", edits = edits }, 404, "file_not_found", "path")
      check.problem(write { path = "no/ne", edits = edits }, 404, "file_not_found", "path")
      process.run { "truncate", "-s", tostring(32 * MIB + 1), base .. "/large" }
      check.problem(write { path = "large", edits = edits }, 413, "payload_too_large", "path")
      process.run { "truncate", "-s", tostring(32 * MIB - 4), base .. "/large" }
      replaced(write { path = "large", content = "tail", append = true })
      replaced(write { path = "large", edits = { { old = "tail", new = "TAIL" } } })
      check.problem(write { path = "large", edits = { { old = "TAIL", new = "TAILS" } } }, 413, "payload_too_large", "path")
      assert.same({ "f", "large" }, files.list(base))
    end)

    it("goes with nothing that makes content", function()
      local edits = { { old = "a = 1", new = "b" } }
      check.problem(write { path = "f" }, 400, "invalid_request", "content")
      check.problem(write { path = "f", edits = edits, content = "" }, 400, "invalid_request", "content")
      check.problem(write { path = "f", edits = edits, append = true }, 400, "invalid_request", "append")
      check.problem(write { path = "f", edits = edits, encoding = "base64" }, 400, "invalid_request", "encoding")
      check.problem(write { path = "f", edits = edits, overwrite = false }, 409, "already_exists", "path")
      assert.same({ "edits[0].old" }, check.faulty_fields(write { path = "f", edits = { { old = "", new = "x" } } }))
      assert.same({ "edits[1].new", "edits[1].old" }, check.faulty_fields(write { path = "f", edits = { edits[1], {} } }))
    end)
  end)

  describe("with if_match", function()
    it("writes only what the client has seen", function()
      local first = created(write { path = "f", content = "one" }).etag
      local second = replaced(write { path = "f", content = "two", if_match = first }).etag
      assert.not_equal(first, second)
      local edits = { { old = "two", new = "" } }
      for _, spec in ipairs { { content = "bad" }, { content = "bad", append = true }, { edits = edits } } do
        spec.path, spec.if_match = "f", first
        local problem = check.problem(write(spec), 409, "stale_write", "if_match")
        assert.truthy(problem.detail:find(second, 1, true))
      end
      assert.equal("two", files.read(base .. "/f"))
      replaced(write { path = "f", content = "three", if_match = "*" })
      local bare = etag_of(base .. "/f"):sub(2, -2) -- its quotes are easily lost
      local header = replaced(write { path = "f", content = "four", if_match = bare }).etag
      local answer = abxd:request("POST", "/files/write", { json = { path = "f", content = "bad" },
        headers = { ["If-Match"] = '"other"' } })
      check.problem(answer, 409, "stale_write", "if_match")
      check.ok(abxd:request("POST", "/files/write", { json = { path = "f", content = "five" },
        headers = { ["If-Match"] = header } }))
      check.problem(write { path = "new", content = "x", if_match = "*" }, 409, "stale_write", "if_match")
      check.problem(write { path = "new/new", content = "x", if_match = second }, 409, "stale_write", "if_match")
      assert.same({ "f" }, files.list(base))
    end)

    --- Both connections increment the number in n, 200 times each: requests of both are on the way at once.
    local function increment(spec_of)
      local stale, left = 0, { 200, 200 }
      local etag = created(write { path = "n", content = "0" }).etag
      local conns = { abxd:connect(), abxd:connect() }
      while left[1] > 0 or left[2] > 0 do
        local before = files.read(base .. "/n")
        assert.equal(etag, etag_of(base .. "/n"))
        for i, conn in ipairs(conns) do
          if left[i] > 0 then
            conn:send_request("POST", "/files/write", { json = spec_of(before, etag) })
          end
        end
        for i, conn in ipairs(conns) do
          if left[i] > 0 then
            local answer = conn:read_response()
            if answer.status == 200 then
              left[i] = left[i] - 1
              etag = answer:json().etag
            else
              check.problem(answer, 409, "stale_write", "if_match")
              stale = stale + 1
            end
          end
        end
      end
      for _, conn in ipairs(conns) do
        conn:close()
      end
      assert.equal("400", files.read(base .. "/n"))
      assert.is_true(stale >= 200, stale) -- one of two, as long as both are there
    end

    it("loses no update of two clients that edit", function()
      increment(function(before, etag)
        return { path = "n", if_match = etag, edits = { { old = before, new = tostring(math.tointeger(before) + 1) } } }
      end)
    end)

    it("loses no update of two clients that replace", function()
      increment(function(before, etag)
        return { path = "n", if_match = etag, content = tostring(math.tointeger(before) + 1) }
      end)
    end)
  end)

  it("keeps lines of writers that append or edit at once whole", function()
    local conns, lines = {}, {}
    for i = 1, 6 do
      conns[i] = abxd:connect()
    end
    for turn = 1, 50 do
      for i, conn in ipairs(conns) do
        local line = ("%d.%d"):format(i, turn)
        lines[#lines + 1] = line
        conn:send_request("POST", "/files/write", { json = { path = "log", append = true,
          content = line .. ("."):rep(1000) .. "\n" } })
      end
      for _, conn in ipairs(conns) do
        local status = conn:read_response().status
        assert.is_true(status == 200 or status == 201)
      end
    end
    local seen = {}
    for line in files.read(base .. "/log"):gmatch("([^\n]*)\n") do
      seen[#seen + 1] = line:match("^(%d+%.%d+)" .. ("%."):rep(1000) .. "$") or line
    end
    table.sort(lines)
    table.sort(seen)
    assert.same(lines, seen)
    for _, conn in ipairs(conns) do
      conn:close()
    end
  end)

  describe("refuses", function()
    local cases = {
      { "no path", {}, 400, "invalid_request", "path" },
      { "the base itself", { path = "." }, 403, "base_dir_protected", "path" },
      { "the base by another name", { path = "d/.." }, 403, "base_dir_protected", "path" },
      { "a parent", { path = "../x" }, 403, "path_outside_base", "path" },
      { "an absolute path outside", { path = "/etc/x" }, 403, "path_outside_base", "path" },
      { "a file of /proc", { path = "/proc/self/comm" }, 403, "path_outside_base", "path" },
      { "a link that leaves", { path = "leaves/x" }, 403, "path_outside_base", "path" },
      { "a file behind a link", { path = "file-leaves" }, 403, "path_outside_base", "path" },
      { "a dangling link that leaves", { path = "dangling" }, 403, "path_outside_base", "path" },
      { "a NUL", { path = "a\0b" }, 400, "invalid_path", "path" },
      { "a name that is too long", { path = ("x"):rep(256) }, 400, "invalid_path", "path" },
      { "a directory", { path = "d" }, 400, "is_a_directory", "path" },
      { "a directory by its slash", { path = "new/" }, 400, "is_a_directory", "path" },
      { "a FIFO", { path = "fifo" }, 400, "not_a_regular_file", "path" },
      { "a file as directory", { path = "f/x" }, 400, "not_a_directory", "path" },
      { "missing parents when they may not be made", { path = "p/x", create_parents = false }, 404, "file_not_found", "path" },
      { "an old file when it may not be replaced", { path = "f", overwrite = false }, 409, "already_exists", "path" },
      { "a mode that is none", { path = "x", mode = "999" }, 400, "invalid_request", "mode" },
      { "an encoding that is none", { path = "x", encoding = "latin1" }, 400, "invalid_request", "encoding" },
      { "an unknown parameter", { path = "x", nonsense = 1 }, 400, "invalid_request", "nonsense" },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        files.mkdir(base .. "/d")
        files.write(base .. "/f", "old")
        uv.fs_symlink(outside, base .. "/leaves")
        uv.fs_symlink(outside .. "/keep", base .. "/file-leaves")
        uv.fs_symlink(outside .. "/new", base .. "/dangling")
        process.run { "mkfifo", base .. "/fifo" }
        for _, append in ipairs { false, true } do
          local spec = { content = "hello", append = append }
          for name, value in pairs(case[2]) do
            spec[name] = value
          end
          check.problem(write(spec), case[3], case[4], case[5])
        end
        assert.same({ "d", "dangling", "f", "fifo", "file-leaves", "leaves" }, files.list(base))
        assert.same({}, files.list(base .. "/d"))
        assert.equal("old", files.read(base .. "/f"))
      end)
    end

    it("what owner or folder forbid", function()
      local nobody = process.run({ "id", "-u", "nobody" }).stdout:match("%d+")
      local dir = files.mkdtemp()
      if not nobody or process.run({ "chown", nobody, dir }).code ~= 0 then
        files.remove_tree(dir)
        return skip("owner", "needs root")
      end
      files.mkdir(dir .. "/closed")
      files.write(dir .. "/closed/f", "old")
      files.write(dir .. "/theirs", "old")
      local other = server.start { base_dir = dir,
        prefix = { "unshare", "--fork", "setpriv", "--reuid", nobody, "--clear-groups" } }
      for _, path in ipairs { "closed/f", "theirs" } do
        local edits = { { old = "old", new = "x" } }
        for _, spec in ipairs { { content = "x" }, { content = "x", append = true }, { edits = edits } } do
          spec.path = path
          check.problem(other:post("/files/write", spec), 403, "permission_denied", "path")
        end
        assert.equal("old", files.read(dir .. "/" .. path))
      end
      check.problem(other:post("/files/write", { path = "closed/new/x", content = "" }), 403, "permission_denied", "path")
      assert.equal(201, other:post("/files/write", { path = "own", content = "x" }).status)
      assert.equal(200, other:post("/files/write", { path = "own", content = "y" }).status)
      assert.same({ "closed", "own", "theirs" }, files.list(dir))
      assert.same({ "f" }, files.list(dir .. "/closed"))
      other:stop()
      files.remove_tree(dir)
    end)
  end)

  it("outlives a limit on the size of files", function()
    local limited = server.start { prefix = { "unshare", "--fork", "prlimit", "--fsize=1000000" } }
    files.write(limited.base_dir .. "/f", "old")
    local content = ("x"):rep(2 * MIB)
    for _, spec in ipairs { { content = content }, { content = content, append = true },
      { edits = { { old = "old", new = content } } } } do
      spec.path = "f"
      check.problem(limited:post("/files/write", spec), 413, "payload_too_large", "path")
      assert.equal("old", files.read(limited.base_dir .. "/f"))
    end
    assert.same({ "f" }, files.list(limited.base_dir))
    limited:stop()
  end)

  it("needs JSON", function()
    local answer = abxd:request("POST", "/files/write?path=x", { body = "content", headers = { ["Content-Type"] =
      "text/plain" } })
    check.problem(answer, 415, "unsupported_media_type")
    assert.same({}, files.list(base))
  end)

  it("leaves nothing of a body that breaks off", function()
    files.write(base .. "/f", "old")
    local conn = abxd:connect()
    conn:send(http.head("POST", "/files/write", "localhost", { headers = { ["Content-Type"] = "application/json",
      ["Content-Length"] = 2 * MIB } }) .. '{"path":"f","content":"' .. ("x"):rep(MIB))
    conn:abort()
    abxd:assert_settled(baseline)
    assert.same({ "f" }, files.list(base))
    assert.equal("old", files.read(base .. "/f"))
  end)

  it("never leaves the base while a directory is swapped for a link", function()
    files.mkdir(base .. "/real")
    files.write(base .. "/swap.sh", ("while :; do ln -sfn %s d; ln -sfn real d; done"):format(outside))
    local swapper = process.start({ "bash", "swap.sh" }, { cwd = base })
    local statuses = {}
    for i = 1, 150 do
      local status = write({ path = "d/x", content = "hello", append = i % 2 == 0, create_parents = false }).status
      statuses[status] = true
      assert.is_true(status == 201 or status == 200 or status == 403 or status == 404 or status == 409, tostring(status))
    end
    swapper:kill("sigkill")
    swapper:wait(5000)
    assert.is_true(statuses[200])
    assert.same({ "x" }, files.list(base .. "/real"))
  end)

  it("does not hold the loop up", function()
    local conn = abxd:connect()
    conn:send_request("POST", "/files/write", { json = { path = "f", encoding = "base64",
      content = mime.b64(("x"):rep(20 * MIB)) } })
    check.prompt(abxd, 0.5)
    assert.equal(201, conn:read_response().status)
    conn:close()
  end)
end)
