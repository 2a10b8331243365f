local check = require("support.check")
local files = require("support.files")
local process = require("support.process")
local pty = require("support.pty")
local server = require("support.server")
local ws = require("support.ws")

local MIB = 1024 * 1024
local RING_BYTES = 4 * MIB
local EMOJI = "\u{1F600}"

describe("the output of a terminal", function()
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start()
    baseline = abxd:baseline()
  end)
  after_each(function()
    os.remove(abxd.base_dir .. "/go")
    pty.clean(abxd)
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  --- Polls until the offset of a terminal has not grown for a while; where it stands.
  local function wait_still(id)
    local last, same = -1, 0
    process.poll(60000, function()
      local offset = pty.list(abxd)[id].offset
      same = offset == last and same + 1 or 0
      last = offset
      return same >= 60
    end)
    return last
  end

  --- Field fault 25.
  it("flows on when nobody is attached, and its tail is there", function()
    local client = pty.attach(abxd, pty.start(abxd, "seq 1 3000000; echo DONE > done").id)
    local id = client.ready.id
    client:abort()
    assert.is_true(process.poll(300000, function()
      return files.exists(abxd.base_dir .. "/done")
    end))
    local listed = pty.wait_end(abxd, id)
    local total = 0
    for digits = 1, 7 do
      local count = math.min(10 ^ digits - 1, 3000000) - 10 ^ (digits - 1) + 1
      total = total + math.tointeger(count) * (digits + 2)
    end
    assert.equal(total, listed.offset)
    local late <close> = pty.attach(abxd, id)
    assert.is_true(late.ready.offset >= total - RING_BYTES and late.ready.offset < total - RING_BYTES // 2)
    assert.equal(0, late:expect_exit().exit_code)
    local tail = late:take_output()
    assert.equal(total - late.ready.offset, #tail)
    assert.same({}, late.gaps)
    local whole, count = tail:match("\n(.*)$"), 0
    for _ in whole:gmatch("\n") do
      count = count + 1
    end
    local numbers = {}
    for i = 3000000 - count + 1, 3000000 do
      numbers[#numbers + 1] = i .. "\r\n"
    end
    assert.is_true(whole == table.concat(numbers))
    local first <close> = pty.attach(abxd, id, { since = 0 })
    first:expect_exit()
    assert.equal(late.ready.offset, first.ready.offset)
    assert.same({ { type = "gap", from = 0, to = late.ready.offset } }, first.gaps)
    assert.is_true(first:take_output() == tail)
    local raw <close> = ws.connect(abxd, id, { query = { mode = "raw", since = 0 } })
    assert.equal(0, raw:expect_exit().exit_code)
    assert.is_true(raw:take_output() == tail)
  end)

  it("is paced by a client, in flat memory, when it reads no more", function()
    local client <close> = pty.attach(abxd, pty.start(abxd, "yes").id)
    client:read_to(MIB)
    local id, before = client.ready.id, abxd:rss_bytes()
    local still = wait_still(id)
    -- What the sockets hold, besides the mebibyte that a client may be behind.
    assert.is_true(still - client.offset < 32 * MIB, still - client.offset)
    assert.is_true(abxd:rss_bytes() - before < 16 * MIB * check.slack)
    check.prompt(abxd, 0.1)
    local other <close> = pty.shell(abxd)
    pty.check_served(other)
    still = pty.list(abxd)[id].offset
    assert.is_true(still - client.offset < 32 * MIB, still - client.offset)
    local text = client:read_to(still + 4 * MIB) -- and goes on with it
    local skip = (client.offset - #text) % 3
    assert.is_true(text == ("y\r\n"):rep(#text // 3 + 2):sub(skip + 1, skip + #text))
    assert.same({}, client.gaps)
  end)

  it("is paced by the fastest client; a slow one gets a gap and what follows it", function()
    local LINES = 6000000 -- 66 MB: more than sockets and ring hold
    local started = pty.start(abxd, "while ! [ -e go ]; do sleep 0.02; done; " .. pty.numbered(LINES))
    local slow <close> = pty.attach(abxd, started.id)
    local fast <close> = pty.attach(abxd, slow.ready.id)
    local watcher <close> = pty.attach(abxd, slow.ready.id, { access = "ro" })
    files.write(abxd.base_dir .. "/go", "")
    pty.check_numbered(0, slow:read_to(1000))
    local slow_at = slow.offset
    local before = abxd:rss_bytes()
    while fast.offset < 40 * MIB do
      local at = fast.offset
      pty.check_numbered(at, fast:read_to(at + MIB))
    end
    assert.is_true(abxd:rss_bytes() - before < 24 * MIB * check.slack)
    assert.same({}, fast.gaps)
    local at = slow_at
    while #slow.gaps == 0 do
      slow:step()
      if #slow.gaps == 0 then
        local text = slow:take_output()
        pty.check_numbered(at, text)
        at = at + #text
      end
    end
    local gap = slow.gaps[1]
    assert.equal(at, gap.from)
    assert.is_true(gap.to > gap.from and gap.to <= pty.list(abxd)[slow.ready.id].offset)
    pty.check_numbered(gap.to, slow:read_to(gap.to + 100000)) -- it is the fastest now
    watcher:close()
    fast:close()
    slow:close()
  end)

  it("goes on at full speed when the slow one has left", function()
    local slow = pty.attach(abxd, pty.start(abxd, pty.numbered(2000000)).id)
    wait_still(slow.ready.id)
    slow:abort()
    assert.equal(0, pty.wait_end(abxd, slow.ready.id).exit_code)
    assert.equal(pty.numbered_bytes(2000000), pty.list(abxd)[slow.ready.id].offset)
  end)

  describe("never cuts a character", function()
    --- Reads a terminal to its end message by message: each must be UTF-8. What came.
    local function read_whole(client)
      repeat
        local message = client:step()
        assert.is_true(message.kind ~= "binary" or utf8.len(message.data) ~= nil)
      until message.kind == "close"
      return client:take_output()
    end

    it("where the ring's border lies in one", function()
      -- The border moves by one byte with each.
      for pad = 0, 3 do
        local id = pty.start(abxd, ("printf %%s '%s'; s=$(printf 'a%%.0s' {1..65535})%s; " ..
          "for i in {1..70}; do printf %%s $s; done"):format(("x"):rep(pad), EMOJI)).id
        pty.wait_end(abxd, id)
        local client <close> = pty.attach(abxd, id)
        local text = read_whole(client)
        assert.is_true(client.ready.offset > 0)
        local period = ("a"):rep(65535) .. EMOJI
        local skip = (client.ready.offset - pad) % #period
        assert.is_true(text == period:rep(#text // #period + 2):sub(skip + 1, skip + #text))
      end
    end)

    it("where all are long", function()
      for pad = 0, 3 do
        local id = pty.start(abxd, ("printf '%s'; yes %s | head -c 5000000 | tr -d '\\n'"):format(("x"):rep(pad), EMOJI)).id
        pty.wait_end(abxd, id)
        local client <close> = pty.attach(abxd, id)
        local text = read_whole(client)
        assert.equal(pad + 4000000, client.offset)
        assert.is_true(text == EMOJI:rep(#text // 4) or client.ready.offset == 0 and text == ("x"):rep(pad) .. EMOJI:rep(1000000))
      end
    end)

    it("as it flows, but where the rest does not come soon, and never loses any of it", function()
      local id = pty.start(abxd, "while ! [ -e go ]; do sleep 0.02; done; printf x; yes " .. EMOJI ..
        " | head -c 5000000 | tr -d '\\n'").id
      local client <close> = pty.attach(abxd, id)
      files.write(abxd.base_dir .. "/go", "")
      client:expect_exit()
      assert.is_true(client:take_output() == "x" .. EMOJI:rep(1000000))
    end)

    it("whose end comes later: one who attaches between gets all of it", function()
      local id = pty.start(abxd, [[printf 'x\360\237'; while ! [ -e go ]; do sleep 0.02; done; printf '\230\200y']]).id
      pty.wait_field(abxd, id, "offset", 3)
      local none <close> = pty.attach(abxd, id, { since = -1 })
      local all <close> = pty.attach(abxd, id)
      local exact <close> = pty.attach(abxd, id, { since = 2 })
      assert.same({ 1, 0, 2 }, { none.ready.offset, all.ready.offset, exact.ready.offset })
      files.write(abxd.base_dir .. "/go", "")
      for client, expected in pairs { [none] = EMOJI .. "y", [all] = "x" .. EMOJI .. "y", [exact] = EMOJI:sub(2) .. "y" } do
        assert.equal(0, client:expect_exit().exit_code)
        assert.equal(expected, client:take_output())
      end
    end)

    it("but what is none comes as it is, and without the rest", function()
      local all = {}
      for i = 0, 255 do
        all[i + 1] = string.char(i)
      end
      files.write(abxd.base_dir .. "/all", table.concat(all):rep(300))
      local client <close> = ws.connect(abxd, pty.start(abxd, [[stty raw; cat all; printf 'x\360\237']]).id)
      assert.equal(0, client:expect_exit().exit_code)
      assert.is_true(client:take_output() == table.concat(all):rep(300) .. "x\xf0\x9f")
    end)
  end)

  it("of thirty terminals at once comes whole", function()
    local clients = {}
    for i = 1, 30 do
      clients[i] = pty.attach(abxd, pty.start(abxd, pty.numbered(30000)).id)
    end
    for i = 1, 30 do
      assert.equal(0, clients[i]:expect_exit().exit_code)
      local text = clients[i]:take_output()
      assert.equal(pty.numbered_bytes(30000), #text)
      pty.check_numbered(0, text)
      clients[i]:close()
    end
  end)
end)
