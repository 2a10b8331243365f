--- Servers with control groups and without: what holds for one way to find a tree must hold for the other.
local process = require("support.process")

local cgroups = {}

--- For server.start: runs the server where no control group may be made.
cgroups.WITHOUT = { "unshare", "--mount", "sh", "-c",
  [[for dir in $(awk '$3 == "cgroup2" { print $2 }' /proc/mounts); do mount -o remount,bind,ro "$dir" || exit 1; done
exec "$@"]], "sh" }

--- nil, or why this machine cannot run one without.
function cgroups.refused()
  local argv = { table.unpack(cgroups.WITHOUT) }
  argv[#argv + 1] = "true"
  local result = process.run(argv)
  return result.code ~= 0 and "no mount namespace: " .. result.stderr:gsub("%s+$", "") or nil
end

return cgroups
