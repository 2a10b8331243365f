--- A server's base directory made new for a test, and a folder outside it that no test may touch.
local assert = require("luassert")
local files = require("support.files")

local M = {}

--- Empties the base; answers it and the folder outside, which holds one file.
function M.begin(abxd)
  local base, outside = abxd.base_dir, abxd.root .. "/outside"
  for _, name in ipairs(files.list(base)) do
    files.remove_tree(base .. "/" .. name)
  end
  files.remove_tree(outside)
  files.mkdir(outside)
  files.write(outside .. "/keep", "kept")
  return base, outside
end

--- Asserts that the server holds no more than at the baseline, and that nothing changed outside.
function M.check(abxd, baseline)
  local outside = abxd.root .. "/outside"
  abxd:assert_settled(baseline)
  assert.same({ "keep" }, files.list(outside))
  assert.equal("kept", files.read(outside .. "/keep"))
end

return M
