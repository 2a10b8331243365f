local browser = require("support.browser")
local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local json = require("support.json")
local pages = require("support.pages")
local uv = require("luv")

local RED, GREEN, WHITE = { 255, 0, 0 }, { 0, 128, 0 }, { 255, 255, 255 }

local INDEX = [[<!doctype html><title>The index</title>
<style>body { margin: 0 } #red { background: #f00; width: 200px; height: 100px } #hidden { display: none }</style>
<div id=red></div><h1>Hello, <em>world</em></h1><p>See <a href="/other.html">the other one</a>.</p>
<p id=hidden>not to be seen</p><script>document.title += "!"</script>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>]]

-- A stripe of green ends each of its hundred metres.
local TALL = [[<title>tall</title><style>body { margin: 0; background: #fff } div { height: 3000px; position: relative }
i { position: absolute; bottom: 0; left: 0; right: 0; height: 50px; background: green }</style><div><i></i></div>]]

describe("the browser looks at pages", function()
  local abxd, web

  lazy_setup(function()
    web = pages.start { ["index.html"] = INDEX, ["tall.html"] = TALL, ["other.html"] = "<title>other</title>" }
    abxd = browser.server()
  end)
  lazy_teardown(function()
    abxd:stop()
    web:stop()
  end)

  it("navigates, shows and reads", function()
    local at = browser.go(abxd, web:url("index.html"))
    assert.is_true(json.is_array(at.redirects))
    assert.equal("integer", math.type(at.duration_ms))
    at.duration_ms = nil
    assert.same({
      page = "default", url = web:url("index.html"), title = "The index!", status = 200, redirects = {}, fresh = true,
    }, at)

    local shot = browser.ask(abxd, "screenshot")
    assert.same({ 200, "image/png" }, { shot.status, shot.headers["content-type"] })
    local image = browser.pixels(shot.body, { { 0, 0 }, { 199, 99 }, { 200, 99 }, { 199, 100 } })
    assert.same({ format = "PNG", width = 1280, height = 720, pixels = { RED, RED, WHITE, WHITE } }, image)

    local content = browser.ok(abxd, "content", { format = "text" })
    assert.same({ "text", false, "default", "The index!", false },
      { content.format, content.truncated, content.page, content.title, content.fresh })
    assert.matches("Hello, world", content.content)
    assert.matches("See the other one%.", content.content)
    assert.is_nil(content.content:find("not to be seen", 1, true))
  end)

  describe("navigate", function()
    it("tells redirects, in their order", function()
      local at = browser.go(abxd, web:url("redirect/3"))
      assert.same({
        { url = web:url("redirect/3"), status = 302 }, { url = web:url("redirect/2"), status = 302 },
        { url = web:url("redirect/1"), status = 302 },
      }, at.redirects)
      assert.same({ 200, web:url("index.html") }, { at.status, at.url })
    end)

    it("takes an error of the server for an answer", function()
      for _, status in ipairs { 404, 500 } do
        local at = browser.go(abxd, web:url("status/" .. status))
        assert.same({ status, "status " .. status }, { at.status, at.title })
      end
    end)

    it("has no status where there is no server", function()
      local at = browser.go(abxd, "data:text/html,<title>of the address</title>")
      assert.same({ json.null, "of the address" }, { at.status, at.title })
      at = browser.go(abxd, "about:blank")
      assert.same({ json.null, "", "about:blank" }, { at.status, at.title, at.url })
    end)

    it("waits for what it is told to", function()
      for _, state in ipairs { "load", "domcontentloaded", "networkidle", "commit" } do
        assert.equal(200, browser.go(abxd, web:url("index.html"), { wait_until = state }).status)
      end
      assert.equal(200, browser.go(abxd, web:url("trickle"), { wait_until = "commit" }).status)
    end)

    it("sets the size of the window", function()
      browser.go(abxd, web:url("index.html"), { viewport = { width = 320, height = 200 }, page = "small" })
      assert.same({ 320, 200 }, browser.value(abxd, "[innerWidth, innerHeight]", { page = "small" }))
      local image = browser.pixels(browser.ask(abxd, "screenshot", { page = "small" }).body)
      assert.same({ 320, 200 }, { image.width, image.height })
    end)

    it("tells what could not be reached, and goes on", function()
      local closed = "127.0.0.1:" .. http.free_port()
      for url, words in pairs {
        ["http://nowhere.invalid/"] = "nowhere%.invalid", ["http://127.0.0.1:1/"] = "that port",
        ["http://" .. closed] = "ECONNREFUSED", ["https://" .. closed] = "ECONNREFUSED",
        [web:url("index.html"):gsub("http", "https")] = ".",
      } do
        assert.matches(words, browser.problem(abxd, "navigate", { url = url }, 422, "navigation_failed").detail)
      end
      local saved = browser.problem(abxd, "navigate", { url = web:url("download") }, 422, "navigation_failed")
      assert.matches("download", saved.detail)
      assert.equal(200, browser.go(abxd, web:url("index.html")).status)
    end)

    it("ends with its time", function()
      for _, path in ipairs { "silent", "trickle" } do
        local problem = browser.problem(abxd, "navigate", { url = web:url(path), timeout_ms = 1500 }, 504, "upstream_timeout")
        assert.matches("timeout_ms", problem.detail)
        assert.equal("The index!", browser.go(abxd, web:url("index.html")).title)
      end
    end)
  end)

  describe("content", function()
    it("is what the page is now, as HTML", function()
      browser.go(abxd, web:url("index.html"))
      local html = browser.ok(abxd, "content").content
      assert.matches("^<!DOCTYPE html><html>", html)
      assert.matches("<title>The index!</title>", html)
      assert.equal("<em>world</em>", browser.ok(abxd, "content", { selector = "em" }).content)
    end)

    it("is markdown where that is wanted", function()
      browser.go(abxd, web:url("index.html"))
      local markdown = browser.ok(abxd, "content", { format = "markdown" }).content
      assert.matches("# Hello, [_*]world[_*]", markdown)
      assert.is_truthy(markdown:find(("[the other one](%s)"):format(web:url("other.html")), 1, true), markdown)
      assert.matches("| a | b |\n|[ -]+|[ -]+|\n| 1 | 2 |", markdown)
      assert.is_nil(markdown:find("not to be seen", 1, true))
      assert.is_nil(markdown:find("document.title", 1, true))
    end)

    it("is cut at whole characters", function()
      browser.go(abxd, "data:text/html;charset=utf-8,<body>ä€😀")
      for max, text in pairs { [1] = "", [2] = "ä", [4] = "ä", [5] = "ä€", [8] = "ä€", [9] = "ä€😀" } do
        local answer = browser.ok(abxd, "content", { format = "text", max_bytes = max })
        assert.same({ text, max < 9 }, { answer.content, answer.truncated })
      end
      browser.go(abxd, web:url("bytes?4000000"))
      for _, format in ipairs { "html", "text" } do
        local answer = browser.ok(abxd, "content", { format = format })
        assert.same({ 1024 * 1024, true }, { #answer.content, answer.truncated })
      end
    end)

    it("waits for the element, and tells when there is none", function()
      browser.go(abxd, "data:text/html,<script>setTimeout(() => document.body.innerHTML = '<b>late</b>', 300)</script>")
      assert.equal("late", browser.ok(abxd, "content", { selector = "b", format = "text" }).content)
      browser.problem(abxd, "content", { selector = "u", timeout_ms = 700 }, 422, "element_not_found", "selector")
      browser.problem(abxd, "content", { selector = "b >>> [" }, 400, "invalid_request", "selector")
    end)

    it("is that of a page whose policy forbids scripts", function()
      web:put("strict.html", INDEX)
      browser.go(abxd, web:url("csp/strict.html"))
      for _, format in ipairs { "html", "text", "markdown" } do
        assert.matches("Hello", browser.ok(abxd, "content", { format = format }).content)
      end
      assert.equal(3, browser.value(abxd, "1 + 2"))
    end)
  end)

  describe("screenshot", function()
    it("is of the whole page where that is wanted", function()
      browser.go(abxd, web:url("tall.html"))
      local image = browser.pixels(browser.ask(abxd, "screenshot", { full_page = true }).body,
        { { 0, 2949 }, { 0, 2950 }, { 1279, 2999 } })
      assert.same({ format = "PNG", width = 1280, height = 3000, pixels = { WHITE, GREEN, GREEN } }, image)
    end)

    it("is of an element", function()
      browser.go(abxd, web:url("index.html"))
      local image = browser.pixels(browser.ask(abxd, "screenshot", { selector = "#red" }).body, { { 0, 0 }, { 199, 99 } })
      assert.same({ format = "PNG", width = 200, height = 100, pixels = { RED, RED } }, image)
      browser.problem(abxd, "screenshot", { selector = "#none", timeout_ms = 500 }, 422, "element_not_found", "selector")
      browser.problem(abxd, "screenshot", { selector = "[" }, 400, "invalid_request", "selector")
    end)

    it("is a JPEG of that quality", function()
      local sizes = {}
      browser.go(abxd, web:url("index.html"))
      for _, quality in ipairs { 10, 90 } do
        local shot = browser.ask(abxd, "screenshot", { format = "jpeg", quality = quality })
        assert.equal("image/jpeg", shot.headers["content-type"])
        local image = browser.pixels(shot.body, { { 100, 50 } })
        assert.equal("JPEG", image.format)
        assert.is_true(image.pixels[1][1] > 240 and image.pixels[1][2] < 16)
        sizes[#sizes + 1] = #shot.body
      end
      assert.is_true(sizes[1] < sizes[2])
      browser.problem(abxd, "screenshot", { quality = 50 }, 400, "invalid_request", "quality")
    end)

    it("is saved where it is told to be", function()
      browser.go(abxd, web:url("index.html"))
      local saved = browser.ok(abxd, "screenshot", { path = "shots/one.png" })
      assert.same({ "default", abxd.base_dir .. "/shots/one.png", "file" }, { saved.page, saved.entry.path, saved.entry.type })
      local bytes = files.read(abxd.base_dir .. "/shots/one.png")
      assert.equal(saved.entry.size, #bytes)
      assert.same({ RED }, browser.pixels(bytes, { { 5, 5 } }).pixels)
      browser.problem(abxd, "screenshot", { path = "../outside.png" }, 403, "path_outside_base", "path")
      browser.problem(abxd, "screenshot", { path = "/etc/shot.png" }, 403, "path_outside_base", "path")
      browser.problem(abxd, "screenshot", { path = "shots" }, 400, "is_a_directory", "path")
      assert.is_false(files.exists(abxd.root .. "/outside.png"))
      assert(uv.fs_symlink("shots/linked.png", abxd.base_dir .. "/link.png"))
      saved = browser.ok(abxd, "screenshot", { path = "link.png" })
      assert.same({ abxd.base_dir .. "/shots/linked.png", "file" }, { saved.entry.path, saved.entry.type })
      assert.equal(saved.entry.size, #files.read(saved.entry.path))
    end)

    it("may be larger than 20 MiB, and leaves nothing in the worker's directory", function()
      browser.go(abxd, "data:text/html,<style>body { margin: 0 } canvas { display: block }</style><canvas></canvas>")
      browser.value(abxd, [[(() => {
        const canvas = document.querySelector('canvas'), side = canvas.width = canvas.height = 2700;
        const words = new Uint32Array(side * side);
        for (let i = 0, word = 1; i < words.length; i++)
          words[i] = (word = Math.imul(word, 1664525) + 1013904223 | 0) ^ word >>> 13 | 0xff000000;
        const image = new ImageData(new Uint8ClampedArray(words.buffer), side);
        image.data.set([255, 0, 0, 255, 0, 128, 0, 255]);
        canvas.getContext('2d').putImageData(image, 0, 0);
      })()]])
      local shot = browser.ask(abxd, "screenshot", { full_page = true, timeout_ms = 100000 })
      assert.same({ 200, "image/png", tostring(#shot.body) },
        { shot.status, shot.headers["content-type"], shot.headers["content-length"] })
      assert.is_true(#shot.body > 20 * 1024 * 1024)
      assert.same({ format = "PNG", width = 2700, height = 2700, pixels = { RED, GREEN } },
        browser.pixels(shot.body, { { 0, 0 }, { 1, 0 } }))
      local saved = browser.ok(abxd, "screenshot",
        { full_page = true, path = "noise.jpg", format = "jpeg", quality = 100, timeout_ms = 100000 })
      local bytes = files.read(saved.entry.path)
      assert.same({ #bytes, "image/jpeg" }, { saved.entry.size, saved.entry.mime })
      assert.same({ format = "JPEG", width = 2700, height = 2700, pixels = {} }, browser.pixels(bytes))

      local environ = files.read(("/proc/%d/environ"):format(browser.worker_pid(abxd)))
      for _, name in ipairs(files.list(("\0" .. environ):match("%zTMPDIR=([^%z]+)"))) do
        assert.is_nil(name:match("^picture"))
      end
    end)

    it("is cut, and says so, where it would be too large", function()
      browser.go(abxd, "data:text/html,<body style='margin:0'><div style='height:200000px;background:red'>")
      for _, format in ipairs { "png", "jpeg" } do
        local shot = browser.ask(abxd, "screenshot", { full_page = true, format = format })
        assert.same({ 200, "true" }, { shot.status, shot.headers["x-image-clipped"] })
        local image = browser.pixels(shot.body)
        assert.same({ 1280, 16384 }, { image.width, image.height })
      end
      assert.is_true(browser.ok(abxd, "screenshot", { selector = "div", path = "long.png" }).clipped)
      browser.go(abxd, web:url("index.html"))
      assert.is_nil(browser.ask(abxd, "screenshot").headers["x-image-clipped"])
    end)
  end)

  describe("pdf", function()
    it("holds the page's text", function()
      browser.go(abxd, web:url("index.html"))
      local answer = browser.ask(abxd, "pdf")
      assert.same({ 200, "application/pdf" }, { answer.status, answer.headers["content-type"] })
      assert.equal("%PDF-", answer.body:sub(1, 5))
      assert.matches("Hello, world", browser.pdf_text(answer.body))
    end)

    it("has the form that is asked for", function()
      browser.go(abxd, "data:text/html,<p>one<p style='break-before:page'>two<p style='break-before:page'>three")
      local margin = { top = "1cm", left = "10px" }
      local form = { page_ranges = "2-3", landscape = true, scale = 0.5, format = "Letter", margin = margin }
      local text = browser.pdf_text(browser.ask(abxd, "pdf", form).body)
      assert.same({ nil, 1 }, { text:find("one"), select(2, text:gsub("two", "")) })
      assert.matches("three", text)
      browser.problem(abxd, "pdf", { page_ranges = "9-10" }, 400, "invalid_request", "page_ranges")
      browser.problem(abxd, "pdf", { page_ranges = "x" }, 400, "invalid_request", "page_ranges")
      browser.problem(abxd, "pdf", { format = "A99" }, 400, "invalid_request", "format")
      browser.problem(abxd, "pdf", { margin = { top = "1 mile" } }, 400, "invalid_request", "margin.top")
    end)

    it("is saved where it is told to be", function()
      browser.go(abxd, web:url("index.html"))
      local saved = browser.ok(abxd, "pdf", { path = "page.pdf" })
      assert.equal(abxd.base_dir .. "/page.pdf", saved.entry.path)
      assert.matches("Hello", browser.pdf_text(files.read(saved.entry.path)))
      browser.problem(abxd, "pdf", { path = "../page.pdf" }, 403, "path_outside_base", "path")
    end)
  end)

  it("tells all faulty fields", function()
    assert.same({ "timeout_ms", "url", "viewport.width", "wait_until" }, check.faulty_fields(browser.ask(abxd, "navigate",
      { timeout_ms = 0, wait_until = "never", viewport = { width = 0, height = 10 } })))
    assert.same({ "margin.top", "page", "page_ranges" }, check.faulty_fields(browser.ask(abxd, "pdf",
      { page = "a/b", page_ranges = "x", margin = { top = "1 mile" } })))
    assert.same({ "format", "max_bytes", "selector" }, check.faulty_fields(browser.ask(abxd, "content",
      { format = "pdf", max_bytes = 0, selector = "" })))
  end)
end)
