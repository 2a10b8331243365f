local cells = require("support.cells")
local check = require("support.check")
local files = require("support.files")
local process = require("support.process")

local javascript = cells.of("javascript") -- its interpreter starts in no time
local FOREVER = "await new Promise(done => setTimeout(done, 600000))"

local function count(abxd, context)
  local answer = javascript.ok(abxd, "globalThis.n = (globalThis.n ?? 0) + 1", { context = context })
  return tonumber(answer.results[1]["text/plain"]), answer.restarted, answer
end

local function home_of(abxd)
  local answer = cells.ok(abxd, "process.env.HOME", { language = "javascript" })
  return answer.results[1]["text/plain"]:match("^'(.*)'$"), answer
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
      busy[index] = javascript.stream(abxd, FOREVER, { context = "c" .. index, timeout_ms = 0 })
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
    assert.equal("yes\n", javascript.stdout(abxd, "console.log(process.env.SET_LATER)", { context = "c" }))
  end)

  it("are entries of the process table, which may be signalled", function()
    local abxd <close> = cells.server()
    local answer = javascript.ok(abxd, "1")
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
    assert.is_true(javascript.ok(abxd, "1").restarted)
    local stream = javascript.stream(abxd, FOREVER, { timeout_ms = 0 })
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
    local home, answer = home_of(abxd)
    assert.is_true(files.exists(home))
    local stream = javascript.stream(abxd, FOREVER, { context = "busy", timeout_ms = 0 })
    local pid = stream:wait("start").data.pid
    abxd:stop()
    assert.is_false(files.exists(home))
    assert.is_false(files.exists("/proc/" .. pid))
    assert.is_false(files.exists("/proc/" .. answer.pid))
    stream.response:close()
  end)

  it("leave what goes at the next start where the server was killed", function()
    local dir = files.mkdtemp()
    local lives <close> = cells.server { env = { TMPDIR = dir } }
    local kept = home_of(lives)
    local abxd = cells.server { env = { TMPDIR = dir } }
    local home, answer = home_of(abxd)
    abxd:kill()
    assert.is_truthy(process.poll(10000, function()
      return not files.exists("/proc/" .. answer.pid)
    end))
    assert.same({ true, true }, { files.exists(home), files.exists(kept) })
    local next_one <close> = cells.server { env = { TMPDIR = dir } }
    assert.is_truthy(process.poll(10000, function()
      return not files.exists((home:gsub("/home$", "")))
    end))
    assert.is_true(files.exists(kept))
    next_one:stop()
    lives:stop()
    assert.same({}, files.list(dir))
    files.remove_tree(dir)
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
