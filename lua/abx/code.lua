--- Cells of code: their declaration, and how one becomes an answer or a stream of events.
local cell = require("abx.cell")
local P = require("abx.params")
local problem = require("abx.problem")
local sse = require("abx.sse")
local variables = require("abx.variables")

local M = {}

local TIMEOUT_MAX_MS = 7 * 24 * 60 * 60 * 1000

M.params = {
  code = P.string { required = true, example = "1 + 1", doc = "what is run; the value of a last expression is a result" },
  language = P.choice { "python", "javascript", "bash" },
  context = P.string {
    min = 1, max = 64, default = "default",
    doc = "a name of A-Z a-z 0-9 . _ -, of its language: what cells define stays there for the next ones. Cells of one context "
      .. "queue. 8 live at once; a ninth ends the longest idle one, and is refused where none is idle",
  },
  reset = P.boolean { default = false, doc = "begin with a fresh interpreter, once its turn has come" },
  timeout_ms = P.integer {
    min = 0, max = TIMEOUT_MAX_MS, default = 30000,
    doc = "then the cell is interrupted and the state kept; what cannot be interrupted is ended 5 s later; 0 is no limit",
  },
  env = P.map {
    of = P.string { nullable = true }, max = 4096,
    doc = "variables to set, at most 4096; null removes one; they stay in force in the context, as export does",
  },
  cwd = P.path { doc = "directory to change to; it stays so in the context, which begins in the base directory" },
}

M.errors = {
  "invalid_request", "invalid_path", "bad_cwd", "path_outside_base", "protected_variable", "payload_too_large",
  "too_many_requests", "too_many_processes", "unavailable", "upstream_timeout", "shutting_down",
}

M.returns = P.object {
  doc = "the cell ran, see status; or with Accept: text/event-stream events: start {context, language, engine, id, pid}, "
    .. "stdout and stderr {data, offset, lossy}, gap {stream, from, to}, result {media type: data}, exception {name, value, "
    .. "traceback}, and once at the end done {status, execution_count, engine, restarted, truncated, duration_ms}, or error "
    .. "(a problem)",
  also = "text/event-stream",
  fields = {
    context = P.string {},
    language = P.string {},
    engine = P.string { doc = "ipython, plain (Python without IPython), node or bash", example = "ipython" },
    id = P.string { doc = "the interpreter's entry in the process table" },
    pid = P.integer {},
    execution_count = P.integer { nullable = true, doc = "of the cells of this interpreter; null where it ended before it told" },
    status = P.string { doc = "ok, error, timeout or crashed", example = "ok" },
    stdout = P.string { doc = "what the cell and its children printed; of more than 2 MiB the beginning and the end" },
    stderr = P.string { doc = "what the cell and its children printed; of more than 2 MiB the beginning and the end" },
    results = P.array { of = P.map { doc = "media type: data" }, doc = "in their order: what was displayed, then the value" },
    error = P.object {
      nullable = true,
      fields = { name = P.string { example = "ValueError" }, value = P.string {}, traceback = P.string {} },
    },
    restarted = P.boolean { doc = "the state of earlier cells is gone: by a crash, a reset, or room made for another context" },
    truncated = P.boolean { doc = "output or results were left out" },
    lossy = P.boolean { doc = "whether bytes of the output that are not UTF-8 became U+FFFD" },
    duration_ms = P.integer { min = 0, doc = "without the time that it waited for its turn" },
  },
}

--- The faulty fields, where a schema cannot say what they may be.
local function faults(params)
  local errors = {}
  if not params.context:find("^[%w._-]+$") then
    errors[1] = { field = "context", problem = "only A-Z a-z 0-9 . _ - may be in a name" }
  end
  return P.join(errors, variables.faults("env", params.env or {}))
end

local function answer(run, params)
  try(run:wait())
  local output = run:answer_output("utf-8")
  local fields = run:answer()
  fields.context, fields.language = params.context, params.language
  fields.id, fields.pid = run.id, run.pid
  fields.stdout, fields.stderr, fields.lossy = output.stdout, output.stderr, output.lossy
  fields.truncated = fields.truncated or output.truncated.stdout or output.truncated.stderr
  return fields
end

--- The handler.
function M.execute(req)
  local params = req.params
  local errors = faults(params)
  if #errors > 0 then
    return problem.invalid(req, errors)
  end
  local events = req.accepts_sse
  local started = try(cell.start {
    language = params.language,
    context = params.context,
    code = params.code,
    reset = params.reset,
    timeout_ms = params.timeout_ms,
    env = params.env,
    cwd = params.cwd,
    stream = events,
  })
  if not events then
    local run <close> = started
    return answer(run, params)
  end
  -- Closed by the stream, not here: it outlives this function, and runs right after it.
  try(started:begin())
  return sse.reply(function(out)
    local run <close> = started
    if run:stream(out) then
      try(run:wait()) -- the worker may have refused it
    end
  end)
end

return M
