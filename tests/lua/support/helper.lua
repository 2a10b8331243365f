--- Loaded by busted before the specs: names each file as it starts, so that a log tells which one hung or was slow.
local busted = require("busted")
local uv = require("luv")
require("support.skip") -- here, so that all files share the one that hears of each test

local began

busted.subscribe({ "file", "start" }, function(file)
  began = uv.hrtime()
  io.stdout:write("\n", file.name, "\n")
  io.stdout:flush()
end)

busted.subscribe({ "file", "end" }, function()
  io.stdout:write((" %.1f s\n"):format((uv.hrtime() - began) / 1e9))
  io.stdout:flush()
end)

--- The closing lines of script/test repeat these: of a run elsewhere, they may be all that is left to read.
local function tell_failure(element, parent, message)
  local text = tostring(type(message) == "table" and message.message or message):gsub("%s+", " ")
  io.stdout:write(("\nFAILED TEST: %s %s: %s\n"):format(parent and parent.name or "", element.name or "", text:sub(1, 400)))
  io.stdout:flush()
end

busted.subscribe({ "failure" }, tell_failure)
busted.subscribe({ "error" }, tell_failure)
