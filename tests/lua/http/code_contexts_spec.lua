local cells = require("support.cells")
local check = require("support.check")
local files = require("support.files")
local process = require("support.process")

-- JavaScript: its interpreter starts in no time.
local function count(abxd, context)
  local answer = cells.ok(abxd, "globalThis.n = (globalThis.n ?? 0) + 1", { context = context, language = "javascript" })
  return tonumber(answer.results[1]["text/plain"]), answer.restarted, answer
end

describe("contexts of code", function()
  it("give way, the longest idle one first, and tell their loss", function()
    local abxd <close> = cells.server()
    for index = 1, 8 do
      assert.equal(1, (count(abxd, "c" .. index)))
    end
    assert.equal(2, (count(abxd, "c1")))
    assert.equal(1, (count(abxd, "c9"))) -- in the place of c2
    assert.equal(3, (count(abxd, "c1")))
    local n, restarted = count(abxd, "c2")
    assert.same({ 1, true }, { n, restarted })
    n, restarted = count(abxd, "c2")
    assert.same({ 2, false }, { n, restarted })
  end)

  it("are refused while eight are busy", function()
    local abxd <close> = cells.server()
    local busy = {}
    for index = 1, 8 do
      busy[index] = cells.stream(abxd, "await new Promise(done => setTimeout(done, 600000))",
        { context = "c" .. index, language = "javascript", timeout_ms = 0 })
      busy[index]:wait("start")
    end
    local answer = abxd:post("/code/execute", { code = "1", context = "ninth", language = "javascript" })
    check.problem(answer, 429, "too_many_requests")
    assert.is_string(answer.headers["retry-after"])
    for index = 1, 8 do
      busy[index].response:close()
    end
  end)

  it("have a spare started ahead, which the next one takes", function()
    local abxd <close> = cells.server()
    local _, _, first = count(abxd, "a")
    local spare
    assert.is_true(process.poll(10000, function()
      local living = cells.processes(abxd)
      spare = living[1] and living[1].pid ~= first.pid and living[1] or living[2]
      return #living == 2
    end))
    local _, _, second = count(abxd, "b")
    assert.equal(spare.pid, second.pid)
    -- One that was started before is told what POST /env set since.
    assert.is_true(process.poll(10000, function()
      return #cells.processes(abxd) == 3
    end))
    check.ok(abxd:post("/env", { set = { SET_LATER = "yes" } }))
    assert.equal("yes\n", cells.stdout(abxd, "console.log(process.env.SET_LATER)", { context = "c", language = "javascript" }))
  end)

  it("are entries of the process table, which may be signalled", function()
    local abxd <close> = cells.server()
    local answer = cells.ok(abxd, "1", { language = "javascript" })
    local entry = cells.processes(abxd)[1]
    assert.same({ "code", answer.id, answer.pid, "javascript" }, { entry.kind, entry.id, entry.pid, entry.tag })
    check.ok(abxd:post("/processes/" .. answer.id .. "/signal", { signal = "KILL" }))
    assert.is_true(process.poll(10000, function()
      for _, living in ipairs(cells.processes(abxd)) do
        if living.pid == answer.pid then
          return false
        end
      end
      return true
    end))
    assert.is_true(cells.ok(abxd, "1", { language = "javascript" }).restarted)
    local stream = cells.stream(abxd, "await new Promise(done => setTimeout(done, 600000))",
      { language = "javascript", timeout_ms = 0 })
    local id = stream:wait("start").data.id
    check.ok(abxd:post("/processes/" .. id .. "/signal", { signal = "KILL" }))
    local exception = stream:wait("exception")
    assert.equal("the interpreter was ended by SIGKILL", exception.data.value)
    assert.equal("crashed", stream:wait("done").data.status)
    stream.response:close()
  end)

  it("outlive a reload of the tables", function()
    local abxd <close> = cells.server()
    count(abxd, "a")
    abxd:reload()
    local n, restarted = count(abxd, "a")
    assert.same({ 2, false }, { n, restarted })
  end)

  it("leave nothing behind at the end of the server", function()
    local abxd = cells.server()
    local answer = cells.ok(abxd, "process.env.HOME", { language = "javascript" })
    local home = answer.results[1]["text/plain"]:gsub("^'(.*)'$", "%1")
    assert.is_true(files.exists(home))
    local stream = cells.stream(abxd, "await new Promise(done => setTimeout(done, 600000))",
      { context = "busy", language = "javascript", timeout_ms = 0 })
    local pid = stream:wait("start").data.pid
    abxd:stop()
    assert.is_false(files.exists(home))
    assert.is_false(files.exists("/proc/" .. pid))
    assert.is_false(files.exists("/proc/" .. answer.pid))
    stream.response:close()
  end)

  it("name the package that is missing", function()
    local dir = files.mkdtemp()
    local abxd <close> = cells.server { env = { PATH = dir } }
    for language, package in pairs { python = "python3", javascript = "nodejs" } do
      local problem = check.problem(abxd:post("/code/execute", { code = "1", language = language }), 503, "unavailable")
      assert.matches(package, problem.detail)
    end
    files.remove_tree(dir)
  end)
end)
