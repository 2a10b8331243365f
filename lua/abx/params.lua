--- The makers of schemas: what a parameter, a body or an answer may be, as plain tables that the loader checks.
-- Used as `P` by route, pack and command files. Every maker takes one table; a key that it does not know is a fault of the
-- file and line that wrote it.
local tables = require("abx.tables")

local P = { KiB = 1024, MiB = 1024 * 1024 }

local COMMON = { required = true, nullable = true, default = true, doc = true, example = true }

--- A new table with the members of all, such as the fields that routes share and their own.
function P.merge(...)
  local all = {}
  for _, members in ipairs { ... } do
    for name, value in pairs(members) do
      all[name] = value
    end
  end
  return all
end

--- Tells the file that called the maker.
local function fault_unknown(kind, key, known)
  key = tostring(key)
  tables.fault(("P.%s: unknown key '%s'%s"):format(kind, key, tables.hint(key, known)), 3)
end

--- What the maker was called with, where that is a table; else an empty one, and the caller is told.
local function spec_of(kind, spec)
  if type(spec) == "table" then
    return spec
  elseif spec ~= nil then
    tables.fault(("P.%s takes a table, not a %s"):format(kind, type(spec)), 3)
  end
  return {}
end

--- A maker for `kind` that also knows the keys in `more`: name as written = name in the schema.
local function maker(kind, more)
  local known = P.merge(COMMON, more)
  return function(spec)
    local schema = { type = kind }
    for key, value in pairs(spec_of(kind, spec)) do
      if COMMON[key] then
        schema[key] = value
      elseif more[key] then
        schema[more[key]] = value
      else
        fault_unknown(kind, key, known)
      end
    end
    return schema
  end
end

P.any = maker("any", {})
P.string = maker("string", { min = "min", max = "max", format = "format" })
P.integer = maker("integer", { min = "min", max = "max", format = "format" })
P.number = maker("number", { min = "min", max = "max", format = "format" })
P.boolean = maker("boolean", {})
P.path = maker("path", {})
P.array = maker("array", { of = "items", min = "min", max = "max" })
P.map = maker("map", { of = "items", min = "min", max = "max" })
--- `also`: the media type that an answer has instead of JSON where the request asks for it.
P.object = maker("object", { fields = "fields", order = "order", also = "media" })
--- Answers only. Without `media` the answer has no body.
P.bytes = maker("bytes", { media = "media" })
P.events = maker("events", {})

--- One of the listed strings; the first is the default, unless it is required or `default` says another.
function P.choice(spec)
  spec = spec_of("choice", spec)
  local schema = { type = "string", choices = {} }
  for key, value in pairs(spec) do
    if COMMON[key] then
      schema[key] = value
    elseif math.type(key) ~= "integer" then
      fault_unknown("choice", key, COMMON)
    end
  end
  for index, value in ipairs(spec) do
    schema.choices[index] = value
  end
  if schema.default == nil and not schema.required then
    schema.default = schema.choices[1]
  end
  return schema
end

--- A copy that need not be there, for answers.
function P.optional(schema)
  if type(schema) ~= "table" then
    tables.fault(("P.optional takes a schema, not a %s"):format(type(schema)), 2)
    return schema
  end
  local copy = P.merge(schema)
  copy.required = false
  return copy
end

--- A new list with the items of all.
function P.join(...)
  local all = {}
  for _, list in ipairs { ... } do
    for _, item in ipairs(list) do
      all[#all + 1] = item
    end
  end
  return all
end

return P
