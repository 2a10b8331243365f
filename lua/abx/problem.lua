--- Refusals that say more than `fail` can: several faulty fields at once, or members of their own.
local codes = require("abx.codes")
local json = require("abx.json")
local text = require("abx.text")

local M = {}

--- By status, as src/request/problem.c has them; a test compares them.
M.titles = {
  [400] = "Bad Request", [401] = "Unauthorized", [403] = "Forbidden", [404] = "Not Found", [405] = "Method Not Allowed",
  [408] = "Request Timeout", [409] = "Conflict", [412] = "Precondition Failed", [413] = "Content Too Large",
  [414] = "URI Too Long", [415] = "Unsupported Media Type", [416] = "Range Not Satisfiable", [417] = "Expectation Failed",
  [422] = "Unprocessable Content", [426] = "Upgrade Required", [429] = "Too Many Requests",
  [431] = "Request Header Fields Too Large", [500] = "Internal Server Error", [502] = "Bad Gateway",
  [503] = "Service Unavailable", [504] = "Gateway Timeout", [507] = "Insufficient Storage",
}

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
      title = M.titles[codes[code]],
      code = code,
      detail = #errors == 1 and first or ("%d fields are not valid, see errors; the first: %s"):format(#errors, first),
      field = errors[1].field,
      errors = json.array(errors),
      request_id = req.id,
    },
  }
end

--- One refusal with members of its own, such as the files that are in the way. `fail` is for those without.
function M.refuse(req, code, detail, field, members)
  local told = {
    status = codes[code],
    title = M.titles[codes[code]],
    code = code,
    detail = text.mask(detail),
    field = field,
    request_id = req.id,
  }
  for name, value in pairs(members) do
    if told[name] == nil then
      told[name] = value
    end
  end
  return reply { status = told.status, headers = { ["Content-Type"] = "application/problem+json" }, json = told }
end

return M
