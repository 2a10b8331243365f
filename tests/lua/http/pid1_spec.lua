local check = require("support.check")
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")

local UNSHARE = { "unshare", "--fork", "--pid", "--mount-proc", "--kill-child" }

describe("as PID 1", function()
  it("the server reaps orphans and loses no exit code", function()
    local refused = process.run { "unshare", "--fork", "--pid", "--mount-proc", "true" }
    if refused.code ~= 0 then
      return skip("pid1", "no pid namespace: " .. refused.stderr:gsub("%s+$", ""))
    end
    local abxd <close> = server.start { prefix = UNSHARE }
    assert.equal("1\n", check.ok(abxd:post("/shell", { command = "echo $PPID" })).stdout)
    local baseline = abxd:baseline()
    for _ = 1, 6 do
      local conns = {}
      for i = 1, 50 do
        conns[i] = abxd:connect()
        conns[i]:send_request("POST", "/shell", { json = { command = "(setsid sleep 0.1 &) ; exit 7" } })
      end
      for i = 1, 50 do
        assert.equal(7, check.ok(conns[i]:read_response()).exit_code)
        conns[i]:close()
      end
    end
    abxd:assert_settled(baseline) -- zombies count as children
    assert.equal(137, check.ok(abxd:post("/shell", { command = "kill -9 $$" })).exit_code)
  end)
end)
