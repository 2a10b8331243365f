--- A program's run as answers show it; shared by the routes that start one and wait for it.
local json = require("abx.json")
local paths = require("abx.paths")
local P = require("abx.params")

local M = {}

--- Exit fields, for `returns`.
M.exit_fields = {
  exit_code = P.integer { nullable = true, doc = "the program's, or 128+n when signal n ended it; null while it runs" },
  signal = P.string { nullable = true, doc = "the signal that ended it", example = "SIGKILL" },
  timed_out = P.boolean { doc = "whether timeout_ms ended it" },
  started_at = P.string { format = "date-time" },
  duration_ms = P.integer { min = 0 },
}

--- What answer() makes.
M.returns = P.object {
  doc = "the program ran; whether it succeeded is for exit_code to say",
  fields = P.merge(M.exit_fields, {
    id = P.string { doc = "its entry in the process table" },
    pid = P.integer {},
    cwd = P.path { doc = "where it started" },
    running = P.boolean { doc = "true when wait_ms was over first: it goes on" },
    stdout = P.string {},
    stderr = P.string {},
    stdout_bytes = P.integer { min = 0, doc = "how many came, kept or not" },
    stderr_bytes = P.integer { min = 0, doc = "how many came, kept or not" },
    truncated = P.object {
      fields = { stdout = P.boolean {}, stderr = P.boolean {} },
      doc = "whether the middle was dropped to stay below max_output_bytes",
    },
    lossy = P.boolean { doc = "whether bytes that are not UTF-8 became U+FFFD; ask for encoding base64 to get them" },
  }),
}

--- The same fields, for routes that answer like this only sometimes.
M.optional_fields = {}
for name, schema in pairs(M.returns.fields) do
  M.optional_fields[name] = P.optional(schema)
end

--- The answer for a run, ended or not. Waits where there is much output, which is then for the answer alone.
function M.answer(run, encoding)
  local answer = P.merge(run:answer_output(encoding), run:exit())
  answer.running = answer.exit_code == json.null
  answer.id, answer.pid = run.id, run.pid
  return paths.put(answer, "cwd", run.cwd)
end

return M
