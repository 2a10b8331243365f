"""The one event loop of top-level await, made when a cell first needs it."""
import asyncio

CANCEL_S = 1.0  # for a cell's own clean-up after an interrupt

loop = None
abandoned = []  # kept, for asyncio complains of a pending task that is collected


def run(coroutine):
    global loop
    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    task = loop.create_task(coroutine)
    try:
        return loop.run_until_complete(task)
    except BaseException as error:
        # An interrupt leaves by the loop, not by the task: what is left of the cell must not go on in a later one.
        if task.done():
            raise
        try:
            task.cancel()
            loop.run_until_complete(asyncio.wait([task], timeout=CANCEL_S))
        finally:
            if not task.done():  # it does not let itself be cancelled: its loop never runs again
                abandoned.append((loop, task))
                loop = None
        raise error.with_traceback(where_it_was(task))


def where_it_was(task):
    """The cell's own frames, instead of the loop's."""
    try:
        if task.done():
            task.result()
    except BaseException as cancelled:
        return cancelled.__traceback__
    return None
