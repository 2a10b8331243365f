--- Files and folders for the tests, through libuv: no shell, any name.
local uv = require("luv")

local files = {}

--- The root of the source tree.
files.source_dir = assert(uv.cwd())

function files.exists(path)
  return uv.fs_lstat(path) ~= nil
end

--- The content of a file; raises where it cannot be read.
function files.read(path)
  local file = assert(io.open(path, "rb"))
  local content = file:read("a")
  file:close()
  return content
end

function files.write(path, content)
  local file = assert(io.open(path, "wb"))
  assert(file:write(content))
  assert(file:close())
end

--- Names in a folder, sorted.
function files.list(path)
  local names = {}
  local scan = assert(uv.fs_scandir(path))
  for name in uv.fs_scandir_next, scan do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

function files.mkdir(path)
  assert(uv.fs_mkdir(path, tonumber("755", 8)))
  return path
end

--- A new folder below the machine's folder for temporary files.
function files.mkdtemp()
  return assert(uv.fs_mkdtemp((os.getenv("TMPDIR") or "/tmp") .. "/abxd-test-XXXXXX"))
end

--- Copies a folder with all below it; links are copied as links.
function files.copy_tree(from, to)
  files.mkdir(to)
  for _, name in ipairs(files.list(from)) do
    local source, target = from .. "/" .. name, to .. "/" .. name
    local kind = assert(uv.fs_lstat(source)).type
    if kind == "directory" then
      files.copy_tree(source, target)
    elseif kind == "link" then
      assert(uv.fs_symlink(assert(uv.fs_readlink(source)), target))
    else
      assert(uv.fs_copyfile(source, target))
    end
  end
end

--- Removes a folder with all below it, links themselves and never what they lead to.
function files.remove_tree(path)
  local stat = uv.fs_lstat(path)
  if not stat then
    return
  elseif stat.type == "directory" then
    uv.fs_chmod(path, tonumber("700", 8))
    for _, name in ipairs(files.list(path)) do
      files.remove_tree(path .. "/" .. name)
    end
    assert(uv.fs_rmdir(path))
  else
    assert(uv.fs_unlink(path))
  end
end

return files
