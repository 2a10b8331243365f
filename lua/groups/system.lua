return {
  name = "system",
  description = "The machine: its hardware, load, disks and ports, and the environment that new programs get.",
  always_on = false,
  default_on = true,
  public_routes = false,
}
