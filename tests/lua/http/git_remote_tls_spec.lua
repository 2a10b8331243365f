--- git over https: whom it trusts, that a server it does not trust hears nothing, and that time and origins hold below TLS.
local certificates = require("support.certificates")
local check = require("support.check")
local files = require("support.files")
local git = require("support.git")
local git_http = require("support.git_http")
local mime = require("mime")
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")
local socket = require("socket")

local SECRET = "hunter2-sesame"
-- A mount namespace where Debian's bundle of authorities is the file that follows; then the server.
local OWN_BUNDLE = { "unshare", "--mount", "sh", "-c",
  'mount --bind "$0" /etc/ssl/certs/ca-certificates.crt && exec "$@"' }
local UNTRUSTED = "the certificate of localhost is not trusted (abxd trusts whom its environment names in GIT_SSL_CAINFO, "
  .. "SSL_CERT_FILE or SSL_CERT_DIR, else the system's authorities)"
local CREDENTIALS = { username = "ada", password = SECRET }

describe("git over https", function()
  local abxd, base, served, authority, good, remote, other, plain

  local function start(certificate)
    return git_http.start(served, "ada:" .. SECRET, certificate)
  end

  local function start_abxd(env, prefix)
    local all = {}
    for name, value in pairs(git.groups) do
      all[name] = value
    end
    for name, value in pairs(env) do
      all[name] = value
    end
    return server.start { env = all, prefix = prefix }
  end

  local function clone(to, url, path, params)
    params = params or {}
    params.url, params.path = url, path
    params.credentials = params.credentials or CREDENTIALS
    return git.call(to, "clone", params)
  end

  local function refused(answer, words)
    assert.is_nil(answer.body:find(SECRET, 1, true))
    local problem = check.problem(answer, 502, "git_network")
    assert.matches(words, problem.detail, 1, true)
    assert.is_nil(problem.detail:find("%c"))
    return problem
  end

  lazy_setup(function()
    served = files.mkdtemp()
    git.repository(served .. "/one", { a = "a\n" })
    git.run(served, "clone", "--quiet", "--bare", "one", "one.git")
    authority = certificates.authority(served, "Authority")
    good = authority:server("good", "localhost", 2)
    remote, other, plain = start(good), start(good), start()
    abxd = start_abxd { SSL_CERT_FILE = authority.path }
    base = abxd.base_dir
  end)
  lazy_teardown(function()
    local log = abxd:log_text()
    abxd:stop()
    remote:stop()
    other:stop()
    plain:stop()
    files.remove_tree(served)
    assert.is_nil(log:find(SECRET, 1, true))
  end)

  it("clones, fetches, pulls and pushes, with credentials", function()
    check.ok(clone(abxd, remote:url("auth/one.git"), "c"))
    assert.equal("a\n", files.read(base .. "/c/a"))
    assert.equal(remote:url("auth/one.git"), git.run(base .. "/c", "config", "remote.origin.url"))
    git.write(base .. "/c", { b = "b\n" })
    local second = git.commit_all(base .. "/c", "second")
    check.ok(git.call(abxd, "push", { path = "c", credentials = CREDENTIALS }))
    assert.equal(second, git.run(served .. "/one.git", "rev-parse", "main"))
    git.run(served .. "/one", "pull", "--quiet", "../one.git", "main")
    git.write(served .. "/one", { c = "c\n" })
    local third = git.commit_all(served .. "/one", "third")
    git.run(served .. "/one", "push", "--quiet", "../one.git", "main")
    check.ok(git.call(abxd, "fetch", { path = "c", credentials = CREDENTIALS }))
    assert.equal(third, git.run(base .. "/c", "rev-parse", "origin/main"))
    assert.equal("fast_forward", check.ok(git.call(abxd, "pull", { path = "c", credentials = CREDENTIALS })).result.kind)
    assert.equal(third, git.run(base .. "/c", "rev-parse", "HEAD"))
    local sent = {}
    for _, request in ipairs(remote:requests()) do
      sent[#sent + 1] = type(request.authorization) == "string" and request.authorization or nil
    end
    assert.equal("Basic " .. mime.b64("ada:" .. SECRET), sent[1])
  end)

  describe("does not trust", function()
    local function sends_nothing(to, certificate, words, host)
      local liar <close> = start(certificate)
      local url = liar:url("auth/one.git"):gsub("localhost", host or "localhost")
      refused(clone(to, url, "u"), words)
      local trap = to.base_dir .. "/trap"
      git.repository(trap, { x = "x\n" })
      git.run(trap, "config", "remote.origin.url", url)
      git.run(trap, "config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
      git.run(trap, "config", "http.sslVerify", "false")
      git.run(trap, "config", "http.sslCAInfo", certificate.cert)
      for _, operation in ipairs { "fetch", "pull", "push" } do
        refused(git.call(to, operation, { path = "trap", credentials = CREDENTIALS }), words)
      end
      files.remove_tree(trap)
      assert.same({}, liar:requests())
      assert.is_false(files.exists(to.base_dir .. "/u"))
    end

    it("whom nobody vouches for", function()
      sends_nothing(abxd, certificates.authority(served, "Stranger"):server("stranger", "localhost", 2), UNTRUSTED)
    end)

    it("a certificate that is over", function()
      sends_nothing(abxd, authority:server("expired", "localhost", -1),
        "the certificate of localhost has expired")
    end)

    it("a certificate of another host", function()
      sends_nothing(abxd, authority:server("elsewhere", "elsewhere.example", 2),
        "the certificate of localhost is for another host")
      sends_nothing(abxd, good, "the certificate of 127.0.0.1 is for another host (addresses count only where they stand as "
        .. "a DNS name)", "127.0.0.1")
    end)

    it("what has more than one fault", function()
      sends_nothing(abxd, certificates.authority(served, "Worse"):server("worse", "elsewhere.example", -1),
        "has expired, is for another host")
    end)

    it("anybody whom the machine does not know, by itself", function()
      local bare <close> = start_abxd {}
      sends_nothing(bare, good, UNTRUSTED)
    end)

    it("whom only a client names", function()
      local bare <close> = start_abxd {}
      for _, name in ipairs { "SSL_CERT_FILE", "GIT_SSL_CAINFO" } do
        check.ok(bare:post("/env", { set = { [name] = authority.path } }))
      end
      sends_nothing(bare, good, UNTRUSTED)
    end)

    it("anybody while what the operator names cannot be read", function()
      local broken <close> = start_abxd { SSL_CERT_FILE = served .. "/nothing.pem" }
      sends_nothing(broken, good, "the trusted certificates cannot be read: " .. served .. "/nothing.pem")
      git.repository(broken.base_dir .. "/r", { a = "a\n" })
      check.ok(git.call(broken, "log", { path = "r" })) -- of no concern to what stays here
      check.ok(clone(broken, plain:url("plain/one.git"), "p"))
    end)

    it("what a client puts where a relative name of the operator's leads", function()
      for name, value in pairs { SSL_CERT_FILE = "planted.pem", SSL_CERT_DIR = "." } do
        local relative <close> = start_abxd { [name] = value }
        files.write(relative.base_dir .. "/planted.pem", files.read(authority.path))
        sends_nothing(relative, good, "the trusted certificates cannot be read: " .. value)
      end
    end)
  end)

  it("trusts by itself whom Debian's bundle names", function()
    local prefix = table.move(OWN_BUNDLE, 1, #OWN_BUNDLE, 1, {})
    prefix[#prefix + 1] = authority.path
    local refusal = process.run(table.move({ "true" }, 1, 1, #prefix + 1, table.move(prefix, 1, #prefix, 1, {})))
    if refusal.code ~= 0 then
      return skip("git over https trusts Debian's bundle", "no mounts here: " .. refusal.stderr:gsub("%s+$", ""))
    end
    local trusting <close> = start_abxd({}, prefix)
    check.ok(clone(trusting, remote:url("auth/one.git"), "by-itself"))
  end)

  it("trusts an address that stands as a name", function()
    local numbered <close> = start(authority:server("numbered", "127.0.0.1", 2))
    check.ok(clone(abxd, ("https://127.0.0.1:%d/auth/one.git"):format(numbered.port), "numbered"))
  end)

  it("trusts whom the server's environment names, in a file or a directory", function()
    local dir = served .. "/authorities"
    files.mkdir(dir)
    files.write(dir .. "/one.pem", files.read(authority.path))
    local stranger = certificates.authority(served, "Foreigner")
    for i, env in ipairs { { GIT_SSL_CAINFO = authority.path, SSL_CERT_FILE = stranger.path }, { SSL_CERT_DIR = dir },
      { SSL_CERT_DIR = served .. "/none::" .. dir }, { SSL_CERT_FILE = stranger.path, SSL_CERT_DIR = dir } } do
      local trusting <close> = start_abxd(env)
      check.ok(clone(trusting, remote:url("auth/one.git"), "c" .. i))
    end
  end)

  it("is over when its time is over, whatever the server does not say", function()
    local problem = check.problem(clone(abxd, remote:url("silent/one"), "s", { timeout_ms = 500 }), 504, "upstream_timeout")
    assert.matches("timeout_ms", problem.detail, 1, true)
    local mute = assert(socket.bind("127.0.0.1", 0)) -- the kernel accepts, nobody answers the handshake
    local _, port = mute:getsockname()
    local url = ("https://127.0.0.1:%d/one"):format(port)
    problem = check.problem(clone(abxd, url, "s", { timeout_ms = 500 }), 504, "upstream_timeout")
    assert.matches("timeout_ms", problem.detail, 1, true)
    mute:close()
    assert.is_false(files.exists(base .. "/s"))
  end)

  it("tells of a server that speaks no TLS, and of one that ends in the middle", function()
    refused(clone(abxd, ("https://localhost:%d/plain/one.git"):format(plain.port), "n"),
      ("TLS with localhost port %d failed: "):format(plain.port))
    check.problem(clone(abxd, ("http://localhost:%d/plain/one.git"):format(remote.port), "n"), 502, "git_network")
    check.problem(clone(abxd, remote:url("cut/one.git"), "n"), 502, "git_network")
    assert.is_false(files.exists(base .. "/n"))
  end)

  it("gives credentials to no other origin, and never goes on in the clear", function()
    local function to(mode, server_of, kind)
      return remote:url(("%s/localhost:%d/%s/one.git"):format(mode, server_of.port, kind))
    end
    local before = #plain:requests()
    for _, mode in ipairs { "to", "authto" } do
      refused(clone(abxd, to(mode, plain, "plain"), "r"), "cannot redirect from 'https' to 'http'")
      refused(clone(abxd, to(mode, remote, "plain"), "r"), "cannot redirect from 'https' to 'http'")
    end
    assert.equal(before, #plain:requests())
    refused(clone(abxd, to("tos", other, "auth"), "r"), "another server")
    for _, kind in ipairs { "auth", "plain" } do
      refused(clone(abxd, to("authtos", other, kind), "r"), "not for")
    end
    -- Nor upwards: they are for what the client named, which is http.
    refused(clone(abxd, plain:url(("tos/localhost:%d/auth/one.git"):format(other.port)), "r"), "another server")
    check.ok(clone(abxd, to("tos", other, "plain"), "r")) -- without being asked for any
    for _, request in ipairs(other:requests()) do
      assert.is_true(type(request.authorization) ~= "string")
    end
  end)
end)
