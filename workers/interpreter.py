"""A Python context of abxd: runs cells that come as JSON-RPC lines over descriptor 3, one by one, in one namespace.

Started as `python3 interpreter.py` by the code route. IPython's shell runs the cells where it can be imported, by the
python3 of PATH or by the system's; else the plain engine does, which needs the standard library alone."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SYSTEM_PYTHON = "/usr/bin/python3"
CHOOSING = "ABX_INTERPRETER_CHOOSING"  # holds the first python's path while the system's one looks for IPython


def choose_python():
    """Replaces this process by the system's python if that one has IPython and this one has not."""
    from importlib.util import find_spec

    first = os.environ.pop(CHOOSING, None)
    if first == "" or find_spec("IPython"):
        return
    if first:  # the system's has none either: back to the client's own, which is not to ask again
        target, mark = first, ""
    elif os.access(SYSTEM_PYTHON, os.X_OK) and not os.path.samefile(sys.executable, SYSTEM_PYTHON):
        target, mark = SYSTEM_PYTHON, sys.executable
    else:
        return
    os.environ[CHOOSING] = mark
    try:
        os.execv(target, [target, *sys.argv])
    except OSError:
        del os.environ[CHOOSING]


def main():
    choose_python()
    if not sys.path or sys.path[0] != HERE:  # PYTHONSAFEPATH
        sys.path.insert(0, HERE)
    from abx_interpreter import worker

    worker.serve(channel_fd=3)


if __name__ == "__main__":
    main()
