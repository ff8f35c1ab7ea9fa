"""The fields of a row: what is said and how. A row overrides the options of the command."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from tutti.bulk.table import RawRow
from tutti.errors import InvalidInput, did_you_mean
from tutti.speech import SpeechParams

OtherColumns = Literal["refuse", "keep", "ignore"]


class RowFields(BaseModel):
    """Every column that has a meaning; all but `text` may be missing or empty."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    id: str | int | None = None
    voice: str | None = None
    style: str | None = None
    speed: float | None = None
    pitch: float | None = None
    pitch_range: float | None = None
    energy: float | None = None
    emotion: str | None = None
    language: str | None = None
    lexicon: dict[str, str] | None = None
    seed: int | None = None
    model: str | None = None
    code_blocks: str | None = None
    normalization: dict[str, bool] | None = None
    pauses: dict[str, float] | None = None


COLUMNS = tuple(RowFields.model_fields)
OBJECTS = ("lexicon", "normalization", "pauses")  # JSON in a cell of CSV or Parquet


@dataclass(frozen=True, slots=True)
class TextRow:
    """A row that can be spoken."""

    id: str
    text: str
    params: SpeechParams
    other: Mapping[str, Any]  # columns without a meaning here, to be kept beside the audio


def row_id(row: RawRow) -> str:
    """The id of a row, even if the rest of it cannot be parsed; default: its number."""
    try:
        id = _cells(row).get("id")
    except InvalidInput:
        id = None
    return str(id) if isinstance(id, str | int) and str(id) else str(row.number)


def parse_row(row: RawRow, defaults: SpeechParams, other_columns: OtherColumns, max_text: int) -> TextRow:
    """Raise InvalidInput for a row that cannot be spoken; the engine checks the values."""
    cells = _cells(row)
    other = {name: cells.pop(name) for name in [name for name in cells if name not in COLUMNS]}
    if other and other_columns == "refuse":
        raise InvalidInput(unknown_columns(list(other)))
    for name in OBJECTS:
        if isinstance(cells.get(name), str):
            cells[name] = _json(cells[name], name)
    try:
        fields = RowFields.model_validate(cells)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        raise InvalidInput(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    if len(fields.text) > max_text:
        raise InvalidInput(f"text: {len(fields.text):,} characters; the limit is {max_text:,} (--max-text)")
    try:
        fields.text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("text: it is not UTF-8") from None
    chosen = {name: value for name in COLUMNS[2:] if (value := getattr(fields, name)) is not None}
    return TextRow(row_id(row), fields.text, replace(defaults, **chosen), other if other_columns == "keep" else {})


def first_columns(rows: Iterable[RawRow]) -> list[str] | None:
    """The columns of the first row of JSON lines; none if that row is bad."""
    for row in rows:
        try:
            return list(_cells(row))
        except InvalidInput:
            return None
    return None


def check_columns(names: list[str], other_columns: OtherColumns) -> None:
    """Raise InvalidInput if no row of a table with these columns could be spoken."""
    if "text" not in names:
        raise InvalidInput(f"the table has no column text, only: {', '.join(names) or 'none'}", param="table")
    unknown = [name for name in names if name not in COLUMNS]
    if unknown and other_columns == "refuse":
        raise InvalidInput(unknown_columns(unknown), param="table")


def unknown_columns(names: list[str]) -> str:
    hint = did_you_mean(names[0], COLUMNS) or ";"
    return f"unknown column {', '.join(map(repr, names))}{hint} --other-columns keep or ignore accepts it"


def _cells(row: RawRow) -> dict[str, Any]:
    if row.problem:
        raise InvalidInput(row.problem)
    if not isinstance(row.content, bytes):
        return dict(row.content)
    cells = _json(row.content, "the line")
    if not isinstance(cells, dict):
        raise InvalidInput('the line is no JSON object; write {"text": "…"}')
    return {name: value for name, value in cells.items() if value is not None}


def _json(text: str | bytes, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(f"{name} is not JSON: {exc}") from None
