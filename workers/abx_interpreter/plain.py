"""Runs cells with the standard library alone: compile, the value of a last expression, top-level await."""
import __future__
import ast
import builtins
import linecache
import sys
import types
from inspect import CO_COROUTINE

from .failure import Failure, plain_traceback
from .figures import show_open
from .rich import bundle_of, display_with

FUTURES = 0
for feature in __future__.all_feature_names:
    FUTURES |= getattr(__future__, feature).compiler_flag


def leave(code=None):
    """exit and quit; those of the site module would close standard input first."""
    raise SystemExit(code)


class PlainEngine:
    name = "plain"

    def __init__(self, results, _environment):
        self.publish = results.publish
        self.execution_count = 0
        self.flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        module = types.ModuleType("__main__")
        module.__builtins__ = builtins
        sys.modules["__main__"] = module
        self.names = module.__dict__
        self.names.update(display=display_with(self.publish), exit=leave, quit=leave)
        sys.displayhook = self.show

    def show(self, value):
        if value is None:
            return
        self.publish(bundle_of(value))
        self.names["_"] = value

    def run(self, code):
        """Raises Failure, and SystemExit as it came."""
        self.execution_count += 1
        name = "<cell %d>" % self.execution_count
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        try:
            body, last = self.compile(code, name)
            if body is not None:
                self.evaluate(body)
            if last is not None:
                sys.displayhook(self.evaluate(last))
        except SystemExit:
            raise
        except BaseException as error:
            raise Failure(error, self.traceback(error))
        finally:
            show_open()

    def compile(self, code, name):
        tree = ast.parse(code, name)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
            last = ast.Expression(tree.body.pop().value)
        body = self.compiled(tree, name, "exec") if tree.body else None
        return body, last and self.compiled(last, name, "eval")

    def compiled(self, tree, name, mode):
        code = compile(tree, name, mode, self.flags, True)
        self.flags |= code.co_flags & FUTURES  # `from __future__ import …` holds for later cells
        return code

    def evaluate(self, code):
        value = eval(code, self.names)
        if code.co_flags & CO_COROUTINE:
            from . import loop

            value = loop.run(value)
        return value

    @staticmethod
    def traceback(error):
        if isinstance(error, SyntaxError) and error.filename and error.filename.startswith("<cell "):
            error.__traceback__ = None  # only frames of the compiler
        return plain_traceback(error)
