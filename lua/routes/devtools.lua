--- Git repositories, and code cells.
local cells = require("abx.code")
local git = require("abx.git")
local operations = require("abx.git_operations")
local P = require("abx.params")
local problem = require("abx.problem")

local HEAD = P.object {
  nullable = true, doc = "null while there is no commit",
  fields = { sha = P.string {}, summary = P.string {}, author = operations.SIGNATURE, time = P.string { format = "date-time" } },
}

--- The answer of git.call; its refusal as a problem with what it tells beside code and detail (conflicts, files).
local function answer_git(req, answer, code, message, field, told)
  if answer then
    return reply { json = answer }
  end
  local members = {}
  for name, value in pairs(told or {}) do
    if name ~= "code" and name ~= "field" then
      members[name] = value
    end
  end
  if next(members) == nil then
    fail(code, message, field)
  end
  return problem.refuse(req, code, message, field, members)
end

local function answer_of(result)
  return P.object {
    doc = "it was done",
    fields = {
      operation = P.string {},
      root = P.path { doc = "the top of the working tree, or the bare repository" },
      result = result,
      head = HEAD,
      duration_ms = P.integer { min = 0 },
    },
  }
end

local function variants()
  local list = {}
  for index, operation in ipairs(operations.list) do
    list[index] = {
      value = operation.name,
      summary = operation.summary,
      params = operation.fields,
      returns = answer_of(operation.returns),
      errors = P.join(operations.errors, operation.errors),
    }
  end
  return { param = "operation", list = list }
end

return {
  group = "dev_tools",
  {
    method = "GET", path = "/git/status", name = "git.status",
    summary = "The state of a repository and of its files",
    description = "Of the repository that path is in, which is looked for up to the base directory.",
    read_only = true, idempotent = true,
    params = {
      path = P.path { default = "." },
      untracked = P.boolean { default = true },
      ignored = P.boolean { default = false },
      limit = P.integer { min = 1, max = 100000, default = 5000, doc = "files listed at most" },
      timeout_ms = P.integer { min = 1, max = operations.TIMEOUT_MAX_MS, default = 60000 },
    },
    returns = P.object {
      doc = "files that differ from HEAD, in the index or the working tree",
      fields = {
        root = P.path { doc = "the top of the working tree, or the bare repository" },
        branch = P.string { nullable = true, doc = "null where HEAD is detached" },
        detached = P.boolean {},
        unborn = P.boolean { doc = "the branch has no commit yet" },
        head = HEAD,
        upstream = P.string { nullable = true, example = "origin/main" },
        ahead = P.integer { nullable = true, min = 0, doc = "commits that the upstream has not" },
        behind = P.integer { nullable = true, min = 0, doc = "commits that only the upstream has" },
        state = P.string { doc = "clean, or what is in the middle: merge, rebase …" },
        clean = P.boolean { doc = "no file differs" },
        files = P.array {
          of = P.object {
            fields = {
              path = P.path { doc = "relative to root" },
              old_path = P.optional(P.path { doc = "of a file that was renamed" }),
              index = P.string { nullable = true, doc = "what is staged: new, modified, deleted, renamed, typechange" },
              worktree = P.string { nullable = true, doc = "what is not: the same words, untracked or ignored" },
              conflicted = P.boolean {},
            },
          },
        },
        truncated = P.boolean { doc = "there are more files than limit" },
      },
    },
    errors = operations.errors,
    handler = function(req)
      local params = req.params
      local place <close> = try(git.place(params.path, "existing"))
      return answer_git(req, git.call(place, { operation = "status", timeout_ms = params.timeout_ms, flat = true }, {
        untracked = params.untracked,
        ignored = params.ignored,
        limit = params.limit,
      }))
    end,
  },
  {
    method = "POST", path = "/git/{operation}", name = "git.run",
    summary = "Do something with a repository",
    description = "The body holds the operation's parameters, path (\".\" unless given; clone needs one) and timeout_ms "
      .. "(60000). No hook and no program of the repository's configuration is run. Conflicts are 409 with their files in "
      .. "conflicts; where a name is not UTF-8, conflicts_base64 has the bytes of all, and so for every list of "
      .. "names.\n\n" .. operations.describe(),
    destructive = true,
    params = { operation = P.string { required = true, min = 1, doc = "one of: " .. table.concat(operations.names, ", ") } },
    rest = "arguments",
    variants = variants(),
    returns = answer_of(P.map { doc = "what the operation tells" }),
    errors = P.join({ "operation_not_found" }, operations.all_errors()),
    handler = function(req)
      local name = req.params.operation
      local operation = operations.by_name[name]
      if not operation then
        local known = table.concat(operations.names, " ")
        fail("operation_not_found", ("no operation is called so; there are: %s"):format(known), "operation")
      end
      local args, errors, code = operations.check(operation, req.params.arguments or {})
      if not args then
        return problem.invalid(req, errors, code)
      end
      local place <close> = try(git.place(args.path, operation.place or "existing"))
      return answer_git(req, git.call(place, {
        operation = name,
        timeout_ms = args.timeout_ms,
        single = operation.single,
      }, operations.helper_params(operation, args)))
    end,
  },
  {
    method = "POST", path = "/code/execute", name = "code.execute",
    summary = "Run a cell of code in a context whose state lives on",
    description = "Python in IPython's shell where it is installed, JavaScript in node, bash. A cell that ran and failed is a "
      .. "success of this call: look at status. A context begins with the environment that programs get (POST /env) and in the "
      .. "base directory. A client that leaves interrupts its cell, and the state stays. A crash is told by status crashed, and "
      .. "by restarted of the next cell. With Accept: text/event-stream the output comes while the cell runs; event ids and "
      .. "offsets count the bytes of its interpreter.",
    destructive = true,
    params = cells.params,
    returns = cells.returns,
    errors = cells.errors,
    handler = cells.execute,
  },
}
