--- One more route for the benchmark: a handler that waits once, for nothing.
local P = require("abx.params")
local time = require("abx.time")

return {
  group = "core",
  {
    method = "GET", path = "/bench/yield", name = "bench.yield",
    summary = "Wait for the next turn of the loop, then answer",
    auth_required = false,
    returns = P.object { fields = { status = P.string { required = true } } },
    handler = function()
      time.sleep(0)
      return { status = "ok" }
    end,
  },
}
