"""What a place that may have the official bytes promises, and the two answers it can give."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tutti.weights.manifest import File
from tutti.weights.progress import Progress


@dataclass(frozen=True, slots=True)
class Offer:
    """Bytes that claim to be `file`, lying in the scratch folder. Whoever takes the offer checks and moves them."""

    file: File
    path: Path


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a place did not give something, in a few words."""

    place: str
    reason: str


class Source(Protocol):
    """A place to look for files."""

    @property
    def name(self) -> str: ...

    def fetch(self, files: Sequence[File], scratch: Path, progress: Progress) -> Iterator[Offer | Refusal]:
        """Offer what this place has of `files`, one at a time. What lies in `scratch` after a break is used again."""
        ...
