"""The protocol of a source of official files, and its two kinds of answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tutti.weights.manifest import File
from tutti.weights.progress import DownloadProgress


@dataclass(frozen=True, slots=True)
class Offer:
    """A candidate for `file` in the scratch folder. The store checks its bytes and moves it."""

    file: File
    path: Path


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why a source did not provide something, in a few words."""

    source: str
    reason: str


class Source(Protocol):
    """Provides official files."""

    @property
    def name(self) -> str: ...

    def fetch(self, files: Sequence[File], scratch: Path, progress: DownloadProgress) -> Iterator[Offer | Unavailable]:
        """Offer the files that this source has, one at a time. Reuse what an interrupted run left in `scratch`."""
