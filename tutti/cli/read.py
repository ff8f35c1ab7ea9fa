"""`tutti read`: a book into an audiobook."""

import asyncio
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli import options
from tutti.cli.terminal import counted, print_dropped, print_notices, progress_bar
from tutti.errors import InvalidInput

if TYPE_CHECKING:
    from tutti.audiobook.book import Book
    from tutti.audiobook.journal import Journal
    from tutti.audiobook.narrate import OnProgress


@options.with_groups
def read(
    book: Annotated[Path, typer.Argument(help="An .epub, .docx, .odt, .fb2, .pdf, .html, .md or .txt file.")],
    *,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The audiobook: .m4b .mp3 .opus .flac .wav …")] = None,
    manner: options.Manner,
    captions: options.Captions = None,
    captions_by_word: options.CaptionsByWord = False,
    title: Annotated[str | None, typer.Option(help="Overrides the title in the book.")] = None,
    author: Annotated[str | None, typer.Option(help="Overrides the author in the book.")] = None,
    cover: Annotated[Path | None, typer.Option(help="A JPEG or PNG file; overrides the cover in the book.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a text that is not UTF-8: latin-1, cp1252.")] = None,
    loudness: Annotated[str | None, typer.Option(help="acx, ebu, podcast or LUFS: -18; default: as spoken.")] = None,
    cast: Annotated[Path | None, typer.Option(help="A .toml or .json file: which voice speaks for whom.")] = None,
    skip: Annotated[str, typer.Option(help="Parts that are not read: copyright,notes,index …")] = "",
    restart: Annotated[bool, typer.Option("--restart", help="Discard what an earlier run has spoken.")] = False,
    means: options.Means,
) -> None:
    """Read a book aloud, with chapters and cover: [bold]tutti read book.epub -o book.m4b[/]

    After an interruption or a crash, run the same command again to resume.
    """
    from tutti.audio.loudness import parse_loudness
    from tutti.audio.tagged import container
    from tutti.audiobook.cast import read_cast, with_cast
    from tutti.audiobook.export import CaptionFile, export_book
    from tutti.audiobook.fingerprint import fingerprint, voice_hashes
    from tutti.audiobook.formats.parts import parse_skip
    from tutti.audiobook.journal import Journal
    from tutti.audiobook.narrate import language_warning, narrate
    from tutti.audiobook.passages import check_chapter_marks, passages
    from tutti.captions import caption_format
    from tutti.engine.build import open_engine, text_options
    from tutti.engine.checkpoints import audio_fingerprint, open_voices
    from tutti.engine.request import check_params

    settings, params = means.speaking(manner)
    path = out or Path(f"{book.stem}.m4b")
    target = parse_loudness(loudness) if loudness else None
    kind = container(path.suffix)
    caption_file = CaptionFile(captions, caption_format(captions.name), captions_by_word) if captions else None
    for file in (path, captions or path):
        if not file.parent.is_dir():
            raise InvalidInput(f"cannot write {file}: there is no folder {file.parent}", param="out")
    voices = open_voices(settings).of_model(params.model)
    check_params(params, voices)
    parsed = _read_book(book, encoding, title, author, cover, parse_skip(skip))
    if cast:
        speakers = read_cast(cast, voices)
        params, parsed = speakers.params(params), with_cast(parsed, speakers.names)
    check_chapter_marks(parsed.chapters, params.voice_names, voices)
    plan = list(passages(parsed.chapters, text_options(settings).pauses))
    used = voice_hashes(params, parsed.chapters, voices)
    identity = fingerprint(params, parsed.chapters, plan, audio_fingerprint(settings), used)
    journal_path = path.with_name(f"{path.name}.reading")
    if restart:
        journal_path.unlink(missing_ok=True)
    _print_book(parsed)
    if warning := language_warning(parsed.language, params, voices):
        print(warning, file=sys.stderr)
    with Journal(journal_path, identity) as journal:
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
            with progress_bar() as show:
                if len(journal.n_samples) < len(plan):
                    show("loading the model", 0, 0)
                    asyncio.run(speak(lambda now: show("reading", now.n_characters, now.of_characters)))
                result = export_book(
                    *(parsed, plan, journal, path, kind, caption_file),
                    on_written=lambda n: show(f"writing {path.name}", n, len(plan)),
                    loudness=target,
                )
        except KeyboardInterrupt:
            print(f"stopped; run the same command again to resume from {journal_path}", file=sys.stderr)
            raise
        dropped, notices = journal.dropped(), journal.notices()
        journal.remove()
    took_s = time.monotonic() - started_s
    length = f"{_clock(result.duration_s)} of speech, made in {_clock(took_s)}"
    print(f"{path}: {counted(result.n_chapters, 'chapter')}, {length}", file=sys.stderr)
    for note in result.notes:
        print(note, file=sys.stderr)
    print_dropped(dropped)
    print_notices(notices)


def _read_book(
    path: Path,
    encoding: str | None,
    title: str | None,
    author: str | None,
    cover: Path | None,
    skip: frozenset[str],
) -> "Book":
    """Parse a book; title, author and cover override its own."""
    from tutti.audiobook.book import parse_cover
    from tutti.audiobook.formats import read_book

    try:
        with path.open("rb") as file:
            book = read_book(file, path.name, encoding, skip)
        picture = parse_cover(cover.read_bytes()) if cover else book.cover
    except OSError as exc:
        raise InvalidInput(f"cannot read {exc.filename or path}: {exc.strerror}", param="book") from exc
    if cover and picture is None:
        raise InvalidInput(f"{cover} is neither a JPEG nor a PNG file", param="cover")
    return replace(book, title=title or book.title, author=author or book.author, cover=picture)


def _print_book(book: "Book") -> None:
    author = f" by {book.author}" if book.author else ""
    size = f"{counted(len(book.chapters), 'chapter')}, {counted(book.n_characters, 'character')}"
    print(f"{book.title}{author}: {size}", file=sys.stderr)
    for note in book.notes:
        print(note, file=sys.stderr)


def _print_resumption(journal: "Journal", n_passages: int) -> None:
    if journal.restart_reason:
        print(f"starting over: {journal.restart_reason}", file=sys.stderr)
    if journal.repair:
        print(journal.repair, file=sys.stderr)
    if journal.n_samples:
        print(f"resuming after {len(journal.n_samples)} of {counted(n_passages, 'passage')}", file=sys.stderr)


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
