--- Says that a test cannot run on this machine; script/test repeats these lines at its end and counts them.
local busted = require("busted")

-- `pending` that ends a running test lives in that test's own environment only.
local running
busted.subscribe({ "test", "start" }, function(test)
  running = test
end)

return function(name, reason)
  io.stdout:write(("\nNOT RUN: %s: %s\n"):format(name, reason))
  io.stdout:flush()
  running.env.pending(name .. ": " .. reason)
end
