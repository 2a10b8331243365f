local browser = require("support.browser")
local json = require("support.json")
local pages = require("support.pages")

local FORM = [[<!doctype html><title>form</title>
<button id=b>press</button> <p class=many>1</p><p class=many>2</p>
<form action=/index.html><input id=i name=q value=ab><textarea id=t></textarea></form><input id=off disabled>
<div contenteditable id=e>old</div><a href="/index.html" id=link>go</a>
<div style="position:relative"><button id=under>u</button><div style="position:absolute;inset:0"></div></div>
<button id=hidden style="display:none">h</button>
<script>
window.seen = [];
const note = (e) => seen.push([e.type, e.button ?? null, e.shiftKey ?? null, e.key ?? null]);
for (const element of [b, i])
  for (const type of ['click', 'dblclick', 'contextmenu', 'auxclick']) element.addEventListener(type, note);
i.addEventListener('keydown', note);
setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<button id=late onclick="seen.push(`late`)">l</button>'), 300);
</script>]]

describe("the browser acts on pages", function()
  local abxd, web

  lazy_setup(function()
    web = pages.start { ["form.html"] = FORM, ["index.html"] = "<title>index</title><p>index" }
    abxd = browser.server()
  end)
  lazy_teardown(function()
    abxd:stop()
    web:stop()
  end)
  before_each(function()
    browser.go(abxd, web:url("form.html"))
  end)

  local function seen()
    return browser.value(abxd, "seen.splice(0)")
  end

  describe("click", function()
    it("presses what the selector finds, by the ways of Playwright", function()
      for _, selector in ipairs { "#b", "text=press", "role=button[name=press]", "//button[1]", "button >> nth=0" } do
        local answer = browser.ok(abxd, "click", { selector = selector })
        assert.same({ "default", web:url("form.html"), "form", false }, { answer.page, answer.url, answer.title, answer.fresh })
        assert.same({ { "click", 0, false, json.null } }, seen(), selector)
      end
    end)

    it("does so with another button, more often, and with keys held", function()
      browser.ok(abxd, "click", { selector = "#b", button = "right" })
      local got = seen()
      table.sort(got, function(a, b)
        return a[1] < b[1]
      end)
      assert.same({ { "auxclick", 2, false, json.null }, { "contextmenu", 2, false, json.null } }, got)
      browser.ok(abxd, "click", { selector = "#b", click_count = 2, modifiers = { "Shift" } })
      local click = { "click", 0, true, json.null }
      assert.same({ click, click, { "dblclick", 0, true, json.null } }, seen())
    end)

    it("waits for the element", function()
      browser.ok(abxd, "click", { selector = "#late" })
      assert.same({ "late" }, seen())
    end)

    it("takes the first of many", function()
      browser.ok(abxd, "click", { selector = ".many" })
    end)

    it("tells what cannot be clicked, and why", function()
      for id, words in pairs { none = "none", under = "intercept", hidden = "visible", off = "enabled" } do
        local fields = { selector = "#" .. id, timeout_ms = 3000 }
        assert.matches(words, browser.problem(abxd, "click", fields, 422, "element_not_found", "selector").detail)
      end
      for _, selector in ipairs { "[", "text=/(/", "nosuchengine=x" } do
        browser.problem(abxd, "click", { selector = selector }, 400, "invalid_request", "selector")
      end
    end)

    it("answers after the page that it leads to is there", function()
      local answer = browser.ok(abxd, "click", { selector = "#link" })
      assert.same({ web:url("index.html"), "index" }, { answer.url, answer.title })
    end)
  end)

  describe("type", function()
    it("adds at the end, or begins anew", function()
      browser.ok(abxd, "type", { selector = "#i", text = "cd" })
      assert.equal("abcd", browser.value(abxd, "i.value"))
      browser.ok(abxd, "type", { selector = "#i", text = "ä€😀", clear = true })
      assert.equal("ä€😀", browser.value(abxd, "i.value"))
      browser.ok(abxd, "type", { selector = "#i", text = "", clear = true })
      assert.equal("", browser.value(abxd, "i.value"))
      browser.ok(abxd, "type", { selector = "#t", text = "two\nlines" })
      assert.equal("two\nlines", browser.value(abxd, "t.value"))
      browser.ok(abxd, "type", { selector = "#e", text = "er" })
      assert.equal("older", browser.value(abxd, "e.textContent"))
    end)

    it("presses key after key where there is a delay", function()
      browser.ok(abxd, "type", { selector = "#i", text = "xy", delay_ms = 1 })
      assert.equal("abxy", browser.value(abxd, "i.value"))
      local keys = {}
      for _, event in ipairs(seen()) do
        if event[1] == "keydown" then
          keys[#keys + 1] = event[4]
        end
      end
      assert.same({ "x", "y" }, keys)
    end)

    it("submits", function()
      local answer = browser.ok(abxd, "type", { selector = "#i", text = "c d", submit = true })
      assert.same({ web:url("index.html?q=abc+d"), "index" }, { answer.url, answer.title })
    end)

    it("tells what cannot be typed into", function()
      for selector, clear in pairs { ["#none"] = false, ["#off"] = false, ["#b"] = true } do
        local fields = { selector = selector, text = "a", clear = clear, timeout_ms = 500 }
        browser.problem(abxd, "type", fields, 422, "element_not_found", "selector")
      end
      browser.problem(abxd, "type", { selector = "[", text = "a" }, 400, "invalid_request", "selector")
    end)

    it("takes a long text", function()
      local text = ("0123456789abcdef"):rep(60000)
      browser.ok(abxd, "type", { selector = "#t", text = text })
      assert.equal(#text, browser.value(abxd, "t.value.length"))
    end)
  end)

  describe("evaluate", function()
    it("answers with the value and its type", function()
      for expression, expected in pairs {
        ["1 + 1"] = { 2, "number" }, ["'a' + 'ä'"] = { "aä", "string" }, ["true"] = { true, "boolean" },
        ["null"] = { json.null, "null" }, ["undefined"] = { json.null, "undefined" },
        ["({a: [1, {b: 2}]})"] = { { a = { 1, { b = 2 } } }, "object" }, ["[]"] = { json.array {}, "array" },
        ["10n ** 20n"] = { "100000000000000000000", "bigint" }, ["NaN"] = { json.null, "number" },
        ["new Date(0)"] = { "1970-01-01T00:00:00.000Z", "date" }, ["document.body"] = { json.null, "node" },
        ["Promise.resolve(7)"] = { 7, "number" },
        ["await Promise.resolve(8)"] = { 8, "number" }, ["(() => 9)()"] = { 9, "number" },
        ["let x = 3; x * 2"] = { 6, "number" }, ["Symbol('s')"] = { json.null, "symbol" },
      } do
        local answer = browser.ok(abxd, "evaluate", { expression = expression })
        assert.same(expected, { answer.result, answer.type }, expression)
      end
    end)

    it("hands an argument to a function", function()
      assert.equal(42, browser.value(abxd, "({a, b}) => a * b", { arg = { a = 6, b = 7 } }))
      assert.equal("null", browser.value(abxd, "(x) => String(x)", { arg = json.null }))
      assert.same({ "ä", { 1.5, false } }, browser.value(abxd, "async (x) => x", { arg = { "ä", { 1.5, false } } }))
    end)

    it("tells a throw, a rejection and a fault of grammar", function()
      for expression, words in pairs {
        ["throw new TypeError('no such thing')"] = "TypeError: no such thing",
        ["Promise.reject(new Error('later'))"] = "Error: later",
        ["null.x"] = "TypeError", ["1 +"] = "SyntaxError", ["throw 5"] = "5", ["nowhere"] = "ReferenceError",
        ["(() => { throw {toString() { throw 1 }} })()"] = ".",
      } do
        assert.matches(words, browser.problem(abxd, "evaluate", { expression = expression }, 422, "javascript_error").detail)
      end
    end)

    it("bounds what it answers", function()
      assert.equal(4000000, #browser.value(abxd, "'x'.repeat(4e6)"))
      local problem = browser.problem(abxd, "evaluate", { expression = "'x'.repeat(5e7)" }, 413, "payload_too_large")
      assert.matches("8 MiB", problem.detail)
      assert.equal("object", browser.ok(abxd, "evaluate", { expression = "const o = {}; o.o = o; o" }).type)
      local deep = "let a = []; for (let i = 0; i < 1e4; i++) a = [a]; a"
      assert.equal("array", browser.ok(abxd, "evaluate", { expression = deep }).type)
      assert.equal("form", browser.ok(abxd, "content").title)
    end)

    it("is not fooled by a page that puts other things in the place of the built-in ones", function()
      browser.value(abxd, [[JSON.stringify = () => '"mine"'; Array.isArray = () => false; Promise.prototype.then = () => 1; 0]])
      local answer = browser.ok(abxd, "evaluate", { expression = "[1, 'two']" })
      assert.same({ "default", "form" }, { answer.page, answer.title })
    end)
  end)
end)
