"""Text that is still arriving on standard input."""

import asyncio
import codecs
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from io import BufferedReader
from typing import cast

from tutti.errors import InvalidInput

PIECE_BYTES = 1 << 16  # largest read


class ArrivingText:
    """UTF-8 text from a pipe, read once, in pieces as they arrive."""

    def __init__(self, file: BufferedReader) -> None:
        self.text = ""  # all that has arrived so far
        self._file = file

    @classmethod
    def of(cls, words: Sequence[str]) -> "ArrivingText":
        """Standard input, if the only argument is -."""
        if list(words) != ["-"]:
            raise InvalidInput("--live reads standard input: tutti speak --live -", param="text")
        return cls(cast(BufferedReader, sys.stdin.buffer))

    async def pieces(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        arriving: asyncio.Queue[bytes] = asyncio.Queue()

        def read() -> None:
            data = b"more"
            while data:
                data = self._file.read1(PIECE_BYTES)  # what is there, without waiting for more
                try:
                    loop.call_soon_threadsafe(arriving.put_nowait, data)
                except RuntimeError:  # the loop is closed
                    return

        # A daemon thread: a pipe that stays open must not keep the command from ending.
        threading.Thread(target=read, name="stdin", daemon=True).start()
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        n_bytes = 0
        while True:
            data = await arriving.get()
            try:
                piece = decoder.decode(data, final=not data)
            except UnicodeDecodeError as exc:
                raise InvalidInput(f"standard input is not UTF-8 text (near byte {n_bytes})", param="text") from exc
            n_bytes += len(data)
            self.text += piece
            yield piece
            if not data:
                return
