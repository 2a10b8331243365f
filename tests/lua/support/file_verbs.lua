--- Every route that takes a path, as one kind of request: for specs that prove the same of all of them.
local http = require("support.http")
local mime = require("mime")

local file_verbs = {}

--- A parameter and its value: bytes that are not UTF-8 go as NAME_base64.
local function twin(name, path)
  if utf8.len(path) then
    return name, path
  end
  return name .. "_base64", (mime.b64(path))
end

--- NAME=VALUE for a query.
function file_verbs.query(name, path)
  local key, value = twin(name, path)
  return key .. "=" .. http.escape(value)
end

--- A table for a JSON body: fields and the paths, {path = "…"}, each as itself or as its twin.
function file_verbs.body(paths, fields)
  local body = {}
  for name, value in pairs(fields or {}) do
    body[name] = value
  end
  for name, path in pairs(paths) do
    local key, value = twin(name, path)
    body[key] = value
  end
  return body
end

local query, body = file_verbs.query, file_verbs.body

local function get(route, more)
  return function(path)
    return "GET", route .. "?" .. query("path", path) .. (more or "")
  end
end

local function post(route, fields)
  return function(path)
    return "POST", route, { json = body({ path = path }, fields) }
  end
end

local function both(route, name, other_name)
  return function(path, other)
    return "POST", route, { json = body({ [name] = path, [other_name] = other or "other" }, { overwrite = true }) }
  end
end

--- Each: name; request(path, other) → method, target, options for server:request, `other` being the other end of a copy or
--- move; field, the parameter that a problem names; on, what the path is:
---   file       one that exists, a last link is followed
---   directory  one that exists, a last link is followed
---   entry      what exists, a link is taken as itself
---   place      what is to be made there
--- and changes, where it does.
file_verbs.all = {
  { name = "read", on = "file", request = get("/files/read") },
  { name = "read by lines", on = "file", request = get("/files/read", "&start_line=1") },
  { name = "write", on = "file", changes = true,
    request = post("/files/write", { content = "written" }) },
  { name = "edits", on = "file", changes = true,
    request = post("/files/write", { edits = { { old = "inner", new = "edited" } } }) },
  { name = "append", on = "file", changes = true,
    request = post("/files/write", { content = "+", append = true }) },
  { name = "upload", on = "file", changes = true, request = function(path)
    return "POST", "/upload?" .. query("path", path), { body = "uploaded" }
  end },
  { name = "download", on = "file", request = get("/download") },
  { name = "search", on = "file", request = post("/files/search", { pattern = "inner" }) },
  { name = "stat", on = "entry", request = get("/files/stat") },
  { name = "stat with checksum", on = "entry", request = get("/files/stat", "&checksum=sha256") },
  { name = "delete", on = "entry", changes = true, request = function(path)
    return "DELETE", "/files/delete?" .. query("path", path) .. "&recursive=true"
  end },
  { name = "copy, source", on = "entry", changes = true, field = "source",
    request = both("/files/copy", "source", "destination") },
  { name = "move, source", on = "entry", changes = true, field = "source",
    request = both("/files/move", "source", "destination") },
  { name = "copy, destination", on = "place", changes = true, field = "destination",
    request = both("/files/copy", "destination", "source") },
  { name = "move, destination", on = "place", changes = true, field = "destination",
    request = both("/files/move", "destination", "source") },
  { name = "mkdir", on = "place", changes = true,
    request = post("/files/mkdir") },
  { name = "list", on = "directory", request = get("/files/list") },
  { name = "list, recursive", on = "directory", request = get("/files/list", "&recursive=true") },
  { name = "search a tree", on = "directory", request = post("/files/search", { pattern = "inner" }) },
  { name = "download an archive", on = "directory", request = get("/download", "&archive=tar.gz") },
  { name = "cwd of /shell", on = "directory", field = "cwd", request = function(path)
    return "POST", "/shell", { json = body({ cwd = path }, { argv = { "ls" } }) }
  end },
  { name = "cwd of /shell/stream", on = "directory", field = "cwd", request = function(path)
    return "POST", "/shell/stream", { json = body({ cwd = path }, { argv = { "ls" } }) }
  end },
  { name = "upload, dir", on = "directory", changes = true, field = "dir", request = function(path)
    local content, content_type = http.multipart { { name = "f", filename = "new", content = "uploaded" } }
    return "POST", "/upload?" .. query("dir", path), { body = content, headers = { ["Content-Type"] = content_type } }
  end },
}

for _, verb in ipairs(file_verbs.all) do
  verb.field = verb.field or "path"
  file_verbs[verb.name] = verb
end

--- Sends what verb.request made; the answer.
function file_verbs.send(abxd, verb, path, other)
  return abxd:request(verb.request(path, other))
end

return file_verbs
