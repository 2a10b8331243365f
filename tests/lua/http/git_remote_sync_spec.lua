--- fetch, pull, push and remote against a real server: what changes here and there, compared with what git says.
local check = require("support.check")
local files = require("support.files")
local git = require("support.git")
local git_http = require("support.git_http")
local json = require("support.json")
local server = require("support.server")

describe("git with a remote", function()
  local abxd, base, served, remote, count = nil, nil, nil, nil, 0

  --- A served repository NAME.git with one commit, a clone of it inside the base (ours) and one outside (theirs).
  local function scene()
    count = count + 1
    local name = "s" .. count
    git.repository(served .. "/" .. name, { a = "1\n2\n3\n4\n5\n6\n7\n8\n" })
    git.run(served, "clone", "--quiet", "--bare", name, name .. ".git")
    git.run(served .. "/" .. name, "remote", "add", "origin", served .. "/" .. name .. ".git")
    local url = remote:url("plain/" .. name .. ".git")
    check.ok(git.call(abxd, "clone", { url = url, path = name }))
    return { name = name, url = url, ours = base .. "/" .. name, theirs = served .. "/" .. name,
      bare = served .. "/" .. name .. ".git" }
  end

  local function commit(dir, contents, message)
    git.write(dir, contents)
    return git.commit_all(dir, message or "more")
  end

  local function commit_theirs(s, contents)
    local sha = commit(s.theirs, contents)
    git.run(s.theirs, "push", "--quiet", "origin", "HEAD")
    return sha
  end

  local function call(s, operation, params)
    params = params or {}
    params.path = s.name
    return git.call(abxd, operation, params)
  end

  local function sha(dir, name)
    return git.run(dir, "rev-parse", name or "HEAD")
  end

  lazy_setup(function()
    served = files.mkdtemp()
    remote = git_http.start(served)
    abxd = server.start { env = git.groups }
    base = abxd.base_dir
  end)
  lazy_teardown(function()
    abxd:stop()
    remote:stop()
    files.remove_tree(served)
  end)

  describe("fetch", function()
    it("tells what came, changed and went", function()
      local s = scene()
      local first = sha(s.ours)
      assert.same({}, check.ok(call(s, "fetch")).result.updated)
      local second = commit_theirs(s, { b = "b\n" })
      git.run(s.theirs, "push", "--quiet", "origin", "main:topic")
      git.run(s.theirs, "tag", "v1")
      git.run(s.theirs, "push", "--quiet", "origin", "v1")
      local updated = check.ok(call(s, "fetch")).result.updated
      table.sort(updated, function(a, b)
        return a.ref < b.ref
      end)
      assert.same({
        { ref = "refs/remotes/origin/main", old = first, new = second },
        { ref = "refs/remotes/origin/topic", old = json.null, new = second },
        { ref = "refs/tags/v1", old = json.null, new = second },
      }, updated)
      assert.equal(second, sha(s.ours, "origin/main"))
      assert.equal(first, sha(s.ours))
      git.run(s.theirs, "push", "--quiet", "origin", ":topic")
      assert.same({}, check.ok(call(s, "fetch")).result.updated)
      assert.same({ { ref = "refs/remotes/origin/topic", old = second, new = json.null } },
        check.ok(call(s, "fetch", { prune = true })).result.updated)
    end)

    it("takes refspecs, and leaves the branch that is checked out", function()
      local s = scene()
      local first = sha(s.ours)
      local second = commit_theirs(s, { b = "b\n" })
      check.ok(call(s, "fetch", { refspecs = { "+refs/heads/*:refs/mine/*" } }))
      assert.equal(second, sha(s.ours, "refs/mine/main"))
      for _, spec in ipairs { "main:main", "+main:main", "refs/heads/main:refs/heads/main", "+refs/heads/*:refs/heads/*" } do
        check.problem(call(s, "fetch", { refspecs = { spec } }), 400, "invalid_request", "refspecs")
        assert.equal(first, sha(s.ours))
      end
      check.problem(call(s, "fetch", { refspecs = { "a b:c" } }), 400, "invalid_request", "refspecs")
      git.run(s.ours, "config", "remote.origin.fetch", "+refs/heads/*:refs/heads/*")
      for _, operation in ipairs { "fetch", "pull" } do
        local problem = check.problem(call(s, operation), 400, "invalid_request", "remote")
        assert.matches("+refs/heads/*:refs/heads/*", problem.detail, 1, true)
        assert.equal(first, sha(s.ours))
      end
      git.run(s.ours, "checkout", "--quiet", "--detach")
      check.problem(call(s, "fetch", { refspecs = { "a b:c" } }), 400, "invalid_request", "refspecs")
      check.ok(call(s, "fetch"))
      assert.equal(second, sha(s.ours, "main"))
      check.problem(call(s, "fetch", { remote = "nope" }), 404, "reference_not_found", "remote")
      check.problem(call(s, "fetch", { remote = s.url }), 404, "reference_not_found", "remote")
    end)
  end)

  describe("fetch without a +", function()
    --- Theirs has another last commit than ours knows, and v1 elsewhere.
    local function apart()
      local s = scene()
      git.run(s.theirs, "tag", "v1")
      local old = commit_theirs(s, { b = "b\n" })
      git.run(s.theirs, "push", "--quiet", "origin", "v1")
      check.ok(call(s, "fetch", { refspecs = { "main:kept", "refs/tags/*:refs/tags/*" } }))
      assert.equal(old, sha(s.ours, "refs/heads/kept"))
      git.run(s.theirs, "reset", "--quiet", "--hard", "HEAD~1")
      local new = commit(s.theirs, { c = "c\n" })
      git.run(s.theirs, "tag", "--force", "v1")
      git.run(s.theirs, "push", "--quiet", "--force", "origin", "main", "v1")
      return s, old, new
    end

    it("tells what it may not move, and what it moved", function()
      local s, old, new = apart()
      local tag = sha(s.ours, "v1")
      for _, spec in ipairs { "main:kept", "refs/heads/main:refs/heads/kept" } do
        local problem = check.problem(call(s, "fetch", { refspecs = { spec, "main:fresh" } }), 409, "non_fast_forward")
        assert.matches("refs/heads/kept", problem.detail, 1, true)
        assert.same({ { ref = "refs/heads/kept", reason = "non-fast-forward" } }, problem.refused)
      end
      assert.equal(new, sha(s.ours, "refs/heads/fresh"))
      assert.equal(old, sha(s.ours, "refs/heads/kept"))
      local problem = check.problem(call(s, "fetch", { refspecs = { "refs/tags/*:refs/tags/*", "main:other" } }), 409,
        "non_fast_forward")
      assert.same({ { ref = "refs/tags/v1", reason = "the tag exists already" } }, problem.refused)
      assert.same({ { ref = "refs/heads/other", old = json.null, new = new } }, problem.updated)
      assert.equal(tag, sha(s.ours, "v1"))
      assert.equal(1, git.try(s.ours, "fetch", "--quiet", "origin", "main:kept").code) -- as git has it
      check.ok(call(s, "fetch", { refspecs = { "+main:kept" } }))
      assert.equal(new, sha(s.ours, "refs/heads/kept"))
    end)

    it("is told by the configuration's refspecs too, also to pull", function()
      local s, old = apart()
      git.run(s.ours, "config", "remote.origin.fetch", "refs/heads/*:refs/known/*")
      git.run(s.ours, "update-ref", "refs/known/main", old)
      for _, operation in ipairs { "fetch", "pull" } do
        local problem = check.problem(call(s, operation), 409, "non_fast_forward")
        assert.same({ { ref = "refs/known/main", reason = "non-fast-forward" } }, problem.refused)
      end
      assert.equal(old, sha(s.ours, "refs/known/main"))
    end)
  end)

  describe("pull", function()
    it("fast-forwards, and tells when there is nothing to do", function()
      local s = scene()
      assert.equal("up_to_date", check.ok(call(s, "pull")).result.kind)
      local second = commit_theirs(s, { b = "b\n" })
      local answer = check.ok(call(s, "pull"))
      assert.equal("fast_forward", answer.result.kind)
      assert.equal(second, answer.head.sha)
      assert.equal("b\n", files.read(s.ours .. "/b"))
      assert.equal("", git.run(s.ours, "status", "--porcelain"))
    end)

    it("does not join what went apart unless it is told to", function()
      local s = scene()
      local theirs = commit_theirs(s, { b = "b\n" })
      local ours = commit(s.ours, { c = "c\n" })
      check.problem(call(s, "pull"), 409, "non_fast_forward")
      assert.equal(ours, sha(s.ours))
      assert.equal("merge", check.ok(call(s, "pull", { strategy = "merge" })).result.kind)
      assert.equal(ours .. " " .. theirs, git.run(s.ours, "log", "-1", "--format=%P"))
      assert.equal("b\n", files.read(s.ours .. "/b"))
      assert.equal("", git.run(s.ours, "status", "--porcelain"))
    end)

    it("leaves conflicts to be mended", function()
      local s = scene()
      commit_theirs(s, { a = "theirs\n" })
      commit(s.ours, { a = "ours\n" })
      local problem = check.problem(call(s, "pull", { strategy = "merge" }), 409, "merge_conflict")
      assert.same({ "a" }, problem.conflicts)
      assert.equal("UU a", git.run(s.ours, "status", "--porcelain"))
      check.problem(call(s, "pull"), 409, "merge_conflict")
    end)

    it("overwrites no local change", function()
      local s = scene()
      commit_theirs(s, { a = "theirs\n", n = "n\n" })
      files.write(s.ours .. "/a", "mine\n")
      local problem = check.problem(call(s, "pull"), 409, "worktree_dirty")
      assert.same({ "a" }, problem.files)
      assert.equal("mine\n", files.read(s.ours .. "/a"))
      assert.is_false(files.exists(s.ours .. "/n"))
    end)

    it("takes another branch, and wants one where none is checked out", function()
      local s = scene()
      git.run(s.theirs, "checkout", "--quiet", "-b", "topic")
      local topic = commit_theirs(s, { t = "t\n" })
      assert.equal("fast_forward", check.ok(call(s, "pull", { branch = "topic" })).result.kind)
      assert.equal(topic, sha(s.ours))
      check.problem(call(s, "pull", { branch = "nope" }), 404, "reference_not_found", "branch")
      for _, branch in ipairs { "main:other", "refs/heads/main:refs/heads/other", "*", "a b", ("x"):rep(1100) } do
        check.problem(call(s, "pull", { branch = branch }), 400, "invalid_request", "branch")
      end
      assert.equal("refs/heads/main", git.run(s.ours, "for-each-ref", "--format=%(refname)", "refs/heads"))
      git.run(s.ours, "checkout", "--quiet", "--detach")
      check.problem(call(s, "pull"), 400, "invalid_request", "branch")
    end)

    it("fills a repository without a commit", function()
      local s = scene()
      git.repository(base .. "/new")
      check.ok(git.call(abxd, "remote", { path = "new", action = "add", name = "origin", url = s.url }))
      assert.equal("fast_forward", check.ok(git.call(abxd, "pull", { path = "new" })).result.kind)
      assert.equal(sha(s.theirs), sha(base .. "/new"))
      assert.equal(files.read(s.theirs .. "/a"), files.read(base .. "/new/a"))
    end)
  end)

  describe("push", function()
    it("brings commits, and new branches with their upstream", function()
      local s = scene()
      local first, second = sha(s.ours), commit(s.ours, { b = "b\n" })
      assert.same({ { ref = "refs/heads/main", old = first, new = second } }, check.ok(call(s, "push")).result.updated)
      assert.equal(second, sha(s.bare, "main"))
      assert.equal(second, sha(s.ours, "origin/main"))
      assert.same({}, check.ok(call(s, "push")).result.updated)
      git.run(s.ours, "checkout", "--quiet", "-b", "topic")
      assert.same({ { ref = "refs/heads/topic", old = json.null, new = second } },
        check.ok(call(s, "push", { set_upstream = true })).result.updated)
      assert.equal("origin/topic", git.run(s.ours, "rev-parse", "--abbrev-ref", "topic@{upstream}"))
    end)

    it("takes refspecs: other names, tags, patterns, deletions", function()
      local s = scene()
      local first = sha(s.ours)
      git.run(s.ours, "tag", "v1")
      git.run(s.ours, "branch", "x/y")
      check.ok(call(s, "push", { refspecs = { "main:renamed", "v1", "HEAD:refs/heads/direct" } }))
      assert.equal(first, sha(s.bare, "refs/heads/renamed"))
      assert.equal(first, sha(s.bare, "refs/tags/v1"))
      assert.equal(first, sha(s.bare, "refs/heads/direct"))
      check.ok(call(s, "push", { refspecs = { "refs/heads/*:refs/heads/all/*" } }))
      assert.equal(first, sha(s.bare, "refs/heads/all/x/y"))
      assert.same({ { ref = "refs/heads/renamed", old = first, new = json.null } },
        check.ok(call(s, "push", { refspecs = { ":renamed" } })).result.updated)
      assert.equal("", git.run(s.bare, "for-each-ref", "refs/heads/renamed"))
      for _, spec in ipairs { ":", "main:a b", "main:" } do
        check.problem(call(s, "push", { refspecs = { spec } }), 400, "invalid_request", "refspecs")
      end
      check.problem(call(s, "push", { refspecs = { "nope" } }), 404, "reference_not_found", "refspecs")
    end)

    it("is refused where it is no fast-forward, unless forced", function()
      local s = scene()
      local theirs = commit_theirs(s, { b = "b\n" })
      local ours = commit(s.ours, { c = "c\n" })
      check.problem(call(s, "push"), 409, "non_fast_forward")
      assert.equal(theirs, sha(s.bare, "main"))
      check.ok(call(s, "push", { force = true }))
      assert.equal(ours, sha(s.bare, "main"))
    end)

    it("tells what the server refuses, and what it took", function()
      local s = scene()
      local second = commit(s.ours, { b = "b\n" })
      files.write(s.bare .. "/hooks/update", "#!/bin/sh\n[ $1 != refs/heads/main ] || { echo not on a friday >&2; exit 1; }\n")
      assert(require("luv").fs_chmod(s.bare .. "/hooks/update", tonumber("755", 8)))
      local problem = check.problem(call(s, "push", { refspecs = { "main", "main:free" }, set_upstream = true }), 409,
        "non_fast_forward")
      assert.matches("hook declined", problem.detail, 1, true)
      assert.same({ { ref = "refs/heads/main", reason = "hook declined" } }, problem.refused)
      assert.same({ { ref = "refs/heads/free", old = json.null, new = second } }, problem.updated)
      assert.equal(second, sha(s.bare, "free"))
      git.run(s.bare, "config", "receive.denyNonFastForwards", "true")
      files.write(s.bare .. "/hooks/update", "#!/bin/sh\nexit 0\n")
      git.run(s.ours, "reset", "--quiet", "--hard", "HEAD~1")
      check.problem(call(s, "push", { refspecs = { "main:free" }, force = true }), 409, "non_fast_forward")
      assert.equal(second, sha(s.bare, "free"))
    end)

    it("wants something to push", function()
      local s = scene()
      git.run(s.ours, "checkout", "--quiet", "--detach")
      for _, refspecs in ipairs { {}, { "HEAD" } } do
        check.problem(call(s, "push", { refspecs = refspecs }), 400, "invalid_request", "refspecs")
      end
      check.ok(call(s, "push", { refspecs = { "HEAD:refs/heads/loose" } }))
      assert.equal("refs/heads/loose\nrefs/heads/main", git.run(s.bare, "for-each-ref", "--format=%(refname)"))
      git.repository(base .. "/unborn")
      check.ok(git.call(abxd, "remote", { path = "unborn", action = "add", name = "origin", url = s.url }))
      check.problem(git.call(abxd, "push", { path = "unborn" }), 404, "reference_not_found")
    end)

    it("goes to a bare repository inside the base", function()
      git.repository(base .. "/p", { p = "p\n" })
      git.run(base, "init", "--quiet", "--bare", "p.git")
      check.ok(git.call(abxd, "remote", { path = "p", action = "add", name = "origin", url = "p.git" }))
      check.ok(git.call(abxd, "push", { path = "p" }))
      assert.equal(sha(base .. "/p"), sha(base .. "/p.git", "main"))
    end)

    it("goes into no working tree", function()
      git.repository(base .. "/from", { p = "p\n" })
      git.repository(base .. "/tree", { p = "p\n" })
      check.ok(git.call(abxd, "remote", { path = "from", action = "add", name = "origin", url = "tree" }))
      local problem = check.problem(git.call(abxd, "push", { path = "from", refspecs = { "main:new" } }), 400,
        "invalid_request", "remote")
      assert.equal(base .. "/tree has a working tree, and pushes to a path go into bare repositories only: pull from there "
        .. "instead", problem.detail)
      assert.equal("", git.run(base .. "/tree", "for-each-ref", "refs/heads/new"))
    end)
  end)

  it("remotes are listed, added, changed and removed", function()
    local s = scene()
    assert.same({ { name = "origin", url = s.url } }, check.ok(call(s, "remote")).result.remotes)
    check.ok(call(s, "remote", { action = "add", name = "up", url = "https://host.example/x.git" }))
    assert.equal("https://host.example/x.git", git.run(s.ours, "config", "remote.up.url"))
    assert.equal("+refs/heads/*:refs/remotes/up/*", git.run(s.ours, "config", "remote.up.fetch"))
    check.problem(call(s, "remote", { action = "add", name = "up", url = s.url }), 409, "already_exists", "name")
    check.ok(call(s, "remote", { action = "set_url", name = "up", url = "https://other.example/y" }))
    assert.equal("https://other.example/y", git.run(s.ours, "config", "remote.up.url"))
    for _, url in ipairs { "ssh://x/y", "git@host:x", "https://u:p@host/x", "ext::true" } do
      check.problem(call(s, "remote", { action = "set_url", name = "up", url = url }), 400, "url_not_allowed", "url")
      check.problem(call(s, "remote", { action = "add", name = "bad", url = url }), 400, "url_not_allowed", "url")
    end
    check.problem(call(s, "remote", { action = "add", name = "bad", url = "/etc" }), 403, "path_outside_base", "url")
    check.ok(call(s, "remote", { action = "remove", name = "up" }))
    assert.equal("origin", git.run(s.ours, "remote"))
    check.problem(call(s, "remote", { action = "remove", name = "up" }), 404, "reference_not_found", "name")
    git.run(s.ours, "config", "remote.there.pushurl", "https://u:p@host.example/x")
    assert.same({ { name = "origin", url = s.url },
      { name = "there", url = json.null, push_url = "https://host.example/x" } }, check.ok(call(s, "remote")).result.remotes)
    check.problem(call(s, "remote", { action = "set_url", name = "up", url = s.url }), 404, "reference_not_found", "name")
    check.problem(call(s, "remote", { action = "add", name = "a b", url = s.url }), 400, "invalid_request", "name")
  end)
end)
