--- One Chromium, and pages in it by name.
local calls = require("abx.browser_call")
local P = require("abx.params")

local WAITS = "While it waits, the page's own scripts run; the deadline ends them, and keeps the page where that is possible. "

local SIZE = P.integer { required = true, min = 1, max = 4096, doc = "in pixels" }

return {
  group = "browser",
  {
    method = "POST", path = "/browser/navigate", name = "browser.navigate",
    summary = "Open a URL in a page",
    description = "http, https, data and about:blank. Link-local and metadata addresses and the server's own ports are refused, "
      .. "after redirects too, unless browser.allow_hosts names them. An HTTP status of 400 or more is a success of this call.",
    destructive = true, body_limit = calls.BODY_MAX_BYTES,
    params = calls.params {
      url = P.string {
        required = true, min = 1, max = P.MiB, example = "http://localhost:3000/",
        doc = "at most 64 KiB, a data: URL 1 MiB",
      },
      wait_until = P.choice { "load", "domcontentloaded", "networkidle", "commit" },
      viewport = P.object {
        doc = "the page's size, from now on", fields = { width = SIZE, height = SIZE },
      },
    },
    returns = calls.returns("the page is there", {
      status = P.integer { nullable = true, doc = "of HTTP; null where there was none, as with data:" },
      redirects = P.array {
        of = P.object { fields = { url = P.string {}, status = P.integer {} } },
        doc = "those that led there, in their order",
      },
      duration_ms = P.integer { min = 0 },
    }),
    errors = calls.errors { "payload_too_large", "navigation_failed" },
    handler = calls.handler("navigate", calls.check_url),
  },
  {
    method = "POST", path = "/browser/screenshot", name = "browser.screenshot",
    summary = "Take a picture of a page",
    description = "Of what the viewport shows, of the whole page, or of one element. At most 16,384 pixels a side; what is "
      .. "larger is cut, and the answer says so.",
    params = calls.params {
      full_page = P.boolean { default = false },
      selector = calls.selector { doc = "instead of full_page" },
      format = P.choice { "png", "jpeg" },
      quality = P.integer { min = 1, max = 100, doc = "of jpeg" },
      path = calls.path,
    },
    returns = calls.picture_returns("image/*", "the picture"),
    errors = calls.errors(P.join({ "element_not_found" }, calls.picture_errors)),
    handler = calls.picture_handler("screenshot", calls.check_quality, calls.check_part),
  },
  {
    method = "GET", path = "/browser/content", name = "browser.content",
    summary = "Read a page, or an element of it",
    description = "html is the document as it is now, text what a reader sees, markdown that with its structure.",
    read_only = true, idempotent = true,
    params = calls.params {
      format = P.choice { "html", "text", "markdown" },
      selector = calls.selector {},
      max_bytes = P.integer { min = 1, max = 16 * P.MiB, default = P.MiB, doc = "what is longer is cut behind a character" },
    },
    returns = calls.returns("its content", {
      format = P.string { example = "html" },
      content = P.string {},
      truncated = P.boolean { doc = "there is more than max_bytes" },
    }),
    errors = calls.errors { "element_not_found", "payload_too_large" },
    handler = calls.handler("content"),
  },
  {
    method = "POST", path = "/browser/click", name = "browser.click",
    summary = "Click on an element",
    description = "Waits until it is there, visible, still and not covered. " .. WAITS
      .. "Where the click leads to another document, its content is waited for, too.",
    destructive = true,
    params = calls.params {
      selector = calls.selector { required = true },
      button = P.choice { "left", "right", "middle" },
      click_count = P.integer { min = 1, max = 3, default = 1 },
      modifiers = P.array {
        of = P.choice { "Alt", "Control", "ControlOrMeta", "Meta", "Shift", required = true }, max = 5,
        doc = "keys that are held down meanwhile",
      },
    },
    returns = calls.returns("it was clicked on", {}),
    errors = calls.errors { "element_not_found" },
    handler = calls.handler("click"),
  },
  {
    method = "POST", path = "/browser/type", name = "browser.type",
    summary = "Type into an element",
    description = "Waits until it is there and can be typed into. " .. WAITS,
    destructive = true, body_limit = calls.BODY_MAX_BYTES,
    params = calls.params {
      selector = calls.selector { required = true },
      text = P.string { required = true, max = calls.TEXT_MAX_BYTES },
      clear = P.boolean { default = false, doc = "instead of what is there; else behind it" },
      submit = P.boolean { default = false, doc = "press Enter afterwards" },
      delay_ms = P.integer { min = 0, max = 1000, default = 0, doc = "between two keys; 0: all at once" },
    },
    returns = calls.returns("it was typed", {}),
    errors = calls.errors { "element_not_found", "payload_too_large" },
    handler = calls.handler("type"),
  },
  {
    method = "POST", path = "/browser/evaluate", name = "browser.evaluate",
    summary = "Evaluate JavaScript in a page",
    description = "A promise is waited for. " .. WAITS,
    destructive = true, body_limit = calls.BODY_MAX_BYTES,
    params = calls.params {
      expression = P.string {
        required = true, min = 1, max = calls.TEXT_MAX_BYTES, example = "document.title",
        doc = "an expression, or a function that gets arg",
      },
      arg = P.any { doc = "for an expression that is a function" },
    },
    returns = calls.returns("its value", {
      result = P.any { nullable = true, doc = "null where JSON cannot say it: see type" },
      type = P.string { doc = "of the value, as undefined, number, object, array, date, function, node", example = "string" },
    }),
    errors = calls.errors { "javascript_error", "payload_too_large" },
    handler = calls.handler("evaluate"),
  },
  {
    method = "POST", path = "/browser/pdf", name = "browser.pdf",
    summary = "Print a page as PDF",
    params = calls.params {
      format = P.choice {
        "A0", "A1", "A2", "A3", "A4", "A5", "A6", "Letter", "Legal", "Tabloid", "Ledger", default = "A4",
      },
      landscape = P.boolean { default = false },
      scale = P.number { min = 0.1, max = 2, default = 1 },
      margin = P.object {
        doc = 'pixels, or strings with a unit: "1cm", "0.5in", "10mm", "10px"',
        fields = { top = P.any {}, right = P.any {}, bottom = P.any {}, left = P.any {} },
      },
      page_ranges = P.string { min = 1, max = 1024, doc = "all unless given", example = "1-3, 5" },
      path = calls.path,
    },
    returns = calls.picture_returns("application/pdf", "the document"),
    errors = calls.errors(calls.picture_errors),
    handler = calls.picture_handler("pdf", calls.check_margin, calls.check_page_ranges),
  },
  {
    method = "GET", path = "/browser/console", name = "browser.console",
    summary = "Read what a page logged, and what befell it",
    description = "Never waits for the page. The newest 1000 entries of each page are kept.",
    params = calls.params {
      since = P.integer { min = 0, default = 0, doc = "only entries behind this one: next of the answer before" },
      level = P.choice { "debug", "info", "warning", "error", doc = "this one and the graver ones" },
      limit = P.integer { min = 1, max = 1000, default = 100 },
      clear = P.boolean { default = false, doc = "forget what is told, and all before it" },
    },
    returns = calls.returns("the oldest of them first", {
      entries = P.array {
        of = P.object {
          fields = {
            seq = P.integer { min = 1 },
            time = P.string { format = "date-time" },
            kind = P.string {
              doc = "console, pageerror, dialog, popup, download, request_failed, navigation_refused or crash",
              example = "console",
            },
            level = P.string { example = "warning" },
            text = P.string {},
            url = P.string { nullable = true },
            line = P.integer { nullable = true },
          },
        },
      },
      next = P.integer { min = 0, doc = "since of the next call" },
      dropped = P.integer { min = 0, doc = "entries behind since that are gone already" },
    }),
    errors = calls.errors {},
    handler = calls.handler("console"),
  },
}
