local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local process = require("support.process")
local server = require("support.server")
local uv = require("luv")

local THOUSAND = ("0123456789"):rep(100)

describe("GET /download", function()
  local abxd, baseline, base

  lazy_setup(function()
    abxd = server.start()
    base = abxd.base_dir
    files.write(base .. "/f.txt", THOUSAND)
    files.write(base .. "/empty", "")
    uv.fs_utime(base .. "/f.txt", 1000000000, 1000000000)
    files.mkdir(base .. "/d")
    files.write(base .. "/d/a", "hello")
    files.mkdir(base .. "/d/sub")
    uv.fs_symlink("/etc/passwd", base .. "/d/link")
    uv.fs_symlink("/etc/passwd", base .. "/leaves")
    uv.fs_symlink("f.txt", base .. "/stays")
    uv.fs_symlink(base .. "/f.txt", base .. "/stays-absolute")
    process.run { "mkfifo", base .. "/fifo", base .. "/d/fifo" }
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function get(query, headers)
    return abxd:get("/download?" .. query, { headers = headers })
  end

  it("sends the file with what clients need to keep it", function()
    local answer = get("path=f.txt")
    assert.same({ 200, THOUSAND, "1000", "bytes", "Sun, 09 Sep 2001 01:46:40 GMT" }, { answer.status, answer.body,
      answer.headers["content-length"], answer.headers["accept-ranges"], answer.headers["last-modified"] })
    assert.matches('^"[^"]+"$', answer.headers.etag)
    assert.matches("^text/plain", answer.headers["content-type"])
    assert.matches("^attachment; filename=\"f.txt\"", answer.headers["content-disposition"])
    assert.matches("^inline; ", get("path=f.txt&inline=true").headers["content-disposition"])
    assert.same({ 200, "" }, { get("path=empty").status, get("path=empty").body })
  end)

  it("answers HEAD with the same head and no body", function()
    local conn = abxd:connect()
    local head = conn:request("HEAD", "/download?path=f.txt")
    local whole = conn:request("GET", "/download?path=f.txt")
    conn:close()
    assert.same({ 200, "", "1000", whole.headers.etag, whole.headers["content-disposition"] }, { head.status, head.body,
      head.headers["content-length"], head.headers.etag, head.headers["content-disposition"] })
  end)

  it("follows links that stay inside, and serves absolute paths", function()
    for _, path in ipairs { "stays", "stays-absolute", base .. "/f.txt", "d/../f.txt", "./f.txt" } do
      assert.equal(THOUSAND, get("path=" .. http.escape(path)).body)
    end
  end)

  describe("names the file by RFC 8187:", function()
    local cases = {
      { "ü \"x\".txt", "%C3%BC%20%22x%22.txt" }, { "n\nl\r.bin", "n%0Al%0D.bin" }, { "%41", "%2541" },
      { "a;b,c'd", "a%3Bb%2Cc%27d" },
    }
    for _, case in ipairs(cases) do
      it(case[2], function()
        files.write(base .. "/" .. case[1], "x")
        local answer = get("path=" .. http.escape(case[1]))
        assert.same({ 200, "x" }, { answer.status, answer.body })
        local plain, exact = answer.headers["content-disposition"]:match("^attachment; filename=\"([^\"]*)\"; filename%*="
          .. "UTF%-8''(%S+)$")
        assert.equal(case[2], exact)
        assert.is_nil(plain:find("[%c\"\\\127-\255]"))
      end)
    end
  end)

  describe("refuses", function()
    local cases = {
      { "no path", "", 400, "invalid_request", "path" },
      { "a missing file", "path=nope", 404, "file_not_found", "path" },
      { "a directory", "path=d", 400, "is_a_directory", "path" },
      { "a FIFO at once", "path=fifo", 400, "not_a_regular_file", "path" },
      { "a file as directory", "path=f.txt/x", 400, "not_a_directory", "path" },
      { "a parent", "path=../log", 403, "path_outside_base", "path" },
      { "an encoded parent", "path=%2e%2e/log", 403, "path_outside_base", "path" },
      { "an absolute path outside", "path=/etc/passwd", 403, "path_outside_base", "path" },
      { "a link that leaves", "path=leaves", 403, "path_outside_base", "path" },
      { "a NUL", "path=f.txt%00", 400, "invalid_path", "path" },
      { "a path that is too long", "path=" .. ("d/../"):rep(1000) .. "f.txt", 400, "invalid_path", "path" },
      { "an archive of a file", "path=f.txt&archive=zip", 400, "not_a_directory", "path" },
      { "an unknown archive", "path=d&archive=rar", 400, "invalid_request", "archive" },
      { "a sibling of the base", "path=../base-evil/x", 403, "path_outside_base", "path" },
      { "both path and its bytes", "path=f.txt&path_base64=Zg==", 400, "invalid_request" },
      { "bytes that are no base64", "path_base64=*", 400, "invalid_request", "path_base64" },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        check.problem(get(case[2]), case[3], case[4], case[5])
      end)
    end
  end)

  describe("answers Range", function()
    local cases = {
      { "0-0", 206, 0, 0 }, { "-10", 206, 990, 999 }, { "990-2000", 206, 990, 999 }, { "500-", 206, 500, 999 },
      { "-99999", 206, 0, 999 }, { "0-", 206, 0, 999 }, { "999-999", 206, 999, 999 },
      { "1000-", 416 }, { "-0", 416 }, { "18446744073709551615-", 416 },
      { "5-2", 200 }, { "a-b", 200 }, { "-", 200 },
    }
    for _, case in ipairs(cases) do
      it("bytes=" .. case[1] .. " with " .. case[2], function()
        local answer = get("path=f.txt", { Range = "bytes=" .. case[1] })
        assert.equal(case[2], answer.status)
        if case[2] == 206 then
          assert.equal(THOUSAND:sub(case[3] + 1, case[4] + 1), answer.body)
          assert.equal(("bytes %d-%d/1000"):format(case[3], case[4]), answer.headers["content-range"])
        elseif case[2] == 416 then
          check.problem(answer, 416, "range_not_satisfiable")
          assert.equal("bytes */1000", answer.headers["content-range"])
        else
          assert.equal(THOUSAND, answer.body)
        end
      end)
    end

    it("with several parts, whole or as parts", function()
      local answer = get("path=f.txt", { Range = "bytes=0-1,5-6" })
      if answer.status == 200 then
        assert.equal(THOUSAND, answer.body)
      else
        assert.equal(206, answer.status)
        assert.matches("^multipart/byteranges; ", answer.headers["content-type"])
      end
    end)

    it("of an unknown unit, or of an empty file", function()
      assert.equal(200, get("path=f.txt", { Range = "lines=0-1" }).status)
      assert.equal(416, get("path=empty", { Range = "bytes=0-0" }).status)
    end)

    it("at the end of a sparse file", function()
      local fd = uv.fs_open(base .. "/sparse", "w", 420)
      uv.fs_ftruncate(fd, 1 << 30)
      uv.fs_close(fd)
      local answer = get("path=sparse", { Range = "bytes=-1" })
      assert.same({ 206, "\0", "bytes 1073741823-1073741823/1073741824" }, { answer.status, answer.body,
        answer.headers["content-range"] })
      assert.equal("1073741824", abxd:request("HEAD", "/download?path=sparse").headers["content-length"])
    end)
  end)

  describe("answers conditions:", function()
    local function etag()
      return get("path=f.txt").headers.etag
    end

    it("If-None-Match", function()
      local answer = get("path=f.txt", { ["If-None-Match"] = '"x", ' .. etag() })
      assert.same({ 304, "", etag() }, { answer.status, answer.body, answer.headers.etag })
      assert.equal(304, get("path=f.txt", { ["If-None-Match"] = "*" }).status)
      assert.equal(200, get("path=f.txt", { ["If-None-Match"] = '"x"' }).status)
    end)

    it("If-Modified-Since", function()
      assert.equal(304, get("path=f.txt", { ["If-Modified-Since"] = "Sun, 09 Sep 2001 01:46:40 GMT" }).status)
      assert.equal(200, get("path=f.txt", { ["If-Modified-Since"] = "Sun, 09 Sep 2001 01:46:39 GMT" }).status)
      assert.equal(200, get("path=f.txt", { ["If-Modified-Since"] = "yesterday" }).status)
      assert.equal(200, get("path=f.txt", { ["If-None-Match"] = '"x"',
        ["If-Modified-Since"] = "Sun, 09 Sep 2001 01:46:40 GMT" }).status)
    end)

    it("If-Range", function()
      assert.equal(206, get("path=f.txt", { Range = "bytes=0-1", ["If-Range"] = etag() }).status)
      assert.equal(200, get("path=f.txt", { Range = "bytes=0-1", ["If-Range"] = '"x"' }).status)
    end)

    it("the tag changes with the file", function()
      files.write(base .. "/changes", "one")
      local before = get("path=changes").headers.etag
      files.write(base .. "/changes", "two")
      assert.is_not.equal(before, get("path=changes").headers.etag)
    end)
  end)

  describe("of a file that changes meanwhile", function()
    local SIZE = 20 * 1024 * 1024

    local function start()
      local content = ("0123456789abcdef"):rep(SIZE // 16)
      files.write(base .. "/changing", content)
      local conn = abxd:connect()
      conn:send_request("GET", "/download?path=changing")
      local answer = conn:read_head("GET")
      assert.equal(tostring(SIZE), answer.headers["content-length"])
      return conn, answer, content
    end

    it("never sends more than it promised", function()
      local conn, answer, content = start()
      local file = io.open(base .. "/changing", "ab")
      file:write(("more"):rep(1000))
      file:close()
      assert.is_true(answer:finish().body == content)
      assert.equal("ok", conn:request("GET", "/health"):json().status)
      conn:close()
    end)

    it("ends the connection where bytes are missing", function()
      local conn, answer = start()
      uv.sleep(200)
      files.write(base .. "/changing", "")
      answer:finish()
      assert.is_true(answer.cut)
      assert.is_true(#answer.body < SIZE)
      conn:close()
    end)
  end)

  it("leaves nothing open when its client leaves", function()
    for _ = 1, 10 do
      local answer = abxd:stream("GET", "/download?path=sparse")
      answer:read()
      answer:close()
    end
    uv.fs_unlink(base .. "/sparse")
  end)

  describe("of a directory", function()
    local function save(archive, path)
      local answer = get("path=" .. (path or "d") .. "&archive=" .. archive)
      assert.equal(200, answer.status)
      files.write(abxd.root .. "/archive", answer.body)
      return answer
    end

    it("sends a tar.gz", function()
      local answer = save("tar.gz")
      assert.same({ "application/gzip", "chunked" }, { answer.headers["content-type"],
        answer.headers["transfer-encoding"] })
      assert.matches("^attachment; filename=\"d.tar.gz\"", answer.headers["content-disposition"])
      assert.equal("d/\nd/a\nd/link\nd/sub/\n", process.run({ "tar", "tzf", abxd.root .. "/archive" }).stdout)
      assert.matches("d/link %-> /etc/passwd", process.run({ "tar", "tvzf", abxd.root .. "/archive" }).stdout)
      assert.equal("hello", process.run({ "tar", "xzOf", abxd.root .. "/archive", "d/a" }).stdout)
    end)

    it("sends a zip", function()
      local answer = save("zip")
      assert.equal("application/zip", answer.headers["content-type"])
      assert.matches("^attachment; filename=\"d.zip\"", answer.headers["content-disposition"])
      assert.equal("d/\nd/a\nd/link\nd/sub/\n", process.run({ "unzip", "-Z1", abxd.root .. "/archive" }).stdout)
      assert.equal("hello", process.run({ "unzip", "-p", abxd.root .. "/archive", "d/a" }).stdout)
    end)

    it("sends the base itself under its name", function()
      save("tar.gz", ".")
      assert.matches("^base/\n", process.run({ "tar", "tzf", abxd.root .. "/archive" }).stdout)
    end)

    it("has no body for HEAD and starts no helper for a missing one", function()
      local answer = abxd:request("HEAD", "/download?path=d&archive=zip")
      assert.same({ 200, "application/zip", "" }, { answer.status, answer.headers["content-type"], answer.body })
      check.problem(get("path=nope&archive=zip"), 404, "file_not_found", "path")
      check.problem(get("path=..&archive=zip"), 403, "path_outside_base", "path")
    end)

    it("is refused on procfs and sysfs", function()
      local root = server.start { base_dir = "/" }
      for _, path in ipairs { "proc", "/proc/self", "proc/self/fd", "sys", "sys/kernel" } do
        for _, archive in ipairs { "tar.gz", "zip" } do
          check.problem(root:get("/download?path=" .. path .. "&archive=" .. archive), 400, "not_a_regular_file", "path")
        end
      end
      root:stop()
    end)

    it("is cut, not padded, when a file shrinks", function()
      files.mkdir(base .. "/shrinks")
      process.run { "dd", "if=/dev/urandom", "of=" .. base .. "/shrinks/big", "bs=1M", "count=40" }
      local answer = abxd:stream("GET", "/download?path=shrinks&archive=tar.gz")
      assert.equal(200, answer.status)
      answer:read()
      uv.sleep(300)
      files.write(base .. "/shrinks/big", "")
      answer:finish()
      answer:close()
      assert.is_true(answer.cut)
    end)

    it("ends the helper when the client leaves", function()
      files.mkdir(base .. "/large")
      process.run { "dd", "if=/dev/urandom", "of=" .. base .. "/large/big", "bs=1M", "count=40" }
      local answer = abxd:stream("GET", "/download?path=large&archive=zip")
      answer:read()
      answer:close()
    end)
  end)
end)
