local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local mime = require("mime")
local process = require("support.process")
local runs = require("support.runs")
local server = require("support.server")
local sse = require("support.sse")
local uv = require("luv")

local MIB = 1024 * 1024

describe("GET /processes/{id}/output", function()
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

  local function output(id, query)
    return runs.output(abxd, id, query)
  end

  --- Starts a program and waits for its end.
  local function ended(what)
    local id = runs.start(abxd, what)
    runs.wait_end(abxd, id)
    return id
  end

  --- Starts one that prints that many bytes on stdout and then waits; runs.stop ends it.
  local function waiting(command, bytes)
    local id, pid = runs.start(abxd, command .. "; exec sleep 3000")
    assert(process.poll(5000, function()
      return output(id, { tail_bytes = 0 }).stdout_bytes == bytes
    end))
    return id, pid
  end

  local function stop(id)
    runs.stop(abxd, id)
  end

  it("tells what was printed, where it ends and how the program did", function()
    local id = ended("printf abc; printf de >&2; exit 3")
    local answer = output(id)
    assert.equal("integer", math.type(answer.duration_ms))
    assert.matches("^%d+%-%d%d%-%d%dT[%d:]+%.%d%d%dZ$", answer.started_at)
    answer.duration_ms, answer.started_at = nil, nil
    assert.same({ id = id, stdout = "abc", stderr = "de", stdout_offset = 3, stderr_offset = 2, stdout_bytes = 3,
      stderr_bytes = 2, lossy = false, eof = true, exit_code = 3, signal = json.null, timed_out = false }, answer)
  end)

  it("of one that still runs has no exit, and no end", function()
    local id = waiting("printf abc", 3)
    local answer = output(id)
    assert.same({ "abc", 3, false, json.null }, { answer.stdout, answer.stdout_offset, answer.eof, answer.exit_code })
    stop(id)
    answer = output(id, { stdout_offset = 3 })
    assert.same({ "", 3, true, 137, "SIGKILL" }, { answer.stdout, answer.stdout_offset, answer.eof, answer.exit_code,
      answer.signal })
  end)

  it("goes on at offsets, in parts of limit", function()
    local id = ended("seq 1 1000; seq 1 100 >&2")
    local out, err, at, parts = "", "", { 0, 0 }, 0
    repeat
      local part = output(id, { stdout_offset = at[1], stderr_offset = at[2], limit = 1000 })
      assert.equal(math.min(1000, 3893 - at[1]), #part.stdout)
      assert.equal(at[1] + #part.stdout, part.stdout_offset)
      assert.equal(part.stdout_offset == 3893, part.eof)
      out, err, at, parts = out .. part.stdout, err .. part.stderr, { part.stdout_offset, part.stderr_offset }, parts + 1
    until part.eof
    assert.equal(4, parts)
    assert.equal(process.run({ "seq", "1", "1000" }).stdout, out)
    assert.equal(process.run({ "seq", "1", "100" }).stdout, err)
  end)

  it("of one stream leaves the other alone", function()
    local id = ended("printf abc; printf de >&2")
    local answer = output(id, { stream = "stderr" })
    assert.same({ "", "de", 0, 2, 3, true }, { answer.stdout, answer.stderr, answer.stdout_offset, answer.stderr_offset,
      answer.stdout_bytes, answer.eof })
    answer = output(id, { stream = "stdout", stdout_offset = 1, stderr_offset = 77, limit = 1 })
    assert.same({ "b", "", 2, 77, 2, false }, { answer.stdout, answer.stderr, answer.stdout_offset, answer.stderr_offset,
      answer.stderr_bytes, answer.eof })
  end)

  it("of the last bytes begins with a whole character", function()
    local id = ended("printf 'a\\344\\275\\240b'; echo e >&2")
    for tail, text in pairs { [0] = "", "b", "b", "b", "\u{4F60}b", "a\u{4F60}b", "a\u{4F60}b" } do
      local answer = output(id, { tail_bytes = tail })
      assert.same({ text, 5, true, false }, { answer.stdout, answer.stdout_offset, answer.eof, answer.lossy })
    end
    assert.equal("\xBD\xA0b", mime.unb64(output(id, { tail_bytes = 3, encoding = "base64" }).stdout))
  end)

  describe("of text", function()
    it("never ends inside a character", function()
      local id = ended("printf 'a\\344\\275\\240\\360\\237\\230\\200z'")
      local texts, at = {}, 0
      repeat
        local part = output(id, { stdout_offset = at, limit = 3 })
        texts[#texts + 1], at = part.stdout, part.stdout_offset
        assert.is_false(part.lossy)
      until part.eof
      assert.same({ "a", "\u{4F60}", "\u{1F600}", "z" }, texts)
      local part = output(id, { stdout_offset = 2, limit = 3 }) -- in its middle, as the client wished
      assert.same({ "\u{FFFD}\u{FFFD}", true, 4 }, { part.stdout, part.lossy, part.stdout_offset })
    end)

    it("that the program has not finished is waited for, and shown at its end", function()
      local id = waiting("printf 'x\\344\\275'", 3)
      local answer = output(id)
      assert.same({ "x", 1, 3, false }, { answer.stdout, answer.stdout_offset, answer.stdout_bytes, answer.lossy })
      assert.equal("eOS9", output(id, { encoding = "base64" }).stdout)
      stop(id)
      answer = output(id, { stdout_offset = 1 })
      assert.same({ "\u{FFFD}", 3, true, true }, { answer.stdout, answer.stdout_offset, answer.lossy, answer.eof })
    end)

    it("that is not UTF-8 is scrubbed, or exact as base64; NUL and line ends stay", function()
      local bytes = "a\xEDb\xFFc\0d\r\n\r\u{2028}\"\\\u{1F600}"
      local id = ended { argv = { "cat" }, stdin = mime.b64(bytes), stdin_encoding = "base64" }
      local answer = output(id)
      assert.same({ "a\u{FFFD}b\u{FFFD}c\0d\r\n\r\u{2028}\"\\\u{1F600}", true }, { answer.stdout, answer.lossy })
      answer = output(id, { encoding = "base64" })
      assert.same({ bytes, false }, { mime.unb64(answer.stdout), answer.lossy })
    end)
  end)

  it("shows a gap where bytes are no longer kept", function()
    local id = ended("head -c 5000000 /dev/zero | tr '\\0' x; echo >&2 e")
    local lost = 5000000 - 4 * MIB
    local answer = output(id, { limit = 4 * MIB, stderr_offset = 1 })
    assert.same({ stdout = { from = 0, to = lost } }, answer.gap)
    assert.same({ 4 * MIB, 5000000, true, "\n" }, { #answer.stdout, answer.stdout_offset, answer.eof, answer.stderr })
    assert.is_nil(output(id, { stdout_offset = lost }).gap)
    answer = output(id, { tail_bytes = 4999999, limit = 1 })
    assert.same({ stdout = { from = 1, to = lost } }, answer.gap)
    assert.same({ "x", lost + 1, false }, { answer.stdout, answer.stdout_offset, answer.eof })
  end)

  it("gives much without holding up the loop", function()
    local id = ended("head -c 4194304 /dev/zero; head -c 4194304 /dev/zero >&2")
    local conns = {}
    for i = 1, 3 do
      conns[i] = abxd:connect()
      conns[i]:send_request("GET", runs.target(id, { limit = 4 * MIB }))
    end
    check.prompt(abxd, 0.2)
    local bodies = {}
    for i, conn in ipairs(conns) do
      bodies[i] = conn:read_response().body
      conn:close()
      assert.is_true(bodies[i] == bodies[1])
    end
    local zeros = "\"" .. ("\\u0000"):rep(4 * MIB) .. "\""
    local from, to = bodies[1]:find("\"stdout\":" .. zeros, 1, true)
    assert.is_true(from ~= nil and to > 0)
    from = bodies[1]:find("\"stderr\":" .. zeros, to, true)
    assert.is_true(from ~= nil)
    assert.is_true(output(id, { limit = 4 * MIB, encoding = "base64" }).stdout == mime.b64(("\0"):rep(4 * MIB)))
  end)

  describe("waits", function()
    it("for the first byte", function()
      local id, pid = runs.start(abxd, "trap 'printf x' USR1; printf y; while :; do sleep 0.02; done")
      assert.equal("y", output(id, { wait_ms = 20000 }).stdout)
      local conn <close> = abxd:connect()
      conn:send_request("GET", runs.target(id, { wait_ms = 20000, stdout_offset = 1 }))
      uv.sleep(100)
      check.unanswered(conn)
      uv.kill(pid, "sigusr1")
      local answer = conn:read_response():json()
      assert.same({ "x", 2, false }, { answer.stdout, answer.stdout_offset, answer.eof })
      stop(id)
    end)

    it("for the end", function()
      local id, pid = waiting("exec 2>&-; printf x", 1)
      local conn <close> = abxd:connect()
      conn:send_request("GET", runs.target(id, { wait_ms = 20000, stdout_offset = 1 }))
      uv.sleep(100)
      check.unanswered(conn)
      uv.kill(pid, "sigterm")
      local answer = conn:read_response():json()
      assert.same({ "", true, 143, "SIGTERM" }, { answer.stdout, answer.eof, answer.exit_code, answer.signal })
      assert.is_true(output(id, { wait_ms = 20000, stdout_offset = 1 }).eof)
    end)

    it("no longer than it was asked to, nor for half a character", function()
      local id = waiting("printf 'x\\344\\275'", 3)
      local began = uv.hrtime()
      local answer = output(id, { wait_ms = 200, stdout_offset = 1 })
      assert.is_true(uv.hrtime() - began >= 200e6)
      assert.same({ "", 1, false, json.null }, { answer.stdout, answer.stdout_offset, answer.eof, answer.exit_code })
      stop(id)
    end)

    it("and paces nothing meanwhile, nor outlives its client", function()
      local id = runs.start(abxd, "exec sleep 3000")
      for _ = 1, 20 do
        local conn = abxd:connect()
        conn:send_request("GET", runs.target(id, { wait_ms = 300000 }))
        conn:close()
      end
      stop(id)
      id = runs.start(abxd, "sleep 0.1; head -c 30000000 /dev/zero; exit 4")
      local conn <close> = abxd:connect()
      conn:send_request("GET", runs.target(id, { wait_ms = 20000, stream = "stderr" }))
      assert.equal(4, runs.wait_end(abxd, id).exit_code)
      assert.equal(4, conn:read_response():json().exit_code)
    end)
  end)

  describe("refuses", function()
    it("what is no entry", function()
      for _, id in ipairs { "p-0123456789ab", "nothing", "%C3%A4", "0", "-1" } do
        check.problem(abxd:get("/processes/" .. id .. "/output"), 404, "process_not_found", "id")
        check.problem(abxd:get("/processes/" .. id .. "/output?follow=true"), 404, "process_not_found", "id")
      end
      local problem = check.problem(abxd:get(("/processes/%d/output"):format(uv.os_getpid())), 404, "process_not_found")
      assert.matches("no output is kept", problem.detail, 1, true)
    end)

    it("offsets beyond the end, and both ways to begin", function()
      local id = ended("printf abc")
      check.problem(abxd:get(runs.target(id, { stdout_offset = 4 })), 400, "invalid_request", "stdout_offset")
      check.problem(abxd:get(runs.target(id, { stderr_offset = 1, wait_ms = 1000 })), 400, "invalid_request",
        "stderr_offset")
      check.problem(abxd:get(runs.target(id, { stderr_offset = 1, follow = true })), 400, "invalid_request",
        "stderr_offset")
      check.problem(abxd:get(runs.target(id, { stderr_offset = 0, tail_bytes = 5 })), 400, "invalid_request", "tail_bytes")
      assert.same({ "limit", "stdout_offset", "stream" }, check.faulty_fields(abxd:get(runs.target(id, { limit = 0,
        stdout_offset = -1, stream = "x" }))))
      for _, id_seen in ipairs { "1", "1.", "x.y", "1.2.3", "-1.0", "99999999999999999999.0", "4.0", "0.1" } do
        check.problem(abxd:get(runs.target(id, { follow = true }), { headers = { ["Last-Event-ID"] = id_seen } }), 400,
          "invalid_request", "Last-Event-ID")
      end
      assert.equal("abc", check.ok(abxd:get(runs.target(id), { headers = { ["Last-Event-ID"] = "x" } })).stdout)
    end)
  end)

  it("finds a living process by its pid", function()
    local id, pid = waiting("printf abc", 3)
    assert.same({ id, "abc" }, { output(pid).id, output(pid).stdout })
    stop(id)
    check.problem(abxd:get(runs.target(pid)), 404, "process_not_found")
  end)

  it("is told for the newest, whatever a grandchild prints later", function()
    local sleep = check.sleep(4181)
    local id = ended("echo mine; (sleep 0.1; head -c 6000000 /dev/zero; touch wrote; exec " .. sleep .. ") &")
    assert.is_true(process.poll(10000, function()
      return files.exists(abxd.base_dir .. "/wrote")
    end))
    assert.same({ "mine\n", true, 5 }, { output(id).stdout, output(id).eof, output(id).stdout_bytes })
    uv.kill(check.pid_of(sleep), "sigkill")
    os.remove(abxd.base_dir .. "/wrote")
  end)

  describe("with follow", function()
    local function follow(id, query, options)
      local stream, answer = runs.follow(abxd, id, query, options)
      local events = stream:all(20)
      answer:close()
      return events
    end

    it("replays an ended process and ends with one exit", function()
      local id = ended("printf abc; printf de >&2; exit 3")
      for _ = 1, 2 do
        local events = follow(id)
        assert.same({ "start", "0.0", id }, { events[1].event, events[1].id, events[1].data.id })
        local joined = runs.join(events)
        assert.same({ "abc", "de", 1, 3, "3.2" }, { joined.stdout, joined.stderr, joined.exits, joined.exit.exit_code,
          joined.id })
        assert.equal("exit", events[#events].event)
      end
      local events = follow(id, nil, { headers = { ["Last-Event-ID"] = "3.2" } })
      assert.same({ "start", "exit" }, { events[1].event, events[2].event })
      assert.same({ 2, "3.2" }, { #events, events[1].id })
    end)

    it("begins where it is asked to, on the stream that is asked for", function()
      local id = ended("printf 'a\\344\\275\\240b'; printf de >&2")
      local joined = runs.join(follow(id, { tail_bytes = 3 }), { 4, 0 })
      assert.same({ "b", "de" }, { joined.stdout, joined.stderr })
      joined = runs.join(follow(id, { stdout_offset = 4, stderr_offset = 1 }), { 4, 1 })
      assert.same({ "b", "e" }, { joined.stdout, joined.stderr })
      joined = runs.join(follow(id, { stream = "stderr" }))
      assert.same({ "", "de", 1 }, { joined.stdout, joined.stderr, joined.exits })
      -- what a browser that comes back sends: its first query, and the id
      for _, query in ipairs { { tail_bytes = 100 }, { stdout_offset = 0 }, {} } do
        joined = runs.join(follow(id, query, { headers = { ["Last-Event-ID"] = "4.1" } }), { 4, 1 })
        assert.same({ "b", "e", 1 }, { joined.stdout, joined.stderr, joined.exits })
      end
    end)

    it("sends what comes, and its client's leaving ends nothing", function()
      local id, pid = waiting("printf abc", 3)
      local stream, answer = runs.follow(abxd, id, { tail_bytes = 0 })
      assert.same({ "start", pid }, { stream:next().event, pid })
      answer:close()
      for _ = 1, 20 do -- before it begins
        local conn = abxd:connect()
        conn:send_request("GET", runs.target(id, { follow = true }))
        conn:close()
      end
      uv.sleep(100)
      assert.equal(json.null, output(id).exit_code)
      stop(id)
    end)

    it("ends after wait_ms without an exit, and is resumed", function()
      local id = runs.start(abxd, "for i in 1 2 3 4 5; do echo $i; sleep 0.1; done")
      local first = runs.join(follow(id, { wait_ms = 250 }))
      assert.equal(0, first.exits)
      local rest = runs.join(follow(id, nil, { headers = { ["Last-Event-ID"] = first.id } }), first.offsets)
      assert.same({ "1\n2\n3\n4\n5\n", 1 }, { first.stdout .. rest.stdout, rest.exits })
    end)

    it("puts characters together that chunks cut, and marks those that never come", function()
      local id = runs.start(abxd, "printf '\\344\\275'; printf '\\360\\237' >&2; sleep .2; printf '\\240\\n'; "
        .. "printf '\\230\\200' >&2")
      local joined = runs.join(follow(id))
      assert.same({ "\u{4F60}\n", "\u{1F600}" }, { joined.stdout, joined.stderr })
      local events = follow(ended("printf 'x\\344'"))
      assert.same({ "x\u{FFFD}", true }, { events[2].data.data, events[2].data.lossy })
    end)

    it("cannot be forged by what a program prints", function()
      local forged = "10%\r20%\revent: exit\rdata: {\"code\":0}\r\r\nid: 7\n\nevent: exit\u{2028}\n\0"
      local id = runs.start(abxd, { command = "cat; exit 9", stdin = forged })
      local joined = runs.join(follow(id))
      assert.same({ forged, 1, 9 }, { joined.stdout, joined.exits, joined.exit.exit_code })
    end)

    it("shows a gap, which cuts no character", function()
      local id = ended("yes '\u{4F60}' | head -n 2000000 | tr -d '\\n'")
      local joined = runs.join(follow(id))
      local lost = 6000000 - 4 * MIB + 1 -- the ring begins in the middle of one
      assert.same({ { stream = "stdout", from = 0, to = lost } }, joined.gaps)
      assert.is_true(joined.stdout == ("\u{4F60}"):rep((6000000 - lost) // 3))
      joined = runs.join(follow(id, nil, { headers = { ["Last-Event-ID"] = "600000.0" } }), { 600000, 0 })
      assert.same({ { stream = "stdout", from = 600000, to = lost } }, joined.gaps)
    end)

    it("serves many at once, who all get all of it, and the loop stays prompt", function()
      local go = abxd.base_dir .. "/go"
      local id = runs.start(abxd, "while ! [ -e go ]; do sleep 0.05; done; head -c 300000 /dev/zero | tr '\\0' x; echo end >&2")
      local streams = {}
      for i = 1, 200 do
        streams[i] = select(2, runs.follow(abxd, id))
      end
      files.write(go, "")
      local began = uv.hrtime()
      repeat
        check.prompt(abxd, 0.1)
      until uv.hrtime() - began > 1e9
      local expected = ("x"):rep(300000)
      for i = 1, 200 do
        local joined = runs.join(sse.events(streams[i]):all(20))
        streams[i]:close()
        assert.is_true(joined.stdout == expected)
        assert.same({ "end\n", 1, 0 }, { joined.stderr, joined.exits, #joined.gaps })
      end
      os.remove(go)
    end)

    it("is paced by the fastest; one that takes nothing gets a gap", function()
      local id = runs.start(abxd, "head -c 12000000 /dev/zero | tr '\\0' x; echo >&2 done")
      local slow = select(2, runs.follow(abxd, id))
      local fast = runs.join(follow(id))
      assert.same({ 12000000, 0 }, { #fast.stdout, #fast.gaps })
      local late = runs.join(sse.events(slow):all(20))
      slow:close()
      assert.equal(1, #late.gaps)
      assert.equal(12000000, #late.stdout + late.gaps[1].to - late.gaps[1].from)
      assert.equal(1, late.exits)
    end)
  end)

  it("ends with the server, whoever follows or waits", function()
    local other = server.start()
    local id = runs.start(other, "exec sleep 3000")
    local _, stream = runs.follow(other, id)
    local conn = other:connect()
    conn:send_request("GET", runs.target(id, { wait_ms = 20000 }))
    uv.sleep(100)
    other:stop()
    conn:close()
    stream:close()
  end)

  it("of one that prints without end is bounded, with a gap, and holds nobody up", function()
    local before = abxd:rss_bytes()
    local id = runs.start(abxd, "exec yes")
    local stop_at = uv.hrtime() + 3e9
    repeat
      check.prompt(abxd, 0.1)
      uv.sleep(50)
    until uv.hrtime() > stop_at
    local answer = output(id)
    assert.is_true(answer.stdout_bytes > 4 * MIB)
    assert.same({ 0, true }, { answer.gap.stdout.from, answer.gap.stdout.to >= answer.stdout_bytes - 4 * MIB })
    assert.same({ MIB, answer.gap.stdout.to + MIB }, { #answer.stdout, answer.stdout_offset })
    assert.is_true(abxd:rss_bytes() - before < 100 * MIB)
    stop(id)
  end)

  describe("goes on where /shell left off", function()
    -- Characters of all lengths, line ends of all kinds, and NUL; 32 of 33 bytes are cut by some chunk.
    local PATTERN = "\u{4F60}\u{1F600}a\u{E9}\r\n\r\u{2028}\"\\\0\u{FFFD}z\u{1F469}\u{200D}"
    local COUNT = 60000
    local sum, path

    lazy_setup(function()
      path = abxd.root .. "/pattern"
      files.write(path, PATTERN:rep(COUNT))
      sum = check.sha256_of(path)
      assert.is_true(#PATTERN * COUNT < 4 * MIB)
    end)

    local function sha256(text)
      local copy = abxd.root .. "/copy"
      files.write(copy, text)
      return check.sha256_of(copy)
    end

    --- Prints the pattern in two halves, of odd sizes, and waits in between.
    local function command(extra)
      return ("head -c 700001 %s; %s; tail -c +700002 %s; echo e >&2; exit 5"):format(path, extra or "sleep 0.5", path)
    end

    --- Reads the rest, in parts of an odd size.
    local function read_rest(id, text, at, encoding)
      repeat
        local part = output(id, { stdout_offset = at, limit = 300007, encoding = encoding, wait_ms = 5000 })
        assert.same({ false }, { part.lossy, part.gap })
        text = text .. (encoding == "base64" and mime.unb64(part.stdout) or part.stdout)
        at = part.stdout_offset
      until part.eof
      assert.equal(#text, at)
      return text
    end

    it("after wait_ms", function()
      for _, encoding in ipairs { "utf-8", "base64" } do
        local run = check.ok(abxd:post("/shell", { command = command(), wait_ms = 200, encoding = encoding }))
        assert.is_true(run.running)
        local begun = encoding == "base64" and mime.unb64(run.stdout) or run.stdout
        assert.equal(sum, sha256(read_rest(run.id, begun, #begun, encoding)))
        local stream, answer = runs.follow(abxd, run.id, { encoding = encoding, stdout_offset = #begun })
        local joined = runs.join(stream:all(20), { #begun, 0 })
        answer:close()
        assert.equal(sum, sha256(begun .. joined.stdout))
        assert.same({ "e\n", 5, 1 }, { joined.stderr, joined.exit.exit_code, joined.exits })
      end
    end)

    it("after its client left, when asked to continue", function()
      local conn = abxd:connect()
      conn:send_request("POST", "/shell", { json = { command = "echo $$ > shell.pid; " .. command(),
        on_disconnect = "continue" } })
      assert.is_true(process.poll(5000, function()
        return files.exists(abxd.base_dir .. "/shell.pid") and files.read(abxd.base_dir .. "/shell.pid") ~= ""
      end))
      conn:close()
      local pid = files.read(abxd.base_dir .. "/shell.pid"):match("%d+")
      local id = output(pid).id
      assert.equal(sum, sha256(read_rest(id, "", 0)))
      os.remove(abxd.base_dir .. "/shell.pid")
    end)

    it("after a stream broke, by the id of the last event", function()
      for _, encoding in ipairs { "utf-8", "base64" } do
        local answer = abxd:stream("POST", "/shell/stream", { json = { command = command(), encoding = encoding,
          on_disconnect = "continue" } })
        local stream, events = sse.events(answer), {}
        for i = 1, 5 do
          events[i] = stream:next()
        end
        answer:close()
        local seen = runs.join(events)
        assert.is_true(#seen.stdout < 700002)
        local id = events[1].data.id
        local rest, rest_answer = runs.follow(abxd, id, { encoding = encoding }, { headers = { ["Last-Event-ID"] = seen.id } })
        local resumed = runs.join(rest:all(20), seen.offsets)
        rest_answer:close()
        assert.equal(0, #resumed.gaps)
        assert.equal(sum, sha256(seen.stdout .. resumed.stdout))
        assert.same({ "e\n", 5, 1 }, { resumed.stderr, resumed.exit.exit_code, resumed.exits })
      end
    end)

    it("over and over, broken after each few events", function()
      local id = runs.start(abxd, command("sleep 0.2"))
      local text, seen = "", "0.0"
      local offsets, ended_at = { 0, 0 }, nil
      for _ = 1, 200 do
        local stream, answer = runs.follow(abxd, id, nil, { headers = { ["Last-Event-ID"] = seen } })
        local events = {}
        repeat
          events[#events + 1] = stream:next()
        until #events == 4 or events[#events].event == "exit"
        answer:close()
        local joined = runs.join(events, offsets)
        text, seen, offsets = text .. joined.stdout, joined.id, joined.offsets
        if joined.exits == 1 then
          ended_at = seen
          break
        end
      end
      assert.equal(("%d.2"):format(#PATTERN * COUNT), ended_at)
      assert.equal(sum, sha256(text))
    end)
  end)
end)
