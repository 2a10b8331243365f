--- A strict JSON codec for the tests: what the server sends must be valid to the letter, and integers must arrive exact.
local json = {}

json.null = setmetatable({}, { __tostring = function() return "null" end })
local ARRAY = { __name = "json array" }

--- Marks a table as an array, so that an empty one is written as [].
function json.array(list)
  return setmetatable(list or {}, ARRAY)
end

function json.is_array(value)
  return type(value) == "table" and (getmetatable(value) == ARRAY or #value > 0)
end

local ESCAPES = { ["\""] = "\\\"", ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function encode_string(text)
  return "\"" .. text:gsub("[%c\"\\\127]", function(char)
    return ESCAPES[char] or ("\\u%04x"):format(char:byte())
  end) .. "\""
end

function json.encode(value)
  local kind = type(value)
  if value == json.null then
    return "null"
  elseif kind == "string" then
    return encode_string(value)
  elseif kind == "number" then
    return math.type(value) == "integer" and ("%d"):format(value) or ("%.17g"):format(value)
  elseif kind == "boolean" then
    return tostring(value)
  end
  assert(kind == "table", "no JSON for a " .. kind)
  local parts = {}
  if json.is_array(value) then
    for i, item in ipairs(value) do
      parts[i] = json.encode(item)
    end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for name, item in pairs(value) do
    assert(type(name) == "string", "names in JSON are strings")
    parts[#parts + 1] = encode_string(name) .. ":" .. json.encode(item)
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end

local function fail(text, at, what)
  error(("invalid JSON at byte %d: %s: %q"):format(at, what, text:sub(at, at + 40)), 0)
end

local UNESCAPES = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ["\""] = "\"", ["\\"] = "\\", ["/"] = "/" }

--- The four hex digits at `at`, with the low surrogate that must follow a high one.
local function decode_unicode(text, at)
  local unit = tonumber(text:match("^%x%x%x%x", at) or fail(text, at, "bad \\u"), 16)
  if unit >= 0xD800 and unit <= 0xDBFF then
    local low = text:match("^\\u([dD][c-fC-F]%x%x)", at + 4) or fail(text, at, "a high surrogate alone")
    return utf8.char(0x10000 + ((unit - 0xD800) << 10) + (tonumber(low, 16) - 0xDC00)), at + 10
  elseif unit >= 0xDC00 and unit <= 0xDFFF then
    fail(text, at, "a low surrogate alone")
  end
  return utf8.char(unit), at + 4
end

local function decode_string(text, at)
  local parts = {}
  at = at + 1
  while true do
    local plain, stop = text:match("^([^%c\"\\]*)()", at)
    parts[#parts + 1] = plain
    local char = text:sub(stop, stop)
    if char == "\"" then
      return table.concat(parts), stop + 1
    elseif char == "\127" then -- %c has it, JSON allows it
      parts[#parts + 1], at = char, stop + 1
    elseif char ~= "\\" then
      fail(text, stop, "in a string")
    elseif text:sub(stop + 1, stop + 1) == "u" then
      parts[#parts + 1], at = decode_unicode(text, stop + 2)
    else
      parts[#parts + 1] = UNESCAPES[text:sub(stop + 1, stop + 1)] or fail(text, stop, "bad escape")
      at = stop + 2
    end
  end
end

local function decode_number(text, at)
  local int, frac, exp, stop = text:match("^(%-?%d+)(%.?%d*)([eE]?[+-]?%d*)()", at)
  if not int or int:match("^%-?0%d") or frac == "." or (exp ~= "" and not exp:match("^[eE][+-]?%d+$")) then
    fail(text, at, "bad number")
  end
  return tonumber(int .. frac .. exp), stop
end

local function skip(text, at)
  return text:match("^[ \t\r\n]*()", at)
end

local decode_value

local function decode_array(text, at)
  local list = json.array {}
  at = skip(text, at + 1)
  if text:sub(at, at) == "]" then
    return list, at + 1
  end
  while true do
    list[#list + 1], at = decode_value(text, at)
    local char = text:sub(at, at)
    if char == "]" then
      return list, at + 1
    elseif char ~= "," then
      fail(text, at, "in an array")
    end
    at = at + 1
  end
end

local function decode_object(text, at)
  local object = {}
  at = skip(text, at + 1)
  if text:sub(at, at) == "}" then
    return object, at + 1
  end
  while true do
    at = skip(text, at)
    if text:sub(at, at) ~= "\"" then
      fail(text, at, "a name must be a string")
    end
    local name
    name, at = decode_string(text, at)
    at = skip(text, at)
    if text:sub(at, at) ~= ":" then
      fail(text, at, "no colon")
    elseif object[name] ~= nil then
      fail(text, at, "the name occurs twice")
    end
    object[name], at = decode_value(text, at + 1)
    local char = text:sub(at, at)
    if char == "}" then
      return object, at + 1
    elseif char ~= "," then
      fail(text, at, "in an object")
    end
    at = at + 1
  end
end

local WORDS = { t = { "true", true }, f = { "false", false }, n = { "null", json.null } }

function decode_value(text, at)
  at = skip(text, at)
  local char = text:sub(at, at)
  local value
  if char == "{" then
    value, at = decode_object(text, at)
  elseif char == "[" then
    value, at = decode_array(text, at)
  elseif char == "\"" then
    value, at = decode_string(text, at)
  elseif WORDS[char] and text:sub(at, at + #WORDS[char][1] - 1) == WORDS[char][1] then
    value, at = WORDS[char][2], at + #WORDS[char][1]
  else
    value, at = decode_number(text, at)
  end
  return value, skip(text, at)
end

--- Decodes one document; raises where anything is not as RFC 8259 says, UTF-8 and repeated names included.
function json.decode(text)
  local ok, bad = utf8.len(text)
  if not ok then
    fail(text, bad, "not UTF-8")
  end
  local value, at = decode_value(text, 1)
  if at <= #text then
    fail(text, at, "text after the document")
  end
  return value
end

return json
