--- GET /git/status: what it tells of real repositories, compared with what git says.
local check = require("support.check")
local files = require("support.files")
local git = require("support.git")
local json = require("support.json")
local mime = require("mime")
local server = require("support.server")
local uv = require("luv")

describe("GET /git/status", function()
  local abxd, base

  lazy_setup(function()
    abxd = server.start { env = git.groups }
    base = abxd.base_dir
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function status(query)
    return check.ok(abxd:get("/git/status?" .. query))
  end

  --- path → "index/worktree", "-" for null; "!" behind it where it is in conflict.
  local function states(answer)
    local found = {}
    for _, file in ipairs(answer.files) do
      local function word(value)
        return value == json.null and "-" or value
      end
      found[file.path] = word(file.index) .. "/" .. word(file.worktree) .. (file.conflicted and "!" or "")
    end
    return found
  end

  it("of a clean repository, from its top and from a folder below", function()
    local sha = git.repository(base .. "/clean", { a = "1\n", ["d/e/b"] = "2\n" })
    for _, path in ipairs { "clean", "clean/d/e", base .. "/clean", "clean/d/../d" } do
      local answer = status("path=" .. path)
      assert.same({
        root = base .. "/clean", branch = "main", detached = false, unborn = false, upstream = json.null,
        ahead = json.null, behind = json.null, state = "clean", clean = true, files = {}, truncated = false,
        head = {
          sha = sha, summary = "first", time = "2026-01-31T12:00:00.000Z",
          author = { name = "Ada", email = "ada@example.org", time = "2026-01-31T12:00:00.000Z" },
        },
      }, answer)
      assert.is_true(json.is_array(answer.files))
    end
  end)

  it("of the base itself, where that is a repository", function()
    local other <close> = server.start { env = git.groups }
    git.run(other.base_dir, "init", "--quiet", "--initial-branch", "trunk")
    files.write(other.base_dir .. "/a", "1\n")
    local answer = check.ok(other:get("/git/status"))
    assert.same({ other.base_dir, "trunk", true, json.null, false },
      { answer.root, answer.branch, answer.unborn, answer.head, answer.clean })
    assert.same({ a = "-/untracked" }, states(answer))
  end)

  it("tells what is staged from what is not", function()
    local dir = base .. "/mixed"
    git.repository(dir, {
      mod = "1\n", staged = "1\n", both = "1\n", gone = "1\n", gone_staged = "quite another text\n", same = "1\n",
    })
    git.write(dir, { mod = "2\n", staged = "2\n", both = "2\n", new = "1\n", ["u/v"] = "1\n", ["i.log"] = "1\n" })
    files.write(dir .. "/.git/info/exclude", "*.log\n")
    uv.fs_unlink(dir .. "/gone")
    git.run(dir, "add", "staged", "both", "new")
    git.run(dir, "rm", "--quiet", "gone_staged")
    files.write(dir .. "/both", "3\n")
    local expected = {
      mod = "-/modified", staged = "modified/-", both = "modified/modified", gone = "-/deleted",
      gone_staged = "deleted/-", new = "new/-",
    }
    local answer = status("path=mixed&untracked=false")
    assert.same(expected, states(answer))
    assert.same({ false, "clean" }, { answer.clean, answer.state })
    expected["u/"] = "-/untracked" -- a folder that is untracked as a whole stands for all in it
    assert.same(expected, states(status("path=mixed")))
    expected["i.log"] = "-/ignored"
    assert.same(expected, states(status("path=mixed&ignored=true")))
  end)

  it("knows a renamed file by both its names", function()
    local dir = base .. "/renamed"
    git.repository(dir, { ["sp ace"] = ("line\n"):rep(50) })
    git.run(dir, "mv", "sp ace", "x -> y")
    local answer = status("path=renamed")
    assert.same({ { path = "x -> y", old_path = "sp ace", index = "renamed", worktree = json.null, conflicted = false } },
      answer.files)
  end)

  it("gives odd names exactly, and each can be staged by what it was given as", function()
    local dir = base .. "/odd"
    git.repository(dir, { first = "1\n", ["b/first"] = "1\n" })
    local names = { "café.txt", "a -> b", "sp ace", '"q"', "n\nl", "t\tb", "b/\xa4", "-dash", "*", ":(top)x", "\\", "e\u{301}" }
    for _, name in ipairs(names) do
      git.write(dir, { [name] = "1\n" })
    end
    local answer = status("path=odd")
    local found, by_base64, paths, paths_base64 = {}, {}, {}, {}
    for _, file in ipairs(answer.files) do
      if file.path_base64 then
        by_base64[#by_base64 + 1] = mime.unb64(file.path_base64)
        paths_base64[#paths_base64 + 1] = file.path_base64
      else
        found[#found + 1] = file.path
        paths[#paths + 1] = file.path
      end
    end
    assert.same({ "b/\xa4" }, by_base64)
    found[#found + 1] = by_base64[1]
    table.sort(found)
    table.sort(names)
    assert.same(names, found)
    check.ok(git.call(abxd, "add", { path = "odd", paths = paths, paths_base64 = paths_base64 }))
    local staged = {}
    for name in git.run(dir, "diff", "--cached", "--name-only", "-z"):gmatch("[^\0]+") do
      staged[#staged + 1] = name
    end
    table.sort(staged)
    assert.same(names, staged)
  end)

  it("of a conflict: the state and the files", function()
    local dir = base .. "/conflict"
    git.repository(dir, { a = "1\n", b = "1\n" })
    git.run(dir, "checkout", "--quiet", "-b", "other")
    files.write(dir .. "/a", "2\n")
    git.commit_all(dir, "theirs")
    git.run(dir, "checkout", "--quiet", "main")
    files.write(dir .. "/a", "3\n")
    git.commit_all(dir, "ours")
    assert.equal(1, git.try(dir, "merge", "other").code)
    local answer = status("path=conflict")
    assert.same({ "merge", false }, { answer.state, answer.clean })
    assert.same({ a = "-/-!" }, states(answer))
  end)

  it("of a detached head, and of an upstream that has gone on", function()
    local dir = base .. "/origin"
    git.repository(dir, { a = "1\n" })
    git.run(base, "clone", "--quiet", "origin", "copy")
    for i = 1, 3 do
      files.write(dir .. "/a", i .. " there\n")
      git.commit_all(dir, "there")
    end
    git.run(base .. "/copy", "fetch", "--quiet")
    git.write(base .. "/copy", { b = "1\n" })
    git.commit_all(base .. "/copy", "here")
    local answer = status("path=copy")
    assert.same({ "main", "origin/main", 1, 3 }, { answer.branch, answer.upstream, answer.ahead, answer.behind })
    git.run(base .. "/copy", "checkout", "--quiet", "--detach", "HEAD~1")
    answer = status("path=copy")
    assert.same({ json.null, true, json.null, git.run(base .. "/copy", "rev-parse", "HEAD") },
      { answer.branch, answer.detached, answer.upstream, answer.head.sha })
  end)

  it("of a bare repository", function()
    git.run(base, "init", "--quiet", "--bare", "--initial-branch", "main", "bare")
    local answer = status("path=bare")
    assert.same({ base .. "/bare", "main", true, {} }, { answer.root, answer.branch, answer.unborn, answer.files })
  end)

  it("lists as many files as limit says, and tells that there are more", function()
    local dir = base .. "/many"
    git.repository(dir, { first = "1\n" })
    for i = 1, 30 do
      files.write(("%s/f%02d"):format(dir, i), "1\n")
    end
    local answer = status("path=many&limit=10")
    assert.same({ 10, true, false }, { #answer.files, answer.truncated, answer.clean })
    answer = status("path=many&limit=30")
    assert.same({ 30, false }, { #answer.files, answer.truncated })
  end)

  it("of 20,000 new files, without holding up the others", function()
    local dir = base .. "/huge"
    git.repository(dir, { first = "1\n" })
    for f = 1, 20000 do
      files.write(("%s/f%05d"):format(dir, f), "")
    end
    local conn = abxd:connect()
    conn:send_request("GET", "/git/status?path=huge&limit=100000")
    check.prompt(abxd, 0.2)
    local answer = check.ok(conn:read_response())
    conn:close()
    assert.same({ 20000, false }, { #answer.files, answer.truncated })
    assert.same({ path = "f00001", index = json.null, worktree = "untracked", conflicted = false }, answer.files[1])
    answer = status("path=huge")
    assert.same({ 5000, true }, { #answer.files, answer.truncated })
  end)
end)
