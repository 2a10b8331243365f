--- Spawn fields: declared, and turned into what proc.start takes, in this one place for every route that starts a program.
local text = require("abx.text")
local P = require("abx.params")

local M = { TIMEOUT_MAX_MS = 7 * 24 * 60 * 60 * 1000 }

--- The codes that starting a program can fail with.
M.errors = {
  "invalid_request", "invalid_path", "bad_cwd", "not_executable", "path_outside_base",
  "permission_denied", "executable_not_found", "payload_too_large", "too_many_processes",
}

--- The declarations. options: timeout_ms, the default (0: none); stdin = false leaves stdin out; program names what runs
--- where neither command nor argv is given (nil: one of them must be).
function M.fields(options)
  local choice = options.program and ("not with argv; %s unless one of them is given"):format(options.program)
    or "exactly one of command and argv"
  local fields = {
    command = P.string { min = 1, example = "ls -l", doc = "text for /bin/bash -c, else /bin/sh -c; " .. choice },
    argv = P.array { of = P.string {}, min = 1, doc = "the program and its arguments, without a shell" },
    cwd = P.path { doc = "directory to start in; the base directory unless given" },
    env = P.map { of = P.string { nullable = true }, max = 4096, doc = "variables to set, at most 4096; null removes one" },
    timeout_ms = P.integer {
      min = 0, max = M.TIMEOUT_MAX_MS, default = options.timeout_ms or 0,
      doc = "then SIGTERM to the whole tree, and SIGKILL 2 s later; 0 is no limit",
    },
  }
  if options.stdin ~= false then
    fields.stdin = P.string { doc = "what the program reads, then end of file; empty unless given" }
    fields.stdin_encoding = P.choice { "utf-8", "base64" }
  end
  return fields
end

--- What proc.start takes, made of checked parameters; or nil and the faulty fields, for problem.invalid. options:
--- needs_program = false lets both of command and argv be missing.
function M.to_spec(params, options)
  local errors = {}
  local function faulty(field, problem)
    errors[#errors + 1] = { field = field, problem = problem }
  end

  if params.command and params.argv then
    faulty("command", "give command or argv, not both")
    faulty("argv", "give command or argv, not both")
  elseif not params.command and not params.argv and not (options and options.needs_program == false) then
    faulty("command", "one of command and argv is required")
    faulty("argv", "one of command and argv is required")
  end
  if params.command and params.command:find("\0", 1, true) then
    faulty("command", "holds a NUL byte, which no program can be given")
  end
  for index, word in ipairs(params.argv or {}) do
    if word:find("\0", 1, true) then
      faulty(("argv[%d]"):format(index - 1), "holds a NUL byte, which no program can be given")
    end
  end
  local stdin = params.stdin
  if stdin and params.stdin_encoding == "base64" then
    stdin = text.base64_decode(stdin)
    if not stdin then
      faulty("stdin", "is not base64")
    end
  end
  if #errors > 0 then
    return nil, errors
  end

  return {
    command = params.command,
    argv = params.argv,
    cwd = params.cwd,
    env = params.env,
    stdin = stdin,
    timeout_ms = params.timeout_ms,
  }
end

return M
