local check = require("support.check")
local files = require("support.files")
local process = require("support.process")
local pty = require("support.pty")
local server = require("support.server")
local uv = require("luv")
local ws_frame = require("support.ws_frame")

local MIB = 1024 * 1024
-- 1 MB of lines of 99 characters, none like another.
local LINES = (function()
  local lines = {}
  for i = 1, 10000 do
    lines[i] = ("%08d %s\n"):format(i, ("abcdefghij"):rep(9))
  end
  return table.concat(lines)
end)()

--- Field fault 26.
describe("a paste of 1 MB", function()
  local abxd, baseline, client, started

  lazy_setup(function()
    abxd = server.start()
    baseline = abxd:baseline()
  end)
  before_each(function()
    client, started = pty.shell(abxd)
  end)
  after_each(function()
    client:close()
    pty.clean(abxd)
    for _, name in ipairs(files.list(abxd.base_dir)) do
      os.remove(abxd.base_dir .. "/" .. name)
    end
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  --- Asserts that a file in the base directory holds exactly that in the end.
  local function check_file(name, content)
    local path = abxd.base_dir .. "/" .. name
    process.poll(60000, function()
      local stat = uv.fs_stat(path)
      return stat and stat.size >= #content
    end)
    assert.is_true(files.read(path) == content, ("%s holds %d bytes instead of %d"):format(name, #files.read(path), #content))
  end

  it("in one message arrives whole, and its echo comes whole", function()
    client:input("cat > p\n")
    client:read_until("cat > p\r\n", nil, true)
    client:input(LINES)
    client:input("\4")
    local echo = client:read_until(pty.PROMPT, nil, true)
    check_file("p", LINES)
    assert.is_true(echo == LINES:gsub("\n", "\r\n") .. pty.PROMPT)
    pty.check_served(client)
  end)

  it("in binary frames arrives whole", function()
    client:input("cat > p\n")
    client:read_until("cat > p\r\n", nil, true)
    for at = 1, #LINES, 4096 do
      client:send_binary(LINES:sub(at, at + 4095))
    end
    client:send_binary("\4")
    client:read_until(pty.PROMPT, nil, true)
    check_file("p", LINES)
  end)

  it("arrives whole while as much flows the other way", function()
    local letters = LINES:gsub("[%d ]", "x")
    client:input("(" .. pty.numbered(200000) .. " & cat > p; wait); echo DO''NE\n")
    client:read_until("DO''NE\r\n", nil, true)
    client:input(letters)
    client:input("\4")
    local output = client:read_until("DONE\r\n", nil, true):sub(1, -7)
    check_file("p", letters)
    -- Its echo lies between the numbers and within them. The kernel drops what of it finds no room (n_tty's echo buffer).
    pty.check_numbered(0, (output:gsub("%D", ""):gsub(("%d"):rep(9), "%0\r\n")))
    assert.equal(200000 * 9, select(2, output:gsub("%d", "")))
  end)

  it("that nobody reads does not keep Ctrl-C from getting through", function()
    local bystander <close> = pty.shell(abxd)
    for _ = 1, 2 do
      client:input(check.sleep(4471) .. "\n")
      assert.is_true(process.poll(20000, function()
        return #check.pids_of(check.sleep(4471)) == 1
      end))
      client:input(("touch ran\n"):rep(90000))
      pty.check_served(bystander)
      check.prompt(abxd, 0.1)
      client:input("\3")
      client:read_until("^C", nil, true)
      client:read_until(pty.PROMPT .. "$")
      assert.equal(0, check.gone(check.sleep(4471), 20000))
    end
    assert.equal("130\r\n", pty.ask(client, "echo $?"))
    assert.same({}, files.list(abxd.base_dir)) -- what was pasted is gone, and did not run
  end)

  it("of any smaller size that nobody reads neither", function()
    -- From 4095 bytes on the kernel takes no more, up to some 16 KB without telling.
    local pastes = { ("x\r"):rep(2500) .. "x", "a\n" .. ("x"):rep(5000) }
    for _, size in ipairs { 1, 4094, 4095, 4096, 5000, 8192, 12000, 15000, 16000, 20000, 70000 } do
      pastes[#pastes + 1] = ("x\r"):rep(size // 2) .. ("y"):rep(size % 2)
    end
    for _, paste in ipairs(pastes) do
      for _, at_once in ipairs { false, true } do
        local terminal = pty.start(abxd, { command = "printf '" .. pty.PROMPT .. "'; exec sleep 60" })
        local sleeper = pty.attach(abxd, terminal.id)
        sleeper:read_until(pty.PROMPT, nil, true)
        if at_once then
          sleeper:send_binary(paste .. "\3")
        else
          sleeper:send_binary(paste)
          sleeper:send_binary("\3")
        end
        assert.equal(130, sleeper:expect_exit().exit_code, #paste .. " bytes")
        sleeper:close()
      end
    end
    pty.check_served(client)
  end)

  --- A program that takes what the terminal holds, and reads nothing.
  local function start_deaf(command)
    local terminal = pty.start(abxd, { command = "stty -icanon -echo; printf '" .. pty.PROMPT .. "'; " .. command })
    local deaf = pty.attach(abxd, terminal.id)
    deaf:read_until(pty.PROMPT, nil, true)
    return deaf, terminal.id
  end

  it("that nobody reads, byte by byte, costs neither time nor memory", function()
    local deaf = start_deaf("exec sleep 60")
    local byte = ws_frame.encode(2, "y")
    deaf:send_binary(("y"):rep(30000))
    local rss, cpu = process.rss_bytes(abxd.pid), process.cpu_s(abxd.pid)
    for _ = 1, 100 do
      deaf:send_raw(byte:rep(1000))
    end
    uv.sleep(400) -- from now on each is looked at for what interrupts
    for _ = 1, 20 do
      deaf:send_raw(byte:rep(1000))
    end
    deaf:send_json { type = "ping" }
    deaf:wait("pong")
    pty.check_served(client)
    assert.is_true(process.cpu_s(abxd.pid) - cpu < 8) -- were all of it looked at each time, it would take minutes
    assert.is_true(process.rss_bytes(abxd.pid) - rss < 24 * MIB)
    deaf:send_binary("\3")
    assert.equal(130, deaf:expect_exit().exit_code)
    deaf:close()
  end)

  it("that nobody reads is bounded for all clients together, whoever has left, and Ctrl-C gets through", function()
    local deaf, id = start_deaf("exec sleep 60")
    local refused
    for _ = 1, 12 do
      local other = pty.attach(abxd, id)
      other:send_binary(("y"):rep(1000000))
      other:send_json { type = "ping" }
      other:wait("pong")
      for _, message in ipairs(other.messages) do
        refused = refused or message.type == "error" and message.code
      end
      other:close()
    end
    assert.equal("busy", refused)
    deaf:send_binary("\3")
    assert.equal(130, deaf:expect_exit().exit_code)
    deaf:close()
  end)

  it("into a terminal that its program has closed costs nothing while it waits", function()
    local deaf = start_deaf("exec sleep 60 <&- >&- 2>&-")
    uv.sleep(300)
    deaf:send_binary(("y"):rep(200000))
    deaf:send_json { type = "ping" }
    deaf:wait("pong")
    local cpu = process.cpu_s(abxd.pid)
    uv.sleep(2000)
    assert.is_true(process.cpu_s(abxd.pid) - cpu < 0.3) -- of 2 s; a busy loop takes most of them
    deaf:close()
  end)

  it("that nobody reads is kept within bounds, and arrives when somebody does", function()
    client:input("stty raw -echo; echo RA''W; while ! [ -e go ]; do sleep 0.02; done; head -c 4000000 > p; " ..
      "stty sane; echo EN''D\n")
    client:read_until("RAW", nil, true)
    local before = abxd:rss_bytes()
    local data = LINES:rep(4)
    client.sock:settimeout(0.2)
    local frames, at = {}, 1
    for i = 1, #data, 65536 do
      frames[#frames + 1] = ws_frame.encode(ws_frame.BINARY, data:sub(i, i + 65535))
    end
    local bytes = table.concat(frames)
    repeat
      local sent, why, last = client.sock:send(bytes, at)
      at = (sent or last) + 1
    until why or at > #bytes
    assert.is_true(abxd:rss_bytes() - before < 16 * MIB * check.slack)
    check.prompt(abxd, 0.1)
    files.write(abxd.base_dir .. "/go", "")
    client:send_raw(bytes:sub(at))
    client:read_until("END", nil, true)
    check_file("p", data)
  end)

  it("arrives whole when its sender has left", function()
    client:input("cat > p\n")
    client:read_until("cat > p\r\n", nil, true)
    client:input(LINES)
    client:input("\4")
    client:leave()
    check_file("p", LINES)
    client = pty.attach(abxd, started.id, { since = -1 })
    client:input("\n")
    client:read_until(pty.PROMPT .. "$")
  end)
end)

describe("input", function()
  local abxd, baseline, client

  lazy_setup(function()
    abxd = server.start()
    baseline = abxd:baseline()
  end)
  before_each(function()
    client = pty.shell(abxd)
  end)
  after_each(function()
    client:close()
    pty.clean(abxd)
    os.remove(abxd.base_dir .. "/p")
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  --- Switches the terminal to raw mode for a program that then reads; what it printed when it is done.
  local function in_raw_mode(command, send)
    client:input("stty raw -echo; echo RA''W; " .. command .. "; stty sane; echo EN''D\n")
    client:read_until("RAW\n", nil, true)
    send()
    local output = client:read_until("END", nil, true)
    return output:sub(1, -4)
  end

  it("of a line over 4095 characters loses to the kernel's limit only", function()
    client:input("cat > p\n")
    client:read_until("cat > p\r\n", nil, true)
    client:input(("x"):rep(5000) .. "\n")
    client:input("next\n\4")
    client:read_until(pty.PROMPT, nil, true)
    assert.equal(("x"):rep(4095) .. "\nnext\n", files.read(abxd.base_dir .. "/p"))
  end)

  it("of any length and any bytes arrives whole in raw mode", function()
    in_raw_mode("head -c 5000 > p", function()
      client:input(("x"):rep(5000))
    end)
    assert.equal(("x"):rep(5000), files.read(abxd.base_dir .. "/p"))
    local all = {}
    for i = 0, 255 do
      all[i + 1] = string.char(i)
    end
    local bytes = table.concat(all):rep(1000)
    in_raw_mode("head -c 256000 > p", function()
      client:send_binary(bytes)
    end)
    assert.is_true(files.read(abxd.base_dir .. "/p") == bytes)
    assert.equal("00c3a9f09f9880", (in_raw_mode("head -c 7 | od -An -v -tx1 | tr -d ' \\n'", function()
      client:send_text('{"type":"input","data":"\\u0000é\\ud83d\\ude00"}')
    end)))
  end)

  it("of several clients keeps the order of each, and each message whole", function()
    client:input("cat > p\n")
    client:read_until("cat > p\r\n", nil, true)
    local id = next(pty.list(abxd))
    local writers, expected = {}, {}
    for i = 1, 4 do
      writers[i] = pty.attach(abxd, id, { since = -1 })
    end
    for line = 1, 200 do
      for i = 1, 4 do
        expected[#expected + 1] = ("%d %d %s\n"):format(i, line, ("-"):rep(line))
        writers[i]:input(expected[#expected])
      end
    end
    for i = 1, 4 do
      writers[i]:send_json { type = "ping" }
      writers[i]:wait("pong") -- all of it was taken
      writers[i]:close()
    end
    client:input("\4")
    client:read_until(pty.PROMPT .. "$")
    local at, seen = { 0, 0, 0, 0 }, {}
    for writer, line in files.read(abxd.base_dir .. "/p"):gmatch("(%d) (%d+) %-+\n") do
      writer, line = tonumber(writer), tonumber(line)
      assert.equal(at[writer] + 1, line)
      at[writer] = line
    end
    assert.same({ 200, 200, 200, 200 }, at)
    for line in files.read(abxd.base_dir .. "/p"):gmatch("[^\n]*\n") do
      seen[#seen + 1] = line
    end
    table.sort(seen)
    table.sort(expected)
    assert.same(expected, seen)
  end)
end)
