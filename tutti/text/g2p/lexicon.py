"""The pronouncing dictionaries: two JSON files for each accent, compiled once into a sorted, memory-mapped table."""

import json
import mmap
import os
import struct
from array import array
from dataclasses import dataclass
from pathlib import Path

from tutti.errors import WeightsUnavailable
from tutti.files import write_file

ACCENTS = {"en-us": "us", "en-gb": "gb"}
FORMAT = b"TUTTILX1"
_HEADER = struct.Struct("<8sII")  # format, entries, sum of the JSON sizes (to notice other files)


@dataclass(frozen=True, slots=True)
class DictionaryEntry:
    """The phonemes of a word, by part-of-speech tag where they differ. `gold` entries were checked by a person."""

    gold: bool
    by_tag: dict[str, str]  # "DEFAULT" always; "" means: spell it out

    def phonemes(self, tag: str, alone: bool) -> str:
        """Return the phonemes for a Penn Treebank tag; `alone` means that no word follows in the clause."""
        if len(self.by_tag) == 1:
            return self.by_tag["DEFAULT"]
        if alone and "None" in self.by_tag:
            return self.by_tag["None"]
        if tag in self.by_tag:
            return self.by_tag[tag]
        return self.by_tag.get(COARSE_TAGS.get(tag[:2], tag), self.by_tag["DEFAULT"])


COARSE_TAGS = {"VB": "VERB", "NN": "NOUN", "RB": "ADV", "JJ": "ADJ"}


class Lexicon:
    """A table of words, sorted by UTF-8 bytes and searched by bisection, in memory shared by all processes."""

    def __init__(self, table: bytes | mmap.mmap) -> None:
        _, n, _ = _HEADER.unpack_from(table)
        self._table = table
        self._starts = array("I")
        self._starts.frombytes(table[_HEADER.size : _HEADER.size + 4 * (n + 1)])

    @classmethod
    def load(cls, home: Path, accent: str) -> "Lexicon":
        """Load the dictionary of "us" or "gb" from home/lexicon; compile it first if necessary."""
        folder = home / "lexicon"
        sources = [folder / f"{accent}_gold.json", folder / f"{accent}_silver.json"]
        compact = folder / f"{accent}.bin"
        if not _is_up_to_date(compact, sources):
            for source in sources:
                if not source.is_file():
                    raise WeightsUnavailable(f"the pronouncing dictionary {source.name} is missing: run `tutti pull`")
            gold, silver = (json.loads(source.read_bytes()) for source in sources)
            table = build_table(gold, silver, sum(source.stat().st_size for source in sources))
            return cls(table if not _write(compact, table) else _map(compact))
        return cls(_map(compact))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def find(self, word: str) -> DictionaryEntry | None:
        """Return the entry with exactly this spelling."""
        key_bytes = word.encode() + b"\t"
        table, starts = self._table, self._starts
        low, high = 0, len(starts) - 1
        while low < high:
            middle = (low + high) // 2
            start = starts[middle]
            if table[start : start + len(key_bytes)] < key_bytes:
                low = middle + 1
            else:
                high = middle
        start = starts[low]
        if low == len(starts) - 1 or table[start : start + len(key_bytes)] != key_bytes:
            return None
        rank, *fields = table[start + len(key_bytes) : starts[low + 1]].decode().split("\t")
        return DictionaryEntry(
            rank == "g", {tag or "DEFAULT": sound for sound, _, tag in (field.partition("=") for field in fields)}
        )

    def get(self, word: str) -> DictionaryEntry | None:
        """Return the entry for a word in a text: "Table" finds "table", "boston" finds "Boston"."""
        exact = self.find(word)
        if len(word) < 2 or (exact and exact.gold):
            return exact
        lower = word.lower()
        other = None
        if word == lower:
            other = self.find(word.capitalize())
        elif word == lower.capitalize():
            other = self.find(lower)
        return other if exact is None or (other and other.gold) else exact


def build_table(gold: dict[str, str | dict[str, str | None]], silver: dict[str, str], stamp: int = 0) -> bytes:
    """Compile two dictionaries into one table; gold wins."""
    lines: dict[bytes, bytes] = {}
    for rank, words in (("s", silver), ("g", gold)):
        for word, sound in words.items():
            by_tag = sound if isinstance(sound, dict) else {"DEFAULT": sound}
            fields = "\t".join(
                (phonemes or "") + (f"={tag}" if tag != "DEFAULT" else "") for tag, phonemes in by_tag.items()
            )
            key = word.encode()
            lines[key] = key + f"\t{rank}\t{fields}".encode()
    ordered = [lines[key] for key in sorted(lines, key=lambda key: key + b"\t")]
    start = _HEADER.size + 4 * (len(ordered) + 1)
    starts = array("I", [start])
    for line in ordered:
        start += len(line)
        starts.append(start)
    return _HEADER.pack(FORMAT, len(ordered), stamp & 0xFFFFFFFF) + starts.tobytes() + b"".join(ordered)


def _is_up_to_date(compact: Path, sources: list[Path]) -> bool:
    """Tell whether the table has this format and was compiled from these files (or they are gone)."""
    try:
        built_ns, size = compact.stat().st_mtime_ns, compact.stat().st_size
        with compact.open("rb") as file:
            head = file.read(_HEADER.size)
            if len(head) < _HEADER.size or head[:8] != FORMAT:
                return False
            file.seek(4 * _HEADER.unpack(head)[1], os.SEEK_CUR)
            if int.from_bytes(file.read(4), "little") != size:  # the last offset is the end of a complete file
                return False
        stats = [source.stat() for source in sources if source.exists()]
    except OSError:
        return False
    if len(stats) < len(sources):
        return not stats
    return all(s.st_mtime_ns <= built_ns for s in stats) and _HEADER.unpack(head)[2] == sum(s.st_size for s in stats)


def _map(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _write(path: Path, table: bytes) -> bool:
    """Put the table in place in one step; a read-only cache is no reason to fail."""
    try:
        write_file(path, table)
    except OSError:
        return False
    return True
