--- What the server makes of the browser's worker, told by one that stands in for it: parameters as they arrive, answers as
--- they are passed on, and each way in which there is none. No browser is started here.
local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local process = require("support.process")
local server = require("support.server")
local uv = require("luv")

-- Its expression tells it what to do; everything else is answered with what it got.
local STAND_IN = [[
import { openChannel } from 'SOURCE/workers/channel.mjs';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
const about = (page) => ({ page, url: 'http://a.example/é?\r\n', title: 'Ä "title"', fresh: false });
const tricks = {
  pid: ({ id }) => channel.answer(id, { ...about('p'), type: 'number', result: process.pid }),
  config: ({ id }) => channel.answer(id, { ...about('p'), type: 'string', result: process.argv[2] }),
  tmp: ({ id }) => channel.answer(id, { ...about('p'), type: 'string', result: tmpdir() }),
  throws: () => setTimeout(() => { throw Object.assign(new Error('it is out of order'), { code: 'E' }); }),
  die: () => { process.stderr.write('first\nthe last word\n'); process.exit(3); },
  never: () => {},
  late: ({ id }) => channel.refuse(id, -32000, 'waited for the moon', { code: 'upstream_timeout' }),
  strange: ({ id }) => channel.refuse(id, -32601, 'no data here'),
  made_up: ({ id }) => channel.refuse(id, -32000, 'of no known code', { code: 'green' }),
  refused: ({ id }) => channel.refuse(id, -32000, 'no element', { code: 'element_not_found', field: 'selector' }),
};
// Pictures by their selectors: what is written, and what is told of it.
const MiB = 1 << 20;
const put = (name, bytes) => fs.writeFileSync(path.join(tmpdir(), name), bytes);
const pictures = {
  large: () => put('a', Buffer.alloc(64 * MiB, 'x')) ?? { file: 'a', size: 64 * MiB },
  'too large': () => put('a', Buffer.alloc(64 * MiB + 1)) ?? { file: 'a', size: 64 * MiB + 1 },
  none: () => ({}),
  data: () => ({ data: 'AP9wbmc=', size: 5 }),
  'no size': () => put('a', 'x') ?? { file: 'a' },
  'no name': () => ({ file: 7, size: 1 }),
  'empty name': () => ({ file: '', size: 0 }),
  'not there': () => ({ file: 'not-there', size: 1 }),
  longer: () => put('a', 'xxxxx') ?? { file: 'a', size: 4 },
  shorter: () => put('a', 'xxxxx') ?? { file: 'a', size: 6 },
  negative: () => put('a', '') ?? { file: 'a', size: -1 },
  fraction: () => put('a', 'xxxxx') ?? { file: 'a', size: 5.5 },
  absolute: () => ({ file: '/etc/passwd', size: fs.statSync('/etc/passwd').size }),
  above: () => put('../secret', 'secret') ?? { file: '../secret', size: 6 },
  itself: () => put('a', 'xxxxx') ?? { file: './a', size: 5 },
  directory: () => ({ file: '.', size: fs.statSync(tmpdir()).size }),
  link: () => {
    fs.rmSync(path.join(tmpdir(), 'link'), { force: true });
    fs.symlinkSync('/etc/passwd', path.join(tmpdir(), 'link'));
    return { file: 'link', size: fs.statSync('/etc/passwd').size };
  },
};
const channel = openChannel({
  receive(message) {
    const { id, method, params } = message;
    if (method === 'cancel') return;
    if (method === 'screenshot' || method === 'pdf') {
      const { page, selector } = params;
      const answer = { ...about(page), media_type: method === 'pdf' ? 'application/pdf' : 'image/' + params.format };
      const plain = () => put('picture', Buffer.from('\0\xffpng', 'latin1')) ?? { file: 'picture', size: 5 };
      const told = (pictures[selector] ?? plain)();
      return channel.answer(id, { ...answer, ...told, clipped: selector === 'wide' });
    }
    const trick = tricks[params.expression];
    if (trick) return trick(message);
    fs.writeFileSync('BASE/got.json', JSON.stringify({ method, params }));
    channel.answer(id, { ...about(params.page) });
  },
  end: () => process.exit(0),
});
]]

-- How the real one hands pictures over; calls that are answered or not, and what stands in its directory then.
local HANDS = [[
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { hand } from 'SOURCE/workers/browser/picture.mjs';
const list = () => fs.readdirSync(process.env.TMPDIR).sort();
const seen = {};
const call = (over) => ({ over, signal: new AbortController().signal });
const failure = (bytes, of = call(Promise.resolve(false))) =>
  hand(bytes, 'image/png', of, 'the picture', 'take less').then(() => null, ({ code, message }) => ({ code, message }));
let end;
seen.told = await hand(Buffer.from('hello'), 'image/png', call(new Promise((resolve) => { end = resolve; })), 'it', 'no');
const file = `${process.env.TMPDIR}/${seen.told.file}`;
seen.mode = (fs.statSync(file).mode & 0o7777).toString(8);
seen.text = fs.readFileSync(file, 'utf8');
end(false);
for (let i = 0; i < 100 && list().length > 0; i++) await sleep(20);
seen.refused = list();
await hand(Buffer.from('kept'), 'image/png', call(Promise.resolve(true)), 'it', 'no');
await sleep(200);
seen.answered = list();
seen.none = await failure(Buffer.alloc(0));
seen.large = await failure(Buffer.alloc(64 * 1024 * 1024 + 1));
seen.over = (await failure(Buffer.from('late'), { over: Promise.resolve(false), signal: AbortSignal.abort() })).code;
fs.writeFileSync(`${process.env.TMPDIR}/secret`, 'secret');
for (let i = 0; i < 9; i++) fs.symlinkSync('secret', `${process.env.TMPDIR}/picture-${i + 3}`);
seen.foreign = (await failure(Buffer.from('no'))).code;
seen.secret = fs.readFileSync(`${process.env.TMPDIR}/secret`, 'utf8');
console.log(JSON.stringify(seen));
]]

describe("the browser's worker", function()
  local root, abxd, baseline

  lazy_setup(function()
    root = files.mkdtemp()
    local bin, workers = files.mkdir(root .. "/bin"), files.mkdir(root .. "/workers")
    files.mkdir(workers .. "/node_modules")
    files.mkdir(workers .. "/node_modules/playwright-core")
    files.write(workers .. "/node_modules/playwright-core/package.json", "{}")
    files.mkdir(root .. "/base")
    local values = { SOURCE = files.source_dir, BASE = root .. "/base" }
    files.write(workers .. "/browser.mjs", (STAND_IN:gsub("%u%u%u%u+", values)))
    files.write(bin .. "/chromium", "") -- where the machine has none
    assert(uv.fs_chmod(bin .. "/chromium", tonumber("755", 8)))
    abxd = server.start {
      base_dir = root .. "/base",
      args = { "--workers-dir", workers, "--enabled-groups", "browser", "--browser-allow-hosts", 'intranet,*.corp "x"' },
      env = { PATH = bin .. ":" .. os.getenv("PATH") },
    }
    baseline = abxd:baseline()
  end)

  lazy_teardown(function()
    if baseline then
      local pid = abxd:post("/browser/evaluate", { expression = "pid", page = "last" }):json().result
      uv.kill(pid, "sigkill")
      abxd:assert_settled(baseline)
    end
    abxd:stop()
    files.remove_tree(root)
  end)

  local function evaluate(expression, fields)
    local body = { expression = expression }
    for name, value in pairs(fields or {}) do
      body[name] = value
    end
    return abxd:post("/browser/evaluate", body)
  end

  --- What the worker got of a call, without its parts.
  local function got(answer)
    check.ok(answer)
    local call = json.decode(files.read(root .. "/base/got.json"))
    local parts = call.params.parts
    assert.equal(root .. "/workers/node_modules/playwright-core", parts.library)
    assert.equal(json.null, parts.turndown)
    assert.matches("/chrom[^/]*$", parts.executable)
    call.params.parts = nil
    return call
  end

  it("gets the server's ports and the hosts that are allowed", function()
    local config = json.decode(check.ok(evaluate("config")).result)
    assert.same({ ports = { abxd.port, abxd.ws_port }, allow_hosts = { "intranet", "*.corp", '"x"' } }, config)
  end)

  it("gets what a call says, with the defaults, and nothing that it does not say", function()
    assert.same({
      method = "navigate",
      params = { page = "default", timeout_ms = 30000, url = "about:blank", wait_until = "load" },
    }, got(abxd:post("/browser/navigate", { url = "about:blank" })))
    assert.same({
      method = "navigate",
      params = {
        page = "a.B_c-1", timeout_ms = 600000, url = "http://x/", wait_until = "commit", viewport = { width = 1, height = 4096 },
      },
    }, got(abxd:post("/browser/navigate", {
      url = "http://x/", page = "a.B_c-1", timeout_ms = 600000, wait_until = "commit", viewport = { width = 1, height = 4096 },
    })))
    assert.same({
      method = "content",
      params = { page = "default", timeout_ms = 5, format = "markdown", selector = "#a > b", max_bytes = 16777216 },
    }, got(abxd:get("/browser/content?format=markdown&selector=%23a+%3E+b&max_bytes=16777216&timeout_ms=5")))
    assert.same({
      method = "click",
      params = { page = "default", timeout_ms = 30000, selector = "a", button = "left", click_count = 1 },
    }, got(abxd:post("/browser/click", { selector = "a" })))
    assert.same({
      method = "click",
      params = {
        page = "default", timeout_ms = 30000, selector = "a", button = "middle", click_count = 3,
        modifiers = { "Shift", "ControlOrMeta" },
      },
    }, got(abxd:post("/browser/click", {
      selector = "a", button = "middle", click_count = 3, modifiers = { "Shift", "ControlOrMeta" },
    })))
    assert.same({
      method = "type",
      params = {
        page = "default", timeout_ms = 30000, selector = "a", text = "\u{1F600}\0", clear = false, submit = false, delay_ms = 0,
      },
    }, got(abxd:post("/browser/type", { selector = "a", text = "\u{1F600}\0" })))
    assert.same({
      method = "evaluate",
      params = { page = "default", timeout_ms = 30000, expression = "(a) => a", arg = { 1, json.null, { deep = { "x" } } } },
    }, got(evaluate("(a) => a", { arg = { 1, json.null, { deep = { "x" } } } })))
    assert.same({
      method = "console",
      params = { page = "default", timeout_ms = 30000, since = 0, level = "debug", limit = 100, clear = false },
    }, got(abxd:get("/browser/console")))
  end)

  it("answers in its own words, which are passed on as they are", function()
    assert.same({ page = "p", url = "http://a.example/é?\r\n", title = 'Ä "title"', fresh = false },
      (function(answer)
        answer.result, answer.type = nil, nil
        return answer
      end)(check.ok(evaluate("pid"))))
  end)

  it("sends pictures, which come as bytes or go into a file", function()
    local answer = abxd:post("/browser/screenshot", {})
    assert.same({ 200, "image/png", "\0\255png", "http://a.example/%C3%A9?%0D%0A" },
      { answer.status, answer.headers["content-type"], answer.body, answer.headers["x-page-url"] })
    assert.is_nil(answer.headers["x-image-clipped"])
    answer = abxd:post("/browser/screenshot", { format = "jpeg", quality = 1, selector = "wide" })
    assert.same({ "image/jpeg", "true" }, { answer.headers["content-type"], answer.headers["x-image-clipped"] })
    answer = abxd:post("/browser/pdf", {})
    assert.same({ "application/pdf", "\0\255png" }, { answer.headers["content-type"], answer.body })

    local saved = check.ok(abxd:post("/browser/screenshot", { path = "shots/of/a.png", selector = "wide", page = "q" }))
    assert.same({ page = "q", url = "http://a.example/é?\r\n", title = 'Ä "title"', fresh = false, clipped = true }, {
      page = saved.page, url = saved.url, title = saved.title, fresh = saved.fresh, clipped = saved.clipped,
    })
    assert.same({ root .. "/base/shots/of/a.png", "file", 5, "image/png" },
      { saved.entry.path, saved.entry.type, saved.entry.size, saved.entry.mime })
    assert.equal("\0\255png", files.read(root .. "/base/shots/of/a.png"))
    saved = check.ok(abxd:post("/browser/pdf", { path = "shots/of/a.png" }))
    assert.same({ false, "application/pdf" }, { saved.clipped, saved.entry.mime })
    assert.same({ "a.png" }, files.list(root .. "/base/shots/of"))
    assert.same({}, files.list(check.ok(evaluate("tmp")).result))
  end)

  it("sends pictures that are no files to come back to: without conditions and parts", function()
    for _, header in ipairs { "Range: bytes=1-2", "If-Match: \"x\"", "If-None-Match: *" } do
      local name, value = header:match("^(%S+): (.*)$")
      local answer = abxd:post("/browser/screenshot", {}, { headers = { [name] = value } })
      assert.same({ 200, "\0\255png", "5" }, { answer.status, answer.body, answer.headers["content-length"] })
      for _, unwanted in ipairs { "etag", "accept-ranges", "last-modified" } do
        assert.is_nil(answer.headers[unwanted])
      end
    end
  end)

  it("makes pictures anew, for itself alone, and keeps none that nobody takes", function()
    local tmp = files.mkdtemp()
    local run = process.run({ "node", "--input-type=module", "-e", (HANDS:gsub("SOURCE", files.source_dir)) },
      { env = { TMPDIR = tmp, PATH = os.getenv("PATH") } })
    files.remove_tree(tmp)
    assert.equal("", run.stderr)
    assert.same({
      told = { media_type = "image/png", file = "picture-1", size = 5 },
      mode = "600", text = "hello", refused = {}, answered = { "picture-2" },
      none = { message = "the browser made an empty file of the picture" },
      large = {
        code = "payload_too_large", message = "the picture has 67108865 bytes, more than 67108864: take less",
      },
      over = "ABORT_ERR", foreign = "EEXIST", secret = "secret",
    }, json.decode(run.stdout))
  end)

  it("puts a picture where a link leads, and tells of that file", function()
    files.mkdir(root .. "/base/real")
    assert(uv.fs_symlink("real/of-link.png", root .. "/base/link.png"))
    for turn = 1, 2 do -- once where there is nothing yet
      local saved = check.ok(abxd:post("/browser/screenshot", { path = "link.png" }))
      assert.same({ turn, root .. "/base/real/of-link.png", "file", 5, "image/png" },
        { turn, saved.entry.path, saved.entry.type, saved.entry.size, saved.entry.mime })
      assert.equal("\0\255png", files.read(root .. "/base/real/of-link.png"))
      assert.equal("link", assert(uv.fs_lstat(root .. "/base/link.png")).type)
    end
  end)

  it("sends pictures of 64 MiB, which do not keep the server from other calls", function()
    local SIZE = 64 * 1024 * 1024
    local before = process.main_thread_cpu_s(abxd.pid)
    local answer = abxd:post("/browser/screenshot", { selector = "large" })
    assert.same({ 200, SIZE }, { answer.status, #answer.body })
    assert.equal(("x"):rep(64), answer.body:sub(-64))
    local saved = check.ok(abxd:post("/browser/screenshot", { selector = "large", path = "l.png" }))
    assert.equal(SIZE, saved.entry.size)
    assert.equal(("x"):rep(64), files.read(root .. "/base/l.png"):sub(-64))
    local used_s = process.main_thread_cpu_s(abxd.pid) - before
    assert.is_true(used_s < 0.5 * check.slack, ("the loop computed for %.3f s"):format(used_s))
  end)

  it("may tell of what is no picture: the server takes nothing else, says so and goes on", function()
    local pid = check.ok(evaluate("pid")).result
    local tmp = check.ok(evaluate("tmp")).result
    for _, selector in ipairs {
      "none", "data", "no size", "no name", "empty name", "not there", "longer", "shorter", "negative", "fraction", "absolute",
      "above", "itself", "directory", "link", "too large",
    } do
      local problem = check.problem(abxd:post("/browser/screenshot", { selector = selector }), 500, "internal_error")
      assert.matches("picture", problem.detail, 1, true)
    end
    assert.equal("secret", files.read(tmp .. "/../secret"))
    assert.equal(pid, check.ok(evaluate("pid")).result)
  end)

  it("is not asked where the file of a picture could not be", function()
    assert(uv.fs_symlink("/etc", root .. "/base/out"))
    files.write(root .. "/base/plain", "")
    local before = check.ok(abxd:get("/capabilities")).workers[1].calls
    for path, refusal in pairs {
      ["../x.png"] = { 403, "path_outside_base" },
      ["/etc/x.png"] = { 403, "path_outside_base" },
      ["out/x.png"] = { 403, "path_outside_base" },
      ["plain/x.png"] = { 400, "not_a_directory" },
    } do
      for _, operation in ipairs { "screenshot", "pdf" } do
        check.problem(abxd:post("/browser/" .. operation, { path = path }), refusal[1], refusal[2], "path")
      end
    end
    assert.equal(before, check.ok(abxd:get("/capabilities")).workers[1].calls)
    check.problem(abxd:post("/browser/screenshot", { path = "shots" }), 400, "is_a_directory", "path")
  end)

  it("refuses in its own words", function()
    local problem = check.problem(evaluate("refused"), 422, "element_not_found", "selector")
    assert.equal("no element", problem.detail)
    assert.equal("waited for the moon", check.problem(evaluate("late"), 504, "upstream_timeout").detail)
    check.problem(evaluate("strange"), 500, "internal_error")
    check.problem(evaluate("made_up"), 500, "internal_error")
  end)

  it("is ended where it does not answer at all, and another one is started", function()
    local first = check.ok(evaluate("pid")).result
    check.problem(evaluate("never", { timeout_ms = 100 }), 504, "upstream_timeout")
    check.ok(evaluate("pid"))
    assert.not_equal(first, check.ok(evaluate("pid")).result)
  end)

  it("may die: 502 with its last words, and the next call has another one", function()
    local first = check.ok(evaluate("pid")).result
    local problem = check.problem(evaluate("die"), 502, "browser_crashed")
    assert.matches("ended with exit code 3: the last word", problem.detail, 1, true)
    problem = check.problem(evaluate("throws"), 502, "browser_crashed")
    assert.matches("ended with exit code 1: Error: it is out of order", problem.detail, 1, true)
    assert.not_equal(first, check.ok(evaluate("pid")).result)
  end)

  it("may die between two calls: each page that was in it is told so, once", function()
    local pid = check.ok(evaluate("pid")).result
    for _, page in ipairs { "one", "two", "three" } do
      assert.equal(pid, check.ok(evaluate("pid", { page = page })).result)
    end
    local function kill()
      uv.kill(pid, "sigkill")
      assert.is_true(process.poll(10000, function()
        return not check.ok(abxd:get("/capabilities")).workers[1].running
      end))
    end
    kill()
    local problem = check.problem(evaluate("pid", { page = "one" }), 502, "browser_crashed")
    assert.matches("the page one is gone", problem.detail, 1, true)
    pid = check.ok(evaluate("pid", { page = "one" })).result
    -- A page that is opened anew misses nothing; nor does one that was not there.
    check.ok(abxd:post("/browser/navigate", { url = "about:blank", page = "two" }))
    check.ok(evaluate("pid", { page = "two" }))
    check.ok(evaluate("pid", { page = "four" }))
    check.problem(abxd:get("/browser/content?page=three"), 502, "browser_crashed")
    check.ok(abxd:get("/browser/content?page=three"))
    check.problem(evaluate("die", { page = "two" }), 502, "browser_crashed")
    check.ok(evaluate("pid", { page = "two" })) -- it was told
    check.problem(evaluate("pid", { page = "one" }), 502, "browser_crashed")
  end)

  it("stands in the process table and among the workers", function()
    local pid = check.ok(evaluate("pid", { page = "five" })).result
    local workers = check.ok(abxd:get("/capabilities")).workers
    assert.same({ "browser", true, pid, 0 }, { workers[1].name, workers[1].running, workers[1].pid, workers[1].load })
  end)
end)
