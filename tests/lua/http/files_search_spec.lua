local check = require("support.check")
local files = require("support.files")
local mime = require("mime")
local process = require("support.process")
local server = require("support.server")
local unprivileged = require("support.unprivileged")
local uv = require("luv")

describe("POST /files/search", function()
  local abxd, baseline, base

  lazy_setup(function()
    abxd = server.start()
    baseline = abxd:baseline()
  end)
  lazy_teardown(function()
    abxd:stop()
  end)
  -- Each test begins with a fresh base.
  before_each(function()
    base = abxd.base_dir
    for _, name in ipairs(files.list(base)) do
      files.remove_tree(base .. "/" .. name)
    end
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)

  local function search(body)
    return check.ok(abxd:post("/files/search", body))
  end

  --- "name:line:column" of each match, in order.
  local function places(answer)
    local found = {}
    for _, match in ipairs(answer.matches) do
      found[#found + 1] = ("%s:%d:%d"):format(match.path:sub(#base + 2), match.line, match.column)
    end
    return found
  end

  local function refused(body, status, code, field)
    return check.problem(abxd:post("/files/search", body), status, code, field)
  end

  it("tells each line that matches", function()
    files.mkdir(base .. "/d")
    files.write(base .. "/d/a", "one\ntwo three\n\nfour")
    files.write(base .. "/b", "three three\n")
    local answer = search { pattern = "t[h]ree" }
    assert.same({ "b:1:1", "d/a:2:5" }, places(answer))
    assert.same({ path = base .. "/d/a", line = 2, column = 5, text = "two three", line_truncated = false, before = {},
      after = {} }, answer.matches[2])
    assert.same({ false, false, 2 }, { answer.truncated, answer.timed_out, answer.files_searched })
    answer = search { path = "d", pattern = "^$", context = 2 }
    assert.same({ { "one", "two three" }, { "four" } }, { answer.matches[1].before, answer.matches[1].after })
    assert.same({ "b:1:1" }, places(search { path = "b", pattern = "three" }))
    assert.same({ "d/a:4:2" }, places(search { path = base .. "/d", pattern = "our$" }))
    assert.same({}, places(search { pattern = "nowhere" }))
  end)

  it("takes a pattern for an expression, or as it is", function()
    files.write(base .. "/a", "f.o\nfoo\nFOO\n")
    assert.same({ "a:1:1", "a:2:1" }, places(search { pattern = "f.o" }))
    assert.same({ "a:1:1" }, places(search { pattern = "f.o", regex = false }))
    assert.same({ "a:2:1", "a:3:1" }, places(search { pattern = "foo", regex = false, case_sensitive = false }))
    assert.same({ "a:1:1", "a:2:1", "a:3:1" }, places(search { pattern = "f.o", case_sensitive = false }))
  end)

  describe("never takes a pattern for an option:", function()
    for _, pattern in ipairs { "-e", "--pre=/bin/sh", "--version", "->", "- [ ]", "-77", "$(id)", "%d+", "\\Q" } do
      it(pattern, function()
        files.write(base .. "/a", "nothing\nx " .. pattern .. " y\n")
        assert.same({ "a:2:3" }, places(search { pattern = pattern, regex = false }))
      end)
    end
  end)

  it("finds NUL in a text that is otherwise none", function()
    files.write(base .. "/a", ("x\n"):rep(40000) .. "a\0b\n")
    assert.same({ "a:40001:1" }, places(search { pattern = "a\0b", regex = false }))
    assert.same({ "a:40001:1" }, places(search { pattern = "a\0b" }))
  end)

  describe("refuses", function()
    local cases = {
      { "an open group", { pattern = "(" }, 400, "invalid_regex", "pattern" },
      { "a repeat of nothing", { pattern = "*" }, 400, "invalid_regex", "pattern" },
      { "an expression too large", { pattern = "((a{1000}){1000}){1000}" }, 400, "invalid_regex", "pattern" },
      { "no pattern", { pattern = "" }, 400, "invalid_request", "pattern" },
      { "a text of two lines", { pattern = "a\nb", regex = false }, 400, "invalid_request", "pattern" },
      { "a faulty glob", { pattern = "a", glob = "[a" }, 400, "invalid_request", "glob" },
      { "a faulty exclude", { pattern = "a", exclude = { "ok", "{a" } }, 400, "invalid_request", "exclude" },
      { "too much context", { pattern = "a", context = 21 }, 400, "invalid_request", "context" },
      { "no results", { pattern = "a", max_results = 0 }, 400, "invalid_request", "max_results" },
      { "a missing path", { pattern = "a", path = "missing" }, 404, "file_not_found", "path" },
      { "a path outside", { pattern = "a", path = "../x" }, 403, "path_outside_base", "path" },
      { "a FIFO", { pattern = "a", path = "fifo" }, 400, "not_a_regular_file", "path" },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        process.run { "mkfifo", base .. "/fifo" }
        refused(case[2], case[3], case[4], case[5])
      end)
    end

    it("an expression, and says where it fails", function()
      assert.matches("at byte 4: missing closing parenthesis", refused({ pattern = "ab(c" }, 400, "invalid_regex").detail, 1,
        true)
    end)
  end)

  it("searches regular text files only, and follows no link", function()
    files.mkdir(abxd.root .. "/outside")
    files.write(abxd.root .. "/outside/secret", "needle\n")
    uv.fs_symlink(abxd.root .. "/outside", base .. "/dir")
    uv.fs_symlink(abxd.root .. "/outside/secret", base .. "/file")
    uv.fs_symlink(".", base .. "/loop")
    process.run { "mkfifo", base .. "/fifo" }
    files.write(base .. "/binary", "needle\0needle\n")
    files.write(base .. "/a", "needle\n")
    local answer = search { pattern = "needle" }
    files.remove_tree(abxd.root .. "/outside")
    assert.same({ "a:1:1" }, places(answer))
    assert.equal(1, answer.files_searched)
  end)

  it("leaves out what it may not read", function()
    uv.fs_chmod(abxd.root, tonumber("755", 8))
    local locked <close> = unprivileged("files_search_spec: unreadable files", { base_dir = base })
    files.write(base .. "/a", "needle\n")
    files.write(base .. "/b", "needle\n")
    files.mkdir(base .. "/c")
    uv.fs_chmod(base .. "/a", 0)
    uv.fs_chmod(base .. "/c", 0)
    local answer = check.ok(locked:post("/files/search", { pattern = "needle" }))
    assert.same({ "b:1:1" }, places(answer))
    assert.equal(2, answer.unreadable)
  end)

  it("chooses by globs", function()
    for _, dir in ipairs { ".git", "src", "src/node_modules" } do
      files.mkdir(base .. "/" .. dir)
      files.write(base .. "/" .. dir .. "/a.c", "x")
    end
    files.write(base .. "/src/a.h", "x")
    assert.same({ "src/a.c:1:1", "src/a.h:1:1" }, places(search { pattern = "x" }))
    assert.same({ ".git/a.c:1:1", "src/a.c:1:1", "src/node_modules/a.c:1:1" },
      places(search { pattern = "x", glob = "*.c", exclude = require("support.json").array {} }))
    assert.same({ "src/a.h:1:1" }, places(search { pattern = "x", glob = "src/*.h" }))
    assert.same({ "src/a.h:1:1" }, places(search { pattern = "x", exclude = { ".git", "src/node_modules", "**/*.c" } }))
    assert.same({ ".git/a.c:1:1", "src/node_modules/a.c:1:1" },
      places(search { pattern = "x", exclude = { "src/a.*" } }))
  end)

  it("shows names that are not UTF-8 as bytes too", function()
    files.write(base .. "/b\xA4", "x")
    files.write(base .. "/n\nl %41 \"q\"", "x")
    local matches = search { pattern = "x" }.matches
    assert.same({ base .. "/b\u{FFFD}", mime.b64(base .. "/b\xA4") }, { matches[1].path, matches[1].path_base64 })
    assert.same({ base .. "/n\nl %41 \"q\"", nil }, { matches[2].path, matches[2].path_base64 })
    assert.same(1, #search { path_base64 = matches[1].path_base64, pattern = "x" }.matches)
  end)

  it("shows text that is not UTF-8 as far as it goes", function()
    files.write(base .. "/a", "na\xEFve caf\xE9\n")
    local match = search { pattern = "caf" }.matches[1]
    assert.same({ "na\u{FFFD}ve caf\u{FFFD}", true, 7 }, { match.text, match.lossy, match.column })
    assert.equal(1, #search { pattern = "na.*caf" }.matches + #search { pattern = "ve caf" }.matches)
  end)

  it("knows line ends of all kinds", function()
    files.write(base .. "/crlf", "one;\r\ntwo\r\n")
    files.write(base .. "/open", "x\nend;")
    assert.same({ "crlf:1:4", "open:2:4" }, places(search { pattern = ";$" }))
    assert.equal("one;", search { pattern = "one" }.matches[1].text)
    assert.same({ "crlf:2:1" }, places(search { pattern = "^two$" }))
  end)

  it("gives overlapping contexts to each match", function()
    files.write(base .. "/a", "m1\na\nm2\nb\nc\nm3")
    local matches = search { pattern = "m", context = 2 }.matches
    assert.same({ {}, { "a", "m2" } }, { matches[1].before, matches[1].after })
    assert.same({ { "m1", "a" }, { "b", "c" } }, { matches[2].before, matches[2].after })
    assert.same({ { "b", "c" }, {} }, { matches[3].before, matches[3].after })
  end)

  it("ends at max_results and says whether there are more", function()
    files.write(base .. "/a", "x\nx\n")
    files.write(base .. "/b", "x\n")
    local one, all = search { pattern = "x", max_results = 1 }, search { pattern = "x", max_results = 3 }
    assert.same({ { "a:1:1" }, true }, { places(one), one.truncated })
    assert.same({ { "a:1:1", "a:2:1", "b:1:1" }, false }, { places(all), all.truncated })
  end)

  it("cuts long lines around the match", function()
    files.write(base .. "/a", ("é"):rep(3000) .. "needle" .. ("é"):rep(3000) .. "\n")
    local match = search { pattern = "needle" }.matches[1]
    assert.same({ 6001, true, 1000 }, { match.column, match.line_truncated, #match.text })
    assert.matches("^éé.*needleéé.*é$", match.text)
  end)

  it("searches a file of one line of 50 MB", function()
    local line = ("a"):rep(1000000)
    local file = assert(io.open(base .. "/huge", "wb"))
    for i = 1, 50 do
      file:write(line, i == 40 and "needle" or "")
    end
    file:close()
    for _, regex in ipairs { true, false } do
      local answer = search { pattern = "needle", regex = regex, context = 1 }
      assert.same({ { "huge:1:40000001" }, false }, { places(answer), answer.timed_out })
      assert.is_true(#answer.matches[1].text <= 1000)
    end
    assert.same({ "huge:1:40000001" }, places(search { pattern = "n[^x]edle" }))
    assert.same({}, places(search { pattern = "[b-z]{7}" }))
  end)

  -- Ten kilobytes would take longer than the world is old; the 20,000 lines of the second file some minutes.
  it("gives up an expression that runs wild, keeps its time, and serves meanwhile", function()
    files.write(base .. "/a", ("a"):rep(10000) .. "b\n")
    assert.same({ {}, false, 1 }, { places(search { pattern = "(a+)+$" }), false, 1 })
    files.write(base .. "/a", "xxy\n" .. (("x"):rep(40) .. "\n"):rep(20000))
    local conn = abxd:connect()
    conn:send_request("POST", "/files/search", { json = { pattern = "(x+x+)+[yz]", timeout_ms = 1000 } })
    check.prompt(abxd, 0.05)
    local answer = check.ok(conn:read_response("POST"))
    conn:close()
    assert.same({ true, "a:1:1" }, { answer.timed_out, places(answer)[1] })
  end)

  it("ends when its client leaves", function()
    files.write(base .. "/a", (("x"):rep(40) .. "\n"):rep(20000))
    local conn = abxd:connect()
    conn:send_request("POST", "/files/search", { json = { pattern = "(x+x+)+[yz]", timeout_ms = 600000 } })
    uv.sleep(200)
    conn:abort()
    -- after_each waits until the server has settled, its threads too
  end)
end)
