--- The frames of RFC 6455, written and read without a socket. What may be sent is anything: malformed frames too.
local ws_frame = {}

ws_frame.CONTINUATION, ws_frame.TEXT, ws_frame.BINARY = 0, 1, 2
ws_frame.CLOSE, ws_frame.PING, ws_frame.PONG = 8, 9, 10

local BLOCK_BYTES = 512
local BLOCK = "<" .. ("i8"):rep(BLOCK_BYTES // 8)

--- The payload under a key of four bytes; the same again takes it off.
local function mask(payload, key)
  local word = string.unpack("<I4", key)
  word = word | word << 32
  local padded = payload .. ("\0"):rep(-#payload % BLOCK_BYTES)
  local blocks = {}
  for at = 1, #padded, BLOCK_BYTES do
    local words = { string.unpack(BLOCK, padded, at) }
    for i = 1, BLOCK_BYTES // 8 do
      words[i] = words[i] ~ word
    end
    blocks[#blocks + 1] = string.pack(BLOCK, table.unpack(words, 1, BLOCK_BYTES // 8))
  end
  return table.concat(blocks):sub(1, #payload)
end

--- The bytes of one frame, as a client sends it. options:
---   fin      false: more fragments follow
---   rsv      the three reserved bits, 0 to 7
---   mask     four bytes instead of random ones; false: not masked
---   length   what the header declares, whatever the payload is
---   wide     16 or 64: the width of the length, even where fewer bits would do
function ws_frame.encode(opcode, payload, options)
  options = options or {}
  local length = options.length or #payload
  local width = options.wide or (length > 0xFFFF and 64) or (length > 125 and 16) or 7
  local first = (options.fin == false and 0 or 0x80) | (options.rsv or 0) << 4 | opcode
  local masked = options.mask ~= false and 0x80 or 0
  local head
  if width == 7 then
    head = string.pack("BB", first, masked | length)
  else
    head = string.pack(width == 16 and ">BBI2" or ">BBi8", first, masked | (width == 16 and 126 or 127), length)
  end
  if options.mask == false then
    return head .. payload
  end
  local key = options.mask or string.pack("<I4", math.random(0, 0xFFFFFFFF))
  return head .. key .. mask(payload, key)
end

--- The frame in buffer that begins at byte `at`: {fin=, rsv=, opcode=, masked=, payload=} and where the next one begins;
--- nil and how many bytes from `at` on are needed at least, where it is not whole yet.
function ws_frame.decode(buffer, at)
  local have = #buffer - at + 1
  if have < 2 then
    return nil, 2
  end
  local first, second = buffer:byte(at, at + 1)
  local length, head_len = second & 0x7F, 2
  local masked = second & 0x80 ~= 0
  if length >= 126 then
    local format = length == 126 and ">I2" or ">I8"
    head_len = head_len + (length == 126 and 2 or 8)
    if have < head_len then
      return nil, head_len
    end
    length = string.unpack(format, buffer, at + 2)
  end
  if masked then
    head_len = head_len + 4
  end
  if length < 0 or have < head_len + length then
    return nil, head_len + length
  end
  local payload = buffer:sub(at + head_len, at + head_len + length - 1)
  if masked then
    payload = mask(payload, buffer:sub(at + head_len - 4, at + head_len - 1))
  end
  return { fin = first & 0x80 ~= 0, rsv = first >> 4 & 7, opcode = first & 0x0F, masked = masked, payload = payload },
    at + head_len + length
end

--- The payload of a close frame.
function ws_frame.close_payload(code, reason)
  return code and string.pack(">I2", code) .. (reason or "") or ""
end

return ws_frame
