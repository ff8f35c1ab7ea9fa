"""The `tutti` command: `serve`, `speak`, `read`, `voices`, `pull`, `verify`, `config`, `g2p-serve`, `say`, `bench`."""

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin

import typer

from tutti import __version__, settings
from tutti.cli import options as flags
from tutti.cli.read import register as register_read
from tutti.client.commands import register
from tutti.errors import InvalidInput, TuttiError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from tutti.cli.record import Heard, Show

app = typer.Typer(
    help="All voices, one pass: text to speech with Kokoro-82M.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

Backend = Literal["auto", "onnx", "torch"]
Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "fp32", "int8", "fp16"]
Compile = Literal["off", "reduced", "full"]
BackendFlag = Annotated[Backend | None, typer.Option(help="Who runs the model.")]
DeviceFlag = Annotated[Device | None, typer.Option(help="Where the model runs.")]
PrecisionFlag = Annotated[Precision | None, typer.Option(help="Numbers the model computes with.")]
CompileFlag = Annotated[Compile | None, typer.Option(help="Shapes made fast at start, on CUDA.")]


def main() -> None:
    """Runs a command; an error is one line on stderr and an exit code."""
    debug = "--debug" in sys.argv  # wherever it stands: `tutti speak … --debug` is what fingers type
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    logging.basicConfig(
        level=logging.INFO if debug else logging.ERROR, format="%(asctime)s %(name)s %(levelname)s %(message)s"
    )
    try:
        app(arguments)
    except TuttiError as exc:
        if debug:
            raise
        print(f"tutti: {exc.message}", file=sys.stderr)
        raise SystemExit(exc.exit_code) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # keeps Python's own last flush quiet
        raise SystemExit(141) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tutti {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the log, and the trace of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it and go.")
    ] = False,
) -> None:
    logging.basicConfig(
        level=logging.INFO if debug else logging.ERROR, format="%(asctime)s %(name)s %(levelname)s %(message)s"
    )


@app.command()
def speak(
    text: Annotated[str, typer.Argument(help="What to say; a file to read from; or - for standard input.")],
    out: Annotated[str, typer.Option("--out", "-o", help="A file, or - to stream to standard output.")] = "speech.wav",
    live: Annotated[bool, typer.Option("--live", help="With -: speak along while it is being written.")] = False,
    voice: flags.Voice = None,
    style: Annotated[str | None, typer.Option(help="Speak with the prosody of this other voice.")] = None,
    speed: flags.Speed = 1.0,
    pitch: flags.Pitch = 0.0,
    pitch_range: flags.PitchRange = 1.0,
    energy: flags.Energy = 0.0,
    emotion: flags.Emotion = None,
    language: flags.Language = None,
    format: Annotated[str | None, typer.Option("--format", "-f", help="wav mp3 opus flac aac pcm mulaw alaw.")] = None,
    sample_rate: Annotated[int | None, typer.Option(help="Samples a second; else what the format is used to.")] = None,
    words: Annotated[Path | None, typer.Option(help="Write when each word is heard, as JSON.")] = None,
    captions: flags.Captions = None,
    captions_by_word: flags.CaptionsByWord = False,
    lexicon: flags.Lexicon = None,
    home: flags.Home = None,
    offline: flags.Offline = None,
    backend: BackendFlag = None,
    device: DeviceFlag = None,
    precision: PrecisionFlag = None,
    compile: CompileFlag = None,
    threads: flags.Threads = None,
    g2p_url: flags.G2PUrl = None,
) -> None:
    """Say a text: [bold]tutti speak "Hello there" -o hello.mp3[/]"""
    from tutti.audio import find_format, format_of_file
    from tutti.captions import cues, kind_of_file, written
    from tutti.cli.record import record, record_file, save_text, save_words
    from tutti.cli.stdin import Piped
    from tutti.engine.build import open_engine
    from tutti.speech import Delivery, SpeechParams

    chosen, _ = settings.load(
        {
            "home": home,
            "offline": offline,
            "backend": backend,
            "device": device,
            "precision": precision,
            "compile": compile,
            "threads": threads,
            "g2p_url": g2p_url,
            "lexicon": lexicon,
            "voice": voice,
        }
    )
    to_stdout = out == "-"
    audio = find_format(format) if format else find_format("wav") if to_stdout else format_of_file(out)
    audio.rate(sample_rate)
    kind = kind_of_file(captions.name) if captions else None
    if to_stdout and sys.stdout.isatty():
        raise InvalidInput("audio does not go to a terminal; send it on: tutti speak … -o - | aplay", param="out")
    piped = Piped.of(text) if live else None
    said = "" if live else _text(text)
    params = SpeechParams(chosen.voice, style, speed, pitch, pitch_range, energy, emotion, language)
    opened = open_engine(chosen)

    async def said_and_heard() -> "tuple[Heard, float]":
        async with opened as engine:
            started_s = time.monotonic()
            delivery: Delivery = "live" if to_stdout or live else "whole"
            stream = engine.stream(piped.pieces() if piped else said, params, delivery=delivery)
            with _progress(len(said)) as show:
                if to_stdout:
                    heard = await record(stream, sys.stdout.buffer, audio.name, sample_rate, show)
                else:
                    heard = await record_file(stream, Path(out), audio.name, sample_rate, show)
            return heard, time.monotonic() - started_s

    heard, took_s = asyncio.run(said_and_heard())
    if words is not None:
        save_words(words, heard.words)
    if captions is not None and kind is not None:
        save_text(captions, written(cues(piped.text if piped else said, heard.words), kind, by_word=captions_by_word))
    _report(out, heard, took_s)


@app.command()
def voices(
    language: Annotated[str | None, typer.Option("--language", "-l", help="Only this language.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the 54 voices with language, gender and grade."""
    from tutti.text.language import language as find_language
    from tutti.voices import GRADES, gender

    only = find_language(language).letter if language else ""
    rows = [
        {"id": name, "language": find_language(name[0]).code, "gender": gender(name), "grade": grade}
        for name, grade in GRADES.items()
        if name.startswith(only)
    ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    _table(("voice", "language", "gender", "grade"), ([str(value) for value in row.values()] for row in rows))


@app.command()
def pull(
    folder: Annotated[Path | None, typer.Option("--from", help="Take the files from this folder.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Check every byte of what is there.")] = False,
    home: flags.Home = None,
    offline: flags.Offline = None,
    precision: PrecisionFlag = None,
) -> None:
    """Fetch the model, the voices and the lexicons, once."""
    from tutti.model.choice import choose, file_precision
    from tutti.weights import Store, required_files, show_progress, sources

    chosen, _ = settings.load({"home": home, "offline": offline, "precision": precision})
    store = Store(chosen.home)
    precision_here = choose(chosen.backend, chosen.device).precision if chosen.precision == "auto" else chosen.precision
    files = required_files(file_precision(precision_here))
    with show_progress() as progress:
        if verify:
            store.verify(files, progress)
        store.ensure(files, sources=sources(folder, offline=chosen.offline), progress=progress)
    print(f"{len(files)} files, {sum(file.size for file in files) / 1e6:.0f} MB, in {chosen.home}")


@app.command()
def verify(
    sentences: Annotated[int, typer.Option(min=1, max=560, help="How many to speak.")] = 8,
    out: Annotated[Path, typer.Option("--out", "-o", help="The report; its numbers as JSON go beside it.")] = Path(
        "verify.md"
    ),
    listen: Annotated[
        bool, typer.Option("--listen", help="Fetch the recogniser (73 MB) that counts wrong words.")
    ] = False,
    home: flags.Home = None,
    offline: flags.Offline = None,
    backend: BackendFlag = None,
    device: DeviceFlag = None,
    precision: PrecisionFlag = None,
    compile: CompileFlag = None,
    threads: flags.Threads = None,
) -> None:
    """Measure a backend against the official graph, and each row against itself among others."""
    from tutti.model.choice import choose, describe, load
    from tutti.verify import GATES
    from tutti.verify import sentences as said
    from tutti.verify import verify as measured
    from tutti.verify.recogniser import Moonshine
    from tutti.verify.reference import ReferenceModel
    from tutti.verify.report import HEAD, Report, outcome
    from tutti.voices import Voices
    from tutti.weights import MODELS, RECOGNISER, Store, required_files, show_progress, sources

    chosen, _ = settings.load(
        {
            "home": home,
            "offline": offline,
            "backend": backend,
            "device": device,
            "precision": precision,
            "compile": compile,
            "threads": threads,
        }
    )
    if not out.parent.is_dir():
        raise InvalidInput(f"cannot write {out}: there is no folder {out.parent}", param="out")
    choice = choose(chosen.backend, chosen.device, chosen.precision, chosen.compile)
    store = Store(chosen.home)
    files = [*required_files(choice.weights), *(RECOGNISER if listen else ())]
    with show_progress() as progress:
        store.ensure(files, sources=sources(offline=chosen.offline), progress=progress)
    path = store.path(MODELS[choice.weights])
    ears = None if store.missing(RECOGNISER) else Moonshine(*map(store.path, RECOGNISER))
    rows = said.sentences(Voices(chosen.home / "voices"), sentences)
    with _steps() as show, closing(load(path, choice, chosen.threads)) as model:
        if warm_up := getattr(model, "warm_up", None):
            warm_up()
        checks = measured(model, ReferenceModel(path, chosen.threads), rows, ears, GATES[choice.precision], show)
    notes = [] if ears else ["Words were not counted: the recogniser is not here; --listen fetches it (73 MB)."]
    report = Report(describe(choice), len(rows), checks, notes)
    report.save(out)
    _table(HEAD, report.rows())
    print(*notes, f"{report.model}: {outcome(report.passed)}; the report is {out}", sep="\n")
    if not report.passed:
        raise typer.Exit(1)


@app.command()
def config() -> None:
    """Show every setting: its value, where that came from, what it is for."""
    chosen, came_from = settings.load({})
    rows = (
        (f"TUTTI_{name.upper()}", str(getattr(chosen, name)), came_from[name], str(field.description))
        for name, field in settings.Settings.model_fields.items()
    )
    _table(("setting", "value", "from", "meaning"), rows)


@app.command("g2p-serve")
def g2p_serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8881,
    home: flags.Home = None,
    offline: flags.Offline = None,
) -> None:
    """Serve G2P over HTTP, for engines that are told [bold]--g2p-url http://host:8881[/]."""
    import uvicorn

    from tutti.server.routes.g2p import g2p_app
    from tutti.text.g2p import G2P
    from tutti.weights import LEXICONS, Store, show_progress, sources

    chosen, _ = settings.load({"home": home, "offline": offline})
    with show_progress() as progress:
        Store(chosen.home).ensure(LEXICONS, sources=sources(offline=chosen.offline), progress=progress)
    uvicorn.run(g2p_app(G2P(chosen.home).pronounce), host=host, port=port, log_level="info")


def _with_every_setting(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command an option for each setting; the settings themselves judge what is given."""

    def option(name: str, field: "FieldInfo") -> Parameter:
        kind: Any = field.annotation
        text = str(field.description)
        about = typer.Option(help=f"{text[0].upper()}{text[1:]}.", show_default=False)
        if kind is not bool and get_origin(kind) is not Literal:
            kind, about.metavar = str, "VALUE"
        return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, about])

    fields = settings.Settings.model_fields
    command.__signature__ = Signature([option(*each) for each in fields.items()])  # type: ignore[attr-defined]
    return command


@app.command()
@_with_every_setting
def serve(**flags: str | bool | None) -> None:
    """Serve speech over HTTP: [bold]tutti serve --port 8880 --preset latency[/]"""
    from tutti.server.run import serve

    chosen, _ = settings.load(flags)
    serve(chosen)


register(app)  # say, bench, top
register_read(app)


def _text(argument: str) -> str:
    """The argument itself, the file it names, or standard input; undecodable bytes are an error, not a guess."""
    if argument == "-":
        data, name = sys.stdin.buffer.read(), "standard input"
    elif len(argument) < 1024 and "\0" not in argument and Path(argument).is_file():
        data, name = Path(argument).read_bytes(), argument
    else:
        return argument
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidInput(f"{name} is not UTF-8 text (byte {exc.start})", param="text") from exc


def _report(out: str, heard: "Heard", took_s: float) -> None:
    where = "" if out == "-" else f"{out}: "
    print(f"{where}{heard.duration_s:.1f} s of speech in {took_s:.1f} s", file=sys.stderr)
    if heard.dropped:
        lost = ", ".join(f"{symbol} ×{n}" if n > 1 else symbol for symbol, n in heard.dropped.most_common(12))
        print(f"{heard.dropped.total()} symbols could not be said: {lost}", file=sys.stderr)


@contextmanager
def _progress(n_characters: int) -> "Iterator[Show]":
    """A bar over the text with the time left, where a person watches a long one."""
    if n_characters < 400 or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("speaking"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=n_characters)
        yield lambda read: bar.update(task, completed=read)


@contextmanager
def _steps() -> Iterator[Callable[[str, int, int], None]]:
    """What is being done, where a person watches."""
    if not sys.stderr.isatty():
        yield lambda _what, _done, _all: None
        return
    from rich.console import Console

    with Console(stderr=True).status("loading") as status:
        yield lambda what, done, n: status.update(f"{what} {done + 1} of {n}")


def _table(head: tuple[str, ...], rows: Iterable[Iterable[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*head, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
