--- Terminals as people use them: through the npm package ws, and in stock xterm.js in a browser.
local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local json = require("support.json")
local process = require("support.process")
local pty = require("support.pty")
local server = require("support.server")
local skip = require("support.skip")

local TOOLS = files.source_dir .. "/tests/tools/"
local TOKEN = "the-token-of-this-spec"
local TIMEOUT_MS = 600000 -- bounds what hangs; the tools stop waiting earlier and say for what
local BROWSERS = { "chromium-headless-shell", "chromium", "google-chrome" }
local PAGE_PROGRAMS = { "vim", "top", "tmux" }

local function path_of(program)
  local found = process.run { "sh", "-c", 'command -v "$1"', "sh", program }
  return found.code == 0 and found.stdout:match("^(/.*)\n$") or nil
end

local function browser()
  for _, name in ipairs(BROWSERS) do
    local path = path_of(name)
    if path then
      return path
    end
  end
end

--- Runs one of the tools against the server and returns what it prints, decoded.
local function run_tool(name, ...)
  local result = process.run({ "node", TOOLS .. name, ... }, { env = { ABX_TEST_TOKEN = TOKEN }, timeout_ms = TIMEOUT_MS })
  assert(result.code == 0, name .. ": " .. result.stderr)
  return json.decode(result.stdout)
end

describe("a terminal's clients", function()
  local abxd, baseline, page_port, rest

  lazy_setup(function()
    page_port = http.free_port()
    abxd = server.start { env = { ABX_SERVER_TOKEN = TOKEN },
      args = { "--allowed-origins", ("http://127.0.0.1:%d"):format(page_port) } }
    rest = ("http://127.0.0.1:%d"):format(abxd.port)
    baseline = abxd:baseline()
  end)

  lazy_teardown(function()
    pty.clean(abxd)
    abxd:assert_settled(baseline)
    abxd:stop()
  end)

  describe("npm ws", function()
    local seen

    lazy_setup(function()
      seen = run_tool("ws_client.mjs", rest)
    end)

    it("connects by sub-protocols, sends a command, receives its output and disconnects", function()
      assert.equal("abx.pty.v1", seen.protocol)
      assert.same({ type = "ready", id = seen.id, cols = 80, rows = 24, offset = 0 }, seen.ready)
      assert.equal(1000, seen.left)
    end)

    it("reconnects where it left, without a byte twice or missing", function()
      assert.equal(seen.resumed.asked, seen.resumed.ready.offset)
      assert.is_true(seen.resumed.asked > 0)
      assert.is_true(seen.resumed.same)
    end)

    it("is told that 20 MB are too long for a message, and nobody else suffers", function()
      assert.same({ code = 1009, errors = json.array {} }, { code = seen.too_long.code, errors = seen.too_long.errors })
      assert.is_true(seen.alive)
    end)

    it("is told the exit code after the last byte, then closed with 1000", function()
      assert.equal(3, seen.exit.exit_code)
      assert.equal(json.null, seen.exit.signal)
      assert.same({ code = 1000, reason = "" }, seen.closed)
    end)

    it("sees 4004 where there is no such terminal", function()
      assert.equal(4004, seen.unknown.code)
    end)
  end)

  describe("xterm.js with its attach and fit add-ons in Chromium", function()
    local seen, missing

    lazy_setup(function()
      local chromium = browser()
      missing = not chromium and BROWSERS[1] or nil
      for _, program in ipairs(PAGE_PROGRAMS) do
        missing = missing or (not path_of(program) and program) or nil
      end
      seen = not missing and run_tool("xterm_page.mjs", chromium, tostring(page_port), rest)
    end)

    local function page_it(name, fn)
      it(name, function()
        if missing then
          skip("xterm.js " .. name, missing .. " is not installed")
        end
        fn()
      end)
    end

    page_it("types a command and shows its output, multi-byte characters too", function()
      assert.equal("hello-42", seen.hello)
      assert.equal("grüße 😀", seen.characters)
    end)

    page_it("gives the terminal the size that fits the page, and again when the page changes", function()
      assert.equal(("%d %d"):format(seen.fitted.rows, seen.fitted.cols), seen.size)
      assert.equal(("%d %d"):format(seen.refitted.rows, seen.refitted.cols), seen.resized)
      assert.is_true(seen.refitted.cols < seen.fitted.cols and seen.refitted.rows < seen.fitted.rows)
    end)

    page_it("edits a file in vim", function()
      assert.truthy(seen.vim:find("^written in vim%s*\nand one line more%s*\n~"))
      assert.equal("written in vim\nand one line more\n", files.read(abxd.base_dir .. "/note.txt"))
      assert.equal("written in vim\nand one line more", seen.written)
    end)

    page_it("watches processes in top", function()
      assert.truthy(seen.top:find("^top %- "))
      assert.truthy(seen.top:find("\n +PID USER "))
    end)

    page_it("splits the screen in tmux, which ends when told to", function()
      local _, bars = seen.tmux:gsub("│", "")
      assert.equal(seen.refitted.rows - 1, bars) -- all lines but tmux's own
      assert.equal(2, seen.panes)
      assert.equal(0, #check.pids_of("tmux -S ./tmux.sock -f /dev/null new-session -s inner"))
    end)

    page_it("is closed with 1000 and the exit code as the reason", function()
      assert.same({ code = 1000, reason = '{"exit_code":7}', clean = true }, seen.closed)
    end)
  end)
end)
