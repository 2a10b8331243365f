return {
  name = "file_ops",
  description = "Read, write, list, move, copy and search files below the base directory.",
  always_on = false,
  default_on = true,
  public_routes = false,
}
