--- Loaded by busted before the specs: names each file as it starts, so that a log tells which one hung or was slow.
local busted = require("busted")
local uv = require("luv")

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
