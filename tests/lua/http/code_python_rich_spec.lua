local files = require("support.files")
local json = require("support.json")
local python = require("support.python")

for _, engine in ipairs(python.ENGINES) do
  describe("results of a Python context, " .. engine, function()
    local abxd

    lazy_setup(function()
      abxd = python.start(engine)
    end)
    lazy_teardown(function()
      abxd:stop()
    end)

    local function results(code, fields)
      local _, list = python.print(abxd, code, fields)
      return list
    end

    it("have every format that a value offers", function()
      local list = results([[
class Rich:
    def __repr__(self): return "rich"
    def _repr_html_(self): return "<b>rich</b>"
    def _repr_markdown_(self): return "**rich**"
    def _repr_svg_(self): return "<svg/>"
    def _repr_png_(self): return b"\x89PNG"
    def _repr_jpeg_(self): return b"\xff\xd8"
    def _repr_latex_(self): return "$rich$"
    def _repr_json_(self): return {"rich": [1, 2.5, None, True], 3: "three"}
Rich()]])
      assert.same({ {
        ["text/plain"] = "rich", ["text/html"] = "<b>rich</b>", ["text/markdown"] = "**rich**",
        ["image/svg+xml"] = "<svg/>", ["image/png"] = "iVBORw==", ["image/jpeg"] = "/9g=", ["text/latex"] = "$rich$",
        ["application/json"] = { rich = { 1, 2.5, json.null, true }, ["3"] = "three" },
      } }, list)
    end)

    it("come from display() in their order, with what is printed before", function()
      local out, list = python.print(abxd, "print('a')\ndisplay('b', 3)\nprint('c')\ndisplay({'text/x': 'd'}, raw=True)\n5")
      assert.equal("a\nc\n", out)
      assert.same({ { ["text/plain"] = "'b'" }, { ["text/plain"] = "3" }, { ["text/x"] = "d" }, { ["text/plain"] = "5" } },
        list)
    end)

    it("are strict JSON whatever they are made of", function()
      local list = results([[
class Odd:
    def __repr__(self): return "\ud800 \udc00\ud800 \ud83d\ude00 \0"
    def _repr_json_(self):
        deep = []
        for i in range(200): deep = [deep]
        return {"nan": float("nan"), "inf": [float("-inf")], "lone": "\udcff", None: {1}, "big": 1 << 80, "deep": deep}
Odd()]])
      local odd = list[1]["application/json"]
      assert.same({ json.null, { json.null }, "\u{fffd}", "{1}" }, { odd.nan, odd.inf, odd.lone, odd.None })
      assert.equal("\u{fffd} \u{fffd}\u{fffd} \u{1f600} \0", list[1]["text/plain"])
      assert.equal("table", type(odd.deep))
    end)

    it("of a value whose repr raises say so, and the cell goes on", function()
      local out, list = python.print(abxd, [[
class Broken:
    def __repr__(self): raise ValueError("broken repr")
    def _repr_html_(self): raise KeyError("broken html")
display(Broken())
print("on")
Broken()]])
      assert.equal("on\n", out)
      for i = 1, 2 do
        assert.matches("Broken", list[i]["text/plain"], 1, true)
        assert.is_nil(list[i]["text/html"])
      end
      assert.equal(2, #list)
    end)
  end)
end

describe("IPython in a Python context", function()
  local abxd

  lazy_setup(function()
    abxd = python.start("ipython")
  end)
  lazy_teardown(function()
    abxd:stop()
  end)

  local function ipython_is_missing()
    return python.lacks("code_python_rich_spec", "IPython")
  end
  local function output(code, fields)
    return (python.print(abxd, code, fields))
  end

  it("has figures of matplotlib by show(), as values, and at the end of the cell", function()
    if ipython_is_missing() or python.lacks("code_python_rich_spec", "matplotlib") then
      return
    end
    local function run(code)
      return python.print(abxd, code, { context = "figures", timeout_ms = 120000 })
    end
    local function assert_figures(expected, list)
      local found = {}
      for _, bundle in ipairs(list) do
        if bundle["image/png"] then
          assert.equal("iVBORw0KGgo", bundle["image/png"]:sub(1, 11))
          assert.matches("^<Figure size", bundle["text/plain"])
          found[#found + 1] = "figure"
        else
          found[#found + 1] = "text"
        end
      end
      assert.same(expected, found)
    end
    local out, list = run("import matplotlib.pyplot as plt\nplt.plot([1, 3])\nplt.show()\nprint('shown')\nplt.plot([2]);")
    assert.equal("shown\n", out)
    assert_figures({ "figure", "figure" }, list)
    assert.equal("[]", select(2, run("plt.get_fignums()"))[1]["text/plain"])
    assert_figures({ "figure" }, select(2, run("fig, ax = plt.subplots(); ax.plot([1]); fig")))
    local _, broken = run("plt.text(0.5, 0.5, '$\\\\badmath{$');")
    assert.matches("could not be drawn", broken[1]["text/plain"], 1, true)
    assert_figures({ "text", "figure" }, select(2, run("%matplotlib inline\nplt.plot([1])")))
    assert_figures({ "figure" }, select(2, run("import matplotlib; matplotlib.use('Agg')\nplt.plot([1]);")))
    assert_figures({}, select(2, run("plt.plot([1]); plt.close()")))
    out = run("import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', " ..
      "'import matplotlib.pyplot as p; p.plot([1]); p.show(); print(p.get_backend())'], " ..
      "capture_output=True, text=True).stdout.lower())")
    assert.equal("agg\n\n", out)
  end)

  it("has tables of pandas", function()
    if ipython_is_missing() or python.lacks("code_python_rich_spec", "pandas") then
      return
    end
    local _, list = python.print(abxd, "import pandas\npandas.DataFrame({'a': [1, 2]})", { timeout_ms = 60000 })
    assert.matches("<table", list[1]["text/html"], 1, true)
    assert.equal("   a\n0  1\n1  2", list[1]["text/plain"])
  end)

  it("runs commands and magics, with their output where it belongs", function()
    if ipython_is_missing() then
      return
    end
    local cell = python.run(abxd, "name = 'x'\n!echo $name; echo err >&2; test -t 1 || echo none")
    assert.same({ "ok", "x\nnone\n", "err\n" }, { cell.status, cell.stdout, cell.stderr })
    assert.equal("3", python.value(abxd, "!exit 3\n_exit_code"))
    assert.equal("['a', 'b']", python.value(abxd, "x = !printf 'a\\nb\\n'\nx"))
    assert.equal("from bash\n", output("%%bash\necho from bash"))
    assert.equal("/\n", output("%cd /"))
    assert.matches("Return the number of items", python.value(abxd, "len?"), 1, true)
    assert.equal("", output("%%capture cap\nprint('captured')"))
    assert.equal("'captured\\n'", python.value(abxd, "cap.stdout"))
  end)

  it("interrupts commands", function()
    if ipython_is_missing() then
      return
    end
    for _, code in ipairs({ "!sleep 60; echo on", "%%bash\nsleep 60; echo on", "%sx sleep 60" }) do
      local cell = python.run(abxd, code, { timeout_ms = 500 })
      assert.same({ "timeout", nil }, { cell.status, cell.stdout:match("on\n") })
    end
    assert.equal("ok", python.run(abxd, "!true").status)
  end)

  it("tells what a script of %run did", function()
    if ipython_is_missing() then
      return
    end
    files.write(abxd.base_dir .. "/fails.py", "print(__name__)\n1 / 0\n")
    local cell = python.run(abxd, "%run fails.py", { context = "run" })
    assert.same({ "error", "ZeroDivisionError", "__main__\n" }, { cell.status, cell.error.name, cell.stdout })
    files.write(abxd.base_dir .. "/leaves.py", "import sys\nsys.exit(2)\n")
    cell = python.run(abxd, "%run leaves.py", { context = "run" })
    assert.same({ "error", "SystemExit", "2" }, { cell.status, cell.error.name, cell.error.value })
    assert.equal("UsageError", python.run(abxd, "%nosuch", { context = "run" }).error.name)
  end)

  it("has In, Out and _, and no history on disk", function()
    if ipython_is_missing() then
      return
    end
    assert.equal("11", python.value(abxd, "5 + 6", { context = "history" }))
    assert.equal("('5 + 6', 11, 11)", python.value(abxd, "(In[1], Out[1], _1)", { context = "history" }))
    assert.equal("[]", python.value(abxd, "import glob, os\nglob.glob(os.environ['HOME'] + '/**/*.sqlite', recursive=True)",
      { context = "history" }))
  end)

  it("ends at a bare exit", function()
    if ipython_is_missing() then
      return
    end
    assert.equal("crashed", python.run(abxd, "exit", { context = "bare" }).status)
  end)

  it("installs with pip for itself", function()
    if ipython_is_missing() or python.lacks("code_python_rich_spec", "pip") then
      return
    end
    local pip = { context = "pip", timeout_ms = 120000 }
    output([[
import zipfile
with zipfile.ZipFile("abxdemo-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("abxdemo.py", "def main(): print('demo ran')\n")
    info = "abxdemo-1.0.dist-info/"
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: abxdemo\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "entry_points.txt", "[console_scripts]\nabxdemo = abxdemo:main\n")
    wheel.writestr(info + "RECORD", "")]], pip)
    assert.matches("Successfully installed", output("%pip install --no-index ./abxdemo-1.0-py3-none-any.whl", pip), 1, true)
    assert.equal("demo ran\n", output("import abxdemo; abxdemo.main()", pip))
    assert.equal("demo ran\n", output("!abxdemo", pip))
    assert.equal("True", python.value(abxd, "import os; abxdemo.__file__.startswith(os.environ['HOME'])", pip))
    assert.equal("No module named 'abxdemo'", python.run(abxd, "import abxdemo", { context = "other" }).error.value)
    assert.matches("Successfully uninstalled", output("!pip uninstall -y abxdemo", pip), 1, true)
    assert.matches("Successfully installed", output("!pip install --no-index ./abxdemo-1.0-py3-none-any.whl", pip), 1, true)
    local cell = python.run(abxd, "%pip install --no-index abxnosuch", pip)
    assert.same({ "error", "RuntimeError" }, { cell.status, cell.error.name })
  end)
end)
