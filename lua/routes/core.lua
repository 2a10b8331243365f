--- The server's health, shell runs, registered commands, and files that come in or go out whole.
local command = require("abx.command")
local disposition = require("abx.disposition")
local fs = require("abx.fs")
local json = require("abx.json")
local mime = require("abx.mime")
local P = require("abx.params")
local problem = require("abx.problem")
local proc = require("abx.proc")
local run_answers = require("abx.run")
local schema = require("abx.schema")
local server = require("abx.server")
local session = require("abx.session")
local shape = require("abx.shape")
local spawn = require("abx.spawn")
local sse = require("abx.sse")
local tables = require("abx.tables")
local time = require("abx.time")

local COMMAND_DEADLINE_MS = 60000
local WAIT_MAX_MS = 24 * 60 * 60 * 1000

local SHELL_PARAMS = P.merge(spawn.fields { timeout_ms = 120000 }, {
  session = P.string {
    min = 1, max = 128,
    doc = "a name: the run starts with the directory and exported variables that the last one of this session ended with; "
      .. "runs of one session queue, and wait_ms and timeout_ms count from a run's start; a directory outside the base is "
      .. "not kept, nor is anything where it is over 2 MiB or 4096 variables; only with command",
  },
  max_output_bytes = P.integer {
    min = 1, max = 16 * P.MiB, default = 2 * P.MiB,
    doc = "kept of each stream, head and tail; the middle is dropped. A stream of events is whole whatever this says",
  },
  encoding = P.choice { "utf-8", "base64", doc = "of the output in the answer" },
  wait_ms = P.integer {
    min = 0, max = WAIT_MAX_MS,
    doc = "answer after that long with running: true, or end the stream of events; the run goes on,"
      .. " and /processes/{id}/output has the rest",
  },
  on_disconnect = P.choice { "kill", "continue", doc = "what becomes of the run when the client leaves" },
})

local SHELL_ERRORS = P.join({ "busy" }, spawn.errors)

--- proc.start's table for /shell and /shell/stream, or nil and the faulty fields. The session's turn is not in it yet.
local function shell_spec(params)
  local spec, errors = spawn.to_spec(params)
  if params.session and params.argv then
    errors = errors or {}
    errors[#errors + 1] = { field = "session", problem = "works with command only: a session is a shell's" }
  end
  if errors then
    return nil, errors
  end
  spec.kind = "shell"
  return spec
end

return {
  group = "commands",
  {
    method = "GET", path = "/health", name = "health", group = "core",
    summary = "Whether the server is up",
    auth_required = false, read_only = true, idempotent = true,
    returns = {
      [200] = P.object {
        doc = "it serves",
        fields = {
          status = P.string { example = "ok" },
          version = P.string {},
          uptime_ms = P.integer { min = 0 },
        },
      },
      [503] = P.object { doc = "it is shutting down", fields = { status = P.string { example = "shutting_down" } } },
    },
    handler = function()
      if server.draining() then
        return reply { status = 503, json = { status = "shutting_down" } }
      end
      return { status = "ok", version = server.version, uptime_ms = server.uptime_ms() }
    end,
  },
  {
    method = "GET", path = "/commands", name = "commands.list",
    summary = "The registered commands",
    description = "Each with the JSON Schema of its arguments. Hidden ones do not appear.",
    read_only = true, idempotent = true,
    returns = P.object {
      doc = "in the order of the commands file",
      fields = {
        commands = P.array {
          of = P.object {
            fields = {
              name = P.string {},
              description = P.string {},
              parameters = P.map { doc = "a JSON Schema" },
              timeout_ms = P.integer { min = 0 },
            },
          },
        },
      },
    },
    handler = function()
      local list = json.array {}
      for _, declaration in ipairs(tables.commands()) do
        if not declaration.hidden then
          list[#list + 1] = {
            name = declaration.name,
            description = declaration.description,
            parameters = schema.object(declaration.params or {}),
            timeout_ms = declaration.run and COMMAND_DEADLINE_MS or declaration.timeout_ms or command.TIMEOUT_MS,
          }
        end
      end
      return { commands = list }
    end,
  },
  {
    method = "POST", path = "/commands/{name}", name = "commands.run",
    summary = "Run a registered command",
    description = "The body holds its arguments. They reach a program as whole words of argv, as its stdin or its "
      .. "environment, never as shell text. A command that wraps a program answers like POST /shell, others with result.",
    destructive = true, deadline_ms = COMMAND_DEADLINE_MS,
    params = { name = P.string { required = true, min = 1, doc = "as GET /commands lists it" } },
    rest = "arguments",
    returns = P.object {
      doc = "it ran",
      fields = P.merge(run_answers.optional_fields, {
        name = P.string { required = false, doc = "with result only" },
        result = P.any { required = false, doc = "what a command without a program answered" },
      }),
    },
    errors = P.join({ "command_not_found", "unavailable" }, spawn.errors),
    handler = function(req)
      local name = req.params.name
      local declaration = tables.command(name)
      if not declaration then
        fail("command_not_found", ("no command is called %s; GET /commands lists them"):format(name), "name")
      end
      local args, code, _, errors = tables.check(declaration.params or {}, req.params.arguments or {})
      if not args then
        return problem.invalid(req, errors, code)
      end
      if declaration.run then
        local started_ms = time.now_ms()
        local result = declaration.run(args)
        return { name = name, result = result == nil and json.null or result, duration_ms = time.now_ms() - started_ms }
      end
      local run <close> = try(command.start(declaration, args))
      run:wait()
      return run_answers.answer(run, "utf-8")
    end,
  },
  {
    method = "POST", path = "/upload", name = "upload",
    summary = "Send files",
    description = "A multipart/form-data body with any number of file parts, each put into dir under its own file name (or "
      .. "one part, after a text part called path); or any other type of body as the file itself, put at path. The old "
      .. "file or the whole new one stands there at any moment, and an upload that breaks off leaves nothing.",
    destructive = true, body = "stream", status = 201,
    params = {
      path = P.path { doc = "where a body that is no form goes; required for it" },
      dir = P.path { doc = "where the parts of a form go; the base directory unless given" },
      overwrite = P.boolean { default = true },
      create_parents = P.boolean { default = true },
      mode = P.string { min = 3, max = 4, doc = "octal; a replaced file's own unless given", example = "0644" },
      sha256 = P.string { min = 64, max = 64, doc = "what the one file must have, else nothing is kept" },
    },
    returns = P.object {
      doc = "all files stand in their places",
      fields = {
        files = P.array {
          of = P.object {
            fields = {
              path = P.path {},
              size = P.integer { min = 0 },
              sha256 = P.string { min = 64, max = 64 },
              created = P.boolean { doc = "false where it replaced a file" },
            },
          },
        },
      },
    },
    errors = {
      "invalid_request", "invalid_path", "not_a_directory", "is_a_directory", "not_a_regular_file", "path_outside_base",
      "base_dir_protected", "permission_denied", "file_not_found", "already_exists", "checksum_mismatch", "no_space",
    },
    handler = function(req)
      local params = req.params
      local files = try(fs.upload(req.body, {
        content_type = req.headers["content-type"],
        path = params.path,
        dir = params.dir,
        overwrite = params.overwrite,
        create_parents = params.create_parents,
        mode = shape.mode(params.mode, "mode"),
        sha256 = shape.sha256(params.sha256, "sha256"),
      }))
      return { files = files }
    end,
  },
  {
    method = "GET", path = "/download", name = "download",
    summary = "Fetch a file, or a directory as an archive",
    description = "Files answer ranges and conditional requests. An archive is made while it is sent.",
    read_only = true, idempotent = true,
    params = {
      path = P.path { required = true },
      archive = P.choice { "none", "tar.gz", "zip", doc = "for directories" },
      inline = P.boolean { default = false, doc = "for a browser to show, rather than save" },
    },
    returns = {
      [200] = P.bytes { media = "*/*", doc = "the file or archive; its type by the name's extension" },
      [206] = P.bytes { media = "*/*", doc = "the part that Range asked for" },
      [304] = P.bytes { doc = "not modified" },
      [412] = P.bytes { media = "application/problem+json", doc = "a precondition does not hold" },
    },
    errors = {
      "invalid_path", "not_a_directory", "is_a_directory", "not_a_regular_file", "path_outside_base", "permission_denied",
      "file_not_found", "range_not_satisfiable",
    },
    handler = function(req)
      local params = req.params
      local kind = params.inline and "inline" or "attachment"
      if params.archive ~= "none" then
        local archive = try(fs.archive(params.path, params.archive))
        return reply {
          headers = {
            ["Content-Type"] = mime.of(archive.name),
            ["Content-Disposition"] = disposition.of(kind, archive.name),
          },
          stream = function(out)
            archive:stream(out)
          end,
        }
      end
      local file, code, message, field = fs.open_file(params.path)
      if code == "is_a_directory" then
        message = message .. "; archive=tar.gz or archive=zip fetches directories"
      end
      try(file, code, message, field)
      local media = mime.of(file.name)
      return reply {
        headers = {
          ["Content-Type"] = media,
          ["Content-Disposition"] = disposition.of(kind, file.name),
          ["Content-Security-Policy"] = params.inline and mime.is_active(media) and "sandbox" or nil,
          ["X-Content-Type-Options"] = "nosniff",
        },
        file = file,
      }
    end,
  },
  {
    method = "POST", path = "/shell", name = "shell",
    summary = "Run a program and wait for its end",
    description = "A program that ran and failed is a success of this call: look at exit_code. The answer comes when the "
      .. "program itself has ended; one that it left in the background lives on.",
    destructive = true, body_limit = 32 * P.MiB,
    params = SHELL_PARAMS,
    returns = run_answers.returns,
    errors = SHELL_ERRORS,
    handler = function(req)
      local params = req.params
      local spec, errors = shell_spec(params)
      if not spec then
        return problem.invalid(req, errors)
      end
      local turn <close> = params.session and try(session.enter(params.session))
      spec.session = turn
      spec.capture_bytes = params.max_output_bytes
      local run <close> = try(proc.start(spec))
      if params.on_disconnect == "continue" then
        run:detach()
      end
      if not run:wait(params.wait_ms) then
        run:detach()
      end
      return run_answers.answer(run, params.encoding)
    end,
  },
  {
    method = "POST", path = "/shell/stream", name = "shell.stream",
    summary = "Run a program and follow its output",
    description = "Server-sent events: start, then stdout and stderr as they come, gap where bytes were lost to a slow "
      .. "client, and exit once at the end. What cannot be started is an ordinary error.",
    destructive = true, streaming = true, body_limit = 32 * P.MiB,
    params = SHELL_PARAMS,
    returns = P.events { doc = "start, stdout, stderr, gap, exit, error" },
    errors = SHELL_ERRORS,
    handler = function(req)
      local params = req.params
      local spec, errors = shell_spec(params)
      if not spec then
        return problem.invalid(req, errors)
      end
      local turn <close> = params.session and try(session.enter(params.session))
      spec.session = turn
      spec.pace = true
      -- Closed by the stream, not here: it outlives this function, and runs right after it.
      local started = try(proc.start(spec))
      return sse.reply(function(out)
        local run <close> = started
        if params.on_disconnect == "continue" then
          run:detach()
        end
        local ended = run:stream(out, { encoding = params.encoding, wait_ms = params.wait_ms })
        if ended == nil then -- wait_ms was over first
          run:detach()
        end
      end)
    end,
  },
}
