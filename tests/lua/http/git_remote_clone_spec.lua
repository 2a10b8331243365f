--- Clones: what they make, over HTTP and from a path, and that nothing is left of one that failed.
local check = require("support.check")
local files = require("support.files")
local git = require("support.git")
local git_http = require("support.git_http")
local process = require("support.process")
local server = require("support.server")

describe("git clone", function()
  local abxd, remote, served, base

  local function clone(url, path, params)
    params = params or {}
    params.url, params.path = url, path
    return git.call(abxd, "clone", params)
  end

  --- Nothing but what was there, and no name of ours.
  local function assert_nothing_at(path)
    assert.is_true(process.poll(5000, function()
      return not files.exists(base .. "/" .. path)
    end), path .. " is still there")
    for _, name in ipairs(files.list(base)) do
      assert.is_nil(name:match("^%.abxd") or name:match("%.abxd%-"), name)
    end
  end

  lazy_setup(function()
    served = files.mkdtemp()
    git.repository(served .. "/one", { a = "a\n", ["d/e/b"] = "b\n" })
    git.run(served .. "/one", "tag", "--annotate", "v1", "--message", "one")
    git.run(served .. "/one", "checkout", "--quiet", "-b", "topic")
    git.write(served .. "/one", { topic = "t\n" })
    git.commit_all(served .. "/one", "topic")
    git.run(served .. "/one", "checkout", "--quiet", "main")
    git.run(served, "init", "--quiet", "--bare", "empty.git")
    remote = git_http.start(served)
    abxd = server.start { env = git.groups }
    base = abxd.base_dir
    git.repository(base .. "/inside", { i = "i\n" })
  end)
  lazy_teardown(function()
    abxd:stop()
    remote:stop()
    files.remove_tree(served)
  end)

  it("makes what git makes", function()
    local answer = check.ok(clone(remote:url("plain/one"), "c1"))
    assert.equal("clone", answer.operation)
    assert.equal(base .. "/c1", answer.root)
    assert.equal(git.run(served .. "/one", "rev-parse", "HEAD"), answer.head.sha)
    assert.equal("main", answer.result.branch)
    git.run(served, "clone", "--quiet", remote:url("plain/one"), "theirs")
    for _, question in ipairs { { "status", "--porcelain", "--branch" }, { "for-each-ref" }, { "symbolic-ref", "HEAD" },
      { "symbolic-ref", "refs/remotes/origin/HEAD" }, { "ls-files", "--stage" }, { "config", "remote.origin.url" },
      { "config", "remote.origin.fetch" }, { "config", "branch.main.merge" }, { "config", "branch.main.remote" } } do
      assert.equal(git.run(served .. "/theirs", table.unpack(question)), git.run(base .. "/c1", table.unpack(question)))
    end
    git.run(base .. "/c1", "fsck", "--strict")
    assert_nothing_at("nothing")
  end)

  it("checks out the branch or the tag asked for", function()
    check.ok(clone(remote:url("plain/one"), "deep/er/c2", { branch = "topic" }))
    assert.equal("t\n", files.read(base .. "/deep/er/c2/topic"))
    assert.equal("refs/heads/topic", git.run(base .. "/deep/er/c2", "symbolic-ref", "HEAD"))
    local answer = check.ok(clone(remote:url("plain/one"), "c3", { branch = "v1" }))
    assert.equal(git.run(served .. "/one", "rev-parse", "v1^{}"), answer.head.sha)
    check.problem(clone(remote:url("plain/one"), "c4", { branch = "nope" }), 404, "reference_not_found", "branch")
    assert_nothing_at("c4")
  end)

  it("is on no branch where the remote is on none", function()
    git.run(served, "clone", "--quiet", "one", "loose")
    git.run(served .. "/loose", "checkout", "--quiet", "--detach")
    git.write(served .. "/loose", { loose = "l\n" })
    local sha = git.commit_all(served .. "/loose", "on no branch")
    git.run(served, "clone", "--quiet", "one", "odd")
    git.run(served .. "/odd", "update-ref", "refs/odd/x", "HEAD")
    git.run(served .. "/odd", "symbolic-ref", "HEAD", "refs/odd/x")
    for name, head in pairs { loose = sha, odd = git.run(served .. "/one", "rev-parse", "main") } do
      for _, bare in ipairs { false, true } do
        local path = name .. (bare and ".git" or "")
        local answer = check.ok(clone(remote:url("plain/" .. name), path, { bare = bare }))
        assert.equal(head, answer.head.sha)
        assert.equal(require("support.json").null, answer.result.branch)
        assert.equal(1, git.try(base .. "/" .. path, "symbolic-ref", "--quiet", "HEAD").code)
        assert.equal("", git.try(base .. "/" .. path, "config", "--get-regexp", "^branch\\.").stdout)
        assert.equal("", git.run(base .. "/" .. path, "for-each-ref", "refs/odd"))
      end
    end
    assert.equal("l\n", files.read(base .. "/loose/loose"))
  end)

  it("makes a bare one", function()
    local answer = check.ok(clone(remote:url("plain/one"), "c5.git", { bare = true }))
    assert.equal(base .. "/c5.git", answer.root)
    assert.equal(git.run(served .. "/one", "for-each-ref"), git.run(base .. "/c5.git", "for-each-ref"))
    assert.equal("true", git.run(base .. "/c5.git", "config", "core.bare"))
    assert.equal("refs/heads/main", git.run(base .. "/c5.git", "symbolic-ref", "HEAD"))
  end)

  it("takes an empty remote", function()
    local answer = check.ok(clone(remote:url("plain/empty.git"), "c6"))
    assert.equal(require("support.json").null, answer.head)
    assert.is_true(answer.result.empty)
    assert.equal("## No commits yet on main...origin/main [gone]", git.run(base .. "/c6", "status", "--porcelain", "--branch"))
  end)

  it("takes a path inside the base, and an empty directory as its place", function()
    files.mkdir(base .. "/c7")
    for i, url in ipairs { "inside", base .. "/inside", "file://" .. base .. "/%69nside", "./inside/.git" } do
      check.ok(clone(url, i == 1 and "c7" or "c7-" .. i))
    end
    assert.equal("i\n", files.read(base .. "/c7/i"))
    assert.equal(base .. "/inside", git.run(base .. "/c7", "config", "remote.origin.url"))
  end)

  it("refuses what is no repository and what lies outside", function()
    check.problem(clone("nowhere", "c8"), 404, "repository_not_found", "url")
    check.problem(clone("file://" .. served .. "/one", "c8"), 403, "path_outside_base", "url")
    check.problem(clone(served .. "/one", "c8"), 403, "path_outside_base", "url")
    check.problem(clone("../x", "c8"), 403, "path_outside_base", "url")
    assert_nothing_at("c8")
  end)

  for _, url in ipairs { "ext::sh -c 'touch x'", "ssh://host/x", "git@host:x", "git://host/x", "ftp://host/x", "host:x",
    "file://host/x", "http://", "http:///x", "http://user:secret@127.0.0.1/x", "http://user@127.0.0.1/x",
    "http://127.0.0.1\\@evil/x", "http://127.0.0.1:99999/x", "http://a b/x", "file:///%00", "-u", "fd::3" } do
    it("does not go to " .. url, function()
      local problem = clone(url, "c9")
      check.problem(problem, url == "-u" and 404 or 400, url == "-u" and "repository_not_found" or "url_not_allowed", "url")
      assert.is_nil(problem.body:find("secret", 1, true))
      assert_nothing_at("c9")
    end)
  end

  it("fills the base itself, once it works, and leaves an empty directory the one it is", function()
    local fresh <close> = server.start { env = git.groups }
    for _, url in ipairs { "cut/one", "fault/one" } do
      check.problem(git.call(fresh, "clone", { path = ".", url = remote:url(url) }), 502, "git_network")
    end
    check.problem(git.call(fresh, "clone", { path = ".", url = remote:url("silent/one"), timeout_ms = 300 }), 504,
      "upstream_timeout")
    assert.is_true(process.poll(5000, function()
      return #files.list(fresh.base_dir) == 0
    end))
    local answer = check.ok(git.call(fresh, "clone", { path = ".", url = remote:url("plain/one") }))
    assert.equal(fresh.base_dir, answer.root)
    assert.equal("## main...origin/main", git.run(fresh.base_dir, "status", "--porcelain", "--branch"))
    assert.equal("", git.run(fresh.base_dir, "diff-files"))
    assert.equal("b\n", files.read(fresh.base_dir .. "/d/e/b"))
    check.problem(git.call(fresh, "clone", { path = ".", url = remote:url("plain/one") }), 409, "already_exists", "path")
    files.mkdir(base .. "/stays")
    local before = process.run({ "stat", "-c", "%i", base .. "/stays" }).stdout
    check.ok(clone(remote:url("plain/one"), "stays", { bare = true }))
    assert.equal(before, process.run({ "stat", "-c", "%i", base .. "/stays" }).stdout)
    git.run(base .. "/stays", "fsck", "--strict")
    assert_nothing_at("nothing")
  end)

  it("takes no place that is taken", function()
    files.mkdir(base .. "/full")
    files.write(base .. "/full/x", "x")
    check.problem(clone(remote:url("plain/one"), "full"), 409, "already_exists", "path")
    assert.same({ "x" }, files.list(base .. "/full"))
  end)

  it("leaves nothing when the server fails", function()
    for mode, said in pairs { fault = "500", ["cut/one"] = "", ["to/127.0.0.1:1"] = "127.0.0.1" } do
      local problem = check.problem(clone(remote:url(mode == "fault" and "fault/one" or mode), "c10"), 502, "git_network")
      assert.matches(said, problem.detail, 1, true)
      assert_nothing_at("c10")
    end
    check.problem(clone(remote:url("plain/nope"), "c10"), 404, "repository_not_found")
    assert_nothing_at("c10")
    local problem = check.problem(clone("http://127.0.0.1:1/x", "c10"), 502, "git_network")
    assert.matches("127.0.0.1 port 1", problem.detail, 1, true)
    check.problem(clone("http://nowhere.invalid/x", "c10"), 502, "git_network")
    assert_nothing_at("c10")
  end)

  it("is over when its time is over, also while the server is silent", function()
    local problem = check.problem(clone(remote:url("silent/one"), "a/b/c11", { timeout_ms = 300 }), 504, "upstream_timeout")
    assert.matches("timeout_ms", problem.detail, 1, true)
    assert_nothing_at("a")
  end)

  it("leaves nothing when its helper is killed, or the client leaves", function()
    local function helper()
      for _, child in ipairs(abxd:children()) do
        local fds = child.argv:find("abxd-helper git ", 1, true) and files.list("/proc/" .. child.pid .. "/task")
        if fds and process.run({ "ss", "-tnp" }).stdout:find("pid=" .. child.pid .. ",", 1, true) then
          return child.pid
        end
      end
    end
    local conn = abxd:connect()
    conn:send_request("POST", "/git/clone", { json = { url = remote:url("silent/one"), path = "b/c12" } })
    local pid = assert(process.poll(5000, helper), "no helper talks to the server")
    assert(require("luv").kill(pid, "sigkill"))
    check.problem(conn:read_response(), 500, "internal_error")
    conn:close()
    assert_nothing_at("b")
    conn = abxd:connect()
    conn:send_request("POST", "/git/clone", { json = { url = remote:url("silent/one"), path = "b/c13" } })
    assert(process.poll(5000, helper), "no helper talks to the server")
    conn:close()
    assert.is_true(process.poll(10000, function()
      return not files.exists(base .. "/b") and not helper()
    end))
    assert_nothing_at("b")
  end)

  it("clones a tree with traps without running or writing anything elsewhere", function()
    local outside = files.mkdtemp()
    git.repository(served .. "/trap", { [".gitattributes"] = "* filter=evil\n", f = "f\n" })
    local link = process.run({ "ln", "-s", outside, served .. "/trap/out" })
    assert.equal(0, link.code)
    git.commit_all(served .. "/trap", "a link")
    check.ok(clone(remote:url("plain/trap"), "trap"))
    assert.equal("f\n", files.read(base .. "/trap/f"))
    assert.same({}, files.list(outside))
    assert.equal("", git.run(base .. "/trap", "status", "--porcelain"))
    files.remove_tree(outside)
  end)

  --- Enough files for more than one thread, in folders that others lie between.
  local MANY = [[
    cd "$1" && git init -q -b main . && git config user.name t && git config user.email t@localhost &&
    mkdir -p a/b/c a.b a-b z sub && echo x >a/zz && printf 'x\ny\n' >a/t.txt && printf '$Id$\n' >a/b/q.id &&
    echo x >a/b/c/x.txt && printf '%b' 'a\r\n\0b' >a.b/m.bin && : >a-b/empty && echo hi >run.sh && chmod 755 run.sh &&
    ln -s ../run.sh z/link && ln -s /etc z/folder && for i in $(seq 600); do echo "$i" >"z/f$i.txt"; done &&
    if [ -n "$2" ]; then
      printf '*.txt text eol=crlf\n*.id ident\n*.bin binary\n' >.gitattributes &&
      printf '*.txt -text\n' >a/b/c/.gitattributes
    fi &&
    git add -A 2>/dev/null && git update-index --add --cacheinfo "160000,$(printf '%040d' 7),sub/mod" &&
    git commit -q -m many]]

  for _, attributes in ipairs { "", "with attributes" } do
    it("writes every kind of entry as git does" .. (attributes ~= "" and ", " .. attributes or ""), function()
      local name = "many" .. #attributes
      files.mkdir(served .. "/" .. name)
      local made = process.run({ "bash", "-c", MANY, "-", served .. "/" .. name, attributes })
      assert.equal(0, made.code, made.stderr)
      check.ok(clone(remote:url("plain/" .. name), name))
      git.run(served, "clone", "--quiet", remote:url("plain/" .. name), "theirs-" .. name)
      local differ = process.run { "diff", "-r", "--no-dereference", "-x", ".git", served .. "/theirs-" .. name,
        base .. "/" .. name }
      assert.equal("", differ.stdout .. differ.stderr)
      for _, question in ipairs { { "status", "--porcelain" }, { "ls-files", "--stage" } } do
        assert.equal(git.run(served .. "/theirs-" .. name, table.unpack(question)),
          git.run(base .. "/" .. name, table.unpack(question)))
      end
      assert.equal(attributes ~= "" and "x\r\ny\r\n" or "x\ny\n", files.read(base .. "/" .. name .. "/a/t.txt"))
      local modes = process.run { "stat", "-c", "%a %F", base .. "/" .. name .. "/run.sh", base .. "/" .. name .. "/sub/mod" }
      assert.equal("755 regular file\n755 directory\n", modes.stdout)
    end)
  end

  --- The index tells that the files are unchanged: none is read to see it.
  it("notes the files' state in the index", function()
    check.ok(clone(remote:url("plain/one"), "noted"))
    local debug = git.run(base .. "/noted", "ls-files", "--debug", "a")
    local inode = process.run { "stat", "-c", "%i", base .. "/noted/a" }
    assert.equal(tonumber(inode.stdout) % 2 ^ 32, tonumber(debug:match("ino: (%d+)")))
    assert.equal("2", debug:match("size: (%d+)"))
  end)

  local function evil_tree(name, script)
    files.mkdir(served .. "/" .. name)
    local made = process.run { "bash", "-c", [[
      cd "$1" && git init -q -b main . && blob=$(echo evil | git hash-object -w --stdin) &&
      link=$(printf '%s' "$2" | git hash-object -w --stdin) && ]] .. script .. [[ &&
      commit=$(git -c user.name=t -c user.email=t@localhost commit-tree -m evil "$tree") &&
      git update-ref refs/heads/main "$commit"]], "-", served .. "/" .. name, served .. "/outside" }
    assert.equal(0, made.code, made.stderr)
  end

  for name, script in pairs {
    ["a link and a folder of one name"] = [[
      below=$(printf '100644 blob %s\tb\n' "$blob" | git mktree) &&
      tree=$(printf '120000 blob %s\ta\n040000 tree %s\ta\n' "$link" "$below" | git mktree)]],
    ["a link in the place of .gitmodules"] = [[tree=$(printf '120000 blob %s\t.gitmodules\n' "$link" | git mktree)]],
    ["a file inside .git"] = [[
      below=$(printf '100644 blob %s\tconfig\n' "$blob" | git mktree) &&
      tree=$(printf '040000 tree %s\t.GIT\n' "$below" | git mktree)]],
  } do
    it("refuses " .. name, function()
      local repository = name:gsub("%W", "")
      files.mkdir(served .. "/outside")
      evil_tree(repository, script)
      local answer = clone(remote:url("plain/" .. repository), repository)
      assert.is_true(answer.status >= 400, answer.body)
      assert.same({}, files.list(served .. "/outside"))
      assert_nothing_at(repository)
      files.remove_tree(served .. "/outside")
    end)
  end
end)
