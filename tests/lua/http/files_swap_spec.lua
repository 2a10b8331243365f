--- Directories turn into links that leave the base, and back, while clients work in them: no verb ever reads or changes
--- what is outside. As the kernel confines paths (openat2), and where it cannot.
local file_verbs = require("support.file_verbs")
local files = require("support.files")
local http = require("support.http")
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")
local snapshot = require("support.snapshot")
local uv = require("luv")

local SECRET = "the inner secret of the outside"
-- At least so long; at most where a verb has not met both states by then.
local RUN_S, RUN_MAX_S = 10, 120

local launcher = server.tool("without_openat2")

--- Runs swap on two names until the variable goes out of scope.
local function swapping(one, other)
  local child = process.start({ server.tool("swap"), one, other }, {})
  return setmetatable({ child = child }, { __close = function()
    child:kill("sigkill")
    child:wait(5000)
  end })
end

--- Each verb has files of its own in the directory that is swapped, so that each can work in every round.
local function name_of(verb, index)
  if verb.on == "directory" then
    return "t/d"
  end
  return ("t/d/%s-%d"):format(verb.on == "place" and "n" or "f", index)
end

--- Puts back what the last round changed. The real directory is reached by its descriptor, whatever it is called now.
local function prepare(base, dir)
  for index, verb in ipairs(file_verbs.all) do
    if verb.on ~= "directory" and verb.on ~= "place" then
      files.write(("%s/f-%d"):format(dir, index), "inner")
    end
    files.remove_tree(("%s/n-%d"):format(dir, index))
    files.write(("%s/other-%d"):format(base, index), "other")
  end
  if not files.exists(dir .. "/sub") then
    files.mkdir(dir .. "/sub")
  end
  files.write(dir .. "/sub/f", "inner")
  files.remove_tree(base .. "/tree-copy")
  files.remove_tree(base .. "/all-copy")
  if not files.exists(base .. "/gone/d") then
    files.remove_tree(base .. "/gone")
    files.mkdir(base .. "/gone")
    files.mkdir(base .. "/gone/x")
    files.mkdir(base .. "/gone/x/sub")
    files.write(base .. "/gone/x/sub/f", "inner")
    uv.fs_symlink("../../outside", base .. "/gone/l")
    uv.fs_rename(base .. "/gone/x", base .. "/gone/d")
  end
end

--- Requests on trees in which the swapped directory lies.
local TREES = {
  { "GET", "/files/list?path=t&recursive=true" },
  { "GET", "/download?path=t&archive=zip" },
  { "POST", "/files/search", { json = { path = "t", pattern = "secret|inner" } } },
  { "POST", "/files/copy", { json = { source = "t", destination = "all-copy" } } },
  { "POST", "/files/copy", { json = { source = "t/d", destination = "tree-copy" } } },
  { "DELETE", "/files/delete?path=t/d/sub&recursive=true" },
  { "DELETE", "/files/delete?path=gone&recursive=true" },
}

local function assert_no_secret(answer, what)
  assert.is_true(answer.status < 500, what .. ": " .. answer.status .. " " .. answer.body)
  assert.is_nil(answer.body:find(SECRET, 1, true), what)
  assert.is_nil(answer.body:find("only-outside", 1, true), what)
end

local function test(prefix)
  local abxd <close> = server.start { prefix = prefix }
  local base, outside = abxd.base_dir, abxd.root .. "/outside"
  files.mkdir(base .. "/t")
  files.mkdir(base .. "/t/d")
  for _, dir in ipairs { outside, outside .. "/sub", outside .. "/sub/deep" } do
    files.mkdir(dir)
    files.write(dir .. "/f", SECRET)
    files.write(dir .. "/only-outside", SECRET)
  end
  for index in ipairs(file_verbs.all) do
    files.write(("%s/f-%d"):format(outside, index), SECRET)
    files.write(("%s/n-%d"):format(outside, index), SECRET)
  end
  uv.fs_symlink(outside, base .. "/t/l")
  local before = snapshot(outside, true)
  local fd <const> = assert(uv.fs_open(base .. "/t/d", "r", 0))
  local dir = "/proc/self/fd/" .. fd
  prepare(base, dir)

  local worked, refused, unseen = {}, {}
  local began, rounds = os.time(), 0
  do
    local first <close> = swapping(base .. "/t/d", base .. "/t/l")
    local second <close> = swapping(base .. "/gone/d", base .. "/gone/l")
    repeat
      prepare(base, dir)
      local conns = {}
      for index, verb in ipairs(file_verbs.all) do
        conns[index] = http.connect(abxd)
        conns[index]:send_request(verb.request(name_of(verb, index), "other-" .. index))
      end
      for index, request in ipairs(TREES) do
        conns[#file_verbs.all + index] = http.connect(abxd)
        conns[#file_verbs.all + index]:send_request(table.unpack(request))
      end
      for index, conn in ipairs(conns) do
        local answer = conn:read_response()
        conn:close()
        local verb = file_verbs.all[index]
        assert_no_secret(answer, verb and verb.name or table.concat(TREES[index - #file_verbs.all], " ", 1, 2))
        if verb then
          worked[verb.name] = worked[verb.name] or answer.status < 300
          refused[verb.name] = refused[verb.name] or answer.status == 403
        end
      end
      rounds, unseen = rounds + 1, {}
      for _, verb in ipairs(file_verbs.all) do
        if not (worked[verb.name] and refused[verb.name]) then
          unseen[#unseen + 1] = verb.name
        end
      end
    until os.time() - began >= (#unseen == 0 and RUN_S or RUN_MAX_S)
    assert.is_true(first.child:is_running() and second.child:is_running())
  end
  uv.fs_close(fd)
  assert.same({}, unseen, rounds .. " rounds")
  assert.same(before, snapshot(outside, true))
end

describe("A directory swapped for a link that leaves the base", function()
  it("never leads a verb out, by openat2", function()
    if not launcher then
      skip("files_swap_spec", "the server was built without the tools of its tests")
    end
    test()
  end)

  it("never leads a verb out, by the walk", function()
    if not launcher or process.run({ launcher, "true" }).code ~= 0 then
      skip("files_swap_spec: by the walk", "no seccomp filters here")
    end
    test { launcher }
  end)
end)
