--- Repositories made by the git program itself, and what it says about them: what specs compare the server's answers with.
local files = require("support.files")
local process = require("support.process")

local git = {}

--- Nothing of the machine's configuration counts; author and times are always the same.
git.env = {
  HOME = "/nonexistent", GIT_CONFIG_NOSYSTEM = "1", GIT_CONFIG_GLOBAL = "/dev/null", GIT_TERMINAL_PROMPT = "0",
  GIT_AUTHOR_NAME = "Ada", GIT_AUTHOR_EMAIL = "ada@example.org", GIT_COMMITTER_NAME = "Ada",
  GIT_COMMITTER_EMAIL = "ada@example.org", GIT_AUTHOR_DATE = "2026-01-31T12:00:00Z",
  GIT_COMMITTER_DATE = "2026-01-31T12:00:00Z",
}

--- Runs `git ARGS` in dir and returns what it printed, without the last line end. Raises where it fails.
function git.run(dir, ...)
  local result = process.run({ "git", ... }, { cwd = dir, env = git.env })
  if result.code ~= 0 then
    error(("git %s: %s%s"):format(table.concat({ ... }, " "), result.stdout, result.stderr), 2)
  end
  return (result.stdout:gsub("\n$", ""))
end

--- The same where it may fail: {code=, stdout=, stderr=}.
function git.try(dir, ...)
  return process.run({ "git", ... }, { cwd = dir, env = git.env })
end

--- Writes files, {["a/b"] = "content"}, with the folders they need.
function git.write(dir, contents)
  for name, content in pairs(contents) do
    local folder = ""
    for part in name:gmatch("([^/]+)/") do
      folder = folder .. "/" .. part
      if not files.exists(dir .. folder) then
        files.mkdir(dir .. folder)
      end
    end
    files.write(dir .. "/" .. name, content)
  end
end

--- Commits all that is in the folder; the new commit's sha.
function git.commit_all(dir, message)
  git.run(dir, "add", "--all")
  git.run(dir, "commit", "--quiet", "--allow-empty", "--message", message)
  return git.run(dir, "rev-parse", "HEAD")
end

--- A new repository at dir (made here) on the branch main, with these files in a first commit called "first", if any are
--- given. Returns that commit's sha.
function git.repository(dir, contents)
  files.mkdir(dir)
  git.run(dir, "init", "--quiet", "--initial-branch", "main")
  if contents then
    git.write(dir, contents)
    return git.commit_all(dir, "first")
  end
end

--- What the route answers.
function git.call(abxd, operation, params)
  return abxd:post("/git/" .. operation, params)
end

--- A server with the group on, and all others that are on by themselves.
git.groups = { ABX_SERVER_ENABLED_GROUPS = "core,commands,file_ops,process,system,dev_tools" }

return git
