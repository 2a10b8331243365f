--- Strings with a shape that a schema cannot say. Each raises 400 naming the field; nil passes.
local M = {}

local function refuse(field, problem)
  fail("invalid_request", ("%s: %s"):format(field, problem), field)
end

--- File modes: octal digits, as "0644".
function M.mode(value, field)
  if value and not value:find("^[0-7]?[0-7][0-7][0-7]$") then
    refuse(field, 'must be three or four octal digits, such as "0644"')
  end
  return value
end

--- SHA-256 sums: 64 hex digits of either case; answers them in lower case.
function M.sha256(value, field)
  if value and not (#value == 64 and value:find("^%x+$")) then
    refuse(field, "must be 64 hexadecimal digits")
  end
  return value and value:lower()
end

return M
