local check = require("support.check")
local process = require("support.process")
local server = require("support.server")

--- What df tells, by path. It waits for file systems that hang, which this machine is supposed not to have.
local function df_rows()
  local rows = {}
  local text = process.run({ "df", "-P", "-B1", "-T" }, { env = { LC_ALL = "C", PATH = os.getenv("PATH") } }).stdout
  for line in text:gmatch("[^\n]+") do
    local kind, total, used, available, percent, path =
      line:match("^%S+%s+(%S+)%s+(%d+)%s+(%d+)%s+(%d+)%s+(%d+)%%%s+(/.*)$")
    if path then
      rows[path] = { type = kind, total = tonumber(total), used = tonumber(used), available = tonumber(available),
        percent = tonumber(percent) }
    end
  end
  return rows
end

local function disks(abxd)
  local by_path = {}
  for _, row in ipairs(check.ok(abxd:get("/system/disk")).filesystems) do
    assert.is_nil(by_path[row.path])
    by_path[row.path] = row
  end
  return by_path
end

describe("GET /system/disk", function()
  local abxd, baseline

  lazy_setup(function()
    abxd = server.start()
    check.ok(abxd:get("/system/disk"))
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  it("tells what df tells", function()
    local seen, known = disks(abxd), df_rows()
    assert.is_table(known["/"])
    for path, row in pairs(known) do
      local disk = assert(seen[path], "df knows " .. path)
      assert.same({ row.type, row.total }, { disk.type, disk.total_bytes }, path)
      -- Others write meanwhile.
      local slack = 64 * 1024 * 1024
      assert.is_true(math.abs(row.used - disk.used_bytes) <= slack, path)
      assert.is_true(math.abs(row.available - disk.available_bytes) <= slack, path)
      assert.is_true(math.abs(row.percent - disk.percent) <= 1 + 100 * slack / row.total, path)
    end
  end)

  it("tells of no file system of the kernel, and of none twice", function()
    for path, row in pairs(disks(abxd)) do
      assert.is_false(({ proc = true, sysfs = true, cgroup = true, cgroup2 = true, devpts = true, mqueue = true,
        tracefs = true, securityfs = true })[row.type] or false, path)
      assert.is_boolean(row.read_only)
      assert.is_true(row.used_bytes + row.available_bytes <= row.total_bytes, path)
      assert.is_true(row.inodes_used <= row.inodes_total, path)
      assert.is_true(row.percent >= 0 and row.percent <= 100)
    end
  end)

  it("does not hold up others", function()
    for _ = 1, 20 do
      check.ok(abxd:get("/system/disk"))
    end
    check.prompt(abxd, 0.05)
  end)
end)

describe("GET /system/disk in a mount namespace", function()
  --- A server that sees mounts of its own; nil where this machine allows none.
  local function start(mounts)
    local prefix = { "unshare", "--mount", "--propagation", "private", "--fork", "sh", "-c",
      "set -e\n" .. mounts .. '\nexec "$@"', "sh" }
    local probe = process.run({ "unshare", "--mount", "--propagation", "private", "true" },
      { env = { PATH = os.getenv("PATH") } })
    if probe.code ~= 0 then
      print("NOT RUN: mounts: this machine allows no mount namespace")
      return nil
    end
    return server.start { prefix = prefix, env = { PATH = os.getenv("PATH") } }
  end

  it("tells of odd paths, over-mounted ones, bind mounts and read-only ones", function()
    local abxd <close> = start([[
      mount -t tmpfs -o size=1M,nr_inodes=77 top /mnt
      mkdir -p "/mnt/a b" "/mnt/c\d" /mnt/over /mnt/bind /mnt/ro "$(printf '/mnt/x\377')"
      mount -t tmpfs -o size=2M t "/mnt/a b"
      mount -t tmpfs -o size=3M t '/mnt/c\d'
      mount -t tmpfs -o size=4M t /mnt/over
      mount -t tmpfs -o size=5M t /mnt/over
      mount --bind /mnt /mnt/bind
      mount -t tmpfs -o size=6M,ro t /mnt/ro
      mount -t tmpfs -o size=7M t "$(printf '/mnt/x\377')"
    ]])
    if not abxd then
      return
    end
    local seen = disks(abxd)
    local MiB = 1024 * 1024
    assert.same({ MiB, "tmpfs", false, 77 }, { seen["/mnt"].total_bytes, seen["/mnt"].type, seen["/mnt"].read_only,
      seen["/mnt"].inodes_total })
    assert.equal(2 * MiB, seen["/mnt/a b"].total_bytes)
    assert.equal(3 * MiB, seen["/mnt/c\\d"].total_bytes)
    assert.equal(5 * MiB, seen["/mnt/over"].total_bytes)
    assert.is_nil(seen["/mnt/bind"])
    assert.same({ 6 * MiB, true }, { seen["/mnt/ro"].total_bytes, seen["/mnt/ro"].read_only })
    local odd = seen["/mnt/x\u{FFFD}"]
    assert.same({ 7 * MiB, "L21udC94/w==" }, { odd.total_bytes, odd.path_base64 })
  end)
end)
