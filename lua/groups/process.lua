return {
  name = "process",
  description = "The process table: start programs that outlive a request, read their output, signal them.",
  always_on = false,
  default_on = true,
  public_routes = false,
}
