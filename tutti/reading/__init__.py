"""A book is read aloud passage by passage; each is kept as soon as it is spoken, and all become one file at the end."""

from tutti.reading.finishing import Captions, Finished, finish
from tutti.reading.journal import Journal
from tutti.reading.passages import Passage, passages
from tutti.reading.reading import Progress, Speaker, read
from tutti.reading.voicing import Voicing

__all__ = [
    "Captions", "Finished", "Journal", "Passage", "Progress", "Speaker", "Voicing", "finish", "passages", "read",
]  # fmt: skip
