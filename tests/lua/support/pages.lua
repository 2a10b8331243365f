--- The web that the browser looks at in specs: tests/tools/pages.mjs, whose text tells what its paths mean.
local files = require("support.files")
local json = require("support.json")
local process = require("support.process")

local pages = {}
pages.__index = pages

local function lines(path)
  local list = {}
  for line in (files.exists(path) and files.read(path) or ""):gmatch("([^\n]*)\n") do
    list[#list + 1] = line
  end
  return list
end

--- Serves these pages, {["index.html"] = HTML, …}, and more that put adds. Close it, or stop().
function pages.start(content)
  local self = setmetatable({ dir = files.mkdtemp() }, pages)
  files.mkdir(self.dir .. "/web")
  for name, html in pairs(content or {}) do
    self:put(name, html)
  end
  self.child = process.start({ "node", "tests/tools/pages.mjs", self.dir .. "/web" },
    { stdout = self.dir .. "/out", stderr = self.dir .. "/err" })
  self.port = process.poll(20000, function()
    return tonumber(lines(self.dir .. "/out")[1])
  end)
  assert(self.port, "the pages are not served: " .. files.read(self.dir .. "/err"))
  return self
end

--- Adds a page, or takes the place of one.
function pages:put(name, html)
  files.write(self.dir .. "/web/" .. name, html)
end

--- "http://127.0.0.1:PORT/…"; host instead of the address.
function pages:url(path, host)
  return ("http://%s:%d/%s"):format(host or "127.0.0.1", self.port, path)
end

--- All requests so far: {method=, url=, agent=}.
function pages:requests()
  local list = lines(self.dir .. "/out")
  table.remove(list, 1)
  for i, line in ipairs(list) do
    list[i] = json.decode(line)
  end
  return list
end

--- How often a path with its query was asked for.
function pages:asked_for(url)
  local count = 0
  for _, request in ipairs(self:requests()) do
    count = count + (request.url == url and 1 or 0)
  end
  return count
end

function pages:stop()
  self.child:kill("sigkill")
  self.child:wait(5000)
  files.remove_tree(self.dir)
end
pages.__close = pages.stop

return pages
