--- Certificates for TLS servers of specs, made by the openssl program: an authority of their own and what it signs.
local files = require("support.files")
local process = require("support.process")

local certificates = {}
certificates.__index = certificates

local KEY = { "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes" }

local function openssl(dir, words)
  local result = process.run({ "openssl", table.unpack(words) }, { cwd = dir })
  assert(result.code == 0, result.stderr)
end

local function with_key(words)
  return table.move(KEY, 1, #KEY, #words + 1, words)
end

--- An authority in dir, which exists: its certificate is authority.path.
function certificates.authority(dir, name)
  local self = setmetatable({ dir = dir, name = name, path = dir .. "/" .. name .. ".pem" }, certificates)
  openssl(dir, with_key { "req", "-x509", "-days", "2", "-subj", "/CN=" .. name, "-keyout", name .. ".key", "-out",
    name .. ".pem" })
  return self
end

--- A certificate of a server, {cert=, key=} (paths). host: its only name. days: how long from now, -1 for one that is
--- over.
function certificates:server(file, host, days)
  local dir = self.dir
  files.write(dir .. "/" .. file .. ".ext", "subjectAltName=DNS:" .. host .. "\n")
  openssl(dir, with_key { "req", "-subj", "/CN=" .. host, "-keyout", file .. ".key", "-out", file .. ".csr" })
  openssl(dir, { "x509", "-req", "-in", file .. ".csr", "-CA", self.name .. ".pem", "-CAkey", self.name .. ".key",
    "-CAcreateserial", "-days", tostring(days), "-extfile", file .. ".ext", "-out", file .. ".pem" })
  return { cert = dir .. "/" .. file .. ".pem", key = dir .. "/" .. file .. ".key" }
end

return certificates
