-- Tables run in the server's sandbox: what is not listed here does not exist there.
stds.sandbox = {
  read_globals = {
    "assert", "collectgarbage", "error", "getmetatable", "ipairs", "load", "math", "next", "pairs", "pcall", "print",
    "rawequal", "rawget", "rawlen", "rawset", "require", "select", "setmetatable", "string", "table", "tonumber", "tostring",
    "type", "utf8", "xpcall",
    coroutine = { fields = { "create", "isyieldable", "resume", "status", "wrap", "yield", "close" } },
    os = { fields = { "clock", "date", "time" } },
    "fail", "reply", "try",
  },
}

std = "sandbox"
max_line_length = 130

files["tests"] = { std = "lua54+busted" }
-- Specs stand in for the server and give what the sandbox would.
files["tests/lua/tables"] = { std = "lua54+busted", globals = { "fail", "reply", "try" } }
