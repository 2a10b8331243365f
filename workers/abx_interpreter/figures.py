"""Figures of matplotlib as results: by plt.show(), and at the end of the cell those that are still open.

Nothing is imported before user code imports matplotlib: a finder sees that and makes abx_interpreter.figures_backend
its backend, unless MPLBACKEND or matplotlib.use() says something else. Open figures are shown all the same."""
import os
import sys
from importlib.machinery import PathFinder
from io import BytesIO

from .results import describe

BACKEND = "module://abx_interpreter.figures_backend"
FOR_CHILDREN = "agg"  # MPLBACKEND of the environment: programs that cells start have no such module

publish = None  # set by watch_imports
shown = []  # figures that this cell has shown as values


class Finder:
    """Gives way for everything but the first import of matplotlib that succeeds: it may be looked for, or be missing, before."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "matplotlib":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            if cls in sys.meta_path:
                sys.meta_path.remove(cls)
            if os.environ.get("MPLBACKEND") == FOR_CHILDREN:
                module.rcParams["backend"] = BACKEND

        spec.loader.exec_module = exec_module
        return spec


def watch_imports(publisher):
    global publish
    publish = publisher
    os.environ.setdefault("MPLBACKEND", FOR_CHILDREN)
    sys.meta_path.insert(0, Finder)


def png_of(figure):
    file = BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight", dpi="figure")
    return file.getvalue()


def is_figure(value):
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(value, module.Figure)


def bundle_of_shown(figure):
    """Of a figure that is shown as a value, and so not once more at the end of the cell."""
    shown.append(figure)
    return bundle_of_figure(figure)


def bundle_of_figure(figure):
    bundle = {"text/plain": repr(figure)}
    try:
        bundle["image/png"] = png_of(figure)
    except Exception as error:
        bundle["text/plain"] = "%r could not be drawn: %s" % (figure, describe(error))
    return bundle


def show_open():
    """Publishes all open figures, in the order of their making, and closes them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    numbers = getattr(pyplot, "get_fignums", tuple)()
    try:
        for number in numbers:
            figure = pyplot.figure(number)
            if figure.axes or figure.texts or figure.images:  # an empty one shows nothing
                if not any(figure is other for other in shown):
                    publish(bundle_of_figure(figure))
    finally:
        if numbers:
            pyplot.close("all")
        shown.clear()
