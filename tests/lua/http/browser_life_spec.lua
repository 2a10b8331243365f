local browser = require("support.browser")
local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local json = require("support.json")
local pages = require("support.pages")
local process = require("support.process")
local uv = require("luv")

local TICK_MS = 20

--- Folders of helper processes below the temporary directory that this server made, by its worker's TMPDIR.
local function private_dir(pid)
  return files.read(("/proc/%d/environ"):format(pid)):match("TMPDIR=(%Z+)")
end

local function kill(pid)
  uv.kill(pid, "sigkill")
end

local function kill_all(list)
  for _, one in ipairs(list) do
    kill(one.pid)
  end
end

--- Sends a call and does not wait for its answer.
local function send(abxd, name, fields)
  local conn = http.connect(abxd, 120)
  local body = json.encode(fields)
  conn:send(("POST /browser/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s")
    :format(name, #body, body))
  return conn
end

describe("the browser's life", function()
  local abxd, web

  lazy_setup(function()
    web = pages.start {
      ["index.html"] = "<title>index</title><p>index",
      ["loop.html"] = "<title>loop</title><button onclick='for (;;);'>b</button>",
      ["alert.html"] = "<title>alert</title><script>alert('first'); setInterval(() => alert('again'), 10)</script>",
      ["ask.html"] = [[<title>ask</title><button id=c onclick="document.title = confirm('sure?')">c</button>
        <button id=p onclick="document.title = prompt('name?', 'x')">p</button>]],
      ["leave.html"] = [[<title>leave</title><button>b</button>
        <script>onbeforeunload = (e) => { e.preventDefault(); e.returnValue = 'no'; return 'no' }</script>]],
      ["popup.html"] = [[<title>popup</title><a href=/index.html target=_blank>new</a>
        <button onclick="for (let i = 0; i < 30; i++) window.open('/index.html?' + i)">many</button>]],
      ["noise.html"] = [[<title>noise</title><script>const o = {}; o.o = o;
        for (let i = 0; i < 20000; i++) console.log('line', i, o);
        console.debug('d'); console.warn('w'); console.error('e', {a: 1}); setTimeout(() => { throw new Error('thrown') });
        Promise.reject(new Error('rejected')); new Image().src = 'http://127.0.0.1:1/x.png'</script>]],
    }
    abxd = browser.server()
  end)
  lazy_teardown(function()
    abxd:stop()
    web:stop()
  end)

  it("begins with the first call", function()
    assert.same({ nil, {} }, { browser.worker_pid(abxd), browser.processes(abxd) })
    browser.go(abxd, "about:blank")
    assert.is_truthy(browser.worker_pid(abxd))
    assert.is_true(#browser.processes(abxd) > 0)
    local entry
    for _, one in ipairs(check.ok(abxd:get("/processes?state=running")).processes) do
      entry = one.kind == "browser" and one or entry
    end
    assert.equal(browser.worker_pid(abxd), entry.pid)
  end)

  describe("pages by names", function()
    it("are apart, and share their cookies", function()
      browser.go(abxd, web:url("index.html"), { page = "a" })
      browser.go(abxd, web:url("ask.html"), { page = "b" })
      browser.value(abxd, "document.cookie = 'shared=1'; window.mine = 1", { page = "a" })
      assert.same({ "shared=1", "undefined" }, browser.value(abxd, "[document.cookie, typeof mine]", { page = "b" }))
      local content = browser.ok(abxd, "content", { page = "a" })
      assert.same({ "a", "index" }, { content.page, content.title })
    end)

    it("say when they are new", function()
      local first = browser.ok(abxd, "content", { page = "unheard-of", format = "text" })
      assert.same({ "about:blank", true, "" }, { first.url, first.fresh, first.content })
      assert.is_false(browser.ok(abxd, "content", { page = "unheard-of" }).fresh)
    end)

    it("are sixteen at most: the longest unused one gives way", function()
      for number = 1, 17 do
        browser.go(abxd, "data:text/html,<title>" .. number .. "</title>", { page = "n" .. number })
      end
      assert.equal("17", browser.ok(abxd, "content", { page = "n17" }).title)
      assert.is_false(browser.ok(abxd, "content", { page = "n2" }).fresh)
      local problem = browser.problem(abxd, "content", { page = "n1" }, 502, "browser_crashed")
      assert.matches("longest unused", problem.detail)
      assert.is_true(browser.ok(abxd, "content", { page = "n1" }).fresh)
    end)

    it("work side by side", function()
      local waiting = send(abxd, "navigate", { url = web:url("silent"), page = "waiting", timeout_ms = 60000 })
      assert.is_truthy(process.poll(20000, function()
        return web:asked_for("/silent") > 0
      end))
      assert.equal("index", browser.go(abxd, web:url("index.html"), { page = "beside" }).title)
      check.unanswered(waiting)
      waiting:close()
      -- Its client is gone, and so what it did is over.
      assert.equal("index", browser.go(abxd, web:url("index.html"), { page = "waiting" }).title)
    end)
  end)

  describe("a page that", function()
    it("loops is interrupted, and stays", function()
      browser.go(abxd, web:url("loop.html"))
      browser.value(abxd, "window.kept = 1")
      local problem = browser.problem(abxd, "evaluate", { expression = "for (;;);", timeout_ms = 1500 }, 504, "upstream_timeout")
      assert.matches("timeout_ms", problem.detail)
      assert.equal(1, browser.value(abxd, "window.kept"))
      browser.problem(abxd, "evaluate", { expression = "new Promise(() => {})", timeout_ms = 500 }, 504, "upstream_timeout")
      assert.equal("loop", browser.ok(abxd, "content").title)
    end)

    it("loops by a click, too", function()
      browser.go(abxd, web:url("loop.html"))
      browser.problem(abxd, "click", { selector = "button", timeout_ms = 1500 }, 504, "upstream_timeout")
      assert.equal("loop", browser.ok(abxd, "content").title)
    end)

    it("opens dialogs is answered for, and tells them", function()
      assert.equal("alert", browser.go(abxd, web:url("alert.html"), { page = "dialogs" }).title)
      local entries = browser.entries(abxd, { page = "dialogs" }, "dialog")
      assert.matches("first", entries[1].text)
      browser.go(abxd, web:url("ask.html"), { page = "dialogs" })
      browser.ok(abxd, "click", { page = "dialogs", selector = "#c" })
      assert.equal("false", browser.value(abxd, "document.title", { page = "dialogs" }))
      browser.ok(abxd, "click", { page = "dialogs", selector = "#p" })
      assert.equal("null", browser.value(abxd, "document.title", { page = "dialogs" }))
      local texts = {}
      for _, entry in ipairs(browser.entries(abxd, { page = "dialogs" }, "dialog")) do
        texts[#texts + 1] = entry.text
      end
      assert.matches("sure%?.*name%?", table.concat(texts, "\n"))
    end)

    it("will not be left is left", function()
      browser.go(abxd, web:url("leave.html"))
      browser.ok(abxd, "click", { selector = "button" }) -- only a page that was touched may ask
      assert.equal("index", browser.go(abxd, web:url("index.html")).title)
    end)

    it("opens windows has them closed and told", function()
      browser.go(abxd, web:url("popup.html"), { page = "popups" })
      browser.ok(abxd, "console", { page = "popups", clear = true })
      browser.ok(abxd, "click", { page = "popups", selector = "a" })
      assert.is_truthy(process.poll(20000, function()
        local entry = browser.entries(abxd, { page = "popups" }, "popup")[1]
        return entry and entry.text:find("/index.html", 1, true)
      end))
      browser.ok(abxd, "click", { page = "popups", selector = "button" })
      assert.equal("popup", browser.ok(abxd, "content", { page = "popups" }).title)
    end)

    it("prints without end is bounded", function()
      browser.go(abxd, web:url("noise.html"), { page = "noise" })
      local kinds = {}
      assert.is_truthy(process.poll(20000, function()
        kinds = {}
        for _, entry in ipairs(browser.ok(abxd, "console", { page = "noise", limit = 1000 }).entries) do
          kinds[entry.kind] = (kinds[entry.kind] or 0) + 1
        end
        return kinds.pageerror == 2 and kinds.request_failed
      end), json.encode(kinds))
      local answer = browser.ok(abxd, "console", { page = "noise", level = "error", limit = 1000 })
      for _, entry in ipairs(answer.entries) do
        assert.equal("error", entry.level)
      end
      answer = browser.ok(abxd, "console", { page = "noise", limit = 10 })
      assert.equal(10, #answer.entries)
      local first = answer.entries[1]
      assert.same({ answer.dropped + 1, "console", "info" }, { first.seq, first.kind, first.level })
      assert.equal(first.seq + 9, answer.next)
      assert.matches("^line %d+ ", first.text)
      assert.same({ web:url("noise.html"), "integer" }, { first.url, math.type(first.line) })
      assert.matches("^%d+%-%d+%-%d+T[%d:.]+Z$", first.time)
      local following = browser.ok(abxd, "console", { page = "noise", since = answer.next, limit = 1000, clear = true })
      assert.equal(answer.next + 1, following.entries[1].seq)
      local told
      for _, entry in ipairs(following.entries) do
        told = told or entry.text:match("^more than 500 messages in a second") or entry.text:match("^line 19999 ")
      end
      assert.is_truthy(told)
      local nothing = browser.ok(abxd, "console", { page = "noise" })
      assert.same({ true, 0, following.next }, { json.is_array(nothing.entries), #nothing.entries, nothing.next })
    end)

    it("takes its elements away fails that call only", function()
      browser.go(abxd, "data:text/html,<title>gone</title><b>x</b><script>setInterval(() => {"
        .. " document.querySelector('b')?.remove(); const b = document.createElement('b'); b.textContent = 'x';"
        .. " document.body.append(b) })</script>")
      local answer = browser.ask(abxd, "click", { selector = "b", timeout_ms = 1500 })
      assert.is_true(answer.status == 200 or answer.status == 422, answer.body)
      assert.equal("gone", browser.ok(abxd, "content").title)
    end)
  end)

  describe("the end of", function()
    it("a renderer is told once, and the page begins anew", function()
      browser.go(abxd, web:url("index.html"), { page = "crash" })
      local running = send(abxd, "evaluate", { expression = "window.x = 1; new Promise(() => {})", page = "crash" })
      assert.is_truthy(process.poll(20000, function()
        return #browser.processes(abxd, "--type=renderer") > 0
      end))
      uv.sleep(TICK_MS)
      kill_all(browser.processes(abxd, "--type=renderer"))
      check.problem(running:read_response("POST"), 502, "browser_crashed")
      running:close()
      local after = browser.ok(abxd, "evaluate", { expression = "typeof x", page = "crash" })
      assert.same({ "undefined", true, "about:blank" }, { after.result, after.fresh, after.url })
      assert.equal("index", browser.go(abxd, web:url("index.html"), { page = "crash" }).title)
    end)

    it("a page that nobody was told of is told then", function()
      browser.go(abxd, web:url("index.html"), { page = "lost" })
      browser.go(abxd, web:url("index.html"), { page = "lost2" })
      kill_all(browser.processes(abxd, "--type=renderer"))
      assert.is_truthy(process.poll(20000, function()
        local answer = browser.ask(abxd, "content", { page = "lost" })
        return answer.status == 502 and check.problem(answer, 502, "browser_crashed")
      end))
      assert.equal(200, browser.ask(abxd, "content", { page = "lost" }).status)
      assert.equal("index", browser.go(abxd, web:url("index.html"), { page = "lost2" }).title)
    end)

    it("the browser is told, and the next call has another one", function()
      browser.go(abxd, web:url("index.html"))
      local running = send(abxd, "evaluate", { expression = "new Promise(() => {})" })
      uv.sleep(TICK_MS)
      kill_all(browser.processes(abxd))
      check.problem(running:read_response("POST"), 502, "browser_crashed")
      running:close()
      assert.equal("index", browser.go(abxd, web:url("index.html")).title)
      assert.is_truthy(process.poll(20000, function() -- no zombie either
        for _, child in ipairs(abxd:children()) do
          if child.state == "Z" then
            return false
          end
        end
        return true
      end))
    end)

    it("the worker is told, and takes nothing along", function()
      browser.go(abxd, web:url("index.html"))
      local pid = browser.worker_pid(abxd)
      local dir = private_dir(pid)
      local running = send(abxd, "evaluate", { expression = "new Promise(() => {})" })
      uv.sleep(TICK_MS)
      kill(pid)
      check.problem(running:read_response("POST"), 502, "browser_crashed")
      running:close()
      assert.equal("index", browser.go(abxd, web:url("index.html")).title)
      assert.is_true(browser.worker_pid(abxd) ~= pid)
      assert.is_truthy(process.poll(20000, function()
        return not files.exists(dir)
      end))
    end)

    it("the server is that of all its processes and folders", function()
      local own = browser.server()
      browser.go(own, web:url("index.html"))
      local children, dir = own:children(), private_dir(browser.worker_pid(own))
      assert.is_true(#children > 2)
      assert.is_true(files.exists(dir))
      own:stop()
      assert.is_false(files.exists(dir))
      for _, child in ipairs(children) do
        assert.is_false(files.exists("/proc/" .. child.pid), child.argv)
      end
    end)
  end)
end)
