--- Media types by file name; used for downloads.
local M = { DEFAULT = "application/octet-stream" }

local BY_EXTENSION = {
  css = "text/css", csv = "text/csv", htm = "text/html", html = "text/html", ics = "text/calendar",
  js = "text/javascript", log = "text/plain", md = "text/markdown", mjs = "text/javascript", txt = "text/plain",
  bmp = "image/bmp", gif = "image/gif", ico = "image/vnd.microsoft.icon", jpeg = "image/jpeg", jpg = "image/jpeg",
  png = "image/png", svg = "image/svg+xml", tif = "image/tiff", tiff = "image/tiff", webp = "image/webp",
  aac = "audio/aac", flac = "audio/flac", mp3 = "audio/mpeg", oga = "audio/ogg", ogg = "audio/ogg", wav = "audio/wav",
  mov = "video/quicktime", mp4 = "video/mp4", mpeg = "video/mpeg", ogv = "video/ogg", webm = "video/webm",
  otf = "font/otf", ttf = "font/ttf", woff = "font/woff", woff2 = "font/woff2",
  ["7z"] = "application/x-7z-compressed", bz2 = "application/x-bzip2", epub = "application/epub+zip",
  gz = "application/gzip", jar = "application/java-archive", json = "application/json", pdf = "application/pdf",
  rtf = "application/rtf", tar = "application/x-tar", tgz = "application/gzip", wasm = "application/wasm",
  xhtml = "application/xhtml+xml", xml = "application/xml", xz = "application/x-xz", yaml = "application/yaml",
  yml = "application/yaml", zip = "application/zip", zst = "application/zstd",
  docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  pptx = "application/vnd.openxmlformats-officedocument.presentationml.presentation",
  xlsx = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}

-- Types whose scripts a browser would run with our origin when it shows the file.
local ACTIVE = {
  ["text/html"] = true, ["application/xhtml+xml"] = true, ["image/svg+xml"] = true, ["application/xml"] = true,
}

--- The type of a file of that name; text is said to be UTF-8, as most is.
function M.of(name)
  local extension = name:match("%.(%w+)$")
  local media = extension and BY_EXTENSION[extension:lower()] or M.DEFAULT
  return media:find("^text/") and media .. "; charset=utf-8" or media
end

function M.is_active(media)
  return ACTIVE[media:match("^[^;]*")] or false
end

return M
