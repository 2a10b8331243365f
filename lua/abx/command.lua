--- Registered commands: the placeholder that config/commands.lua writes, and how a call becomes a program's run.
local P = require("abx.params")

local M = { TIMEOUT_MS = 120000, OUTPUT_BYTES = 2 * P.MiB }

--- Stands for the argument of that name: in argv for whole words, else for a value of cwd, env or stdin.
function M.arg(name)
  return { arg = name }
end

-- Integers without a fraction, booleans as true and false: what the JSON said.
local function word_of(value)
  return type(value) == "string" and value or tostring(value)
end

local function fill(value, args)
  if type(value) ~= "table" then
    return value
  end
  local given = args[value.arg]
  return given ~= nil and word_of(given) or nil
end

--- The words of argv. An array gives one word for each item; an argument that was not given leaves no word.
function M.argv(template, args)
  local argv = {}
  for _, part in ipairs(template) do
    local value = part
    if type(part) == "table" then
      value = args[part.arg]
    end
    if type(value) == "table" then
      for _, item in ipairs(value) do
        argv[#argv + 1] = word_of(item)
      end
    elseif value ~= nil then
      argv[#argv + 1] = word_of(value)
    end
  end
  return argv
end

--- What proc.start takes, for a command that wraps a program.
function M.to_spec(command, args)
  local env = {}
  for name, value in pairs(command.env or {}) do
    env[name] = fill(value, args)
  end
  return {
    argv = M.argv(command.argv, args),
    cwd = fill(command.cwd, args),
    env = env,
    stdin = fill(command.stdin, args),
    timeout_ms = command.timeout_ms or M.TIMEOUT_MS,
    capture_bytes = M.OUTPUT_BYTES,
    kind = "shell",
    tag = command.name,
  }
end

return M
