return {
  name = "core",
  description = "Whether the server is well, and what it can do.",
  always_on = true,
  default_on = true,
  public_routes = true,
}
