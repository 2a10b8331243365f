"""What Jupyter's own client takes for the cell 1+1: COUNT cells on one warm kernel, the median in milliseconds, and
before it the time from nothing to the first result. Run by script/bench."""
import logging
import os
import statistics
import sys
import time

from jupyter_client.manager import start_new_kernel


def cell(client):
    begin = time.perf_counter()
    reply = client.execute_interactive("1+1", output_hook=lambda message: None, timeout=30)
    assert reply["content"]["status"] == "ok", reply
    return (time.perf_counter() - begin) * 1000


logging.disable()
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # it warns on each start
begin = time.perf_counter()
manager, client = start_new_kernel(kernel_name="python3")
cell(client)
first = (time.perf_counter() - begin) * 1000
times = [cell(client) for _ in range(int(sys.argv[1]))]
client.stop_channels()
manager.shutdown_kernel(now=True)
print(f"{first:.1f} {statistics.median(times):.2f}", flush=True)
os._exit(0)  # its threads complain at an ordinary exit
