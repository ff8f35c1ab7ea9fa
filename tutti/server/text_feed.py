"""A text that arrives in pieces: the connection adds them, the engine takes them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from tutti.server.request import SpeechRequest
from tutti.text.incremental import Delta


class TextFeed:
    """A queue of the pieces of one text, until its end."""

    def __init__(self, request: SpeechRequest, pause_s: float | None = None) -> None:
        """`request` says how to speak; its own text is used only where the caller does not read `pieces`."""
        self.request = request
        self.pause_s = pause_s
        self.n_characters = 0
        self.n_samples, self.n_sent = 0, 0  # of its audio that was sent, and in how many pieces
        self.ended = False
        self.limit: int | None = None  # nothing behind so many characters is spoken
        self._pieces: deque[Delta] = deque()
        self._changed = asyncio.Event()

    def add(self, piece: Delta) -> None:
        if piece == "" or (piece is None and self._pieces and self._pieces[-1] is None):
            return  # an empty text or a second flush changes nothing
        self.n_characters += len(piece or "")
        self._pieces.append(piece)
        self._changed.set()

    def end(self, limit: int | None = None) -> None:
        self.ended, self.limit = True, limit
        self._changed.set()

    async def pieces(self) -> AsyncIterator[Delta]:
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if self.ended:
                return
            self._changed.clear()
            await self._changed.wait()
