"""Standard input as it is being written, and what it came to in the end."""

import asyncio
import codecs
import sys
import threading
from collections.abc import AsyncIterator
from typing import BinaryIO, Protocol, cast

from tutti.errors import InvalidInput

PIECE_BYTES = 1 << 16


class Flowing(Protocol):
    """A file that gives what is there, without waiting until it is full."""

    def read1(self, size: int, /) -> bytes: ...


class Piped:
    """Text from a pipe: read once, in pieces as they come."""

    def __init__(self, file: BinaryIO) -> None:
        self.text = ""  # that has come so far
        self._file = cast(Flowing, file)

    @classmethod
    def of(cls, name: str) -> "Piped":
        """What the command line calls -."""
        if name != "-":
            raise InvalidInput("a text that is still being written comes from standard input: --live -", param="text")
        return cls(sys.stdin.buffer)

    async def pieces(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        coming: asyncio.Queue[bytes] = asyncio.Queue()

        def read() -> None:
            data = b"more"
            while data:
                data = self._file.read1(PIECE_BYTES)
                try:
                    loop.call_soon_threadsafe(coming.put_nowait, data)
                except RuntimeError:  # the loop is gone, and with it whoever listened
                    return

        # A thread that nobody waits for: a pipe that stays open must not keep the command from ending.
        threading.Thread(target=read, name="piped", daemon=True).start()
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        n_bytes = 0
        while True:
            data = await coming.get()
            try:
                piece = decoder.decode(data, final=not data)
            except UnicodeDecodeError as exc:
                raise InvalidInput(f"standard input is not UTF-8 text (near byte {n_bytes})", param="text") from exc
            n_bytes += len(data)
            self.text += piece
            yield piece
            if not data:
                return
