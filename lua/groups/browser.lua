local browser = require("abx.browser")

return {
  name = "browser",
  description = "One Chromium: navigate, look, click, type and evaluate.",
  always_on = false,
  default_on = false,
  public_routes = false,
  available = browser.available,
}
