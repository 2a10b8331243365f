--- What a tree holds, as a table to be compared with assert.same: to prove that something changed nothing.
local files = require("support.files")
local uv = require("luv")

local function stamp(time)
  return ("%d.%09d"):format(time.sec, time.nsec)
end

local function add(found, path, relative, exact)
  local stat = assert(uv.fs_lstat(path))
  local entry = { stat.type, ("%o"):format(stat.mode & 4095) }
  if stat.type == "file" then
    entry[3] = files.read(path)
  elseif stat.type == "link" then
    entry[3] = uv.fs_readlink(path)
  end
  if exact then
    entry[4] = ("inode %d, links %d, %d:%d, %s, %s"):format(stat.ino, stat.nlink, stat.uid, stat.gid, stamp(stat.mtime),
      stamp(stat.ctime))
  end
  found[relative] = entry
  if stat.type == "directory" then
    for _, name in ipairs(files.list(path)) do
      add(found, path .. "/" .. name, relative .. "/" .. name, exact)
    end
  end
end

--- {["./a"] = {type, mode, content or target}} of a folder and all below it. exact: inodes, owners and the times of the
--- last change as well, so that even what was changed and put back is seen.
return function(dir, exact)
  local found = {}
  add(found, dir, ".", exact)
  return found
end
