"""An event loop in a thread of its own, so that code that waits can use code that does not."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from tutti.client.errors import ClientClosed

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for other threads until it is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tutti-client", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if os.getpid() != self._pid:
            work.close()
            raise ClientClosed("this client was made before a fork; make one in each process")
        if self._loop.is_closed() or not self._thread.is_alive():
            work.close()
            raise ClientClosed("this client is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result. Who stops waiting stops the work."""
        future = self.submit(work)
        try:
            return future.result()
        except CancelledError:
            raise ClientClosed("this client was closed during the call") from None
        except BaseException:
            future.cancel()
            raise

    def forget(self, work: Coroutine[Any, Any, object]) -> None:
        """Runs it where that is still possible; nobody waits for it."""
        try:
            self.submit(work)
        except ClientClosed:
            return  # what it would close is closed

    def close(self, last: Coroutine[Any, Any, None] | None = None) -> None:
        """Ends what runs, does the last thing, then ends the thread."""
        if self._loop.is_closed() or os.getpid() != self._pid:
            if last:
                last.close()
            return
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(_end_all(last), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()


async def _end_all(last: Coroutine[Any, Any, None] | None) -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    if last:
        await last
        await asyncio.sleep(0)  # transports close in the loop's next round
    await asyncio.get_running_loop().shutdown_default_executor()
