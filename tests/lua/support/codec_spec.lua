--- The tests' own readers must be strict, or faults of the server pass unseen.
local json = require("support.json")
local sse = require("support.sse")

describe("the tests' JSON reader", function()
  it("keeps integers, nulls, empty arrays and control characters exact", function()
    local text = '{"a":[],"b":{},"c":9223372036854775807,"d":null,"e":"\\u0000é","f":-1.5}'
    local value = json.decode(text)
    assert.equal(math.maxinteger, value.c)
    assert.equal(json.null, value.d)
    assert.equal("\0é", value.e)
    assert.equal(text, json.encode(value))
  end)

  it("joins surrogates", function()
    assert.equal("😀", json.decode('"\\ud83d\\ude00"'))
  end)

  for _, text in ipairs { "", "01", "1.", "1 2", "nul", "[1,]", "{,}", "{'a':1}", '{"a":1,"a":2}', '"\1"', '"\\x"', '"\\ud800"',
    '"\xff"', "NaN" } do
    it(("refuses %q"):format(text), function()
      assert.has_error(function()
        json.decode(text)
      end)
    end)
  end
end)

describe("the tests' SSE reader", function()
  it("gives events with id, name and data", function()
    local events = sse.parse(': hello\n\nid: 3.0\nevent: stdout\ndata: {"data":"abc","offset":0}\n\n')
    assert.equal(1, #events)
    assert.same({ "3.0", "stdout", { data = "abc", offset = 0 } }, { events[1].id, events[1].event, events[1].data })
  end)

  it("refuses an event cut short, and fields that do not exist", function()
    assert.has_error(function()
      sse.parse("event: exit\ndata: {}\n")
    end)
    assert.has_error(function()
      sse.parse("evnet: exit\ndata: {}\n\n")
    end)
  end)
end)
