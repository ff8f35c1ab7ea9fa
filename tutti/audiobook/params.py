"""What makes the sound of a book: when any of it changes, kept passages are not used again."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256

from tutti import __version__
from tutti.audiobook.book import Book, Chapter
from tutti.audiobook.passages import Passage
from tutti.errors import UnknownLanguage
from tutti.speech import SpeechParams
from tutti.text.language import language
from tutti.voices import parse


def other_language(book: Book, params: SpeechParams) -> str:
    """A word of warning where the book says that it is in a language which nobody here was asked to read."""
    if not book.language:
        return ""
    asked = language(params.language or parse(params.voice)[0][0][0])
    said = book.language.lower()
    with suppress(UnknownLanguage):
        said = language(said).code
    if said[:2] == asked.code[:2]:
        return ""
    return f"the book says it is in {book.language[:20]!r}, and is read as {asked.code}; voice or language change that"


def fingerprint(
    params: SpeechParams, chapters: Iterable[Chapter], plan: Iterable[Passage], sound: Mapping[str, object]
) -> str:
    """What a kept passage must agree with to be used: text, cuts, manner, version, and what else makes the sound."""
    made = sha256()
    for text in (
        __version__,
        json.dumps({**asdict(params), "sound": {key: str(value) for key, value in sound.items()}}, sort_keys=True),
        *(chapter.text for chapter in chapters),
        *(repr(passage) for passage in plan),
    ):
        data = text.encode("utf-8", "surrogatepass")
        made.update(len(data).to_bytes(8))
        made.update(data)
    return made.hexdigest()
