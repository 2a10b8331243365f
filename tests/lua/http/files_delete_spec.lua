local check = require("support.check")
local file_verbs = require("support.file_verbs")
local files = require("support.files")
local process = require("support.process")
local server = require("support.server")
local snapshot = require("support.snapshot")
local uv = require("luv")

describe("DELETE /files/delete", function()
  local abxd, baseline, base, outside

  lazy_setup(function()
    abxd = server.start()
    base = abxd.base_dir
    files.mkdir(abxd.root .. "/base-evil")
    files.mkdir(abxd.root .. "/outside")
    files.mkdir(abxd.root .. "/outside/keep")
    files.write(abxd.root .. "/outside/keep/f", "keep")
    files.write(base .. "/stays", "")
    outside = snapshot(abxd.root .. "/outside")
    baseline = abxd:baseline()
  end)
  after_each(function()
    assert.same(outside, snapshot(abxd.root .. "/outside"))
    assert.is_true(files.exists(base .. "/stays"))
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function delete(path, recursive)
    return abxd:request("DELETE", "/files/delete?" .. file_verbs.query("path", path) ..
      (recursive and "&recursive=true" or ""))
  end

  --- d with three entries below it.
  local function plant()
    files.mkdir(base .. "/d")
    files.mkdir(base .. "/d/e")
    files.write(base .. "/d/e/f", "")
    uv.fs_symlink("../../outside", base .. "/d/l")
  end

  it("removes files and empty directories", function()
    files.write(base .. "/f", "")
    assert.same({ path = base .. "/f", deleted = 1 }, check.ok(delete("./f")))
    check.problem(delete("f"), 404, "file_not_found", "path")
    check.problem(delete("f", true), 404, "file_not_found", "path")
    files.mkdir(base .. "/empty")
    assert.same({ path = base .. "/empty", deleted = 1 }, check.ok(delete("empty/")))
    process.run { "mkfifo", base .. "/fifo" }
    assert.equal(1, check.ok(delete("fifo")).deleted)
    assert.same({ "stays" }, files.list(base))
  end)

  it("removes what is in a directory only when told to", function()
    plant()
    local before = snapshot(base)
    check.problem(delete("d"), 409, "not_empty", "path")
    assert.same(before, snapshot(base))
    assert.same({ path = base .. "/d", deleted = 4 }, check.ok(delete("d", true)))
    assert.same({ "stays" }, files.list(base))
  end)

  it("removes links, never what they lead to", function()
    plant()
    for name, target in pairs { l = "../outside", in_ = "d", up = "..", base = ".", dangling = "none", root = "/" } do
      uv.fs_symlink(target, base .. "/" .. name)
      assert.same({ path = base .. "/" .. name, deleted = 1 }, check.ok(delete(name, true)))
    end
    uv.fs_symlink("../outside", base .. "/l")
    check.problem(delete("l/keep", true), 403, "path_outside_base", "path")
    check.problem(delete("l/keep/f"), 403, "path_outside_base", "path")
    assert.equal(1, check.ok(delete("l")).deleted)
    assert.equal(4, check.ok(delete("d", true)).deleted)
  end)

  it("never removes the base, under any name", function()
    plant()
    uv.fs_symlink("..", base .. "/d/up")
    for _, path in ipairs { ".", "./.", "d/..", base, base .. "/", base .. "/d/../.", "d/up/.", "d/e/../.." } do
      check.problem(delete(path, true), 403, "base_dir_protected", "path")
      check.problem(delete(path), 403, "base_dir_protected", "path")
    end
    check.problem(delete("", true), 400, "invalid_path", "path")
    for _, path in ipairs { "/", "..", "../base-evil", base .. "-evil", abxd.root, "d/../../outside" } do
      check.problem(delete(path, true), 403, "path_outside_base", "path")
    end
    assert.is_true(files.exists(abxd.root .. "/base-evil"))
    assert.is_true(files.exists(base .. "/d/e/f"))
    check.ok(delete("d", true))
  end)

  it("removes entries of any name", function()
    files.mkdir(base .. "/names")
    for _, name in ipairs { "b\xA4.txt", "n\nl", "-rf", "%41.txt", "a%2fb", "\"q'.txt", "~", ("n"):rep(255), " " } do
      files.write(base .. "/names/" .. name, "")
      assert.equal(1, check.ok(delete("names/" .. name)).deleted)
      assert.is_false(files.exists(base .. "/names/" .. name))
      files.write(base .. "/names/" .. name, "")
    end
    assert.equal(10, check.ok(delete("names", true)).deleted)
  end)

  it("big trees go while others are served", function()
    files.mkdir(base .. "/big")
    for d = 1, 50 do
      files.mkdir(base .. "/big/" .. d)
      for f = 1, 50 do
        uv.fs_symlink("/", ("%s/big/%d/%d"):format(base, d, f))
      end
    end
    local conn = abxd:connect()
    conn:send_request("DELETE", "/files/delete?path=big&recursive=true")
    check.prompt(abxd, 0.1)
    assert.equal(2551, conn:read_response("DELETE"):json().deleted)
    conn:close()
  end)

  it("what two remove at once goes once", function()
    plant()
    local one, other = abxd:connect(), abxd:connect()
    one:send_request("DELETE", "/files/delete?path=d&recursive=true")
    other:send_request("DELETE", "/files/delete?path=d&recursive=true")
    local answers, deleted = { one:read_response("DELETE"), other:read_response("DELETE") }, 0
    one:close()
    other:close()
    for _, answer in ipairs(answers) do
      assert.is_true(answer.status == 200 or answer.status == 404, answer.body)
      deleted = deleted + (answer:json().deleted or 0)
    end
    assert.equal(4, deleted)
  end)

  it("the server's own files stay below /", function()
    local root = server.start { base_dir = "/", tables = true }
    local before = snapshot(root.tables.dir .. "/lua")
    check.problem(root:request("DELETE", "/files/delete?recursive=true&path=" .. root.tables.dir .. "/lua"), 403,
      "permission_denied", "path")
    check.problem(root:request("DELETE", "/files/delete?recursive=true&path=" .. root.tables.dir), 403,
      "permission_denied", "path")
    check.problem(root:request("DELETE", "/files/delete?recursive=true&path=/"), 403, "base_dir_protected", "path")
    check.problem(root:request("DELETE", "/files/delete?path=/proc/self/fd/0"), 400, "not_a_regular_file", "path")
    assert.same(before, snapshot(root.tables.dir .. "/lua"))
    root:stop()
  end)
end)
