local check = require("support.check")
local files = require("support.files")
local fresh_base = require("support.fresh_base")
local http = require("support.http")
local mime = require("mime")
local process = require("support.process")
local server = require("support.server")
local uv = require("luv")

local EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
local HELLO_SHA256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

describe("POST /upload", function()
  local abxd, baseline, outside, base

  lazy_setup(function()
    abxd = server.start()
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

  local function put(query, content, headers)
    return abxd:request("POST", "/upload?" .. query, { body = content, headers = headers })
  end

  local function send_parts(query, parts)
    local body, content_type = http.multipart(parts)
    return put(query, body, { ["Content-Type"] = content_type })
  end

  local function created(answer)
    assert.same({ 201, "application/json" }, { answer.status, answer.headers["content-type"] })
    return answer:json().files
  end

  local function mode_of(path)
    return ("%o"):format(assert(uv.fs_stat(path)).mode & 4095)
  end

  describe("of a raw body", function()
    it("puts the file at path and tells its sum", function()
      assert.same({ { path = base .. "/new/a.txt", size = 5, sha256 = HELLO_SHA256, created = true } },
        created(put("path=new/a.txt", "hello")))
      assert.equal("hello", files.read(base .. "/new/a.txt"))
      assert.same({ "a.txt" }, files.list(base .. "/new"))
    end)

    it("replaces a file, keeping its mode", function()
      files.write(base .. "/a", "a longer old content")
      uv.fs_chmod(base .. "/a", tonumber("640", 8))
      assert.is_false(created(put("path=a", "hello"))[1].created)
      assert.same({ "hello", "640" }, { files.read(base .. "/a"), mode_of(base .. "/a") })
      created(put("path=a&mode=0600", "hello"))
      assert.equal("600", mode_of(base .. "/a"))
      created(put("path=b&mode=755", ""))
      assert.equal("755", mode_of(base .. "/b"))
    end)

    it("takes any type and an empty body", function()
      assert.same({ { path = base .. "/e", size = 0, sha256 = EMPTY_SHA256, created = true } }, created(put("path=e", "")))
      for _, media in ipairs { "application/json", "text/plain", "application/x-www-form-urlencoded" } do
        assert.equal(5, created(put("path=t", "{nope", { ["Content-Type"] = media }))[1].size)
      end
    end)

    it("checks the sum", function()
      assert.is_true(created(put("path=s&sha256=" .. HELLO_SHA256, "hello"))[1].created)
      check.problem(put("path=s2&sha256=" .. EMPTY_SHA256, "hello"), 422, "checksum_mismatch")
      check.problem(put("path=s&sha256=" .. EMPTY_SHA256, "other"), 422, "checksum_mismatch")
      assert.equal("hello", files.read(base .. "/s"))
      assert.same({ "s" }, files.list(base))
    end)

    it("decodes the path once", function()
      for target, name in pairs { ["a+b%20c"] = "a b c", ["%2541"] = "%41", ["n%0Al"] = "n\nl", ["%C3%BC"] = "ü",
        ["-rf"] = "-rf", ["~"] = "~", [("x"):rep(255)] = ("x"):rep(255) } do
        assert.equal(base .. "/" .. name, created(put("path=" .. target, "hello"))[1].path)
        assert.equal("hello", files.read(base .. "/" .. name))
      end
    end)

    it("shows names that are not UTF-8 as bytes too", function()
      local file = created(put("path=b%A4", "hello"))[1]
      assert.same({ base .. "/b\u{FFFD}", mime.b64(base .. "/b\xA4") }, { file.path, file.path_base64 })
      assert.equal("hello", files.read(base .. "/b\xA4"))
      file = created(put("path_base64=" .. http.escape(mime.b64("c\xA4")), "hello"))[1]
      assert.equal(mime.b64(base .. "/c\xA4"), file.path_base64)
    end)

    it("writes through a link that stays inside", function()
      files.write(base .. "/real", "old")
      uv.fs_symlink("real", base .. "/rel")
      uv.fs_symlink(base .. "/real", base .. "/abs")
      for _, link in ipairs { "rel", "abs" } do
        created(put("path=" .. link, link))
        assert.equal(link, files.read(base .. "/real"))
        assert.equal("link", uv.fs_lstat(base .. "/" .. link).type)
      end
    end)

    describe("refuses", function()
      local cases = {
        { "no path", "", 400, "invalid_request", "path" },
        { "the base itself", "path=.", 403, "base_dir_protected", "path" },
        { "the base by another name", "path=d/..", 403, "base_dir_protected", "path" },
        { "a parent", "path=../x", 403, "path_outside_base", "path" },
        { "an absolute path outside", "path=/etc/x", 403, "path_outside_base", "path" },
        { "a link that leaves", "path=leaves/x", 403, "path_outside_base", "path" },
        { "a file behind a link", "path=file-leaves", 403, "path_outside_base", "path" },
        { "a dangling link that leaves", "path=dangling", 403, "path_outside_base", "path" },
        { "a NUL", "path=a%00b", 400, "invalid_path", "path" },
        { "a name that is too long", "path=" .. ("x"):rep(256), 400, "invalid_path", "path" },
        { "a directory", "path=d", 400, "is_a_directory", "path" },
        { "a FIFO", "path=fifo", 400, "not_a_regular_file", "path" },
        { "a file as directory", "path=f/x", 400, "not_a_directory", "path" },
        { "missing parents when they may not be made", "path=p/x&create_parents=false", 404, "file_not_found", "path" },
        { "an old file when it may not be replaced", "path=f&overwrite=false", 409, "already_exists", "path" },
        { "a mode that is none", "path=x&mode=999", 400, "invalid_request", "mode" },
        { "a sum that is none", "path=x&sha256=" .. ("g"):rep(64), 400, "invalid_request", "sha256" },
        { "a word as boolean", "path=x&overwrite=maybe", 400, "invalid_request", "overwrite" },
        { "an unknown parameter", "path=x&nonsense=1", 400, "invalid_request", "nonsense" },
        { "a repeated parameter", "path=x&path=y", 400, "invalid_request", "path" },
      }
      for _, case in ipairs(cases) do
        it(case[1], function()
          files.mkdir(base .. "/d")
          files.write(base .. "/f", "old")
          uv.fs_symlink(outside, base .. "/leaves")
          uv.fs_symlink(outside .. "/keep", base .. "/file-leaves")
          uv.fs_symlink(outside .. "/new", base .. "/dangling")
          process.run { "mkfifo", base .. "/fifo" }
          check.problem(put(case[2], "hello"), case[3], case[4], case[5])
          assert.same({ "d", "dangling", "f", "fifo", "file-leaves", "leaves" }, files.list(base))
          assert.same({}, files.list(base .. "/d"))
          assert.equal("old", files.read(base .. "/f"))
        end)
      end
    end)
  end)

  describe("of a form", function()
    it("puts every file into dir under its own name", function()
      local answer = created(send_parts("dir=in", {
        { name = "f", filename = "a.txt", content = "hello", content_type = "text/plain" },
        { name = "f", filename = "C:\\x\\b.txt", content = "" },
        { name = "g", filename = "../../c.txt", content = "--\r\n----abx-test\r\n" },
      }))
      assert.same({
        { path = base .. "/in/a.txt", size = 5, sha256 = HELLO_SHA256, created = true },
        { path = base .. "/in/b.txt", size = 0, sha256 = EMPTY_SHA256, created = true },
      }, { answer[1], answer[2] })
      assert.same({ base .. "/in/c.txt", 18 }, { answer[3].path, answer[3].size })
      assert.equal("--\r\n----abx-test\r\n", files.read(base .. "/in/c.txt"))
      assert.same({ "a.txt", "b.txt", "c.txt" }, files.list(base .. "/in"))
    end)

    it("puts one file where the text part before it says", function()
      local answer = created(send_parts("", {
        { name = "path", content = "sub/named" }, { name = "file", filename = "ignored", content = "hello" },
      }))
      assert.equal(base .. "/sub/named", answer[1].path)
      assert.same({ "sub" }, files.list(base))
    end)

    it("checks the sum of the one file", function()
      local part = { name = "f", filename = "a", content = "hello" }
      created(send_parts("sha256=" .. HELLO_SHA256, { part }))
      check.problem(send_parts("sha256=" .. EMPTY_SHA256, { part }), 422, "checksum_mismatch")
      check.problem(send_parts("sha256=" .. HELLO_SHA256, { part, { name = "g", filename = "b", content = "" } }), 400,
        "invalid_request")
      assert.same({ "a" }, files.list(base))
    end)

    it("is all or nothing", function()
      files.write(base .. "/b", "old")
      check.problem(send_parts("overwrite=false", {
        { name = "f", filename = "a", content = "new" }, { name = "f", filename = "b", content = "new" },
        { name = "f", filename = "c", content = "new" },
      }), 409, "already_exists")
      assert.same({ "b" }, files.list(base))
      assert.equal("old", files.read(base .. "/b"))
    end)

    describe("that is broken is refused and leaves nothing:", function()
      local form = "multipart/form-data; boundary=B"
      local head = "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"%s\"\r\n\r\nhello"
      local cases = {
        { "no closing boundary", head:format("a") .. "\r\n", form },
        { "no boundary at all", "hello", form },
        { "no boundary parameter", head:format("a") .. "\r\n--B--\r\n", "multipart/form-data" },
        { "a part without disposition", "--B\r\nX-Y: z\r\n\r\nhello\r\n--B--\r\n", form },
        { "a head without end", "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"" .. ("a"):rep(100000), form },
        { "a name that is ..", head:format("..") .. "\r\n--B--\r\n", form, { 400, 403 } },
        { "a name that is .", head:format("a/.") .. "\r\n--B--\r\n", form, { 400, 403 } },
        { "a name with NUL", head:format("a\0b") .. "\r\n--B--\r\n", form },
        { "no file", "--B\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nhello\r\n--B--\r\n", form },
      }
      for _, case in ipairs(cases) do
        it(case[1], function()
          local answer = put("", case[2], { ["Content-Type"] = case[3] })
          assert.is_true(answer.status == 400 or answer.status == (case[4] or {})[2], answer.status .. answer.body)
          assert.equal("application/problem+json", answer.headers["content-type"])
          assert.same({}, files.list(base))
        end)
      end
    end)

    it("comes whole, however it is cut into segments", function()
      local body, content_type = http.multipart { { name = "f", filename = "a", content = "hello\r\n--" } }
      local function bytes()
        return body:gmatch(".")
      end
      local answer = abxd:request("POST", "/upload", { chunks = bytes(), headers = { ["Content-Type"] = content_type } })
      assert.equal(9, created(answer)[1].size)
      assert.equal("hello\r\n--", files.read(base .. "/a"))
    end)
  end)

  describe("that breaks off", function()
    local MIB = ("0123456789abcdef"):rep(65536)
    local ways = {
      { "with a reset", { ["Content-Length"] = 10 * #MIB }, "abort" },
      { "with an orderly end", { ["Content-Length"] = 10 * #MIB }, "close" },
      { "with a half close", { ["Content-Length"] = 10 * #MIB }, "finish" },
      { "in the middle of a chunk", { ["Transfer-Encoding"] = "chunked" }, "finish", ("%x\r\n"):format(10 * #MIB) },
      { "before the last chunk", { ["Transfer-Encoding"] = "chunked" }, "finish", ("%x\r\n"):format(3 * #MIB), "\r\n" },
    }
    for _, way in ipairs(ways) do
      it(way[1] .. " leaves the old file and no other", function()
        files.write(base .. "/v", "v1")
        local conn = abxd:connect()
        conn:send(http.head("POST", "/upload?path=v", "localhost", { headers = way[2] }) .. (way[4] or ""))
        for _ = 1, 3 do
          conn:send(MIB)
        end
        conn:send(way[5] or "")
        assert.equal("v1", files.read(base .. "/v"))
        conn[way[3]](conn)
        assert.is_true(process.poll(5000, function()
          return #files.list(base) == 1
        end))
        assert.equal("v1", files.read(base .. "/v"))
        if way[3] == "finish" then
          conn:is_closed(5)
          conn:close()
        end
      end)
    end

    it("leaves no directories either", function()
      local sum = ("0"):rep(64)
      check.problem(put("path=np1/x/y&sha256=" .. sum, "hello"), 422, "checksum_mismatch", "sha256")
      assert.same({}, files.list(base))
      local conn = abxd:connect()
      conn:send(http.head("POST", "/upload?path=np1/x/y", "localhost", { headers = { ["Content-Length"] = 10 * #MIB } })
        .. MIB)
      assert.is_true(process.poll(5000, function()
        return #files.list(base) == 1 -- the temporary file
      end))
      assert.is_false(files.exists(base .. "/np1"))
      conn:abort()
      assert.is_true(process.poll(5000, function()
        return #files.list(base) == 0
      end))
      check.problem(put("path=np1/../y", "hello"), 404, "file_not_found", "path")
      assert.same({}, files.list(base))
    end)

    it("removes every part of a form", function()
      local body, content_type = http.multipart {
        { name = "f", filename = "a", content = MIB }, { name = "f", filename = "b", content = MIB },
      }
      local conn = abxd:connect()
      conn:send(http.head("POST", "/upload", "localhost", { headers = { ["Content-Type"] = content_type,
        ["Content-Length"] = #body } }) .. body:sub(1, -3))
      uv.sleep(200)
      assert.is_false(files.exists(base .. "/a"))
      conn:abort()
      assert.is_true(process.poll(5000, function()
        return #files.list(base) == 0
      end))
    end)
  end)

  it("takes chunked bodies with trailers", function()
    local answer = http.raw(abxd, http.head("POST", "/upload?path=c", "localhost", { headers = {
      ["Transfer-Encoding"] = "chunked", Trailer = "X-Sum" } }) .. "2\r\nhe\r\n3;ext=1\r\nllo\r\n0\r\nX-Sum: 1\r\n\r\n")
    assert.equal(HELLO_SHA256, created(answer)[1].sha256)
  end)

  it("answers Expect, and refuses what it does not know", function()
    local conn = abxd:connect()
    conn:send(http.head("POST", "/upload?path=x", "localhost", { headers = { Expect = "100-continue",
      ["Content-Length"] = 5 } }))
    assert.equal("HTTP/1.1 100 Continue", conn:read_line())
    conn:read_line()
    conn:send("hello")
    assert.equal(201, conn:read_response().status)
    conn:close()
    check.problem(put("path=x", "hello", { Expect = "magic" }), 417, "expectation_failed")
  end)

  it("runs in flat memory", function()
    local before, mib = abxd:rss_bytes(), ("x"):rep(1024 * 1024)
    local count, highest = 0, 0
    local answer = abxd:request("POST", "/upload?path=big", { length = 200 * #mib, chunks = function()
      count = count + 1
      if count % 50 == 0 then
        highest = math.max(highest, abxd:rss_bytes())
      end
      return count <= 200 and mib or nil
    end })
    local file = created(answer)[1]
    assert.same({ 200 * #mib, check.sha256_of(base .. "/big") }, { file.size, file.sha256 })
    assert.is_true(highest - before < 48 * 1024 * 1024, ("grew by %d"):format(highest - before))
  end)

  it("keeps one whole file when two write it at once", function()
    local conns = {}
    for i = 1, 2 do
      conns[i] = abxd:connect()
      conns[i]:send(http.head("POST", "/upload?path=race", "localhost", { headers = { ["Content-Length"] = 200000 } }))
      conns[i]:send((tostring(i)):rep(100000))
    end
    for i = 1, 2 do
      conns[i]:send((tostring(i)):rep(100000))
    end
    for i = 1, 2 do
      assert.equal(201, conns[i]:read_response().status)
      conns[i]:close()
    end
    local content = files.read(base .. "/race")
    assert.is_true(content == ("1"):rep(200000) or content == ("2"):rep(200000))
    assert.same({ "race" }, files.list(base))
  end)

  it("never leaves the base while a directory is swapped for a link", function()
    files.mkdir(base .. "/real")
    files.write(base .. "/swap.sh", ("while :; do ln -sfn %s d; ln -sfn real d; done"):format(outside))
    local swapper = process.start({ "bash", "swap.sh" }, { cwd = base })
    local statuses = {}
    for _ = 1, 150 do
      local status = put("path=d/x", "hello").status
      statuses[status] = true
      assert.is_true(status == 201 or status == 403 or status == 404 or status == 409, tostring(status))
    end
    swapper:kill("sigkill")
    swapper:wait(5000)
    assert.is_true(statuses[201])
  end)
end)
