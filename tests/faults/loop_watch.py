"""How long the event loop of a server is held, as computing of its thread: other work on the machine does not count."""

import asyncio
import time
from pathlib import Path

import numpy as np

TICK_S = 0.002  # between two looks; a hold is measured with at most so much more


class LoopWatch:
    """A file that a server and its observer share: the longest that the loop was held since the last reset."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(8))
        self._held_s = np.memmap(path, np.float64, "r+", shape=(1,))

    def reset(self) -> None:
        self._held_s[0] = 0.0

    @property
    def held_ms(self) -> float:
        return 1000 * float(self._held_s[0])

    async def watch(self) -> None:
        """In the server: note how much its thread computes until a timer of the event loop has its turn again."""
        before_s = time.thread_time()
        while True:
            await asyncio.sleep(TICK_S)
            now_s = time.thread_time()
            self._held_s[0] = max(self._held_s[0], now_s - before_s)
            before_s = now_s
