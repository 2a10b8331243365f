--- Calls to the browser as its specs make them, and what its processes are.
local assert = require("luassert")
local check = require("support.check")
local files = require("support.files")
local http = require("support.http")
local process = require("support.process")
local server = require("support.server")

local M = {}

local PATIENCE_S = 120
local BROWSER_NAMES = { "chromium", "chrome", "headless_shell", "headless%-shell" }

--- A server with the group on; options as server.start has them.
function M.server(options)
  options = options or {}
  options.args = options.args or {}
  table.insert(options.args, "--enabled-groups")
  table.insert(options.args, "core,commands,file_ops,process,system,terminal,browser")
  return server.start(options)
end

--- The raw answer of a call; GET where the contract says so.
function M.ask(abxd, name, fields)
  if name ~= "content" and name ~= "console" then
    return abxd:post("/browser/" .. name, fields or {}, { timeout_s = PATIENCE_S })
  end
  local words = {}
  for key, value in pairs(fields or {}) do
    words[#words + 1] = key .. "=" .. http.escape(tostring(value))
  end
  return abxd:get("/browser/" .. name .. "?" .. table.concat(words, "&"), { timeout_s = PATIENCE_S })
end

--- The answer of one that must succeed, decoded.
function M.ok(abxd, name, fields)
  return check.ok(M.ask(abxd, name, fields))
end

--- Goes to a URL: a page "default" unless fields say another.
function M.go(abxd, url, fields)
  local all = { url = url }
  for key, value in pairs(fields or {}) do
    all[key] = value
  end
  return M.ok(abxd, "navigate", all)
end

--- The value of an expression.
function M.value(abxd, expression, fields)
  local all = { expression = expression }
  for key, value in pairs(fields or {}) do
    all[key] = value
  end
  return M.ok(abxd, "evaluate", all).result
end

--- Asserts that a call is that problem; returns it.
function M.problem(abxd, name, fields, status, code, field)
  return check.problem(M.ask(abxd, name, fields), status, code, field)
end

--- Console entries of a kind (all without one).
function M.entries(abxd, fields, kind)
  local found = {}
  for _, entry in ipairs(M.ok(abxd, "console", fields).entries) do
    if not kind or entry.kind == kind then
      found[#found + 1] = entry
    end
  end
  return found
end

--- {width=, height=, pixels={{r, g, b}, …} at the points {{x, y}, …}} of an image's bytes.
function M.pixels(bytes, points)
  local dir = files.mkdtemp()
  files.write(dir .. "/image", bytes)
  local words = { "/usr/bin/python3", "-c", [[
import sys
from PIL import Image
Image.MAX_IMAGE_PIXELS = None
image = Image.open(sys.argv[1])
print(image.format, *image.size)
image = image.convert("RGB")
for point in sys.argv[2:]:
    print(*image.getpixel(tuple(map(int, point.split(",")))))
]], dir .. "/image" }
  for _, point in ipairs(points or {}) do
    words[#words + 1] = ("%d,%d"):format(point[1], point[2])
  end
  local run = process.run(words, { timeout_ms = 60000 })
  files.remove_tree(dir)
  assert.equal("", run.stderr)
  local format, width, height = run.stdout:match("^(%S+) (%d+) (%d+)\n")
  local image = { format = format, width = tonumber(width), height = tonumber(height), pixels = {} }
  for red, green, blue in run.stdout:gmatch("\n(%d+) (%d+) (%d+)") do
    image.pixels[#image.pixels + 1] = { tonumber(red), tonumber(green), tonumber(blue) }
  end
  return image
end

--- The text of a PDF's bytes.
function M.pdf_text(bytes)
  local dir = files.mkdtemp()
  files.write(dir .. "/file.pdf", bytes)
  local run = process.run({ "pdftotext", dir .. "/file.pdf", "-" }, { timeout_ms = 60000 })
  files.remove_tree(dir)
  assert.same({ 0, "" }, { run.code, run.stderr })
  return run.stdout
end

--- The worker's pid, from /capabilities; nil while none lives.
function M.worker_pid(abxd)
  for _, worker in ipairs(check.ok(abxd:get("/capabilities")).workers) do
    if worker.name == "browser" then
      return math.type(worker.pid) and worker.pid or nil
    end
  end
end

--- The browser's own processes below the server, those whose arguments hold a text (plain), as process.descendants has
--- them.
function M.processes(abxd, text)
  local found = {}
  for _, entry in ipairs(process.descendants(abxd.pid)) do
    for _, name in ipairs(BROWSER_NAMES) do
      if entry.argv:match("^%S*" .. name) and (not text or entry.argv:find(text, 1, true)) then
        found[#found + 1] = entry
        break
      end
    end
  end
  return found
end

return M
