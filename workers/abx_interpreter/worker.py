"""The worker itself: the main thread runs one call after another, the watcher reads the channel and keeps the time."""
import atexit
import builtins
import faulthandler
import os
import select
import sys
from _thread import start_new_thread
from queue import SimpleQueue
from time import sleep

from . import figures
from .cell import Cell, Interrupts
from .channel import Channel
from .environment import Environment
from .failure import Failure, describe_failure
from .results import Results
from .streams import Streams, refuse_debugger, refuse_input

BROKEN = 70
STARTS = frozenset(("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.spawn"))
LEAVE_S = 2.0  # for the exit handlers of user code when the channel has closed
exit_now = os._exit


class Worker:
    def __init__(self, channel_fd):
        self.channel = Channel(channel_fd)
        self.calls = SimpleQueue()
        self.interrupts = Interrupts()
        self.forked = False
        self.ready = False
        self.streams = Streams()
        start_new_thread(self.watch, ())
        self.results = Results(self.channel, self.interrupts, self.streams)
        self.environment = Environment()
        self.prepare_process()
        self.engine = self.make_engine()
        # Cells import from the working directory, as in any interactive shell. The engine must not: a client's random.py
        # there would be taken for the library's.
        sys.path[0] = ""
        self.methods = {"open": self.open, "execute": self.execute}
        self.ready = True

    def prepare_process(self):
        faulthandler.enable(file=self.streams.saved[2], all_threads=False)
        figures.watch_imports(self.results.publish)
        builtins.input = refuse_input
        sys.breakpointhook = refuse_debugger
        sys.argv = [""]
        os._exit = self.exit_flushed
        sys.addaudithook(self.on_event)
        os.register_at_fork(before=self.before_fork, after_in_parent=self.after_fork, after_in_child=self.in_child)

    def on_event(self, event, _args):
        """What was printed before a child starts comes before what the child prints."""
        if event in STARTS:
            self.streams.flush()

    def make_engine(self):
        from importlib.util import find_spec

        if find_spec("IPython"):
            try:
                from .ipython import IPythonEngine

                return IPythonEngine(self.results, self.environment)
            except Exception as error:  # one that is too old, or broken
                sys.stderr.write("IPython could not be used: %s\n" % error)
        from .plain import PlainEngine

        return PlainEngine(self.results, self.environment)

    # The watcher thread

    def watch(self):
        try:
            self.keep_watch()
        finally:  # also where user code has broken what the worker stands on: a worker that hears nothing must end
            exit_now(BROKEN)

    def keep_watch(self):
        ready = select.poll()
        ready.register(self.channel.fd, select.POLLIN)
        while True:
            pause_s = self.interrupts.pause_s()
            if ready.poll(None if pause_s is None else pause_s * 1000 + 1):
                messages = self.channel.receive()
                if messages is None:
                    break
                for message in messages:
                    self.take(message)
            self.interrupts.tick()
        cell = self.interrupts.cell
        if cell is None or cell.finished:  # idle: exit handlers of user code may run
            self.calls.put(None)
            sleep(LEAVE_S)
        exit_now(0)

    def take(self, message):
        params = message.get("params") or {}
        if message.get("method") == "cancel":
            self.interrupts.cancel(params.get("id"))
        else:
            if message.get("method") == "execute":
                cell = Cell(message["id"], params.get("timeout_ms") or 0)
                if self.ready:
                    cell.begin()
                self.interrupts.cell = cell
                self.streams.running.set()
            self.calls.put((message["id"], message.get("method"), params))

    # Forks of user code

    def before_fork(self):
        self.streams.flush()
        self.streams.flushing.acquire(timeout=1)

    def after_fork(self):
        if self.streams.flushing.locked():
            self.streams.flushing.release()

    def in_child(self):
        self.forked = True
        self.streams.forget()
        self.channel.forget()
        if self.interrupts.cell:
            self.interrupts.cell.forked = True

    # The main thread

    def serve(self):
        while True:
            try:
                call = self.calls.get()
                if call is None:
                    self.leave(0)
                call_id, name, params = call
                method = self.methods.get(name)
                if method is None:
                    self.channel.refuse(call_id, "no such method", -32601)
                else:
                    method(call_id, params)
            except KeyboardInterrupt:  # between cells nobody is interrupted
                continue

    def open(self, call_id, params):
        refusal = self.enter(params, self.environment.replace)
        if refusal:
            self.channel.refuse(call_id, **refusal)
            return
        version = "%d.%d.%d" % sys.version_info[:3]
        self.channel.answer(call_id, {"engine": self.engine.name, "version": version})

    def enter(self, params, apply):
        """Takes over cwd and env of a call. What to refuse it with, or None."""
        try:
            if params.get("cwd"):
                os.chdir(params["cwd"])
        except OSError as error:
            code = "file_not_found" if isinstance(error, FileNotFoundError) else "invalid_request"
            return {"message": "cwd: %s" % error.strerror, "code": code, "field": "cwd"}
        try:
            apply(params.get("env") or {})
        except (ValueError, OSError) as error:
            return {"message": str(error), "code": "invalid_request", "field": "env"}
        return None

    def execute(self, call_id, params):
        cell = self.interrupts.cell
        refusal = self.enter(params, self.environment.change)
        if refusal:
            self.finish(cell)  # before the answer, which brings the next cell
            self.channel.refuse(call_id, **refusal)
            return
        self.streams.repair()
        if not cell.begun:  # it has waited for the engine
            cell.begin()
        error = self.run(cell, params.get("code", ""))
        cell.close()
        if self.forked:  # a child of user code that came back out of its cell
            self.end_child(error)
        if isinstance(error, SystemExit):
            self.leave(error.code)
        self.finish(cell)
        answer = {
            "status": "timeout" if cell.timed_out else "error" if error else "ok",
            "execution_count": self.engine.execution_count,
            "error": self.failure(cell, error),
            "truncated": cell.truncated,
        }
        self.channel.answer(call_id, answer)

    def run(self, cell, code):
        """What the cell raised, or None."""
        try:
            with cell:
                self.engine.run(code)
            return None
        except BaseException as error:
            return error

    def failure(self, cell, error):
        if error is None:
            return None
        told = error.told if isinstance(error, Failure) else describe_failure(error)
        if cell.timed_out and not told["value"]:
            told["value"] = cell.reason()
        return told

    def finish(self, cell):
        cell.finished = True
        self.streams.running.clear()
        self.streams.flush()
        if sys.gettrace() is not None:
            sys.settrace(None)
        if sys.getprofile() is not None:
            sys.setprofile(None)

    # Ends

    def leave(self, code):
        """As the interpreter ends for SystemExit, but that threads are not waited for."""
        if code is not None and not isinstance(code, int):
            sys.stderr.write("%s\n" % code)
            code = 1
        try:
            atexit._run_exitfuncs()
        except BaseException as error:
            sys.stderr.write("%s\n" % error)
        self.exit_flushed((code or 0) & 0xFF)

    def end_child(self, error):
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
            self.exit_flushed(code & 0xFF)
        if error is not None:
            told = self.failure(self.interrupts.cell, error)
            self.streams.err.write(told["traceback"] + "\n")
        self.exit_flushed(1 if error else 0)

    def exit_flushed(self, status):
        """os._exit for user code: what it has printed counts, as on a terminal."""
        self.streams.flush()
        exit_now(status)


def serve(channel_fd):
    worker = Worker(channel_fd)
    try:
        worker.serve()
    except BaseException:
        try:
            sys.excepthook(*sys.exc_info())
            worker.streams.flush()
        finally:
            exit_now(BROKEN)
