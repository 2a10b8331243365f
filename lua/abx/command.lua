--- Registered commands: the placeholder that config/commands.lua writes, and how a call becomes a program's run.
local json = require("abx.json")
local P = require("abx.params")
local proc = require("abx.proc")

local M = { TIMEOUT_MS = 120000, OUTPUT_BYTES = 2 * P.MiB }

local WHOLE = "arg stands for a whole word; give the option as a word of its own"

local placeholder = {
  __concat = function()
    error(WHOLE, 2)
  end,
  __tostring = function() -- as ("--n=%s"):format does, which stands between
    error(WHOLE, 3)
  end,
}

--- Stands for the argument of that name: in argv for whole words, else for a value of cwd, env or stdin.
function M.arg(name)
  return setmetatable({ arg = name }, placeholder)
end

-- Integers without a fraction, booleans as true and false: what the JSON said.
local function word_of(value)
  return type(value) == "string" and value or tostring(value)
end

--- The argument of that name; nil where it is null, or was not given.
local function given(args, name)
  local value = args[name]
  if value ~= json.null then
    return value
  end
end

local function fill(value, args)
  if type(value) ~= "table" then
    return value
  end
  local argument = given(args, value.arg)
  return argument ~= nil and word_of(argument) or nil
end

--- The words of argv, and for each that a client gave the parameter to blame: "name", or "names[0]". An array gives one
--- word for each item; an argument that was not given leaves no word.
function M.argv(template, args)
  local argv, params = {}, {}
  local function add(word, param)
    argv[#argv + 1] = word
    params[#argv] = param
  end
  for _, part in ipairs(template) do
    local param = type(part) == "table" and part.arg or nil
    local value = part
    if param then
      value = given(args, param)
    end
    if type(value) == "table" then
      for index, item in ipairs(value) do
        if item ~= json.null then
          add(word_of(item), ("%s[%d]"):format(param, index - 1))
        end
      end
    elseif value ~= nil then
      add(word_of(value), param)
    end
  end
  return argv, params
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

--- The client's parameter behind a field of proc.start's; nil where the operator wrote the value.
local function param_of(command, args, field)
  local _, params = M.argv(command.argv, args)
  local word = field:match("^argv%[(%d+)%]$")
  local variable = field:match("^env%.(.+)$")
  if word then
    return params[tonumber(word) + 1]
  end
  local value = variable and (command.env or {})[variable] or command[field]
  return type(value) == "table" and value.arg or nil
end

-- The program is the operator's choice, so that it cannot be started is no fault of the client.
local UNAVAILABLE = {
  executable_not_found = "the program %s is not installed",
  not_executable = "the program %s cannot be executed",
}

--- Starts the program: a run, or nil, code, message and field, which is one of the command's own parameters.
function M.start(command, args)
  local run, code, message, field = proc.start(M.to_spec(command, args))
  if run then
    return run
  elseif UNAVAILABLE[code] then
    return nil, "unavailable", UNAVAILABLE[code]:format(command.argv[1])
  end
  return nil, code, message, field and param_of(command, args, field)
end

return M
