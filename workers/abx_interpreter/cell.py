"""One call of execute while it runs, and how it is interrupted: by its deadline, by `cancel`, by SIGINT.

The watcher thread asks for an interrupt and sends WAKE to the main thread, whose handler raises KeyboardInterrupt, but
only while user code may run (`open`) and not while the worker writes (`held`): then it is raised right afterwards. WAKE
is no SIGINT, so that os.system(), which ignores SIGINT while it waits, and user code with a handler of its own do not
lose it; children of the cell get SIGINT, as from a terminal."""
import signal
from _thread import get_ident
from os import getpgrp, getpgid, getpid, kill, listdir
from time import monotonic

WAKE = signal.SIGRTMIN + 9
AGAIN_S = 0.5  # code that swallows an interrupt gets the next one
PATIENCE = 4  # interrupts, before children of the cell that ignore SIGINT are killed


class Cell:
    def __init__(self, call_id, timeout_ms):
        self.id = call_id
        self.timeout_ms = timeout_ms
        self.deadline = None  # of the next interrupt, monotonic seconds
        self.begun = False
        self.finished = False
        self.timed_out = False
        self.cancelled = False
        self.interrupts = 0  # asked for by the watcher
        self.wanted = False  # the handler of WAKE has one of these to raise
        self.open = False
        self.held = 0
        self.pending = False
        self.forked = False
        self.earlier = ()  # children that an earlier cell left running
        self.results = 0
        self.results_bytes = 0
        self.truncated = False

    def begin(self):
        self.earlier = frozenset(children_of(getpid()))
        if self.timeout_ms:
            self.deadline = monotonic() + self.timeout_ms / 1000
        self.begun = True

    def reason(self):
        return "the time-out of %d ms is over" % self.timeout_ms if self.timed_out else ""

    # The main thread, while user code may be running

    def __enter__(self):
        """Interrupts may come from here on."""
        self.open = True
        if self.wanted:  # cancelled before it began
            self.wanted = False
            raise KeyboardInterrupt(self.reason())

    def __exit__(self, *exc_info):
        self.close()

    def close(self):
        """No interrupt comes any more. One that comes right now counts for nothing: the cell is over."""
        while self.open:
            try:
                self.open = False
            except KeyboardInterrupt:
                pass


MAIN_THREAD = get_ident()


class Held:
    """`with Held(cell):` an interrupt waits until the worker has written what it writes. In other threads: nothing."""

    def __init__(self, cell):
        self.cell = cell if get_ident() == MAIN_THREAD else None

    def __enter__(self):
        if self.cell:
            self.cell.held += 1

    def __exit__(self, exc_type, exc, trace):
        cell = self.cell
        if cell:
            cell.held -= 1
            if cell.pending and not cell.held:
                cell.pending = False
                if cell.open and exc_type is None:
                    raise KeyboardInterrupt(cell.reason())


class Interrupts:
    """Who is interrupted: the cell at hand. One of a worker."""

    def __init__(self):
        self.cell = None
        signal.signal(WAKE, self.on_signal)
        signal.signal(signal.SIGINT, self.on_signal)

    def on_signal(self, number, _frame):
        cell = self.cell
        if cell is None or not cell.open:
            return
        if number == WAKE:
            if not cell.wanted:  # of a cell that is over
                return
            cell.wanted = False
        if cell.held:
            cell.pending = True
            return
        raise KeyboardInterrupt(cell.reason())

    # The watcher thread

    def pause_s(self):
        """How long the watcher may sleep; None: until something comes."""
        cell = self.cell
        if cell is None or cell.finished:
            return None
        if not cell.begun:
            return 0.05
        return None if cell.deadline is None else max(0.0, cell.deadline - monotonic())

    def tick(self):
        cell = self.cell
        if cell is None or cell.finished or cell.deadline is None or monotonic() < cell.deadline:
            return
        if not cell.cancelled:
            cell.timed_out = True
        self.interrupt(cell)

    def cancel(self, call_id):
        cell = self.cell
        if cell is not None and cell.id == call_id and not cell.finished:
            cell.cancelled = True
            self.interrupt(cell)

    def interrupt(self, cell):
        cell.interrupts += 1
        cell.deadline = monotonic() + AGAIN_S
        cell.wanted = True
        try:
            signal.pthread_kill(MAIN_THREAD, WAKE)
        except OSError:
            pass
        if cell.begun:
            number = signal.SIGINT if cell.interrupts < PATIENCE else signal.SIGKILL
            for pid in children_but(cell.earlier):
                try:
                    kill(pid, number)
                except OSError:
                    pass


def children_but(earlier):
    """Descendants in our process group: what Ctrl-C would reach, without those children and what they started."""
    group, found, parents = getpgrp(), [], [getpid()]
    while parents:
        for pid in children_of(parents.pop()):
            if pid not in earlier:
                parents.append(pid)
                try:
                    if getpgid(pid) == group:
                        found.append(pid)
                except OSError:
                    pass
    return found


def children_of(pid):
    found = []
    try:
        for task in listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, task), "rb") as file:
                found.extend(int(word) for word in file.read().split())
    except OSError:
        pass
    return found
