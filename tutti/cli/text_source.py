"""The text of `tutti speak`: words of the command line, a file, or standard input."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tutti.errors import InvalidInput

BOOKS = (".epub", ".pdf")  # formats of `tutti read` that are no text files
# A single word that ends so, or starts so, is taken for the name of a file.
FILE_SUFFIXES = (".txt", ".text", ".md", ".markdown", ".rst", ".html", ".htm", ".xhtml", ".xml", ".ssml", *BOOKS)
PATH_STARTS = ("./", "../", "/", "~/")


def read_text(words: Sequence[str]) -> str:
    """Return the words, the content of the file they name, or standard input; must be UTF-8.

    A name of a file that does not exist is an error, so that a typing error is not spoken.
    """
    if len(words) > 1:
        if name := next((word for word in words if word == "-" or is_file(word)), None):
            raise InvalidInput(f"{name} must be the only argument; to speak several files: cat A B | tutti speak -")
        return " ".join(words)
    (argument,) = words
    if argument == "-":
        return decode(sys.stdin.buffer.read(), "standard input")
    if is_file(argument):
        if argument.lower().endswith(BOOKS):
            raise InvalidInput(f"{argument} is a book; run: tutti read {argument}", param="text")
        return decode(Path(argument).read_bytes(), argument)
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
    return is_one_word and (argument.lower().endswith(FILE_SUFFIXES) or argument.startswith(PATH_STARTS))


def decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidInput(f"{name} is not UTF-8 text (byte {exc.start})", param="text") from exc
