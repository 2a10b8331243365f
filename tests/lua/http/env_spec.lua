local check = require("support.check")
local files = require("support.files")
local json = require("support.json")
local process = require("support.process")
local server = require("support.server")
local sse = require("support.sse")

local ODD = "a\nb=c \"d\" 'e' $HOME $(id) \\ \t ü=\n"
local LOOK = "printf '%s|%s|%s' \"$K\" \"${E-unset}\" \"${GONE-unset}\""

local COMMANDS = [[
return {
  { name = "look", description = "Shows variables", argv = { "sh", "-c", [=[LOOK]=] } },
  { name = "look-own", description = "Shows variables", argv = { "sh", "-c", [=[LOOK]=] }, env = { K = "its own" } },
}
]]

describe("the environment", function()
  local abxd, baseline

  before_each(function()
    local tables = server.copy_tables()
    files.write(tables.commands, (COMMANDS:gsub("LOOK", function()
      return LOOK
    end)))
    abxd = server.start { tables = tables, args = { "--log-level", "debug" }, env = {
      ABX_SERVER_TOKEN = "tok-e31", GONE = "there", OWN = "1", DB_PASSWORD = "pw-own", MONKEY = "seen",
      DB_URL = "postgres://me:pw-url@db/x?a=b", BAD = "\xff\xfe",
      QUOTED_URL = "https%3A//me%3Apw-quoted%40db", ABX_PROCESS_ID = "p-outer",
    } }
    abxd.owns_tables = true
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
    abxd:stop()
  end)

  local function get()
    return check.ok(abxd:get("/env"))
  end
  local function set(values, unset)
    return check.ok(abxd:post("/env", { set = values, unset = unset }))
  end
  local function sh(command, fields)
    fields = fields or {}
    fields.command = command
    return check.ok(abxd:post("/shell", fields)).stdout
  end
  --- What every way to run a program sees of the three variables that LOOK shows.
  local function everywhere()
    local seen = { shell = sh(LOOK), session = sh(LOOK, { session = "s" }) }
    local events = sse.parse(abxd:post("/shell/stream", { command = LOOK }).body)
    seen.stream = ""
    for _, event in ipairs(events) do
      seen.stream = seen.stream .. (event.event == "stdout" and event.data.data or "")
    end
    seen.command = check.ok(abxd:post("/commands/look", {})).stdout
    files.write(abxd.base_dir .. "/seen", "")
    local started = abxd:post("/processes", { command = "(" .. LOOK .. ") > seen.tmp; mv seen.tmp seen" })
    assert.equal(201, started.status)
    seen.process = process.poll(10000, function()
      local text = files.read(abxd.base_dir .. "/seen")
      return text ~= "" and text or nil
    end)
    return seen
  end
  local function all_see(text)
    assert.same({ shell = text, session = text, stream = text, command = text, process = text }, everywhere())
  end

  it("is shown with its secrets hidden", function()
    local shown = get()
    assert.equal("there", shown.env.GONE)
    assert.equal("seen", shown.env.MONKEY)
    assert.equal("***", shown.env.DB_PASSWORD)
    assert.equal("postgres://me:***@db/x?a=b", shown.env.DB_URL)
    assert.equal("https%3A//me%3A***%40db", shown.env.QUOTED_URL)
    assert.equal("\u{FFFD}\u{FFFD}", shown.env.BAD)
    assert.same({ nil, nil }, { shown.env.ABX_SERVER_TOKEN, shown.env.ABX_PROCESS_ID })
    assert.same({ "DB_PASSWORD", "DB_URL", "QUOTED_URL" }, shown.masked)
    assert.same({}, shown.overrides)
    assert.is_nil(abxd:get("/env").body:find("pw-", 1, true))
  end)

  it("that was set and unset is what every later program gets, byte for byte", function()
    all_see("|unset|there")
    assert.same({ set = { "E", "K" }, unset = { "GONE", "NEVER" } }, set({ K = ODD, E = "" }, { "NEVER", "GONE", "GONE" }))
    all_see(ODD .. "||unset")
    local shown = get()
    assert.same({ ODD, "", nil }, { shown.env.K, shown.env.E, shown.env.GONE })
    assert.same({ "E", "GONE", "K" }, shown.overrides)
    assert.equal("other||unset", sh(LOOK, { env = { K = "other" } }))
    assert.equal("its own||unset", check.ok(abxd:post("/commands/look-own", {})).stdout)
    -- Again the same changes nothing.
    set({ K = ODD }, { "GONE" })
    assert.same({ "E", "GONE", "K" }, get().overrides)
    set({ GONE = "back" }, { "K", "E" })
    all_see("|unset|back")
    assert.same({ "GONE" }, get().overrides)
  end)

  it("is found by a session that goes on, unless it exported or unset the name itself", function()
    sh("true", { session = "s" })
    set { K = "1", GONE = "1" }
    assert.equal("1|unset|1", sh(LOOK, { session = "s" }))
    sh("export K=mine; unset GONE", { session = "s" })
    set { K = "2", GONE = "2" }
    assert.equal("mine|unset|unset", sh(LOOK, { session = "s" }))
    assert.equal("2|unset|2", sh(LOOK, { session = "t" }))
    set({}, { "K" })
    assert.equal("mine|unset|unset", sh(LOOK, { session = "s" }))
    assert.equal("|unset|2", sh(LOOK, { session = "t" }))
  end)

  it("outlives a reload of the tables", function()
    set({ K = "kept", MY_TOKEN = "t" }, { "GONE" })
    abxd:reload()
    assert.equal("kept|unset|unset", sh(LOOK))
    assert.same({ "GONE", "K", "MY_TOKEN" }, get().overrides)
    assert.same({ "DB_PASSWORD", "DB_URL", "MY_TOKEN", "QUOTED_URL" }, get().masked)
  end)

  it("is changed as a whole or not at all", function()
    set { K = "before" }
    local before = get()
    for _, name in ipairs { "PATH", "HOME", "USER", "SHELL", "ABX_SERVER_TOKEN", "ABX_SERVER_NEW", "ABX_PROCESS_ID" } do
      check.problem(abxd:post("/env", { set = { K = "x", A = "1", [name] = "/tmp" } }), 403, "protected_variable",
        "set." .. name)
      check.problem(abxd:post("/env", { set = { K = "x" }, unset = { "OWN", name } }), 403, "protected_variable",
        "unset[1]")
    end
    for _, name in ipairs { "A;touch " .. abxd.base_dir .. "/x", "A=B", "1A", "BASH_FUNC_x%%", "A B", "A\nB", "Ä" } do
      check.problem(abxd:post("/env", { set = { K = "x", [name] = "1" } }), 400, "invalid_request")
      check.problem(abxd:post("/env", { set = { K = "x" }, unset = { "OWN", name } }), 400, "invalid_request", "unset[1]")
    end
    check.problem(abxd:post("/env", { set = { K = "x", [""] = "1" } }), 400, "invalid_request")
    check.problem(abxd:post("/env", { set = { K = "x", A = "nul\0" } }), 400, "invalid_request", "set.A")
    check.problem(abxd:post("/env", { set = { K = "x", A = json.null } }), 400, "invalid_request")
    check.problem(abxd:post("/env", { set = { K = "x", A = 5 } }), 400, "invalid_request")
    check.problem(abxd:post("/env", { set = { K = "x" }, unset = { "K" } }), 400, "invalid_request", "unset[0]")
    assert.same(before, get())
    assert.equal("before||there", sh(LOOK):gsub("unset", "", 1))
    assert.is_false(files.exists(abxd.base_dir .. "/x"))
  end)

  it("tells all malformed names and values at once", function()
    local refused = check.problem(abxd:post("/env", { set = { ["1A"] = "x\0", B = "b\0", OK = "1" }, unset = { "K", "A B" } }),
      400, "invalid_request", "set.1A")
    local fields = {}
    for i, fault in ipairs(refused.errors) do
      fields[i] = fault.field
    end
    assert.same({ "set.1A", "set.1A", "set.B", "unset[1]" }, fields)
  end)

  it("takes no mask for a value", function()
    set { MY_KEY = "k1" }
    check.problem(abxd:post("/env", { set = { MY_KEY = "***" } }), 400, "invalid_request", "set.MY_KEY")
    check.problem(abxd:post("/env", { set = { NEW_SECRET = "***" } }), 400, "invalid_request", "set.NEW_SECRET")
    check.problem(abxd:post("/env", { set = { DB_URL = get().env.DB_URL } }), 400, "invalid_request", "set.DB_URL")
    set { PLAIN = "***" }
    assert.equal("k1***postgres://me:pw-url@db/x?a=b", sh("printf '%s%s%s' $MY_KEY $PLAIN $DB_URL"))
  end)

  it("is bounded, and what fits can be run", function()
    local limit = 128 * 1024 - 1
    check.problem(abxd:post("/env", { set = { B = ("x"):rep(limit - 1) } }), 413, "payload_too_large", "set.B")
    set { B = ("x"):rep(limit - 2) }
    assert.equal(tostring(limit - 2), sh("printf %s ${#B}"))
    for i = 1, 6 do
      set { ["B" .. i] = ("x"):rep(limit - 3) }
    end
    local refused = abxd:post("/env", { set = { B7 = ("x"):rep(limit - 3) } })
    assert.matches("1048576", check.problem(refused, 413, "payload_too_large", "set").detail)
    assert.equal(tostring(limit - 3), sh("printf %s ${#B6}"))
    assert.is_nil(get().env.B7)
    set({}, { "B6" })
    assert.equal("unset", sh("printf %s ${B6-unset}"))
  end)

  it("is changed by one request after the other", function()
    local conns = {}
    for i = 1, 20 do
      conns[i] = abxd:connect()
      conns[i]:send_request("POST", "/env", { json = { set = { X1 = tostring(i), X2 = tostring(i), X3 = tostring(i) } } })
    end
    for i = 1, 20 do
      check.ok(conns[i]:read_response("POST"))
      conns[i]:close()
    end
    local env = get().env
    assert.same({ env.X1, env.X1 }, { env.X2, env.X3 })
  end)

  it("of our own workers stays as it was", function()
    files.write(abxd.base_dir .. "/f", "content")
    set { LD_PRELOAD = "/nowhere/evil.so", TMPDIR = "/nowhere" }
    local answer = abxd:get("/download?path=.&archive=tar.gz")
    assert.equal(200, answer.status)
    assert.is_true(#answer.body > 20)
    set({}, { "LD_PRELOAD", "TMPDIR" })
  end)

  it("holds nothing of the server's own for any program", function()
    assert.equal("0\n", sh("env | grep -c ^ABX_SERVER_"))
    local look = "env; tr '\\0' '\\n' </proc/$PPID/environ; tr '\\0' ' ' </proc/$PPID/cmdline"
    local texts = { sh(look), abxd:post("/shell/stream", { command = look }).body }
    assert.equal(201, abxd:post("/processes", { command = "(" .. look .. ") >seen.tmp 2>&1; mv seen.tmp seen" }).status)
    texts[3] = process.poll(10000, function()
      return files.exists(abxd.base_dir .. "/seen") and files.read(abxd.base_dir .. "/seen")
    end)
    for _, text in ipairs(texts) do
      assert.matches("OWN=1", text)
      assert.is_nil(text:find("tok-e31", 1, true))
    end
  end)
end)

describe("secrets that clients send", function()
  it("stand in no log line and no problem", function()
    local abxd <close> = server.start { args = { "--log-level", "debug" } }
    local function said(answer)
      return answer.body
    end
    local texts = {
      said(abxd:get("/files/read?path=" .. "http://me:hush1@host/x")),
      said(abxd:get("/files/read?path=API_KEY=hush2")),
      said(abxd:get("/nope/TOKEN=hush3/x://u:hush4@h")),
      said(abxd:get("/nope/x%3A%2F%2Fu%3Ahush5%40h?token=hush6")),
      said(abxd:post("/shell", { argv = { "--password=hush7" } })),
      said(abxd:post("/shell", { command = "true", cwd = "SECRET=hush8" })),
      said(abxd:post("/shell", { command = "true", ["x://u:hush9@h"] = 1 })),
      said(abxd:post("/commands/TOKEN=hush10", {})),
      said(abxd:post("/shell", { command = "true", ["postgres://u:" .. ("hush13"):rep(20) .. "@h"] = 1 })),
      said(abxd:get("/files/read?path=postgres://u:" .. ("hush14"):rep(35) .. "@h")),
      said(abxd:post("/env", { set = { ["TOKEN=hush11"] = "x" } })),
      said(abxd:post("/env", { set = { A = "x" }, unset = { "TOKEN=hush12" } })),
      said(abxd:get("/files/read?path=https%3A//u%3Ahush15%40h")),
      said(abxd:get("/nope/https%3A//u%3Ahush16%40h")),
      said(abxd:get("/nope/https:%2f%2fu:hush17@h")),
      said(abxd:post("/shell", { argv = { '{"password": "hush18"}' } })),
      said(abxd:post("/shell", { command = "true", cwd = [[{\"token\":\"hush19\"}]] })),
      said(abxd:post("/shell", { command = "true", ["--header=X-Token:\\ hush20"] = 1 })),
    }
    local log = abxd:log_text()
    assert.is_nil((table.concat(texts, "\n") .. log):match("hush%d+"))
    assert.matches("/nope/TOKEN=%*%*%*", log)
  end)
end)
