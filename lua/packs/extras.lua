--- What the contract adds to the 42 endpoints, each under the switch of its group.
local P = require("abx.params")
local problem = require("abx.problem")
local proc = require("abx.proc")
local text = require("abx.text")

return {
  name = "extras",
  description = "Small things beside the 42 endpoints",
  {
    method = "POST", path = "/processes/{id}/stdin", name = "processes.stdin", group = "process",
    summary = "Write to a process's standard input",
    description = "Of one that was started with keep_stdin; never of a terminal, whose input goes by its WebSocket. The answer "
      .. "comes when the program, or the pipe to it (64 KiB), has taken all of data; writers of one process take turns. "
      .. "already_exited: nobody reads its standard input any more, because it has ended, has closed it, or an earlier call "
      .. "gave eof. upstream_timeout: it did not read all in timeout_ms. The detail of both tells how many bytes were taken; "
      .. "the rest is dropped, as it is when the client leaves.",
    destructive = true, body_limit = 32 * P.MiB,
    params = {
      id = P.string { required = true, min = 1, max = 64, doc = "an entry's id, or the decimal pid of a living one" },
      data = P.string { default = "" },
      encoding = P.choice { "utf-8", "base64", doc = "of data" },
      eof = P.boolean { default = false, doc = "close standard input afterwards" },
      timeout_ms = P.integer {
        min = 0, max = 300000, default = 300000,
        doc = "how long to wait for those who write before, and for the program to read",
      },
    },
    returns = P.object {
      doc = "it was written",
      fields = {
        id = P.string {},
        bytes = P.integer { min = 0, doc = "how many bytes of data were written" },
        eof = P.boolean { doc = "whether standard input is closed now" },
      },
    },
    errors = { "process_not_found", "invalid_request", "already_exited", "upstream_timeout" },
    handler = function(req)
      local params = req.params
      local data = params.data
      if params.encoding == "base64" then
        data = text.base64_decode(data)
        if not data then
          return problem.invalid(req, { { field = "data", problem = "is not base64" } })
        end
      end
      return try(proc.input(params.id, data, params.eof, params.timeout_ms))
    end,
  },
}
