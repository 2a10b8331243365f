--- A server that gets no more threads and processes from the system, as at the limit of a container.
local check = require("support.check")
local files = require("support.files")
local process = require("support.process")
local unprivileged = require("support.unprivileged")
local uv = require("luv")

--- As the server's own user: the limit counts its processes and threads.
local function limit(pid, soft)
  local argv = { "prlimit", "--pid", tostring(pid), ("--nproc=%d:1000"):format(soft) }
  if uv.getuid() == 0 then
    table.move({ "setpriv", "--reuid=65534", "--clear-groups" }, 1, 3, 1, table.move(argv, 1, #argv, 4))
  end
  local result = process.run(argv)
  assert.equal(0, result.code, result.stderr)
end

describe("A server at the limit of processes", function()
  it("answers what it can, and lives", function()
    local base = files.mkdtemp()
    files.write(base .. "/f", "here")
    process.run { "chmod", "-R", "a+rX", base }
    local abxd <close> = unprivileged("threads_spec: a limit of processes", { base_dir = base })
    local pid = check.ok(abxd:get("/system/info")).server.pid
    limit(pid, 1)
    for _, target in ipairs { "/processes?scope=all", "/files/list", "/files/read?path=f", "/system/ports", "/env" } do
      assert.equal(200, abxd:get(target).status, target)
    end
    check.problem(abxd:post("/processes", { argv = { "true" } }), 429, "too_many_processes")
    check.problem(abxd:post("/shell", { command = "true" }), 429, "too_many_processes")
    check.problem(abxd:post("/files/search", { pattern = "here" }), 503, "unavailable")
    check.problem(abxd:get("/system/disk"), 503, "unavailable")
    assert.equal("ok", check.ok(abxd:get("/health")).status)

    limit(pid, 1000)
    assert.equal(0, check.ok(abxd:post("/shell", { command = "true" })).exit_code)
    assert.equal(1, #check.ok(abxd:post("/files/search", { pattern = "here" })).matches)
  end)
end)
