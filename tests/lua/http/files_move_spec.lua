local check = require("support.check")
local files = require("support.files")
local fresh_base = require("support.fresh_base")
local mime = require("mime")
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")
local uv = require("luv")

describe("POST /files/move", function()
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

  local function move(source, destination, options)
    local body = { source = source, destination = destination }
    for name, value in pairs(options or {}) do
      body[name] = value
    end
    return abxd:post("/files/move", body)
  end

  local function make(path, content)
    files.write(base .. "/" .. path, content)
    return path
  end

  it("gives a file its new name, with the directories on the way", function()
    make("a", "hello")
    local before = uv.fs_stat(base .. "/a")
    local answer = check.ok(move("a", "new/dir/b"))
    assert.same({ base .. "/a", base .. "/new/dir/b" }, { answer.source, answer.destination })
    assert.same({ base .. "/new/dir/b", "b", "file", 5 },
      { answer.entry.path, answer.entry.name, answer.entry.type, answer.entry.size })
    assert.equal(before.ino, uv.fs_stat(base .. "/new/dir/b").ino)
    assert.is_false(files.exists(base .. "/a"))
    assert.equal("hello", files.read(base .. "/new/dir/b"))
  end)

  it("replaces a file only with overwrite", function()
    make("a", "new")
    make("b", "old")
    check.problem(move("a", "b"), 409, "already_exists", "destination")
    assert.same({ "new", "old" }, { files.read(base .. "/a"), files.read(base .. "/b") })
    check.ok(move("a", "b", { overwrite = true }))
    assert.same({ "b" }, files.list(base))
    assert.equal("new", files.read(base .. "/b"))
  end)

  it("onto another name of the same file leaves that one", function()
    make("a", "one")
    assert(uv.fs_link(base .. "/a", base .. "/b"))
    check.problem(move("a", "b"), 409, "already_exists", "destination")
    check.ok(move("a", "b", { overwrite = true }))
    assert.same({ "b" }, files.list(base))
    assert.equal("one", files.read(base .. "/b"))
    check.problem(move("b", "./b", { overwrite = true }), 400, "invalid_request", "destination")
    check.problem(move("b", "b"), 400, "invalid_request", "destination")
  end)

  it("moves a link itself, and replaces a link itself", function()
    make("target", "target")
    for _, target in ipairs { "target", outside .. "/keep", outside, "nowhere" } do
      assert(uv.fs_symlink(target, base .. "/l"))
      assert.same({ "symlink", target }, { check.ok(move("l", "m")).entry.type, uv.fs_readlink(base .. "/m") })
      make("f", "file")
      check.ok(move("f", "m", { overwrite = true }))
      assert.same({ "file", "target" }, { files.read(base .. "/m"), files.read(base .. "/target") })
      uv.fs_unlink(base .. "/m")
    end
    assert.same({ "target" }, files.list(base))
  end)

  it("moves a directory, onto an empty one too, never onto a full one", function()
    files.mkdir(base .. "/d")
    make("d/f", "f")
    files.mkdir(base .. "/empty")
    files.mkdir(base .. "/full")
    make("full/x", "x")
    check.problem(move("d", "empty"), 409, "already_exists", "destination")
    check.problem(move("d", "full"), 409, "already_exists", "destination")
    check.problem(move("d", "full", { overwrite = true }), 409, "not_empty", "destination")
    assert.equal("directory", check.ok(move("d", "empty", { overwrite = true })).entry.type)
    assert.same({ "empty", "full" }, files.list(base))
    assert.same({ "f", "f" }, { files.list(base .. "/empty")[1], files.read(base .. "/empty/f") })
    check.problem(move("full/x", "empty", { overwrite = true }), 400, "is_a_directory", "destination")
    check.problem(move("empty", "full/x", { overwrite = true }), 400, "not_a_directory", "destination")
    check.problem(move("full/x", "full", { overwrite = true }), 400, "is_a_directory", "destination")
    check.problem(move("full/x", "y/"), 400, "is_a_directory", "destination")
    check.ok(move("empty", "named/"))
    assert.same({ "full", "named" }, files.list(base))
  end)

  it("never moves a directory into itself", function()
    files.mkdir(base .. "/d")
    files.mkdir(base .. "/d/e")
    assert(uv.fs_symlink("d/e", base .. "/inner"))
    for _, target in ipairs { "d/x", "d/e/x", "d/new/x", "inner/x", base .. "/d/./e/../x", "d" } do
      check.problem(move("d", target, { overwrite = true }), 400, "invalid_request", "destination")
    end
    assert.same({ "e" }, files.list(base .. "/d"))
    check.problem(move("d/e", "d", { overwrite = true }), 409, "not_empty", "destination")
  end)

  it("never moves the base, nor anything onto it", function()
    make("a", "a")
    files.mkdir(base .. "/d")
    for _, path in ipairs { ".", "./.", "d/..", base, base .. "/" } do
      check.problem(move(path, "x"), 403, "base_dir_protected", "source")
      check.problem(move("a", path, { overwrite = true }), 403, "base_dir_protected", "destination")
    end
    check.problem(move("/", "x"), 403, "path_outside_base", "source")
    assert.same({ "a", "d" }, files.list(base))
  end)

  it("refuses what leads outside, and makes nothing there", function()
    assert(uv.fs_symlink(outside, base .. "/l"))
    make("a", "a")
    for _, path in ipairs { "../outside/keep", outside .. "/keep", "l/keep", base .. "-evil/x" } do
      check.problem(move(path, "x"), 403, "path_outside_base", "source")
    end
    for _, path in ipairs { "../outside/x", outside .. "/x", "l/x", "l/new/x", base .. "-evil" } do
      check.problem(move("a", path), 403, "path_outside_base", "destination")
      check.problem(move("a", path, { overwrite = true }), 403, "path_outside_base", "destination")
    end
    assert.same({ "a", "l" }, files.list(base))
  end)

  it("refuses what is missing, and leaves no directories", function()
    make("a", "a")
    files.mkdir(base .. "/d")
    check.problem(move("none", "x/y/z"), 404, "file_not_found", "source")
    check.problem(move("a", "x/y", { create_parents = false }), 404, "file_not_found", "destination")
    check.problem(move("a/b", "c"), 400, "not_a_directory", "source")
    check.problem(move("a", "d", { overwrite = true }), 400, "is_a_directory", "destination")
    assert.same({ "destination", "source" }, check.faulty_fields(abxd:post("/files/move", {})))
    assert.same({ "a", "d" }, files.list(base))
  end)

  it("takes any name by what a list returned, FIFOs and sockets too", function()
    for _, name in ipairs { "b\xA4.txt", "n\nl", "-rf", "%41.txt", "a%2fb", "\"q'.txt", "~", ("x"):rep(255), " " } do
      make(name, name)
      local answer = check.ok(abxd:post("/files/move", {
        source_base64 = mime.b64(base .. "/" .. name), destination_base64 = mime.b64("to/" .. name),
      }))
      assert.equal(name, files.read(base .. "/to/" .. name))
      assert.equal(utf8.len(name) == nil and mime.b64(base .. "/to/" .. name) or nil, answer.destination_base64)
    end
    assert.same({ "to" }, files.list(base))
    assert.equal(0, process.run({ "mkfifo", base .. "/fifo" }).code)
    local pipe = uv.new_pipe(false)
    assert(pipe:bind(base .. "/socket"))
    assert.equal("fifo", check.ok(move("fifo", "fifo2")).entry.type)
    assert.equal("socket", check.ok(move("socket", "socket2")).entry.type)
    pipe:close()
  end)
end)

describe("POST /files/move across file systems", function()
  local abxd, root, base, far

  local function move(source, destination, options)
    local body = { source = source, destination = destination }
    for name, value in pairs(options or {}) do
      body[name] = value
    end
    return abxd:post("/files/move", body)
  end

  -- The base on disk, and in it a small tmpfs.
  local function with_far(test)
    return function()
      root = files.mkdtemp()
      base, far = files.mkdir(root .. "/ws"), files.mkdir(root .. "/ws/far")
      local mounted = process.run { "mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", far }
      if mounted.code ~= 0 then
        files.remove_tree(root)
        return skip("move_across", "no mount: " .. mounted.stderr:gsub("%s+$", ""))
      end
      abxd = server.start { base_dir = base }
      local baseline = abxd:baseline()
      local ok, failure = pcall(function()
        test()
        abxd:assert_settled(baseline)
      end)
      if ok then
        abxd:stop()
      else
        abxd:kill()
      end
      process.run { "umount", "-l", far }
      files.remove_tree(root)
      assert(ok, failure)
    end
  end

  it("copies, compares and removes, keeping all", with_far(function()
    files.mkdir(base .. "/t")
    files.mkdir(base .. "/t/sub")
    files.write(base .. "/t/a", "aa")
    assert(uv.fs_link(base .. "/t/a", base .. "/t/sub/a2"))
    assert(uv.fs_symlink("../a", base .. "/t/sub/l"))
    assert.equal(0, process.run({ "mkfifo", base .. "/t/fifo" }).code)
    uv.fs_chmod(base .. "/t/a", tonumber("640", 8))
    uv.fs_chmod(base .. "/t/sub", tonumber("555", 8))
    assert(uv.fs_utime(base .. "/t/sub", 1100000000, 1200000000.5))
    local answer = check.ok(move("t", "far/new/u"))
    assert.same({ base .. "/t", far .. "/new/u", "directory" }, { answer.source, answer.destination, answer.entry.type })
    local u = far .. "/new/u"
    assert.same({ { "far" }, { "a", "fifo", "sub" }, { "a2", "l" } },
      { files.list(base), files.list(u), files.list(u .. "/sub") })
    assert.equal(uv.fs_stat(u .. "/a").ino, uv.fs_stat(u .. "/sub/a2").ino)
    assert.same({ 1200000000, 365, 416 },
      { uv.fs_stat(u .. "/sub").mtime.sec, uv.fs_stat(u .. "/sub").mode & 511, uv.fs_stat(u .. "/a").mode & 511 })
    -- And back, one file.
    files.write(base .. "/b", "old")
    check.problem(move("far/new/u/a", "b"), 409, "already_exists", "destination")
    check.ok(move("far/new/u/a", "b", { overwrite = true }))
    assert.same({ "aa", "aa" }, { files.read(base .. "/b"), files.read(u .. "/sub/a2") })
    assert.same({ "fifo", "sub" }, files.list(u))
    assert.same({ "b", "far" }, files.list(base))
  end))

  it("knows empty and full directories", with_far(function()
    files.mkdir(base .. "/d")
    files.write(base .. "/d/f", "f")
    files.mkdir(far .. "/full")
    files.write(far .. "/full/x", "x")
    files.mkdir(far .. "/empty")
    check.problem(move("d", "far/full", { overwrite = true }), 409, "not_empty", "destination")
    assert.same({ "empty", "full" }, files.list(far))
    assert.same({ "f" }, files.list(base .. "/d"))
    check.ok(move("d", "far/empty", { overwrite = true }))
    assert.equal("f", files.read(far .. "/empty/f"))
    assert.is_false(files.exists(base .. "/d"))
  end))

  it("loses nothing where the other disk is full", with_far(function()
    files.mkdir(base .. "/d")
    files.write(base .. "/d/a", "small")
    files.write(base .. "/d/big", ("b"):rep(6 * 1024 * 1024))
    files.write(far .. "/keep", "kept")
    check.problem(move("d", "far/x/y"), 507, "no_space", "destination")
    check.problem(move("d/big", "far/keep", { overwrite = true }), 507, "no_space", "destination")
    assert.same({ { "keep" }, { "a", "big" } }, { files.list(far), files.list(base .. "/d") })
    assert.same({ "kept", 6 * 1024 * 1024 }, { files.read(far .. "/keep"), uv.fs_stat(base .. "/d/big").size })
  end))

  it("does not move a mount point", with_far(function()
    check.problem(move("far", "near"), 409, "busy", "source")
    assert.same({ "far" }, files.list(base))
  end))
end)
