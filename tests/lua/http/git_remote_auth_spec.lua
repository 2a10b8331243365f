--- Credentials of remotes: they reach the server that the client named and nobody else, and stay nowhere.
local check = require("support.check")
local files = require("support.files")
local git = require("support.git")
local git_http = require("support.git_http")
local mime = require("mime")
local process = require("support.process")
local server = require("support.server")

local SECRET = "hunter2-sesame"

describe("git credentials", function()
  local abxd, base, served, remote, other

  local function basic(user, password)
    return "Basic " .. mime.b64(user .. ":" .. password)
  end

  --- What a server was sent since its first `after` requests, without the requests that had nothing.
  local function sent(to, after)
    local list = {}
    for i, request in ipairs(to:requests()) do
      if i > after and type(request.authorization) == "string" then
        list[request.authorization] = true
      end
    end
    return list
  end

  local function problem_of(answer)
    assert.is_nil(answer.body:find(SECRET, 1, true))
    return check.problem(answer, 502, "git_network")
  end

  local function call(operation, params)
    params.credentials = params.credentials or { username = "ada", password = SECRET }
    return git.call(abxd, operation, params)
  end

  lazy_setup(function()
    served = files.mkdtemp()
    git.repository(served .. "/one", { a = "a\n" })
    git.run(served, "clone", "--quiet", "--bare", "one", "one.git")
    remote = git_http.start(served, "ada:" .. SECRET)
    other = git_http.start(served, "ada:" .. SECRET)
    abxd = server.start { env = git.groups }
    base = abxd.base_dir
    check.ok(call("clone", { url = remote:url("auth/one.git"), path = "c" }))
  end)
  lazy_teardown(function()
    local log = abxd:log_text()
    abxd:stop()
    remote:stop()
    other:stop()
    files.remove_tree(served)
    assert.is_nil(log:find(SECRET, 1, true))
    assert.is_nil(log:find(mime.b64("ada:" .. SECRET), 1, true))
  end)

  it("open what wants them, and stay nowhere", function()
    assert.equal("a\n", files.read(base .. "/c/a"))
    assert.equal(remote:url("auth/one.git"), git.run(base .. "/c", "config", "remote.origin.url"))
    assert.same({ [basic("ada", SECRET)] = true }, sent(remote, 0))
    assert.equal("", process.run({ "grep", "-rlF", "-e", SECRET, "-e", mime.b64("ada:" .. SECRET), base }).stdout)
    check.ok(call("fetch", { path = "c" }))
    git.write(base .. "/c", { b = "b\n" })
    git.commit_all(base .. "/c", "second")
    check.ok(call("push", { path = "c" }))
    check.ok(call("pull", { path = "c" }))
    assert.equal(git.run(base .. "/c", "rev-parse", "main"), git.run(served .. "/one.git", "rev-parse", "main"))
  end)

  it("may be a token", function()
    local with_token <close> = git_http.start(served, "x-access-token:tok-1")
    check.ok(call("clone", { url = with_token:url("auth/one.git"), path = "t", credentials = { token = "tok-1" } }))
    assert.equal("a\n", files.read(base .. "/t/a"))
  end)

  it("are given once: wrong ones end it", function()
    local count = #remote:requests()
    local problem = problem_of(call("clone", { url = remote:url("auth/one.git"), path = "w",
      credentials = { username = "ada", password = "wrong-" .. SECRET } }))
    assert.matches("refused the credentials", problem.detail, 1, true)
    assert.is_true(#remote:requests() - count <= 3)
    assert.is_false(files.exists(base .. "/w"))
    problem = problem_of(call("clone", { url = remote:url("loop/one.git"), path = "w" }))
    assert.matches("refused the credentials", problem.detail, 1, true)
  end)

  it("are asked for by name where none were given", function()
    local problem = check.problem(git.call(abxd, "clone", { url = remote:url("auth/one.git"), path = "w" }), 502,
      "git_network")
    assert.matches("wants credentials", problem.detail, 1, true)
    check.problem(git.call(abxd, "fetch", { path = "c" }), 502, "git_network")
  end)

  it("are either a name with a password, or a token", function()
    for _, credentials in ipairs { { username = "ada" }, { password = "x" }, { username = "a", token = "t" },
      { username = "a", password = "b", token = "t" } } do
      local answer = call("clone", { url = remote:url("auth/one.git"), path = "w", credentials = credentials })
      local problem = check.problem(answer, 400, "invalid_request")
      assert.matches("^credentials", problem.field or problem.errors[1].field)
    end
  end)

  it("do not follow a redirect, before they were asked for or after", function()
    local after = #other:requests()
    local target = ("127.0.0.1:%d/auth/one.git"):format(other.port)
    local problem = problem_of(call("clone", { url = remote:url("to/" .. target), path = "r" }))
    assert.matches("another server", problem.detail, 1, true)
    assert.is_true(#other:requests() > after) -- it was asked, without them
    for _, plain in ipairs { "auth", "plain" } do
      problem = problem_of(call("clone", { path = "r",
        url = remote:url(("authto/127.0.0.1:%d/%s/one.git"):format(other.port, plain)) }))
      assert.matches("not for", problem.detail, 1, true)
    end
    problem_of(call("clone", { path = "r", url = remote:url(("authto/localhost:%d/plain/one.git"):format(other.port)) }))
    assert.same({}, sent(other, 0))
    assert.is_false(files.exists(base .. "/r"))
  end)

  it("may be given for a server that redirects without wanting them", function()
    check.ok(call("clone", { url = remote:url(("to/127.0.0.1:%d/plain/one.git"):format(other.port)), path = "r2" }))
    assert.same({}, sent(other, 0))
  end)

  it("do not go where the repository's configuration leads", function()
    local function repository(name)
      git.run(base, "clone", "--quiet", "c", name)
      git.run(base .. "/" .. name, "remote", "set-url", "origin", remote:url("auth/one.git"))
      return base .. "/" .. name
    end
    local rewritten = repository("k1")
    git.run(rewritten, "config", ("url.http://127.0.0.1:%d/.insteadOf"):format(other.port), remote:url(""))
    problem_of(call("fetch", { path = "k1" }))
    problem_of(call("pull", { path = "k1" }))
    problem_of(call("push", { path = "k1" }))
    local push = repository("k2")
    git.run(push, "config", "remote.origin.pushurl", other:url("auth/one.git"))
    problem_of(call("push", { path = "k2" }))
    check.ok(call("fetch", { path = "k2" }))
    local push_instead = repository("k3")
    git.run(push_instead, "config", ("url.http://127.0.0.1:%d/.pushInsteadOf"):format(other.port), remote:url(""))
    problem_of(call("push", { path = "k3" }))
    local proxy = repository("k4")
    git.run(proxy, "config", "http.proxy", other:url(""))
    git.run(proxy, "config", "remote.origin.proxy", other:url(""))
    git.run(proxy, "config", "credential.helper", "!touch " .. base .. "/helper-ran")
    check.ok(call("fetch", { path = "k4" }))
    assert.same({}, sent(other, 0))
    assert.is_false(files.exists(base .. "/helper-ran"))
  end)

  describe("and URLs in a repository's configuration:", function()
    local outside

    lazy_setup(function()
      outside = files.mkdtemp()
      git.run(outside, "clone", "--quiet", "--bare", served .. "/one", "o.git")
      git.run(base, "clone", "--quiet", "c", "h")
    end)
    lazy_teardown(function()
      files.remove_tree(outside)
    end)

    for _, stored in ipairs { "ext::sh -c 'touch BASE/ran'", "ssh://127.0.0.1/x", "git@127.0.0.1:x", "git://127.0.0.1/x",
      "http://ada:" .. SECRET .. "@127.0.0.1:1/x", "OUT/o.git", "file://OUT/o.git", "../../../../../../../OUT/o.git" } do
      it(stored, function()
        local url = stored:gsub("OUT", (outside:gsub("%%", "%%%%"))):gsub("BASE", base)
        for _, key in ipairs { "remote.origin.url", "url." .. url .. ".insteadOf" } do
          git.run(base .. "/h", "config", "remote.origin.url", "http://127.0.0.1:1/one")
          git.run(base .. "/h", "config", key, key == "remote.origin.url" and url or "http://127.0.0.1:1/one")
          for _, operation in ipairs { "fetch", "pull", "push" } do
            local answer = git.call(abxd, operation, { path = "h" })
            assert.is_true(answer.status == 400 or answer.status == 403 or answer.status == 404, answer.body)
            assert.equal("remote", answer:json().field)
            assert.is_nil(answer.body:find(SECRET, 1, true))
          end
          git.try(base .. "/h", "config", "--unset-all", key)
        end
        assert.is_false(files.exists(base .. "/ran"))
      end)
    end

    it("are shown without what they hide", function()
      git.run(base .. "/h", "config", "remote.origin.url", "http://ada:" .. SECRET .. "@host/x?y#z")
      local answer = git.call(abxd, "remote", { path = "h" })
      assert.same({ { name = "origin", url = "http://host/x?y#z" } }, check.ok(answer).result.remotes)
      git.run(base .. "/h", "config", "remote.origin.url", "http://127.0.0.1:1/one")
    end)
  end)
end)
