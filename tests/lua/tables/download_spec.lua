local stubs = require("tests.lua.tables.stubs")
local disposition = require("abx.disposition")
local mime = require("abx.mime")
local shape = require("abx.shape")

describe("Content-Disposition", function()
  it("says plain names plainly", function()
    assert.are.equal(
      [[attachment; filename="a b.txt"; filename*=UTF-8''a%20b.txt]],
      disposition.of("attachment", "a b.txt")
    )
  end)

  it("gives others exactly in filename*, safely in filename", function()
    assert.are.equal(
      [[inline; filename="_.txt"; filename*=UTF-8''%C3%BC.txt]],
      disposition.of("inline", "\u{fc}.txt")
    )
    assert.are.equal(
      [[attachment; filename="a_b_c_d_e"; filename*=UTF-8''a%22b%0Ac%5Cd%25e]],
      disposition.of("attachment", "a\"b\nc\\d%e")
    )
    assert.are.equal(
      [[attachment; filename="x_y"; filename*=UTF-8''x%EF%BF%BDy]],
      disposition.of("attachment", "x\xffy")
    )
    assert.are.equal(
      [[attachment; filename="a'(1)*"; filename*=UTF-8''a%27%281%29%2A]],
      disposition.of("attachment", "a'(1)*")
    )
  end)

  it("holds no control characters for any byte", function()
    for byte = 1, 255 do
      assert.is_nil(disposition.of("inline", "a" .. string.char(byte) .. "b"):find("[%c\127-\255]"))
    end
  end)
end)

describe("media types", function()
  it("go by the last extension, in any case", function()
    assert.are.equal("text/plain; charset=utf-8", mime.of("a.TXT"))
    assert.are.equal("application/gzip", mime.of("a.tar.gz"))
    assert.are.equal("image/svg+xml", mime.of("a.b.svg"))
    assert.are.equal("application/octet-stream", mime.of("Makefile"))
    assert.are.equal("application/octet-stream", mime.of("a.html "))
  end)

  it("know what a browser would run", function()
    assert.is_true(mime.is_active("text/html; charset=utf-8"))
    assert.is_true(mime.is_active("image/svg+xml"))
    assert.is_false(mime.is_active("image/png"))
  end)
end)

describe("shapes", function()
  local function fault_of(check, value)
    local ok, fault = pcall(check, value, "f")
    return not ok and fault.code .. " " .. fault.field or nil
  end

  it("pass what fits, and nothing", function()
    assert.are.equal("0644", shape.mode("0644", "f"))
    assert.are.equal("755", shape.mode("755", "f"))
    assert.is_nil(shape.mode(nil, "f"))
    assert.are.equal(("ab"):rep(32), shape.sha256(("aB"):rep(32), "f"))
    assert.is_nil(shape.sha256(nil, "f"))
  end)

  it("refuse the rest by field", function()
    for _, value in ipairs { "64", "0888", "+644", "00644", "0644\n" } do
      assert.are.equal("invalid_request f", fault_of(shape.mode, value))
    end
    assert.are.equal("invalid_request f", fault_of(shape.sha256, ("g"):rep(64)))
    assert.are.equal("invalid_request f", fault_of(shape.sha256, ("a"):rep(63)))
  end)
end)

describe("GET /download", function()
  local handler
  before_each(function()
    stubs.load()
    handler = stubs.route("download").handler
  end)

  it("sends a file", function()
    local file = { name = "page.html", size = 3 }
    stubs.open_file = function(path)
      assert.are.equal("sub/page.html", path)
      return file
    end
    local answer = handler { params = { path = "sub/page.html", archive = "none", inline = false } }
    assert.are.equal(file, answer.file)
    assert.is_nil(answer.headers["Content-Security-Policy"])
    assert.are.equal("text/html; charset=utf-8", answer.headers["Content-Type"])
    answer = handler { params = { path = "sub/page.html", archive = "none", inline = true } }
    assert.are.equal("sandbox", answer.headers["Content-Security-Policy"])
    assert.are.equal("inline; ", answer.headers["Content-Disposition"]:sub(1, 8))
  end)

  it("tells how to fetch a directory", function()
    stubs.open_file = function()
      return nil, "is_a_directory", "a directory: sub", "path"
    end
    local ok, fault = pcall(handler, { params = { path = "sub", archive = "none", inline = false } })
    assert.is_false(ok)
    assert.are.equal("is_a_directory", fault.code)
    assert.are.equal("path", fault.field)
    assert.truthy(fault.message:find("archive=tar.gz", 1, true))
  end)

  it("streams an archive", function()
    local streamed
    stubs.archive = function(path, format)
      return {
        name = path .. "." .. format,
        stream = function(_, out)
          streamed = out
        end,
      }
    end
    local answer = handler { params = { path = "sub", archive = "tar.gz", inline = false } }
    assert.are.equal("application/gzip", answer.headers["Content-Type"])
    assert.truthy(answer.headers["Content-Disposition"]:find('filename="sub.tar.gz"', 1, true))
    answer.stream("out")
    assert.are.equal("out", streamed)
  end)
end)
