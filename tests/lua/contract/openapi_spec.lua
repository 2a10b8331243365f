--- /openapi.json against two independent tools: a linter, and a proxy that compares every request and answer with it.
local files = require("support.files")
local http = require("support.http")
local json = require("support.json")
local process = require("support.process")
local server = require("support.server")

local TOOLS = files.source_dir .. "/tests/tools"
local TOKEN = "the-token-of-this-spec"
local EVERYTHING = "commands,file_ops,process,system,terminal,dev_tools,browser"
local PROXY_START_MS = 60000

local function tool(name)
  return TOOLS .. "/node_modules/.bin/" .. name
end

--- Starts prism between the spec and the server; a target for http.request.
local function start_proxy(file, abxd)
  local port, log = http.free_port(), file .. ".log"
  local child = process.start({ tool("prism"), "proxy", file,
    ("http://%s:%d"):format(abxd.host, abxd.port), "--errors", "--host", "127.0.0.1", "--port", tostring(port) },
    { stdout = log, stderr = log })
  local ready = process.poll(PROXY_START_MS, function()
    return files.read(log):find("Prism is listening", 1, true) or not child:is_running()
  end)
  assert(ready and child:is_running(), "prism did not start: " .. files.read(log))
  return { host = "127.0.0.1", port = port, token = TOKEN, child = child }
end

local function stop_proxy(proxy)
  proxy.child:kill("sigterm")
  if not proxy.child:wait(5000) then
    proxy.child:kill("sigkill")
    proxy.child:wait(5000)
  end
end

describe("/openapi.json", function()
  local abxd, baseline, dir, proxy, document

  lazy_setup(function()
    abxd = server.start { env = { ABX_SERVER_TOKEN = TOKEN, ABX_SERVER_ENABLED_GROUPS = EVERYTHING } }
    baseline = abxd:baseline()
    dir = files.mkdtemp()
    local answer = abxd:get("/openapi.json")
    assert.equal(200, answer.status, answer.body)
    files.write(dir .. "/openapi.json", answer.body)
    document = answer:json()
    files.write(abxd.base_dir .. "/notes.txt", "a note\n")
    files.mkdir(abxd.base_dir .. "/folder")
    files.write(abxd.base_dir .. "/folder/inner.txt", "inside\n")
  end)

  lazy_teardown(function()
    files.remove_tree(dir)
    abxd:assert_settled(baseline)
    abxd:stop()
  end)

  it("is 3.1 and lists exactly the enabled endpoints", function()
    assert.equal("3.1.0", document.openapi)
    local described, served = {}, {}
    local git_operations = 0 -- a path each, besides that of all of them
    for path, operations in pairs(document.paths) do
      for method in pairs(operations) do
        if method == "post" and path:find("^/git/%w+") then
          git_operations = git_operations + 1
        else
          described[#described + 1] = method:upper() .. " " .. path
        end
      end
    end
    assert.equal(19, git_operations)
    for _, group in ipairs(abxd:get("/capabilities"):json().groups) do
      for _, endpoint in ipairs(group.enabled and group.endpoints or {}) do
        served[#served + 1] = endpoint.method .. " " .. endpoint.path
      end
    end
    if not table.concat(served, "\n"):find("GET /openapi.json", 1, true) then
      served[#served + 1] = "GET /openapi.json" -- a pack's route
    end
    table.sort(described)
    table.sort(served)
    assert.same(served, described)
  end)

  it("is clean for redocly lint", function()
    local result = process.run({ tool("redocly"), "lint", dir .. "/openapi.json", "--config", TOOLS .. "/redocly.yaml" },
      { env = { REDOCLY_TELEMETRY = "off", REDOCLY_SUPPRESS_UPDATE_NOTICE = "true", CI = "true" }, timeout_ms = 120000 })
    assert.equal(0, result.code, result.stdout .. result.stderr)
    assert.is_nil((result.stdout .. result.stderr):match("[Ww]arning"), result.stdout .. result.stderr)
  end)

  describe("through prism proxy --errors", function()
    lazy_setup(function()
      proxy = start_proxy(dir .. "/openapi.json", abxd)
    end)

    lazy_teardown(function()
      stop_proxy(proxy)
    end)

    --- Sends it through the proxy, which puts an error of its own in place of any answer that contradicts the document.
    local function request(status, method, target, options)
      local answer = http.request(proxy, method, target, options)
      assert.is_nil(answer.body:match("stoplight%.io/prism/errors[^\"]*"), answer.body)
      assert.is_nil(answer.headers["sl-violations"], answer.headers["sl-violations"])
      assert.equal(status, answer.status, answer.body)
      return answer
    end

    local multipart, multipart_type = http.multipart {
      { name = "file", filename = "sent.txt", content_type = "text/plain", content = "sent\n" }, -- prism dies without a type
    }

    local cases = {
      { 200, "GET", "/health" },
      { 200, "GET", "/capabilities" },
      { 200, "GET", "/openapi.json" },
      { 200, "GET", "/commands" },
      { 404, "POST", "/commands/no-such-command", { json = {} } },
      { 200, "POST", "/shell", { json = { command = "echo out; echo err >&2; exit 3" } } },
      { 200, "POST", "/shell", { json = { argv = { "printf", "\\377" }, encoding = "base64" } } },
      { 200, "POST", "/shell", { json = { command = "kill -9 $$", env = { A = "b", HOME = json.null }, cwd = "folder" } } },
      { 200, "POST", "/shell", { json = { command = "sleep 30", timeout_ms = 50 } } },
      { 200, "POST", "/shell", { json = { command = "sleep 1", wait_ms = 20 } } },
      { 400, "POST", "/shell", { json = { command = "true", cwd = "nowhere" } } },
      { 403, "POST", "/shell", { json = { command = "true", cwd = "/" } } },
      { 404, "POST", "/shell", { json = { argv = { "no-such-program" } } } },
      { 200, "POST", "/shell/stream", { json = { command = "echo streamed" } } },
      { 200, "GET", "/download?path=notes.txt" },
      { 206, "GET", "/download?path=notes.txt", { headers = { Range = "bytes=0-2" } } },
      { 416, "GET", "/download?path=notes.txt", { headers = { Range = "bytes=100-" } } },
      { 200, "GET", "/download?path=folder&archive=tar.gz" },
      { 200, "GET", "/download?path=folder&archive=zip" },
      { 404, "GET", "/download?path=missing.txt" },
      { 403, "GET", "/download?path=..%2Foutside" },
      { 400, "GET", "/download?path=folder" },
      { 201, "POST", "/upload?path=raw.bin", { body = "raw", headers = { ["Content-Type"] = "application/octet-stream" } } },
      { 409, "POST", "/upload?path=notes.txt&overwrite=false",
        { body = "raw", headers = { ["Content-Type"] = "application/octet-stream" } } },
      { 201, "POST", "/upload?dir=folder", { body = multipart, headers = { ["Content-Type"] = multipart_type } } },
    }
    for _, case in ipairs(cases) do
      local status, method, target, options = table.unpack(case, 1, 4)
      local what = options and options.json and " " .. json.encode(options.json) or ""
      it(("%s %s%s answers %d as described"):format(method, target, what, status), function()
        request(status, method, target, options)
      end)
    end

    it("the output of a process, its stream and its standard input are as described", function()
      local id = request(201, "POST", "/processes", { json = { command = "cat; exit 3", keep_stdin = true } }):json().id
      local function stdin(status, body)
        request(status, "POST", "/processes/" .. id .. "/stdin", { json = body })
      end
      request(200, "GET", "/processes/" .. id .. "/output")
      stdin(200, { data = "abc" })
      stdin(200, { data = "\n", eof = true })
      stdin(409, { data = "late" })
      request(200, "GET", "/processes/" .. id .. "/output?follow=true")
      assert.equal("abc\n", request(200, "GET", "/processes/" .. id .. "/output?wait_ms=5000"):json().stdout)
      request(400, "GET", "/processes/" .. id .. "/output?stdout_offset=99")
      request(404, "GET", "/processes/p-0/output")
      request(404, "POST", "/processes/p-0/stdin", { json = {} })
      local lost = request(201, "POST", "/processes", { json = { command = "head -c 5000000 /dev/zero" } }):json().id
      request(200, "GET", "/processes/" .. lost .. "/output?follow=true&tail_bytes=0")
      local gap = request(200, "GET", "/processes/" .. lost .. "/output?limit=1"):json().gap
      assert.same({ from = 0, to = 5000000 - 4 * 1024 * 1024 }, gap.stdout)
    end)

    it("terminals are as described", function()
      local made = request(201, "POST", "/pty", { json = { cols = 100, tag = "t", env = { A = "b", LANG = json.null } } }):json()
      local ended = request(201, "POST", "/pty", { json = { argv = { "sh", "-c", "exit 3" }, term = "vt100" } }):json()
      request(200, "GET", "/processes/" .. ended.id .. "?wait_ms=20000")
      assert.equal(2, #request(200, "GET", "/pty"):json().terminals)
      request(200, "GET", "/pty?tickets=true")
      request(200, "DELETE", "/pty/" .. made.id)
      request(404, "DELETE", "/pty/" .. made.id)
      assert.equal(3, request(200, "DELETE", "/pty/" .. ended.id):json().exit_code)
      request(400, "POST", "/pty", { json = { term = "a b" } })
      request(404, "POST", "/pty", { json = { argv = { "no-such-program" } } })
    end)

    it("a contradiction would be noticed", function()
      local altered = json.decode(files.read(dir .. "/openapi.json"))
      altered.paths["/health"].get.responses["200"].content["application/json"].schema = { type = "array" }
      files.write(dir .. "/altered.json", json.encode(altered))
      local wary = start_proxy(dir .. "/altered.json", abxd)
      local answer = http.request(wary, "GET", "/health")
      stop_proxy(wary)
      assert.equal(500, answer.status)
      assert.matches("prism/errors#VIOLATIONS", answer.body, 1, true)
    end)

    it("every command that is listed answers as described", function()
      for _, command in ipairs(request(200, "GET", "/commands"):json().commands) do
        if not command.parameters.required or #command.parameters.required == 0 then
          request(200, "POST", "/commands/" .. command.name, { json = {} })
        end
      end
    end)
  end)
end)
