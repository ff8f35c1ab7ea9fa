"""How a book is read: all that changes its sound."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

from tutti import __version__
from tutti.audiobook.book import Book, Chapter
from tutti.audiobook.passages import Passage
from tutti.errors import UnknownLanguage
from tutti.model.prosody import check_prosody, emotion
from tutti.model.validation import check_speed
from tutti.speech import Prosody
from tutti.text.language import language
from tutti.text.user_lexicon import WordList
from tutti.voices import parse


@dataclass(frozen=True, slots=True)
class Voicing:
    """One voice and one manner for the whole book, as the engine's `stream` is asked for them."""

    voice: str
    style: str | None = None
    speed: float = 1.0
    pitch: float = 0.0
    pitch_range: float = 1.0
    energy: float = 0.0
    emotion: str | None = None
    language: str | None = None
    lexicon: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    seed: int | None = None
    model: str | None = None

    def asked(self) -> dict[str, Any]:
        return asdict(self)

    def check(self) -> None:
        """Raises InvalidInput where a part of it does not exist."""
        for voice in (self.voice, self.style):
            if voice is not None:
                parse(voice)
        check_speed(self.speed)
        check_prosody(Prosody(self.pitch, self.pitch_range, self.energy))
        if self.emotion is not None:
            emotion(self.emotion)
        if self.language is not None:
            language(self.language)
        WordList.of(self.lexicon)


def other_language(book: Book, voicing: Voicing) -> str:
    """A word of warning where the book says that it is in a language which nobody here was asked to read."""
    if not book.language:
        return ""
    asked = language(voicing.language or parse(voicing.voice)[0][0][0])
    said = book.language.lower()
    with suppress(UnknownLanguage):
        said = language(said).code
    if said[:2] == asked.code[:2]:
        return ""
    return f"the book says it is in {book.language[:20]!r}, and is read as {asked.code}; voice or language change that"


def fingerprint(
    voicing: Voicing, chapters: Iterable[Chapter], plan: Iterable[Passage], sound: Mapping[str, object]
) -> str:
    """What a kept passage must agree with to be used: text, cuts, manner, version, and what else makes the sound."""
    made = sha256()
    for text in (
        __version__,
        json.dumps({**voicing.asked(), "sound": {key: str(value) for key, value in sound.items()}}, sort_keys=True),
        *(chapter.text for chapter in chapters),
        *(repr(passage) for passage in plan),
    ):
        data = text.encode("utf-8", "surrogatepass")
        made.update(len(data).to_bytes(8))
        made.update(data)
    return made.hexdigest()
