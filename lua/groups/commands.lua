return {
  name = "commands",
  description = "Run shell commands and the operator's registered ones; send files in and fetch them.",
  always_on = false,
  default_on = true,
  public_routes = false,
}
