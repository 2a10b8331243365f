--- Refusals that name several faulty fields at once, for checks that a schema cannot say. `fail` is for all others.
local codes = require("abx.codes")
local json = require("abx.json")
local text = require("abx.text")

local M = {}

local TITLES = { [400] = "Bad Request", [413] = "Content Too Large" }

--- The refusal that the server itself makes of faulty parameters. errors is a list of {field, problem}; code is
--- `invalid_request` unless tables.check says another. A client's words in it are shown without what is secret.
function M.invalid(req, errors, code)
  code = code or "invalid_request"
  for _, fault in ipairs(errors) do
    fault.field, fault.problem = text.mask(fault.field), text.mask(fault.problem)
  end
  local first = ("%s: %s"):format(errors[1].field, errors[1].problem)
  return reply {
    status = codes[code],
    headers = { ["Content-Type"] = "application/problem+json" },
    json = {
      status = codes[code],
      title = TITLES[codes[code]],
      code = code,
      detail = #errors == 1 and first or ("%d fields are not valid, see errors; the first: %s"):format(#errors, first),
      field = errors[1].field,
      errors = json.array(errors),
      request_id = req.id,
    },
  }
end

return M
