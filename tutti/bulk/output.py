"""The folder of a bulk run: shards of audio, an index for each, and one index of all when everything is spoken.

OUT/bulk.json              what the run is made from; a run with other input or options is refused
OUT/shards/000000.tar      000000000.flac and 000000000.json for each row that was spoken, in the order of the table
OUT/index/000000.parquet   one line for each row of the shard; written after the tar, so it says that the shard is done
OUT/index.parquet          all of them, in the order of the table
"""

import io
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tutti.errors import TuttiError
from tutti.files import PARTIAL, atomic_write, write_error

KEY_DIGITS = 9  # of a row's number in its file names; ids may be long, twice the same, or no file names


@dataclass(frozen=True, slots=True)
class FinishedRow:
    """A row of the index, and the files of it in the tar; none if it failed."""

    number: int
    id: str
    seconds: float = 0.0
    sha256: str = ""  # of the audio file
    error: str = ""
    files: tuple[tuple[str, bytes], ...] = ()  # suffix and content, the audio first

    @property
    def key(self) -> str:
        return f"{self.number:0{KEY_DIGITS}d}"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How many rows, how many of them failed, and the seconds of audio."""

    n_rows: int
    n_failed: int
    audio_s: float


class OutputFolder:
    """Writes shards so that each is there whole or not at all, and its index only after it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._shards, self._index = path / "shards", path / "index"

    def create(self) -> None:
        """Make the folders, and remove what a killed run had not finished."""
        try:
            for folder in (self._shards, self._index):
                folder.mkdir(parents=True, exist_ok=True)
                for partial in folder.glob(f".*{PARTIAL}"):
                    partial.unlink(missing_ok=True)
        except OSError as exc:
            raise write_error(self.path, exc) from exc

    def is_done(self, shard: str) -> bool:
        return (self._index / f"{shard}.parquet").exists()

    def write_shard(self, shard: str, rows: Sequence[FinishedRow]) -> RunSummary:
        """Write a shard and then its index; the same rows give the same bytes."""
        path = self._shards / f"{shard}.tar"
        try:
            with atomic_write(path) as file, tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar:
                for row in rows:
                    for suffix, content in row.files:
                        info = tarfile.TarInfo(f"{row.key}{suffix}")  # no time, no owner
                        info.size = len(content)
                        tar.addfile(info, io.BytesIO(content))
            self._write_index(self._index / f"{shard}.parquet", [_table(shard, rows)])
        except OSError as exc:
            raise write_error(path, exc) from exc
        return RunSummary(len(rows), sum(bool(row.error) for row in rows), sum(row.seconds for row in rows))

    def write_whole_index(self, n_shards: int, n_rows: int) -> RunSummary:
        """Join the indexes of all shards; raise if one is missing."""
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        path, total = self.path / "index.parquet", RunSummary(0, 0, 0.0)

        def parts() -> Iterable[Any]:
            nonlocal total
            for number in range(n_shards):
                part = pq.read_table(self._index / f"{number:06d}.parquet")
                n_failed = pc.sum(pc.equal(part["status"], "failed")).as_py() or 0
                seconds = pc.sum(part["seconds"]).as_py() or 0.0
                total = RunSummary(total.n_rows + len(part), total.n_failed + n_failed, total.audio_s + seconds)
                yield part

        try:
            self._write_index(path, parts())
        except OSError as exc:
            raise write_error(path, exc) from exc
        if total.n_rows != n_rows:
            raise TuttiError(f"the index has {total.n_rows:,} rows, but the table {n_rows:,}; delete {self.path}")
        return total

    def _write_index(self, path: Path, tables: Iterable[Any]) -> None:
        import pyarrow.parquet as pq

        with atomic_write(path) as file, pq.ParquetWriter(file, _schema(), compression="zstd") as writer:
            for table in tables:
                writer.write_table(table)


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("row", pa.int64()),
            pa.field("id", pa.string()),
            pa.field("shard", pa.string()),
            pa.field("file", pa.string()),
            pa.field("seconds", pa.float64()),
            pa.field("sha256", pa.string()),
            pa.field("status", pa.string()),
            pa.field("error", pa.string()),
        ]
    )


def _table(shard: str, rows: Sequence[FinishedRow]) -> Any:
    """The index of a shard; what a failed row does not have is null."""
    import pyarrow as pa

    lines = [
        {
            "row": row.number,
            "id": row.id,
            "shard": f"{shard}.tar",
            "file": f"{row.key}{row.files[0][0]}" if row.files else None,
            "seconds": row.seconds if row.files else None,
            "sha256": row.sha256 or None,
            "status": "failed" if row.error else "ok",
            "error": row.error or None,
        }
        for row in rows
    ]
    return pa.Table.from_pylist(lines, schema=_schema())
