--- Calls to the browser: what their declarations share, the checks that a schema cannot say, and answers that are pictures.
local browser = require("abx.browser")
local fs = require("abx.fs")
local P = require("abx.params")
local problem = require("abx.problem")

local M = {}

local TIMEOUT_MAX_MS = 10 * 60 * 1000
local URL_MAX_BYTES = 64 * P.KiB
local URL_TOLD_BYTES = 2048 -- a header has room for no more

--- JSON may write one byte of text in six.
M.BODY_MAX_BYTES = 8 * P.MiB
M.TEXT_MAX_BYTES = P.MiB

local SHARED_PARAMS = {
  page = P.string {
    min = 1, max = 64, default = "default",
    doc = "a name of A-Z a-z 0-9 . _ -: a tab, made with the first call for it. Calls for one page queue, those for others do "
      .. "not wait. 16 are open at once, with common cookies; one more closes the longest unused one, and is refused where all "
      .. "are busy",
  },
  timeout_ms = P.integer {
    min = 1, max = TIMEOUT_MAX_MS, default = 30000,
    doc = "from the call's arrival on, its place in the queue and the browser's start included",
  },
}

local SHARED_FIELDS = {
  page = P.string { example = "default" },
  url = P.string { doc = "where the page is now", example = "http://localhost:3000/" },
  title = P.string {},
  fresh = P.boolean { doc = "the page was made for this call: nothing of earlier ones is in it" },
}

local SHARED_ERRORS = {
  "invalid_request", "url_not_allowed", "too_many_requests", "too_many_processes", "browser_crashed", "unavailable",
  "upstream_timeout", "shutting_down",
}

--- The entry of a file, as GET /files/stat tells it.
local FILE = P.map { of = P.any {}, doc = "the file that was written, as GET /files/stat tells it" }

M.selector = function(spec)
  spec.min, spec.max = 1, 16 * P.KiB
  spec.doc = (spec.doc and spec.doc .. "; " or "") .. "a selector of Playwright: CSS, text=…, xpath=…; the first match counts"
  spec.example = "#submit"
  return P.string(spec)
end

function M.params(own)
  return P.merge(SHARED_PARAMS, own)
end

function M.errors(own)
  return P.join(SHARED_ERRORS, own)
end

function M.returns(doc, own)
  return P.object { doc = doc, fields = P.merge(SHARED_FIELDS, own) }
end

--- Where a picture goes: a file, or the answer itself.
M.path = P.path {
  doc = "a file that gets it, instead of the answer; replaced where there is one, and directories above it are made",
}

function M.picture_returns(media, doc)
  return P.object {
    doc = doc .. " itself, with X-Page-Url and, where it was cut, X-Image-Clipped: true; with path this object instead",
    also = media,
    fields = P.merge(SHARED_FIELDS, { entry = FILE, clipped = P.boolean { doc = "the page is larger than what can be drawn" } }),
  }
end

M.picture_errors = {
  "payload_too_large", "invalid_path", "path_outside_base", "base_dir_protected", "permission_denied", "not_a_directory",
  "is_a_directory", "not_a_regular_file", "busy", "no_space",
}

--- A list of faults for checks to add to; begins with those that all calls may have.
local function faults_of(params)
  local faults = {}
  local function faulty(field, text)
    faults[#faults + 1] = { field = field, problem = text }
  end
  if not params.page:find("^[%w._-]+$") then
    faulty("page", "only A-Z a-z 0-9 . _ - may be in a name")
  end
  return faults, faulty
end

--- url: one that is no data: URL has bounds of its own.
function M.check_url(params, faulty)
  if #params.url > URL_MAX_BYTES and not params.url:find("^%s*[Dd][Aa][Tt][Aa]:") then
    faulty("url", ("must have at most %d bytes, unless it is a data: URL"):format(URL_MAX_BYTES))
  end
end

local function is_length(value)
  if type(value) == "number" then
    return value >= 0 and value <= 10000
  end
  if type(value) ~= "string" or #value > 16 then
    return false
  end
  local number, unit = value:match("^(%d*%.?%d+)(%a*)$")
  return number ~= nil and (unit == "" or unit == "px" or unit == "in" or unit == "cm" or unit == "mm")
end

function M.check_margin(params, faulty)
  for _, side in ipairs { "top", "right", "bottom", "left" } do
    local value = params.margin and params.margin[side]
    if value ~= nil and not is_length(value) then
      faulty("margin." .. side, 'must be a number of pixels, or a string such as "1cm", "0.5in", "10mm", "10px"')
    end
  end
end

function M.check_page_ranges(params, faulty)
  if not params.page_ranges then
    return
  end
  for range in (params.page_ranges .. ","):gmatch("([^,]*),") do
    local from, to = range:match("^%s*(%d*)%s*%-?%s*(%d*)%s*$")
    if not from or from .. to == "" or (to ~= "" and not range:find("-", 1, true)) then
      faulty("page_ranges", 'must be pages and ranges of pages, such as "1-3, 5"')
      return
    end
  end
end

function M.check_quality(params, faulty)
  if params.quality and params.format ~= "jpeg" then
    faulty("quality", "only the format jpeg has one")
  end
end

function M.check_part(params, faulty)
  if params.selector and params.full_page then
    faulty("full_page", "give this or selector")
  end
end

--- The faulty fields as a refusal; nil where there are none. Checks are functions of (params, faulty).
local function refusal(req, checks)
  local faults, faulty = faults_of(req.params)
  for _, check in ipairs(checks) do
    check(req.params, faulty)
  end
  return #faults > 0 and problem.invalid(req, faults) or nil
end

--- The parameters that the worker gets.
local function for_worker(params)
  local own = P.merge(params)
  own.timeout_ms, own.path = nil, nil
  return own
end

local function call(operation, params, picture)
  local options = {
    operation = operation,
    timeout_ms = params.timeout_ms,
    begins = operation == "navigate",
    picture = picture,
  }
  return try(browser.call(options, for_worker(params)))
end

--- A handler for a call whose answer is what the worker tells.
function M.handler(operation, ...)
  local checks = { ... }
  return function(req)
    local refused = refusal(req, checks)
    if refused then
      return refused
    end
    return reply { json = call(operation, req.params) }
  end
end

--- Before the browser works: whether the path leads out of the base, or through what is no directory.
local function check_path(path)
  local found, code, message, field = fs.stat(path, { follow = true })
  if not found and code ~= "file_not_found" then
    fail(code, message, field)
  end
end

--- Printable ASCII, as headers are.
local function header_url(url)
  return (url:gsub("[^\33-\126]", function(byte)
    return ("%%%02X"):format(byte:byte())
  end):sub(1, URL_TOLD_BYTES))
end

local function picture_answer(picture)
  return reply {
    headers = {
      ["Content-Type"] = picture.media_type,
      ["X-Page-Url"] = header_url(picture.url),
      ["X-Image-Clipped"] = picture.clipped and "true" or nil,
    },
    file = picture.file,
  }
end

local function file_answer(picture, path)
  try(fs.write { path = path, file = picture.file, overwrite = true, create_parents = true })
  return {
    page = picture.page,
    url = picture.url,
    title = picture.title,
    fresh = picture.fresh,
    clipped = picture.clipped or false,
    entry = try(fs.stat(path, { mime = picture.media_type, follow = true })),
  }
end

--- A handler for a call whose answer is a picture.
function M.picture_handler(operation, ...)
  local checks = { ... }
  return function(req)
    local path = req.params.path
    local refused = refusal(req, checks)
    if refused then
      return refused
    end
    if path then
      check_path(path)
    end
    local picture = call(operation, req.params, true)
    return path and file_answer(picture, path) or picture_answer(picture)
  end
end

return M
