"""Natural text in Kokoro's symbols, by tutti's own front end: what the text student reads.

python -m training.texts --from texts --to texts.npz

The folder holds one file for each language, `en-us.txt` and so on, a paragraph on each line. Each chunk that the front
end makes of it is a row; docs/log/2026-11-15-text-student.md says which texts were used.
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tutti.errors import TuttiError
from tutti.text import Pronounce, chunks
from tutti.text.language import LANGUAGES
from tutti.text.vocab import encode

FEWEST, MOST = 4, 420  # tokens of a row, with the padding at both ends

Rows = list[NDArray[np.uint8]]  # tokens of each row


def read_aloud(paragraphs: Iterable[str], code: str, pronounce: Pronounce) -> Iterator[NDArray[np.uint8]]:
    """The tokens of each chunk; a paragraph that cannot be spoken is left out."""
    for paragraph in paragraphs:
        try:
            for chunk in chunks(paragraph, code, pronounce):
                tokens = encode(chunk.phonemes)
                if FEWEST <= len(tokens) <= MOST:
                    yield tokens.astype(np.uint8)
        except TuttiError:
            continue


def write(rows: dict[str, Rows], path: Path) -> None:
    """The rows of each language, by its letter."""
    arrays: dict[str, NDArray[np.uint8 | np.uint16]] = {}
    for letter, each in rows.items():
        arrays[f"{letter}.tokens"] = np.concatenate(each)
        arrays[f"{letter}.lengths"] = np.array([len(row) for row in each], np.uint16)
    np.savez_compressed(path, allow_pickle=False, **arrays)


def read(path: Path) -> dict[str, Rows]:
    with np.load(path, allow_pickle=False) as archive:
        letters = sorted({name.partition(".")[0] for name in archive.files})
        return {
            letter: np.split(archive[f"{letter}.tokens"], np.cumsum(archive[f"{letter}.lengths"].astype(int))[:-1])
            for letter in letters
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="folder", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    args = parser.parse_args()
    from tutti.settings import load  # a training machine lacks what they need
    from tutti.text.g2p import G2P

    g2p = G2P(load({}, {})[0].home)
    rows = {}
    for language in LANGUAGES:
        path = args.folder / f"{language.code}.txt"
        if path.exists():
            paragraphs = path.read_text(encoding="utf-8").splitlines()
            # The same row twice teaches nothing.
            found = {row.tobytes(): row for row in read_aloud(paragraphs, language.code, g2p.pronounce)}
            rows[language.letter] = list(found.values())
            print(language.code, len(found), "rows", sum(map(len, found.values())), "tokens", flush=True)
    write(rows, args.to)


if __name__ == "__main__":
    main()
