local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local json = require("support.json")
local process = require("support.process")
local server = require("support.server")
local socket = require("socket")
local uv = require("luv")

local SLEEP = check.sleep

describe("POST /shell", function()
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start()
    files.mkdir(abxd.base_dir .. "/sub")
    files.write(abxd.base_dir .. "/noexec", "#!/bin/sh\n")
    files.mkdir(abxd.base_dir .. "-evil")
    uv.fs_symlink(abxd.base_dir .. "-evil", abxd.base_dir .. "/leaves")
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function post(fields)
    return abxd:post("/shell", fields)
  end

  local function sh(command, fields)
    fields = fields or {}
    fields.command = command
    return check.ok(post(fields))
  end

  it("answers with every field of a run, and no other", function()
    local run = sh("echo out; echo err >&2; exit 3", { cwd = "sub" })
    assert.matches("^%w[%w-]*$", run.id)
    assert.equal("integer", math.type(run.pid))
    assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$", run.started_at)
    assert.equal("integer", math.type(run.duration_ms))
    run.id, run.pid, run.started_at, run.duration_ms = nil, nil, nil, nil
    assert.same({
      stdout = "out\n", stderr = "err\n", stdout_bytes = 4, stderr_bytes = 4,
      truncated = { stdout = false, stderr = false }, lossy = false, running = false, cwd = abxd.base_dir .. "/sub",
      exit_code = 3, signal = json.null, timed_out = false,
    }, run)
  end)

  it("runs argv without a shell", function()
    local run = check.ok(post { argv = { "printf", "%s|", "a b", "$HOME", "*", "" } })
    assert.equal("a b|$HOME|*||", run.stdout)
  end)

  describe("tells how a program ended:", function()
    local cases = {
      { "exit 0", 0 }, { "exit 259", 3 }, { "nosuchcmd_x", 127 }, { "./noexec", 126 },
      { "kill -9 $$", 137, "SIGKILL" }, { "kill -SEGV $$", 139, "SIGSEGV" }, { "kill -TERM $$", 143, "SIGTERM" },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        local run = sh(case[1])
        assert.same({ case[2], case[3] or json.null, false }, { run.exit_code, run.signal, run.timed_out })
      end)
    end
  end)

  --- That many variables.
  local function many(count)
    local env = {}
    for i = 1, count do
      env["V" .. i] = tostring(i)
    end
    return env
  end

  describe("refuses", function()
    local cases = {
      { "neither command nor argv", {}, 400, "invalid_request", "command" },
      { "both command and argv", { command = "true", argv = { "true" } }, 400, "invalid_request", "command" },
      { "an empty argv", { argv = json.array {} }, 400, "invalid_request", "argv" },
      { "a session with argv", { argv = { "true" }, session = "s" }, 400, "invalid_request", "session" },
      { "a missing program", { argv = { "nosuchcmd_x" } }, 404, "executable_not_found", "argv[0]" },
      { "a program that may not run", { argv = { "./noexec" } }, 400, "not_executable", "argv[0]" },
      { "a missing cwd", { command = "true", cwd = "nowhere" }, 400, "bad_cwd", "cwd" },
      { "a file as cwd", { command = "true", cwd = "noexec" }, 400, "bad_cwd", "cwd" },
      { "a cwd outside", { command = "true", cwd = ".." }, 403, "path_outside_base", "cwd" },
      { "a cwd in a link that leaves", { command = "true", cwd = "leaves" }, 403, "path_outside_base", "cwd" },
      { "a NUL in the command", { command = "echo a\0b" }, 400, "invalid_request", "command" },
      { "a NUL in argv", { argv = { "echo", "a\0b" } }, 400, "invalid_request", "argv[1]" },
      { "a NUL in a variable", { command = "true", env = { A = "b\0c" } }, 400, "invalid_request" },
      { "a variable's name with =", { command = "true", env = { ["A=B"] = "c" } }, 400, "invalid_request" },
      { "a variable's name that is shell text", { command = "true", env = { ["A;touch x"] = "" } }, 400,
        "invalid_request" },
      { "stdin that is no base64", { command = "cat", stdin = "*", stdin_encoding = "base64" }, 400, "invalid_request",
        "stdin" },
      { "more than 4096 variables", { command = "true", env = many(4097) }, 400, "invalid_request", "env" },
      { "an unknown encoding", { command = "true", encoding = "latin1" }, 400, "invalid_request", "encoding" },
      { "max_output_bytes over 16 MiB", { command = "true", max_output_bytes = 16 * 1024 * 1024 + 1 }, 400,
        "invalid_request", "max_output_bytes" },
      { "a fraction as timeout_ms", { command = "true", timeout_ms = 1.5 }, 400, "invalid_request", "timeout_ms" },
      { "an unknown policy", { command = "true", on_disconnect = "maybe" }, 400, "invalid_request", "on_disconnect" },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        check.problem(post(case[2]), case[3], case[4], case[5])
      end)
    end

    it("a sibling whose name begins like the base", function()
      for _, path in ipairs { abxd.base_dir .. "-evil", abxd.base_dir .. "/../base-evil", "../base-evil" } do
        check.problem(post { command = "true", cwd = path }, 403, "path_outside_base", "cwd")
      end
    end)

    it("and names all faulty fields at once", function()
      assert.same({ "command", "nonsense", "timeout_ms" },
        check.faulty_fields(post { command = 1, nonsense = true, timeout_ms = -1 }))
    end)

    it("arguments over the kernel's limit", function()
      check.problem(post { command = "echo ok #" .. ("x"):rep(300 * 1024) }, 413, "payload_too_large")
      check.problem(post { argv = { "true", ("x"):rep(131072) } }, 413, "payload_too_large")
      local words = { "true" }
      for i = 2, 65537 do
        words[i] = "x"
      end
      check.problem(post { argv = words }, 413, "payload_too_large")
      check.problem(post { command = "true", env = { BIG = ("x"):rep(200 * 1024) } }, 413, "payload_too_large")
      assert.equal("ok\n", sh("echo ok").stdout)
    end)
  end)

  it("gives stdin and then its end, or nothing", function()
    assert.equal("", sh("cat").stdout)
    assert.equal("3\n", sh("wc -c", { stdin = "abc" }).stdout)
    assert.equal("a\0\255", require("mime").unb64(sh("cat", { stdin = "YQD/", stdin_encoding = "base64",
      encoding = "base64" }).stdout))
    assert.equal("3000000\n", sh("sleep .2; wc -c", { stdin = ("x"):rep(3000000) }).stdout)
    assert.equal(0, sh("true", { stdin = ("x"):rep(3000000) }).exit_code)
    assert.equal("rc=1\n", sh("read x </dev/tty; echo rc=$?").stdout)
  end)

  it("passes variables byte for byte and removes those that are null", function()
    local value = "a\nb=c \"d\" 'e' $HOME $(id) \\ ü"
    local run = sh("printf %s \"$K\"; printf '|%s|%s' \"${E-unset}\" \"${HOME-unset}\"", { env = { K = value, E = "",
      HOME = json.null } })
    assert.equal(value .. "||unset", run.stdout)
    assert.equal("/nowhere\n", sh("echo $PATH", { env = { PATH = "/nowhere" } }).stdout)
    run = sh("echo $ABX_PROCESS_ID")
    assert.equal(run.id .. "\n", run.stdout)
  end)

  it("takes 4096 variables at no cost to others", function()
    local before = process.main_thread_cpu_s(abxd.pid)
    assert.equal("4096\n", sh("env | grep -c '^V'", { env = many(4096) }).stdout)
    local used_s = process.main_thread_cpu_s(abxd.pid) - before
    assert.is_true(used_s < 0.5 * check.slack, ("the loop computed for %.3f s"):format(used_s))
  end)

  it("leaves children default signals and three descriptors", function()
    local run = sh("yes | head -n1; echo ${PIPESTATUS[0]}")
    assert.same({ "y\n141\n", "" }, { run.stdout, run.stderr })
    assert.equal("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n",
      sh("grep -E 'Sig(Blk|Ign)' /proc/self/status").stdout)
    local stream = abxd:stream("POST", "/shell/stream", { json = { command = "sleep 30" } })
    assert.equal("0\n1\n2\n3\n", check.ok(post { argv = { "ls", "/proc/self/fd" } }).stdout)
    stream:close()
    assert.equal("own\n", sh("[ $(ps -o sid= -p $$) = $$ ] && [ $(ps -o pgid= -p $$) = $$ ] && echo own").stdout)
  end)

  describe("output", function()
    it("that is not UTF-8 becomes U+FFFD and says so", function()
      local run = sh("printf 'a\\355b\\377c\\000d\\n'; printf 'e\\377' >&2")
      assert.same({ "a\u{FFFD}b\u{FFFD}c\0d\n", "e\u{FFFD}", true, 8, 2 },
        { run.stdout, run.stderr, run.lossy, run.stdout_bytes, run.stderr_bytes })
    end)

    it("comes exact as base64", function()
      local run = sh("printf 'a\\355b'; printf '\\377' >&2", { encoding = "base64" })
      assert.same({ "Ye1i", "/w==", false }, { run.stdout, run.stderr, run.lossy })
    end)

    it("keeps head and tail of what is too long", function()
      local run = sh("seq 1 100000; echo short >&2", { max_output_bytes = 1000 })
      assert.same({ 588895, { stdout = true, stderr = false }, "short\n", 0 },
        { run.stdout_bytes, run.truncated, run.stderr, run.exit_code })
      local head, tail = run.stdout:match("^(.*)\n%[… 587895 bytes dropped …%]\n(.*)$")
      assert.same({ 500, 500 }, { #head, #tail })
      assert.equal("1\n2\n3\n", head:sub(1, 6))
      assert.equal("99999\n100000\n", tail:sub(-13))
    end)

    it("that is cut counts what is missing, cut characters included", function()
      assert.equal("\n[… 21 bytes dropped …]\n好", sh("printf 你好你好你好你好", { max_output_bytes = 5 }).stdout)
    end)

    describe("of the largest size delays nobody:", function()
      local MIB16 = 16 * 1024 * 1024
      local cases = { -- the byte for tr, the encoding, the JSON it makes, lossy
        { "NUL", "\\0", "utf-8", ("\\u0000"):rep(MIB16), false },
        { "no UTF-8", "\\377", "utf-8", ("\u{FFFD}"):rep(MIB16), true },
        { "quotes", '"', "utf-8", ('\\"'):rep(MIB16), false },
        { "base64", "\\0", "base64", ("A"):rep(MIB16 // 3 * 4) .. "AA==", false },
      }
      for _, case in ipairs(cases) do
        local name, byte, encoding, text, lossy = table.unpack(case)

        it(name, function()
          local conn <close> = abxd:connect()
          conn:send_request("POST", "/shell", { json = { encoding = encoding, max_output_bytes = MIB16,
            command = ("head -c %d /dev/zero | tr '\\0' '%s' | tee /dev/stderr"):format(MIB16, byte) } })
          repeat
            check.prompt(abxd, 2) -- 96 MiB are put together, in memory that the kernel may be slow to find
          until #socket.select({ conn.sock }, nil, 0.02) > 0
          local answer = conn:read_response()
          assert.equal(200, answer.status, answer.body:sub(1, 300))
          local left = #answer.body - 2 * #text
          assert.is_true(left > 0 and left < 1000, tostring(left)) -- a failure should not print it all
          for _, member in ipairs { '"stdout":"' .. text .. '"', '"stderr":"' .. text .. '"', '"lossy":' .. tostring(lossy),
            ('"stdout_bytes":%d,'):format(MIB16), ('"truncated":{"stderr":false,"stdout":false}') } do
            assert.is_true(answer.body:find(member, 1, true) ~= nil, member:sub(1, 60))
          end
        end)
      end
    end)

    it("that is much and runs on comes as far as it is", function()
      local run = sh("head -c 1000000 /dev/zero | tr '\\0' x; printf '\\344\\275'; " .. SLEEP(4066), { wait_ms = 500 })
      uv.kill(check.pid_of(SLEEP(4066)), "sigkill")
      assert.same({ true, 1000002, false, "" }, { run.running, run.stdout_bytes, run.lossy, run.stderr })
      assert.is_true(run.stdout == ("x"):rep(1000000))
    end)

    it("is whole up to the limit", function()
      local run = sh("head -c 1000000 /dev/zero | base64")
      assert.same({ 1350880, false }, { run.stdout_bytes, run.truncated.stdout })
      assert.equal(("A"):rep(76) .. "\n", run.stdout:sub(1, 77))
      run = sh("head -c 10000000 /dev/zero | tr '\\0' x", { max_output_bytes = 10000000 })
      assert.is_true(run.stdout == ("x"):rep(10000000))
    end)

    it("without end costs bounded memory and time", function()
      local before = abxd:rss_bytes()
      local conn = abxd:connect()
      conn:send_request("POST", "/shell", { json = { command = "yes", timeout_ms = 1500 } })
      for _ = 1, 10 do
        uv.sleep(100)
        check.prompt(abxd, 0.2)
      end
      local run = check.ok(conn:read_response())
      conn:close()
      assert.same({ true, true, "SIGTERM" }, { run.timed_out, run.truncated.stdout, run.signal })
      assert.is_true(abxd:rss_bytes() - before < 100 * 1024 * 1024)
    end)
  end)

  describe("a timeout", function()
    it("ends the whole tree and keeps the output", function()
      local run = sh("echo before; setsid " .. SLEEP(4077) .. " & sh -c '" .. SLEEP(4078) .. "; touch late' | cat",
        { timeout_ms = 1000 })
      assert.same({ "before\n", true, 143, "SIGTERM", false },
        { run.stdout, run.timed_out, run.exit_code, run.signal, run.running })
      assert.equal(0, check.gone(SLEEP(4077)))
      assert.equal(0, check.gone(SLEEP(4078)))
      assert.is_false(files.exists(abxd.base_dir .. "/late"))
    end)

    it("kills after two seconds what ignores SIGTERM", function()
      local run = sh("trap '' TERM; while :; do sleep .1; done", { timeout_ms = 300 })
      assert.same({ true, 137, "SIGKILL" }, { run.timed_out, run.exit_code, run.signal })
      assert.is_true(run.duration_ms >= 2300, tostring(run.duration_ms))
    end)
  end)

  describe("a background program", function()
    it("delays nothing and lives on", function()
      local run = sh("echo hi; " .. SLEEP(4060) .. " &")
      assert.same({ "hi\n", 0 }, { run.stdout, run.exit_code })
      uv.kill(check.pid_of(SLEEP(4060)), "sigkill")
    end)

    it("costs no byte of what was written before", function()
      local run = sh("seq 1 200000; " .. SLEEP(4061) .. " &")
      assert.same({ 1288895, "199999\n200000\n", false }, { run.stdout_bytes, run.stdout:sub(-14), run.truncated.stdout })
      uv.kill(check.pid_of(SLEEP(4061)), "sigkill")
    end)
  end)

  it("answers after wait_ms, and the run goes on", function()
    local run = sh("echo a; sleep 1; echo b > later", { wait_ms = 300 })
    assert.same({ true, json.null, json.null, "a\n", false },
      { run.running, run.exit_code, run.signal, run.stdout, run.timed_out })
    assert.is_true(process.poll(3000 * check.slack, function()
      return files.exists(abxd.base_dir .. "/later")
    end))
    assert.is_false(sh("true", { wait_ms = 5000 }).running)
  end)

  describe("when the client leaves", function()
    local function leave_after(fields)
      local conn = abxd:connect()
      conn:send_request("POST", "/shell", { json = fields })
      assert.is_true(process.poll(5000, function()
        return #check.pids_of("sleep " .. fields.command:match("sleep ([%d.]+)")) == 1
      end))
      conn:close()
    end

    it("ends the run", function()
      leave_after { command = SLEEP(4062) .. "; :" }
      assert.equal(0, check.gone(SLEEP(4062)))
    end)

    it("or lets it go on when asked to", function()
      leave_after { command = SLEEP(4063) .. "; :", on_disconnect = "continue" }
      uv.sleep(1500)
      local pids = check.pids_of(SLEEP(4063))
      assert.equal(1, #pids)
      uv.kill(pids[1], "sigkill")
    end)
  end)

  it("keeps parallel calls apart and others served", function()
    local conns = {}
    for i = 1, 20 do
      conns[i] = abxd:connect()
      conns[i]:send_request("POST", "/shell", { json = { command = ("sleep 1; echo %d; echo E%d >&2"):format(i, i) } })
    end
    local start = socket.gettime()
    while socket.gettime() - start < 0.9 do
      check.prompt(abxd, 0.3)
    end
    for i = 1, 20 do
      local run = check.ok(conns[i]:read_response())
      conns[i]:close()
      assert.same({ i .. "\n", "E" .. i .. "\n" }, { run.stdout, run.stderr })
    end
    assert.is_true(socket.gettime() - start < 20, "they waited for each other")
  end)

  it("takes paths as base64 and shows them", function()
    uv.fs_mkdir(abxd.base_dir .. "/d\xa4", 493)
    local run = sh("pwd", { cwd_base64 = require("mime").b64("d\xa4"), encoding = "base64" })
    assert.equal(abxd.base_dir .. "/d\u{FFFD}", run.cwd)
    assert.equal(abxd.base_dir .. "/d\xa4\n", require("mime").unb64(run.stdout))
    assert.equal(require("mime").b64(abxd.base_dir .. "/d\xa4"), run.cwd_base64)
  end)

  it("wants JSON, and no method but POST", function()
    check.problem(abxd:request("POST", "/shell", { body = "{}", headers = { ["Content-Type"] = "text/plain" } }), 415,
      "unsupported_media_type")
    local answer = abxd:get("/shell")
    check.problem(answer, 405, "method_not_allowed")
    assert.matches("^POST", answer.headers.allow)
    assert.equal(200, http.request(abxd, "POST", "/shell", { body = '{"command":"true"}',
      headers = { ["Content-Type"] = "application/json; charset=utf-8" } }).status)
  end)
end)
