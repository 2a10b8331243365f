local cells = require("support.cells")
local check = require("support.check")
local process = require("support.process")
local uv = require("luv")

describe("POST /code/execute as a stream of events", function()
  local abxd

  lazy_setup(function()
    abxd = cells.server()
    cells.ok(abxd, "import os, sys, time")
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  it("tells start, output, results and done, once and in order", function()
    local events = cells.events(abxd, "import sys, time\nprint('a', flush=True)\ntime.sleep(.2)\n"
      .. "print('e', end='', file=sys.stderr)\n6 * 7", { context = "order" })
    assert.equal("start stdout stderr result done", cells.names(events))
    local start, done = events[1], events[5]
    assert.same({ "order", "python", "0.0" }, { start.data.context, start.data.language, start.id })
    assert.equal(done.data.engine, start.data.engine)
    assert.matches("^p%-%x+$", start.data.id)
    assert.equal("integer", math.type(start.data.pid))
    assert.same({ "2.0", { data = "a\n", offset = 0 } }, { events[2].id, events[2].data })
    assert.same({ "2.1", { data = "e", offset = 0 } }, { events[3].id, events[3].data })
    assert.same({ ["text/plain"] = "42" }, events[4].data)
    assert.equal("integer", math.type(done.data.duration_ms))
    done.data.duration_ms, done.data.engine = nil, nil
    assert.same({ status = "ok", execution_count = 1, restarted = false, truncated = false }, done.data)
    assert.equal("2.1", done.id)
    events = cells.events(abxd, "print('next')", { context = "order" })
    assert.same({ "start stdout done", "2.1", "7.1", 2 }, { cells.names(events), events[1].id, events[3].id,
      events[2].data.offset })
  end)

  it("puts a result after what was printed before it", function()
    local events = cells.events(abxd, "for i in range(5):\n  print('x' * 100000)\nprint('end')\n'value'")
    assert.equal("result done", events[#events - 1].event .. " " .. events[#events].event)
    local size = 0
    for _, event in ipairs(events) do
      size = size + (event.event == "stdout" and #event.data.data or 0)
    end
    assert.equal(500009, size)
  end)

  it("tells an exception before done", function()
    local events = cells.events(abxd, "print('before')\n1 / 0")
    assert.equal("start stdout exception done", cells.names(events))
    assert.same({ "ZeroDivisionError", "division by zero" }, { events[3].data.name, events[3].data.value })
    assert.equal("error", events[4].data.status)
  end)

  it("tells a timeout and a crash by done", function()
    local events = cells.events(abxd, "print('A', flush=True)\ntime.sleep(60)", { timeout_ms = 300 })
    assert.equal("timeout", events[#events].data.status)
    events = cells.events(abxd, "print('B', flush=True)\nimport os; os._exit(4)", { context = "crash" })
    assert.equal("start stdout exception done", cells.names(events))
    assert.same({ "crashed", "the interpreter ended with exit code 4" }, { events[4].data.status, events[3].data.value })
    events = cells.events(abxd, "1", { context = "crash" })
    assert.is_true(events[#events].data.restarted)
  end)

  it("is chosen by Accept alone", function()
    local function type_for(accept)
      local answer = abxd:post("/code/execute", { code = "1" }, { headers = { Accept = accept } })
      return answer.headers["content-type"]
    end
    assert.same({ "text/event-stream", "text/event-stream", "application/json", "application/json", "application/json" }, {
      type_for("text/event-stream"), type_for("application/json;q=0.5, Text/Event-Stream; q=1"),
      type_for("text/event-stream;q=0"), type_for("*/*"), type_for("application/json"),
    })
  end)

  it("refuses before the first event", function()
    local headers = { Accept = "text/event-stream" }
    check.problem(abxd:post("/code/execute", { code = "1", cwd = "/" }, { headers = headers }), 403, "path_outside_base", "cwd")
    check.problem(abxd:post("/code/execute", { code = "1", context = "" }, { headers = headers }), 400, "invalid_request",
      "context")
  end)

  it("sends characters whole, and ends with one that is cut", function()
    local events, text = cells.events(abxd, "os.write(1, b'\\xe2\\x82'); time.sleep(.2); os.write(1, b'\\xac!'); None")
    assert.equal("\u{20ac}!", text.stdout)
    assert.equal("done", events[#events].event)
    events, text = cells.events(abxd, "os.write(1, b'x\\xe2\\x82'); None")
    assert.equal("x\u{FFFD}", text.stdout)
    assert.is_true(events[#events - 1].data.lossy)
  end)

  it("sends much output whole to a slow client, in flat memory", function()
    cells.ok(abxd, "import sys", { context = "much" })
    local before = abxd:rss_bytes()
    -- Results on the way must not make the server read ahead of the client.
    local stream = cells.stream(abxd, "for i in range(100):\n  sys.stdout.write('x' * 999999 + '\\n')\n"
      .. "  if i % 10 == 0: display(i)\nprint('end')",
      { context = "much", timeout_ms = 0 })
    stream:wait("start")
    uv.sleep(1500)
    assert.is_true(abxd:rss_bytes() - before < 64 * 1024 * 1024)
    local size, next_offset, last = 0, nil, nil
    for event in function() return stream:next(60) end do
      assert.is_not.equal("gap", event.event)
      if event.event == "stdout" then
        assert.equal(next_offset or event.data.offset, event.data.offset)
        next_offset = event.data.offset + #event.data.data
        size = size + #event.data.data
      end
      last = event
    end
    stream.response:close()
    assert.same({ 100000004, "done", "ok" }, { size, last.event, last.data.status })
    assert.is_true(abxd:rss_bytes() - before < 64 * 1024 * 1024)
  end)

  it("keeps the state at a timeout although the client takes nothing and a print is blocked", function()
    local code = {
      python = "kept = 'yes'\nwhile True: print('y' * 1000)",
      javascript = "var kept = 'yes'; while (true) console.log('y'.repeat(1000))",
    }
    local streams = {}
    for language, text in pairs(code) do
      streams[language] = cells.stream(abxd, text, { context = "stalled", language = language, timeout_ms = 500 })
    end
    uv.sleep(6500) -- what does not answer by then is ended
    for language, stream in pairs(streams) do
      local last
      for event in function() return stream:next(60) end do
        last = event
      end
      stream.response:close()
      assert.same({ language, "done", "timeout" }, { language, last.event, last.data.status })
      local answer = cells.run(abxd, "kept", { context = "stalled", language = language })
      assert.same({ "ok", false, "'yes'" }, { answer.status, answer.restarted, answer.results[1]["text/plain"] })
    end
  end)

  describe("when the client leaves", function()
    local function interrupted(context)
      local answer
      assert.is_true(process.poll(10000, function()
        answer = cells.run(abxd, "state, ended", { context = context })
        return answer.results[1] ~= nil
      end))
      assert.same({ "('kept', True)", false }, { answer.results[1]["text/plain"], answer.restarted })
    end
    local CODE = "state = 'kept'; ended = False\nimport time\ntry:\n  print('go', flush=True)\n  time.sleep(600)\n"
      .. "finally:\n  ended = True"

    it("a stream is interrupted and its state stays", function()
      local stream = cells.stream(abxd, CODE, { context = "left", timeout_ms = 0 })
      stream:wait("stdout")
      stream.response:close()
      interrupted("left")
    end)

    it("a plain answer is interrupted and its state stays", function()
      cells.ok(abxd, "1", { context = "gone" })
      local conn = cells.send(abxd, CODE, { context = "gone", timeout_ms = 0 })
      uv.sleep(500)
      check.unanswered(conn)
      conn:close()
      interrupted("gone")
    end)
  end)
end)
