local cells = require("support.cells")

local javascript = cells.of("javascript")

describe("JavaScript in POST /code/execute", function()
  local abxd

  local function ok(code, fields)
    return javascript.ok(abxd, code, fields)
  end
  local function run(code, fields)
    return javascript.run(abxd, code, fields)
  end
  local function value(code, fields)
    return javascript.value(abxd, code, fields)
  end

  lazy_setup(function()
    abxd = cells.server()
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  it("takes every way of declaring a name again, with the new value", function()
    local ways = { "const n = %d", "let n = %d", "var n = %d", "function n() {} n = %d", "class n {} n = %d",
      "const { n } = { n: %d }" }
    local count = 0
    for _, first in ipairs(ways) do
      for _, second in ipairs(ways) do
        count = count + 1
        ok(first:format(0))
        ok(second:format(count))
        assert.equal(tostring(count), value("n"))
      end
    end
    assert.equal("undefined", value("let n; typeof n"):gsub("'", ""))
  end)

  it("awaits at the top level, and a promise that is the last value", function()
    assert.equal("5", value("await new Promise((done) => setTimeout(done, 5, 5))"))
    local answer = ok("const main = async () => { await 1; console.log('late'); return 7 }; main()")
    assert.same({ "late\n", "7" }, { answer.stdout, answer.results[1]["text/plain"] })
    assert.same({ "error", "RangeError", "no" },
      (function(failed) return { failed.status, failed.error.name, failed.error.value } end)(
        run("Promise.reject(new RangeError('no'))")))
  end)

  it("imports and requires relative to its directory", function()
    local cwd = abxd.base_dir .. "/modules"
    ok(([[require("fs").mkdirSync(%q, { recursive: true }); process.chdir(%q);
      fs.writeFileSync("one.cjs", "module.exports = 11"); fs.writeFileSync("two.mjs", "export default 22; export const b = 33")]])
      :format(cwd, cwd))
    assert.equal("11", value("require('./one.cjs')"))
    assert.equal("55", value("import two, { b } from './two.mjs'\nimport * as all from './two.mjs';\ntwo + all.b"))
    assert.equal("22", value("(await import('./two.mjs')).default"))
    assert.equal("'x'", value("import { basename } from 'node:path'; basename('/a/x')"))
  end)

  it("shows values: JSON where that says the same, nothing for undefined, what display() is given", function()
    local answer = ok("({ a: [1, 'b'] })")
    assert.same({ { ["text/plain"] = "{ a: [ 1, 'b' ] }", ["application/json"] = { a = { 1, "b" } } } }, answer.results)
    assert.is_nil(ok("[new Map(), undefined]").results[1]["application/json"])
    assert.same({}, ok("let nothing = 1; undefined").results)
    answer = ok("'x'.repeat(2 << 20)")
    assert.equal(#"''" + (2 << 20), #answer.results[1]["text/plain"])
    assert.is_false(answer.truncated)
    answer = ok("'x'.repeat(9 << 20)")
    assert.same({}, answer.results)
    assert.is_true(answer.truncated)
    answer = ok("display({ 'text/html': '<b>' }); display([1]); 'end'")
    assert.same({ ["text/html"] = "<b>" }, answer.results[1])
    assert.same({ "[ 1 ]", "'end'" }, { answer.results[2]["text/plain"], answer.results[3]["text/plain"] })
  end)

  it("tells errors without frames of its own", function()
    local answer = run("function f() {\n  throw new TypeError('boo') }\nf()", { context = "errors" })
    assert.same({ "error", "TypeError", "boo" }, { answer.status, answer.error.name, answer.error.value })
    assert.equal("TypeError: boo\n    at f (cell-1:2:9)\n    at cell-1:3:1", answer.error.traceback)
    answer = run("\nlet ) = 1", { context = "errors" })
    assert.equal("SyntaxError", answer.error.name)
    assert.matches("^cell%-2:2\n", answer.error.traceback)
    answer = run("throw { code: 3 }", { context = "errors" })
    assert.same({ "Uncaught", "{ code: 3 }" }, { answer.error.name, answer.error.value })
  end)

  it("shows errors and values that do not let themselves be shown", function()
    for _, case in ipairs {
      { "throw { [Symbol.for('nodejs.util.inspect.custom')]() { throw 2 } }", "Uncaught", "<a value that cannot be shown>" },
      { "throw new (class extends Error { get message() { throw 3 } get name() { throw 4 } get stack() { throw 5 } })()",
        "Error", "<a message that cannot be read>" },
      { "throw new Proxy({}, { get() { throw 7 }, getPrototypeOf() { throw 9 } })", "Uncaught" },
    } do
      local answer = run(case[1], { context = "hidden" })
      assert.same({ case[1], "error" }, { case[1], answer.status })
      assert.same({ case[2], case[3] or answer.error.value }, { answer.error.name, answer.error.value })
    end
    assert.equal("1", value("1", { context = "hidden" }))
  end)

  it("says halves of characters and deep values in JSON that everybody reads", function()
    local answer = run("display({ 'text/plain': '\\ud83dx \\\\ud83d \u{1f600}' }); throw new Error('\u{1f600}'.slice(1))")
    assert.same({ "error", "\u{fffd}x \\ud83d \u{1f600}", "\u{fffd}" },
      { answer.status, answer.results[1]["text/plain"], answer.error.value })
    answer = ok("let deep = {}; for (let i = 0; i < 100; i++) deep = { a: deep }; "
      .. "display({ 'application/json': deep }); deep")
    local at, depth = answer.results[1]["application/json"], 0
    while type(at) == "table" do
      at, depth = at.a, depth + 1
    end
    assert.same({ "…", 47 }, { at, depth })
    assert.is_nil(answer.results[2]["application/json"])
  end)

  it("answers although a cell has replaced what it stands on", function()
    ok("JSON.stringify = () => 'x'; JSON.parse = null; Promise = null; Array.prototype.map = null; "
      .. "Object.prototype.kind = 'run'; undefined", { context = "replaced" })
    assert.equal("[ [ 1 ] ]", value("[[1]]", { context = "replaced" }))
  end)

  it("interrupts loops, promises, timers and children, and keeps the state", function()
    ok("const kept = 41", { context = "slow" })
    for _, code in ipairs {
      "while (true) {}", "await 1; while (true) {}", "await new Promise(() => {})", "for (;;) await null",
      "try { while (true) {} } finally { while (true) {} }",
      "setTimeout(() => { while (true) {} }, 1); await new Promise(() => {})",
      "({ toJSON() { while (true) {} } })", "/^(a+)+$/.test('a'.repeat(60) + 'b')",
      "require('child_process').execSync('sleep 100; sleep 100')",
    } do
      local answer = run(code, { context = "slow", timeout_ms = 300 })
      assert.same({ code, "timeout", false }, { code, answer.status, answer.restarted })
      assert.same({ name = "Timeout", value = "the time-out of 300 ms is over", traceback = "" }, answer.error)
      assert.equal("42", value("kept + 1", { context = "slow" }))
    end
  end)

  it("lets nothing of an interrupted cell speak later", function()
    for _, sleep in ipairs { "new Promise((done) => setTimeout(done, 600))", "require('timers/promises').setTimeout(600)",
      "require('util').promisify(setTimeout)(600)" } do
      local answer = run("console.log('A'); await " .. sleep .. "; console.log('LATE')", { timeout_ms = 200 })
      assert.same({ "timeout", "A\n" }, { answer.status, answer.stdout })
      assert.equal("B\n",
        javascript.stdout(abxd, "console.log('B'); await new Promise((done) => setTimeout(done, 800)); undefined"))
    end
  end)

  it("survives what nobody caught", function()
    ok("const survivor = 1", { context = "uncaught" })
    local answer = run([[setTimeout(() => { throw new Error("timer") }, 1); Promise.reject(new Error("nobody"));
      await new Promise((done) => setTimeout(done, 50)); survivor]], { context = "uncaught" })
    assert.same({ "ok", "1" }, { answer.status, answer.results[1]["text/plain"] })
    assert.matches("Uncaught Error: timer", answer.stderr)
    assert.matches("Unhandled rejection: Error: nobody", answer.stderr)
  end)

  it("says that the process ended, and begins afresh", function()
    ok("const lost = 1", { context = "gone" })
    local answer = run("console.log('last words'); process.exit(3)", { context = "gone" })
    assert.same({ "crashed", "Crashed", "last words\n", "" },
      { answer.status, answer.error.name, answer.stdout, answer.stderr })
    assert.matches("exit code 3", answer.error.value)
    answer = run("typeof lost", { context = "gone" })
    assert.same({ true, "'undefined'" }, { answer.restarted, answer.results[1]["text/plain"] })
  end)

  it("writes all output before the answer, in order, its children's too", function()
    local answer = run([[console.log("one"); require("child_process").execSync("echo two", { stdio: "inherit" });
      process.stdout.write("three\n"); console.error("err"); undefined]])
    assert.same({ "one\ntwo\nthree\n", "err\n" }, { answer.stdout, answer.stderr })
    local _, text = javascript.events(abxd, "for (let i = 0; i < 20000; i++) console.log('x'.repeat(999)); undefined")
    assert.equal(20000 * 1000, #text.stdout)
  end)

  it("has an empty standard input, and gives its children no descriptor of its own", function()
    assert.equal("0", value("fs.readFileSync(0).length"))
    assert.equal("0 1 2 3\n", javascript.stdout(abxd,
      "console.log(require('child_process').execSync('ls /proc/self/fd').toString().trim().split('\\n').join(' '))"))
  end)

  it("takes variables and a directory that stay", function()
    assert.equal("[ 'v', '" .. abxd.base_dir .. "' ]",
      value("[process.env.NEW, process.cwd()]", { context = "env", env = { NEW = "v" }, cwd = "." }))
    assert.equal("'v'", value("process.env.NEW", { context = "env" }))
  end)
end)
