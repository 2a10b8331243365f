--- A git server over HTTP beside the one under test: tests/tools/git_http.py, whose text tells what its paths mean.
local files = require("support.files")
local json = require("support.json")
local process = require("support.process")

local git_http = {}
git_http.__index = git_http

local function lines(path)
  local list = {}
  for line in (files.exists(path) and files.read(path) or ""):gmatch("([^\n]*)\n") do
    list[#list + 1] = line
  end
  return list
end

--- Serves the repositories below root. auth: "user:password" for its /auth paths. tls: {cert=, key=} of the name
--- localhost, paths; then by https only. Close it, or stop().
function git_http.start(root, auth, tls)
  local self = setmetatable({ dir = files.mkdtemp(), origin = tls and "https://localhost" or "http://127.0.0.1" }, git_http)
  local argv = { "/usr/bin/python3", "tests/tools/git_http.py", root }
  for _, word in ipairs { auth and "--auth" or "", auth or "", tls and "--tls" or "", tls and tls.cert or "",
    tls and tls.key or "" } do
    if word ~= "" then
      argv[#argv + 1] = word
    end
  end
  self.child = process.start(argv, { stdout = self.dir .. "/out", stderr = self.dir .. "/err" })
  self.port = process.poll(10000, function()
    return tonumber(lines(self.dir .. "/out")[1])
  end)
  assert(self.port, "the git server did not start: " .. files.read(self.dir .. "/err"))
  return self
end

--- "http://127.0.0.1:PORT/…", or "https://localhost:PORT/…"
function git_http:url(path)
  return ("%s:%d/%s"):format(self.origin, self.port, path)
end

--- All requests so far: {path=, authorization=}.
function git_http:requests()
  local list = lines(self.dir .. "/out")
  table.remove(list, 1)
  for i, line in ipairs(list) do
    list[i] = json.decode(line)
  end
  return list
end

function git_http:stop()
  self.child:kill("sigkill")
  self.child:wait(5000)
  files.remove_tree(self.dir)
end
git_http.__close = git_http.stop

return git_http
