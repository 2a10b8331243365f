local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")
local uv = require("luv")

describe("a full disk", function()
  it("is 507, with the old file intact and no other left", function()
    local dir = files.mkdtemp()
    local mounted = process.run { "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir }
    if mounted.code ~= 0 then
      files.remove_tree(dir)
      return skip("disk_full", "no mount: " .. mounted.stderr:gsub("%s+$", ""))
    end
    local abxd = server.start { base_dir = dir }
    local function put(query, content, headers)
      return abxd:request("POST", "/upload?" .. query, { body = content, headers = headers })
    end
    local ok, failure = pcall(function()
      local baseline = abxd:baseline()
      assert.equal(201, put("path=keep.txt", ("k"):rep(100000)).status)
      local sum = check.sha256_of(dir .. "/keep.txt")
      local function assert_kept()
        assert.same({ "keep.txt" }, files.list(dir))
        assert.equal(sum, check.sha256_of(dir .. "/keep.txt"))
      end

      check.problem(put("path=keep.txt", ("x"):rep(2000000)), 507, "no_space")
      assert_kept()
      local function write(spec)
        return abxd:post("/files/write", spec)
      end
      check.problem(write { path = "keep.txt", content = ("x"):rep(2000000) }, 507, "no_space", "path")
      assert_kept()
      check.problem(write { path = "keep.txt", content = ("x"):rep(2000000), append = true }, 507, "no_space", "path")
      assert_kept()
      check.problem(write { path = "keep.txt", edits = { { old = "k", new = ("x"):rep(19), all = true } } }, 507, "no_space",
        "path")
      assert_kept()
      check.problem(write { path = "new/deep/x", content = ("x"):rep(2000000) }, 507, "no_space", "path")
      check.problem(write { path = "new", content = ("x"):rep(2000000), append = true }, 507, "no_space", "path")
      assert_kept()
      check.problem(put("path=new/deep/x", ("x"):rep(2000000)), 507, "no_space")
      assert_kept()
      local body, content_type = http.multipart {
        { name = "f", filename = "a", content = ("a"):rep(400000) }, { name = "f", filename = "b", content = ("b"):rep(900000) },
      }
      check.problem(put("", body, { ["Content-Type"] = content_type }), 507, "no_space")
      assert_kept()
      local conn = abxd:connect()
      check.problem(conn:request("POST", "/upload?path=keep.txt", { body = ("x"):rep(2000000) }), 507, "no_space")
      assert.equal("ok", conn:request("GET", "/health"):json().status)
      conn:close()

      process.run { "dd", "if=/dev/zero", "of=" .. dir .. "/filler", "bs=4k" }
      check.problem(put("path=one", "1"), 507, "no_space")
      check.problem(put("path=keep.txt", "1"), 507, "no_space")
      check.problem(write { path = "one", content = "1" }, 507, "no_space", "path")
      check.problem(write { path = "new/deep/x", content = "1" }, 507, "no_space", "path")
      check.problem(write { path = "keep.txt", content = "1" }, 507, "no_space", "path")
      check.problem(write { path = "keep.txt", content = ("1"):rep(4097), append = true }, 507, "no_space", "path")
      local run = check.ok(abxd:post("/shell", { command = "echo out; exit 3", env = { TMPDIR = dir }, session = "full" }))
      assert.same({ "out\n", 3 }, { run.stdout, run.exit_code })
      uv.fs_unlink(dir .. "/filler")
      assert_kept()
      assert.equal(201, put("path=keep.txt", ("n"):rep(500000)).status)
      abxd:assert_settled(baseline)
    end)
    if ok then
      abxd:stop()
    else
      abxd:kill()
    end
    process.run { "umount", "-l", dir }
    files.remove_tree(dir)
    assert(ok, failure)
  end)
end)
