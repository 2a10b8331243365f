--- Terminals: opened, listed and closed here; used over a WebSocket on a port of their own.
local json = require("abx.json")
local P = require("abx.params")
local problem = require("abx.problem")
local proc = require("abx.proc")
local pty = require("abx.pty")
local run_answers = require("abx.run")
local server = require("abx.server")
local spawn = require("abx.spawn")

local SIZE_MAX = 1000 -- prim/terminal_size.h

local CONNECT = [[
It lives until it ends or DELETE /pty/{id}, whoever connects or leaves, and nobody needs to: it is never held up, and the
newest 4 MiB of its output are kept.

Connect by WebSocket to ws_url, with one of these: the header `Authorization: Bearer TOKEN`; the sub-protocols `abx.pty.v1` and
`bearer.TOKEN`, or `bearer64.` with the token in base64url; or `?ticket=` with a ticket (good once, for 30 s; GET
/pty?tickets=true makes others). What is offered without `abx.pty.v1` is refused. Further in the query: `since`, an offset of
the output to begin at (unless given all that is kept; -1: only what comes); `cols` and `rows`, a new size; `access`, `rw` or
`ro`; `mode`, `json` or `raw`.

Binary frames are bytes, both ways. Text frames are JSON. You send `{"type":"input","data":"ls\r"}`,
`{"type":"resize","cols":100,"rows":30}`, `{"type":"signal","signal":"SIGINT"}` (to the group in the foreground) and
`{"type":"ping"}`, which is answered by `{"type":"pong"}`. You get first `{"type":"ready","id","cols","rows","offset"}` (the
offset of the byte that comes next); `{"type":"resized","cols","rows"}` when another client changed the size;
`{"type":"gap","from","to"}` where output is no longer kept; `{"type":"error","code","detail"}` for a message that was refused;
and after the last byte `{"type":"exit"}` with exit_code and the other exit fields. With mode=raw text frames are keystrokes,
output is all that comes, and the exit code stands in the close reason as `{"exit_code":0}`.

Close codes: 1000 it has ended, 1001 the server stops, 1002 protocol fault, 1007 text that is not UTF-8, 1009 a message over
1 MiB, 4004 there is no such terminal (any more).]]

local ID = P.string { min = 1, max = 64, required = true, doc = "as POST /pty answered it", example = "p-0123456789ab" }
local TICKET = P.string { doc = "for ?ticket= of the WebSocket: good once, for 30 s, for this terminal" }

local TERMINAL = P.object {
  fields = P.merge(run_answers.exit_fields, {
    id = P.string { doc = "its entry in the process table" },
    pid = P.integer {},
    tag = P.string { nullable = true },
    command = P.string { doc = "as it was started, at most 8 KiB; secrets are masked" },
    command_truncated = P.optional(P.boolean { doc = "command and argv are longer than what is kept of them" }),
    argv = P.array { of = P.string {}, nullable = true, doc = "secrets are masked; null where a command was given" },
    cols = P.integer { min = 1, max = SIZE_MAX, doc = "as they are now" },
    rows = P.integer { min = 1, max = SIZE_MAX, doc = "as they are now" },
    foreground = P.string { nullable = true, example = "bash", doc = "the program in the foreground; null once it has ended" },
    cwd = P.path { nullable = true, doc = "where the program in the foreground is; null once it has ended" },
    clients = P.integer { min = 0, doc = "how many are connected" },
    offset = P.integer { min = 0, doc = "how many bytes it has printed" },
    created_at = P.string { format = "date-time" },
    last_activity_at = P.string { format = "date-time", doc = "output, input, a new size, or a client that came or went" },
    ticket = P.optional(TICKET),
  }),
}

--- Where a client of this request reaches the terminal.
local function ws_url(req, id)
  local config = server.config()
  local base = config.ws_public_url
  if not base then
    local host = req.headers.host
    base = ("ws://%s:%d"):format(host:match("^%[[^%]]*%]") or host:match("^[^:]*"), config.ws_port)
  end
  return base .. "/pty/" .. id
end

--- The environment on top of the server's: the size that a program reads there is not that of this terminal.
local function environment(params)
  return P.merge({ TERM = params.term, LINES = json.null, COLUMNS = json.null }, params.env or {})
end

return {
  group = "terminal",
  {
    method = "POST", path = "/pty", name = "pty.create",
    summary = "Open a terminal",
    description = "Without command and argv it runs the login shell: SHELL of the server's environment, else what passwd "
      .. "names for the server's user, else /bin/bash or /bin/sh; without -l, which would reset PATH. TERM in env goes before "
      .. "term.\n\n"
      .. CONNECT,
    destructive = true, status = 201,
    params = P.merge(spawn.fields { stdin = false, program = "the login shell" }, {
      cols = P.integer { min = 1, max = SIZE_MAX, default = 80 },
      rows = P.integer { min = 1, max = SIZE_MAX, default = 24 },
      term = P.string {
        min = 1, max = 64, default = "xterm-256color",
        doc = "TERM of the program: letters, digits and . _ + -",
      },
      tag = P.string { max = 256, doc = "any text, to know it by" },
    }),
    returns = P.object {
      doc = "it runs",
      fields = {
        id = P.string { example = "p-0123456789ab" },
        pid = P.integer {},
        cols = P.integer { min = 1, max = SIZE_MAX },
        rows = P.integer { min = 1, max = SIZE_MAX },
        ws_url = P.string {
          example = "ws://127.0.0.1:8081/pty/p-0123456789ab",
          doc = "where it is used: at the host of this request, or as ws_public_url of the configuration says",
        },
        ticket = TICKET,
      },
    },
    errors = P.join({ "too_many_terminals", "unavailable" }, spawn.errors),
    handler = function(req)
      local params = req.params
      local spec, errors = spawn.to_spec(params, { needs_program = false })
      if not params.term:find("^[A-Za-z0-9._+-]+$") then
        errors = errors or {}
        errors[#errors + 1] = { field = "term", problem = "may hold letters, digits and . _ + - only" }
      end
      if errors then
        return problem.invalid(req, errors)
      end
      if not spec.command and not spec.argv then
        spec.argv = { (try(pty.shell())) }
      end
      spec.kind = "terminal"
      spec.cols, spec.rows, spec.tag = params.cols, params.rows, params.tag
      spec.env = environment(params)
      local run <close> = try(proc.start(spec))
      local ticket = try(pty.ticket(run.id))
      run:detach()
      return {
        id = run.id, pid = run.pid, cols = params.cols, rows = params.rows,
        ws_url = ws_url(req, run.id), ticket = ticket,
      }
    end,
  },
  {
    method = "GET", path = "/pty", name = "pty.list",
    summary = "The terminals",
    description = "Those that live and those that have ended, until they are closed by DELETE /pty/{id} or no longer kept.",
    read_only = true, idempotent = true,
    params = { tickets = P.boolean { default = false, doc = "a fresh ticket for each" } },
    returns = P.object {
      doc = "in the order of their start",
      fields = { terminals = P.array { of = TERMINAL } },
    },
    errors = { "unavailable" },
    handler = function(req)
      return reply { json = try(pty.list(req.params.tickets)) }
    end,
  },
  {
    method = "DELETE", path = "/pty/{id}", name = "pty.close",
    summary = "Close a terminal",
    description = "Sends SIGHUP to the program and all that descends from it, and SIGKILL after 2 s to what still lives. The "
      .. "answer comes at its end; nobody can connect from the beginning on, and those who are connected get the rest and the "
      .. "exit. GET /processes/{id} still tells how it ended.",
    destructive = true,
    params = { id = ID },
    returns = P.object {
      doc = "it has ended, now or before",
      fields = P.merge(run_answers.exit_fields, { id = P.string {} }),
    },
    errors = { "terminal_not_found", "unavailable" },
    handler = function(req)
      return reply { json = try(pty.close(req.params.id)) }
    end,
  },
}
