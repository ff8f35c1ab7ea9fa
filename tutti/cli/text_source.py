"""The text of `tutti speak`: words of the command line, a file, or standard input."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from tutti.errors import InvalidInput

BOOKS = (".epub", ".pdf")  # formats of `tutti read` that are no text files
# A single word that ends so, or starts so, is taken for the name of a file.
FILE_SUFFIXES = (".txt", ".text", ".md", ".markdown", ".rst", ".html", ".htm", ".xhtml", ".xml", ".ssml", *BOOKS)
FOLDERS = (".", "..")
PATH_STARTS = ("./", "../", "/", "~/")


MARKDOWN = (".md", ".markdown")
# YAML front matter: facts about a text, which `tutti read` reads as such.
FRONT_MATTER = re.compile(r"---[ \t]*\n(?:[\w-]+[ \t]*:[^\n]*\n|[ \t#-][^\n]*\n){1,200}---[ \t]*\n")


def read_text(words: Sequence[str], encoding: str | None = None) -> str:
    """Return the words, the content of the file they name, or standard input; bytes are UTF-8 unless `encoding` is set.

    A name of a file that does not exist is an error, so that a typing error is not spoken.
    """
    if len(words) > 1:
        if name := next((word for word in words if word == "-" or is_file(word)), None):
            raise InvalidInput(f"{name} must be the only argument; to speak several files: cat A B | tutti speak -")
        return " ".join(words)
    (argument,) = words
    if argument == "-":
        return decode(sys.stdin.buffer.read(), "standard input", encoding)
    if is_file(argument):
        if argument.lower().endswith(BOOKS):
            raise InvalidInput(f"{argument} is a book; run: tutti read {argument}", param="text")
        text = decode(Path(argument).read_bytes(), argument, encoding)
        return without_front_matter(text, argument) if argument.lower().endswith(MARKDOWN) else text
    if looks_like_file(argument):
        problem = "is a folder" if Path(argument).is_dir() else "does not exist"
        raise InvalidInput(
            f'the file {argument} {problem}; to speak these words: echo "{argument}" | tutti speak -', param="text"
        )
    if argument.lower().endswith(FILE_SUFFIXES):
        print(f"there is no file {argument!r}; speaking these words", file=sys.stderr)
    return argument


def is_file(argument: str) -> bool:
    """Whether the argument names an existing file; a long text does not."""
    return len(argument) < 1024 and "\0" not in argument and Path(argument).is_file()


def looks_like_file(argument: str) -> bool:
    """Whether the argument can only be meant as the name of a file."""
    is_one_word = bool(argument) and not any(symbol.isspace() or symbol == "\0" for symbol in argument)
    return is_one_word and (
        argument in FOLDERS or argument.lower().endswith(FILE_SUFFIXES) or argument.startswith(PATH_STARTS)
    )


def without_front_matter(text: str, name: str) -> str:
    if not (found := FRONT_MATTER.match(text)):
        return text
    print(f"the front matter of {name} is not spoken", file=sys.stderr)
    return text[found.end() :]


def decode(data: bytes, name: str, encoding: str | None = None) -> str:
    try:
        return data.decode(encoding or "utf-8-sig")
    except UnicodeDecodeError as exc:
        cure = "name its own, as --encoding cp1252"
        raise InvalidInput(
            f"{name} is not {encoding or 'UTF-8'} text (byte {exc.start}); {cure}", param="text"
        ) from exc
    except LookupError as exc:
        raise InvalidInput(f"unknown encoding {encoding!r}; try latin-1 or cp1252", param="encoding") from exc
