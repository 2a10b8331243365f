local check = require("support.check")
local files = require("support.files")
local server = require("support.server")

local TOKEN = "tok-9qW4xK"
local LOOK = "env; tr '\\0' '\\n' </proc/$PPID/environ; tr '\\0' ' ' </proc/$PPID/cmdline; cat /proc/$PPID/comm"

describe("the token", function()
  local ways = {
    { "in the environment", function()
      return { env = { ABX_SERVER_TOKEN = TOKEN } }
    end },
    { "in a file", function(file)
      files.write(file, TOKEN .. "\n")
      return { env = { ABX_SERVER_TOKEN_FILE = file } }
    end },
    { "as a flag", function()
      return { args = { "--token", TOKEN } }
    end },
    { "as a flag with =", function()
      return { args = { "--token=" .. TOKEN } }
    end },
  }
  for _, way in ipairs(ways) do
    it(way[1] .. " reaches no child, no log and no answer", function()
      local dir = files.mkdtemp()
      local options = way[2](dir .. "/token")
      options.args = options.args or {}
      table.insert(options.args, "--log-level")
      table.insert(options.args, "debug")
      local abxd = server.start(options)
      abxd.token = TOKEN
      local seen = check.ok(abxd:post("/shell", { command = LOOK }))
      assert.is_nil((seen.stdout .. seen.stderr):find(TOKEN, 1, true))
      assert.equal("0\n", check.ok(abxd:post("/shell", { command = "env | grep -c ^ABX_SERVER_" })).stdout)
      seen = check.ok(abxd:post("/shell", { argv = { "sh", "-c", LOOK }, session = nil }))
      assert.is_nil((seen.stdout .. seen.stderr):find(TOKEN, 1, true))
      for _, target in ipairs { "/capabilities", "/nope", "/commands", "/openapi.json", "/download?path=nope" } do
        assert.is_nil(abxd:get(target).body:find(TOKEN, 1, true))
      end
      check.problem(abxd:get("/capabilities", { token = TOKEN .. "-wrong" }), 401, "unauthorized")
      abxd:get("/capabilities?token=" .. TOKEN)
      check.problem(abxd:request("POST", "/shell", { body = '{"command":', headers = {
        ["Content-Type"] = "application/json" } }), 400, "invalid_json")
      assert.is_nil(abxd:log_text():find(TOKEN, 1, true))
      abxd:stop()
      files.remove_tree(dir)
    end)
  end

  it("is wiped from what /proc shows of the server", function()
    local abxd <close> = server.start { env = { ABX_SERVER_TOKEN = TOKEN }, args = { "--token", TOKEN } }
    for _, name in ipairs { "environ", "cmdline" } do
      local file = assert(io.open(("/proc/%d/%s"):format(abxd.pid, name), "rb"))
      local content = file:read("a")
      file:close()
      assert.is_nil((content or ""):find(TOKEN, 1, true))
    end
  end)
end)

describe("the log", function()
  it("holds one JSON line for each request, and neither bodies nor variables", function()
    local abxd <close> = server.start { args = { "--log-level", "debug" } }
    check.ok(abxd:post("/shell", { command = ": hush-command; cat", stdin = "hush-stdin", env = { HUSH = "hush-env" } }))
    abxd:post("/shell", { command = 5, ["hush-name"] = 1 })
    abxd:request("POST", "/upload?path=x", { body = "hush-upload", headers = { ["X-Request-Id"] = "the-upload" } })
    local line = abxd:wait_log(function(entry)
      return entry.request_id == "the-upload" and entry.route == "upload"
    end)
    assert.matches("^%d+%-%d%d%-%d%dT[%d:]+%.%d%d%dZ$", line.ts)
    assert.equal("info", line.level)
    assert.is_string(line.area)
    assert.is_string(line.msg)
    local text = abxd:log_text()
    for _, secret in ipairs { "hush-command", "hush-stdin", "hush-env", "hush-upload" } do
      assert.is_nil(text:find(secret, 1, true), secret)
    end
    for _, entry in ipairs(abxd:log()) do
      assert.is_true(entry.text == nil or entry.text:find("^listening ") ~= nil, entry.text)
    end
  end)
end)
