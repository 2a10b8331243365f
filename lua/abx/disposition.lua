--- Content-Disposition by RFC 6266 and RFC 8187, safe for every name a file can have; used for downloads.
local text = require("abx.text")

local M = {}

local function percent(byte)
  return ("%%%02X"):format(byte:byte())
end

--- kind is "attachment" or "inline", name the bytes of a file name.
function M.of(kind, name)
  local display = text.utf8_scrub(name)
  -- Old clients take filename= literally: quotes would end it, and some of them decode percent signs. One "_" a character.
  local plain = display:gsub(utf8.charpattern, function(char)
    return char:find('^[^%c"\\%%\127-\255]$') and char or "_"
  end)
  local exact = display:gsub("[^%w!#$&+.^_`|~-]", percent)
  return ("%s; filename=\"%s\"; filename*=UTF-8''%s"):format(kind, plain, exact)
end

return M
