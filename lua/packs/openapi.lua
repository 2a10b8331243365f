--- OpenAPI 3.1 of every enabled route, made from the route tables when somebody asks.
local codes = require("abx.codes")
local json = require("abx.json")
local P = require("abx.params")
local schema = require("abx.schema")
local server = require("abx.server")
local tables = require("abx.tables")

local PROBLEM = P.object {
  doc = "What every refusal looks like (RFC 9457)",
  fields = {
    status = P.integer { min = 400, max = 599 },
    title = P.string {},
    code = P.string { doc = "stable; for programs" },
    detail = P.string { required = false, doc = "what to do about it; for people" },
    field = P.string { required = false, doc = "the parameter to blame" },
    errors = P.array {
      required = false, doc = "all faulty parameters",
      of = P.object { fields = { field = P.string {}, problem = P.string {} } },
    },
    request_id = P.string { required = false, doc = "under which the log has it" },
  },
}

-- What any route may answer, whatever its handler does.
local ALWAYS = {
  "invalid_request", "host_not_allowed", "origin_not_allowed", "too_many_requests", "internal_error", "shutting_down",
  "handler_timeout",
}

-- What the parts of a form may be called does not matter, but for path; `file` is what people write.
local FORM = {
  type = "object",
  properties = {
    path = { type = "string", description = "where the one file goes, before it; else each goes under its own file name" },
    file = {
      contentMediaType = "application/octet-stream",
      description = "any number of parts with a file name; they may be called otherwise",
    },
  },
}

local function codes_of(route)
  return P.join(
    ALWAYS,
    route.auth_required and { "unauthorized" } or {},
    route.body == "json" and { "invalid_json", "payload_too_large", "unsupported_media_type" } or {},
    route.errors or {}
  )
end

--- status → its codes, sorted and without repeats.
local function codes_by_status(route)
  local by_status, seen = {}, {}
  for _, code in ipairs(codes_of(route)) do
    local status = codes[code]
    if status and not seen[code] then
      seen[code] = true
      by_status[status] = by_status[status] or {}
      table.insert(by_status[status], code)
    end
  end
  for _, list in pairs(by_status) do
    table.sort(list)
  end
  return by_status
end

local function problem_response(list)
  return {
    description = "Refused: " .. table.concat(list, ", "),
    content = { ["application/problem+json"] = { schema = { ["$ref"] = "#/components/schemas/Problem" } } },
  }
end

local function answer_content(returns)
  if returns.type == "events" then
    return { ["text/event-stream"] = { schema = { type = "string" } } }
  elseif returns.type == "bytes" then
    return returns.media and { [returns.media] = { schema = {} } }
  end
  local content = { ["application/json"] = { schema = schema.of(returns, true) } }
  if returns.media then
    content[returns.media] = { schema = returns.media:find("^text/") and { type = "string" } or {} }
  end
  return content
end

local function responses_of(route)
  local responses = {}
  for status, list in pairs(codes_by_status(route)) do
    responses[tostring(status)] = problem_response(list)
  end
  local returns = route.returns or P.any {}
  local by_status = returns.type and { [route.status] = returns } or returns
  for status, answer in pairs(by_status) do
    local key = tostring(status)
    local content = answer_content(answer)
    if content and responses[key] then -- a status with an answer of its own and problems, such as health's 503
      content = P.merge(responses[key].content, content)
    end
    responses[key] = { description = answer.doc or "Success", content = content }
  end
  return responses
end

--- The names in {braces} of the path, in order, and as a set.
local function path_names(path)
  local list, set = {}, {}
  for name in path:gmatch("{([%w_]+)}") do
    list[#list + 1] = name
    set[name] = true
  end
  return list, set
end

local function sorted_others(params, in_path)
  local names = {}
  for name in pairs(params) do
    if not in_path[name] then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end

local function parameter(name, place, field)
  local as_schema = schema.of(field)
  local description = as_schema.description
  as_schema.description = nil
  local one_of_two = field.type == "path" and place == "query"
  return {
    name = name,
    ["in"] = place,
    description = description,
    required = place == "path" or (not one_of_two and field.required) or nil,
    schema = as_schema,
  }
end

--- Path and query parameters, each path in the query with its twin; and the names of a JSON body's members.
local function parameters_of(route)
  local list = {}
  local from_path, in_path = path_names(route.path)
  for _, name in ipairs(from_path) do
    list[#list + 1] = parameter(name, "path", route.params[name])
  end
  local others = sorted_others(route.params or {}, in_path)
  if route.body == "json" then
    return list, others
  end
  for _, name in ipairs(others) do
    local field = route.params[name]
    list[#list + 1] = parameter(name, "query", field)
    if field.type == "path" then
      local twin = schema.twin(name)
      local description = twin.description .. (field.required and "; one of the two is required" or "")
      twin.description = nil
      list[#list + 1] = { name = name .. "_base64", ["in"] = "query", description = description, schema = twin }
    end
  end
  return list, {}
end

local function json_body(route, names)
  local fields, required = {}, false
  for _, name in ipairs(names) do
    fields[name] = route.params[name]
    required = required or fields[name].required or false
  end
  local object = schema.object(fields)
  if route.rest then
    object.additionalProperties = true
  end
  return { required = required, content = { ["application/json"] = { schema = object } } }
end

local function body_of(route, names)
  if route.body == "json" then
    return json_body(route, names)
  elseif route.body == "stream" then
    return {
      required = true,
      content = {
        ["multipart/form-data"] = { schema = FORM },
        ["application/octet-stream"] = { schema = {} },
      },
    }
  end
end

local function operation_of(route)
  local parameters, members = parameters_of(route)
  return {
    operationId = route.name,
    tags = { route.group },
    summary = route.summary,
    description = route.description or route.summary,
    parameters = #parameters > 0 and parameters or nil,
    requestBody = body_of(route, members),
    responses = responses_of(route),
    security = not route.auth_required and json.array {} or nil,
    ["x-read-only"] = route.read_only or nil,
    ["x-destructive"] = route.destructive or nil,
    ["x-idempotent"] = route.idempotent or nil,
    ["x-streaming"] = route.streaming or nil,
  }
end

--- Adds the path of each value that a path parameter with variants may have: documents prefer them to the one in braces.
local function add_variants(paths, route)
  local place = "{" .. route.variants.param .. "}"
  for _, variant in ipairs(route.variants.list) do
    local path = route.path:gsub(place, variant.value)
    paths[path] = paths[path] or {}
    paths[path][route.method:lower()] = operation_of {
      name = ("%s.%s"):format(route.name, variant.value),
      path = path,
      group = route.group,
      summary = variant.summary,
      body = route.body,
      params = variant.params,
      returns = variant.returns,
      status = route.status,
      errors = variant.errors,
      auth_required = route.auth_required,
      read_only = route.read_only,
      destructive = route.destructive,
      idempotent = route.idempotent,
    }
  end
end

--- Paths and, for the tags, the groups that they used.
local function paths_of(routes)
  local paths, used = {}, {}
  for _, route in ipairs(routes) do
    if route.enabled then
      paths[route.path] = paths[route.path] or {}
      paths[route.path][route.method:lower()] = operation_of(route)
      if route.variants then
        add_variants(paths, route)
      end
      used[route.group] = true
    end
  end
  return paths, used
end

local function document()
  local paths, used = paths_of(tables.routes())
  local tags = json.array {}
  for _, group in ipairs(tables.groups()) do
    if used[group.name] then
      tags[#tags + 1] = { name = group.name, description = group.description }
    end
  end
  return {
    openapi = "3.1.0",
    info = {
      title = "abxd",
      version = server.version,
      summary = "A workspace over HTTP",
      description = "Commands, processes, files below one base directory, and the machine.",
      license = { name = "See the distribution", identifier = "LicenseRef-abxd" },
    },
    servers = { { url = "/", description = "this server" } },
    security = { { bearer = json.array {} } },
    tags = tags,
    paths = paths,
    components = {
      securitySchemes = {
        bearer = { type = "http", scheme = "bearer", description = "the token that the server was started with" },
      },
      schemas = { Problem = schema.of(PROBLEM, true) },
    },
  }
end

return {
  name = "openapi",
  description = "The API as an OpenAPI 3.1 document",
  {
    method = "GET", path = "/openapi.json", name = "openapi", group = "core",
    summary = "This API as OpenAPI 3.1",
    description = "Made from the tables in force: a route that was reloaded is in it at once, one that is off is not.",
    read_only = true, idempotent = true,
    returns = P.map { of = P.any {}, doc = "the document" },
    handler = document,
  },
}
