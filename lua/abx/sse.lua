--- Server-sent events: the reply of every route that streams them.
return {
  --- stream(out) writes the events; it ends with the stream or when the client has gone.
  reply = function(stream)
    return reply {
      headers = {
        ["Content-Type"] = "text/event-stream",
        ["Cache-Control"] = "no-cache",
        ["X-Accel-Buffering"] = "no", -- else nginx holds events back
      },
      stream = stream,
    }
  end,
}
