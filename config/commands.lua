--- Registered commands: what clients may call as POST /commands/NAME. The README's "Write a command" explains the keys.
local arg = require("abx.command").arg
local P = require("abx.params")
local proc = require("abx.proc")

local DIRECTORY = P.path { default = ".", doc = "the directory to look at" }

--- The first line that a program says about its version; nil where it is not installed.
local function version_of(program, flag)
  local run <close> = proc.start { argv = { program, flag }, timeout_ms = 5000, capture_bytes = 4096, kind = "shell" }
  if not run then
    return nil
  end
  run:wait()
  local output = run:captured("utf-8")
  local said = output.stdout ~= "" and output.stdout or output.stderr -- java and old pythons use stderr
  return said:match("[^\r\n]+")
end

return {
  {
    name = "disk-usage",
    description = "How much the folders of a directory take on the disk, in bytes",
    params = {
      path = DIRECTORY,
      depth = P.integer { min = 0, max = 10, default = 1, doc = "how many levels to list" },
    },
    -- The directory is where it starts, not a word: so it is confined to the base directory.
    argv = { "du", "--bytes", "--one-file-system", "--max-depth", arg "depth", "." },
    cwd = arg "path",
    timeout_ms = 60000,
  },
  {
    name = "git-summary",
    description = "The latest commits of a repository, one a line",
    params = {
      path = DIRECTORY,
      count = P.integer { min = 1, max = 1000, default = 10 },
    },
    argv = { "git", "--no-pager", "log", "--date=iso-strict", "--format=%h %ad %an: %s", "--max-count", arg "count" },
    cwd = arg "path",
    env = { GIT_CONFIG_NOSYSTEM = "1" },
    timeout_ms = 30000,
  },
  {
    name = "find-large-files",
    description = "The files over a size below a directory, as size in bytes and path",
    params = {
      path = DIRECTORY,
      size = P.choice { "+10M", "+1M", "+100M", "+1G", doc = "as find takes it" },
    },
    argv = { "find", ".", "-xdev", "-type", "f", "-size", arg "size", "-printf", "%s %P\\n" },
    cwd = arg "path",
    timeout_ms = 60000,
  },
  {
    name = "runtime-versions",
    description = "Which compilers, interpreters and tools are installed, and their versions",
    params = {
      only = P.array { of = P.string {}, max = 32, doc = "these programs, rather than all that it knows" },
    },
    run = function(args)
      local flags = {
        bash = "--version", cargo = "--version", cmake = "--version", curl = "--version", gcc = "--version",
        git = "--version", go = "version", java = "-version", make = "--version", node = "--version", npm = "--version",
        php = "--version", python3 = "--version", ruby = "--version", rustc = "--version",
      }
      local wanted = {}
      for _, program in ipairs(args.only or {}) do
        wanted[program] = true
      end
      local versions = {}
      for program, flag in pairs(flags) do
        if not args.only or wanted[program] then
          versions[program] = version_of(program, flag)
        end
      end
      return { versions = versions }
    end,
  },
  {
    name = "ping",
    description = "For monitoring: proves that programs can be started",
    hidden = true,
    argv = { "printf", "%s", arg "message" },
    params = { message = P.string { default = "pong", max = 1000 } },
    timeout_ms = 5000,
  },
}
