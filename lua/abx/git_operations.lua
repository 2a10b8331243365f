--- The operations of POST /git/{operation}: what each takes, answers and may be refused with. Routes and documents are made
-- from these declarations; `abxd-helper git` does the work.
local P = require("abx.params")
local tables = require("abx.tables")
local text = require("abx.text")

local M = { TIMEOUT_MAX_MS = 60 * 60 * 1000 }

local PATHS_MAX = 10000

--- Text in git's own sense: a reference, a name, a URL.
local function name(spec)
  spec.min, spec.max = spec.min or 1, spec.max or 4096
  return P.string(spec)
end

local function paths(doc)
  return {
    paths = P.array { of = P.path {}, max = PATHS_MAX, doc = doc },
    paths_base64 = P.array { of = P.string { min = 1 }, max = PATHS_MAX, doc = "more of paths, for those that are not UTF-8" },
  }
end

local CREDENTIALS = P.object {
  doc = "username and password, or token; sent to the host that the URL names and nowhere else, and kept nowhere",
  fields = { username = name {}, password = P.string { max = 4096 }, token = name {} },
}
local AUTHOR = P.object {
  doc = "user.name and user.email of the repository unless given; abxd where it has none",
  fields = { name = name { required = true }, email = name { required = true } },
}
local REMOTE = name { default = "origin" }
local REFSPECS = P.array { of = name {}, max = 1000 }
local MESSAGE = P.string { min = 1, max = P.MiB }

local SHA = P.string { min = 40, max = 40 }
local TIME = P.string { format = "date-time" }
M.SIGNATURE = P.object { fields = { name = P.string {}, email = P.string {}, time = TIME } }
local COMMIT_FIELDS = {
  sha = SHA, parents = P.array { of = SHA }, author = M.SIGNATURE, committer = M.SIGNATURE, message = P.string {},
}
local FILE = P.object {
  fields = {
    path = P.path {},
    old_path = P.optional(P.path { doc = "of a file that was renamed" }),
    status = P.string { example = "modified" },
    additions = P.integer { min = 0 },
    deletions = P.integer { min = 0 },
    binary = P.boolean {},
    patch = P.optional(P.string { doc = "unless it is binary, or max_bytes was reached" }),
  },
}
local UPDATED = P.array {
  of = P.object {
    fields = { ref = P.string {}, old = P.string { nullable = true }, new = P.string { nullable = true } },
  },
}

local TRUNCATED = P.boolean { doc = "there are more" }
local BRANCH = P.object {
  fields = { name = P.string {}, sha = SHA, current = P.boolean {}, upstream = P.string { nullable = true } },
}

local function result(fields)
  return P.object { fields = fields }
end

--- A list of paths that something was done to.
local function paths_done(list)
  return result { [list] = P.array { of = P.string {} }, count = P.integer { min = 0 }, truncated = TRUNCATED }
end

--- Of operations with an action: members of "list", and those of the others.
local function by_action(list, others)
  local fields = {}
  for member, schema in pairs(P.merge(list, others)) do
    fields[member] = P.optional(schema)
  end
  return result(fields)
end

M.errors = {
  "invalid_path", "path_outside_base", "permission_denied", "file_not_found", "not_a_directory", "repository_not_found",
  "busy", "no_space", "unavailable", "upstream_timeout",
}

local NETWORK = { "git_network", "url_not_allowed", "reference_not_found" }

--- place: where `path` leads ("existing" unless given, see abx.git); single: in a process of its own; errors: beside
--- M.errors.
M.list = {
  {
    name = "init", place = "new", summary = "make a repository, also in a directory that has one",
    params = { bare = P.boolean { default = false }, initial_branch = name { default = "main", max = 255 } },
    returns = result { reinitialised = P.boolean { doc = "one was there already" }, bare = P.boolean {} },
    errors = {},
  },
  {
    name = "clone", place = "clone", single = true, needs_path = true,
    summary = "fetch a repository into a new directory, or an empty one",
    params = {
      url = name { required = true, doc = "http, https, or a path inside the base directory" },
      branch = name { max = 255 },
      bare = P.boolean { default = false },
      credentials = CREDENTIALS,
    },
    returns = result {
      url = P.string {}, branch = P.string { nullable = true }, bare = P.boolean {},
      empty = P.boolean { doc = "it has no commit" },
    },
    errors = P.join(NETWORK, { "already_exists" }),
  },
  {
    name = "fetch", single = true, summary = "bring a remote's branches up to date here",
    params = {
      remote = REMOTE, refspecs = REFSPECS, credentials = CREDENTIALS,
      prune = P.boolean { default = false, doc = "forget branches that the remote no longer has" },
    },
    returns = result { updated = UPDATED },
    errors = P.join(NETWORK, { "non_fast_forward" }),
  },
  {
    name = "pull", single = true, summary = "fetch, and join a branch into the current one",
    params = {
      remote = REMOTE, branch = name { max = 255, doc = "the upstream of the current one unless given" },
      strategy = P.choice { "ff-only", "merge" }, credentials = CREDENTIALS,
    },
    returns = result { kind = P.string { doc = "up_to_date, fast_forward or merge" } },
    errors = P.join(NETWORK, { "non_fast_forward", "merge_conflict", "worktree_dirty" }),
  },
  {
    name = "push", single = true, summary = "send branches to a remote",
    params = {
      remote = REMOTE, refspecs = REFSPECS, force = P.boolean { default = false }, credentials = CREDENTIALS,
      set_upstream = P.boolean { default = false, doc = "of the current branch" },
    },
    returns = result { updated = UPDATED },
    errors = P.join(NETWORK, { "non_fast_forward" }),
  },
  {
    name = "add", summary = "stage changes: of paths, or all",
    params = P.merge(paths("or all; relative to path"), { all = P.boolean { default = false } }),
    returns = paths_done("staged"),
    errors = {},
  },
  {
    name = "reset", summary = "set HEAD back; with paths, what is staged of them only",
    params = P.merge(paths("unstaged, with mode mixed"), { mode = P.choice { "mixed", "soft", "hard" }, ref = name {} }),
    returns = result { mode = P.string {} },
    errors = { "reference_not_found" },
  },
  {
    name = "restore", summary = "take files back from the index or a commit",
    params = P.merge(paths("relative to path"), {
      staged = P.boolean { default = false, doc = "in the index instead of the working tree" },
      source = name { doc = "a commit" },
    }),
    returns = paths_done("restored"),
    errors = { "reference_not_found" },
  },
  {
    name = "commit", summary = "record what is staged",
    params = {
      message = P.string { max = P.MiB, doc = "required, but with amend" },
      author = AUTHOR,
      amend = P.boolean { default = false },
      all = P.boolean { default = false, doc = "stage what changed in tracked files first" },
      allow_empty = P.boolean { default = false },
    },
    returns = result(COMMIT_FIELDS),
    errors = { "merge_conflict" },
  },
  {
    name = "log", summary = "the commits behind one",
    params = P.merge(paths("only commits that changed them"), {
      ref = name {},
      limit = P.integer { min = 1, max = 10000, default = 50 },
      skip = P.integer { min = 0, max = 1000000000, default = 0 },
    }),
    returns = result { commits = P.array { of = P.object { fields = COMMIT_FIELDS } }, truncated = TRUNCATED },
    errors = { "reference_not_found" },
  },
  {
    name = "show", summary = "a commit and its changes",
    params = { ref = name {} },
    returns = result { commit = P.object { fields = COMMIT_FIELDS }, files = P.array { of = FILE }, truncated = TRUNCATED },
    errors = { "reference_not_found" },
  },
  {
    name = "diff", summary = "changes: of the working tree to the index, of the index to HEAD (staged), or of commits",
    params = P.merge(paths("only these"), {
      from = name { doc = "a commit; the index unless given" },
      to = name { doc = "a commit; the working tree unless given" },
      staged = P.boolean { default = false },
      context = P.integer { min = 0, max = 1000, default = 3 },
      max_bytes = P.integer { min = 0, max = 16 * P.MiB, default = P.MiB, doc = "of all patches" },
    }),
    returns = result { files = P.array { of = FILE }, truncated = TRUNCATED },
    errors = { "reference_not_found" },
  },
  {
    name = "blame", summary = "who wrote each line of a file",
    params = {
      file = P.path { required = true, doc = "relative to path" },
      ref = name {},
      start_line = P.integer { min = 1, max = 2147483647 },
      end_line = P.integer { min = 1, max = 2147483647, doc = "inclusive" },
    },
    returns = result {
      lines = P.array {
        of = P.object {
          fields = {
            line = P.integer { min = 1 }, sha = SHA, author = P.string {}, time = TIME, text = P.string {},
          },
        },
      },
      truncated = TRUNCATED,
    },
    errors = { "reference_not_found" },
  },
  {
    name = "branch", summary = "list, create, delete or rename branches",
    params = {
      action = P.choice { "list", "create", "delete", "rename" },
      name = name { max = 255 }, new_name = name { max = 255 }, start = name { doc = "a commit; HEAD unless given" },
    },
    returns = by_action({
      branches = P.array { of = BRANCH }, remote_branches = P.array { of = P.any {} }, truncated = TRUNCATED,
    }, { name = P.string {}, sha = SHA }),
    errors = { "reference_not_found", "already_exists" },
  },
  {
    name = "checkout", summary = "switch to a branch, tag or commit",
    params = {
      ref = name { required = true },
      create = P.boolean { default = false, doc = "make the branch" },
      force = P.boolean { default = false, doc = "throw local changes away" },
    },
    returns = result {
      branch = P.string { nullable = true }, detached = P.boolean {}, created = P.boolean {}, sha = SHA,
    },
    errors = { "reference_not_found", "already_exists", "worktree_dirty", "merge_conflict" },
  },
  {
    name = "merge", summary = "join a commit into the current branch, or abort a merge that has conflicts",
    params = { ref = name {}, message = MESSAGE, abort = P.boolean { default = false } },
    returns = result { kind = P.string { doc = "up_to_date, fast_forward, merge or aborted" }, sha = SHA },
    errors = { "reference_not_found", "merge_conflict", "worktree_dirty" },
  },
  {
    name = "stash", summary = "put local changes aside and take them back",
    params = {
      action = P.choice { "push", "pop", "apply", "drop", "list" },
      index = P.integer { min = 0, max = 100000, default = 0 },
      message = MESSAGE,
      untracked = P.boolean { default = false, doc = "untracked files too" },
    },
    returns = by_action({ stashes = P.array { of = P.any {} }, truncated = TRUNCATED }, {
      stashed = P.boolean { doc = "by push; false where there was nothing" }, index = P.integer { min = 0 }, sha = SHA,
    }),
    errors = { "reference_not_found", "merge_conflict", "worktree_dirty" },
  },
  {
    name = "tag", summary = "list, create or delete tags",
    params = {
      action = P.choice { "list", "create", "delete" },
      name = name { max = 255 }, ref = name { doc = "HEAD unless given" },
      message = P.string { min = 1, max = P.MiB, doc = "makes it an annotated one" },
    },
    returns = by_action({ tags = P.array { of = P.any {} }, truncated = TRUNCATED }, {
      name = P.string {}, sha = SHA, annotated = P.boolean {},
    }),
    errors = { "reference_not_found", "already_exists" },
  },
  {
    name = "remote", summary = "list, add, remove or change remotes",
    params = {
      action = P.choice { "list", "add", "remove", "set_url" },
      name = name { max = 255 }, url = name { doc = "http, https, or a path inside the base directory" },
    },
    returns = by_action({ remotes = P.array { of = P.any {} } }, { name = P.string {}, url = P.string {} }),
    errors = { "reference_not_found", "already_exists", "url_not_allowed" },
  },
}

--- What all take.
local function with_common(operation)
  return P.merge({
    path = operation.needs_path and P.path { required = true, doc = "the new directory" }
      or P.path { default = ".", doc = "in the repository: its top, or a directory below" },
    timeout_ms = P.integer { min = 1, max = M.TIMEOUT_MAX_MS, default = 60000 },
  }, operation.params)
end

M.by_name, M.names = {}, {}
for index, operation in ipairs(M.list) do
  operation.fields = with_common(operation)
  M.by_name[operation.name] = operation
  M.names[index] = operation.name
end

--- All codes of all operations, without repeats.
function M.all_errors()
  local all, seen = {}, {}
  for _, operation in ipairs(M.list) do
    for _, code in ipairs(P.join(M.errors, operation.errors)) do
      if not seen[code] then
        seen[code] = true
        all[#all + 1] = code
      end
    end
  end
  return all
end

--- What a caller may give, with the twins of paths.
local function names_of(fields)
  local names = {}
  for field, schema in pairs(fields) do
    names[#names + 1] = field
    if schema.type == "path" then
      names[#names + 1] = field .. "_base64"
    end
  end
  table.sort(names)
  return table.concat(names, ", ")
end

local members_of

--- A schema in a few words: "integer 1..10000", "[string]", "soft|hard".
local function shape_of(schema)
  if schema.choices then
    return table.concat(schema.choices, "|")
  elseif schema.type == "array" then
    return ("[%s]"):format(schema.items and shape_of(schema.items) or "any")
  elseif schema.type == "object" then
    return ("{%s}"):format(members_of(schema.fields or {}))
  elseif schema.type == "integer" and schema.min and schema.max then
    return ("integer %d..%d"):format(schema.min, schema.max)
  end
  return schema.type
end

--- Without the twins in base64, which go without saying.
function members_of(fields)
  local members = {}
  for field, schema in pairs(fields) do
    if not field:find("_base64$") then
      local default = schema.default ~= nil and (" = %s"):format(tostring(schema.default)) or ""
      members[#members + 1] = ("%s%s: %s%s"):format(field, schema.required and " (required)" or "", shape_of(schema), default)
    end
  end
  table.sort(members)
  return table.concat(members, ", ")
end

--- One line for each operation, for the description of the route.
function M.describe()
  local lines = {}
  for index, operation in ipairs(M.list) do
    lines[index] = ("- %s {%s}: %s. Result: {%s}"):format(operation.name, members_of(operation.params),
      operation.summary, members_of(operation.returns.fields))
  end
  return table.concat(lines, "\n")
end

--- Git's texts end at a NUL, so one inside would mean something else than it says.
local function find_nul(value, field, errors)
  if type(value) == "string" then
    if value:find("\0", 1, true) then
      errors[#errors + 1] = { field = field, problem = "holds a NUL byte" }
    end
  elseif type(value) == "table" then
    for key, item in pairs(value) do
      local place = math.type(key) == "integer" and ("%s[%d]"):format(field, key - 1) or ("%s.%s"):format(field, key)
      find_nul(item, place, errors)
    end
  end
end

local function check_base64(list, errors)
  for index, coded in ipairs(list or {}) do
    local path = text.base64_decode(coded)
    local problem = not path and "is not base64" or path:find("\0", 1, true) and "holds a NUL byte"
      or (#path == 0 or #path > 4095) and "must be 1 to 4095 bytes"
    if problem then
      errors[#errors + 1] = { field = ("paths_base64[%d]"):format(index - 1), problem = problem }
    end
  end
end

--- What tables.check cannot know of: in the order of the fields.
local function own_faults(operation, arguments, args)
  local errors = {}
  for param, value in pairs(arguments) do
    if operation.fields[param] and param ~= "path" and param ~= "paths" and param ~= "file" then -- of paths it was said
      find_nul(value, param, errors)
    end
  end
  check_base64(args and args.paths_base64, errors)
  table.sort(errors, function(a, b)
    return a.field < b.field
  end)
  return errors
end

--- The parameters as the operation wants them: or nil, all faulty fields and their code, for problem.invalid.
function M.check(operation, arguments)
  local args, code, _, errors = tables.check(operation.fields, arguments)
  for _, fault in ipairs(errors or {}) do
    if fault.problem == "is not a known parameter" then
      fault.problem = ("%s of %s, which takes %s"):format(fault.problem, operation.name, names_of(operation.fields))
    end
  end
  errors = P.join(errors or {}, own_faults(operation, arguments, args))
  if #errors == 0 then
    return args
  end
  return nil, errors, code
end

--- What the helper gets of them: path and timeout_ms go a way of their own, and a path that is not UTF-8 goes as base64.
function M.helper_params(operation, args)
  local params = {}
  for param, value in pairs(args) do
    if operation.params[param] and operation.params[param].type == "path" and select(2, text.utf8_scrub(value)) then
      params[param .. "_base64"] = text.base64_encode(value)
    elseif param ~= "path" and param ~= "timeout_ms" then
      params[param] = value
    end
  end
  return params
end

return M
