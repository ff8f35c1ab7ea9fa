"""`tutti read`: a book into an audiobook."""

import asyncio
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tutti.cli import options
from tutti.cli.terminal import counted, print_dropped, print_notices, progress_bar
from tutti.errors import InvalidInput

SUFFIX = ".m4b"

if TYPE_CHECKING:
    from tutti.audio.tagged import CoverImage
    from tutti.audiobook.book import Book
    from tutti.audiobook.journal import Journal
    from tutti.audiobook.narrate import NarrationProgress, OnProgress
    from tutti.settings import Settings
    from tutti.speech import SpeechParams


@dataclass(frozen=True, slots=True)
class About:
    """What overrides that of the book."""

    title: Annotated[str | None, typer.Option(help="Overrides the title in the book.")] = None
    author: Annotated[str | None, typer.Option(help="Overrides the author in the book.")] = None
    year: Annotated[str | None, typer.Option(help="Overrides the year in the book.")] = None
    series: Annotated[str | None, typer.Option(help='Its series, with the number: "The Winters #2".')] = None
    narrator: Annotated[str | None, typer.Option(help="Who reads, for the tags; default: the name of the voice.")] = (
        None
    )
    cover: Annotated[Path | None, typer.Option(help="A JPEG or PNG file; overrides the cover in the book.")] = None

    def override(self, book: "Book") -> "Book":
        from tutti.audiobook.about import check_year

        own = {"title": self.title, "author": self.author, "series": self.series, "narrator": self.narrator}
        overrides = {**own, "year": check_year(self.year or "")}
        changed: dict[str, Any] = {name: text for name, text in overrides.items() if text}
        return replace(book, **changed, cover=self._read_cover(book))

    def _read_cover(self, book: "Book") -> "CoverImage | None":
        from tutti.audiobook.book import parse_cover

        if self.cover is None:
            return book.cover
        try:
            picture = parse_cover(self.cover.read_bytes())
        except OSError as exc:
            raise InvalidInput(f"cannot read {self.cover}: {exc.strerror}", param="cover") from exc
        if picture is None:
            raise InvalidInput(f"{self.cover} is neither a JPEG nor a PNG file", param="cover")
        return picture


@options.with_groups
def read(
    book: Annotated[
        str, typer.Argument(help="An .epub, .docx, .odt, .fb2, .pdf, .html, .md or .txt file, or a web address.")
    ],
    *,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The audiobook: .m4b .mp3 .opus .flac .wav …")] = None,
    library: Annotated[
        Path | None, typer.Option(help="Instead of --out: a folder, in which it is Author/Series/Title/Title.m4b.")
    ] = None,
    manner: options.Manner,
    captions: options.Captions = None,
    captions_by_word: options.CaptionsByWord = False,
    about: About,
    encoding: Annotated[str | None, typer.Option(help="Of a text that is not UTF-8: latin-1, cp1252.")] = None,
    loudness: Annotated[str | None, typer.Option(help="acx, ebu, podcast or LUFS: -18; default: as spoken.")] = None,
    cast: Annotated[Path | None, typer.Option(help="A .toml or .json file: which voice speaks for whom.")] = None,
    skip: Annotated[str, typer.Option(help="Parts that are not read: copyright,notes,index …")] = "",
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Keep what was spoken: a correction speaks only what changed."),
    ] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Discard what an earlier run has spoken.")] = False,
    means: options.Means,
) -> None:
    """Read a book aloud, with chapters and cover: [bold]tutti read book.epub -o book.m4b[/]

    After an interruption or a crash, run the same command again to resume.
    """
    from tutti.audio.loudness import parse_loudness
    from tutti.audio.tagged import container
    from tutti.audiobook.about import with_reader
    from tutti.audiobook.cast import read_cast, with_cast
    from tutti.audiobook.export import CaptionFile, export_book
    from tutti.audiobook.fingerprint import fingerprints, voice_hashes
    from tutti.audiobook.formats.parts import parse_skip
    from tutti.audiobook.journal import Journal
    from tutti.audiobook.narrate import language_warning, narrate
    from tutti.audiobook.passages import check_chapter_marks, passages
    from tutti.audiobook.time_left import TimeLeft, spoken_duration
    from tutti.captions import caption_format
    from tutti.engine.build import open_engine, text_options
    from tutti.engine.checkpoints import audio_fingerprint, open_voices
    from tutti.engine.request import check_params
    from tutti.text.language import request_language

    settings, params = _with_lexicons(book, *means.speaking(manner))
    if out and library:
        raise InvalidInput("give either --out or --library", param="library")
    target = parse_loudness(loudness) if loudness else None
    kind = container(out.suffix if out else SUFFIX)
    caption_file = CaptionFile(captions, caption_format(captions.name), captions_by_word) if captions else None
    for file in filter(None, (out, captions)):
        if not file.parent.is_dir():
            raise InvalidInput(f"cannot write {file}: there is no folder {file.parent}", param="out")
    voices = open_voices(settings).of_model(params.model)
    check_params(params, voices)
    language = request_language(params.language, voices.language_of(params.voice))[0]
    found = about.override(_read_book(book, encoding, parse_skip(skip)))
    parsed = with_reader(found, params.voice, language)
    path = out or _default_path(book, parsed, library)
    if cast:
        speakers = read_cast(cast, voices)
        params, parsed = speakers.params(params), with_cast(parsed, speakers.names)
    check_chapter_marks(parsed.chapters, params.voice_names, voices)
    plan = list(passages(parsed.chapters, text_options(settings).pauses))
    used = voice_hashes(params, parsed.chapters, voices)
    identity, keys = fingerprints(params, parsed.chapters, plan, audio_fingerprint(settings), used)
    journal_path = path.with_name(f"{path.name}.reading")
    if restart:
        journal_path.unlink(missing_ok=True)
    _print_book(parsed)
    if warning := language_warning(found.language, params, voices):
        print(warning, file=sys.stderr)
    with Journal(journal_path, identity, keys) as journal:
        _print_resumption(journal, len(plan))
        opened = open_engine(settings, model="")

        async def speak(on_progress: "OnProgress") -> None:
            async with opened as engine:
                at_once = engine.passages_at_once
                try:
                    await narrate(engine, parsed, plan, params, journal, at_once=at_once, on_progress=on_progress)
                except asyncio.CancelledError:
                    print("stopping when the running batch ends …", file=sys.stderr)  # it takes seconds on a CPU
                    raise

        started_s = time.monotonic()
        try:
            with progress_bar(time_left=False) as show:
                estimate = TimeLeft()

                def show_progress(now: "NarrationProgress") -> None:
                    end = estimate.update(time.monotonic(), now.n_characters, now.of_characters)
                    left = f", about {spoken_duration(end - time.monotonic())} left" if end else ""
                    detail = f"{_clock(now.spoken_s)} of speech{left}"
                    show("reading", now.n_characters, now.of_characters, detail)

                if len(journal.n_samples) < len(plan):
                    show("loading the model", 0, 0)
                    asyncio.run(speak(show_progress))
                result = export_book(
                    *(parsed, plan, journal, path, kind, caption_file),
                    on_written=lambda n: show(f"writing {path.name}", n, len(plan)),
                    loudness=target,
                )
        except KeyboardInterrupt:
            print(f"stopped; run the same command again to resume from {journal_path}", file=sys.stderr)
            raise
        if library and parsed.cover:
            path.with_name(f"cover.{parsed.cover.kind}").write_bytes(parsed.cover.data)
        dropped, notices = journal.dropped(), journal.notices()
        if not keep:
            journal.remove()
    took_s = time.monotonic() - started_s
    length = f"{_clock(result.duration_s)} of speech, made in {_clock(took_s)}"
    print(f"{path}: {counted(len(result.chapters), 'chapter')}, {length}", file=sys.stderr)
    for note in result.notes:
        print(note, file=sys.stderr)
    print_dropped(dropped)
    print_notices(notices)


def _read_book(source: str, encoding: str | None, skip: frozenset[str]) -> "Book":
    """Parse a book from a file or an address."""
    from tutti.audiobook.formats import read_book
    from tutti.cli.web_page import is_address, read_page

    if is_address(source):
        return read_page(source, encoding, skip)
    path = Path(source)
    try:
        with path.open("rb") as file:
            return read_book(file, path.name, encoding, skip)
    except OSError as exc:
        raise InvalidInput(f"cannot read {exc.filename or path}: {exc.strerror}", param="book") from exc


def _with_lexicons(source: str, settings: "Settings", params: "SpeechParams") -> tuple["Settings", "SpeechParams"]:
    """The lexicon of the book, over that of the settings: both as words of this book, unless they are very many."""
    from tutti.audiobook.fingerprint import FEW_WORDS

    own: dict[str, str] = {}
    if path := _lexicon_of(source):
        print(f"using the lexicon {path}", file=sys.stderr)
        own = _entries(path)
    entries = _entries(settings.lexicon) if settings.lexicon else {}
    if len(entries) + len(own) > FEW_WORDS:
        return settings, replace(params, lexicon=own)
    return settings.model_copy(update={"lexicon": None}), replace(params, lexicon={**entries, **own})


def _entries(path: Path) -> dict[str, str]:
    """The entries of a lexicon; raise InvalidInput with the reason for one that is wrong."""
    from tutti.text.user_lexicon import FILE_TYPES, UserLexicon, parse_entries

    kind = "tsv" if path.suffix == ".lexicon" else path.suffix.lower().removeprefix(".")
    if kind not in FILE_TYPES:
        raise InvalidInput(f"{path}: a lexicon is a .tsv, .json or .toml file", param="lexicon")
    try:
        entries = dict(parse_entries(path.read_text("utf-8-sig"), kind))
        UserLexicon.of(entries)
    except (OSError, ValueError, RecursionError, InvalidInput) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else exc
        raise InvalidInput(f"cannot read {path}: {reason}", param="lexicon") from exc
    return entries


def _lexicon_of(source: str) -> Path | None:
    """The lexicon beside a book: book.lexicon.tsv, .json or .toml, or book.lexicon, which is a .tsv."""
    from tutti.cli.web_page import is_address

    if is_address(source):
        return None
    candidates = (Path(source).with_suffix(f".lexicon{kind}") for kind in (".tsv", ".json", ".toml", ""))
    return next((path for path in candidates if path.is_file()), None)


def _default_path(source: str, book: "Book", library: Path | None) -> Path:
    """Where the audiobook is written without --out."""
    from tutti.audiobook.about import as_name, library_path
    from tutti.cli.web_page import is_address

    if library is None:
        return Path((as_name(book.title) if is_address(source) else Path(source).stem) + SUFFIX)
    path = library_path(book, library, SUFFIX)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise InvalidInput(f"cannot make the folder {path.parent}: {exc.strerror}", param="library") from exc
    return path


def _print_book(book: "Book") -> None:
    author = f" by {book.author}" if book.author else ""
    size = f"{counted(len(book.chapters), 'chapter')}, {counted(book.n_characters, 'character')}"
    print(f"{book.title}{author}: {size}", file=sys.stderr)
    for note in book.notes:
        print(note, file=sys.stderr)


def _print_resumption(journal: "Journal", n_passages: int) -> None:
    if journal.change:
        print(journal.change, file=sys.stderr)
    if journal.restart_reason:
        print(f"starting over: {journal.restart_reason}", file=sys.stderr)
    if journal.repair:
        print(journal.repair, file=sys.stderr)
    if journal.n_samples:
        print(f"resuming after {len(journal.n_samples)} of {counted(n_passages, 'passage')}", file=sys.stderr)


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
