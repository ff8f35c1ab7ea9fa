"""Read a table of texts row by row: JSON lines, CSV or Parquet, never the whole file at once."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any, Literal

from tutti.errors import InvalidInput, MissingExtra, install_hint

TableKind = Literal["jsonl", "csv", "parquet"]
SUFFIXES: dict[str, TableKind] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}
MAX_LINE = 4 << 20  # bytes of a row; a longer one is a bad row, and is never in memory whole
PARQUET_ROWS = 1024  # read at once; larger takes more memory


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row as it stands in the table: a line of JSON or named cells. It is parsed where it is spoken."""

    number: int  # from 0, without blank lines
    content: bytes | Mapping[str, Any]
    size: int  # bytes or characters, roughly
    problem: str = ""  # why it cannot be read at all


def table_kind(path: Path) -> TableKind:
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise InvalidInput(f"{path.name} is no table that can be read; use {', '.join(SUFFIXES)}", param="table")
    return kind


def digest(path: Path) -> str:
    """The SHA-256 of a file, or InvalidInput if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as exc:
        raise InvalidInput(f"cannot read {path}: {exc.strerror}", param="table") from exc


def column_names(path: Path) -> list[str] | None:
    """The columns of a CSV or Parquet file; none for JSON lines, where each row has its own."""
    kind = table_kind(path)
    if kind == "parquet":
        return list(_parquet(path).schema_arrow.names)
    if kind == "csv":
        with _text(path) as file:
            return next(csv.reader(file), [])
    return None


def read_rows(path: Path) -> Iterator[RawRow]:
    """The rows in their order. A row that cannot be read is there, with its problem."""
    return {"jsonl": _json_lines, "csv": _csv, "parquet": _parquet_rows}[table_kind(path)](path)


def _json_lines(path: Path) -> Iterator[RawRow]:
    number = 0
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE):
            is_cut = len(line) == MAX_LINE and not line.endswith(b"\n")
            while is_cut and (rest := file.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                pass
            line = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 0 else line.strip()
            if not line:
                continue
            if is_cut:
                yield RawRow(number, b"", 0, f"the line has more than {MAX_LINE:,} bytes")
            else:
                yield RawRow(number, line, len(line))
            number += 1


def _csv(path: Path) -> Iterator[RawRow]:
    csv.field_size_limit(MAX_LINE)
    with _text(path) as file:
        rows = csv.reader(file)
        names = next(rows, [])
        number = 0
        while True:
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error as exc:
                yield RawRow(number, {}, 0, f"line {rows.line_num} is not CSV: {exc}")
                number += 1
                continue
            if not cells:
                continue
            if len(cells) != len(names):
                problem = f"line {rows.line_num} has {len(cells)} cells, but the header has {len(names)}"
                yield RawRow(number, {}, 0, problem)
            else:
                content = {name: cell for name, cell in zip(names, cells, strict=True) if cell != ""}
                yield RawRow(number, content, sum(map(len, cells)))
            number += 1


def _parquet_rows(path: Path) -> Iterator[RawRow]:
    number = 0
    for batch in _parquet(path).iter_batches(PARQUET_ROWS):
        for cells in batch.to_pylist():
            content = {name: cell for name, cell in cells.items() if cell is not None}
            yield RawRow(number, content, len(str(content.get("text", ""))))
            number += 1


def _text(path: Path) -> Any:
    # Bytes that are not UTF-8 become lone surrogates: the row that has them is a bad row, not the end.
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def _parquet(path: Path) -> Any:
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import ParquetFile

    try:
        return ParquetFile(path)
    except ArrowInvalid as exc:
        raise InvalidInput(f"{path} is not a Parquet file: {exc}", param="table") from exc


def check_pyarrow() -> None:
    """Raise MissingExtra unless pyarrow is installed: the index is a Parquet file."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise MissingExtra(f"tutti bulk writes a Parquet index; run: {install_hint('bulk')}") from None
