"""One bulk run: its table, its folder and its options; what is there already, and what is missing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tutti import __version__
from tutti.bulk.fields import OtherColumns, check_columns, first_columns
from tutti.bulk.manifest import check_same, load_manifest, store_manifest
from tutti.bulk.output import OutputFolder
from tutti.bulk.shards import Shard, shards
from tutti.bulk.speaking import BulkOptions
from tutti.bulk.table import column_names, read_rows
from tutti.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class TableSize:
    """The rows and shards of a table, and the rows of the shards that are done."""

    n_rows: int = 0
    n_shards: int = 0
    n_done: int = 0


class BulkRun:
    """Counts, and hands out the missing shards in order; reads the table anew each time."""

    def __init__(self, table: Path, folder: OutputFolder, options: BulkOptions) -> None:
        self._table = table
        self._folder = folder
        self._options = options

    def size(self, on_shard: Callable[[TableSize], None]) -> TableSize:
        size = TableSize()
        for shard in self._shards():
            n_done = len(shard.rows) if self._folder.is_done(shard.name) else 0
            size = TableSize(size.n_rows + len(shard.rows), size.n_shards + 1, size.n_done + n_done)
            on_shard(size)
        if not size.n_rows:
            raise InvalidInput(f"{self._table} has no rows", param="table")
        return size

    def missing(self) -> Iterator[Shard]:
        return (shard for shard in self._shards() if not self._folder.is_done(shard.name))

    def _shards(self) -> Iterator[Shard]:
        return shards(read_rows(self._table), self._options.shard_rows)


def check_table(table: Path, other_columns: OtherColumns) -> None:
    """Raise InvalidInput if the columns say that no row can be spoken: before anything is written."""
    names = column_names(table)
    if names is None:
        names = first_columns(read_rows(table))
    if names is not None:
        check_columns(names, other_columns)


def stored_batch_rows(out: Path) -> int | None:
    """The batch size of the run that is resumed: another machine would choose another one, and so other bytes."""
    options = (load_manifest(out) or {}).get("options", {})
    rows = options.get("batch_rows") if isinstance(options, dict) else None
    return rows if isinstance(rows, int) else None


def open_folder(out: Path, sha256: str, options: BulkOptions, audio: Mapping[str, Any]) -> OutputFolder:
    """Start a run in a folder, or resume the one that is there; raise if that was made from something else."""
    manifest = {"tutti": __version__, "table": {"sha256": sha256}, "options": asdict(options), "audio": audio}
    stored = load_manifest(out)
    if stored is None:
        store_manifest(out, manifest)
    else:
        check_same(out, stored, manifest)
    folder = OutputFolder(out)
    folder.create()
    return folder
