"""Standard streams of cells. Descriptors 1 and 2 are the pipes that the server reads; what children, threads and C code
write there needs nothing from here. Text is buffered, for a write of its own costs a line 6 µs, and a thread flushes
it within TICK_S."""
import io
import os
import sys
from _thread import allocate_lock, start_new_thread
from select import POLLOUT, poll
from threading import Event
from time import sleep

from .channel import high_dup

TICK_S = 0.02
IDLE_TICK_S = 0.25  # for threads that go on after their cell
BUFFER_BYTES = 4096  # PIPE_BUF: a pipe that is writable takes as much without blocking


def open_output(fd):
    name = "<stdout>" if fd == 1 else "<stderr>"
    raw = io.FileIO(fd, "wb", closefd=False)
    raw.name = name
    return io.TextIOWrapper(
        io.BufferedWriter(raw, BUFFER_BYTES), encoding="utf-8", errors="backslashreplace", line_buffering=True,
        write_through=True)


class NoInput(io.TextIOBase):
    """sys.stdin: reading fails at once, instead of an end of file that looks like an answer."""

    encoding = "utf-8"
    errors = "strict"
    name = "<stdin>"
    mode = "r"

    def read(self, *_args):
        raise EOFError("a cell has no standard input: pass values in the code, or as environment variables")

    readline = readlines = __next__ = read

    @property
    def buffer(self):
        return self

    def readable(self):
        return True

    def fileno(self):
        return 0  # for subprocess.run(stdin=sys.stdin): /dev/null

    def isatty(self):
        return False

    def close(self):
        pass


def refuse_input(prompt=""):
    raise EOFError("input() is not available: a cell has no standard input")


def refuse_debugger(*_args, **_kwargs):
    raise RuntimeError("breakpoint() is not available: a cell has no standard input")


class Streams:
    def __init__(self):
        self.saved = {fd: high_dup(fd) for fd in (1, 2)}
        self.out, self.err = open_output(1), open_output(2)
        self.stdin = NoInput()
        self.fflush = None
        self.running = Event()
        self.flushing = allocate_lock()  # held across a fork, so that no child begins with a locked buffer
        sys.stdout, sys.stderr, sys.stdin = self.out, self.err, self.stdin
        sys.__stdout__, sys.__stderr__, sys.__stdin__ = self.out, self.err, self.stdin
        start_new_thread(self.flush_for_ever, ())

    def repair(self):
        """Before a cell: gives back what an earlier one closed or broke. What it replaced by something that works stays."""
        for fd in (1, 2):
            try:
                os.fstat(fd)
            except OSError:
                os.dup2(self.saved[fd], fd)
        self.out = self.repaired("stdout", self.out, 1)
        self.err = self.repaired("stderr", self.err, 2)
        if getattr(sys, "stdin", None) is not self.stdin:
            sys.stdin = self.stdin

    def repaired(self, name, ours, fd):
        if ours.closed:
            ours = open_output(fd)
        theirs = getattr(sys, name, None)
        if theirs is not ours and (not hasattr(theirs, "write") or getattr(theirs, "closed", False)):
            setattr(sys, name, ours)
        if not ours.line_buffering:  # of a short cell every line is out, even when a signal kills it
            ours.reconfigure(line_buffering=True)
        return ours

    def forget(self):
        """In a forked child, which has no thread that flushes."""
        self.flushing = allocate_lock()
        for stream in (self.out, self.err):
            if not stream.closed:
                stream.reconfigure(line_buffering=True)

    def flush(self):
        for stream in (self.out, self.err):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
        if "ctypes" in sys.modules:  # printf of C code
            try:
                if self.fflush is None:
                    self.fflush = sys.modules["ctypes"].CDLL(None).fflush
                self.fflush(None)
            except Exception:
                pass

    def flush_for_ever(self):
        while True:
            started = self.running.wait(IDLE_TICK_S)
            if started:
                sleep(TICK_S)
            for fd, stream in ((1, self.out), (2, self.err)):
                try:
                    # A blocked flush would hold the buffer's lock, and a print that waits for it hears no signal.
                    ready = poll()
                    ready.register(fd, POLLOUT)
                    if ready.poll(0):
                        with self.flushing:
                            if started and stream.line_buffering:
                                stream.reconfigure(line_buffering=False)
                            stream.flush()
                except Exception:
                    pass

