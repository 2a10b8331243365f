--- A server that may not do everything: root's tests of what cannot be read need one.
local process = require("support.process")
local server = require("support.server")
local skip = require("support.skip")
local uv = require("luv")

--- server.start as nobody where this is root, else as this user; says that `name` is not run where nobody cannot be
--- taken on. Whoever may look at options.base_dir must be able to reach it.
return function(name, options)
  if uv.getuid() == 0 then
    if process.run({ "setpriv", "--reuid=65534", "--clear-groups", "true" }).code ~= 0 then
      return skip(name, "no other user can be taken on")
    end
    options.prefix = { "setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "sh", "-c",
      '"$0" "$@"; exit $?' }
  end
  return server.start(options)
end
