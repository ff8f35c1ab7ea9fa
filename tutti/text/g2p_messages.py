"""What the server and its G2P process send each other."""

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from tutti.errors import TuttiError
from tutti.text import Pronounce, chunks
from tutti.text.chunk import DEFAULT_PACE, Chunk, ChunkPace
from tutti.text.options import DEFAULT_OPTIONS, TextOptions
from tutti.text.user_lexicon import UserLexicon

if TYPE_CHECKING:
    from tutti.text.chunker import ChunkSizes


class OpenText(NamedTuple):
    """Read this text: one answer with its first chunk, and unless it ends there another with the next ones."""

    text: str
    code: str  # of its language
    user_lexicon: UserLexicon | None = None
    whole_text: bool = False  # all of the audio is needed: the first chunk is not kept short
    pace: ChunkPace = DEFAULT_PACE
    options: TextOptions = DEFAULT_OPTIONS
    symbol_s: float = 0.0  # seconds of audio of a symbol
    caller: str = ""  # the text front end is shared fairly between callers
    number: int = 0
    n_done: int = 0  # chunks to skip: the process that had made them is gone
    due_s: float = inf  # when the audio of the first chunk is needed, on the monotonic clock

    def chunks(self, pronounce: Pronounce, sizes: "ChunkSizes | None") -> Iterator[Chunk]:
        """Its chunks in order, each computed only when it is requested."""
        return chunks(
            *(self.text, self.code, pronounce, self.user_lexicon),
            whole_text=self.whole_text, sizes=sizes, pace=self.pace, options=self.options,
        )  # fmt: skip


class NextChunks(NamedTuple):
    """Make the next chunks of an open text: one answer."""

    number: int
    due_s: float = inf  # when their audio is needed


class CloseText(NamedTuple):
    """Forget a text; no answer."""

    number: int


class ChunkBatch(NamedTuple):
    """The next chunks of a text, fewer than planned if they take long."""

    chunks: list[Chunk]
    ended: bool  # there are no more
    has_sequel: bool = False  # another answer follows without a request


class Answer(NamedTuple):
    """What came of a request, or of the start of the process; none: no such text, or started."""

    number: int
    result: ChunkBatch | TuttiError | None
