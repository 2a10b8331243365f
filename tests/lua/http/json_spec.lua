local check = require("support.check")
local files = require("support.files")
local server = require("support.server")

local ECHO = [[
local P = require("abx.params")
return {
  group = "commands",
  {
    method = "POST", path = "/echo", name = "echo", summary = "Answers what it was given",
    params = { value = P.any { nullable = true }, path = P.path {} },
    handler = function(req)
      return { value = req.params.value }
    end,
  },
}
]]

describe("JSON bodies", function()
  local abxd, baseline

  lazy_setup(function()
    local tables = server.copy_tables()
    files.write(tables.lua_dir .. "/routes/echo.lua", ECHO)
    abxd = server.start { tables = tables }
    abxd.owns_tables = true
    baseline = abxd:baseline()
  end)
  after_each(function()
    abxd:assert_settled(baseline)
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function post(target, text, content_type)
    return abxd:request("POST", target, { body = text, headers = { ["Content-Type"] = content_type or "application/json" } })
  end

  local function nested(depth)
    return '{"value":' .. ("["):rep(depth - 1) .. ("]"):rep(depth - 1) .. "}"
  end

  describe("arrive exact:", function()
    local values = {
      "0", "-1", "9223372036854775807", "-9223372036854775808", "9007199254740993", "1.5", "-0.25", "true", "false", "null",
      "[]", "{}", "[[]]", '{"a":{}}', '""', '"ü\u{1F600}"', '"a\\u0000b"', "[1,2,[3]]", '{"":1}', '"\127"',
      '["a",null,1.5,{"b":[]}]',
    }
    for _, value in ipairs(values) do
      it(value, function()
        local answer = post("/echo", ' {"value" : ' .. value .. "}\r\n")
        assert.same({ 200, '{"value":' .. value .. "}" }, { answer.status, answer.body })
      end)
    end

    it("escapes", function()
      assert.equal("\u{1F600}\"\\/\b\f\n\r\té", check.ok(post("/echo",
        [[{"value":"\ud83d\uDE00\"\\\/\b\f\n\r\t\u00e9"}]])).value)
    end)

    it("integers past 2^63 and exponents are numbers", function()
      assert.equal(1e20, check.ok(post("/echo", '{"value":100000000000000000000}')).value)
      assert.equal(100.0, check.ok(post("/echo", '{"value":1e2}')).value)
    end)
  end)

  describe("that are no JSON are refused:", function()
    local cases = {
      { "a comma at the end", '{"value":1,}' }, { "a comma in an array", "{\"value\":[1,]}" }, { "no colon", '{"value" 1}' },
      { "a bare word", '{"value":nil}' }, { "a cut word", '{"value":tru}' }, { "01", '{"value":01}' }, { "1.", '{"value":1.}' },
      { ".5", '{"value":.5}' }, { "+1", '{"value":+1}' }, { "-", '{"value":-}' }, { "1e", '{"value":1e}' },
      { "hex", '{"value":0x1}' }, { "NaN", '{"value":NaN}' }, { "single quotes", "{'value':1}" }, { "no quotes", "{value:1}" },
      { "a control byte", '{"value":"a\nb"}' }, { "a bad escape", '{"value":"\\x41"}' }, { "a cut escape", '{"value":"\\u12"}' },
      { "a lone high surrogate", '{"value":"\\ud83d"}' }, { "a lone low surrogate", '{"value":"\\ude00"}' },
      { "not UTF-8", '{"value":"\xff"}' }, { "overlong UTF-8", '{"value":"\xc0\x80"}' },
      { "a surrogate in UTF-8", '{"value":"\xed\xa0\x80"}' }, { "a BOM", "\xef\xbb\xbf{}" },
      { "UTF-16", ("{}"):gsub(".", "%0\0") }, { "text after it", '{"value":1} x' }, { "two documents", "{}{}" },
      { "a NUL after it", "{}\0" }, { "a name twice", '{"value":1,"value":2}' },
      { "a name twice by an escape", '{"value":1,"v\\u0061lue":2}' }, { "a name twice inside", '{"value":{"a":1,"a":2}}' },
      { "cut off", '{"value":' }, { "blanks only", "  " }, { "a comment", '{"value":1 /* x */}' },
      { "1e999", '{"value":1e999}' }, { "nesting of 65", nested(65) }, { "nesting of 1000", nested(1000) },
      { "nesting of 10000", nested(10000) }, { "unclosed nesting of 500000", ("["):rep(500000) },
      { "nested objects", ('{"":'):rep(100000) },
    }
    for _, case in ipairs(cases) do
      it(case[1], function()
        check.problem(post("/echo", case[2]), 400, "invalid_json")
      end)
    end
  end)

  it("nest up to 64", function()
    assert.equal(200, post("/echo", nested(64)).status)
  end)

  it("nested a million deep cost a refusal, on every route", function()
    for _, target in ipairs { "/shell", "/shell/stream" } do
      check.problem(post(target, nested(1000000)), 400, "invalid_json")
    end
    for _, target in ipairs { "/echo", "/commands/runtime-versions" } do
      check.problem(post(target, nested(1000000)), 413, "payload_too_large")
      check.problem(post(target, nested(400000)), 400, "invalid_json")
    end
    assert.equal("ok", abxd:get("/health"):json().status)
  end)

  it("a number of a million digits is refused or taken, and costs nothing", function()
    local answer = post("/shell", '{"timeout_ms":' .. ("1"):rep(1000000) .. "}")
    assert.equal(400, answer.status)
  end)

  it("must be objects", function()
    for _, text in ipairs { "[]", '"x"', "1", "null", "true" } do
      check.problem(post("/echo", text), 400, "invalid_request")
    end
  end)

  it("count as {} where there is none", function()
    assert.same({}, check.ok(abxd:request("POST", "/echo")))
    check.problem(abxd:request("POST", "/shell"), 400, "invalid_request", "command")
    assert.equal(200, post("/echo", "").status)
  end)

  it("with unknown, wrong or NUL-holding members are refused", function()
    assert.same({ "a", "b" }, check.faulty_fields(post("/echo", '{"a":1,"b":2,"value":3}')))
    check.problem(post("/echo", '{"path":"a\\u0000b"}'), 400, "invalid_path", "path")
    check.problem(post("/echo", '{"path":7}'), 400, "invalid_request", "path")
    check.problem(post("/echo?value=1", "{}"), 400, "invalid_request", "value")
  end)

  it("need their content type", function()
    for _, media in ipairs { "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application" } do
      check.problem(post("/echo", "{}", media), 415, "unsupported_media_type")
    end
    check.problem(abxd:request("POST", "/echo", { body = "{}" }), 415, "unsupported_media_type")
    for _, media in ipairs { "application/json;charset=utf-8", "Application/JSON", "application/json ; x=y" } do
      assert.equal(200, post("/echo", "{}", media).status)
    end
  end)

  it("have a limit that the refusal names", function()
    local function padded(size)
      return '{"value":"' .. ("x"):rep(size - 12) .. '"}'
    end
    assert.equal(200, post("/echo", padded(1024 * 1024)).status)
    local problem = check.problem(post("/echo", padded(1024 * 1024 + 1)), 413, "payload_too_large")
    assert.matches("1048576", problem.detail)
    local parts = {}
    for i = 1, 20 do
      parts[i] = ("x"):rep(100000)
    end
    local answer = abxd:request("POST", "/echo", { chunks = (function()
      local i = 0
      return function()
        i = i + 1
        return parts[i]
      end
    end)(), headers = { ["Content-Type"] = "application/json" } })
    check.problem(answer, 413, "payload_too_large")
  end)
end)
