"""Cancel the work for a request when its client disconnects."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

Result = TypeVar("Result")


class ClientDisconnected(Exception):
    """The client closed the connection. Not a failure of the server."""


async def cancel_on_disconnect(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of `work`, or cancel it once the client disconnects. The request's body must have been read.

    The work runs in the caller's task, as within `asyncio.timeout`: a task of its own would cost more than the watch.
    """
    task = asyncio.current_task()
    assert task is not None
    n_cancelled = task.cancelling()  # before this
    is_working, has_left = True, False

    def leave(watching: asyncio.Task[None]) -> None:
        nonlocal has_left
        if watching.cancelled():
            return
        watching.exception()  # retrieve it: a connection that cannot be read has been left, too
        if is_working:
            has_left = True
            task.cancel()

    watching = asyncio.create_task(_wait_for_disconnect(receive))
    watching.add_done_callback(leave)
    try:
        return await work
    except asyncio.CancelledError:
        if has_left and task.uncancel() <= n_cancelled:
            raise ClientDisconnected from None
        raise
    finally:
        is_working = False
        watching.cancel()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
