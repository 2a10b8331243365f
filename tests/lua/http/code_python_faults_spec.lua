local check = require("support.check")
local files = require("support.files")
local process = require("support.process")
local python = require("support.python")

for _, engine in ipairs(python.ENGINES) do
  describe("a Python context, " .. engine .. ", survives", function()
    local contexts = python.contexts(engine, "PYTHONSAFEPATH=1") -- then a script does not find what lies beside it
    local run, output = contexts.run, contexts.output

    lazy_setup(contexts.start)
    lazy_teardown(contexts.stop)

    -- What cells of one context do one after another; each time the next cell works, in the same process.
    local harmless = {
      { "a closed stdout", "import sys; sys.stdout.close(); sys.stderr.close()" },
      { "no stdout", "import sys; sys.stdout = None; del sys.stderr" },
      { "a stdout that was closed later", "import sys, io; sys.stdout = io.StringIO(); sys.stdout.close()" },
      { "closed descriptors 1 and 2", "import os; os.close(1); os.close(2)" },
      { "closed low descriptors", "import os; os.closerange(3, 100)" },
      { "a deleted working directory", "import os, tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)" },
      { "names of builtins taken", "len = str = print_ = open = type = list = 5; import sys as json; os = None" },
      { "a trace function", "import sys\ndef trace(*a): return trace\nsys.settrace(trace); sys.setprofile(trace)" },
      { "SIGINT with its default action", "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL);" },
      { "no garbage collector", "import gc; gc.disable(); gc.freeze()" },
      { "an excepthook that raises", "import sys; sys.excepthook = lambda *a: 1 / 0" },
      { "the lost builtins of its names", "del __builtins__" },
      { "a dead end of a thread", "import threading; t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()" },
      { "no argv", "import sys; del sys.argv" },
      { "another locale", "import locale; locale.setlocale(locale.LC_ALL, 'C');" },
      { "a low limit of recursion", "import sys; sys.setrecursionlimit(150)" },
      { "functions of modules taken", "import json, os; json.dumps = json.loads = os.read = os.write = None" },
    }
    for _, case in ipairs(harmless) do
      it(case[1], function()
        assert.equal("ok", run("mark = 'same'\n" .. case[2], { context = "harmless" }).status)
        local after = run("import sys\nprint(mark)\nprint('err', file=sys.stderr)\n21 * 2", { context = "harmless" })
        assert.same({ "ok", "same\n", { { ["text/plain"] = "42" } }, false },
          { after.status, after.stdout, after.results, after.restarted })
        assert.matches("err\n$", after.stderr)
      end)
    end

    it("SIGINT that it sends itself", function()
      local cell = run("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)", { context = "sigint" })
      assert.same({ "error", "KeyboardInterrupt" }, { cell.status, cell.error.name })
      assert.equal("caught\n", output("try:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(60)\n" ..
        "except KeyboardInterrupt: print('caught')", { context = "sigint" }))
    end)

    it("the loss of what it stands on, as a crash at the worst", function()
      local cell = run("import builtins; del builtins.len, builtins.isinstance", { context = "broken" })
      assert.is_true(cell.status == "ok" or cell.status == "crashed", cell.status)
      cell = run("1 + 1", { context = "broken", timeout_ms = 20000 })
      if cell.status == "crashed" then
        cell = run("1 + 1", { context = "broken" })
        assert.is_true(cell.restarted)
      end
      assert.same({ { ["text/plain"] = "2" } }, cell.results)
    end)

    it("forks: the child ends where its cell ends, and never speaks for its parent", function()
      local cell = run([[
import os
pid = os.fork()
print("child" if pid == 0 else os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))]], { context = "fork" })
      assert.same({ "ok", "child\n0\n" }, { cell.status, cell.stdout })
      cell = run([[
import sys
print("once", end=" ")
pid = os.fork()
if pid == 0:
    display("not shown")
    raise ValueError("of the child")
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
pid = os.fork()
if pid == 0: sys.exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))]], { context = "fork" })
      assert.same({ "ok", "once 1\n9\n", {} }, { cell.status, cell.stdout, cell.results })
      assert.matches("ValueError: of the child", cell.stderr, 1, true)
      assert.equal("ok", run("os.getpid()", { context = "fork" }).status)
    end)

    for _, method in ipairs({ "fork", "spawn" }) do
      it("multiprocessing by " .. method, function()
        assert.equal("[5, 4, 3]\n", output(("import multiprocessing\nwith multiprocessing.get_context(%q).Pool(2) as pool:\n" ..
          "    print(pool.map(abs, [-5, -4, -3]))"):format(method), { context = method, timeout_ms = 60000 }))
      end)
    end

    it("a thread that prints after its cell: it disturbs nothing", function()
      output("import threading, time\ndef late():\n    time.sleep(0.3)\n    print('LATE')\n    display('late')\n" ..
        "thread = threading.Thread(target=late)\nthread.start()", { context = "late" })
      output("thread.join()", { context = "late" })
      local cell = run("print('mine')", { context = "late" })
      assert.same({ "mine\n", {} }, { cell.stdout, cell.results })
    end)

    it("a task that does not let itself be cancelled: it never runs again", function()
      local stubborn = "import asyncio\nwhile True:\n    try: await asyncio.sleep(0.2)\n" ..
        "    except BaseException: print('stubborn')"
      assert.equal("timeout", run(stubborn, { context = "stubborn", timeout_ms = 400 }).status)
      assert.equal("3\n", output("print(await asyncio.sleep(0.5, 3))", { context = "stubborn" }))
    end)

    it("an interrupt that is swallowed for ever: the process ends, and the next one is told", function()
      local cell = run("import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass",
        { context = "swallow", timeout_ms = 300 })
      assert.equal("timeout", cell.status)
      local after = run("'anew'", { context = "swallow" })
      assert.same({ true, { { ["text/plain"] = "'anew'" } } }, { after.restarted, after.results })
    end)

    it("a client that leaves: the cell is interrupted, its state kept", function()
      output("left = 'kept'", { context = "leave" })
      local conn = contexts.abxd:connect()
      conn:send_request("POST", "/code/execute", { json = { language = "python", context = "leave", timeout_ms = 60000,
        code = "open('begun', 'w').close()\nimport time\nwhile True: time.sleep(60)" } })
      assert(process.poll(10000 * check.slack, function()
        return files.exists(contexts.abxd.base_dir .. "/begun")
      end))
      conn:close()
      local after = run("print(left)", { context = "leave", timeout_ms = 30000 })
      assert.same({ "ok", "kept\n", false }, { after.status, after.stdout, after.restarted })
    end)

    it("many results and large ones, within bounds", function()
      local cell = run("for i in range(1005): display(i)", { context = "bounds", timeout_ms = 60000 })
      assert.same({ "ok", 1000, true }, { cell.status, #cell.results, cell.truncated })
      cell = run("'x' * (9 << 20)", { context = "bounds", timeout_ms = 60000 })
      assert.same({ "ok", 1, true, 1 << 20 }, { cell.status, #cell.results, cell.truncated, #cell.results[1]["text/plain"] })
      cell = run("'\\u4e00' * (5 << 20)", { context = "bounds", timeout_ms = 60000 }) -- 3 bytes each
      assert.same({ "ok", 1, true, 3 * (1 << 20) - 2 },
        { cell.status, #cell.results, cell.truncated, #cell.results[1]["text/plain"] })
      cell = run("for i in range(5): display('x' * (4 << 20))", { context = "bounds", timeout_ms = 60000 })
      assert.same({ "ok", 3, true }, { cell.status, #cell.results, cell.truncated })
    end)
  end)
end
