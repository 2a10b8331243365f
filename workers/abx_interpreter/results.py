"""What a cell shows: bundles {mime: data} that go to the channel as they come, as strict JSON and within bounds."""
import math
from base64 import b64encode

from .cell import Held
from .channel import encode_json

RESULT_MAX_BYTES = 8 << 20  # of JSON in UTF-8
CELL_MAX_BYTES = 16 << 20
CELL_MAX_RESULTS = 1000
TEXT_KEPT_CHARS = 1 << 20  # of the text of a result that is too large
DEPTH_MAX = 48  # of JSON in a result: the server's parser stops at 64


def clean_text(text):
    """Surrogate pairs are joined and lone surrogates replaced: what is left is valid UTF-8."""
    text = str(text)
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean_json(value, depth=0):
    """A copy that strict JSON can say: NaN and infinities are null, keys text, other objects their str()."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int):
        return int(value) if -(1 << 63) <= value < 1 << 64 else float_or_none(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if depth >= DEPTH_MAX:
        return "…"
    if isinstance(value, dict):
        return {clean_text(key): clean_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_json(item, depth + 1) for item in value]
    if hasattr(value, "tolist"):  # numpy
        return clean_json(value.tolist(), depth + 1)
    return clean_text(value)


def float_or_none(value):
    try:
        return float(value)
    except OverflowError:
        return None


def clean_bundle(bundle):
    """Binary data as base64, JSON as it is, everything else as text."""
    clean = {}
    for mime, data in bundle.items():
        if data is None:
            continue
        if mime == "application/json" or mime.endswith("+json"):
            data = clean_json(data)
        elif isinstance(data, (bytes, bytearray, memoryview)):
            data = bytes(data)
            if mime.startswith("text/") or mime == "image/svg+xml":
                data = data.decode("utf-8", "replace")
            else:
                data = b64encode(data).decode("ascii")
        else:
            data = clean_text("".join(data) if isinstance(data, list) else data)
        clean[clean_text(mime)] = data
    return clean


def bytes_of(text):
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def failed_repr(value, error):
    """What stands for a value whose repr raised."""
    return "<%s object whose representation failed: %s>" % (type(value).__name__, describe(error))


def describe(error):
    try:
        return "%s: %s" % (type(error).__name__, error)
    except Exception:
        return type(error).__name__


class Results:
    """Publishes for the cell at hand; what comes when none runs has no call to belong to, and is dropped."""

    def __init__(self, channel, interrupts, streams):
        self.channel, self.interrupts, self.streams = channel, interrupts, streams

    def publish(self, bundle):
        cell = self.interrupts.cell
        if cell is None or cell.finished or cell.forked or not bundle:
            return
        try:
            clean = clean_bundle(bundle)
            line = encode_json(clean)
        except Exception as error:
            clean = {"text/plain": "<a result that could not be encoded: %s>" % clean_text(describe(error))}
            line = encode_json(clean)
        size = bytes_of(line)
        if size > RESULT_MAX_BYTES:
            cell.truncated = True
            text = clean.get("text/plain", "<a result of %d bytes>" % size)
            line = encode_json({"text/plain": text[:TEXT_KEPT_CHARS]})
            size = bytes_of(line)
        with Held(cell):
            if cell.results == CELL_MAX_RESULTS or cell.results_bytes + size > CELL_MAX_BYTES:
                cell.truncated = True
                return
            cell.results += 1
            cell.results_bytes += size
            self.streams.flush()
            self.channel.notice(cell.id, "result", line)
