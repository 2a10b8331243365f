--- Changes of environments as clients write them: what is malformed in them, all of it. C refuses the same, but tells the
--- first fault only.
local json = require("abx.json")

local FIELD_NAME_MAX = 64 -- what is no name may be long

local M = {}

--- What is wrong with a variable's name; nil: nothing.
function M.name_fault(name)
  if not name:find("^[%a_][%w_]*$") then
    return "names of variables are letters, digits and underscores, no digit first"
  end
end

--- The faults of {NAME = value, or json.null}, in the order of the names, for problem.invalid. `field` is the parameter.
function M.faults(field, values)
  local names, errors = {}, {}
  for name in pairs(values) do
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local value = values[name]
    local function faulty(fault)
      errors[#errors + 1] = { field = ("%s.%s"):format(field, name:sub(1, FIELD_NAME_MAX)), problem = fault }
    end
    local fault = M.name_fault(name)
    if fault then
      faulty(fault)
    end
    if value ~= json.null and value:find("\0", 1, true) then
      faulty("the value of a variable cannot hold a NUL byte")
    end
  end
  return errors
end

return M
