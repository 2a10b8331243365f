--- Refusals that name several faulty fields at once, for checks that a schema cannot say. `fail` is for all others.
local json = require("abx.json")

local M = {}

--- The answer 400 `invalid_request`; errors is a list of {field, problem}.
function M.invalid(req, errors)
  return reply {
    status = 400,
    headers = { ["Content-Type"] = "application/problem+json" },
    json = {
      status = 400,
      title = "Bad Request",
      code = "invalid_request",
      detail = ("%s: %s"):format(errors[1].field, errors[1].problem),
      field = errors[1].field,
      errors = json.array(errors),
      request_id = req.id,
    },
  }
end

return M
