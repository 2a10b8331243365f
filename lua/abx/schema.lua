--- From our schemas (abx.params) to JSON Schema 2020-12; used by GET /commands and the openapi pack.
local json = require("abx.json")
local P = require("abx.params")

local M = {}

local PLAIN = {
  any = {},
  string = { type = "string" },
  integer = { type = "integer" },
  number = { type = "number" },
  boolean = { type = "boolean" },
  path = { type = "string", minLength = 1, maxLength = 4095 },
}

-- Where min and max go. Ours count bytes of a string, JSON Schema counts characters: never stricter than we are.
local BOUNDS = {
  string = { "minLength", "maxLength" },
  integer = { "minimum", "maximum" },
  number = { "minimum", "maximum" },
  array = { "minItems", "maxItems" },
  map = { "minProperties", "maxProperties" },
}

local function sorted_names(fields)
  local names = {}
  for name in pairs(fields) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

--- The twin of a path, for paths that are not UTF-8.
function M.twin(name)
  return {
    type = "string",
    contentEncoding = "base64",
    description = ("the bytes of %s, for one that is not UTF-8"):format(name),
  }
end

--- An object with these fields. In an answer each field is there unless it says `required = false`, and undeclared ones
--- may come; elsewhere only those with `required = true` must be there, and no others may.
function M.object(fields, is_answer)
  local schema = { type = "object", properties = {} }
  local required, either = {}, {}
  for _, name in ipairs(sorted_names(fields)) do
    local field = fields[name]
    local must = field.required or (is_answer and field.required == nil)
    schema.properties[name] = M.of(field, is_answer)
    if field.type == "path" then
      schema.properties[name .. "_base64"] = M.twin(name)
    end
    if must and field.type == "path" and not is_answer then
      either[#either + 1] = { oneOf = { { required = { name } }, { required = { name .. "_base64" } } } }
    elseif must then
      required[#required + 1] = name
    end
  end
  if #required > 0 then
    schema.required = required
  end
  if #either > 0 then
    schema.allOf = either
  end
  if not is_answer then
    schema.additionalProperties = false
  end
  return schema
end

--- The JSON Schema of one of our schemas.
function M.of(schema, is_answer)
  local kind = schema.type
  local out = {}
  if kind == "object" then
    out = M.object(schema.fields or {}, is_answer)
  elseif kind == "array" then
    out = { type = "array", items = schema.items and M.of(schema.items, is_answer) }
  elseif kind == "map" then
    out = { type = "object", additionalProperties = not schema.items or M.of(schema.items, is_answer) }
  else
    for key, value in pairs(PLAIN[kind]) do
      out[key] = value
    end
  end
  if BOUNDS[kind] then
    out[BOUNDS[kind][1]], out[BOUNDS[kind][2]] = schema.min, schema.max
  end
  out.format, out.description, out.default = schema.format, schema.doc, schema.default
  if schema.choices then
    out.enum = P.join(schema.choices)
  end
  if schema.example ~= nil then
    out.examples = { schema.example }
  end
  if schema.nullable and out.type then
    out.type = { out.type, "null" }
    if out.enum then
      table.insert(out.enum, json.null)
    end
  end
  return out
end

return M
