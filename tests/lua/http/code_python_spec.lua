local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local python = require("support.python")

for _, engine in ipairs(python.ENGINES) do
  describe("a Python context, " .. engine, function()
    local contexts = python.contexts(engine)
    local run, output, value, failure = contexts.run, contexts.output, contexts.value, contexts.failure

    local function path(name)
      return contexts.abxd.base_dir .. "/" .. name
    end

    lazy_setup(function()
      contexts.start()
      files.mkdir(path("sub"))
      for _, name in ipairs({ "inspect", "ast", "traitlets" }) do -- which both engines import, from elsewhere
        files.write(path(name .. ".py"), "raise SystemError('a client has files of such names')\n")
      end
    end)
    lazy_teardown(contexts.stop)

    it("is of that engine", function()
      if engine == "ipython" and python.lacks("code_python_spec", "IPython") then
        return
      end
      assert.equal(engine, run("1").engine)
    end)

    it("keeps its names, and counts its cells", function()
      local first = run("x = 20\ndef double(n):\n    return 2 * n", { context = "names" })
      assert.same({}, first.results)
      local second = run("double(x) + 2", { context = "names" })
      assert.same({ { ["text/plain"] = "42" } }, second.results)
      assert.equal(json.null, second.error)
      assert.same({ 1, 2 }, { first.execution_count, second.execution_count })
      assert.equal("'42'", value("str(_)", { context = "names" }))
    end)

    it("shows the last expression only, and not before a semicolon", function()
      assert.same({ { ["text/plain"] = "2" } }, run("1\n2").results)
      assert.same({}, run("3;").results)
      assert.same({}, run("None").results)
      assert.same({}, run("y = 4").results)
      assert.same({}, run("").results)
      assert.same({}, run("# nothing\n").results)
    end)

    it("has what is printed, by children too, in its order", function()
      local cell = run([[
import os, subprocess, sys
print("one")
os.system("echo two")
print("three", end="")
subprocess.run(["echo", " four"])
os.write(1, b"five\n")
print("six", file=sys.stderr)
os.system("echo seven >&2")]])
      assert.same({ "one\ntwo\nthree four\nfive\n", "six\nseven\n" }, { cell.stdout, cell.stderr })
    end)

    it("prints any text", function()
      assert.equal("é € 𝄞 \\udcff\n", output([[print("\u00e9 \u20ac \U0001d11e \udcff")]]))
      assert.equal("a\0b\r\n\27[31m\n", output([[print("a\0b\r\n\x1b[31m")]]))
    end)

    it("awaits at the top level, in one loop", function()
      assert.equal("7", value("import asyncio\nawait asyncio.sleep(0.01, 7)", { context = "loop" }))
      output("task = asyncio.ensure_future(asyncio.sleep(0.01, 8))\nawait asyncio.sleep(0)", { context = "loop" })
      assert.equal("8", value("await task", { context = "loop" }))
      assert.equal("9", value("asyncio.run(asyncio.sleep(0, 9))", { context = "loop" }))
    end)

    it("keeps what __future__ promises", function()
      output("from __future__ import annotations", { context = "future" })
      assert.equal("{'n': 'nowhere'}", value("def f(n: nowhere): pass\nf.__annotations__", { context = "future" }))
    end)

    it("has nothing but user code in __main__", function()
      assert.equal("(True, '__main__')",
        value("import __main__\nhere = 1\n(__main__.here == 1, __name__)", { context = "main" }))
      output("import pickle\nclass Point: pass", { context = "main" })
      assert.equal("True", value("isinstance(pickle.loads(pickle.dumps(Point())), Point)", { context = "main" }))
    end)

    it("imports from the working directory", function()
      assert.equal("a client has files of such names",
        failure("import sys; sys.modules.pop('ast'); import ast", { context = "imports" }).value)
      files.write(path("sub/near.py"), "value = 'near'\n")
      files.write(path("sub/json.py"), "raise SystemError('not the one of the library')\n")
      assert.equal("'near'", value("import near; near.value", { context = "imports", cwd = "sub" }))
    end)

    describe("tells of errors:", function()
      local function assert_clean(traceback)
        assert.is_nil(traceback:find("abx_interpreter", 1, true), traceback)
        assert.is_nil(traceback:find("\27", 1, true), traceback)
      end

      it("an exception in a function", function()
        local told, cell = failure("print('before')\ndef halve(n):\n    return n / 0\nhalve(1)")
        assert.same({ "ZeroDivisionError", "division by zero" }, { told.name, told.value })
        assert.matches("halve", told.traceback, 1, true)
        assert.matches("return n / 0", told.traceback, 1, true)
        assert_clean(told.traceback)
        assert.equal("before\n", cell.stdout)
      end)

      it("a syntax error", function()
        local told, cell = failure("print('not run')\na b")
        assert.equal("SyntaxError", told.name)
        assert.matches("a b", told.traceback, 1, true)
        assert_clean(told.traceback)
        assert.equal("", cell.stdout)
      end)

      it("escapes in a message", function()
        assert_clean(failure([[raise ValueError("\x1b[31mred")]]).traceback)
      end)

      it("a message that cannot be made", function()
        local told = failure("class Mute(Exception):\n    def __str__(self): raise ValueError('no')\nraise Mute()")
        assert.equal("Mute", told.name)
        assert.is_true(#told.value > 0)
      end)

      it("a lone surrogate in a message", function()
        assert.equal("\u{fffd}", failure([[raise ValueError("\ud800")]]).value)
      end)

      it("recursion without end", function()
        local told = failure("def deep(n): return deep(n + 1)\ndeep(0)")
        assert.equal("RecursionError", told.name)
        assert.is_true(#told.traceback < 20000)
      end)

      it("no memory", function()
        assert.equal("MemoryError", failure("'x' * (1 << 60)").name)
      end)

      it("a message of a megabyte", function()
        local told = failure("raise ValueError('x' * (1 << 20))")
        assert.is_true(#told.value < 128 * 1024 and #told.traceback < 512 * 1024)
      end)

      for code, name in pairs({
        ["input('name? ')"] = "EOFError", ["import sys; sys.stdin.read()"] = "EOFError",
        ["import getpass; getpass.getpass()"] = "EOFError", ["breakpoint()"] = "RuntimeError",
        ["import sys\nfor line in sys.stdin: pass"] = "EOFError", ["import pdb; pdb.set_trace()"] = "BdbQuit",
      }) do
        it("no standard input for " .. code, function()
          assert.equal(name, failure(code, { context = "input", timeout_ms = 20000 }).name)
          assert.equal("2", value("1 + 1", { context = "input" }))
        end)
      end
    end)

    describe("at a time-out keeps its state:", function()
      local cases = {
        ["a loop"] = "while True: pass",
        ["sleep"] = "import time; time.sleep(60)",
        ["a child"] = "import subprocess; subprocess.run(['sleep', '60'])",
        ["os.system"] = "import os; os.system('sleep 60'); print('went on')",
        ["a child that hears no SIGINT"] = [[import os; os.system("trap '' INT; sleep 60; sleep 60"); print('went on')]],
        ["await"] = "import asyncio\nawait asyncio.sleep(60)",
        ["a lock"] = "import threading; threading.Event().wait()",
        ["SIGINT ignored"] = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)",
        ["output"] = "while True: print('x' * 1000)",
        ["results"] = "while True: display(1)",
      }
      for name, code in pairs(cases) do
        it(name, function()
          local context = { context = "timeout" }
          output("kept = 'kept'", context)
          local cell = run(code, { context = "timeout", timeout_ms = 400 })
          assert.equal("timeout", cell.status)
          assert.equal("KeyboardInterrupt", cell.error.name)
          assert.is_nil(cell.error.traceback:find("abx_interpreter", 1, true), cell.error.traceback)
          assert.is_nil(cell.stdout:find("went on", 1, true))
          local after = run("print(kept)", context)
          assert.same({ "ok", "kept\n", "", false }, { after.status, after.stdout, after.stderr, after.restarted })
        end)
      end

      it("code that hears the interrupt and ends", function()
        local cell = run("import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('heard')", { timeout_ms = 400 })
        assert.same({ "timeout", "heard\n" }, { cell.status, cell.stdout })
      end)

      it("an exception whose text never ends", function()
        output("kept = 'kept'", { context = "endless" })
        local cell = run("class Endless(Exception):\n    def __str__(self):\n        while True: pass\nraise Endless()",
          { context = "endless", timeout_ms = 400 })
        assert.same({ "timeout", "Endless" }, { cell.status, cell.error.name })
        local after = run("print(kept)", { context = "endless" })
        assert.same({ "ok", "kept\n", false }, { after.status, after.stdout, after.restarted })
      end)

      it("many short ones, which end well or not", function()
        output("total = 0", { context = "short" })
        for i = 1, 40 do
          local cell = run("for i in range(300): display(i)\ntotal += 1", { context = "short", timeout_ms = 1 + i })
          assert.is_true(cell.status == "ok" or cell.status == "timeout", cell.status)
          local after = run("print('here')", { context = "short" })
          assert.same({ "ok", "here\n", false }, { after.status, after.stdout, after.restarted })
        end
      end)
    end)

    it("leaves alone what an earlier cell started in the background", function()
      output("import subprocess\nback = subprocess.Popen(['sleep', '60'])", { context = "back" })
      assert.equal("timeout", run("while True: pass", { context = "back", timeout_ms = 1500 }).status)
      assert.equal("True", value("import time; time.sleep(0.2); back.poll() is None", { context = "back" }))
      output("back.kill(); back.wait();", { context = "back" })
    end)

    it("keeps env and cwd of a call, as export and cd do", function()
      local context = { context = "env" }
      assert.equal("'one'", value("import os; os.environ['ABX_A']",
        { context = "env", env = { ABX_A = "one", ABX_B = "two" }, cwd = "sub" }))
      assert.equal(("('one', 'two', %q)"):format(path("sub")):gsub('"', "'"),
        value("(os.environ['ABX_A'], os.popen('printf %s $ABX_B').read(), os.getcwd())", context))
      assert.equal("(None, 'two')", value("(os.environ.get('ABX_A'), os.environ['ABX_B'])",
        { context = "env", env = { ABX_A = json.null } }))
    end)

    it("has a private home, and TZ counts", function()
      assert.equal("True", value("import os; os.path.isdir(os.environ['HOME']) and os.environ['HOME'] != " ..
        ("%q"):format(os.getenv("HOME") or "/"), { context = "home" }))
      assert.equal("'XYZ'", value("import time; time.tzname[0]", { context = "home", env = { TZ = "XYZ3" } }))
    end)

    describe("ends with its process:", function()
      local cases = {
        { "sys.exit(3)", "exit code 3" },
        { "exit(4)", "exit code 4" },
        { "quit()", "exit code 0" },
        { "raise SystemExit", "exit code 0" },
        { "sys.exit('words')", "exit code 1" },
        { "os._exit(7)", "exit code 7" },
        { "import ctypes; ctypes.string_at(0)", "SIGSEGV" },
        { "os.kill(os.getpid(), 9)", "SIGKILL" },
      }
      for _, case in ipairs(cases) do
        it(case[1], function()
          output("gone = 1", { context = "crash" })
          local cell = run("import os, sys\nprint('last words')\n" .. case[1], { context = "crash" })
          assert.same({ "crashed", "Crashed", "last words\n" }, { cell.status, cell.error.name, cell.stdout })
          assert.matches(case[2], cell.error.value, 1, true)
          local after = run("print('gone' in dir())", { context = "crash" })
          assert.same({ "ok", "False\n", true }, { after.status, after.stdout, after.restarted })
        end)
      end

      it("after what atexit was told", function()
        local cell = run("import atexit; atexit.register(print, 'goodbye')\nraise SystemExit(5)", { context = "crash" })
        assert.same({ "crashed", "goodbye\n" }, { cell.status, cell.stdout })
      end)
    end)

    it("streams what a cell prints as it prints it", function()
      local answer = contexts.abxd:stream("POST", "/code/execute", {
        headers = { Accept = "text/event-stream" },
        json = { language = "python", context = "stream", timeout_ms = 60000,
          code = "import os, time\nprint('now', end='')\nwhile not os.path.exists('go'): time.sleep(0.01)" },
      })
      local events = require("support.sse").events(answer)
      local event = events:wait("stdout", 10 * check.slack)
      assert.equal("now", event.data.data)
      files.write(path("go"), "")
      assert.equal("ok", events:wait("done", 10 * check.slack).data.status)
      answer:close()
    end)
  end)
end
