local check = require("support.check")
local file_verbs = require("support.file_verbs")
local files = require("support.files")
local http = require("support.http")
local mime = require("mime")
local server = require("support.server")
local unprivileged = require("support.unprivileged")
local uv = require("luv")

describe("GET /files/list", function()
  local abxd, baseline, base

  lazy_setup(function()
    abxd = server.start()
    base = abxd.base_dir
    files.mkdir(base .. "/tree")
    files.write(base .. "/tree/b.lua", "12345")
    uv.fs_chmod(base .. "/tree/b.lua", tonumber("640", 8))
    uv.fs_utime(base .. "/tree/b.lua", 1000000000, 1000000001.5)
    files.write(base .. "/tree/.hidden", "")
    files.mkdir(base .. "/tree/a")
    files.write(base .. "/tree/a/x.lua", "")
    files.mkdir(base .. "/tree/a/.git")
    files.write(base .. "/tree/a/.git/config", "")
    uv.fs_symlink("b.lua", base .. "/tree/l")
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function get(query)
    return abxd:get("/files/list?" .. query)
  end

  --- The entries' paths relative to `from`, joined by spaces.
  local function names(list, from)
    local all = {}
    for i, entry in ipairs(list.entries) do
      assert.equal(from .. "/", entry.path:sub(1, #from + 1))
      all[i] = entry.path:sub(#from + 2)
    end
    return table.concat(all, " ")
  end

  local function listed(query)
    return names(check.ok(get("path=tree&" .. query)), base .. "/tree")
  end

  --- All pages together, as names gives them, and how many pages.
  local function paged(query)
    local pages, all, cursor = 0, {}, nil
    repeat
      local list = check.ok(get("path=tree&" .. query .. (cursor and "&cursor=" .. cursor or "")))
      cursor, pages = list.next_cursor, pages + 1
      assert.equal(list.truncated, type(cursor) == "string")
      all[pages] = names(list, base .. "/tree")
    until not list.truncated
    return table.concat(all, " "), pages
  end

  it("tells of each entry what is to be known", function()
    local list = check.ok(get("path=tree&glob=b.*"))
    local stat = check.ok(abxd:get("/files/stat?path=tree/b.lua"))
    assert.same({ path = base .. "/tree", entries = { {
      path = base .. "/tree/b.lua", name = "b.lua", type = "file", size = 5, mode = "0640", owner = stat.owner,
      group = stat.group, modified_at = "2001-09-09T01:46:41.500Z",
    } }, truncated = false, next_cursor = list.next_cursor, errors = {} }, list)
    assert.is_truthy(get("path=tree").body:find('"next_cursor":null', 1, true))
    local link = check.ok(get("path=tree&glob=l")).entries[1]
    assert.same({ "symlink", "b.lua" }, { link.type, link.target })
  end)

  it("lists the base unless told otherwise", function()
    local list = check.ok(abxd:get("/files/list"))
    assert.same({ base, "tree" }, { list.path, list.entries[1].name })
  end)

  it("is sorted, a directory before what is in it", function()
    assert.equal(".hidden a b.lua l", listed(""))
    assert.equal(".hidden a a/.git a/.git/config a/x.lua b.lua l", listed("recursive=true"))
  end)

  it("leaves out what it is told to", function()
    assert.equal("a a/x.lua b.lua l", listed("recursive=true&hidden=false"))
    assert.equal(".hidden a a/.git a/x.lua b.lua l", listed("recursive=true&max_depth=2"))
    assert.equal(".hidden a b.lua l", listed("recursive=true&max_depth=1"))
    assert.equal("a/x.lua b.lua", listed("recursive=true&glob=*.lua"))
    assert.equal("b.lua", listed("glob=*.lua"))
    assert.equal("a/x.lua", listed("recursive=true&glob=a/*.lua"))
    assert.equal("a/.git a/.git/config a/x.lua", listed("recursive=true&glob=a/**"))
    assert.equal("a/x.lua", listed("recursive=true&glob=a/**&hidden=false"))
  end)

  it("pages come together to the whole, whatever their size", function()
    local whole = listed("recursive=true")
    for limit = 1, 8 do
      local all, pages = paged("recursive=true&limit=" .. limit)
      assert.same({ whole, math.ceil(7 / limit) }, { all, pages })
    end
  end)

  it("a page goes on where the last one ended, though entries come and go", function()
    files.mkdir(base .. "/moving")
    for _, name in ipairs { "b", "d", "f" } do
      files.write(base .. "/moving/" .. name, "")
    end
    local first = check.ok(get("path=moving&limit=2"))
    assert.equal("b d", names(first, base .. "/moving"))
    uv.fs_unlink(base .. "/moving/d")
    for _, name in ipairs { "a", "c", "e" } do
      files.write(base .. "/moving/" .. name, "")
    end
    local second = check.ok(get("path=moving&limit=2&cursor=" .. first.next_cursor))
    assert.same({ "e f", false }, { names(second, base .. "/moving"), second.truncated })
  end)

  it("refuses what it cannot take", function()
    for _, query in ipairs { "limit=0", "limit=10001", "max_depth=0", "recursive=yes", "glob=", "hidden=1", "limit=x" } do
      assert.same({ query:match("^%a+_?%a*") }, check.faulty_fields(get("path=tree&" .. query)))
    end
    assert.same({ "glub" }, check.faulty_fields(get("path=tree&glub=1")))
    for _, cursor in ipairs { "x", "YQ==", "%2e%2e", "YmEv", ("A"):rep(9000) } do
      local answer = get("path=tree&cursor=" .. cursor)
      check.problem(answer, 400, "invalid_request", "cursor")
    end
    check.problem(get("path=tree&glob=%5Ba"), 400, "invalid_request", "glob")
    check.problem(get("path=tree/b.lua"), 400, "not_a_directory", "path")
    check.problem(get("path=tree/b.lua/x"), 400, "not_a_directory", "path")
    check.problem(get("path=none"), 404, "file_not_found", "path")
    check.problem(get("path=..&recursive=true"), 403, "path_outside_base", "path")
  end)

  it("shows links that loop, lead up or lead nowhere once, and follows none", function()
    local dir = base .. "/links"
    files.mkdir(dir)
    files.mkdir(dir .. "/a")
    for name, target in pairs { self = "self", up = "..", ["a/b"] = "../a", dangling = "none", out = "/etc" } do
      uv.fs_symlink(target, dir .. "/" .. name)
    end
    files.mkdir(dir .. "/zero")
    uv.fs_chmod(dir .. "/zero", 0)
    local list = check.ok(get("path=links&recursive=true"))
    assert.equal("a a/b dangling out self up zero", names(list, dir))
    for _, entry in ipairs(list.entries) do
      local is_dir = entry.name == "a" or entry.name == "zero"
      assert.equal(is_dir and "directory" or "symlink", entry.type)
    end
  end)

  it("tells which directories it could not read, and lists the rest", function()
    uv.fs_chmod(abxd.root, tonumber("755", 8))
    local locked <close> = unprivileged("files_list_spec: unreadable directories", { base_dir = base })
    files.mkdir(base .. "/part")
    files.mkdir(base .. "/part/locked")
    files.write(base .. "/part/z", "")
    uv.fs_chmod(base .. "/part/locked", 0)
    local list = check.ok(locked:get("/files/list?path=part&recursive=true"))
    assert.equal("locked z", names(list, base .. "/part"))
    assert.same({ { path = base .. "/part/locked", code = "permission_denied" } }, list.errors)
    check.problem(locked:get("/files/list?path=part/locked"), 403, "permission_denied", "path")
  end)

  it("gives names that every verb takes back", function()
    local dir = base .. "/names"
    files.mkdir(dir)
    files.mkdir(base .. "/copies")
    local strange = { "b\xA4.txt", "n\nl", "-rf", "%41.txt", "a%2fb", "\"q'.txt", "~", ("n"):rep(255), " " }
    for i, name in ipairs(strange) do
      files.write(dir .. "/" .. name, "content " .. i)
    end
    local list = check.ok(get("path=names"))
    assert.equal(#strange, #list.entries)
    local seen = {}
    for _, entry in ipairs(list.entries) do
      local path = entry.path_base64 and mime.unb64(entry.path_base64) or entry.path
      seen[path:match("[^/]*$")] = true
      local query = entry.path_base64 and "path_base64=" .. http.escape(entry.path_base64) or "path=" ..
        http.escape(entry.path)
      assert.equal(#files.read(path), check.ok(abxd:get("/files/stat?" .. query)).size)
      assert.equal(files.read(path), check.ok(abxd:get("/files/read?" .. query)).content)
    end
    for _, name in ipairs(strange) do
      assert.is_true(seen[name], name)
    end
    check.problem(abxd:get("/files/stat?path=names/A.txt"), 404, "file_not_found", "path")
    -- Pages end at such names, too, and directories are named so.
    files.mkdir(dir .. "/d\xFF")
    files.write(dir .. "/d\xFF/x", "")
    local count, cursor = 0, nil
    repeat
      local page = check.ok(get("path=names&recursive=true&limit=1" .. (cursor and "&cursor=" .. cursor or "")))
      count, cursor = count + #page.entries, page.next_cursor
    until not page.truncated
    assert.equal(#strange + 2, count)
    local inner = check.ok(get(file_verbs.query("path", "names/d\xFF")))
    assert.same({ mime.b64(dir .. "/d\xFF"), "x", mime.b64(dir .. "/d\xFF/x") }, { inner.path_base64,
      inner.entries[1].name, inner.entries[1].path_base64 })
  end)

  it("10,000 entries are one page, more are paged, and others are served meanwhile", function()
    files.mkdir(base .. "/many")
    for i = 1, 10001 do
      uv.fs_close(assert(uv.fs_open(("%s/many/f%05d"):format(base, i), "w", tonumber("644", 8))))
    end
    local conn = abxd:connect()
    conn:send_request("GET", "/files/list?path=many&limit=10000&recursive=true")
    check.prompt(abxd, 0.1)
    local list = conn:read_response("GET"):json()
    conn:close()
    assert.same({ 10000, true, "f00001", "f10000" }, { #list.entries, list.truncated, list.entries[1].name,
      list.entries[10000].name })
    local last = check.ok(get("path=many&limit=10000&cursor=" .. list.next_cursor))
    assert.same({ 1, false, "f10001" }, { #last.entries, last.truncated, last.entries[1].name })
    assert.equal(1000, #check.ok(get("path=many")).entries)
  end)

  it("the files of the server itself, and what the kernel makes, are not listed below /", function()
    local root = server.start { base_dir = "/", tables = true }
    local tables = root.tables.dir
    local list = check.ok(root:get("/files/list?recursive=true&path=" .. http.escape(tables)))
    assert.equal("config", names(list, tables))
    assert.same({
      { path = tables .. "/config/commands.lua", code = "permission_denied" },
      { path = tables .. "/config/server.lua", code = "permission_denied" },
      { path = tables .. "/lua", code = "permission_denied" },
    }, list.errors)
    check.problem(root:get("/files/list?path=" .. tables .. "/lua"), 403, "permission_denied", "path")

    local top = check.ok(root:get("/files/list?recursive=true&max_depth=2&glob=/proc"))
    assert.same({ "/proc", 1 }, { top.entries[1].path, #top.entries })
    local codes = {}
    for _, fault in ipairs(top.errors) do
      codes[fault.path] = fault.code
    end
    assert.equal("not_a_regular_file", codes["/proc"])
    local process_dir = check.ok(root:get("/files/list?path=/proc/1&limit=10"))
    assert.same({ 10, true }, { #process_dir.entries, process_dir.truncated })

    -- A walk over the whole machine ends when its client leaves.
    local before = root:baseline()
    for _ = 1, 3 do
      local conn = root:connect()
      conn:send_request("GET", "/files/list?recursive=true&glob=no-such-name&path=/")
      check.prompt(root, 0.1)
      conn:abort()
    end
    root:assert_settled(before)
    root:stop()
  end)
end)
