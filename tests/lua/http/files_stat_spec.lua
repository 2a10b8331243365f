local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local mime = require("mime")
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")
local socket = require("socket")
local unix = require("socket.unix")
local uv = require("luv")

local HELLO_SHA256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

describe("GET /files/stat", function()
  local abxd, baseline, base, listener

  lazy_setup(function()
    abxd = server.start()
    base = abxd.base_dir
    files.mkdir(abxd.root .. "/base-evil")
    files.write(abxd.root .. "/base-evil/s", "evil")
    files.write(base .. "/f.txt", "hello")
    uv.fs_chmod(base .. "/f.txt", tonumber("640", 8))
    uv.fs_utime(base .. "/f.txt", 1000000000.25, 1000000001.5)
    files.mkdir(base .. "/d")
    uv.fs_symlink("/etc", base .. "/etc")
    uv.fs_symlink("/etc/passwd", base .. "/leaves")
    uv.fs_symlink("f.txt", base .. "/stays")
    uv.fs_symlink("nothing", base .. "/dangling")
    uv.fs_symlink("loop", base .. "/loop")
    uv.fs_symlink("/proc/self/fd/0", base .. "/magic")
    process.run { "mkfifo", base .. "/fifo" }
    listener = unix()
    assert(listener:bind(base .. "/socket"))
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    listener:close()
    abxd:stop()
  end)

  local function get(query)
    return abxd:get("/files/stat?" .. query)
  end

  local function stat(path)
    return check.ok(get("path=" .. http.escape(path)))
  end

  it("tells all about a file", function()
    local found = assert(uv.fs_stat(base .. "/f.txt"))
    local answer = stat("f.txt")
    assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$", answer.changed_at)
    assert.matches('^"[^"]+"$', answer.etag)
    assert.same({
      path = base .. "/f.txt", name = "f.txt", type = "file", size = 5, mode = "0640", owner = answer.owner,
      group = answer.group, modified_at = "2001-09-09T01:46:41.500Z", accessed_at = "2001-09-09T01:46:40.250Z",
      changed_at = answer.changed_at, inode = found.ino, links = 1, uid = found.uid, gid = found.gid,
      mime = "text/plain; charset=utf-8", etag = answer.etag,
    }, answer)
    assert.equal(process.run({ "stat", "-c", "%U %G", base .. "/f.txt" }).stdout, answer.owner .. " " .. answer.group
      .. "\n")
  end)

  it("gives the etag that reading and downloading give, until the file changes", function()
    files.write(base .. "/changes", "one")
    local etag = stat("changes").etag
    assert.equal(etag, check.ok(abxd:get("/files/read?path=changes")).etag)
    assert.equal(etag, abxd:get("/download?path=changes").headers.etag)
    assert.equal(etag, stat("changes").etag)
    files.write(base .. "/changes", "two")
    assert.is_not.equal(etag, stat("changes").etag)
  end)

  describe("names a link itself:", function()
    local targets = { leaves = "/etc/passwd", etc = "/etc", stays = "f.txt", dangling = "nothing", loop = "loop",
      magic = "/proc/self/fd/0" }
    for name, target in pairs(targets) do
      it(name, function()
        local answer = stat(name)
        assert.same({ base .. "/" .. name, name, "symlink", target, "inode/symlink" }, { answer.path, answer.name,
          answer.type, answer.target, answer.mime })
      end)
    end
  end)

  it("tells of FIFOs and sockets at once", function()
    assert.same({ "fifo", "inode/fifo" }, { stat("fifo").type, stat("fifo").mime })
    assert.same({ "socket", "inode/socket" }, { stat("socket").type, stat("socket").mime })
  end)

  it("tells of the base itself, by every name of it", function()
    for _, path in ipairs { ".", "./.", "d/..", base, base .. "/" } do
      local answer = stat(path)
      assert.same({ base, "base", "directory", "inode/directory" }, { answer.path, answer.name, answer.type,
        answer.mime })
    end
  end)

  it("answers HEAD", function()
    local head = abxd:request("HEAD", "/files/stat?path=f.txt")
    assert.same({ 200, "", "application/json" }, { head.status, head.body, head.headers["content-type"] })
    assert.equal(404, abxd:request("HEAD", "/files/stat?path=nope").status)
  end)

  describe("takes any name:", function()
    for _, name in ipairs { "n\nl", "-rf", "%41.txt", "a%2fb", "\"q'.txt", "~", " ", ("n"):rep(255), "ü.txt", "a\\b" } do
      it(("%q"):format(name:sub(1, 8)), function()
        files.write(base .. "/" .. name, name)
        local answer = stat(name)
        assert.same({ base .. "/" .. name, name, #name }, { answer.path, answer.name, answer.size })
        assert.is_nil(answer.path_base64)
      end)
    end

    it("that is not UTF-8", function()
      files.write(base .. "/b\xa4.txt", "x")
      local answer = check.ok(get("path_base64=" .. http.escape((mime.b64("b\xa4.txt")))))
      assert.same({ base .. "/b\u{FFFD}.txt", "b\u{FFFD}.txt", (mime.b64(base .. "/b\xa4.txt")) }, { answer.path,
        answer.name, answer.path_base64 })
      assert.equal(answer.inode, check.ok(get("path_base64=" .. http.escape(answer.path_base64))).inode)
    end)

    it("whose base64 lost its plus signs to the query", function()
      files.write(base .. "/\xfb\xef\xbe", "x")
      assert.equal("++++", (mime.b64("\xfb\xef\xbe")))
      assert.equal(1, check.ok(get("path_base64=++++")).size)
    end)
  end)

  describe("with checksum=sha256", function()
    it("sums regular files", function()
      assert.equal(HELLO_SHA256, check.ok(get("path=f.txt&checksum=sha256")).sha256)
      assert.is_nil(check.ok(get("path=f.txt&checksum=none")).sha256)
    end)

    it("sums large files without holding up others", function()
      local fd = uv.fs_open(base .. "/large", "w", 420)
      uv.fs_ftruncate(fd, 64 << 20)
      uv.fs_write(fd, "end", (64 << 20) - 3)
      uv.fs_close(fd)
      local conn <close> = abxd:connect()
      conn:send_request("GET", "/files/stat?path=large&checksum=sha256")
      check.prompt(abxd, 0.05)
      assert.equal("hello", check.ok(abxd:get("/files/read?path=f.txt")).content)
      assert.equal(check.sha256_of(base .. "/large"), check.ok(conn:read_response("GET")).sha256)
    end)

    it("stops when its client leaves", function()
      local fd = uv.fs_open(base .. "/huge", "w", 420)
      uv.fs_ftruncate(fd, 1 << 40) -- hours of work: assert_settled would not wait for it
      uv.fs_close(fd)
      local conn = abxd:connect()
      conn:send_request("GET", "/files/stat?path=huge&checksum=sha256")
      socket.sleep(0.2)
      conn:abort()
    end)

    for _, name in ipairs { "d", "stays", "fifo", "socket", "dangling", "." } do
      it("refuses " .. name, function()
        check.problem(get("path=" .. name .. "&checksum=sha256"), 400, "not_a_regular_file", "path")
      end)
    end
  end)

  describe("refuses", function()
    local cases = {
      { "no path", "", 400, "invalid_request" },
      { "an empty path", "path=", 400, "invalid_path" },
      { "a missing file", "path=nope", 404, "file_not_found" },
      { "a file as directory", "path=f.txt/x", 400, "not_a_directory" },
      { "a file with a slash", "path=f.txt/", 400, "not_a_directory" },
      { "a parent", "path=..", 403, "path_outside_base" },
      { "the root", "path=/", 403, "path_outside_base" },
      { "a sibling of the base", "path=../base-evil/s", 403, "path_outside_base" },
      { "through a link that leaves", "path=etc/passwd", 403, "path_outside_base" },
      { "a link that leaves, followed", "path=leaves/.", 403, "path_outside_base" },
      { "a directory link that leaves, followed", "path=etc/", 403, "path_outside_base" },
      { "a NUL", "path=f.txt%00", 400, "invalid_path" },
      { "a long name", "path=" .. ("n"):rep(256), 400, "invalid_path" },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        check.problem(get(case[2]), case[3], case[4], "path")
      end)
    end

    it("an unknown checksum", function()
      check.problem(get("path=f.txt&checksum=md5"), 400, "invalid_request", "checksum")
    end)
  end)

  it("with / as base tells of the kernel's files, but never reads them", function()
    local root <close> = server.start { base_dir = "/" }
    if not files.exists("/proc/self/status") then
      return skip("files_stat /proc", "procfs is not mounted")
    end
    assert.equal("char", check.ok(root:get("/files/stat?path=/dev/zero")).type)
    assert.equal("file", check.ok(root:get("/files/stat?path=/proc/version")).type)
    assert.equal("symlink", check.ok(root:get("/files/stat?path=/proc/self/exe")).type)
    for _, path in ipairs { "/proc/version", "/proc/self/exe", "/dev/zero", "/dev/null" } do
      check.problem(root:get("/files/stat?checksum=sha256&path=" .. path), 400, "not_a_regular_file", "path")
    end
  end)
end)
