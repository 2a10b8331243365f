"""Runs cells in IPython's shell, without a terminal, history files, colours or a prompt."""
import importlib
import os
import shlex
import subprocess
import sys
import warnings
from asyncio import CancelledError

# The completer would import jedi, a tenth of the start, and nobody completes here.
without_jedi = "jedi" not in sys.modules
if without_jedi:
    sys.modules["jedi"] = None
from IPython.core.autocall import ExitAutocall  # noqa: E402
from IPython.core.displayhook import DisplayHook  # noqa: E402
from IPython.core.displaypub import DisplayPublisher  # noqa: E402
from IPython.core.formatters import DisplayFormatter  # noqa: E402
from IPython.core.interactiveshell import InteractiveShell  # noqa: E402
from traitlets.config import Config  # noqa: E402

if without_jedi:
    del sys.modules["jedi"]

from . import loop  # noqa: E402
from .failure import Failure, without_worker  # noqa: E402
from .figures import bundle_of_figure, show_open, shown  # noqa: E402
from .rich import text_of  # noqa: E402


class Exit(ExitAutocall):
    """exit, exit(), exit(3), quit()."""

    rewrite = False

    def __call__(self, code=None):
        raise SystemExit(code)


class Formatter(DisplayFormatter):
    """A value whose representation raises is shown as a text that says so; the cell goes on."""

    def format(self, value, include=None, exclude=None):
        shell = self.parent
        outer, shell.format_errors = shell.format_errors, []
        try:
            data, metadata = super().format(value, include=include, exclude=exclude)
            if "text/plain" not in data and shell.format_errors and (not include or "text/plain" in include):
                data["text/plain"] = text_of(value)
            return data, metadata
        finally:
            shell.format_errors = outer


class Hook(DisplayHook):
    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        self.shell.publish(format_dict)

    def finish_displayhook(self):
        pass


class Publisher(DisplayPublisher):
    def publish(self, data, metadata=None, source=None, **_options):
        self.shell.publish(data)

    def clear_output(self, wait=False):
        pass


class Shell(InteractiveShell):
    publish = None  # of Results
    pip = None
    format_errors = None  # a list while a value is formatted
    shown_traceback = None  # (exception, text)
    cancelled_at = None  # the traceback of a cell that awaited when it was interrupted

    def init_virtualenv(self):
        pass  # that python3 is the right one was decided already

    def init_display_formatter(self):
        self.display_formatter = Formatter(parent=self)
        self.configurables.append(self.display_formatter)

    def init_hooks(self):
        super().init_hooks()
        self.set_hook("show_in_pager", lambda shell, text, *_args, **_kwargs: shell.page(text), 99)

    def enable_gui(self, gui=None):
        pass  # %matplotlib asks for it

    def page(self, text):
        """What `name?` shows: text or a bundle."""
        self.publish(text if isinstance(text, dict) else {"text/plain": text})

    def showtraceback(self, exc_tuple=None, *args, **kwargs):
        error = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
        if isinstance(error, SystemExit):  # ends the process, unless it was of a script that %run has run
            self.shown_traceback = (error, "SystemExit: %s" % error)
            return
        if isinstance(error, CancelledError):
            self.cancelled_at = error.__traceback__
        elif isinstance(error, KeyboardInterrupt) and self.cancelled_at:  # of a loop; the cell's frames say more
            exc_tuple = (type(error), error, self.cancelled_at)
        if self.format_errors is not None and isinstance(error, Exception):
            self.format_errors.append(error)
        else:
            if error is not None:
                without_worker(error.__traceback__)
            super().showtraceback(exc_tuple, *args, **kwargs)

    def _showtraceback(self, etype, evalue, stb):
        self.shown_traceback = (evalue, self.InteractiveTB.stb2text(stb))

    def show_usage_error(self, exc):
        self.shown_traceback = (exc, "UsageError: %s" % exc)

    def system(self, command):
        """`!command`: it has the cell's own descriptors, so that its output comes as it is written."""
        command = self.var_expand(command, depth=1)
        try:
            os.getcwd()
        except OSError:
            os.chdir("/")
        child = subprocess.Popen(command, shell=True, executable=self.program, stdin=subprocess.DEVNULL)
        try:
            code = child.wait()
        except BaseException as error:
            child.kill()
            child.wait()
            raise error.with_traceback(None)
        importlib.invalidate_caches()
        self.user_ns["_exit_code"] = code

    system_piped = system_raw = system
    program = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"

    def run_pip(self, line):
        """%pip: installs for this context, and what it installs can be imported at once."""
        self.system("%s %s" % (shlex.quote(self.pip or "pip"), line))
        import site

        site.addsitedir(site.getusersitepackages())  # follows .pth files, of editable packages
        if self.user_ns["_exit_code"]:
            raise RuntimeError("pip ended with exit code %d" % self.user_ns["_exit_code"])


def configuration():
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.autocall = 0
    config.InteractiveShell.display_page = False
    return config


class IPythonEngine:
    name = "ipython"

    def __init__(self, results, environment):
        self.execution_count = 0
        Shell.publish = staticmethod(results.publish)
        Shell.pip = environment.pip
        self.shell = shell = Shell.instance(
            config=configuration(), displayhook_class=Hook, display_pub_class=Publisher)
        shell.loop_runner = loop.run
        shell.exiter = Exit(shell)
        shell.user_ns["exit"] = shell.user_ns["quit"] = shell.exiter
        shell.register_magic_function(shell.run_pip, "line", "pip")
        png = shell.display_formatter.formatters["image/png"]
        png.for_type_by_name("matplotlib.figure", "Figure", png_of_value)
        sys.modules["__main__"] = shell.user_module
        warnings.filterwarnings("ignore", message="To exit: use 'exit'")

    def run(self, code):
        """Raises Failure, and SystemExit as it came."""
        shell = self.shell
        self.execution_count = shell.execution_count
        shell.shown_traceback = shell.cancelled_at = None
        try:
            result = shell.run_cell(code, store_history=True)
        finally:
            show_open()
        error = result.error_before_exec or result.error_in_exec
        if isinstance(error, SystemExit):
            raise error
        told, text = shell.shown_traceback or (None, None)
        if error is not None:
            raise Failure(error, text if told is error else None)
        if told is not None:  # of a script that %run has run: the shell went on
            raise Failure(told, text)


def png_of_value(figure):
    png = bundle_of_figure(figure).get("image/png")
    if png is not None:  # else the end of the cell tells why
        shown.append(figure)
    return png
