local server = require("support.server")
local socket = require("socket")
describe("x", function()
  for _, case in ipairs{"plain","get","reverse","apart","abort"} do
  it(case, function()
    local abxd <close> = server.start {}
    local b = abxd:baseline()
    local s = abxd:stream("POST", "/shell/stream", { json = { argv = { "sleep", "4564" } } })
    local c = abxd:connect()
    c:send("POST /upload?path=x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
    socket.sleep(0.3)
    if case == "reverse" then s:close() c:close() elseif case == "apart" then c:close() socket.sleep(0.3) s:close()
    elseif case == "abort" then c:abort() s:close() else c:close() s:close() end
    if case == "get" then socket.sleep(1) abxd:get("/health") end
    abxd:assert_settled(b)
  end)
  end
end)
