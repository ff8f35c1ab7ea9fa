"""An event loop in its own thread, so that blocking code can use async code."""

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
        self._lock = threading.Lock()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="tutti-client", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the loop."""
        if os.getpid() != self._pid:
            work.close()
            raise ClientClosed("this client was created before a fork; create one in each process")
        with self._lock:  # work is either cancelled by `close` or refused here, never left waiting
            if not self._closing:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        raise ClientClosed("this client is closed")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result. An interrupted wait cancels the coroutine."""
        future = self.submit(work)
        try:
            return future.result()
        except CancelledError:
            raise ClientClosed("this client was closed during the call") from None
        except BaseException:
            future.cancel()
            raise

    def close(self, final: Coroutine[Any, Any, None]) -> None:
        """Cancel what runs, await `final`, then end the thread."""
        with self._lock:
            if self._closing or os.getpid() != self._pid:
                final.close()
                return
            self._closing = True
            ended = asyncio.run_coroutine_threadsafe(_shut_down(final), self._loop)
            ended.add_done_callback(lambda _: self._loop.call_soon_threadsafe(self._loop.stop))
        if threading.current_thread() is not self._thread:  # the garbage collector may run in any thread
            self._thread.join()
            ended.result()

    def _serve(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()


async def _shut_down(final: Coroutine[Any, Any, None]) -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    await final
    await asyncio.sleep(0)  # transports close in the next iteration of the loop
    await asyncio.get_running_loop().shutdown_default_executor()
