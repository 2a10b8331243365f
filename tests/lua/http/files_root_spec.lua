--- With the root of the file system as base everything is inside it, but the operator's tables and configuration: no verb
--- reads or changes those, nor does work on a tree that holds them. Nor is anything of the kernel's file systems read.
local check = require("support.check")
local file_verbs = require("support.file_verbs")
local files = require("support.files")
local process = require("support.process")
local server = require("support.server")
local snapshot = require("support.snapshot")
local uv = require("luv")

describe("With / as base", function()
  local abxd, work, tables, before

  lazy_setup(function()
    work = assert(uv.fs_realpath(files.mkdtemp()))
    tables = server.copy_tables()
    files.mkdir(work .. "/ops")
    files.copy_tree(tables.dir .. "/lua", work .. "/ops/lua")
    files.copy_tree(tables.dir .. "/config", work .. "/ops/config")
    files.write(work .. "/ops/note", "inner")
    files.write(work .. "/other", "other")
    uv.fs_symlink("ops/lua", work .. "/alias")
    abxd = server.start { base_dir = "/", tables = { lua_dir = work .. "/ops/lua",
      commands = work .. "/ops/config/commands.lua", config = work .. "/ops/config/server.lua" } }
    before = snapshot(work)
  end)
  lazy_teardown(function()
    abxd:stop()
    files.remove_tree(tables.dir)
    files.remove_tree(work)
  end)

  it("absolute and relative paths name the same", function()
    for _, path in ipairs { work .. "/other", work:sub(2) .. "/other", "/proc/self/root" .. work .. "/other" } do
      local answer = check.ok(file_verbs.send(abxd, file_verbs.read, path))
      assert.same({ work .. "/other", "other" }, { answer.path, answer.content })
    end
    check.problem(file_verbs.send(abxd, file_verbs.read, "/.." .. work .. "/other"), 403, "path_outside_base", "path")
  end)

  it("the root itself cannot be removed, moved or replaced", function()
    for _, path in ipairs { "/", ".", "//", "/tmp/..", "/proc/self/root/." } do
      for _, name in ipairs { "delete", "move, source", "move, destination", "copy, destination" } do
        check.problem(file_verbs.send(abxd, file_verbs[name], path, work .. "/other"), 403, "base_dir_protected")
      end
    end
    assert.same(before, snapshot(work))
  end)

  it("files of the kernel are neither read nor written", function()
    for _, path in ipairs { "/proc/self/environ", "/proc/version", "/proc/sys/kernel/hostname", "/sys/kernel/notes",
      "/dev/null", "/dev/zero" } do
      for _, name in ipairs { "read", "write", "edits", "append", "upload", "download", "search", "copy, source" } do
        if files.exists(path) then
          local answer = file_verbs.send(abxd, file_verbs[name], path, work .. "/new")
          assert.is_true(answer.status == 400 or answer.status == 403, ("%s of %s: %s"):format(name, path, answer.body))
          assert.is_false(files.exists(work .. "/new"))
        end
      end
    end
  end)

  for _, verb in ipairs(file_verbs.all) do
    it("the tables are out of reach for " .. verb.name, function()
      local ways = verb.on == "directory" and { "/ops/lua", "/ops/lua/routes", "/alias", "/ops/lua/." }
        or { "/ops/lua/routes/core.lua", "/alias/routes/core.lua", "/ops/config/commands.lua", "/ops/config/server.lua",
          "/ops/../ops/lua/new", "/ops/lua" }
      for _, way in ipairs(ways) do
        local answer = file_verbs.send(abxd, verb, work .. way, work .. "/other")
        if verb.field == "cwd" then
          check.problem(answer, 400, "bad_cwd", "cwd")
        else
          check.problem(answer, 403, "permission_denied", verb.field)
        end
      end
      assert.same(before, snapshot(work))
    end)
  end

  describe("work on the tree around the tables", function()
    after_each(function()
      for _, name in ipairs { "copy", "moved", "empty" } do
        files.remove_tree(work .. "/" .. name)
      end
      local after = snapshot(work)
      for path in pairs(before) do
        if path:find("^./ops/lua") or path:find("^./ops/config/") then
          assert.same(before[path], after[path], path)
        end
      end
      assert.is_nil(after["./ops/lua/evil.lua"])
    end)

    it("finds nothing in them, and packs nothing of them", function()
      local function search(pattern)
        return check.ok(abxd:post("/files/search", { path = work, pattern = pattern })).matches
      end
      assert.same({}, search("group = \"file_ops\""))
      assert.equal(work .. "/ops/note", search("^inner$")[1].path)
      files.write(work .. "/copy", abxd:get("/download?archive=tar.gz&" .. file_verbs.query("path", work)).body)
      local packed = process.run({ "tar", "-tzf", work .. "/copy" }).stdout
      assert.is_nil(packed:find("core.lua", 1, true))
      assert.is_nil(packed:find("commands.lua", 1, true))
      assert.matches("ops/note", packed, 1, true)
    end)

    it("copies none of them", function()
      local answer = abxd:post("/files/copy", { source = work .. "/ops", destination = work .. "/copy" })
      assert.is_true(answer.status == 200 or answer.status == 403, answer.body)
      assert.is_false(files.exists(work .. "/copy/lua/routes/core.lua"))
      assert.is_false(files.exists(work .. "/copy/config/commands.lua"))
    end)

    it("moves none of them", function()
      check.problem(abxd:post("/files/move", { source = work .. "/ops", destination = work .. "/moved" }), 403,
        "permission_denied", "source")
      assert.same(before, snapshot(work))
    end)

    it("puts nothing in their place, nor among them", function()
      files.mkdir(work .. "/empty")
      files.mkdir(work .. "/empty/lua")
      files.write(work .. "/empty/lua/evil.lua", "evil")
      for _, source in ipairs { "/other", "/empty" } do
        for _, route in ipairs { "copy", "move" } do
          local answer = abxd:post("/files/" .. route, { source = work .. source, destination = work .. "/ops",
            overwrite = true })
          assert.is_true(answer.status >= 400 and answer.status < 500, answer.body)
        end
      end
    end)

    it("removes none of them", function()
      check.problem(abxd:request("DELETE", "/files/delete?recursive=true&" .. file_verbs.query("path", work .. "/ops")), 403,
        "permission_denied", "path")
    end)
  end)
end)
