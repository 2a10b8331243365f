local files = require("support.files")
local json = require("support.json")
local python = require("support.python")

for _, engine in ipairs(python.ENGINES) do
  describe("results of a Python context, " .. engine, function()
    local contexts = python.contexts(engine)
    local results, output, ok = contexts.results, contexts.output, contexts.ok

    lazy_setup(contexts.start)
    lazy_teardown(contexts.stop)

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
      local cell = ok("print('a')\ndisplay('b', 3)\nprint('c')\ndisplay({'text/x': 'd'}, raw=True)\n5")
      assert.equal("a\nc\n", cell.stdout)
      assert.same({ { ["text/plain"] = "'b'" }, { ["text/plain"] = "3" }, { ["text/x"] = "d" }, { ["text/plain"] = "5" } },
        cell.results)
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
      local depth = 0
      while type(odd.deep) == "table" do
        odd.deep, depth = odd.deep[1], depth + 1
      end
      assert.same({ 47, "…" }, { depth, odd.deep })
    end)

    it("of a value whose repr raises say so, and the cell goes on", function()
      local cell = ok([[
class Broken:
    def __repr__(self): raise ValueError("broken repr")
    def _repr_html_(self): raise KeyError("broken html")
display(Broken())
print("on")
Broken()]])
      assert.equal("on\n", cell.stdout)
      assert.equal(2, #cell.results)
      for _, bundle in ipairs(cell.results) do
        assert.same({ "text/plain" }, { next(bundle), next(bundle, (next(bundle))) })
        assert.matches("Broken object whose representation failed: ValueError: broken repr", bundle["text/plain"], 1, true)
      end
    end)

    describe("that are figures of matplotlib:", function()
      local fields = { context = "figures", timeout_ms = 120000 }

      local function matplotlib_is_missing()
        return python.lacks("code_python_rich_spec", "matplotlib")
      end

      local function figures(code)
        local found = {}
        for _, bundle in ipairs(results(code, fields)) do
          local png = bundle["image/png"]
          if png then
            assert.equal("iVBORw0KGgo", png:sub(1, 11))
            assert.matches("^<Figure size", bundle["text/plain"])
          end
          found[#found + 1] = png and "figure" or bundle["text/plain"]
        end
        return found
      end

      lazy_setup(function()
        if engine == "plain" then -- which finds none by itself
          fields.env = { PYTHONPATH = python.packages() }
        end
      end)

      it("seen at the import, though it was looked for, and missing, before", function()
        if matplotlib_is_missing() then
          return
        end
        ok([[
import importlib.util, sys
paths, sys.path[:] = sys.path[:], []
assert importlib.util.find_spec("matplotlib") is None
sys.path[:] = paths
assert importlib.util.find_spec("matplotlib")]], fields)
        assert.same({ "figure" }, figures("from matplotlib.figure import Figure\nFigure()"))
        assert.same({ "0" }, figures("len(sys.modules['abx_interpreter.figures'].shown)"))
        assert.same({ "figure", "[]" },
          figures("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\nplt.get_fignums()"))
      end)

      it("by show(), as values, and at the end of the cell", function()
        if matplotlib_is_missing() then
          return
        end
        ok("import matplotlib.pyplot as plt", fields)
        local cell = ok("plt.plot([1, 3])\nplt.show()\nprint('shown')\nplt.plot([2]);", fields)
        assert.same({ "shown\n", 2 }, { cell.stdout, #cell.results })
        assert.same({ "[]" }, figures("plt.get_fignums()"))
        assert.same({ "figure" }, figures("fig, ax = plt.subplots(); ax.plot([1]); fig"))
        assert.same({ "figure", "figure" }, figures("fig, ax = plt.subplots(); ax.plot([1]); display(fig); fig"))
        assert.same({ "figure" }, figures("import matplotlib; matplotlib.use('Agg')\nplt.plot([1]);"))
        assert.same({}, figures("plt.plot([1]); plt.close()"))
      end)

      it("told of when they cannot be drawn", function()
        if matplotlib_is_missing() then
          return
        end
        for _, last in ipairs({ "None", "plt.gcf()" }) do
          local found = figures("import matplotlib.pyplot as plt\nplt.text(0.5, 0.5, '$\\\\badmath{$')\n" .. last)
          assert.matches("could not be drawn", found[#found], 1, true)
        end
      end)

      it("none of a child's", function()
        if matplotlib_is_missing() then
          return
        end
        assert.equal("agg\n\n", output("import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', " ..
          "'import matplotlib.pyplot as p; p.plot([1]); p.show(); print(p.get_backend())'], " ..
          "capture_output=True, text=True).stdout.lower())", fields))
      end)

      it("after %matplotlib inline", function()
        if engine == "plain" or matplotlib_is_missing() then
          return
        end
        assert.equal("figure", figures("import matplotlib.pyplot as plt\n%matplotlib inline\nplt.plot([1])")[2])
      end)
    end)
  end)
end

describe("IPython in a Python context", function()
  local contexts = python.contexts("ipython")
  local run, output, value, results = contexts.run, contexts.output, contexts.value, contexts.results

  lazy_setup(contexts.start)
  lazy_teardown(contexts.stop)

  local function ipython_is_missing()
    return python.lacks("code_python_rich_spec", "IPython")
  end
  it("has tables of pandas", function()
    if ipython_is_missing() or python.lacks("code_python_rich_spec", "pandas") then
      return
    end
    local list = results("import pandas\npandas.DataFrame({'a': [1, 2]})", { timeout_ms = 60000 })
    assert.matches("<table", list[1]["text/html"], 1, true)
    assert.equal("   a\n0  1\n1  2", list[1]["text/plain"])
  end)

  it("runs commands and magics, with their output where it belongs", function()
    if ipython_is_missing() then
      return
    end
    local cell = run("name = 'x'\n!echo $name; echo err >&2; test -t 1 || echo none")
    assert.same({ "ok", "x\nnone\n", "err\n" }, { cell.status, cell.stdout, cell.stderr })
    assert.equal("3", value("!exit 3\n_exit_code"))
    assert.equal("['a', 'b']", value("x = !printf 'a\\nb\\n'\nx"))
    assert.equal("from bash\n", output("%%bash\necho from bash"))
    assert.equal("/\n", output("%cd /"))
    assert.matches("Return the number of items", value("len?"), 1, true)
    assert.equal("", output("%%capture cap\nprint('captured')"))
    assert.equal("'captured\\n'", value("cap.stdout"))
  end)

  it("interrupts commands", function()
    if ipython_is_missing() then
      return
    end
    for _, code in ipairs({ "!sleep 60; echo on", "%%bash\nsleep 60; echo on", "%sx sleep 60" }) do
      local cell = run(code, { timeout_ms = 500 })
      assert.same({ "timeout", nil }, { cell.status, cell.stdout:match("on\n") })
    end
    assert.equal("ok", run("!true").status)
  end)

  it("tells what a script of %run did", function()
    if ipython_is_missing() then
      return
    end
    files.write(contexts.abxd.base_dir .. "/fails.py", "print(__name__)\n1 / 0\n")
    local cell = run("%run fails.py", { context = "run" })
    assert.same({ "error", "ZeroDivisionError", "__main__\n" }, { cell.status, cell.error.name, cell.stdout })
    files.write(contexts.abxd.base_dir .. "/leaves.py", "import sys\nsys.exit(2)\n")
    cell = run("%run leaves.py", { context = "run" })
    assert.same({ "error", "SystemExit", "2" }, { cell.status, cell.error.name, cell.error.value })
    assert.equal("UsageError", run("%nosuch", { context = "run" }).error.name)
  end)

  it("has In, Out and _, and no history on disk", function()
    if ipython_is_missing() then
      return
    end
    assert.equal("11", value("5 + 6", { context = "history" }))
    assert.equal("('5 + 6', 11, 11)", value("(In[1], Out[1], _1)", { context = "history" }))
    assert.equal("[]", value("import glob, os\nglob.glob(os.environ['HOME'] + '/**/*.sqlite', recursive=True)",
      { context = "history" }))
  end)

  it("ends at a bare exit", function()
    if ipython_is_missing() then
      return
    end
    assert.equal("crashed", run("exit", { context = "bare" }).status)
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
    assert.equal("True", value("import os; abxdemo.__file__.startswith(os.environ['HOME'])", pip))
    assert.equal("No module named 'abxdemo'", run("import abxdemo", { context = "other" }).error.value)
    assert.matches("Successfully uninstalled", output("!pip uninstall -y abxdemo", pip), 1, true)
    assert.matches("Successfully installed", output("!pip install --no-index ./abxdemo-1.0-py3-none-any.whl", pip), 1, true)
    local cell = run("%pip install --no-index abxnosuch", pip)
    assert.same({ "error", "RuntimeError" }, { cell.status, cell.error.name })
  end)
end)
