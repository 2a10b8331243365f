--- Paths in answers: valid UTF-8 always, with the exact bytes beside those that are not.
local text = require("abx.text")

local M = {}

--- Sets answer[name], and answer[name .. "_base64"] where the path is not UTF-8. Answers the answer.
function M.put(answer, name, path)
  local display, lossy = text.utf8_scrub(path)
  answer[name] = display
  if lossy then
    answer[name .. "_base64"] = text.base64_encode(path)
  end
  return answer
end

return M
