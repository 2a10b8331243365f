--- The process table: programs that outlive the request that started them, what they print, and signals to them.
local P = require("abx.params")
local problem = require("abx.problem")
local proc = require("abx.proc")
local run_answers = require("abx.run")
local spawn = require("abx.spawn")
local sse = require("abx.sse")

local WAIT_MAX_MS = 300000
local OUTPUT_MAX_BYTES = 4 * P.MiB

local ID = P.string {
  required = true, min = 1, max = 64,
  doc = "an entry's id, or the decimal pid of a living process",
  example = "p-0123456789ab",
}
local WAIT = P.integer { min = 0, max = WAIT_MAX_MS, default = 0, doc = "how long to wait for its end" }

local PROCESS_FIELDS = P.merge(run_answers.exit_fields, {
  id = P.string { doc = "of a process that was not started here: its pid" },
  pid = P.integer {},
  ppid = P.integer { nullable = true, doc = "null once it has ended" },
  kind = P.string {
    nullable = true, example = "process",
    doc = "shell, process, terminal, code, git or browser; null where it was not started here",
  },
  command = P.string { doc = "as it was started, at most 8 KiB; secrets are masked. [name] where there are no words, as in ps" },
  command_truncated = P.optional(P.boolean { doc = "command and argv are longer than what is kept of them" }),
  argv = P.array { of = P.string {}, nullable = true, doc = "secrets are masked; null where a command was given" },
  cwd = P.optional(P.path { doc = "where it started; of one not started here where it is, if the server may see that" }),
  user = P.string { doc = "a name, or the number that has none" },
  state = P.string {
    example = "running",
    doc = "running or exited; one not started here has exited while nobody has waited for it, and how is not known",
  },
  cpu_percent = P.number { nullable = true, doc = "CPU time over its life; null once it has ended" },
  rss_bytes = P.integer { min = 0, nullable = true, doc = "null once it has ended" },
  tag = P.string { nullable = true },
})
local PROCESS = P.object { fields = PROCESS_FIELDS }

local PROCESS_ERRORS = { "process_not_found" }

--- What a client that follows again saw last, as offsets; nil where this is its first time, nil and errors where its
--- Last-Event-ID is none.
local function seen_last(req)
  local seen = req.headers["last-event-id"]
  if not seen or seen == "" then
    return nil
  end
  local out, err = seen:match("^(%d+)%.(%d+)$")
  local offsets = { stdout = math.tointeger(tonumber(out)), stderr = math.tointeger(tonumber(err)) }
  if not offsets.stdout or not offsets.stderr then
    return nil, { { field = "Last-Event-ID", problem = "is not an id of these events, as 1024.0" } }
  end
  return offsets
end

--- The answer with events. A client that comes back sends the query that it sent before: what it saw goes before that.
local function follow_output(req, options)
  local params = req.params
  local seen, errors = seen_last(req)
  if errors then
    return problem.invalid(req, errors)
  end
  if seen then
    options.stdout_offset, options.stderr_offset, options.tail_bytes = seen.stdout, seen.stderr, nil
  end
  options.wait_ms = params.wait_ms > 0 and params.wait_ms or nil
  local found, code, message, field = proc.follow(params.id, options)
  if seen and field and field:find("_offset$") then
    field = "Last-Event-ID"
  end
  try(found, code, message, field)
  return sse.reply(function(out)
    local follow <close> = found
    follow:stream(out)
  end)
end

return {
  group = "process",
  {
    method = "GET", path = "/processes", name = "processes.list",
    summary = "The processes that were started here, or all of the sandbox",
    read_only = true, idempotent = true,
    params = {
      scope = P.choice { "managed", "all", doc = "all: those of the sandbox that were not started here, too" },
      state = P.choice { "all", "running", "exited" },
    },
    returns = P.object {
      doc = "those that were started here in the order of their start, then the others by pid",
      fields = { processes = P.array { of = PROCESS } },
    },
    handler = function(req)
      return reply { json = try(proc.list(req.params.scope, req.params.state)) }
    end,
  },
  {
    method = "POST", path = "/processes", name = "processes.start",
    summary = "Start a program that outlives this request",
    description = "It lives until it ends or is stopped, whatever its client does. Its output is kept, the newest 4 MiB of each "
      .. "stream; GET /processes/{id}/output reads it.",
    destructive = true, status = 201, body_limit = 32 * P.MiB,
    params = P.merge(spawn.fields { timeout_ms = 0 }, {
      tag = P.string { max = 256, doc = "any text, to know it by" },
      keep_stdin = P.boolean {
        default = false,
        doc = "stdin stays open after what stdin gives, for POST /processes/{id}/stdin",
      },
    }),
    returns = P.object {
      doc = "it runs",
      fields = { id = P.string {}, pid = P.integer {}, started_at = P.string { format = "date-time" } },
    },
    errors = spawn.errors,
    handler = function(req)
      local spec, errors = spawn.to_spec(req.params)
      if not spec then
        return problem.invalid(req, errors)
      end
      spec.kind = "process"
      spec.tag = req.params.tag
      spec.keep_stdin = req.params.keep_stdin
      local run <close> = try(proc.start(spec))
      run:detach()
      return { id = run.id, pid = run.pid, started_at = run.started_at }
    end,
  },
  {
    method = "GET", path = "/processes/{id}", name = "processes.get",
    summary = "One process, and its children",
    description = "With wait_ms as soon as it has ended, or after that time as it is then.",
    read_only = true, idempotent = true,
    params = { id = ID, wait_ms = WAIT },
    returns = P.object {
      doc = "how it is now, or was at its end",
      fields = P.merge(PROCESS_FIELDS, {
        children = P.array {
          of = PROCESS,
          doc = "those that live, and what lost its parent among what they started; after its end what it left behind",
        },
      }),
    },
    errors = PROCESS_ERRORS,
    handler = function(req)
      return reply { json = try(proc.describe(req.params.id, req.params.wait_ms)) }
    end,
  },
  {
    method = "POST", path = "/processes/{id}/signal", name = "processes.signal",
    summary = "Send a signal to a process or its whole tree",
    description = "HUP, INT, QUIT, TERM, KILL, USR1, USR2, STOP, CONT and WINCH, with or without SIG. Never to pid 1, the server,"
      .. " its ancestors or their sessions. By pidfd, so that a number that now belongs to another process is not hit.",
    destructive = true,
    params = {
      id = ID,
      signal = P.string { min = 1, max = 16, default = "SIGTERM" },
      scope = P.choice { "tree", "process", doc = "tree: all that descends from it, too" },
      escalate_ms = P.integer {
        min = 0, max = WAIT_MAX_MS,
        doc = "SIGKILL to the same after that long, if it then still lives; the answer waits for that",
      },
      wait_ms = WAIT,
    },
    returns = P.object {
      doc = "the signal was sent",
      fields = P.merge(run_answers.exit_fields, {
        id = P.string {},
        pid = P.integer {},
        signal = P.string {
          nullable = true, example = "SIGTERM",
          doc = "what was sent; what ended it is exit_signal",
        },
        exit_signal = P.string { nullable = true, doc = "the signal that ended it" },
        signalled = P.integer { min = 0, doc = "how many processes got it" },
        escalated = P.boolean { doc = "whether SIGKILL was sent, too" },
        state = P.string { example = "exited", doc = "running or exited" },
      }),
    },
    errors = { "process_not_found", "signal_not_allowed", "already_exited", "permission_denied", "invalid_request" },
    handler = function(req)
      local params = req.params
      return reply {
        json = try(proc.signal(params.id, {
          signal = params.signal,
          scope = params.scope,
          escalate_ms = params.escalate_ms,
          wait_ms = params.wait_ms,
        })),
      }
    end,
  },
  {
    method = "GET", path = "/processes/{id}/output", name = "processes.output",
    summary = "What a process printed",
    description = "From an offset on, as much as is kept; a gap tells what is not. Offsets count bytes from the start of the "
      .. "program, and one beyond what came so far is refused. No part ends inside a character, unless nothing can follow; "
      .. "what the program's children print after its own end is not kept. With follow=true server-sent events: start, what is "
      .. "kept, then what comes, and exit once at the end; a client that comes back with Last-Event-ID goes on where it was, "
      .. "whatever offsets or tail_bytes its query holds, and one that leaves ends nothing. Of a run that /shell left behind, "
      .. "too; not of a terminal, whose output goes by its WebSocket.",
    read_only = true, idempotent = true,
    params = {
      id = ID,
      stream = P.choice { "both", "stdout", "stderr" },
      stdout_offset = P.integer { min = 0, doc = "of the first byte wanted, at most stdout_bytes; 0 unless given" },
      stderr_offset = P.integer { min = 0, doc = "of the first byte wanted, at most stderr_bytes; 0 unless given" },
      tail_bytes = P.integer { min = 0, doc = "instead of offsets: the last of each stream, from a whole character on" },
      limit = P.integer {
        min = 1, max = OUTPUT_MAX_BYTES, default = P.MiB,
        doc = "of each stream in one answer, in bytes; but a character is never cut",
      },
      encoding = P.choice { "utf-8", "base64" },
      wait_ms = P.integer {
        min = 0, max = WAIT_MAX_MS, default = 0,
        doc = "how long to wait where there is nothing new yet, at most until its end; with follow, when to end the stream "
          .. "without an exit (0: never)",
      },
      follow = P.boolean { default = false, doc = "answer with server-sent events" },
    },
    returns = P.object {
      doc = "a part of the output, or with follow a stream of events: start, stdout, stderr, gap, exit, error",
      also = "text/event-stream",
      fields = P.merge(run_answers.exit_fields, {
        id = P.string {},
        stdout = P.string { doc = "empty where stream asks for the other" },
        stderr = P.string { doc = "empty where stream asks for the other" },
        stdout_offset = P.integer { min = 0, doc = "where the next part begins; as asked where stream asks for the other" },
        stderr_offset = P.integer { min = 0, doc = "where the next part begins; as asked where stream asks for the other" },
        stdout_bytes = P.integer { min = 0, doc = "how many came so far" },
        stderr_bytes = P.integer { min = 0, doc = "how many came so far" },
        gap = P.optional(P.object {
          doc = "bytes that were asked for and are no longer kept",
          fields = {
            stdout = P.optional(P.object { fields = { from = P.integer {}, to = P.integer {} } }),
            stderr = P.optional(P.object { fields = { from = P.integer {}, to = P.integer {} } }),
          },
        }),
        lossy = P.boolean { doc = "whether bytes that are not UTF-8 became U+FFFD; ask for encoding base64 to get them" },
        eof = P.boolean { doc = "it has ended, and nothing follows this part of what stream asks for" },
      }),
    },
    errors = { "process_not_found", "invalid_request" },
    handler = function(req)
      local params = req.params
      local options = {
        stream = params.stream,
        encoding = params.encoding,
        stdout_offset = params.stdout_offset,
        stderr_offset = params.stderr_offset,
        tail_bytes = params.tail_bytes,
      }
      if params.follow then
        return follow_output(req, options)
      end
      options.limit, options.wait_ms = params.limit, params.wait_ms
      return reply { json = try(proc.output(params.id, options)) }
    end,
  },
}
