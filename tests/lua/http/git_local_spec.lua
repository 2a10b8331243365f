--- POST /git/{operation}: one way through every operation that needs no other machine, compared with what git says.
local check = require("support.check")
local files = require("support.files")
local git = require("support.git")
local json = require("support.json")
local server = require("support.server")
local uv = require("luv")

describe("POST /git", function()
  local abxd, base, count
  local AUTHOR = { name = "Ada", email = "ada@example.org" }

  lazy_setup(function()
    abxd = server.start { env = git.groups }
    base, count = abxd.base_dir, 0
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  --- The result of a call that must work; the envelope's other members are asserted here, for all.
  local function call(operation, params)
    local answer = check.ok(git.call(abxd, operation, params))
    local members = {}
    for name in pairs(answer) do
      members[#members + 1] = name
    end
    table.sort(members)
    assert.same({ "duration_ms", "head", "operation", "result", "root" }, members)
    assert.equal(operation, answer.operation)
    assert.equal("integer", math.type(answer.duration_ms))
    local head = git.try(answer.root, "rev-parse", "--quiet", "--verify", "HEAD")
    assert.equal(head.code == 0 and head.stdout:gsub("\n", "") or json.null,
      answer.head == json.null and json.null or answer.head.sha)
    return answer.result, answer
  end

  local function refused(operation, params, status, code, field)
    return check.problem(git.call(abxd, operation, params), status, code, field)
  end

  --- A new repository with a first commit of these files: its name and folder.
  local function repository(contents)
    count = count + 1
    local name = "r" .. count
    git.repository(base .. "/" .. name, contents or { a = "1\n" })
    return name, base .. "/" .. name
  end

  --- Two branches that changed the same line: main is checked out.
  local function diverged()
    local name, dir = repository { a = "1\n", other = "1\n" }
    git.run(dir, "checkout", "--quiet", "-b", "theirs")
    files.write(dir .. "/a", "theirs\n")
    git.commit_all(dir, "theirs")
    git.run(dir, "checkout", "--quiet", "main")
    files.write(dir .. "/a", "ours\n")
    git.commit_all(dir, "ours")
    return name, dir
  end

  it("init makes a repository, with the folders above it, and leaves one that is there", function()
    local result, answer = call("init", { path = "new/deep/repo" })
    assert.same({ false, base .. "/new/deep/repo", json.null }, { result.reinitialised, answer.root, answer.head })
    assert.equal("refs/heads/main", git.run(base .. "/new/deep/repo", "symbolic-ref", "HEAD"))
    assert.is_true(call("init", { path = "new/deep/repo" }).reinitialised)
    assert.is_false(call("init", { path = "new/bare", bare = true, initial_branch = "trunk" }).reinitialised)
    assert.equal("true", git.run(base .. "/new/bare", "rev-parse", "--is-bare-repository"))
    assert.equal("refs/heads/trunk", git.run(base .. "/new/bare", "symbolic-ref", "HEAD"))
  end)

  it("add and commit record what git then shows", function()
    call("init", { path = "fresh" })
    local dir = base .. "/fresh"
    git.write(dir, { a = "1\n", ["d/b"] = "2\n", c = "3\n" })
    assert.same({ "a", "d/b" }, call("add", { path = "fresh", paths = { "a", "d" } }).staged)
    local result = call("commit", { path = "fresh", message = "one\n\nbody", author = AUTHOR })
    assert.equal(git.run(dir, "rev-parse", "HEAD"), result.sha)
    assert.equal("Ada <ada@example.org>", git.run(dir, "log", "-1", "--format=%an <%ae>"))
    assert.equal("one\n\nbody", git.run(dir, "log", "-1", "--format=%B"):gsub("\n+$", ""))
    assert.equal("?? c", git.run(dir, "status", "--porcelain"))
    assert.same({ "c" }, call("add", { path = "fresh", all = true }).staged)
    call("commit", { path = "fresh", message = "two" })
    files.write(dir .. "/a", "changed\n")
    call("commit", { path = "fresh", message = "three", all = true })
    assert.equal("3", git.run(dir, "rev-list", "--count", "HEAD"))
    call("commit", { path = "fresh", message = "again", amend = true })
    assert.equal("3", git.run(dir, "rev-list", "--count", "HEAD"))
    assert.equal("again", git.run(dir, "log", "-1", "--format=%s"))
    assert.equal("", git.run(dir, "status", "--porcelain"))
    refused("commit", { path = "fresh", message = "none" }, 400, "invalid_request")
    call("commit", { path = "fresh", message = "empty", allow_empty = true })
    refused("commit", { path = "fresh" }, 400, "invalid_request", "message")
    refused("add", { path = "fresh" }, 400, "invalid_request", "paths")
    refused("add", { path = "fresh", paths = { "nowhere" } }, 404, "file_not_found")
    refused("add", { path = "fresh", paths = { "../r1/a" } }, 403, "path_outside_base")
  end)

  it("add takes paths relative to path", function()
    local name, dir = repository { a = "1\n", ["d/a"] = "1\n" }
    git.write(dir, { a = "other\n", ["d/a"] = "other\n" })
    assert.same({ "d/a" }, call("add", { path = name .. "/d", paths = { "a" } }).staged)
    assert.equal(" M a\nM  d/a", git.run(dir, "status", "--porcelain"))
  end)

  it("reset goes back softly, mixed and hard", function()
    local name, dir = repository()
    for i = 2, 4 do
      files.write(dir .. "/a", i .. "\n")
      git.commit_all(dir, "c" .. i)
    end
    call("reset", { path = name, mode = "soft", ref = "HEAD~1" })
    assert.same({ "c3", "M  a", "4\n" }, { git.run(dir, "log", "-1", "--format=%s"), git.run(dir, "status", "--porcelain"),
      files.read(dir .. "/a") })
    call("reset", { path = name })
    assert.equal(" M a", git.run(dir, "status", "--porcelain"))
    git.run(dir, "add", "a")
    call("reset", { path = name, paths = { "a" } })
    assert.equal(" M a", git.run(dir, "status", "--porcelain"))
    call("reset", { path = name, mode = "hard", ref = "HEAD~2" })
    assert.same({ "", "1\n" }, { git.run(dir, "status", "--porcelain"), files.read(dir .. "/a") })
    refused("reset", { path = name, ref = "nope" }, 404, "reference_not_found", "ref")
  end)

  it("restore takes files from the index, from HEAD and from a commit", function()
    local name, dir = repository()
    files.write(dir .. "/a", "2\n")
    git.commit_all(dir, "second")
    files.write(dir .. "/a", "3\n")
    call("restore", { path = name, paths = { "a" } })
    assert.equal("2\n", files.read(dir .. "/a"))
    files.write(dir .. "/a", "3\n")
    git.run(dir, "add", "a")
    call("restore", { path = name, paths = { "a" }, staged = true })
    assert.equal(" M a", git.run(dir, "status", "--porcelain"))
    call("restore", { path = name, paths = { "a" }, source = "HEAD~1" })
    assert.equal("1\n", files.read(dir .. "/a"))
  end)

  it("restore and reset leave alone what is not tracked, and name each file once", function()
    local name, dir = repository { a = "1\n", b = "1\n", x = "1\n" }
    git.run(dir, "rm", "--quiet", "--cached", "b")
    files.write(dir .. "/b", "mine\n")
    assert(uv.fs_chmod(dir .. "/x", 493))
    files.write(dir .. "/a", "2\n")
    local result = call("restore", { path = name, paths = { "." } })
    assert.same({ { "a", "x" }, 2, false }, { result.restored, result.count, result.truncated })
    assert.same({ "D  b\n?? b", "mine\n" }, { git.run(dir, "status", "--porcelain"), files.read(dir .. "/b") })
    git.run(dir, "commit", "--quiet", "--message", "without b")
    git.run(dir, "checkout", "--quiet", "-b", "with", "HEAD~1", "--force")
    git.run(dir, "rm", "--quiet", "--cached", "b")
    files.write(dir .. "/b", "mine\n")
    for _, way in ipairs { { "restore", { paths = { "." }, source = "main" } }, { "checkout", { ref = "main", force = true } },
      { "reset", { mode = "hard", ref = "main" } } } do
      way[2].path = name
      call(way[1], way[2])
      assert.same({ way[1], "mine\n" }, { way[1], files.read(dir .. "/b") })
      git.run(dir, "symbolic-ref", "HEAD", "refs/heads/with")
    end
  end)

  it("log tells commits as git does, in pages and by path", function()
    local name, dir = repository { a = "1\n", b = "1\n" }
    for i = 1, 7 do
      files.write(dir .. (i % 2 == 0 and "/a" or "/b"), ("x"):rep(i) .. "\n")
      git.commit_all(dir, "c" .. i)
    end
    local function shas(params)
      params.path = name
      local result, list = call("log", params), {}
      for i, commit in ipairs(result.commits) do
        list[i] = commit.sha
      end
      return table.concat(list, "\n"), result
    end
    local all, result = shas {}
    assert.equal(git.run(dir, "rev-list", "HEAD"), all)
    assert.is_false(result.truncated)
    local part
    part, result = shas { limit = 3, skip = 2 }
    assert.equal(git.run(dir, "rev-list", "--max-count=3", "--skip=2", "HEAD"), part)
    assert.is_true(result.truncated)
    assert.same({ name = "Ada", email = "ada@example.org", time = "2026-01-31T12:00:00.000Z" }, result.commits[1].author)
    assert.equal(git.run(dir, "rev-list", "HEAD", "--", "a"), (shas { paths = { "a" } }))
    assert.equal(git.run(dir, "rev-list", "HEAD~4"), (shas { ref = "HEAD~4" }))
  end)

  it("show and diff tell what changed", function()
    local name, dir = repository { a = "1\n2\n3\n", gone = "1\n", ["bin"] = "\0\1" }
    git.write(dir, { a = "1\nx\n3\n", new = "n\n", bin = "\0\2" })
    files.remove_tree(dir .. "/gone")
    local function by_path(list)
      local found = {}
      for _, file in ipairs(list) do
        found[file.path] = ("%s +%d -%d%s"):format(file.status, file.additions, file.deletions, file.binary and " binary" or "")
      end
      return found
    end
    local unstaged = by_path(call("diff", { path = name }).files)
    assert.same({ a = "modified +1 -1", bin = "modified +0 -0 binary", gone = "deleted +0 -1" }, unstaged)
    assert.same({}, call("diff", { path = name, staged = true }).files)
    local sha = git.commit_all(dir, "second")
    local expected = { a = "modified +1 -1", bin = "modified +0 -0 binary", gone = "deleted +0 -1", new = "added +1 -0" }
    assert.same(expected, by_path(call("diff", { path = name, from = "HEAD~1", to = "HEAD" }).files))
    local shown = call("show", { path = name })
    assert.same({ sha, "second\n" }, { shown.commit.sha, shown.commit.message })
    assert.same(expected, by_path(shown.files))
    local patch = call("diff", { path = name, from = "HEAD~1", to = "HEAD", paths = { "a" } }).files[1].patch
    assert.equal(git.run(dir, "diff", "HEAD~1", "HEAD", "--", "a") .. "\n", patch)
    local cut = call("diff", { path = name, from = "HEAD~1", to = "HEAD", max_bytes = 0 })
    assert.is_true(cut.truncated)
    assert.equal(4, #cut.files)
  end)

  it("blame tells whose each line is", function()
    local name, dir = repository { f = "1\n2\n" }
    local first = git.run(dir, "rev-parse", "HEAD")
    files.write(dir .. "/f", "1\nnew\n2\n")
    local second = git.commit_all(dir, "second")
    local lines = call("blame", { path = name, file = "f" }).lines
    local found = {}
    for i, line in ipairs(lines) do
      found[i] = { line.line, line.sha, line.text }
    end
    assert.same({ { 1, first, "1" }, { 2, second, "new" }, { 3, first, "2" } }, found)
    lines = call("blame", { path = name, file = "f", start_line = 2, end_line = 2 }).lines
    assert.same({ 1, 2 }, { #lines, lines[1].line })
    refused("blame", { path = name, file = "nope" }, 404, "file_not_found", "file")
  end)

  it("branch and checkout make, rename, switch and delete", function()
    local name, dir = repository()
    local sha = git.run(dir, "rev-parse", "HEAD")
    assert.equal(sha, call("branch", { path = name, action = "create", name = "f" }).sha)
    refused("branch", { path = name, action = "create", name = "f" }, 409, "already_exists")
    call("branch", { path = name, action = "rename", name = "f", new_name = "g/h" })
    local list = call("branch", { path = name }).branches
    assert.same({ { "g/h", false }, { "main", true } },
      { { list[1].name, list[1].current }, { list[2].name, list[2].current } })
    call("checkout", { path = name, ref = "g/h" })
    assert.equal("g/h", git.run(dir, "branch", "--show-current"))
    call("branch", { path = name, action = "delete", name = "main" })
    assert.equal("g/h", git.run(dir, "for-each-ref", "--format=%(refname:short)", "refs/heads"))
    assert.is_true(call("checkout", { path = name, ref = "new", create = true }).created)
    assert.is_true(call("checkout", { path = name, ref = sha }).detached)
    refused("checkout", { path = name, ref = "nope" }, 404, "reference_not_found", "ref")
  end)

  it("checkout does not overwrite changes, unless it is forced", function()
    local name, dir = diverged()
    files.write(dir .. "/a", "mine\n")
    local problem = refused("checkout", { path = name, ref = "theirs" }, 409, "worktree_dirty")
    assert.same({ "a" }, problem.files)
    assert.equal("mine\n", files.read(dir .. "/a"))
    call("checkout", { path = name, ref = "theirs", force = true })
    assert.equal("theirs\n", files.read(dir .. "/a"))
  end)

  it("add, restore, reset and a merge that is given up take odd names for what they are", function()
    local odd = { " first", "last ", "back\\s", "back\\", "*", "[a]", ":(glob)x", "!not", "#", "-x", "a -> b", "q\"q", "n\nl" }
    local name, dir = repository()
    for _, path in ipairs(odd) do
      git.write(dir, { [path] = "1\n", other = "1\n" })
      assert.same({ path }, call("add", { path = name, paths = { path } }).staged)
    end
    git.commit_all(dir, "odd")
    for _, path in ipairs(odd) do
      git.write(dir, { [path] = "2\n", other = "2\n" })
      assert.same({ path }, call("restore", { path = name, paths = { path } }).restored)
      assert.same({ "1\n", "2\n" }, { files.read(dir .. "/" .. path), files.read(dir .. "/other") })
      git.write(dir, { [path] = "3\n" })
      git.run(dir, "add", "--all")
      call("reset", { path = name, paths = { path } })
      assert.equal("other", git.run(dir, "diff", "--cached", "--name-only"))
      git.run(dir, "reset", "--hard", "--quiet")
    end
    for i, side in ipairs { "theirs", "main" } do
      git.run(dir, "checkout", "--quiet", "-B", side, "HEAD" .. (i == 2 and "~1" or ""))
      for _, path in ipairs(odd) do
        git.write(dir, { [path] = side .. "\n" })
      end
      git.commit_all(dir, side)
    end
    assert.equal(#odd, #refused("merge", { path = name, ref = "theirs" }, 409, "merge_conflict").conflicts)
    call("merge", { path = name, abort = true })
    assert.equal("", git.run(dir, "status", "--porcelain"))
    assert.equal("main\n", files.read(dir .. "/back\\s"))
  end)

  it("merge keeps its message for the commit that ends it", function()
    for given, expected in pairs {
      ["#12 joins\n\nbody"] = "#12 joins\n\nbody", none = "Merge branch 'theirs'", [" \n"] = "Merge branch 'theirs'",
    } do
      local name, dir = diverged()
      local message = given ~= "none" and given or nil
      local problem = refused("merge", { path = name, ref = "theirs", message = message }, 409, "merge_conflict")
      assert.matches("^1 file has conflicts", problem.detail)
      files.write(dir .. "/a", "both\n")
      call("commit", { path = name, all = true })
      assert.equal(expected, (git.run(dir, "log", "-1", "--format=%B"):gsub("\n+$", "")))
    end
  end)

  it("lists have the exact bytes where a name is not UTF-8", function()
    local odd = "b\xa4"
    local exact = { "YQ==", "YqQ=" }
    local name, dir = repository { a = "1\n", [odd] = "1\n" }
    git.run(dir, "checkout", "--quiet", "-b", "theirs")
    git.write(dir, { a = "2\n", [odd] = "2\n" })
    git.commit_all(dir, "theirs")
    git.run(dir, "checkout", "--quiet", "main")
    git.write(dir, { a = "3\n", [odd] = "3\n" })
    assert.same(exact, refused("checkout", { path = name, ref = "theirs" }, 409, "worktree_dirty").files_base64)
    assert.same(exact, call("add", { path = name, all = true }).staged_base64)
    assert.same(exact, call("restore", { path = name, staged = true, paths_base64 = exact }).restored_base64)
    call("commit", { path = name, all = true, message = "ours" })
    local problem = refused("merge", { path = name, ref = "theirs" }, 409, "merge_conflict")
    assert.same({ { "a", "b\u{fffd}" }, exact }, { problem.conflicts, problem.conflicts_base64 })
    assert.is_nil(call("add", { path = name, paths = { "a" } }).staged_base64)
    call("add", { path = name, paths_base64 = problem.conflicts_base64 })
    call("commit", { path = name })
    assert.equal("", git.run(dir, "status", "--porcelain"))
  end)

  it("merge goes forward, joins, and stops at conflicts, which it lists and can undo", function()
    local name, dir = repository()
    git.run(dir, "checkout", "--quiet", "-b", "side")
    git.write(dir, { b = "1\n" })
    git.commit_all(dir, "side")
    git.run(dir, "checkout", "--quiet", "main")
    assert.equal("fast_forward", call("merge", { path = name, ref = "side" }).kind)
    assert.equal("up_to_date", call("merge", { path = name, ref = "side" }).kind)

    name, dir = diverged()
    local before = git.run(dir, "rev-parse", "HEAD")
    local problem = refused("merge", { path = name, ref = "theirs" }, 409, "merge_conflict")
    assert.same({ "a" }, problem.conflicts)
    assert.equal("Conflict", problem.title)
    assert.equal("merge", check.ok(abxd:get("/git/status?path=" .. name)).state)
    call("merge", { path = name, abort = true })
    assert.same({ before, "", "ours\n" },
      { git.run(dir, "rev-parse", "HEAD"), git.run(dir, "status", "--porcelain"), files.read(dir .. "/a") })
    refused("merge", { path = name, ref = "theirs" }, 409, "merge_conflict")
    refused("commit", { path = name, message = "too early" }, 409, "merge_conflict")
    files.write(dir .. "/a", "both\n")
    call("add", { path = name, paths = { "a" } })
    local parents = call("commit", { path = name, message = "joined" }).parents
    assert.same({ before, git.run(dir, "rev-parse", "theirs") }, parents)
    assert.equal("clean", check.ok(abxd:get("/git/status?path=" .. name)).state)
  end)

  it("stash puts changes aside and takes them back", function()
    local name, dir = repository()
    git.write(dir, { a = "2\n", u = "new\n" })
    assert.is_true(call("stash", { path = name, message = "mine", untracked = true }).stashed)
    assert.same({ "", false }, { git.run(dir, "status", "--porcelain"), files.exists(dir .. "/u") })
    local list = call("stash", { path = name, action = "list" }).stashes
    assert.same({ 1, "On main: mine" }, { #list, list[1].message })
    call("stash", { path = name, action = "apply" })
    assert.equal("2\n", files.read(dir .. "/a"))
    call("reset", { path = name, mode = "hard" })
    files.remove_tree(dir .. "/u")
    call("stash", { path = name, action = "pop" })
    assert.same({ "2\n", "new\n", "" }, { files.read(dir .. "/a"), files.read(dir .. "/u"), git.run(dir, "stash", "list") })
    call("stash", { path = name })
    call("stash", { path = name, action = "drop" })
    refused("stash", { path = name, action = "pop" }, 404, "reference_not_found", "index")
  end)

  it("tag makes light and annotated ones, lists and deletes them", function()
    local name, dir = repository()
    call("tag", { path = name, action = "create", name = "light" })
    call("tag", { path = name, action = "create", name = "v1", message = "the first" })
    assert.same({ "commit", "tag" }, { git.run(dir, "cat-file", "-t", "light"), git.run(dir, "cat-file", "-t", "v1") })
    local names = {}
    for i, tag in ipairs(call("tag", { path = name }).tags) do
      names[i] = tag.name
    end
    assert.same({ "light", "v1" }, names)
    refused("tag", { path = name, action = "create", name = "v1" }, 409, "already_exists")
    call("tag", { path = name, action = "delete", name = "light" })
    assert.equal("v1", git.run(dir, "tag"))
    refused("tag", { path = name, action = "delete", name = "light" }, 404, "reference_not_found")
  end)

  it("is busy while another one holds the index", function()
    local name, dir = repository()
    git.write(dir, { a = "2\n" })
    files.write(dir .. "/.git/index.lock", "")
    refused("add", { path = name, all = true }, 409, "busy")
    files.remove_tree(dir .. "/.git/index.lock")
    call("add", { path = name, all = true })
  end)

  it("answers of some MiB arrive whole, and hold up nobody", function()
    local lines = {}
    for i = 1, 100000 do
      lines[i] = ("line %d of a long file with a few words"):format(i)
    end
    local name, dir = repository { big = table.concat(lines, "\n") .. "\n" }
    for i = 1, #lines do
      lines[i] = lines[i]:upper()
    end
    files.write(dir .. "/big", table.concat(lines, "\n") .. "\n")
    local conn = abxd:connect()
    conn:send_request("POST", "/git/diff", { json = { path = name, max_bytes = 16 * 1024 * 1024 } })
    check.prompt(abxd, 0.2)
    local answer = check.ok(conn:read_response())
    conn:close()
    local file = answer.result.files[1]
    assert.same({ 100000, 100000, false }, { file.additions, file.deletions, answer.result.truncated })
    assert.equal(git.run(dir, "diff") .. "\n", file.patch)
  end)
end)
