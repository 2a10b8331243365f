local check = require("support.check")
local files = require("support.files")
local fresh_base = require("support.fresh_base")
local mime = require("mime")
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")
local uv = require("luv")

local function octal(path)
  return ("%o"):format(assert(uv.fs_lstat(path)).mode & 4095)
end

local function python(script, path)
  return process.run { "python3", "-c", script, path }
end

describe("POST /files/copy", function()
  local abxd, baseline, base, outside

  lazy_setup(function()
    abxd = server.start()
    baseline = abxd:baseline()
  end)
  lazy_teardown(function()
    abxd:stop()
  end)
  before_each(function()
    base, outside = fresh_base.begin(abxd)
  end)
  after_each(function()
    fresh_base.check(abxd, baseline)
  end)

  local function copy(source, destination, options)
    local body = { source = source, destination = destination }
    for name, value in pairs(options or {}) do
      body[name] = value
    end
    return abxd:post("/files/copy", body)
  end

  local function make(path, content)
    files.write(base .. "/" .. path, content)
    return path
  end

  local function set_times(path, atime, mtime)
    assert(uv.fs_utime(path, atime, mtime))
  end

  describe("of a file", function()
    it("keeps content, mode and times, and tells the entry", function()
      make("a", "hello")
      uv.fs_chmod(base .. "/a", tonumber("4751", 8))
      set_times(base .. "/a", 1000000000.25, 1234567890.125)
      local answer = check.ok(copy("a", "new/dir/b"))
      assert.same({ base .. "/a", base .. "/new/dir/b", 1, 5 },
        { answer.source, answer.destination, answer.files, answer.bytes })
      assert.same({ base .. "/new/dir/b", "b", "file", 5, "4751", "2009-02-13T23:31:30.125Z" }, {
        answer.entry.path, answer.entry.name, answer.entry.type, answer.entry.size, answer.entry.mode,
        answer.entry.modified_at,
      })
      local stat = uv.fs_stat(base .. "/new/dir/b")
      assert.same({ 1234567890, 125000000 }, { stat.mtime.sec, stat.mtime.nsec })
      assert.same({ "hello", "hello" }, { files.read(base .. "/new/dir/b"), files.read(base .. "/a") })
      assert.same({ "b" }, files.list(base .. "/new/dir"))
    end)

    it("replaces only with overwrite, at once and as a whole", function()
      make("a", "new")
      make("b", "the old one")
      uv.fs_chmod(base .. "/b", tonumber("600", 8))
      local held = assert(io.open(base .. "/b", "rb"))
      check.problem(copy("a", "b"), 409, "already_exists", "destination")
      assert.equal("the old one", files.read(base .. "/b"))
      check.ok(copy("a", "b", { overwrite = true }))
      assert.same({ "new", "644", "the old one" }, { files.read(base .. "/b"), octal(base .. "/b"), held:read("a") })
      held:close()
      assert.same({ "a", "b" }, files.list(base))
    end)

    it("onto another name of itself parts the two", function()
      make("a", "one")
      assert(uv.fs_link(base .. "/a", base .. "/b"))
      check.problem(copy("a", "b"), 409, "already_exists", "destination")
      check.ok(copy("a", "b", { overwrite = true }))
      assert.same({ 1, 1, "one" },
        { uv.fs_stat(base .. "/a").nlink, uv.fs_stat(base .. "/b").nlink, files.read(base .. "/b") })
    end)

    it("keeps holes", function()
      local file = assert(io.open(base .. "/sparse", "wb"))
      file:seek("set", 8 * 1024 * 1024)
      file:write("end")
      file:seek("set", 512 * 1024 * 1024)
      file:write("!")
      file:close()
      local answer = check.ok(copy("sparse", "copy"))
      local from, to = uv.fs_stat(base .. "/sparse"), uv.fs_stat(base .. "/copy")
      assert.same({ from.size, from.size }, { to.size, answer.bytes })
      assert.is_true(to.blocks <= from.blocks, ("%d blocks became %d"):format(from.blocks, to.blocks))
      file = assert(io.open(base .. "/copy", "rb"))
      file:seek("set", 8 * 1024 * 1024)
      assert.equal("end\0", file:read(4))
      file:seek("set", 512 * 1024 * 1024)
      assert.equal("!", file:read("a"))
      file:close()
    end)

    it("keeps a hole at the end", function()
      make("tail", "head")
      local fd = assert(uv.fs_open(base .. "/tail", "r+", 0))
      assert(uv.fs_ftruncate(fd, 64 * 1024 * 1024))
      uv.fs_close(fd)
      check.ok(copy("tail", "copy"))
      local to = uv.fs_stat(base .. "/copy")
      assert.same({ 64 * 1024 * 1024, true }, { to.size, to.blocks < 2048 })
    end)

    it("larger than any step is exact", function()
      assert.equal(0, process.run({ "dd", "if=/dev/urandom", "of=" .. base .. "/big", "bs=1M", "count=40" }).code)
      assert.equal(40 * 1024 * 1024, check.ok(copy("big", "copy")).bytes)
      assert.equal(check.sha256_of(base .. "/big"), check.sha256_of(base .. "/copy"))
    end)

    it("keeps extended attributes", function()
      make("a", "x")
      local set = python("import os,sys; os.setxattr(sys.argv[1], 'user.note', b'kept\\0\\xff')", base .. "/a")
      if set.code ~= 0 then
        return skip("copy_xattrs", "no extended attributes here: " .. set.stderr:match("[^\n]*\n*$"))
      end
      check.ok(copy("a", "b"))
      local got = python("import os,sys; print(os.getxattr(sys.argv[1], 'user.note'))", base .. "/b")
      assert.equal("b'kept\\x00\\xff'\n", got.stdout)
    end)

    it("of a link is a link, also a dangling one or one that leads outside", function()
      make("a", "target")
      for name, target in pairs { rel = "a", abs = base .. "/a", dangling = "nowhere", out = outside .. "/keep" } do
        assert(uv.fs_symlink(target, base .. "/" .. name))
        local answer = check.ok(copy(name, name .. "2"))
        assert.same({ 0, 0, "symlink", target }, { answer.files, answer.bytes, answer.entry.type, answer.entry.target })
        assert.equal(target, uv.fs_readlink(base .. "/" .. name .. "2"))
      end
    end)

    it("replaces a link and not what it leads to", function()
      make("a", "new")
      make("target", "old")
      for _, target in ipairs { "target", outside .. "/keep", "nowhere" } do
        uv.fs_unlink(base .. "/link")
        assert(uv.fs_symlink(target, base .. "/link"))
        check.problem(copy("a", "link"), 409, "already_exists", "destination")
        check.ok(copy("a", "link", { overwrite = true }))
        assert.same({ "file", "new", "old" },
          { uv.fs_lstat(base .. "/link").type, files.read(base .. "/link"), files.read(base .. "/target") })
      end
      assert.is_false(files.exists(base .. "/nowhere"))
    end)

    it("makes a FIFO again and refuses sockets and devices at once", function()
      assert.equal(0, process.run({ "mkfifo", "-m", "640", base .. "/fifo" }).code)
      assert.same({ "fifo", "640" }, { check.ok(copy("fifo", "fifo2")).entry.type, octal(base .. "/fifo2") })
      local pipe = uv.new_pipe(false)
      assert(pipe:bind(base .. "/socket"))
      check.problem(copy("socket", "s2"), 400, "not_a_regular_file", "source")
      pipe:close()
      local made = process.run { "mknod", base .. "/null", "c", "1", "3" }
      if made.code == 0 then
        check.problem(copy("null", "n2"), 400, "not_a_regular_file", "source")
        uv.fs_unlink(base .. "/null")
      end
      uv.fs_unlink(base .. "/socket")
      assert.same({ "fifo", "fifo2" }, files.list(base))
    end)

    it("with any name, by what a list returned", function()
      local names = { "b\xA4.txt", "n\nl", "-rf", "%41.txt", "a%2fb", "\"q'.txt", "~", ("x"):rep(255), " " }
      for _, name in ipairs(names) do
        make(name, name)
        local answer = check.ok(abxd:post("/files/copy", {
          source_base64 = mime.b64(base .. "/" .. name), destination_base64 = mime.b64("to/" .. name),
        }))
        assert.equal(name, files.read(base .. "/to/" .. name))
        local is_text = utf8.len(name) ~= nil
        assert.equal(not is_text and mime.b64(base .. "/to/" .. name) or nil, answer.destination_base64)
        assert.equal(not is_text and mime.b64(base .. "/" .. name) or nil, answer.source_base64)
      end
    end)
  end)

  describe("of a tree", function()
    local function make_tree()
      files.mkdir(base .. "/t")
      files.mkdir(base .. "/t/sub")
      files.mkdir(base .. "/t/empty")
      make("t/a", "aa")
      make("t/sub/b", "bbb")
      assert(uv.fs_link(base .. "/t/a", base .. "/t/sub/a2"))
      assert(uv.fs_link(base .. "/t/sub/b", base .. "/t/sub/b2"))
      assert(uv.fs_symlink("../a", base .. "/t/sub/l"))
      assert.equal(0, process.run({ "mkfifo", base .. "/t/fifo" }).code)
      uv.fs_chmod(base .. "/t/sub", tonumber("555", 8))
      for _, path in ipairs { "/t/sub/b", "/t/sub", "/t/empty", "/t" } do
        set_times(base .. path, 1100000000.5, 1200000000.75)
      end
    end

    it("keeps links, hard links, modes and times", function()
      make_tree()
      local answer = check.ok(copy("t", "deep/u"))
      assert.same({ 4, 5, "directory", base .. "/deep/u" },
        { answer.files, answer.bytes, answer.entry.type, answer.entry.path })
      local u = base .. "/deep/u"
      assert.same({ "a", "empty", "fifo", "sub" }, files.list(u))
      assert.same({ "a2", "b", "b2", "l" }, files.list(u .. "/sub"))
      assert.same({ "u" }, files.list(base .. "/deep"))
      assert.same({ "aa", "bbb", "../a" },
        { files.read(u .. "/sub/a2"), files.read(u .. "/sub/b2"), uv.fs_readlink(u .. "/sub/l") })
      assert.equal(uv.fs_stat(u .. "/a").ino, uv.fs_stat(u .. "/sub/a2").ino)
      assert.equal(uv.fs_stat(u .. "/sub/b").ino, uv.fs_stat(u .. "/sub/b2").ino)
      assert.not_equal(uv.fs_stat(u .. "/a").ino, uv.fs_stat(base .. "/t/a").ino)
      assert.equal("555", octal(u .. "/sub"))
      for _, path in ipairs { "/sub/b", "/sub", "/empty", "" } do
        local mtime = uv.fs_stat(u .. path).mtime
        assert.same({ path, 1200000000, 750000000 }, { path, mtime.sec, mtime.nsec })
      end
      assert.equal("fifo", uv.fs_lstat(u .. "/fifo").type)
    end)

    it("adds to a directory that is there, with overwrite", function()
      make_tree()
      files.mkdir(base .. "/u")
      files.mkdir(base .. "/u/sub")
      make("u/a", "old")
      make("u/mine", "mine")
      make("u/sub/mine", "mine too")
      uv.fs_chmod(base .. "/u", tonumber("750", 8))
      check.problem(copy("t", "u"), 409, "already_exists", "destination")
      assert.equal("old", files.read(base .. "/u/a"))
      assert.equal(4, check.ok(copy("t", "u", { overwrite = true })).files)
      assert.same({ "a", "empty", "fifo", "mine", "sub" }, files.list(base .. "/u"))
      assert.same({ "a2", "b", "b2", "l", "mine" }, files.list(base .. "/u/sub"))
      assert.same({ "aa", "mine", "750" }, { files.read(base .. "/u/a"), files.read(base .. "/u/mine"), octal(base .. "/u") })
      assert.equal(uv.fs_stat(base .. "/u/a").ino, uv.fs_stat(base .. "/u/sub/a2").ino)
      check.ok(copy("t", "u", { overwrite = true }))
      assert.same({ "a", "empty", "fifo", "mine", "sub" }, files.list(base .. "/u"))
    end)

    it("refuses to put a file in a directory's place and the reverse", function()
      make_tree()
      make("f", "f")
      files.mkdir(base .. "/d")
      check.problem(copy("f", "d"), 409, "already_exists", "destination")
      check.problem(copy("f", "d", { overwrite = true }), 400, "is_a_directory", "destination")
      check.problem(copy("f", "new/"), 400, "is_a_directory", "destination")
      check.problem(copy("t", "f"), 409, "already_exists", "destination")
      check.problem(copy("t", "f", { overwrite = true }), 400, "not_a_directory", "destination")
      files.mkdir(base .. "/d/a")
      check.problem(copy("t", "d", { overwrite = true }), 400, "is_a_directory", "destination")
      uv.fs_rmdir(base .. "/d/a")
      make("d/sub", "no directory")
      check.problem(copy("t", "d", { overwrite = true }), 400, "not_a_directory", "destination")
      assert.equal("no directory", files.read(base .. "/d/sub"))
    end)

    it("never into itself, by whatever name", function()
      make_tree()
      assert(uv.fs_symlink("t/empty", base .. "/inner"))
      for _, target in ipairs { "t/x", "t/sub/x", "t/new/x", "inner/x", base .. "/t/empty/../x", "t" } do
        check.problem(copy("t", target), 400, "invalid_request", "destination")
        check.problem(copy("t", target, { overwrite = true }), 400, "invalid_request", "destination")
      end
      check.problem(copy("t/a", "./t//a", { overwrite = true }), 400, "invalid_request", "destination")
      check.problem(copy(".", "t/x"), 400, "invalid_request", "destination")
      assert.same({ "a", "empty", "fifo", "sub" }, files.list(base .. "/t"))
      assert.same({}, files.list(base .. "/t/empty"))
      -- A sibling of the same beginning is another one.
      check.ok(copy("t", "t2"))
    end)

    it("keeps thousands of names", function()
      files.mkdir(base .. "/many")
      for i = 1, 1000 do
        make("many/" .. i, tostring(i))
      end
      local answer = check.ok(copy("many", "copy"))
      assert.equal(1000, answer.files)
      assert.equal(1000, #files.list(base .. "/copy"))
      assert.equal("999", files.read(base .. "/copy/999"))
    end)

    it("deeper than descriptors may be held", function()
      local run = process.run { "sh", "-c", [[cd "$1" && mkdir deep && cd deep && i=0
        while [ $i -lt 300 ]; do mkdir d && cd d && echo $i >f && i=$((i+1)); done]], "sh", base }
      assert.equal(0, run.code)
      assert.equal(300, check.ok(copy("deep", "copy")).files)
      assert.equal(0, process.run({ "diff", "-r", base .. "/deep", base .. "/copy" }).code)
      check.ok(copy("deep", "copy", { overwrite = true }))
      assert.equal(0, process.run({ "diff", "-r", base .. "/deep", base .. "/copy" }).code)
      process.run { "rm", "-rf", base .. "/deep", base .. "/copy" }
    end)

    it("with a device fails as a whole and names it", function()
      make_tree()
      if process.run({ "mknod", base .. "/t/sub/null", "c", "1", "3" }).code ~= 0 then
        return skip("copy_device", "no device can be made")
      end
      local problem = check.problem(copy("t", "new/u"), 400, "not_a_regular_file", "source")
      assert.truthy(problem.detail:find("sub/null", 1, true))
      assert.same({ "t" }, files.list(base))
      uv.fs_unlink(base .. "/t/sub/null")
    end)

    it("makes sockets again", function()
      files.mkdir(base .. "/t")
      local pipe = uv.new_pipe(false)
      assert(pipe:bind(base .. "/t/socket"))
      check.ok(copy("t", "u"))
      pipe:close()
      assert.equal("socket", uv.fs_lstat(base .. "/u/socket").type)
    end)
  end)

  describe("refuses", function()
    it("what leads outside, and makes nothing there", function()
      assert(uv.fs_symlink(outside, base .. "/l"))
      make("a", "a")
      for _, path in ipairs { "../outside/keep", outside .. "/keep", "l/keep", base .. "-evil/x" } do
        check.problem(copy(path, "x"), 403, "path_outside_base", "source")
      end
      for _, path in ipairs { "../outside/x", outside .. "/x", "l/x", "l/new/x", base .. "-evil" } do
        check.problem(copy("a", path), 403, "path_outside_base", "destination")
        check.problem(copy("a", path, { overwrite = true }), 403, "path_outside_base", "destination")
      end
      assert.same({ "a", "l" }, files.list(base))
    end)

    it("what is missing, and leaves no directories", function()
      make("a", "a")
      check.problem(copy("none", "x/y/z"), 404, "file_not_found", "source")
      check.problem(copy("a", "x/y", { create_parents = false }), 404, "file_not_found", "destination")
      check.problem(copy("a", "a/b"), 400, "not_a_directory", "destination")
      check.problem(copy("a", "."), 403, "base_dir_protected", "destination")
      check.problem(copy("a", "new/.."), 404, "file_not_found", "destination")
      check.problem(copy("a", ""), 400, "invalid_path")
      check.problem(copy("a\0b", "c"), 400, "invalid_path")
      assert.same({ "destination", "source" }, check.faulty_fields(abxd:post("/files/copy", {})))
      assert.same({ "a" }, files.list(base))
    end)
  end)

  it("is given up when its client leaves, and leaves nothing", function()
    files.mkdir(base .. "/t")
    for i = 1, 20 do
      make("t/" .. i, "x")
    end
    assert.equal(0, process.run({ "dd", "if=/dev/zero", "of=" .. base .. "/t/z", "bs=1M", "count=150" }).code)
    local conn = abxd:connect()
    conn:send_request("POST", "/files/copy", { json = { source = "t", destination = "new/u" } })
    process.poll(5000, function()
      return files.exists(base .. "/new")
    end)
    conn:close()
    check.prompt(abxd, 0.1)
    local gone = process.poll(20000, function()
      return not files.exists(base .. "/new")
    end)
    assert.is_true(gone or files.exists(base .. "/new/u/z"), "a part of the copy was left")
  end)

  it("delays nobody", function()
    files.mkdir(base .. "/t")
    for i = 1, 1000 do
      make("t/" .. i, "x")
    end
    local conn = abxd:connect()
    conn:send_request("POST", "/files/copy", { json = { source = "t", destination = "u" } })
    check.prompt(abxd, 0.1)
    assert.equal(200, conn:read_response("POST").status)
    conn:close()
  end)
end)
