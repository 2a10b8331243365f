return {
  name = "terminal",
  description = "Interactive terminals: opened here, used over a WebSocket.",
  always_on = false,
  default_on = true,
  public_routes = false,
}
