local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local mime = require("mime")
local process = require("support.process")
local server = require("support.server")
local sse = require("support.sse")
local uv = require("luv")

local SLEEP = check.sleep

describe("POST /shell/stream", function()
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

  local function open(command, fields)
    fields = fields or {}
    fields.command = command
    local answer = abxd:stream("POST", "/shell/stream", { json = fields })
    assert.equal(200, answer.status)
    return sse.events(answer)
  end

  --- All events of a run, its joined output, and its exit.
  local function run(command, fields)
    local stream = open(command, fields)
    local events = stream:all(20)
    stream.response:close()
    local text = { stdout = {}, stderr = {} }
    for _, event in ipairs(events) do
      if text[event.event] then
        table.insert(text[event.event], event.data.encoding == "base64" and mime.unb64(event.data.data) or event.data.data)
      end
    end
    assert.equal("exit", events[#events].event)
    return events, table.concat(text.stdout), table.concat(text.stderr), events[#events].data
  end

  it("sends start, output with offsets, and exit with every field", function()
    local answer = abxd:stream("POST", "/shell/stream", { json = { command = "echo ab; sleep .3; echo c; exit 3" } })
    assert.same({ 200, "text/event-stream", "no-cache", "no" }, { answer.status, answer.headers["content-type"],
      answer.headers["cache-control"], answer.headers["x-accel-buffering"] })
    local events = sse.events(answer):all(10)
    answer:close()
    assert.equal(4, #events)
    local start, exit = events[1], events[4]
    assert.same({ "start", "0.0" }, { start.event, start.id })
    assert.is_string(start.data.id)
    assert.equal("integer", math.type(start.data.pid))
    assert.matches("^%d+%-%d%d%-%d%dT[%d:]+%.%d%d%dZ$", start.data.started_at)
    assert.same({ "stdout", "3.0", { data = "ab\n", offset = 0 } }, { events[2].event, events[2].id, events[2].data })
    assert.same({ "stdout", "5.0", { data = "c\n", offset = 3 } }, { events[3].event, events[3].id, events[3].data })
    assert.same({ "exit", "5.0" }, { exit.event, exit.id })
    assert.equal("integer", math.type(exit.data.duration_ms))
    assert.equal(start.data.started_at, exit.data.started_at)
    exit.data.duration_ms, exit.data.started_at = nil, nil
    assert.same({ exit_code = 3, signal = json.null, timed_out = false }, exit.data)
  end)

  it("keeps the streams apart", function()
    local _, out, err, exit = run("echo o; echo e >&2; kill -9 $$")
    assert.same({ "o\n", "e\n", 137, "SIGKILL" }, { out, err, exit.exit_code, exit.signal })
  end)

  it("sends a byte as soon as it was written", function()
    local stream = open("echo now; sleep 3000")
    assert.equal("now\n", stream:wait("stdout").data.data)
    stream.response:close()
  end)

  describe("text", function()
    it("cut inside a character is put together again, on each stream by itself", function()
      local _, out, err = run("printf '\\344\\275'; printf '\\360\\237' >&2; sleep .3; printf '\\240\\n'; "
        .. "printf '\\230\\200' >&2")
      assert.same({ "\u{4F60}\n", "\u{1F600}" }, { out, err })
    end)

    it("that ends inside a character ends with one U+FFFD", function()
      local events, out = run("printf 'x\\344'")
      assert.equal("x\u{FFFD}", out)
      assert.is_true(events[#events - 1].data.lossy)
    end)

    it("that is not UTF-8 is scrubbed, or exact as base64", function()
      local _, out = run("printf 'a\\355b\\377c\\000d'")
      assert.equal("a\u{FFFD}b\u{FFFD}c\0d", out)
      local events, exact = run("printf 'a\\355b\\377c\\000d'", { encoding = "base64" })
      assert.equal("a\xEDb\xFFc\0d", exact)
      assert.equal("base64", events[2].data.encoding)
    end)

    it("cannot forge events", function()
      local forged = "10%\r20%\revent: exit\rdata: {\"code\":0}\r\r\nid: 7\n\nevent: exit\u{2028}\n"
      local events, out, _, exit = run("cat; exit 9", { stdin = forged })
      local exits = 0
      for _, event in ipairs(events) do
        exits = exits + (event.event == "exit" and 1 or 0)
      end
      assert.same({ forged, 9, 1 }, { out, exit.exit_code, exits })
      assert.equal("no newline", select(2, run("printf 'no newline'")))
    end)
  end)

  it("delivers every byte of long output, in order", function()
    local _, out = run("seq 1 200000; " .. SLEEP(4161) .. " &")
    assert.equal(1288895, #out)
    assert.equal("199999\n200000\n", out:sub(-14))
    uv.kill(check.pid_of(SLEEP(4161)), "sigkill")
    local events, exact = run("head -c 20000000 /dev/zero", { encoding = "base64" })
    assert.is_true(exact == ("\0"):rep(20000000))
    local next_offset = 0
    for _, event in ipairs(events) do
      if event.event == "stdout" then
        assert.equal(next_offset, event.data.offset)
        next_offset = next_offset + #mime.unb64(event.data.data)
        assert.equal(next_offset .. ".0", event.id)
      end
    end
  end)

  it("slows the program down for a slow client, in flat memory", function()
    local before = abxd:rss_bytes()
    local stream = open("head -c 150000000 /dev/zero; echo >&2 done", { encoding = "base64" })
    stream:wait("start")
    uv.sleep(1500)
    assert.is_true(abxd:rss_bytes() - before < 64 * 1024 * 1024)
    local size, last = 0, nil
    for event in function() return stream:next() end do
      assert.is_not.equal("gap", event.event)
      if event.event == "stdout" then
        assert.equal(size, event.data.offset)
        size = size + #event.data.data // 4 * 3 - select(2, event.data.data:sub(-2):gsub("=", ""))
      end
      last = event
    end
    stream.response:close()
    assert.same({ 150000000, "exit", 0 }, { size, last.event, last.data.exit_code })
    assert.is_true(abxd:rss_bytes() - before < 64 * 1024 * 1024)
  end)

  it("tells a timeout by the exit event", function()
    local _, out, _, exit = run("echo before; " .. SLEEP(4162), { timeout_ms = 500 })
    assert.same({ "before\n", true, 143, "SIGTERM" }, { out, exit.timed_out, exit.exit_code, exit.signal })
    assert.equal(0, check.gone(SLEEP(4162)))
  end)

  describe("refuses before the first event", function()
    local cases = {
      { "a missing program", { argv = { "nosuchcmd_x" } }, 404, "executable_not_found", "argv[0]" },
      { "a missing cwd", { command = "true", cwd = "nowhere" }, 400, "bad_cwd", "cwd" },
      { "a cwd outside", { command = "true", cwd = "/" }, 403, "path_outside_base", "cwd" },
      { "nothing to run", {}, 400, "invalid_request", "command" },
      { "a session with argv", { argv = { "true" }, session = "s" }, 400, "invalid_request", "session" },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        check.problem(abxd:post("/shell/stream", case[2]), case[3], case[4], case[5])
      end)
    end
  end)

  describe("when the client leaves", function()
    local function leave(command, fields)
      local stream = open(command, fields)
      stream:wait("start")
      assert.is_true(process.poll(5000, function()
        return #check.pids_of("sleep " .. command:match("sleep ([%d.]+)")) == 1
      end))
      stream.response:close()
    end

    it("ends what writes", function()
      leave("(" .. SLEEP(4163) .. " &) ; while :; do echo x; sleep .05; done")
      assert.equal(0, check.gone(SLEEP(4163)))
    end)

    it("ends what is silent", function()
      leave("setsid " .. SLEEP(4164) .. " & wait")
      assert.equal(0, check.gone(SLEEP(4164)))
    end)

    it("or lets it go on when asked to", function()
      leave(SLEEP(4165) .. "; :", { on_disconnect = "continue" })
      uv.sleep(1500)
      local pids = check.pids_of(SLEEP(4165))
      assert.equal(1, #pids)
      uv.kill(pids[1], "sigkill")
    end)
  end)

  it("sends a comment every 15 seconds while nothing happens", function()
    local stream = open("sleep 16; echo end")
    assert.equal("end\n", stream:wait("stdout", 30).data.data)
    assert.equal(1, stream.comments)
    stream:all()
    stream.response:close()
  end)

  it("answers HTTP/1.0 clients by closing at the end", function()
    local body = json.encode { command = "echo old" }
    local conn = abxd:connect()
    conn:send(("POST /shell/stream HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      .. "Content-Length: %d\r\n\r\n%s"):format(#body, body))
    local answer = conn:read_response()
    conn:close()
    local events = sse.parse(answer.body)
    assert.same({ "old\n", "exit" }, { events[2].data.data, events[3].event })
  end)

  it("leaves no file behind in the base", function()
    assert.same({}, files.list(abxd.base_dir))
  end)
end)
