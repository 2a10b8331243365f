local cells = require("support.cells")
local check = require("support.check")
local files = require("support.files")
local json = require("support.json")

local TOKEN = "tok-c0deX7"

describe("POST /code/execute", function()
  local abxd

  lazy_setup(function()
    abxd = cells.server { env = { ABX_SERVER_TOKEN = TOKEN, VISIBLE = "from the server" } }
    files.mkdir(abxd.base_dir .. "/sub")
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  it("is off unless it is enabled", function()
    local plain <close> = require("support.server").start()
    check.problem(plain:post("/code/execute", { code = "1" }), 403, "capability_disabled")
  end)

  it("answers with output, results and what became of it", function()
    local answer = cells.run(abxd, "import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7", { context = "shape" })
    assert.is_true(answer.engine == "ipython" or answer.engine == "plain")
    assert.matches("^p%-%x+$", answer.id)
    assert.equal("integer", math.type(answer.pid))
    assert.equal("integer", math.type(answer.duration_ms))
    assert.is_true(json.is_array(answer.results))
    answer.engine, answer.id, answer.pid, answer.duration_ms = nil, nil, nil, nil
    assert.same({
      context = "shape", language = "python", execution_count = 1, status = "ok", stdout = "out\n", stderr = "err\n",
      results = { { ["text/plain"] = "42" } }, error = json.null, restarted = false, truncated = false, lossy = false,
    }, answer)
  end)

  it("keeps the state of a context, and contexts apart", function()
    cells.ok(abxd, "x = 'mine'", { context = "one" })
    assert.equal("'mine'", cells.value(abxd, "x", { context = "one" }))
    assert.equal("NameError", cells.run(abxd, "x", { context = "two" }).error.name)
    local javascript = cells.run(abxd, "globalThis.x = 5; console.log(x); x + 1", { context = "one", language = "javascript" })
    assert.same({ "5\n", "node", "javascript" }, { javascript.stdout, javascript.engine, javascript.language })
    assert.equal("6", javascript.results[1]["text/plain"])
    assert.equal("'mine'", cells.value(abxd, "x", { context = "one" }))
  end)

  it("runs bash, whose directory and variables stay", function()
    local answer = cells.run(abxd, "cd sub; X=1; echo $PWD >&2; echo a; (exit 3)", { language = "bash" })
    assert.same({ "error", "a\n", abxd.base_dir .. "/sub\n", "ExitStatus", "3" }, { answer.status, answer.stdout,
      answer.stderr, answer.error.name, answer.error.value })
    assert.equal("1 sub\n", cells.stdout(abxd, "echo $X ${PWD##*/}", { language = "bash" }))
  end)

  it("tells errors as a success of the call", function()
    local answer = cells.run(abxd, "def f():\n  raise ValueError('no such thing')\nf()")
    assert.same({ "error", "ValueError", "no such thing" }, { answer.status, answer.error.name, answer.error.value })
    assert.matches("ValueError", answer.error.traceback)
    assert.is_nil(answer.error.traceback:find("\27", 1, true))
    assert.equal("error", cells.run(abxd, "def (").status)
  end)

  it("interrupts what takes too long, and keeps the state", function()
    cells.ok(abxd, "kept = 1", { context = "slow" })
    local answer = cells.run(abxd, "import time\nprint('A', flush=True)\ntime.sleep(30)\nprint('LATE')",
      { context = "slow", timeout_ms = 300 })
    assert.same({ "timeout", "A\n", false }, { answer.status, answer.stdout, answer.restarted })
    assert.is_true(answer.duration_ms >= 300)
    answer = cells.ok(abxd, "print('B'); kept", { context = "slow" })
    assert.same({ "B\n", false, "1" }, { answer.stdout, answer.restarted, answer.results[1]["text/plain"] })
  end)

  it("ends what swallows its interrupt", function()
    cells.ok(abxd, "1", { context = "deaf" })
    local answer = cells.run(abxd, "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\ntime.sleep(600)",
      { context = "deaf", timeout_ms = 200 })
    assert.same({ "timeout", "Timeout" }, { answer.status, answer.error.name })
    answer = cells.ok(abxd, "1", { context = "deaf" })
    assert.is_true(answer.restarted)
    assert.is_false(cells.ok(abxd, "1", { context = "deaf" }).restarted)
  end)

  describe("tells a crash", function()
    local cases = {
      { "by os._exit", "import os; print('last', flush=True); os._exit(3)", "the interpreter ended with exit code 3" },
      { "by a signal", "import os; print('last', flush=True); os.kill(os.getpid(), 9)", "the interpreter was ended by SIGKILL" },
    }
    for index, case in ipairs(cases) do
      it(case[1], function()
        local context = "crash" .. index
        cells.ok(abxd, "x = 1", { context = context })
        local answer = cells.run(abxd, case[2], { context = context })
        assert.same({ "crashed", "last\n", json.null, "Crashed", case[3] }, { answer.status, answer.stdout,
          answer.execution_count, answer.error.name, answer.error.value })
        answer = cells.run(abxd, "x", { context = context })
        assert.same({ "NameError", true, 1 }, { answer.error.name, answer.restarted, answer.execution_count })
      end)
    end

    it("with the end of its standard error", function()
      local answer = cells.run(abxd, "import os, sys\nprint('fatal: all is lost', file=sys.stderr, flush=True)\nos._exit(1)")
      assert.same({ "fatal: all is lost\n", "fatal: all is lost\n" }, { answer.error.traceback, answer.stderr })
      cells.ok(abxd, "1")
    end)
  end)

  it("begins anew with reset", function()
    cells.ok(abxd, "x = 1", { context = "reset" })
    local answer = cells.run(abxd, "x", { context = "reset", reset = true })
    assert.same({ "NameError", true, 1 }, { answer.error.name, answer.restarted, answer.execution_count })
    assert.is_false(cells.run(abxd, "1", { context = "reset" }).restarted)
  end)

  it("queues cells of one context, and runs contexts side by side", function()
    cells.ok(abxd, "import time, os; seen = []", { context = "q1" })
    cells.ok(abxd, "import time, os", { context = "q2" })
    local gate = abxd.base_dir .. "/gate"
    local first = cells.send(abxd, "seen.append(1)\nwhile not os.path.exists('gate'): time.sleep(.02)\nseen.append(2)",
      { context = "q1" })
    local second = cells.send(abxd, "seen.append(3); seen", { context = "q1" })
    cells.ok(abxd, "1", { context = "q2" }) -- while the first one waits
    check.unanswered(first)
    check.unanswered(second)
    files.write(gate, "")
    assert.equal("ok", first:read_response():json().status)
    local answer = second:read_response():json()
    assert.equal("[1, 2, 3]", answer.results[1]["text/plain"])
    assert.is_true(answer.duration_ms < 20000)
    first:close()
    second:close()
    os.remove(gate)
  end)

  describe("environment and directory", function()
    local SHOW = "import os; print(os.environ.get('GREETING'), os.getcwd())"

    it("stay in force in the context", function()
      local sub = abxd.base_dir .. "/sub"
      assert.equal(("None %s\n"):format(abxd.base_dir), cells.stdout(abxd, SHOW, { context = "env" }))
      assert.equal(("hi %s\n"):format(sub),
        cells.stdout(abxd, SHOW, { context = "env", env = { GREETING = "hi" }, cwd = "sub" }))
      assert.equal(("hi %s\n"):format(sub), cells.stdout(abxd, SHOW, { context = "env" }))
      assert.equal("hi " .. sub .. "\n", cells.stdout(abxd,
        "import subprocess; print(subprocess.check_output('echo $GREETING $PWD', shell=True, text=True), end='')",
        { context = "env" }))
      assert.equal(("None %s\n"):format(sub),
        cells.stdout(abxd, SHOW, { context = "env", env = { GREETING = json.null } }))
    end)

    it("begin with the server's and what POST /env set", function()
      check.ok(abxd:post("/env", { set = { FROM_ENV = "a\nb \"c\"" } }))
      assert.equal("'a\\nb \"c\"' from the server\n", cells.stdout(abxd,
        "import os; print(repr(os.environ['FROM_ENV']), os.environ['VISIBLE'])", { context = "later", reset = true }))
      check.ok(abxd:post("/env", { unset = { "FROM_ENV" } }))
    end)

    it("hold nothing of the server's own, and HOME is private", function()
      local seen = cells.stdout(abxd, "import os\nprint(dict(os.environ))\n"
        .. "print(open('/proc/self/environ').read(), open('/proc/self/cmdline').read())")
      assert.is_nil(seen:find(TOKEN, 1, true))
      assert.is_nil(seen:find("ABX_SERVER_", 1, true))
      assert.matches("'ABX_PROCESS_ID': 'p%-%x+'", seen)
      local home = cells.stdout(abxd, "import os; print(os.environ['HOME'], os.environ['TMPDIR'])")
      assert.matches("/home .*/tmp\n$", home)
      assert.is_nil(home:find(abxd.base_dir, 1, true))
    end)

    it("leave descriptors 0 to 2 to children alone", function()
      assert.equal("0 1 2 3\n", cells.stdout(abxd, -- 3 is the folder that ls reads
        "import subprocess; print(*subprocess.check_output(['ls', '/proc/self/fd'], text=True).split())"))
    end)

    it("are refused outside", function()
      check.problem(abxd:post("/code/execute", { code = "1", cwd = "/" }), 403, "path_outside_base", "cwd")
      check.problem(abxd:post("/code/execute", { code = "1", cwd = "nowhere" }), 400, "bad_cwd", "cwd")
      check.problem(abxd:post("/code/execute", { code = "1", env = { ABX_SERVER_TOKEN = "x" } }), 403, "protected_variable",
        "env")
    end)
  end)

  it("names all faulty fields at once", function()
    assert.same({ "code", "context", "language", "more", "timeout_ms" }, check.faulty_fields(abxd:post("/code/execute",
      { context = "", language = "cobol", timeout_ms = -1, more = 1 })))
    assert.same({ "context", "env.1A", "env.N" }, check.faulty_fields(abxd:post("/code/execute",
      { code = "1", context = "a/b", env = { ["1A"] = "x", N = "a\0b" } })))
    local long = ("1"):rep(100000)
    assert.same({ "env." .. long:sub(1, 64) },
      check.faulty_fields(abxd:post("/code/execute", { code = "1", env = { [long] = "x" } })))
    check.problem(abxd:post("/code/execute", { code = ("x"):rep(1100000) }), 413, "payload_too_large")
  end)

  it("has what children print, and bytes that are no text", function()
    local answer = cells.ok(abxd, "import os, subprocess\nprint('one')\nsubprocess.run('echo two', shell=True)\n"
      .. "os.write(1, b'\\xff\\xfe')\nprint('\u{20ac}')")
    assert.same({ "one\ntwo\n\u{FFFD}\u{FFFD}\u{20ac}\n", true, false }, { answer.stdout, answer.lossy, answer.truncated })
  end)

  it("keeps the beginning and the end of much output, in flat memory", function()
    cells.ok(abxd, "import sys", { context = "much" })
    local before = abxd:rss_bytes()
    local answer = cells.run(abxd, "print('BEGIN')\nfor _ in range(100): sys.stdout.write('x' * 999999 + '\\n')\nprint('END')",
      { context = "much", timeout_ms = 0 })
    assert.same({ "ok", true }, { answer.status, answer.truncated })
    assert.equal("BEGIN\nxx", answer.stdout:sub(1, 8))
    assert.equal("xx\nEND\n", answer.stdout:sub(-7))
    assert.is_true(#answer.stdout < 2200000)
    assert.is_true(abxd:rss_bytes() - before < 96 * 1024 * 1024)
    assert.equal("small\n", cells.stdout(abxd, "print('small')", { context = "much" }))
  end)

  it("gives results up to their bounds", function()
    local answer = cells.run(abxd, "for i in range(1200): display(i)\n'x' * 3000000", { context = "many" })
    assert.same({ "ok", 1000, true }, { answer.status, #answer.results, answer.truncated })
    answer = cells.run(abxd, "print('after')", { context = "many" })
    assert.same({ "after\n", false }, { answer.stdout, answer.truncated })
  end)
end)
