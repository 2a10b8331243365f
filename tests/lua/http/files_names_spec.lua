--- Names that are not UTF-8, or that a shell, a query or a pattern would take for something else: /files/list tells them,
--- and every verb works on each by what was told.
local check = require("support.check")
local file_verbs = require("support.file_verbs")
local files = require("support.files")
local mime = require("mime")
local server = require("support.server")
local snapshot = require("support.snapshot")

local NAMES = {
  "b\xa4.txt", "\xff", "\xc3", "\xed\xa0\x80", "n\nl", "\n", "\r", "\t", "cr\r\nlf", "-rf", "-", "--", "%41.txt", "%00",
  "a%2fb", "%2e%2e", "%", "+", "a+b", "\"q'.txt", "\"", "'", "~", "~root", (("x"):rep(255)), ("\xa4"):rep(255),
  ("\u{20ac}"):rep(85), " ", "  ", " a ", "back\\slash", "\\", "..\\x", "...", "..a", ".hidden", "*", "?", "[a]", "{a,b}", "!a",
  "$(id)", "`id`", "a;b", "a|b", "a&b=c", "#", "?q=1", "\1", "\27[31m", "\127", "\u{2028}", "e\u{301}", "\u{e9}", "null", "C:",
}
-- What a name would be where it was decoded once too often, or cut.
local DECOYS = { "A.txt", "A", "n", "b.txt", "x", "q", "a" }

--- name as a word of bash.
local function quoted(name)
  return "$'" .. name:gsub(".", function(char)
    return ("\\x%02x"):format(char:byte())
  end) .. "'"
end

local function content_of(name)
  return "inner of " .. mime.b64(name)
end

--- The bytes of answer[key], whichever way they were told; asserts that both ways agree.
local function told(answer, key)
  local base64 = answer[key .. "_base64"]
  local bytes = base64 and mime.unb64(base64) or answer[key]
  assert.is_truthy(utf8.len(answer[key]))
  assert.equal(utf8.len(bytes) == nil, base64 ~= nil)
  return bytes
end

describe("Strange names", function()
  local abxd, base, baseline

  lazy_setup(function()
    abxd = server.start()
    base = abxd.base_dir
    local words = {}
    for i, name in ipairs(NAMES) do
      words[i] = ("printf %%s '%s' > ./%s"):format(content_of(name), quoted(name))
    end
    files.mkdir(base .. "/s")
    local run = check.ok(abxd:post("/shell", { command = table.concat(words, "\n"), cwd = "s" }))
    assert.same({ 0, "" }, { run.exit_code, run.stderr })
    for _, name in ipairs(DECOYS) do
      files.write(base .. "/s/" .. name, "decoy")
    end
    for _, name in ipairs { "a%2fb", "a", "copies", "moved", "dirs" } do
      files.mkdir(base .. "/" .. name)
    end
    files.write(base .. "/a/b", "decoy")
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  --- {[name] = the path that /files/list told for it} of the folder s.
  local function listed()
    local answer = check.ok(abxd:get("/files/list?path=s"))
    local paths = {}
    for _, entry in ipairs(answer.entries) do
      local path = told(entry, "path")
      local name = path:match("^" .. base:gsub("%p", "%%%0") .. "/s/(.*)$")
      paths[name] = path
      assert.same({ utf8.len(name) and name or entry.name, "file" }, { entry.name, entry.type })
    end
    return paths, answer
  end

  --- One request of a verb on a path; its answer, decoded.
  local function send(name, verb_name, path, other)
    local answer = file_verbs.send(abxd, file_verbs[verb_name], path, other)
    assert.is_true(answer.status == 200 or answer.status == 201, ("%s of %q: %s"):format(verb_name, name, answer.body))
    return answer.headers["content-type"] == "application/json" and answer:json() or answer
  end

  --- What no request may change: all but the file of that name.
  local function all_but(name)
    local found = { s = snapshot(base .. "/s"), a = snapshot(base .. "/a") }
    found.s["./" .. name] = nil
    return found
  end

  it("are listed, each once", function()
    local paths, answer = listed()
    for _, name in ipairs(NAMES) do
      assert.equal(base .. "/s/" .. name, paths[name], ("%q"):format(name))
    end
    assert.equal(#NAMES + #DECOYS, #answer.entries)
    assert.is_false(answer.truncated)
  end)

  it("are paged through one by one", function()
    local seen, cursor, pages = {}, "", 0
    repeat
      local answer = check.ok(abxd:get("/files/list?path=s&limit=1" .. cursor))
      local path = told(answer.entries[1], "path")
      assert.is_nil(seen[path])
      seen[path] = true
      pages = pages + 1
      cursor = answer.truncated and "&" .. file_verbs.query("cursor", answer.next_cursor)
    until not cursor
    assert.equal(#NAMES + #DECOYS, pages)
  end)

  it("are found by a search of the folder", function()
    local answer = check.ok(abxd:post("/files/search", { path = "s", pattern = "inner of", regex = false }))
    local found = {}
    for _, match in ipairs(answer.matches) do
      found[told(match, "path")] = match.text
    end
    for _, name in ipairs(NAMES) do
      assert.equal(content_of(name), found[base .. "/s/" .. name], ("%q"):format(name))
    end
    assert.equal(#NAMES, #answer.matches)
  end)

  it("work with every verb that looks", function()
    local paths, before = listed(), all_but("")
    for _, name in ipairs(NAMES) do
      local path, content = paths[name], content_of(name)
      assert.equal(content, send(name, "read", path).content)
      assert.equal(content, send(name, "read by lines", path).content)
      assert.equal(path, told(send(name, "read", path), "path"))
      local stat = send(name, "stat with checksum", path)
      assert.same({ path, check.sha256_of(path) }, { told(stat, "path"), stat.sha256 })
      assert.equal(content, send(name, "download", path).body)
      local matches = send(name, "search", path).matches
      assert.same({ 1, path }, { #matches, told(matches[1], "path") })
    end
    assert.same(before, all_but(""))
  end)

  it("work with every verb that changes", function()
    local paths = listed()
    for _, name in ipairs(NAMES) do
      local path, before = paths[name], all_but(name)
      local copy, moved, dir = base .. "/copies/" .. name, base .. "/moved/" .. name, base .. "/dirs/" .. name
      local content = content_of(name)

      local answer = send(name, "copy, source", path, copy)
      assert.same({ path, copy, copy }, { told(answer, "source"), told(answer, "destination"), told(answer.entry, "path") })
      assert.equal(content, files.read(copy))
      answer = send(name, "move, source", copy, moved)
      assert.same({ copy, moved }, { told(answer, "source"), told(answer, "destination") })
      assert.same({ content, false }, { files.read(moved), files.exists(copy) })

      answer = send(name, "mkdir", dir)
      assert.same({ dir, true }, { told(answer, "path"), answer.created })
      assert.equal(dir, told(send(name, "list", dir), "path"))
      assert.equal("", send(name, "cwd of /shell", dir).stdout)
      assert.equal(1, send(name, "delete", dir).deleted)
      assert.same({}, files.list(base .. "/dirs"))

      send(name, "edits", path)
      assert.equal((content:gsub("inner", "edited")), files.read(path))
      send(name, "append", path)
      assert.equal((content:gsub("inner", "edited")) .. "+", files.read(path))
      assert.equal(path, told(send(name, "write", path), "path"))
      assert.equal("written", files.read(path))
      send(name, "upload", path)
      assert.equal("uploaded", files.read(path))

      assert.equal(path, told(send(name, "delete", path), "path"))
      assert.is_false(files.exists(path))
      send(name, "move, source", moved, path)
      assert.equal(content, files.read(path))
      assert.same({}, files.list(base .. "/moved"))
      assert.same(before, all_but(name))
    end
  end)

  it("may be removed with the folder that holds them", function()
    files.copy_tree(base .. "/s", base .. "/t")
    local count = #files.list(base .. "/t")
    assert.equal(count + 1, send("t", "delete", "t").deleted)
    assert.is_false(files.exists(base .. "/t"))
  end)
end)
