"""What an answer tells of an exception: name, value, and a traceback that begins in the cell."""
import re
import traceback

from .results import clean_text

TRACEBACK_MAX_CHARS = 256 << 10
VALUE_MAX_CHARS = 64 << 10
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-_])")


class Failure(Exception):
    """An exception of user code on its way to the answer, told already: its text is made by user code, which an interrupt
    must still reach. text: its traceback if the engine has one."""

    def __init__(self, error, text=None):
        self.told = describe_failure(error, text)


def name_of(error):
    return clean_text(type(error).__name__)


def value_of(error):
    try:
        return shortened(clean_text(error), VALUE_MAX_CHARS)
    except BaseException:  # an interrupt, too
        return "<the text of the exception could not be made>"


def shortened(text, limit):
    if len(text) <= limit:
        return text
    half = limit // 2
    return "%s\n… %d characters left out …\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


def without_worker(trace):
    """The frames of a traceback that are not the worker's own; changes the traceback itself."""
    while trace is not None and is_ours(trace):
        trace = trace.tb_next
    at = trace
    while at is not None:
        while at.tb_next is not None and is_ours(at.tb_next):
            at.tb_next = at.tb_next.tb_next
        at = at.tb_next
    return trace


def is_ours(trace):
    return trace.tb_frame.f_globals.get("__package__") == __package__


def plain_traceback(error):
    try:
        lines = traceback.format_exception(type(error), error, without_worker(error.__traceback__))
        return "".join(lines).rstrip("\n")
    except BaseException as problem:
        return "%s (its traceback could not be made: %s)" % (name_of(error), name_of(problem))


def describe_failure(error, text=None):
    text = plain_traceback(error) if text is None else text
    return {
        "name": name_of(error),
        "value": value_of(error),
        "traceback": shortened(ESCAPES.sub("", clean_text(text)).rstrip("\n"), TRACEBACK_MAX_CHARS),
    }
