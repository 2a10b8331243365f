local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local mime = require("mime")
local process = require("support.process")
local server = require("support.server")
local uv = require("luv")
local unix = require("socket.unix")

local EURO = "\u{20AC}"

describe("GET /files/read", function()
  local abxd, baseline, base, listener

  lazy_setup(function()
    abxd = server.start()
    base = abxd.base_dir
    files.mkdir(abxd.root .. "/base-evil")
    files.write(abxd.root .. "/base-evil/s", "evil")
    files.write(base .. "/f.txt", "one\ntwo\r\n\nlast")
    uv.fs_utime(base .. "/f.txt", 1000000000, 1000000000.25)
    files.write(base .. "/empty", "")
    files.write(base .. "/binary", "\x89PNG\r\n\x1a\n\0\0\0")
    files.mkdir(base .. "/d")
    uv.fs_symlink("/etc", base .. "/etc")
    uv.fs_symlink("/etc/passwd", base .. "/leaves")
    uv.fs_symlink(abxd.root .. "/base-evil/none", base .. "/dangling")
    uv.fs_symlink("f.txt", base .. "/stays")
    uv.fs_symlink(base .. "/stays", base .. "/stays-absolute")
    uv.fs_symlink("loop", base .. "/loop")
    uv.fs_symlink("/proc/self/root/etc/passwd", base .. "/magic")
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
    return abxd:get("/files/read?" .. query)
  end

  local function read(query)
    return check.ok(get(query))
  end

  local function part_of(answer)
    return { answer.content, answer.encoding, answer.binary, answer.offset, answer.length, answer.eof }
  end

  --- The bytes that an answer stands for.
  local function bytes_of(answer)
    return answer.encoding == "base64" and (mime.unb64(answer.content) or "") or answer.content
  end

  it("tells the whole answer", function()
    local answer = read("path=f.txt")
    assert.matches('^"[^"]+"$', answer.etag)
    assert.same({
      path = base .. "/f.txt", content = "one\ntwo\r\n\nlast", encoding = "utf-8", binary = false, size = 14, offset = 0,
      length = 14, eof = true, etag = answer.etag, modified_at = "2001-09-09T01:46:40.250Z",
    }, answer)
  end)

  it("answers HEAD with the same head", function()
    local head = abxd:request("HEAD", "/files/read?path=f.txt")
    local whole = get("path=f.txt")
    assert.same({ 200, "", whole.headers["content-length"] }, { head.status, head.body, head.headers["content-length"] })
    assert.equal(404, abxd:request("HEAD", "/files/read?path=nope").status)
  end)

  it("follows links that stay inside, and tells the real path", function()
    for _, path in ipairs { "stays", "stays-absolute", base .. "/f.txt", "d/../f.txt", ".//f.txt" } do
      local answer = read("path=" .. http.escape(path))
      assert.same({ base .. "/f.txt", 14 }, { answer.path, #answer.content })
    end
  end)

  describe("takes any name:", function()
    for _, name in ipairs { "n\nl", "-rf", "%41.txt", "a%2fb", "\"q'.txt", "~", " ", ("n"):rep(255), "ü.txt", "a\\b" } do
      it(("%q"):format(name:sub(1, 8)), function()
        files.write(base .. "/" .. name, name)
        local answer = read("path=" .. http.escape(name))
        assert.same({ base .. "/" .. name, name }, { answer.path, answer.content })
      end)
    end

    it("that is not UTF-8", function()
      files.write(base .. "/b\xa4.txt", "x")
      local answer = read("path_base64=" .. http.escape((mime.b64("b\xa4.txt"))))
      assert.same({ base .. "/b\u{FFFD}.txt", "x" }, { answer.path, answer.content })
      assert.equal("x", read("path_base64=" .. http.escape(answer.path_base64)).content)
    end)
  end)

  describe("by bytes", function()
    local cases = {
      { "path=f.txt&offset=4&length=5", "two\r\n", "utf-8", false, 4, 5, false },
      { "path=f.txt&offset=10", "last", "utf-8", false, 10, 4, true },
      { "path=f.txt&length=0", "", "utf-8", false, 0, 0, false },
      { "path=f.txt&offset=14", "", "utf-8", false, 14, 0, true },
      { "path=f.txt&offset=9223372036854775807&length=33554432", "", "utf-8", false, math.maxinteger, 0, true },
      { "path=f.txt&length=3&encoding=base64", "b25l", "base64", false, 0, 3, false },
      { "path=empty", "", "utf-8", false, 0, 0, true },
      { "path=empty&encoding=base64", "", "base64", false, 0, 0, true },
      { "path=binary&length=4", "iVBORw==", "base64", true, 0, 4, false },
      { "path=binary&offset=1&length=5", "PNG\r\n", "utf-8", false, 1, 5, false },
      { "path=binary&offset=7&length=3", "CgAA", "base64", true, 7, 3, false },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        assert.same({ table.unpack(case, 2) }, part_of(read(case[1])))
      end)
    end

    it("replaces what is not UTF-8 where that is asked for", function()
      files.write(base .. "/bad", "a\xff\xed\xa0\x80b\0c" .. EURO .. "\xe2\x82")
      local answer = read("path=bad&encoding=utf-8")
      assert.same({ "a" .. ("\u{FFFD}"):rep(4) .. "b\0c" .. EURO .. "\u{FFFD}", "utf-8", true, 0, 13, true },
        part_of(answer))
      assert.is_true(answer.lossy)
      assert.is_nil(read("path=f.txt&encoding=utf-8").lossy)
      assert.equal("a\xff\xed\xa0\x80b\0c" .. EURO .. "\xe2\x82", bytes_of(read("path=bad")))
    end)

    it("keeps a BOM and control characters", function()
      local text = "\u{FEFF}\1\2\27[0m\u{2028}\127\r"
      files.write(base .. "/controls", text)
      assert.same({ text, "utf-8", false, 0, #text, true }, part_of(read("path=controls")))
    end)

    it("never damages a character, and always gets on", function()
      local text = ("a" .. EURO .. "ü\u{1F600}\n"):rep(3)
      files.write(base .. "/characters", text)
      local conn <close> = abxd:connect()
      for length = 1, 9 do
        local parts, at = {}, 0
        repeat
          local answer = check.ok(conn:request("GET", ("/files/read?path=characters&offset=%d&length=%d"):format(at, length)))
          assert.same({ "utf-8", at, #answer.content }, { answer.encoding, answer.offset, answer.length })
          parts[#parts + 1] = answer.content
          at = answer.offset + answer.length
        until answer.eof
        assert.equal(text, table.concat(parts))
      end
    end)

    it("gives the bytes from within a character as they are", function()
      files.write(base .. "/within", EURO .. "uro")
      assert.same({ (mime.b64("\x82\xacuro")), "base64", true, 1, 5, true }, part_of(read("path=within&offset=1")))
    end)

    it("gives 1 MiB unless told, and up to 32", function()
      local content = ("0123456789abcde\n"):rep(2 * 65536 + 1)
      files.write(base .. "/large", content)
      assert.is_true(read("path=large").content == content:sub(1, 1 << 20))
      local whole = read("path=large&length=33554432")
      assert.is_true(whole.content == content and whole.eof)
      assert.is_true(bytes_of(read("path=large&length=33554432&encoding=base64")) == content)
    end)

    it("reads the far end of a sparse file over 4 GiB", function()
      local size = (5 << 30) + 3
      local fd = uv.fs_open(base .. "/sparse", "w", 420)
      uv.fs_write(fd, "end", 5 << 30)
      uv.fs_close(fd)
      local answer = read("path=sparse&offset=" .. (5 << 30))
      assert.same({ "end", "utf-8", false, 5 << 30, 3, true }, part_of(answer))
      assert.equal(size, answer.size)
      assert.same({ "AAAA", "base64", true, (1 << 32) - 1, 3, false },
        part_of(read("path=sparse&length=3&offset=" .. (1 << 32) - 1)))
      check.problem(get("path=sparse&start_line=2"), 422, "binary_file")
      local lines = read("path=sparse&start_line=2&encoding=utf-8")
      assert.same({ "", "utf-8", false, size, 0, true }, part_of(lines))
      assert.equal(1, lines.total_lines)
      uv.fs_unlink(base .. "/sparse")
    end)
  end)

  describe("by lines", function()
    local cases = {
      { "start_line=1&end_line=1", "one\n", 0, false },
      { "end_line=2", "one\ntwo\r\n", 0, false },
      { "start_line=2&end_line=3", "two\r\n\n", 4, false },
      { "start_line=4", "last", 10, true },
      { "start_line=1", "one\ntwo\r\n\nlast", 0, true },
      { "start_line=3&end_line=9223372036854775807", "\nlast", 9, true },
      { "start_line=5", "", 14, true },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        local answer = read("path=f.txt&" .. case[1])
        assert.same({ case[2], "utf-8", false, case[3], #case[2], case[4] }, part_of(answer))
        assert.same({ 4, 14 }, { answer.total_lines, answer.size })
      end)
    end

    it("of an empty file, and of one that ends with a line", function()
      assert.equal(0, read("path=empty&start_line=1").total_lines)
      files.write(base .. "/ended", "a\nb\n")
      assert.equal(2, read("path=ended&start_line=2").total_lines)
      assert.is_nil(read("path=ended").total_lines)
    end)

    it("of any length, up to 32 MiB of them", function()
      files.write(base .. "/long", "x\n" .. ("y"):rep(40 << 20) .. "\nz\n")
      local last = read("path=long&start_line=3")
      assert.same({ "z\n", 3 }, { last.content, last.total_lines })
      check.problem(get("path=long&start_line=2&end_line=2"), 413, "payload_too_large", "end_line")
      assert.equal("y\nz\n", read("path=long&offset=" .. 1 + (40 << 20)).content)
      uv.fs_unlink(base .. "/long")
    end)

    it("refuses binaries, unless an encoding is chosen", function()
      for line = 1, 3 do
        check.problem(get("path=binary&start_line=" .. line), 422, "binary_file", "path")
      end
      assert.equal("\u{FFFD}PNG\r\n", read("path=binary&end_line=1&encoding=utf-8").content)
      assert.equal("\x1a\n", bytes_of(read("path=binary&start_line=2&end_line=2&encoding=base64")))
    end)
  end)

  describe("refuses", function()
    local cases = {
      { "no path", "", 400, "invalid_request", "path" },
      { "a missing file", "path=nope", 404, "file_not_found", "path" },
      { "a directory", "path=d", 400, "is_a_directory", "path" },
      { "the base", "path=.", 400, "is_a_directory", "path" },
      { "a FIFO at once", "path=fifo", 400, "not_a_regular_file", "path" },
      { "a socket", "path=socket", 400, "not_a_regular_file", "path" },
      { "a file as directory", "path=f.txt/x", 400, "not_a_directory", "path" },
      { "a parent", "path=../log", 403, "path_outside_base", "path" },
      { "an encoded parent", "path=%2e%2e/base-evil/s", 403, "path_outside_base", "path" },
      { "a sibling of the base", "path=../base-evil/s", 403, "path_outside_base", "path" },
      { "an absolute path outside", "path=/etc/passwd", 403, "path_outside_base", "path" },
      { "a file by a link that leaves", "path=leaves", 403, "path_outside_base", "path" },
      { "a directory by a link that leaves", "path=etc/passwd", 403, "path_outside_base", "path" },
      { "a dangling link that leaves", "path=dangling", 403, "path_outside_base", "path" },
      { "a link into /proc", "path=magic", 403, "path_outside_base", "path" },
      { "a link to itself", "path=loop", 400, "invalid_path", "path" },
      { "a NUL", "path=f.txt%00", 400, "invalid_path", "path" },
      { "backslashes as they are", "path=..%5Cbase-evil%5Cs", 404, "file_not_found", "path" },
      { "an unknown encoding", "path=f.txt&encoding=latin1", 400, "invalid_request", "encoding" },
      { "a negative offset", "path=f.txt&offset=-1", 400, "invalid_request", "offset" },
      { "a length over 32 MiB", "path=f.txt&length=33554433", 400, "invalid_request", "length" },
      { "line 0", "path=f.txt&start_line=0", 400, "invalid_request", "start_line" },
      { "lines that end before they start", "path=f.txt&start_line=3&end_line=2", 400, "invalid_request", "end_line" },
      { "lines and an offset", "path=f.txt&start_line=1&offset=0", 400, "invalid_request", "offset" },
      { "lines and a length", "path=f.txt&end_line=1&length=5", 400, "invalid_request", "length" },
      { "an unknown parameter", "path=f.txt&lines=1", 400, "invalid_request", "lines" },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        check.problem(get(case[2]), case[3], case[4], case[5])
      end)
    end
  end)

  it("with / as base never reads devices nor the kernel's files", function()
    local root <close> = server.start { base_dir = "/" }
    assert.equal("one", check.ok(root:get("/files/read?length=3&path=" .. base .. "/../base/stays")).content)
    for _, path in ipairs { "/dev/zero", "/dev/null", "/proc/version", "/proc/self/environ", "/proc/kmsg" } do
      check.problem(root:get("/files/read?path=" .. path), 400, "not_a_regular_file", "path")
    end
  end)

  it("answers what there is of a file that shrinks, and never mixes names when one is replaced", function()
    local stop = uv.hrtime() + 5e8
    local conn <close> = abxd:connect()
    while uv.hrtime() < stop do
      files.write(base .. "/new", "new")
      assert(uv.fs_rename(base .. "/new", base .. "/replaced"))
      conn:send_request("GET", "/files/read?path=replaced")
      files.write(base .. "/new", "new")
      assert(uv.fs_rename(base .. "/new", base .. "/replaced"))
      local answer = check.ok(conn:read_response("GET"))
      assert.same({ base .. "/replaced", "new", true }, { answer.path, answer.content, answer.eof })
      conn:send_request("GET", "/files/read?path=shrinks&length=33554432")
      files.write(base .. "/shrinks", ("x"):rep(100000))
      files.write(base .. "/shrinks", "0123456789")
      local shrunk = conn:read_response("GET")
      if shrunk.status == 200 then
        assert.equal(shrunk:json().length, #shrunk:json().content)
      else
        check.problem(shrunk, 404, "file_not_found")
      end
    end
  end)
end)
