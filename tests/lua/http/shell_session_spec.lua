local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local process = require("support.process")
local server = require("support.server")
local sse = require("support.sse")
local uv = require("luv")

local SLEEP = check.sleep

describe("shell sessions", function()
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start()
    files.mkdir(abxd.base_dir .. "/sub")
    files.mkdir(abxd.base_dir .. "/odd \n'$(x)\"")
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function sh(session, command, fields)
    fields = fields or {}
    fields.session, fields.command = session, command
    return check.ok(abxd:post("/shell", fields))
  end

  it("keep the working directory", function()
    sh("cwd", "cd sub")
    local run = sh("cwd", "pwd")
    assert.same({ abxd.base_dir .. "/sub\n", abxd.base_dir .. "/sub" }, { run.stdout, run.cwd })
    sh("cwd", "cd ..; cd odd*; exit 4")
    assert.equal(abxd.base_dir .. "/odd \n'$(x)\"\n", sh("cwd", "pwd").stdout)
    assert.equal(abxd.base_dir .. "\n", sh("another", "pwd").stdout)
    assert.equal(abxd.base_dir .. "\n", check.ok(abxd:post("/shell", { command = "pwd" })).stdout)
  end)

  it("take cwd before their own", function()
    sh("given", "cd sub")
    assert.equal(abxd.base_dir .. "\n", sh("given", "pwd", { cwd = "." }).stdout)
  end)

  it("fall back to the base where theirs is gone or outside", function()
    files.mkdir(abxd.base_dir .. "/soon")
    sh("gone", "cd soon")
    uv.fs_rmdir(abxd.base_dir .. "/soon")
    assert.equal(abxd.base_dir .. "\n", sh("gone", "pwd").stdout)
    sh("outside", "cd /")
    assert.equal(abxd.base_dir .. "\n", sh("outside", "pwd").stdout)
  end)

  it("keep exported variables, and only those", function()
    local value = "a\nb=c \"d\" 'e' $HOME $(id) \\ ü"
    sh("env", "export K=\"$V\" GONE=1; LOCAL=2; export -n V", { env = { V = value } })
    local run = sh("env", "printf '%s|%s|%s' \"$K\" \"${LOCAL-unset}\" \"${GONE-unset}\"; unset GONE")
    assert.equal(value .. "|unset|1", run.stdout)
    assert.equal("unset unset\n", sh("env", "echo ${GONE-unset} ${V-unset}").stdout)
    assert.equal("unset\n", sh("env-other", "echo ${K-unset}").stdout)
  end)

  it("tell the run's own id, and no variable of the server", function()
    local first = sh("id", "echo $ABX_PROCESS_ID")
    local second = sh("id", "echo $ABX_PROCESS_ID; env | grep -c ^ABX_SERVER_")
    assert.equal(first.id .. "\n", first.stdout)
    assert.equal(second.id .. "\n0\n", second.stdout)
  end)

  it("keep the exit code and output of the script as they are", function()
    local run = sh("code", "echo out; echo err >&2; cd sub; exit 7")
    assert.same({ "out\n", "err\n", 7 }, { run.stdout, run.stderr, run.exit_code })
    run = sh("code", "set -eu; false")
    assert.same({ 1, "" }, { run.exit_code, run.stderr })
    assert.equal(abxd.base_dir .. "/sub\n", sh("code", "pwd").stdout)
    assert.equal(2, sh("code", "if").exit_code)
  end)

  it("give the command's own result where their state cannot be written", function()
    sh("limits", "export A=1")
    for code, command in pairs { [0] = "ulimit -f 0; export A=2; true", [7] = "set -e; ulimit -n 0; export A=2; exit 7" } do
      local run = sh("limits", command)
      assert.same({ code, json.null, "", "" }, { run.exit_code, run.signal, run.stdout, run.stderr })
    end
    assert.equal("1\n", sh("limits", "echo $A").stdout)
  end)

  describe("leave the state as it was after", function()
    local cases = {
      { "exec", "cd sub; export A=2; exec true" },
      { "SIGKILL", "cd sub; export A=2; kill -9 $$" },
      { "an EXIT trap of the script", "trap 'echo mine' EXIT; cd sub; export A=2", "mine\n" },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        sh(case[1], "export A=1")
        assert.equal(case[3] or "", sh(case[1], case[2]).stdout)
        assert.equal("1 " .. abxd.base_dir .. "\n", sh(case[1], "echo $A $PWD").stdout)
      end)
    end
  end)

  it("queue their calls in order, and others do not wait", function()
    local conns = {}
    for i = 1, 5 do
      conns[i] = abxd:connect()
      conns[i]:send_request("POST", "/shell", { json = { session = "queue",
        command = ("sleep .3; export SEEN=${SEEN}%d; echo $SEEN"):format(i) } })
      uv.sleep(30)
    end
    sh("free", "true")
    check.unanswered(conns[5])
    for i, seen in ipairs { "1", "12", "123", "1234", "12345" } do
      assert.equal(seen .. "\n", check.ok(conns[i]:read_response()).stdout)
      conns[i]:close()
    end
  end)

  it("pass the turn on when a client leaves, in the queue or out of it", function()
    local holder, queued = abxd:connect(), abxd:connect()
    holder:send_request("POST", "/shell", { json = { session = "leave", command = SLEEP(4264) .. "; :" } })
    assert.is_true(process.poll(5000, function()
      return #check.pids_of(SLEEP(4264)) == 1
    end))
    queued:send_request("POST", "/shell", { json = { session = "leave", command = "touch never" } })
    uv.sleep(300)
    queued:close()
    uv.sleep(300)
    holder:close()
    assert.equal("next\n", sh("leave", "echo next").stdout)
    assert.is_false(files.exists(abxd.base_dir .. "/never"))
    assert.equal(0, check.gone(SLEEP(4264)))
  end)

  it("work for streams too", function()
    local function stream(command)
      local answer = abxd:stream("POST", "/shell/stream", { json = { session = "stream", command = command } })
      local events = sse.events(answer):all(10)
      answer:close()
      return events
    end
    stream("cd sub; export A=x")
    assert.equal("x " .. abxd.base_dir .. "/sub\n", stream("echo $A $PWD")[2].data.data)
  end)

  it("outlive a reload", function()
    sh("reload", "cd sub; export A=before")
    abxd:reload()
    assert.equal("before " .. abxd.base_dir .. "/sub\n", sh("reload", "echo $A $PWD").stdout)
  end)

  it("are 64; the longest unused goes", function()
    for i = 1, 64 do
      sh("many-" .. i, "export N=" .. i)
    end
    assert.equal("1\n", sh("many-1", "echo ${N-new}").stdout)
    sh("one-more", "true")
    assert.equal("1\n", sh("many-1", "echo ${N-new}").stdout)
    assert.equal("64\n", sh("many-64", "echo ${N-new}").stdout)
    assert.equal("new\n", sh("many-2", "echo ${N-new}").stdout)
  end)

  it("have a name", function()
    check.problem(abxd:post("/shell", { session = "", command = "true" }), 400, "invalid_request", "session")
    check.problem(abxd:post("/shell", { session = ("x"):rep(129), command = "true" }), 400, "invalid_request", "session")
    check.problem(abxd:post("/shell", { session = 1, command = "true" }), 400, "invalid_request", "session")
    assert.equal(0, sh("../../x y", "true").exit_code)
  end)

  it("keep their state outside the base", function()
    assert.same({}, check.strays(abxd.base_dir, { "sub", "odd \n'$(x)\"" }))
  end)
end)
