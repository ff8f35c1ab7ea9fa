"""Natural text in nine languages, out of packages of Debian: games, handbooks, help pages, fortunes.

python -m training.corpus --to texts

Downloads with `apt-get`, and writes one file for each language, a paragraph on each line: what `training.texts` reads.
"""

import argparse
import gettext
import gzip
import html
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from tutti.text.language import LANGUAGES

FEWEST, MOST = 25, 700  # characters of a paragraph; in Chinese and Japanese a third
DENSE = frozenset({"ja", "zh"})  # languages that need fewer characters
MOST_CHARACTERS = {"en": 14_000_000, "ja": 900_000, "zh": 900_000}
MOST_ELSEWHERE = 2_000_000
BRITISH = 0.4  # of the English paragraphs
# How packages name a language, after our code.
NAMES = {"en": ["en"], "es": ["es"], "fr": ["fr"], "it": ["it"], "hi": ["hi"], "ja": ["ja"], "pt-br": ["pt-br", "pt"],
         "zh": ["zh-cn", "zh-hans"]}  # fmt: skip
EVERYWHERE = ("wesnoth-1.16-data", "debian-handbook", "stellarium-data", "widelands-data")
HELP = ("en-us", "es", "fr", "hi", "it", "ja", "pt-br", "zh-cn")  # of LibreOffice
OWN = ("anarchism", "jargon-text", "fortunes", "fortunes-min", "fortunes-es", "fortunes-fr", "fortunes-it",
       "fortunes-br", "freedroidrpg-data", "debian-reference-ja", "debian-reference-zh-cn", "debian-reference-it",
       "debian-reference-es", "debian-reference-pt", "debian-reference-fr")  # fmt: skip
FORTUNES = {"fortunes": "en", "fortunes-min": "en", "fortunes-es": "es", "fortunes-fr": "fr", "fortunes-it": "it",
            "fortunes-br": "pt-br", "anarchism": "en", "jargon-text": "en"}  # fmt: skip
MARKUP = re.compile(r"<[^>]{0,200}>|&[a-z]+;|\[[^\]]*\]")
BLOCK = re.compile(r"(?s)<(?:p|li|td|dd|h[1-6])\b[^>]*>(.*?)</(?:p|li|td|dd|h[1-6])>")
NO_PROSE = re.compile(r"[{}$%\\|^~_<>=#@]|https?:|--|\.\w+\(")


def language_of(path: Path) -> str | None:
    """The language of a file by its folders and suffixes."""
    parts = [part.lower().replace("_", "-") for part in (*path.parts, *path.name.split("."))]
    for code, names in NAMES.items():
        if any(part == name or part.startswith(f"{name}-") for part in parts for name in names):
            return code
    return None


def paragraphs(path: Path, root: Path, package: str) -> Iterator[tuple[str, str]]:
    """The language and the text of each paragraph of a file."""
    code = FORTUNES.get(package) or language_of(path.relative_to(root))
    if path.suffix == ".mo":
        for original, translated in translations(path).items():
            if code is not None:
                yield from ((code, each) for each in str(translated).split("\n\n"))
            if isinstance(original, str):
                yield from (("en", each) for each in original.rpartition("\x04")[2].split("\n\n"))
    elif code is None:
        return
    elif path.suffix in (".html", ".xhtml", ".htm") or path.name.endswith(".html.gz"):
        yield from ((code, each) for each in BLOCK.findall(read(path)))
    elif package in FORTUNES and path.suffix not in (".dat", ".u8"):
        yield from ((code, each) for each in re.split(r"\n%\n|\n\s*\n", read(path)))


def translations(path: Path) -> dict[object, str]:
    try:
        with path.open("rb") as file:
            return gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined, no-any-return]
    except ValueError:  # a header that nobody filled in
        return {}


def read(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")


def prose(text: str, code: str) -> str | None:
    """A paragraph without markup; none if it is not what somebody would read aloud."""
    plain = " ".join(html.unescape(MARKUP.sub(" ", text)).split())
    scale = 3 if code in DENSE else 1
    if not FEWEST / scale <= len(plain) <= MOST / scale or NO_PROSE.search(plain):
        return None
    latin = sum("a" <= letter.lower() <= "z" for letter in plain) / len(plain)
    native = {"ja": r"[\u3041-\u30ff]", "zh": r"[\u4e00-\u9fff]", "hi": r"[\u0900-\u097f]"}.get(code)
    # Untranslated lines are English.
    return plain if (latin < 0.2 and re.search(native, plain) if native else latin > 0.6) else None


def packages_of(folder: Path) -> Iterable[tuple[str, Path]]:
    names = [*EVERYWHERE, *OWN, *(f"libreoffice-help-{code}" for code in HELP)]
    with ThreadPoolExecutor(4) as threads:
        yield from zip(names, threads.map(lambda name: unpacked(name, folder), names), strict=True)


def unpacked(name: str, folder: Path) -> Path:
    """The files of a package; an empty folder if the archive does not have it."""
    own = folder / name
    own.mkdir()
    if subprocess.run(["apt-get", "download", name], cwd=own, capture_output=True, check=False).returncode == 0:
        for archive in own.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", archive, own / "files"], check=True)
    return own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True)
    args = parser.parse_args()
    found: dict[str, dict[str, None]] = defaultdict(dict)  # the same paragraph twice teaches nothing
    with tempfile.TemporaryDirectory() as folder:
        for package, files in packages_of(Path(folder)):
            before = sum(map(len, found.values()))
            for path in sorted(each for each in files.rglob("*") if each.is_file() and not each.is_symlink()):
                for code, text in paragraphs(path, files, package):
                    if plain := prose(text, code):
                        found[code][plain] = None
            print(package, sum(map(len, found.values())) - before, "paragraphs", flush=True)
    write(found, args.to)


def write(found: dict[str, dict[str, None]], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rng = Random(0)
    for code, texts in found.items():
        lines, n_left = list(texts), MOST_CHARACTERS.get(code, MOST_ELSEWHERE)
        rng.shuffle(lines)
        own: dict[str, list[str]] = defaultdict(list)
        for line in lines:
            n_left -= len(line)
            if n_left < 0:
                break
            own[code if code != "en" else "en-gb" if rng.random() < BRITISH else "en-us"].append(line)
        for each, kept in own.items():
            assert each in {language.code for language in LANGUAGES}
            (folder / f"{each}.txt").write_text("\n".join(kept), encoding="utf-8")
            print(each, len(kept), "paragraphs", sum(map(len, kept)), "characters", flush=True)


if __name__ == "__main__":
    main()
