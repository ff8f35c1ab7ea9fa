"""`tutti read`: a book becomes an audiobook."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti import settings
from tutti.cli import options as flags
from tutti.errors import InvalidInput

if TYPE_CHECKING:
    from tutti.audiobook import Journal
    from tutti.audiobook.book import Book
    from tutti.audiobook.narrate import Told

Show = Callable[[str, int, int], None]  # what is being done, how much of it, of how much


def register(app: typer.Typer) -> None:
    app.command()(read)


def read(
    book: Annotated[Path, typer.Argument(help="An .epub, .html, .md or .txt file.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The audiobook: .m4b .mp3 .opus .flac .wav …")] = None,
    voice: flags.Voice = None,
    style: Annotated[str | None, typer.Option(help="Read with the prosody of this other voice.")] = None,
    speed: flags.Speed = 1.0,
    pitch: flags.Pitch = 0.0,
    pitch_range: flags.PitchRange = 1.0,
    energy: flags.Energy = 0.0,
    emotion: flags.Emotion = None,
    language: flags.Language = None,
    captions: flags.Captions = None,
    captions_by_word: flags.CaptionsByWord = False,
    title: Annotated[str | None, typer.Option(help="Instead of the book's own.")] = None,
    author: Annotated[str | None, typer.Option(help="Instead of the book's own.")] = None,
    cover: Annotated[Path | None, typer.Option(help="A JPEG or PNG instead of the book's own.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of the text, where it is not UTF-8: latin-1, cp1252.")] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Forget what an earlier run has kept.")] = False,
    lexicon: flags.Lexicon = None,
    home: flags.Home = None,
    offline: flags.Offline = None,
    backend: Annotated[str | None, typer.Option(help="Who runs the model: auto onnx torch.")] = None,
    device: Annotated[str | None, typer.Option(help="Where the model runs: auto cpu cuda.")] = None,
    precision: Annotated[str | None, typer.Option(help="auto fp32 int8 fp16.")] = None,
    threads: flags.Threads = None,
    g2p_url: flags.G2PUrl = None,
) -> None:
    """Read a book aloud, with chapters and cover: [bold]tutti read book.epub -o book.m4b[/]

    Stopped or killed, the same command goes on where it was.
    """
    from tutti.audio.tagged import container
    from tutti.audiobook import Captions, Journal, finish, passages
    from tutti.audiobook import read as read_aloud
    from tutti.audiobook.params import fingerprint, other_language
    from tutti.audiobook.passages import check_marks
    from tutti.captions import kind_of_file
    from tutti.engine.build import open_engine
    from tutti.engine.params import check_params
    from tutti.model.choice import choose
    from tutti.speech import SpeechParams

    given = {
        "home": home, "offline": offline, "backend": backend, "device": device, "precision": precision,
        "threads": threads, "g2p_url": g2p_url, "lexicon": lexicon, "voice": voice,
    }  # fmt: skip
    chosen, _ = settings.load(given)
    path = out or Path(f"{book.stem}.m4b")
    kind = container(path.suffix)
    beside = Captions(captions, kind_of_file(captions.name), captions_by_word) if captions else None
    for target in (path, captions or path):
        if not target.parent.is_dir():
            raise InvalidInput(f"cannot write {target}: there is no folder {target.parent}", param="out")
    params = SpeechParams(chosen.voice, style, speed, pitch, pitch_range, energy, emotion, language)
    check_params(params)
    text = _book(book, encoding, title, author, cover)
    check_marks(text.chapters, {})
    plan = list(passages(text.chapters))
    sound = {
        "model": choose(chosen.backend, chosen.device, chosen.precision, chosen.compile),
        "g2p": chosen.g2p_url,
        "lexicon": sha256(_bytes(chosen.lexicon)).hexdigest() if chosen.lexicon else None,
    }
    kept = path.with_name(f"{path.name}.reading")
    if restart:
        kept.unlink(missing_ok=True)
    _tell(text)
    if warning := other_language(text, params):
        print(warning, file=sys.stderr)
    with Journal(kept, fingerprint(params, text.chapters, plan, sound)) as journal:
        _tell_kept(journal, len(plan))
        opened = open_engine(chosen)

        async def spoken(told: "Told") -> None:
            async with opened as engine:
                await read_aloud(engine, text, plan, params, journal, at_once=engine.passages_at_once, told=told)

        started_s = time.monotonic()
        try:
            with _bar() as show:
                if len(journal.n_samples) < len(plan):
                    asyncio.run(spoken(lambda now: show("reading", now.n_characters, now.of_characters)))
                done = finish(
                    text, plan, journal, path, kind, beside, told=lambda n: show(f"writing {path.name}", n, len(plan))
                )
        except KeyboardInterrupt:
            print(f"stopped; what was read is in {kept}, and the same command goes on from there", file=sys.stderr)
            raise
        dropped = journal.dropped()
        journal.remove()
    took_s = time.monotonic() - started_s
    print(f"{path}: {done.n_chapters} chapters, {_clock(done.duration_s)} in {_clock(took_s)}", file=sys.stderr)
    for note in done.notes:
        print(note, file=sys.stderr)
    if dropped:
        lost = ", ".join(f"{symbol} ×{n}" if n > 1 else symbol for symbol, n in dropped.most_common(12))
        print(f"{dropped.total()} symbols could not be said: {lost}", file=sys.stderr)


def _book(path: Path, encoding: str | None, title: str | None, author: str | None, picture: Path | None) -> "Book":
    """The book, with what was told in place of what it says itself."""
    from tutti.audiobook.book import cover
    from tutti.audiobook.formats import read_book

    try:
        with path.open("rb") as file:
            found = read_book(file, path.name, encoding)
    except OSError as exc:
        raise InvalidInput(f"cannot read {path}: {exc.strerror}", param="book") from exc
    shown = cover(_bytes(picture)) if picture else found.cover
    if picture and shown is None:
        raise InvalidInput(f"{picture} is neither a JPEG nor a PNG file", param="cover")
    return replace(found, title=title or found.title, author=author or found.author, cover=shown)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise InvalidInput(f"cannot read {path}: {exc.strerror}") from exc


def _tell(book: "Book") -> None:
    who = f" by {book.author}" if book.author else ""
    print(f"{book.title}{who}: {len(book.chapters)} chapters, {book.n_characters:,} characters", file=sys.stderr)
    for note in book.notes:
        print(note, file=sys.stderr)


def _tell_kept(journal: "Journal", n_passages: int) -> None:
    if journal.started_over:
        print(f"starting over: {journal.started_over}", file=sys.stderr)
    if journal.n_samples:
        print(f"going on after {len(journal.n_samples)} of {n_passages} passages", file=sys.stderr)


@contextmanager
def _bar() -> Iterator[Show]:
    """A bar with the time left, where a person watches."""
    if not sys.stderr.isatty():
        yield lambda _what, _done, _all: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    # The speed of a long stretch: passages are kept one by one, and some are long.
    with Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=300) as bar:

        def show(what: str, done: int, of: int) -> None:
            if what not in tasks:  # what was done before is no measure of the speed
                tasks[what] = bar.add_task(what, total=of, completed=done)
            bar.update(tasks[what], completed=done)

        yield show


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
