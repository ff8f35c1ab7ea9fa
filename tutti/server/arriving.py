"""Text that arrives in pieces, as a language model writes it: said sentence by sentence, before its end is known."""

import asyncio
from collections.abc import AsyncIterator

from tutti.text.split import LONGEST_WORD, sentences
from tutti.text.spoken import Spoken

LONGEST_MARK = 200  # a bracket that is open for longer is no mark
FENCE = "```"


class Arriving:
    """One text on its way. `add` its pieces and `end` it, while `texts` hands out what can be said already."""

    def __init__(self) -> None:
        self.n_characters = 0
        self._waiting = ""
        self._ended = False
        self._changed = asyncio.Event()

    def add(self, piece: str) -> None:
        self.n_characters += len(piece)
        self._waiting += piece
        self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    async def texts(self) -> AsyncIterator[str]:
        """All that has come and is complete, each time it is asked for; at the end the rest. Nothing is lost."""
        while True:
            n_complete = len(self._waiting) if self._ended else complete(self._waiting)
            if n_complete:
                text, self._waiting = self._waiting[:n_complete], self._waiting[n_complete:]
                yield text
            elif self._ended:
                return
            else:
                self._changed.clear()
                await self._changed.wait()


def complete(text: str) -> int:
    """How many characters can be said, whatever comes after them: whole sentences, up to the one that is still open."""
    begins = [sentence.spoken.span()[0] for sentence in sentences(Spoken.of(text))]
    for start in reversed(begins[1:]):
        head, rest = text[:start], text[start:]
        # Whether a full stop ended a sentence shows in the whole word that follows.
        next_word_is_whole = len(rest.split(maxsplit=1)) > 1 or rest[-1:].isspace() or len(rest) > LONGEST_WORD
        if next_word_is_whole and not _inside(head):
            return start
    return 0


def _inside(head: str) -> bool:
    """Whether a cut here would part a block of code, or a mark such as `[pause:1s]`."""
    return head.count(FENCE) % 2 == 1 or head.rfind("[", -LONGEST_MARK) > head.rfind("]")
