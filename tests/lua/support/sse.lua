--- Reads Server-Sent Events as the standard says, strictly: what a browser would ignore in silence is an error here.
local json = require("support.json")

local sse = {}

--- One event of its lines: {id=, event=, data= (decoded), comments={}}. nil for a block of comments alone.
local function decode(block)
  local event, data = { comments = {} }, nil
  for line in (block .. "\n"):gmatch("(.-)\r?\n") do
    local name, value = line:match("^([^:]*): ?(.*)$")
    if not name then
      error(("no line of an event: %q"):format(line), 0)
    elseif name == "" then
      table.insert(event.comments, value)
    elseif name == "data" then
      data = data and data .. "\n" .. value or value
    elseif name == "id" or name == "event" or name == "retry" then
      event[name] = value
    else
      error(("unknown field in an event: %q"):format(line), 0)
    end
  end
  if not data then
    return nil
  end
  event.raw = data
  event.data = json.decode(data)
  return event
end

--- All events in a text, which must end with a whole one. Comments are left out.
function sse.parse(text)
  local events = {}
  for block, rest in text:gmatch("(.-)\n\n()") do
    events[#events + 1] = decode(block)
    events.stop = rest
  end
  if (events.stop or 1) <= #text then
    error(("the stream ends in the middle of an event: %q"):format(text:sub(events.stop or 1)), 0)
  end
  events.stop = nil
  return events
end

local stream = {}
stream.__index = stream

--- Wraps an answer from http.stream: events:next() gives one event at a time.
function sse.events(response)
  return setmetatable({ response = response, buffer = "", at = 1, searched = 1, comments = 0 }, stream)
end

--- The next event, nil at the orderly end of the stream. Raises when nothing comes in time or the stream is cut.
function stream:next(timeout_s)
  while true do
    -- Nothing is searched or moved twice: a piece may hold hundreds of events, and an event come in hundreds of pieces.
    local ending = self.buffer:find("\n\n", self.searched, true)
    if ending then
      local block = self.buffer:sub(self.at, ending - 1)
      self.at, self.searched = ending + 2, ending + 2
      local event = decode(block)
      if event then
        return event
      end
      self.comments = self.comments + 1
    else
      local piece = self.response:read(timeout_s)
      if not piece then
        if self.response.cut or self.at <= #self.buffer then
          error("the stream was cut", 0)
        end
        return nil
      end
      local rest = self.buffer:sub(self.at)
      self.buffer, self.at, self.searched = rest .. piece, 1, math.max(#rest, 1)
    end
  end
end

--- All events to the end of the stream.
function stream:all(timeout_s)
  local events = {}
  local event = self:next(timeout_s)
  while event do
    events[#events + 1] = event
    event = self:next(timeout_s)
  end
  return events
end

--- The next event of that name; those before it are dropped.
function stream:wait(name, timeout_s)
  local event
  repeat
    event = self:next(timeout_s) or error("the stream ended without " .. name, 2)
  until event.event == name
  return event
end

return sse
