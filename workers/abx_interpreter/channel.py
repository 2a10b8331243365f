"""The worker's end of the channel: JSON-RPC 2.0, one message a line. Any thread may send; the watcher reads."""
import fcntl
import json
from _thread import allocate_lock
from os import _exit, close, read, write

HIGH_FD = 1000  # user code closes low numbers at times, os.closerange(3, 100)
READ_BYTES = 1 << 20

encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
decode_json = json.JSONDecoder().decode


def high_dup(fd):
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    except OSError:  # fewer descriptors are allowed
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100)


class Channel:
    def __init__(self, number):
        self.fd = high_dup(number)
        close(number)
        self.lock = allocate_lock()
        self.rest = b""

    def send(self, line):
        """Sends one message that is encoded already. A broken channel ends the process: nobody is left to work for."""
        data = memoryview(line.encode("utf-8", "replace") + b"\n")
        with self.lock:
            try:
                while data:
                    data = data[write(self.fd, data) :]
            except OSError:
                _exit(1)

    def notice(self, call_id, method, data):
        """A notification; data is JSON text."""
        self.send('{"jsonrpc":"2.0","method":"%s","params":{"id":%d,"data":%s}}' % (method, call_id, data))

    def answer(self, call_id, result):
        self.send('{"jsonrpc":"2.0","id":%d,"result":%s}' % (call_id, encode_json(result)))

    def refuse(self, call_id, message, number=-32000, **data):
        error = {"code": number, "message": message, "data": data}
        self.send('{"jsonrpc":"2.0","id":%d,"error":%s}' % (call_id, encode_json(error)))

    def receive(self):
        """The messages that have come, after poll said so; None at the end of file."""
        try:
            data = read(self.fd, READ_BYTES)
        except OSError:
            return None
        if not data:
            return None
        if b"\n" not in data:
            self.rest += data
            return []
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        return [decode_json(line.decode("utf-8")) for line in lines]

    def forget(self):
        """In a forked child: the channel is the parent's."""
        self.lock = allocate_lock()
        try:
            close(self.fd)
        except OSError:
            pass
        self.fd = -1
