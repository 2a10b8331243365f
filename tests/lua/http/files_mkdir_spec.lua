local check = require("support.check")
local file_verbs = require("support.file_verbs")
local files = require("support.files")
local server = require("support.server")
local uv = require("luv")

describe("POST /files/mkdir", function()
  local abxd, baseline, base

  lazy_setup(function()
    abxd = server.start()
    base = abxd.base_dir
    files.mkdir(abxd.root .. "/base-evil")
    files.write(base .. "/f", "")
    files.mkdir(base .. "/d")
    uv.fs_symlink("d", base .. "/in")
    uv.fs_symlink("nothing", base .. "/dangling")
    uv.fs_symlink("../base-evil/new", base .. "/dangling-out")
    uv.fs_symlink("../base-evil", base .. "/out")
    baseline = abxd:baseline()
  end)
  after_each(function()
    assert.same({}, files.list(abxd.root .. "/base-evil"))
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function mkdir(path, fields)
    return abxd:post("/files/mkdir", file_verbs.body({ path = path }, fields))
  end

  local function made(path, fields)
    local answer = mkdir(path, fields)
    assert.equal(201, answer.status, answer.body)
    return answer:json()
  end

  local function mode(path)
    return ("%o"):format(uv.fs_lstat(base .. "/" .. path).mode & 4095)
  end

  it("makes a directory with those above it, once", function()
    assert.same({ path = base .. "/a/b/c", created = true }, made("a/b/c"))
    assert.same({ path = base .. "/a/b/c", created = false }, check.ok(mkdir("a/b/c")))
    assert.same({ path = base .. "/a/b/c", created = false }, check.ok(mkdir(base .. "/a//b/../b/c/")))
    assert.same({ path = base .. "/a/e", created = true }, made("a/e", { parents = false }))
    check.problem(mkdir("none/x", { parents = false }), 404, "file_not_found", "path")
    assert.is_false(files.exists(base .. "/none"))
  end)

  it("the base is there already, under any name", function()
    for _, path in ipairs { ".", "./.", base, base .. "/", "d/.." } do
      assert.same({ path = base, created = false }, check.ok(mkdir(path)))
    end
    check.problem(mkdir(""), 400, "invalid_path", "path")
  end)

  it("gives exactly the mode that is asked for, to the last one", function()
    made("modes/x", { mode = "0777" })
    made("modes/y", { mode = "1750" })
    made("modes/z", { mode = "000" })
    assert.same({ "777", "1750", "0" }, { mode("modes/x"), mode("modes/y"), mode("modes/z") })
    check.ok(mkdir("modes/x", { mode = "0700" }))
    assert.equal("777", mode("modes/x"))
    for _, bad in ipairs { "0888", "rwx", "77777", "-755" } do
      assert.equal(400, mkdir("modes/bad", { mode = bad }).status)
      assert.is_false(files.exists(base .. "/modes/bad"))
    end
  end)

  it("works through links that stay inside", function()
    assert.same({ path = base .. "/d", created = false }, check.ok(mkdir("in")))
    assert.same({ path = base .. "/d/new", created = true }, made("in/new"))
  end)

  it("takes nothing's place", function()
    for _, path in ipairs { "f", "f/x", "dangling" } do
      check.problem(mkdir(path), 409, "already_exists", "path")
    end
    check.problem(mkdir("f/x", { parents = false }), 400, "not_a_directory", "path")
    assert.is_false(files.exists(base .. "/nothing"))
  end)

  it("makes nothing outside", function()
    for _, path in ipairs { "out/x", "out/x/y", "dangling-out", "dangling-out/x", "../base-evil/x", "..", "/x",
      abxd.root .. "/base-evil/x", base .. "-evil/x" } do
      check.problem(mkdir(path), 403, "path_outside_base", "path")
    end
  end)

  it("takes any name", function()
    for _, name in ipairs { "b\xA4", "n\nl", "-rf", "%41", "\"q'", "~", ("n"):rep(255), " ", "..." } do
      made("names/" .. name)
      assert.equal("directory", uv.fs_lstat(base .. "/names/" .. name).type)
    end
    check.problem(mkdir(("n"):rep(256)), 400, "invalid_path", "path")
    check.problem(mkdir("p/q/" .. ("n"):rep(256)), 400, "invalid_path", "path")
    assert.is_false(files.exists(base .. "/p"))
    assert.equal(400, mkdir("a\0b").status)
  end)
end)
