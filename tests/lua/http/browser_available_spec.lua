--- Whether the browser can work: what is missing is named alike by calls and by /capabilities, and comes into use as soon as
--- it is there. And what the routes refuse before they ask any worker.
local check = require("support.check")
local files = require("support.files")
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")
local uv = require("luv")

local CALLS = {
  { "POST", "navigate", { url = "about:blank" } },
  { "POST", "screenshot", {} },
  { "GET", "content" },
  { "POST", "click", { selector = "a" } },
  { "POST", "type", { selector = "a", text = "" } },
  { "POST", "evaluate", { expression = "1" } },
  { "POST", "pdf", {} },
  { "GET", "console" },
}

local function call(abxd, which)
  local target = "/browser/" .. which[2]
  return which[1] == "GET" and abxd:get(target, { timeout_s = 60 }) or abxd:post(target, which[3], { timeout_s = 60 })
end

local function browser_of(abxd)
  for _, group in ipairs(check.ok(abxd:get("/capabilities")).groups) do
    if group.name == "browser" then
      return group
    end
  end
end

--- Asserts that each call, and /capabilities, names what is missing; the text.
local function missing(abxd, text)
  local group, detail = browser_of(abxd), nil
  assert.same({ true, false, 8 }, { group.enabled, group.available, #group.endpoints })
  for _, which in ipairs(CALLS) do
    detail = check.problem(call(abxd, which), 503, "unavailable").detail
    assert.equal(group.reason, detail)
  end
  assert.matches(text, detail, 1, true)
  return detail
end

--- The path of a program; nil where it is not installed.
local function which(name)
  local found = process.run { "sh", "-c", "command -v " .. name }
  return found.code == 0 and found.stdout:match("%S+") or nil
end

--- A copy of workers/ without what npm installed.
local function copy_workers(to)
  files.mkdir(to)
  for _, name in ipairs(files.list(files.source_dir .. "/workers")) do
    local from = files.source_dir .. "/workers/" .. name
    if uv.fs_lstat(from).type ~= "directory" then
      assert(uv.fs_copyfile(from, to .. "/" .. name))
    elseif name ~= "node_modules" and name ~= "__pycache__" then
      files.copy_tree(from, to .. "/" .. name)
    end
  end
end

describe("the browser's parts", function()
  local root, workers, bin

  before_each(function()
    root = files.mkdtemp()
    workers, bin = root .. "/workers", files.mkdir(root .. "/bin")
    copy_workers(workers)
  end)

  after_each(function()
    files.remove_tree(root)
  end)

  --- A server whose PATH is the folder bin alone: so is the worker's.
  local function start(prefix)
    return server.start {
      args = { "--workers-dir", workers, "--enabled-groups", "browser" }, env = { PATH = bin }, prefix = prefix,
    }
  end

  local function add_program(name)
    assert(uv.fs_symlink(assert(which(name), name .. " is not installed"), bin .. "/" .. name))
  end

  local function add_modules()
    local modules = files.source_dir .. "/workers/node_modules"
    assert(files.exists(modules .. "/playwright-core"), "script/bootstrap --with-browser was not run")
    assert(uv.fs_symlink(modules, workers .. "/node_modules"))
  end

  it("are named while they are missing, and are used once they are there, without a restart", function()
    local abxd <close> = start()
    local baseline = abxd:baseline()
    assert.matches("apt-get install nodejs", missing(abxd, "the program node"), 1, true)
    add_program("node")
    local told = missing(abxd, "the npm package playwright-core, which is not here")
    assert.matches("script/bootstrap --with-browser, or npm install playwright-core@1.64.1 --prefix " .. workers, told, 1, true)
    add_modules()
    if not files.exists("/usr/lib/chromium") then
      assert.matches("apt-get install chromium-headless-shell", missing(abxd, "Chromium"), 1, true)
      for _, name in ipairs { "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome" } do
        if which(name) then
          add_program(name)
          break
        end
      end
    end
    local answer = check.ok(call(abxd, CALLS[1]))
    assert.same({ "about:blank", true }, { answer.url, answer.fresh })
    local group = browser_of(abxd)
    assert.same({ true, nil }, { group.available, group.reason })

    -- What is taken away is missing again, and the browser that runs is left alone.
    local worker = check.ok(abxd:get("/capabilities")).workers[1]
    assert(uv.fs_unlink(workers .. "/node_modules"))
    missing(abxd, "the npm package playwright-core")
    assert.same({ true, worker.pid }, (function(now)
      return { now.running, now.pid }
    end)(check.ok(abxd:get("/capabilities")).workers[1]))
    add_modules()
    assert.is_false(check.ok(call(abxd, { "POST", "evaluate", { expression = "1" } })).fresh)
    uv.kill(worker.pid, "sigkill")
    abxd:assert_settled(baseline)
  end)

  it("are named where Chromium is missing", function()
    local hide = { which("unshare"), "--mount", "sh", "-c",
      "test ! -d /usr/lib/chromium || $0 -t tmpfs none /usr/lib/chromium && exec \"$@\"", which("mount") }
    local probe = process.run { table.unpack(hide, 1, #hide), "true" }
    if probe.code ~= 0 then
      return skip("a machine without Chromium", "no mount namespace may be made here: " .. probe.stderr)
    end
    add_program("node")
    add_modules()
    local abxd <close> = start(hide)
    assert.matches("apt-get install chromium-headless-shell", missing(abxd, "Chromium"), 1, true)
  end)

  it("are named where turndown is missing: by format=markdown alone", function()
    add_program("node")
    local modules = files.mkdir(workers .. "/node_modules")
    assert(uv.fs_symlink(files.source_dir .. "/workers/node_modules/playwright-core", modules .. "/playwright-core"))
    for _, name in ipairs { "chromium-headless-shell", "chromium" } do
      if which(name) then
        add_program(name)
        break
      end
    end
    local abxd <close> = start()
    assert.is_true(browser_of(abxd).available)
    assert.equal("", check.ok(abxd:get("/browser/content?format=text", { timeout_s = 60 })).content)
    local problem = check.problem(abxd:get("/browser/content?format=markdown", { timeout_s = 60 }), 503, "unavailable")
    assert.matches("turndown", problem.detail, 1, true)
  end)

  it("are named where a Node is too old for playwright-core", function()
    add_program("node")
    local modules = files.mkdir(workers .. "/node_modules")
    files.mkdir(modules .. "/playwright-core")
    files.write(modules .. "/playwright-core/package.json",
      '{"name":"playwright-core","version":"99.0.0","engines":{"node":">=999"}}')
    for _, name in ipairs { "chromium-headless-shell", "chromium" } do
      if which(name) then
        add_program(name)
        break
      end
    end
    local abxd <close> = start()
    local problem = check.problem(call(abxd, CALLS[1]), 503, "unavailable")
    assert.matches("playwright-core 99.0.0 needs Node >=999", problem.detail, 1, true)
    check.problem(call(abxd, CALLS[1]), 503, "unavailable")
  end)
end)

describe("the browser's routes", function()
  local abxd

  lazy_setup(function()
    abxd = server.start { args = { "--workers-dir", files.source_dir .. "/workers", "--enabled-groups", "browser" } }
  end)

  lazy_teardown(function()
    local workers = check.ok(abxd:get("/capabilities")).workers
    assert.is_true(#workers == 0 or workers[1].calls == 0, "a call that was to be refused reached the worker")
    abxd:stop()
  end)

  --- Asserts the names of all faulty fields.
  local function faulty(operation, body, fields)
    assert.same(fields, check.faulty_fields(abxd:post("/browser/" .. operation, body)))
  end

  it("refuse all faulty fields at once", function()
    faulty("navigate", {}, { "url" })
    faulty("navigate",
      { url = "", page = "", timeout_ms = 0, wait_until = "soon", viewport = { width = 0, height = 4097, depth = 1 }, x = 1 },
      { "page", "timeout_ms", "url", "viewport.depth", "viewport.height", "viewport.width", "wait_until", "x" })
    faulty("navigate", { url = "about:blank", timeout_ms = 600001, viewport = { width = 1.5 } },
      { "timeout_ms", "viewport.height", "viewport.width" })
    faulty("screenshot", { full_page = "yes", selector = "", format = "gif", quality = 0, path = "" },
      { "format", "full_page", "path", "quality", "selector" })
    faulty("click", { button = "fourth", click_count = 0, modifiers = { "Hyper" } },
      { "button", "click_count", "modifiers[0]", "selector" })
    faulty("click", { selector = ("x"):rep(16 * 1024 + 1), click_count = 4 }, { "click_count", "selector" })
    faulty("type", { selector = "a", clear = 1, submit = 1, delay_ms = 1001 }, { "clear", "delay_ms", "submit", "text" })
    faulty("evaluate", { expression = "" }, { "expression" })
    faulty("evaluate", { arg = 1 }, { "expression" })
    faulty("pdf", { format = "A7", landscape = 1, scale = 2.5, margin = { middle = 1 }, page_ranges = "" },
      { "format", "landscape", "margin.middle", "page_ranges", "scale" })
    assert.same({ "format", "max_bytes", "selector" },
      check.faulty_fields(abxd:get("/browser/content?format=xml&max_bytes=16777217&selector=")))
    assert.same({ "clear", "level", "limit", "since" },
      check.faulty_fields(abxd:get("/browser/console?since=-1&level=loud&limit=1001&clear=maybe")))
  end)

  it("refuse what a schema cannot say", function()
    faulty("navigate", { url = "http://x/" .. ("y"):rep(64 * 1024), page = "a b" }, { "page", "url" })
    for _, page in ipairs { "a/b", "ä", "a\0", " ", ("p"):rep(65) } do
      faulty("evaluate", { expression = "1", page = page }, { "page" })
    end
    assert.same({ "page" }, check.faulty_fields(abxd:get("/browser/content?page=../x")))
    faulty("screenshot", { quality = 50 }, { "quality" })
    faulty("screenshot", { quality = 50, format = "png", full_page = true, selector = "a" }, { "full_page", "quality" })
    for _, value in ipairs { "1 cm", "1em", "-1", "", "1e3", "cm", -1, 10001, true, { 1 } } do
      faulty("pdf", { margin = { left = value, top = "1cm" } }, { "margin.left" })
    end
    for _, ranges in ipairs { "-", "a", "1,,2", "1 2", "1-2-3", ",", "1;2" } do
      faulty("pdf", { page_ranges = ranges, margin = { top = "x" } }, { "margin.top", "page_ranges" })
    end
  end)

  it("take JSON alone, of a size that each of them bounds", function()
    check.problem(abxd:post("/browser/click", nil), 400, "invalid_request", "selector")
    check.problem(abxd:request("POST", "/browser/click", { body = "selector=a",
      headers = { ["Content-Type"] = "application/x-www-form-urlencoded" } }), 415, "unsupported_media_type")
    check.problem(abxd:post("/browser/click", { selector = ("x"):rep(1024 * 1024) }), 413, "payload_too_large")
    faulty("type", { selector = "a", text = ("x"):rep(1024 * 1024 + 1) }, { "text" })
    check.problem(abxd:post("/browser/type", { selector = "a", text = ("x"):rep(8 * 1024 * 1024) }), 413, "payload_too_large")
  end)

  it("keep the files of pictures below the base", function()
    assert(uv.fs_symlink("/etc", abxd.base_dir .. "/out"))
    for _, operation in ipairs { "screenshot", "pdf" } do
      for _, path in ipairs { "../x.png", "/etc/x.png", "out/x.png", "../base-evil/x.png" } do
        check.problem(abxd:post("/browser/" .. operation, { path = path }), 403, "path_outside_base", "path")
      end
      check.problem(abxd:post("/browser/" .. operation, { path = "a\0b" }), 400, "invalid_path", "path")
      check.problem(abxd:post("/browser/" .. operation, { path = ("x"):rep(5000) }), 400, "invalid_path", "path")
    end
  end)
end)

describe("the group browser", function()
  it("is off unless enabled", function()
    local abxd <close> = server.start()
    for _, which_call in ipairs(CALLS) do
      local problem = check.problem(call(abxd, which_call), 403, "capability_disabled")
      assert.matches("browser", problem.detail, 1, true)
    end
    assert.is_false(browser_of(abxd).enabled)
  end)

  it("completes the 42 endpoints", function()
    local abxd <close> = server.start { args = { "--enabled-groups",
      "commands,file_ops,process,system,terminal,dev_tools,browser" } }
    local answer = check.ok(abxd:get("/capabilities"))
    assert.equal(42, answer.endpoint_count)
    for _, group in ipairs(answer.groups) do
      assert.is_true(group.enabled)
    end
  end)
end)
