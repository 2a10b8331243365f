"""Bundles of values without IPython: the same _repr_*_ methods, and display()."""
from pprint import pformat

from .figures import bundle_of_shown, is_figure
from .results import failed_repr

METHODS = (
    ("text/html", "_repr_html_"),
    ("text/markdown", "_repr_markdown_"),
    ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"),
    ("image/jpeg", "_repr_jpeg_"),
    ("text/latex", "_repr_latex_"),
    ("application/json", "_repr_json_"),
)
CONTAINERS = (dict, list, tuple, set, frozenset)


def text_of(value):
    try:
        if isinstance(value, CONTAINERS) and type(value).__repr__ in BUILTIN_REPRS:
            return pformat(value, width=79)
        return repr(value)
    except Exception as error:
        return failed_repr(value, error)


BUILTIN_REPRS = [kind.__repr__ for kind in CONTAINERS]


def bundle_of(value):
    """Formats that fail or give None are left out; text/plain is always there."""
    if is_figure(value):
        return bundle_of_shown(value)
    bundle = {"text/plain": text_of(value)}
    if isinstance(value, type):  # a class has the methods, but is not to be shown by them
        return bundle
    whole = call_repr(value, "_repr_mimebundle_")
    if isinstance(whole, dict):
        bundle.update(whole)
    for mime, name in METHODS:
        if mime not in bundle:
            data = call_repr(value, name)
            if data is not None:
                bundle[mime] = data
    return bundle


def call_repr(value, name):
    try:
        method = getattr(type(value), name, None) and getattr(value, name)
        data = method() if callable(method) else None
    except Exception:
        return None
    return data[0] if isinstance(data, tuple) and data else data  # (data, metadata)


def display_with(publish):
    def display(*values, raw=False, **_options):
        """Shows values as results of the cell. raw=True: each is a bundle {mime: data} already."""
        for value in values:
            publish(value if raw and isinstance(value, dict) else bundle_of(value))

    return display
