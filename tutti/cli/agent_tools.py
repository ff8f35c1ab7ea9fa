"""What an agent can do over MCP: speak, list voices, read a document, stop."""

import logging
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field

from tutti.audiobook.book import Book
from tutti.audiobook.formats import read_book
from tutti.client import Client
from tutti.client.audio import Audio, Piece
from tutti.client.commands import FORMATS
from tutti.client.request import SpeechOptions
from tutti.client.sound_card import NoSoundCard, play, sound_card
from tutti.errors import InvalidInput, TuttiError

MAX_FILE_CHARACTERS = 200_000  # four hours of speech, which are held in memory
CHARACTERS_A_MINUTE = 900
log = logging.getLogger("tutti.mcp")

Voice = Annotated[str | None, Field(description="from list_voices, or a blend: af_bella(2)+af_sky")]
Speed = Annotated[float | None, Field(description="0.25 to 4; default: 1")]
File = Annotated[str | None, Field(description=f"write to this file instead of playing: {' '.join(FORMATS)}")]


class AgentTools:
    """Each method is a tool; its docstring is what the agent reads. They run in threads, and one plays at a time."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._folder = folder.expanduser().resolve()
        self._playing = threading.Lock()
        self._n_stops = 0

    def speak(self, text: str, voice: Voice = None, speed: Speed = None, file: File = None) -> str:
        """Say a text to the user through the sound card, or write it to an audio file. Returns when it was said."""
        options = _options(voice, speed)
        if file is not None:
            return self._write(text, file, options)
        try:
            return self._play(text, options, self._n_stops)
        except NoSoundCard as missing:
            raise NoSoundCard(f"{missing.message}; or give `file`") from None

    def list_voices(
        self, language: Annotated[str | None, Field(description="only this language, such as en-us, fr, ja")] = None
    ) -> list[dict[str, Any]]:
        """List the voices: id (to be used as `voice`), language, gender, description, and grade (A is best)."""
        names = ("id", "language", "gender", "grade", "description")
        voices = [{name: voice.get(name) for name in names} for voice in self._client.voices()]
        return [voice for voice in voices if not language or str(voice["language"]).startswith(language.lower())]

    def read_document(
        self,
        path: Annotated[str, Field(description="an .epub, .pdf, .html, .md or .txt file")],
        chapter: Annotated[int | None, Field(description="only this one, from 1; default: all")] = None,
        voice: Voice = None,
        speed: Speed = None,
        file: File = None,
    ) -> str:
        """Read a document aloud; it goes on in the background until `stop`. With `file`, write it to an audio file."""
        book = self._open(path)
        if chapter is not None and not 1 <= chapter <= len(book.chapters):
            raise InvalidInput(f"{book.title} has chapters 1 to {len(book.chapters)}", param="chapter")
        chapters = book.chapters if chapter is None else book.chapters[chapter - 1 : chapter]
        options, texts = _options(voice, speed), [each.text for each in chapters]
        n_characters = sum(map(len, texts))
        if file is not None:
            if n_characters > MAX_FILE_CHARACTERS:
                message = f"{n_characters:,} characters are too many for one file; choose a `chapter`, or: tutti read"
                raise InvalidInput(message, param="file")
            return self._write("\n\n".join(texts), file, options)
        sound_card()  # raises if there is none
        threading.Thread(target=self._play_all, args=(texts, options, self._n_stops), daemon=True).start()
        titles = ", ".join(f"{n}: {each.title}" for n, each in enumerate(book.chapters[:50], 1))
        minutes = max(1, n_characters // CHARACTERS_A_MINUTE)
        return f"reading {book.title}, about {minutes} min. Chapters: {titles}"

    def stop(self) -> str:
        """Stop what is being said or read aloud."""
        self._n_stops += 1
        return "stopped" if self._playing.locked() else "nothing is being said"

    def _play(self, text: str, options: SpeechOptions, n_stops: int) -> str:
        card = sound_card()
        with self._playing, self._client.stream(text, words=False, **options) as stream:
            notices: list[str] = []
            seconds = play(self._until_stopped(stream, n_stops, notices), card)
        said = "stopped after" if n_stops != self._n_stops else "said"
        return "; ".join([f"{said} {seconds:.1f} s of speech", *dict.fromkeys(notices)])

    def _play_all(self, texts: Iterable[str], options: SpeechOptions, n_stops: int) -> None:
        try:
            for text in texts:
                if n_stops == self._n_stops:
                    self._play(text, options, n_stops)
        except TuttiError as error:
            if n_stops == self._n_stops:
                log.error("the reading ended: %s", error.message)

    def _until_stopped(self, pieces: Iterable[Piece], n_stops: int, notices: list[str]) -> Iterator[Piece]:
        for piece in pieces:
            if n_stops != self._n_stops:
                return
            notices += piece.notices
            yield piece

    def _write(self, text: str, file: str, options: SpeechOptions) -> str:
        path = self._inside(file)
        format = FORMATS.get(path.suffix.lower())
        if format is None:
            raise InvalidInput(f"{file}: choose one of {' '.join(FORMATS)}", param="file")
        if path.exists():
            raise InvalidInput(f"{path} exists; choose another name", param="file")
        if not path.parent.is_dir():
            raise InvalidInput(f"there is no folder {path.parent}", param="file")
        audio: Audio = self._client.speak(text, format=format, **options)  # type: ignore[misc]
        audio.save(path)
        length = f"{audio.duration_s:.1f} s of speech" if audio.duration_s else f"{len(audio.data)} bytes"
        return "; ".join([f"wrote {path}, {length}", *audio.notices])

    def _open(self, name: str) -> Book:
        path = self._inside(name)
        try:
            with path.open("rb") as file:
                return read_book(file, path.name)
        except OSError as error:
            raise InvalidInput(f"cannot read {path}: {error.strerror}", param="path") from None

    def _inside(self, name: str) -> Path:
        """Return the path of a file that the agent names, if the user has given the folder to it."""
        path = (self._folder / Path(name).expanduser()).resolve()
        if not path.is_relative_to(self._folder):
            raise InvalidInput(f"{path} is outside of {self._folder}; tutti mcp --folder allows another", param="path")
        return path


def _options(voice: str | None, speed: float | None) -> SpeechOptions:
    options = {"voice": voice, "speed": speed}
    return cast(SpeechOptions, {name: value for name, value in options.items() if value is not None})
