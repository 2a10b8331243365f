return {
  name = "dev_tools",
  description = "Git repositories, and code cells whose state lives on between calls.",
  always_on = false,
  default_on = false,
  public_routes = false,
}
