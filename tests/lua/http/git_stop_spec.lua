--- What the end of the server leaves of a clone that is on its way.
local check = require("support.check")
local files = require("support.files")
local git = require("support.git")
local git_http = require("support.git_http")
local process = require("support.process")
local server = require("support.server")

describe("a clone that the end of the server breaks off", function()
  local served, remote, base
  lazy_setup(function()
    served, base = files.mkdtemp(), files.mkdtemp()
    git.repository(served .. "/one", { a = "a\n" })
    remote = git_http.start(served)
  end)
  lazy_teardown(function()
    remote:stop()
    files.remove_tree(served)
    files.remove_tree(base)
  end)

  it("is told so, and leaves nothing", function()
    local abxd = server.start { base_dir = base, env = git.groups }
    local seen = #remote:requests()
    local conn = abxd:connect()
    conn:send_request("POST", "/git/clone", { json = { url = remote:url("silent/one"), path = "new/c" } })
    assert.is_true(process.poll(5000, function()
      return #remote:requests() > seen
    end))
    local helpers = {}
    for _, child in ipairs(abxd:children()) do
      helpers[#helpers + 1] = child.argv:find("abxd-helper git ", 1, true) and child.pid or nil
    end
    assert.equal(1, #helpers)
    assert.is_true(files.exists(base .. "/new"))
    abxd:stop()
    check.problem(conn:read_response(), 503, "shutting_down")
    conn:close()
    assert.same({}, files.list(base))
    assert.is_false(files.exists("/proc/" .. helpers[1]))
  end)
end)
