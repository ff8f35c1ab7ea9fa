"""A text that is still being written: who writes adds to it, who speaks takes from it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from tutti.server.request import SpeechRequest
from tutti.text.incremental import Delta


class Written:
    """One text: its pieces as they come, to its end."""

    def __init__(self, ask: SpeechRequest, pause_s: float | None = None, *, with_words: bool = False) -> None:
        """`ask` says how it is spoken; what text it has itself is not said."""
        self.ask = ask
        self.pause_s = pause_s
        self.with_words = with_words
        self.n_characters = 0
        self.ended = False
        self._pieces: deque[Delta] = deque()
        self._changed = asyncio.Event()

    def add(self, piece: Delta) -> None:
        if piece == "" or (piece is None and self._pieces and self._pieces[-1] is None):
            return  # says nothing that was not said
        self.n_characters += len(piece or "")
        self._pieces.append(piece)
        self._changed.set()

    def end(self) -> None:
        self.ended = True
        self._changed.set()

    async def pieces(self) -> AsyncIterator[Delta]:
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if self.ended:
                return
            self._changed.clear()
            await self._changed.wait()
