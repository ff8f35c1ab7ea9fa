"""Cut a table into shards, and the rows of a shard into batches. Pure: the same table gives the same batches."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tutti.bulk.table import RawRow

MAX_SHARD_SIZE = 200_000  # characters, about three hours of audio: a shard of long texts must fit into the memory


@dataclass(frozen=True, slots=True)
class Shard:
    """Consecutive rows of the table that are stored together: what a killed run repeats at most."""

    number: int
    rows: tuple[RawRow, ...]

    @property
    def name(self) -> str:
        return f"{self.number:06d}"


class ModelRow(NamedTuple):
    """A row for the model: where it belongs, and how long its audio may be."""

    text: int  # of the shard
    chunk: int  # of the text
    checkpoint: str
    n_frames: int  # estimated


def shards(rows: Iterable[RawRow], max_rows: int, max_size: int = MAX_SHARD_SIZE) -> Iterator[Shard]:
    """Each shard has at most `max_rows`, and is closed by the row that fills `max_size`."""
    number, members, size = 0, list[RawRow](), 0
    for row in rows:
        members.append(row)
        size += row.size
        if len(members) == max_rows or size >= max_size:
            yield Shard(number, tuple(members))
            number, members, size = number + 1, [], 0
    if members:
        yield Shard(number, tuple(members))


def batches(parts: Iterable[ModelRow], max_rows: int) -> list[Sequence[ModelRow]]:
    """Full batches of similar length, the longest first; only the last one of a checkpoint may have fewer rows.

    They depend on nothing but the texts. A model may round differently beside other rows, so this is why a shard that
    is made again has the same bytes.
    """
    ranked = sorted(parts, key=lambda part: (part.checkpoint, -part.n_frames, part.text, part.chunk))
    grouped: list[list[ModelRow]] = []
    for part in ranked:
        if not grouped or len(grouped[-1]) == max_rows or grouped[-1][0].checkpoint != part.checkpoint:
            grouped.append([])
        grouped[-1].append(part)
    return list(grouped)
