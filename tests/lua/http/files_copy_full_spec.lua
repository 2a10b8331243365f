local check = require("support.check")
local files = require("support.files")
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")
local uv = require("luv")

describe("a copy onto a full disk", function()
  it("is 507, with the old file intact and nothing left of the new one", function()
    local dir = files.mkdtemp()
    local mounted = process.run { "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir }
    if mounted.code ~= 0 then
      files.remove_tree(dir)
      return skip("files_copy_full", "no mount: " .. mounted.stderr:gsub("%s+$", ""))
    end
    local abxd = server.start { base_dir = dir }
    local function copy(source, destination)
      return abxd:post("/files/copy", { source = source, destination = destination, overwrite = true })
    end
    local ok, failure = pcall(function()
      local baseline = abxd:baseline()
      files.write(dir .. "/keep.txt", ("k"):rep(100000))
      files.write(dir .. "/big", ("b"):rep(600000))
      files.mkdir(dir .. "/t")
      files.write(dir .. "/t/a", ("a"):rep(50000))
      local sum = check.sha256_of(dir .. "/keep.txt")
      local function assert_kept()
        assert.same({ "big", "keep.txt", "t" }, files.list(dir))
        assert.same({ "a" }, files.list(dir .. "/t"))
        assert.equal(sum, check.sha256_of(dir .. "/keep.txt"))
      end

      check.problem(copy("big", "keep.txt"), 507, "no_space", "destination")
      assert_kept()
      check.problem(copy("big", "new/deep/x"), 507, "no_space", "destination")
      assert_kept()
      assert(uv.fs_rename(dir .. "/big", dir .. "/t/big"))
      check.problem(copy("t", "new/u"), 507, "no_space", "destination")
      assert(uv.fs_rename(dir .. "/t/big", dir .. "/big"))
      assert_kept()

      process.run { "dd", "if=/dev/zero", "of=" .. dir .. "/filler", "bs=4k" }
      check.problem(copy("keep.txt", "one"), 507, "no_space", "destination")
      check.problem(copy("t", "u"), 507, "no_space", "destination")
      uv.fs_unlink(dir .. "/filler")
      assert_kept()
      assert.equal(1, check.ok(copy("t", "u")).files)
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
