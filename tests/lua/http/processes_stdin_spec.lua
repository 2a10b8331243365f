local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local mime = require("mime")
local process = require("support.process")
local runs = require("support.runs")
local server = require("support.server")
local uv = require("luv")

local MIB = 1024 * 1024

describe("POST /processes/{id}/stdin", function()
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start()
    baseline = abxd:baseline()
  end)
  after_each(function()
    os.remove(abxd.base_dir .. "/go")
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  --- Until go() a program reads nothing.
  local WAIT = "while ! [ -e go ]; do sleep 0.02; done; "

  local function go()
    files.write(abxd.base_dir .. "/go", "")
  end

  local function start(command, fields)
    fields = fields or {}
    fields.command, fields.keep_stdin = command, true
    return runs.start(abxd, fields)
  end

  local function send(id, body)
    return abxd:post("/processes/" .. id .. "/stdin", body)
  end

  --- On a connection of its own; the caller reads the answer and closes it.
  local function begin(id, body)
    local conn = abxd:connect()
    conn:send_request("POST", "/processes/" .. id .. "/stdin", { json = body })
    return conn
  end

  local function finish(conn)
    local answer = conn:read_response()
    conn:close()
    return answer
  end

  --- The output of a program at its end.
  local function result(id)
    runs.wait_end(abxd, id)
    local output = runs.output(abxd, id)
    return output.stdout, output.exit_code
  end

  it("writes after what stdin gave, until eof", function()
    local id = start("cat; exit 6", { stdin = "a\n" })
    assert.same({ id = id, bytes = 4, eof = false }, check.ok(send(id, { data = "\u{E9}\0\n" })))
    assert.is_true(process.poll(5000, function()
      return runs.output(abxd, id).stdout == "a\n\u{E9}\0\n"
    end))
    assert.same({ id = id, bytes = 3, eof = false }, check.ok(send(id, { data = mime.b64("\xFF\xFE\n"), encoding = "base64" })))
    assert.same({ id = id, bytes = 0, eof = false }, check.ok(send(id, {})))
    assert.same({ id = id, bytes = 2, eof = true }, check.ok(send(id, { data = "z\n", eof = true })))
    runs.wait_end(abxd, id)
    local output = runs.output(abxd, id, { encoding = "base64" })
    assert.same({ "a\n\u{E9}\0\n\xFF\xFE\nz\n", 6 }, { mime.unb64(output.stdout), output.exit_code })
  end)

  it("talks with a program line by line, found by its pid", function()
    local id, pid = start("while read -r line; do echo \"<$line>\"; done; echo end")
    local at = 0
    for i = 1, 20 do
      assert.equal(id, check.ok(send(pid, { data = i .. "\n" })).id)
      local part = runs.output(abxd, id, { stdout_offset = at, wait_ms = 5000 })
      assert.equal("<" .. i .. ">\n", part.stdout)
      at = part.stdout_offset
    end
    check.ok(send(id, { eof = true }))
    assert.equal("end\n", result(id):sub(-4))
  end)

  it("waits until the program has taken all, in bounded memory and without holding up the loop", function()
    local id = start(WAIT .. "sha256sum")
    local data = ("0123456789abcdef"):rep(24 * MIB // 16)
    local before = abxd:rss_bytes()
    local conn = begin(id, { data = data })
    uv.sleep(300)
    check.unanswered(conn)
    check.prompt(abxd, 0.1)
    go()
    assert.equal(#data, check.ok(finish(conn)).bytes)
    check.ok(send(id, { eof = true }))
    files.write(abxd.root .. "/data", data)
    assert.equal(check.sha256_of(abxd.root .. "/data") .. "  -\n", (result(id)))
    assert.is_true(abxd:rss_bytes() - before < 160 * MIB)
  end)

  it("lets writers take turns", function()
    local id = start(WAIT .. "fold -w1 | uniq -c | tr -s ' \\n' ' '")
    local conns = {}
    for i = 1, 5 do
      conns[i] = begin(id, { data = ("abcde"):sub(i, i):rep(100000), eof = i == 5 })
      uv.sleep(50)
    end
    go()
    for i = 1, 5 do
      assert.same({ bytes = 100000, eof = i == 5, id = id }, check.ok(finish(conns[i])))
    end
    assert.equal(" 100000 a 100000 b 100000 c 100000 d 100000 e ", (result(id)))
  end)

  it("drops the rest of one that leaves, and the next goes on", function()
    local id = start(WAIT .. "fold -w1 | uniq -c | tr -s ' \\n' ' '")
    local first = begin(id, { data = ("a"):rep(1000000), eof = true })
    uv.sleep(100)
    local second = begin(id, { data = ("b"):rep(1000000), eof = true })
    uv.sleep(100)
    first:close()
    uv.sleep(100)
    go()
    assert.equal(1000000, check.ok(finish(second)).bytes)
    local text = result(id)
    assert.equal(65536, tonumber(text:match("^ (%d+) a 1000000 b $")), text)
  end)

  describe("tells of a pipe that nobody reads", function()
    local function refused(answer, words)
      local problem = check.problem(answer, 409, "already_exited")
      for _, word in ipairs(words) do
        assert.matches(word, problem.detail, 1, true)
      end
    end

    it("when the program closes it, at once and in mid-write", function()
      local id, pid = start("head -c 100000 >/dev/null; exec <&-; echo closed; exec sleep 3000")
      local conn = begin(id, { data = ("x"):rep(1000000) })
      local answer = finish(conn)
      refused(answer, { "of 1000000 bytes", "has closed it" })
      local taken = tonumber(answer:json().detail:match("^(%d+)"))
      assert.is_true(taken >= 100000 and taken < 300000, taken)
      refused(send(id, { data = "x" }), { "0 of 1 bytes", "has closed it" })
      uv.kill(pid, "sigkill")
      assert.equal(137, select(2, result(id)))
      refused(send(id, { data = "x" }), { "0 of 1 bytes", "it has ended" })
      id, pid = start("exec sleep 3000 <&-")
      assert.is_true(process.poll(5000, function()
        return #check.pids_of("sleep 3000") > 0 and send(id, { data = "x" }).status == 409
      end))
      uv.kill(pid, "sigkill")
      result(id)
    end)

    it("when the program ends while somebody writes", function()
      local id, pid = start("exec sleep 3000")
      local first = begin(id, { data = ("x"):rep(200000) })
      uv.sleep(100)
      local second = begin(id, { data = "y" })
      uv.sleep(100)
      uv.kill(pid, "sigkill")
      local answer = finish(first)
      refused(answer, { "65536 of 200000 bytes" })
      refused(finish(second), { "0 of 1 bytes" })
    end)

    it("after eof, while the program runs on", function()
      local id, pid = start("cat; exec sleep 3000")
      check.ok(send(id, { data = "a", eof = true }))
      refused(send(id, { data = "b" }), { "0 of 1 bytes", "eof" })
      refused(send(id, { eof = true }), { "eof" })
      assert.equal("a", runs.output(abxd, id, { wait_ms = 20000 }).stdout)
      uv.kill(pid, "sigkill")
      assert.same({ "a", 137 }, { result(id) })
    end)
  end)

  it("gives up after timeout_ms, and tells how much was taken", function()
    local id, pid = start("exec sleep 3000")
    local problem = check.problem(send(id, { data = ("x"):rep(100000), timeout_ms = 200 }), 504, "upstream_timeout")
    assert.matches("65536 of 100000 bytes were taken", problem.detail, 1, true)
    problem = check.problem(send(id, { data = "y", timeout_ms = 0 }), 504, "upstream_timeout")
    assert.matches("0 of 1 bytes were taken", problem.detail, 1, true)
    uv.kill(pid, "sigkill")
    result(id)
  end)

  it("refuses what was not started with keep_stdin, or not at all", function()
    local id, pid = runs.start(abxd, "exec sleep 3000")
    local problem = check.problem(send(id, { data = "x" }), 400, "invalid_request", "id")
    assert.matches("keep_stdin", problem.detail, 1, true)
    uv.kill(pid, "sigkill")
    result(id)
    check.problem(send("p-0123456789ab", { data = "x" }), 404, "process_not_found", "id")
    check.problem(send(uv.os_getpid(), { data = "x" }), 404, "process_not_found", "id")
    check.problem(send(id, { data = "!", encoding = "base64" }), 400, "invalid_request", "data")
    assert.same({ "data", "timeout_ms" }, check.faulty_fields(send(id, { data = 1, timeout_ms = 300001 })))
  end)

  it("of one whose stdin is not kept is empty, as ever", function()
    assert.same({ "abc", 0 }, { result(runs.start(abxd, { command = "cat", stdin = "abc" })) })
    assert.same({ "", 0 }, { result(runs.start(abxd, { command = "cat", keep_stdin = false })) })
    local id = start("cat")
    assert.equal(json.null, runs.output(abxd, id).exit_code)
    check.ok(send(id, { eof = true }))
    assert.same({ "", 0 }, { result(id) })
  end)

  it("ends with the server, whoever still writes", function()
    local other = server.start()
    local id = runs.start(other, { command = "exec sleep 3000", keep_stdin = true })
    local conn = other:connect()
    conn:send_request("POST", "/processes/" .. id .. "/stdin", { json = { data = ("x"):rep(200000) } })
    uv.sleep(100)
    other:stop()
    conn:close()
  end)
end)
