local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local process = require("support.process")
local runs = require("support.runs")
local server = require("support.server")
local uv = require("luv")

describe("POST /processes", function()
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start()
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  it("answers at once, and the program outlives its client", function()
    local conn = abxd:connect()
    local answer = conn:request("POST", "/processes", { json = { argv = { "sleep", "3000" }, tag = "mine" } })
    conn:abort()
    assert.equal(201, answer.status)
    local started = answer:json()
    assert.matches("^p%-%x+$", started.id)
    assert.matches("^%d+%-%d%d%-%d%dT[%d:]+%.%d%d%dZ$", started.started_at)
    assert.equal("sleep", process.stat(started.pid).comm)
    uv.sleep(100)
    assert.equal(json.null, runs.output(abxd, started.id).exit_code)
    runs.stop(abxd, started.id)
    assert.is_nil(process.stat(started.pid))
  end)

  it("tells every end truly", function()
    files.write(abxd.base_dir .. "/noexec", "#!/bin/sh\n")
    local ends = {
      { "kill -9 $$", 137, "SIGKILL" }, { "kill -SEGV $$", 139, "SIGSEGV" }, { "nosuchcmd_x", 127, json.null },
      { "./noexec", 126, json.null }, { "exit 259", 3, json.null }, { "true", 0, json.null },
    }
    for _, case in ipairs(ends) do
      local id = runs.start(abxd, case[1])
      local ended = runs.wait_end(abxd, id)
      assert.same({ case[1], case[2], case[3], false }, { case[1], ended.exit_code, ended.signal, ended.timed_out })
    end
    local id = runs.start(abxd, { command = "echo before; sleep 3000", timeout_ms = 200 })
    local ended = runs.wait_end(abxd, id)
    assert.same({ 143, "SIGTERM", true }, { ended.exit_code, ended.signal, ended.timed_out })
    assert.equal("before\n", runs.output(abxd, id).stdout)
  end)

  it("refuses what cannot be started", function()
    files.write(abxd.base_dir .. "/noexec", "#!/bin/sh\n")
    local cases = {
      { { argv = { "nosuchcmd_x" } }, 404, "executable_not_found", "argv[0]" },
      { { argv = { "./noexec" } }, 400, "not_executable", "argv[0]" },
      { { command = "true", cwd = "nowhere" }, 400, "bad_cwd", "cwd" },
      { { command = "true", cwd = "/" }, 403, "path_outside_base", "cwd" },
      { {}, 400, "invalid_request", "command" },
      { { command = "true", env = { ABX_SERVER_X = "1" } }, 403, "protected_variable", "env" },
    }
    for _, case in ipairs(cases) do
      check.problem(abxd:post("/processes", case[1]), case[2], case[3], case[4])
    end
    assert.same({ "keep_stdin", "tag" }, check.faulty_fields(abxd:post("/processes", { command = "true",
      keep_stdin = "yes", tag = ("x"):rep(257) })))
  end)

  it("gives programs nothing of the server's", function()
    local id = runs.start(abxd, "grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd; yes | head -n1; "
      .. "echo ${PIPESTATUS[0]}; readlink /proc/self/fd/0")
    assert.equal(0, runs.wait_end(abxd, id).exit_code)
    local output = runs.output(abxd, id)
    assert.equal("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n0\n1\n2\n3\ny\n141\n/dev/null\n", output.stdout)
    assert.equal("", output.stderr)
  end)

  it("loses no output and no exit of short programs", function()
    for _ = 1, 100 do
      local id = runs.start(abxd, "printf 'hello%.0s' $(seq 4096); echo Z >&2; exit 5")
      local stream, answer = runs.follow(abxd, id)
      local joined = runs.join(stream:all(20))
      answer:close()
      assert.is_true(joined.stdout == ("hello"):rep(4096))
      assert.same({ "Z\n", 1, 5 }, { joined.stderr, joined.exits, joined.exit.exit_code })
    end
  end)

  it("keeps the newest 256, each with its output and exit", function()
    local ids = {}
    for i = 1, 260 do
      ids[i] = runs.start(abxd, { argv = { "sh", "-c", "echo " .. i .. "; exit " .. i % 256 } })
      runs.wait_end(abxd, ids[i])
    end
    check.problem(abxd:get(runs.target(ids[1])), 404, "process_not_found")
    for i = 5, 260 do
      local output = runs.output(abxd, ids[i])
      assert.same({ i .. "\n", i % 256, true }, { output.stdout, output.exit_code, output.eof })
    end
  end)
end)
