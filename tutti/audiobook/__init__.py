"""A book is read aloud passage by passage; each is kept as soon as it is spoken, and all become one file at the end."""

from tutti.audiobook.export import Captions, Finished, finish
from tutti.audiobook.journal import Journal
from tutti.audiobook.narrate import Progress, Speaker, read
from tutti.audiobook.passages import Passage, passages

__all__ = [
    "Captions", "Finished", "Journal", "Passage", "Progress", "Speaker", "finish", "passages", "read",
]  # fmt: skip
