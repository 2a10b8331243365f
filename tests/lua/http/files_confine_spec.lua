--- No verb leaves the base directory, whatever way of naming leads out of it; and every way that stays inside works. All of
--- it twice: as the kernel confines paths (openat2), and where it cannot.
local check = require("support.check")
local file_verbs = require("support.file_verbs")
local files = require("support.files")
local server = require("support.server")
local skip = require("support.skip")
local snapshot = require("support.snapshot")
local uv = require("luv")

local SECRET = "the inner secret of the outside"

--- Beside the base stand `outside` and `base-evil`; what leads there from inside the base is put into it.
local function plant(abxd)
  local base, root = abxd.base_dir, abxd.root
  local function put(path, content)
    files.write(root .. "/" .. path, content)
  end
  local function link(name, target)
    assert(uv.fs_symlink(target, base .. "/" .. name))
  end
  for _, name in ipairs(files.list(base)) do
    files.remove_tree(base .. "/" .. name)
  end
  for _, name in ipairs { "outside", "base-evil" } do
    files.remove_tree(root .. "/" .. name)
    files.mkdir(root .. "/" .. name)
    files.mkdir(root .. "/" .. name .. "/d")
    put(name .. "/secret", SECRET)
    put(name .. "/d/secret", SECRET)
  end

  files.mkdir(base .. "/a")
  files.mkdir(base .. "/a/sub")
  put("base/a/f", "inner")
  put("base/other", "other")
  -- Directories: those that stay inside, then those that lead out.
  link("in", "a")
  link("in-absolute", base .. "/a")
  link("in-chain", "in-absolute")
  link("a/up", "..")
  link("home", base)
  link("home-by-proc", "/proc/self/root" .. base)
  link("l", root .. "/outside")
  link("l-relative", "../outside")
  link("l-chain", "l-chain-2")
  link("l-chain-2", "a/../l")
  link("l-parent", "..")
  link("l-root", "/")
  link("l-evil", base .. "-evil")
  link("l-proc-root", "/proc/self/root")
  link("l-proc-cwd", "/proc/self/cwd")
  link("l-thread-root", "/proc/thread-self/root")
  -- Files.
  link("f", root .. "/outside/secret")
  link("f-relative", "../outside/secret")
  link("f-chain", "f")
  link("f-proc", "/proc/self/root/etc/passwd")
  link("f-exe", "/proc/self/exe")
  link("dangling", root .. "/outside/none")
  link("dangling-relative", "../outside/none")
  link("dangling-deep", root .. "/outside/none/deep")
end

--- Puts back what a verb changes where it is allowed to.
local function repair(base)
  for _, name in ipairs { "a/f", "a/new", "other" } do -- they may be links by now
    files.remove_tree(base .. "/" .. name)
  end
  files.write(base .. "/a/f", "inner")
  files.write(base .. "/other", "other")
end

--- Names of `outside` or another place that is not in the base: something is found, or would be, below each.
local function ways_out(abxd)
  local base, root = abxd.base_dir, abxd.root
  return {
    "../outside", "./../outside", "a/../../outside", "a/sub/../../../outside", "..//outside//", ".//..///outside",
    "../base-evil", "../base/../outside",
    root .. "/outside", base .. "/../outside", base .. "/a/../../outside", "/" .. root .. "//outside", base .. "-evil",
    base .. "/../base-evil", root .. "/none", "/", "/etc", "/proc/self/root" .. root .. "/outside", "/proc/self/cwd",
    "/proc/1/root", "/proc/self/fd",
    "../outside/\xa4", base .. "-evil/\xa4",
    "l", "./l/.", "l//", "l/d/..", "l/d", "l/..", "l-relative", "l-chain", "l-parent", "l-parent/outside", "l-root",
    "l-root" .. root .. "/outside", "l-evil", "l-proc-root" .. root .. "/outside", "l-proc-cwd", "l-thread-root/etc",
    "a/up/../outside", "a/up/l", "home/l", "home/../outside", "in-chain/../l", base .. "/l", "f-exe/..",
  }
end

--- Names of the directory `a` of the base.
local function ways_in(abxd)
  local base = abxd.base_dir
  return {
    "a", "a/", "./a", ".//a//.", "a/sub/..", "a/../a", base .. "/a", base .. "//a", "/" .. base .. "/a",
    abxd.root .. "/outside/../base/a", "in", "in-absolute", "in-chain", "a/up/a", "home/a", "home/home/in-chain",
    "home-by-proc/a", "in/up/in/up/a", "in-absolute/sub/..", base .. "/in",
  }
end

--- What a verb answers that takes a last link as itself; all others refuse one that leads out.
local LAST_LINK = {
  stat = 200,
  ["stat with checksum"] = 400,
  delete = 200,
  ["copy, source"] = 200,
  ["move, source"] = 200,
  ["copy, destination"] = 200, -- in place of the link
  ["move, destination"] = 200,
}

--- How a query may spell a path out of the base, and what is answered: 404 where it is a plain name.
local SPELLINGS = {
  ["%2e%2e/outside/secret"] = { 403, "path_outside_base" },
  ["%2E%2E%2Foutside%2Fsecret"] = { 403, "path_outside_base" },
  ["..%2foutside%2f%73ecret"] = { 403, "path_outside_base" },
  ["%2e.//outside//secret"] = { 403, "path_outside_base" },
  ["%252e%252e/outside/secret"] = { 404, "file_not_found" },
  ["%252e%252e%252foutside"] = { 404, "file_not_found" },
  ["..%5coutside%5csecret"] = { 404, "file_not_found" },
  ["%c0%ae%c0%ae/outside/secret"] = { 404, "file_not_found" },
  ["~/secret"] = { 404, "file_not_found" },
  ["file:///etc/passwd"] = { 404, "file_not_found" },
  ["..%00/outside/secret"] = { 400, "invalid_path" },
}

--- What verbs answer that would change the base itself.
local CHANGES_BASE = {
  delete = { "403 base_dir_protected" },
  write = { "403 base_dir_protected", "400 is_a_directory" },
  append = { "403 base_dir_protected", "400 is_a_directory" },
  edits = { "403 base_dir_protected", "400 is_a_directory" },
  upload = { "403 base_dir_protected", "400 is_a_directory" },
  ["copy, source"] = { "403 base_dir_protected", "400 invalid_request" }, -- into itself
  ["move, source"] = { "403 base_dir_protected", "400 invalid_request" },
  ["copy, destination"] = { "403 base_dir_protected" },
  ["move, destination"] = { "403 base_dir_protected" },
}

--- "403 path_outside_base", or the status and the whole body.
local function told(answer)
  return answer.status .. " " .. (answer.body:match('"code":"([%w_]+)"') or answer.body)
end

local function one_of(values, value)
  for _, each in ipairs(values) do
    if each == value then
      return true
    end
  end
  return false
end

--- The effect of each verb on the file a/f, or in the directory a; raises where it is not as it must be.
local EFFECTS = {
  read = function(answer)
    assert.equal("inner", answer:json().content)
  end,
  write = function(_, base)
    assert.equal("written", files.read(base .. "/a/f"))
  end,
  edits = function(_, base)
    assert.equal("edited", files.read(base .. "/a/f"))
  end,
  append = function(_, base)
    assert.equal("inner+", files.read(base .. "/a/f"))
  end,
  upload = function(_, base)
    assert.equal("uploaded", files.read(base .. "/a/f"))
  end,
  download = function(answer)
    assert.equal("inner", answer.body)
  end,
  search = function(answer, base)
    local matches = answer:json().matches
    assert.same({ 1, base .. "/a/f", "inner" }, { #matches, matches[1].path, matches[1].text })
  end,
  stat = function(answer, base)
    assert.same({ base .. "/a/f", "file", 5 }, { answer:json().path, answer:json().type, answer:json().size })
  end,
  delete = function(_, base)
    assert.is_false(files.exists(base .. "/a/f"))
  end,
  ["copy, source"] = function(_, base)
    assert.same({ "inner", "inner" }, { files.read(base .. "/other"), files.read(base .. "/a/f") })
  end,
  ["move, source"] = function(_, base)
    assert.same({ "inner", false }, { files.read(base .. "/other"), files.exists(base .. "/a/f") })
  end,
  ["copy, destination"] = function(_, base)
    assert.same({ "other", "other" }, { files.read(base .. "/a/f"), files.read(base .. "/other") })
  end,
  ["move, destination"] = function(_, base)
    assert.same({ "other", false }, { files.read(base .. "/a/f"), files.exists(base .. "/other") })
  end,
  mkdir = function(_, base)
    assert.equal("directory", uv.fs_lstat(base .. "/a/new").type)
  end,
  list = function(answer, base)
    local entries = answer:json().entries
    assert.same({ 3, base .. "/a/f", base .. "/a/sub", base .. "/a/up" }, { #entries, entries[1].path, entries[2].path,
      entries[3].path })
  end,
  ["search a tree"] = function(answer, base)
    local matches = answer:json().matches
    assert.same({ 1, base .. "/a/f" }, { #matches, matches[1].path })
  end,
  ["cwd of /shell"] = function(answer)
    assert.equal("f\nsub\nup\n", answer:json().stdout)
  end,
  ["upload, dir"] = function(_, base)
    assert.equal("uploaded", files.read(base .. "/a/new"))
  end,
}
EFFECTS["read by lines"] = EFFECTS.read
EFFECTS["stat with checksum"] = EFFECTS.stat
EFFECTS["list, recursive"] = EFFECTS.list

--- The name of what the verb works on, below a directory of which `a` or `outside` is an example.
local function below(verb, way, file)
  if verb.on == "directory" then
    return way
  end
  return way .. "/" .. (verb.name == "mkdir" and "new" or file)
end

local function suite(title, start)
  describe(title, function()
    local abxd, trouble, inside, outside, conn

    lazy_setup(function()
      abxd, trouble = start()
    end)
    lazy_teardown(function()
      if conn then
        conn:close()
      end
      if abxd then
        abxd:stop()
      end
    end)

    --- On one connection as long as the server keeps it: thousands of requests come here.
    local function send(verb, way)
      conn = conn or abxd:connect()
      local answer = conn:request(verb.request(way))
      if (answer.headers.connection or ""):lower() == "close" then
        conn:close()
        conn = nil
      end
      return answer
    end

    local function ready()
      if not abxd then
        skip("files_confine_spec: " .. title, trouble)
      end
      plant(abxd)
      inside = snapshot(abxd.base_dir)
      outside = { snapshot(abxd.root .. "/outside", true), snapshot(abxd.root .. "/base-evil", true) }
    end

    local function assert_outside_unchanged(way)
      assert.same(outside, { snapshot(abxd.root .. "/outside", true), snapshot(abxd.root .. "/base-evil", true) }, way)
    end

    local function assert_nothing_changed()
      assert_outside_unchanged()
      assert.same(inside, snapshot(abxd.base_dir))
    end

    local function assert_refused(verb, way)
      local answer = send(verb, way)
      assert.equal("403 path_outside_base", told(answer), ("%s of %s"):format(verb.name, way))
      check.problem(answer, 403, "path_outside_base", verb.field)
    end

    for _, verb in ipairs(file_verbs.all) do
      it(verb.name .. " refuses each way out", function()
        ready()
        for _, way in ipairs(ways_out(abxd)) do
          assert_refused(verb, below(verb, way, "secret"))
          assert_refused(verb, way .. "/none/deep")
        end
        assert_nothing_changed()
      end)

      it(verb.name .. " does not follow a last link out", function()
        ready()
        for _, way in ipairs { "f", "f-relative", "f-chain", "f-proc", "f-exe", "dangling", "dangling-relative",
          "dangling-deep", "l", "l-relative", "l-chain", "l-parent", "l-proc-root", "l-proc-cwd", "a/up/f" } do
          local expected, link = LAST_LINK[verb.name], abxd.base_dir .. "/" .. way
          local target = uv.fs_readlink(link)
          if expected then
            local answer = send(verb, way)
            assert.equal(expected, answer.status, ("%s of %s: %s"):format(verb.name, way, answer.body))
            assert.is_nil(answer.body:find(SECRET, 1, true), way)
            assert_outside_unchanged(way)
            files.remove_tree(link)
            assert(uv.fs_symlink(target, link))
            repair(abxd.base_dir)
          else
            assert_refused(verb, way)
          end
        end
        assert_nothing_changed()
      end)

      it(verb.name .. " takes each way that stays inside", function()
        ready()
        for _, way in ipairs(ways_in(abxd)) do
          local answer = send(verb, below(verb, way, "f"))
          assert.is_true(one_of({ 200, 201 }, answer.status), ("%s of %s: %s"):format(verb.name, way, told(answer)))
          if EFFECTS[verb.name] then
            EFFECTS[verb.name](answer, abxd.base_dir)
          end
          if verb.changes then
            repair(abxd.base_dir)
          end
        end
      end)
    end

    it("a path in a query is decoded once, a path in a body not at all", function()
      ready()
      for spelling, problem in pairs(SPELLINGS) do
        for _, route in ipairs { { "GET", "/files/read" }, { "GET", "/files/list" }, { "GET", "/files/stat" },
          { "GET", "/download" }, { "DELETE", "/files/delete" } } do
          local answer = abxd:request(route[1], route[2] .. "?path=" .. spelling)
          assert.same(problem, { answer.status, answer:json().code }, route[2] .. " " .. spelling)
        end
        if spelling:find("%", 1, true) == 1 then
          check.problem(abxd:post("/files/search", { path = spelling, pattern = "x" }), 404, "file_not_found", "path")
          check.problem(abxd:post("/files/copy", { source = spelling, destination = "new" }), 404, "file_not_found", "source")
          check.problem(abxd:post("/files/move", { source = spelling, destination = "new" }), 404, "file_not_found", "source")
        end
      end
      assert_nothing_changed()
    end)

    it("no verb removes, moves or replaces the base itself", function()
      ready()
      local base = abxd.base_dir
      for _, way in ipairs { "", ".", "./.", "./", "a/..", "in/..", "a/up/.", base, base .. "/", base .. "/a/..",
        "home/.", "home/in/.." } do
        for _, verb in ipairs(file_verbs.all) do
          if CHANGES_BASE[verb.name] then
            local got = told(send(verb, way))
            assert.is_true(one_of(CHANGES_BASE[verb.name], got) or (way == "" and got == "400 invalid_path"),
              ("%s of %q: %s"):format(verb.name, way, got))
          end
        end
      end
      assert_nothing_changed()
    end)
  end)
end

suite("confined by openat2:", function()
  return server.start()
end)

suite("confined by the walk:", function()
  local launcher = server.tool("without_openat2")
  if not launcher then
    return nil, "the server was built without the tools of its tests"
  end
  local ok, abxd = pcall(server.start, { prefix = { launcher } })
  if not ok then
    assert(abxd:find("exit 77", 1, true), abxd)
    return nil, "no seccomp filters here"
  end
  assert.matches("openat2 is not available", abxd:log_text(), 1, true)
  return abxd
end)
