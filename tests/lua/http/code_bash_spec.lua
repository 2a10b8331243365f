local cells = require("support.cells")
local json = require("support.json")

describe("Bash in POST /code/execute", function()
  local abxd

  local function options(more)
    more = more or {}
    more.language = "bash"
    return more
  end
  local function run(code, more)
    return cells.run(abxd, code, options(more))
  end
  local function stdout(code, more)
    return cells.stdout(abxd, code, options(more))
  end

  lazy_setup(function()
    abxd = cells.server()
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  it("keeps variables, functions, options and the directory", function()
    stdout("x=1; f() { echo f $x; }; export Y=2; shopt -s nullglob; cd /; set -u")
    assert.equal("f 1\n2\n/\nnullglob       \ton\nhuB\n", stdout("f; printenv Y; pwd; shopt nullglob; echo $-"))
    stdout("set +u")
  end)

  it("tells the exit status of the last command", function()
    for code, status in pairs { ["false"] = "1", ["(exit 9)"] = "9", ["return 7"] = "7", ["no_such_command_x"] = "127" } do
      local answer = run(code)
      assert.same({ "error", { name = "ExitStatus", value = status, traceback = "" }, {} },
        { answer.status, answer.error, answer.results })
    end
    assert.equal(json.null, run("true").error)
  end)

  it("takes here-documents and long cells; one that is not closed does not eat the next", function()
    assert.equal("a 3\nb\n", stdout("cat <<EOF\na $((1+2))\nb\nEOF"))
    assert.equal("end\n", stdout(": " .. ("x"):rep(300 * 1024) .. "\necho end"))
    for _, code in ipairs { "echo 'open", "if true; then", "echo $(", "cat <<'EOF' $(", "cat <(echo", "f() {" } do
      assert.equal("error", run(code).status)
      assert.equal("next 1\n", stdout("next=$(echo 1); echo next $next"))
    end
    assert.equal("", stdout(""))
    stdout("shopt -s extglob")
    assert.equal("a\n", stdout("case aab in +(a)b) echo $(echo a);; esac"))
  end)

  it("gives commands standard input at its end and no other descriptor", function()
    assert.equal("1\n", stdout("read line; echo $?"))
    assert.equal("0 1 2 3 \n", stdout("ls /proc/self/fd | tr '\\n' ' '; echo"))
    assert.equal("0 1 2 3 \n", stdout("(ls /proc/self/fd | cat) | tr '\\n' ' '; echo"))
  end)

  it("quotes what it is given, and keeps it", function()
    local odd = "it's\n\"q\" $HOME `id` \\"
    assert.equal(odd, stdout("printf %s \"$ODD\"", { env = { ODD = odd }, cwd = "." }))
    assert.equal(odd .. abxd.base_dir, stdout("printf %s \"$ODD\" \"$PWD\""))
    assert.equal("unset", stdout("printf %s \"${ODD-unset}\"", { env = { ODD = json.null } }))
  end)

  it("interrupts commands, pipelines and its own loops, and keeps the state", function()
    stdout("kept=41", { context = "slow" })
    for _, code in ipairs {
      "sleep 100; echo AFTER", "while :; do :; done", "yes | cat >/dev/null; echo AFTER", "x=$(sleep 100; echo k); echo AFTER",
      "g() { while :; do for i in 1 2; do :; done; done; }; g; echo AFTER", "(while :; do :; done); echo AFTER",
      "eval 'while :; do :; done'; echo AFTER", "for ((;;)); do ((i++)); done", "sleep 100 & wait; echo AFTER",
      "until false; do sleep 0.01; done",
      "sh -c 'trap \"\" INT TERM; while :; do sleep 0.1 2>/dev/null; done' 2>/dev/null; echo AFTER",
    } do
      local answer = run(code, { context = "slow", timeout_ms = 300 })
      assert.same({ code, "timeout", false, "" }, { code, answer.status, answer.restarted, answer.stdout })
      assert.same({ name = "Timeout", value = "the time-out of 300 ms is over", traceback = "" }, answer.error)
      assert.equal("42 off\n", stdout("echo $((kept+1)) $(shopt extdebug | cut -f 2)", { context = "slow" }))
    end
  end)

  it("leaves jobs in the background alone", function()
    local pid = stdout("sleep 300 >/dev/null 2>&1 & echo $!"):match("%d+")
    assert.equal("timeout", run("sleep 100", { timeout_ms = 200 }).status)
    assert.equal("alive\n", stdout("kill -0 " .. pid .. " && echo alive"))
    stdout("kill " .. pid .. "; wait " .. pid .. " 2>/dev/null; true")
  end)

  it("keeps a trap of the cell's own", function()
    assert.equal("caught\n", stdout("trap 'echo caught' INT; kill -INT $$", { context = "traps" }))
    assert.equal("timeout", run("sleep 100", { context = "traps", timeout_ms = 200 }).status)
    assert.equal("caught\n", stdout("kill -INT $$", { context = "traps" }))
  end)

  it("says that the shell ended, and how, and begins afresh", function()
    for code, how in pairs {
      ["exit 3"] = "exit code 3", ["kill -9 $$"] = "SIGKILL", ["exec true"] = "exit code 0", ["set -e; false"] = "exit code 1",
    } do
      stdout("lost=1", { context = "gone" })
      local answer = run("echo last words; " .. code, { context = "gone" })
      assert.same({ code, "crashed", "last words\n" }, { code, answer.status, answer.stdout })
      assert.matches(how, answer.error.value)
      answer = run("echo ${lost-lost}", { context = "gone" })
      assert.same({ true, "lost\n" }, { answer.restarted, answer.stdout })
    end
  end)

  it("does not take the interrupt of a command for its failure under set -e", function()
    stdout("set -e; kept=1; f() { sleep 100; echo AFTER; }", { context = "strict" })
    for _, code in ipairs { "sleep 100", "f", "x=$(sleep 100)", "while :; do sleep 0.01; done" } do
      local answer = run(code, { context = "strict", timeout_ms = 200 })
      assert.same({ code, "timeout", "" }, { code, answer.status, answer.stdout })
      answer = run("echo $- $kept", { context = "strict" })
      assert.same({ "ehB 1\n", false }, { answer.stdout, answer.restarted })
    end
    assert.equal("crashed", run("false", { context = "strict" }).status)
  end)
end)
