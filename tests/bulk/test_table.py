"""Tables of texts: every row is read or named as bad, whatever is in the file, and never all of it at once."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tutti.bulk import table
from tutti.bulk.fields import TextRow, check_columns, parse_row, row_id
from tutti.bulk.run import check_table
from tutti.bulk.table import RawRow, column_names, read_rows
from tutti.errors import InvalidInput
from tutti.speech import SpeechParams

DEFAULTS = SpeechParams("af_heart", speed=1.5)
ROWS: list[dict[str, Any]] = [
    {"id": "a", "text": "Hello, world.", "voice": "am_adam", "speed": 0.5},
    {"id": "b", "text": 'Two\nlines, "quoted".'},
    {"id": "c", "text": "Überall Grüße.", "language": "en-gb", "seed": 7},
]


def write_jsonl(path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def write_csv(path: Path) -> None:
    names = ("id", "text", "voice", "speed", "language", "seed")
    lines = [",".join(f'"{str(row.get(name, "")).replace(chr(34), chr(34) * 2)}"' for name in names) for row in ROWS]
    path.write_text("\n".join([",".join(names), *lines]), encoding="utf-8-sig")


def write_parquet(path: Path) -> None:
    types = {"id": pa.string(), "text": pa.string(), "voice": pa.string(), "speed": pa.float64()}
    schema = pa.schema({**types, "language": pa.string(), "seed": pa.int64()})
    pq.write_table(pa.Table.from_pylist(ROWS, schema), path)


def parse(row: RawRow, **options: Any) -> TextRow:
    return parse_row(row, DEFAULTS, **{"other_columns": "refuse", "max_text": 1000, **options})


def line(text: bytes | str) -> RawRow:
    return RawRow(3, text if isinstance(text, bytes) else text.encode(), len(text))


@pytest.mark.parametrize(
    ("name", "write"), [("t.jsonl", write_jsonl), ("t.csv", write_csv), ("t.parquet", write_parquet)]
)
def test_every_kind_of_table_gives_the_same_rows(tmp_path: Path, name: str, write: Any) -> None:
    write(tmp_path / name)
    rows = [parse(row) for row in read_rows(tmp_path / name)]
    assert [(row.id, row.text) for row in rows] == [(row["id"], row["text"]) for row in ROWS]
    assert [row.params for row in rows] == [
        SpeechParams("am_adam", speed=0.5),
        DEFAULTS,
        SpeechParams("af_heart", speed=1.5, language="en-gb", seed=7),
    ]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("{bad", "not JSON"),
        ('"a string"', "no JSON object"),
        ("[" * 100_000, "not JSON"),
        (b'{"text": "\xff"}', "not JSON"),
        ('{"id": 1}', "text: Field required"),
        ('{"text": 5}', "text: "),
        ('{"text": "a", "speed": "fast"}', "speed: "),
        ('{"text": "a", "voise": "b"}', "did you mean voice?"),
        ('{"text": "\\ud800"}', "not UTF-8"),
        (json.dumps({"text": "a" * 1001}), "1,001 characters; the limit is 1,000"),
    ],
)
def test_a_bad_line_says_what_is_wrong(content: bytes | str, error: str) -> None:
    with pytest.raises(InvalidInput, match=error.replace("?", r"\?")):
        parse(line(content))


def test_a_bad_row_does_not_hide_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_LINE", 100)
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": "one"}\n\n' + b"x" * 350 + b'\n  \n{"text": "two"}\r\n{"text": "three"}')
    rows = list(read_rows(path))
    assert [row.number for row in rows] == [0, 1, 2, 3]
    assert "more than 100 bytes" in rows[1].problem
    assert [parse(rows[n]).text for n in (0, 2, 3)] == ["one", "two", "three"]


def test_a_bad_line_of_csv_does_not_hide_the_next(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,text\na,one\nb,two,three\nc\n\nd,\xff\xfe\ne,four\n")
    rows = list(read_rows(path))
    assert [row.number for row in rows] == [0, 1, 2, 3, 4]
    assert "3 cells, but the header has 2" in rows[1].problem
    assert "1 cells" in rows[2].problem
    with pytest.raises(InvalidInput, match="not UTF-8"):
        parse(rows[3])
    assert parse(rows[4]).text == "four"


@pytest.mark.parametrize(("content", "id"), [('{"id": 7, "text": 1}', "7"), ("{bad", "3"), ('{"id": [1]}', "3")])
def test_a_row_has_an_id_even_if_it_is_bad(content: str, id: str) -> None:
    assert row_id(line(content)) == id


def test_other_columns_are_refused_kept_or_ignored() -> None:
    row = line('{"text": "a", "source": {"page": 3}}')
    with pytest.raises(InvalidInput, match="unknown column 'source'"):
        parse(row)
    assert parse(row, other_columns="keep").other == {"source": {"page": 3}}
    assert parse(row, other_columns="ignore").other == {}
    with pytest.raises(InvalidInput, match="no column text"):
        check_columns(["id", "words"], "keep")


def test_objects_may_be_json_in_a_cell() -> None:
    row = RawRow(0, {"text": "a", "lexicon": '{"a": "eɪ"}'}, 1)
    assert parse(row).params.lexicon == {"a": "eɪ"}


def test_wrong_columns_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "a", "speaker": "b"}\n')
    assert column_names(path) is None
    with pytest.raises(InvalidInput, match="unknown column 'speaker'"):
        check_table(path, "refuse")
    check_table(path, "keep")
    path.write_text("{bad\n" + '{"text": "a"}\n')  # a bad row, not a bad table
    check_table(path, "refuse")
    with pytest.raises(InvalidInput, match="no table"):
        read_rows(tmp_path / "t.txt")
