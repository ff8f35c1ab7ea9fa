"""The commands `tutti say`, `tutti bench` and `tutti top`."""

import asyncio
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from tutti.errors import InvalidInput

if TYPE_CHECKING:
    from tutti.client.bench import LoadResult

URL = "http://127.0.0.1:8880"
FORMATS = {".wav": "wav", ".mp3": "mp3", ".opus": "opus", ".ogg": "opus", ".flac": "flac", ".aac": "aac", ".pcm": "pcm"}
ApiKey = Annotated[str | None, typer.Option(envvar="TUTTI_API_KEY", help="API key, if the server needs one.")]
Voice = Annotated[str | None, typer.Option("--voice", "-v", help="A name or a blend; default: the server's.")]


class FlagHelp:
    """Shows a flag in the help without a type: `--once`, not `--once <bool>`, which looks as if it took a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_bool_flag", False):
                parameter.metavar = ""
        return list(parameters)


class Command(FlagHelp, TyperCommand): ...


class CommandGroup(FlagHelp, TyperGroup): ...


def register(app: typer.Typer) -> None:
    """Add the client's commands to a Typer application."""
    for command in (say, bench, top):
        app.command(cls=Command)(command)


def say(
    text: Annotated[list[str], typer.Argument(help="What to say, or - for standard input.")],
    url: Annotated[str, typer.Option(envvar="TUTTI_URL", help="The server.")] = URL,
    voice: Voice = None,
    speed: Annotated[float | None, typer.Option(help="0.25 to 4.")] = None,
    pitch: Annotated[float | None, typer.Option(help="Semitones up or down, -12 to 12.")] = None,
    pitch_range: Annotated[float | None, typer.Option(help="How far the pitch moves: 0 monotone, 2 twice.")] = None,
    energy: Annotated[float | None, typer.Option(help="Decibels of effort, -3 to 3.")] = None,
    emotion: Annotated[str | None, typer.Option(help="A preset: calm happy excited sad angry serious gentle.")] = None,
    lexicon: Annotated[Path | None, typer.Option(help="Pronunciations: a .json file of word: /IPA/.")] = None,
    lexicon_id: Annotated[list[str] | None, typer.Option(help="A lexicon stored on the server; repeatable.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file instead of the sound card.")] = None,
    api_key: ApiKey = None,
) -> None:
    """Let a server speak a text, through the sound card or into a file: [bold]tutti say "Hello there"[/]"""
    from tutti.client.client import Client
    from tutti.client.request import SpeechOptions
    from tutti.client.sound_card import NoSoundCard, play, sound_card

    content = sys.stdin.read() if text == ["-"] else " ".join(text)
    prosody = {"speed": speed, "pitch": pitch, "pitch_range": pitch_range, "energy": energy, "emotion": emotion}
    options = cast(SpeechOptions, {name: value for name, value in prosody.items() if value is not None})
    if lexicon:
        options["lexicon"] = _read_lexicon(lexicon)
    if lexicon_id:
        options["lexicon_id"] = lexicon_id
    card, reason = None, ""
    if out is None:
        try:
            card = sound_card()
        except NoSoundCard as missing:
            reason = f" ({missing.message})"
    with Client(url, api_key=api_key, voice=voice, prewarm=False) as client:
        if card:
            with client.stream(content, words=False, **options) as pieces:
                print(f"{play(pieces, card):.1f} s of speech", file=sys.stderr)
            return
        path = out or Path("speech.wav")
        if path.suffix.lower() not in FORMATS:
            raise InvalidInput(f"{path}: choose one of {' '.join(FORMATS)}", param="out")
        options["format"] = FORMATS[path.suffix.lower()]
        audio = client.speak(content, **options)
        audio.save(path)
    length = f"{audio.duration_s:.1f} s" if audio.duration_s else f"{len(audio.data)} bytes"
    print(f"{path}: {length} of speech{reason}", file=sys.stderr)
    for notice in audio.notices:
        print(f"note: {notice}", file=sys.stderr)


def bench(
    url: Annotated[str, typer.Argument(help="Any server with POST /v1/audio/speech.")],
    requests: Annotated[int, typer.Option("--requests", "-n", min=1, help="How many in total.")] = 50,
    concurrency: Annotated[int, typer.Option("--concurrency", "-c", min=1, help="Listeners at a time.")] = 4,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="New listeners a second, at random, instead of --concurrency.")
    ] = None,
    voice: Voice = None,
    model: Annotated[str | None, typer.Option(help="The server's name for it; default: kokoro.")] = None,
    format: Annotated[str, typer.Option(help="Audio format; gaps are measured in pcm and wav only.")] = "pcm",
    texts: Annotated[Path | None, typer.Option(help="A file with one text per line.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds a server may send nothing.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Of the random arrivals of --rate.")] = 0,
    out: Annotated[Path | None, typer.Option("--json", help="Also write the numbers to this file.")] = None,
    api_key: ApiKey = None,
) -> None:
    """Measure a speech server as its listeners experience it: [bold]tutti bench http://localhost:8880 -c 8[/]"""
    from tutti.client import bench as load
    from tutti.client.async_client import AsyncClient
    from tutti.client.options import ClientOptions
    from tutti.client.request import SpeechOptions

    corpus = load.TEXTS if texts is None else tuple(line for line in _read_lines(texts) if line.strip())
    if not corpus:
        raise InvalidInput(f"{texts} has no text", param="texts")
    speech_options: SpeechOptions = {"format": format}
    if model:
        speech_options["model"] = model
    client_options: ClientOptions = {
        "api_key": api_key,
        "voice": voice or "af_heart",  # OpenAI's route requires one
        "pool_size": 1000 if rate else concurrency,
        "chunk_bytes": 1 << 20,
        "memory_cache_bytes": 0,
        "prewarm": False,
        "streaming_timeout_s": timeout,
    }

    async def measure() -> "LoadResult":
        clock = time.monotonic
        async with AsyncClient(url, **client_options) as client:
            await load.warm_up(client, corpus[0], **speech_options)
            speak = load.listener(client, clock, **speech_options)
            started = clock()
            results = await (
                load.open_loop(speak, corpus, requests, rate, clock, seed)
                if rate
                else load.closed_loop(speak, corpus, requests, concurrency, clock)
            )
            return load.summarise_load(results, clock() - started)

    result = asyncio.run(measure())
    description = f"{rate:g} listeners a second" if rate else f"{_counted(concurrency, 'listener')} at a time"
    _print_result(url, description, result)
    if out:
        from tutti.files import save

        save(out, json.dumps({"url": url, "load": description, **asdict(result)}, indent=1).encode())
    if result.n_without_audio == result.requests:
        raise typer.Exit(1)


def top(
    url: Annotated[str, typer.Argument(envvar="TUTTI_URL", help="The server.")] = URL,
    once: Annotated[bool, typer.Option("--once", help="Print the state once and exit.")] = False,
    api_key: ApiKey = None,
) -> None:
    """Watch a server's batching live: [bold]tutti top http://localhost:8880[/]"""
    from tutti.client.options import server_of
    from tutti.client.top import run_top

    run_top(server_of(url), api_key, once=once)


def _read_lexicon(path: Path) -> dict[str, str]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {path}: {error}", param="lexicon") from error
    if not isinstance(content, dict) or not all(isinstance(value, str) for value in content.values()):
        raise InvalidInput(f'{path}: write {{"word": "/IPA/ or other words"}}', param="lexicon")
    return content


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {path}: {error}", param="texts") from error


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _print_result(url: str, description: str, result: "LoadResult") -> None:
    from rich.console import Console
    from rich.table import Table

    from tutti.client.bench import histogram

    console = Console()
    console.print(f"{url}: {_counted(result.requests, 'request')}, {description}, {result.took_s:.1f} s")
    for codes, what in ((result.refusals, "refused, after waiting as long as the server asked"), (result.errors, "")):
        if n := sum(codes.values()):
            verb = f"{'was' if n == 1 else 'were'} {what}" if what else "failed"
            console.print(f"{n} of {_counted(result.requests, 'request')} {verb}:")
            for code, n_of_code in codes.items():
                line = f"  {n_of_code} × {code}: {result.messages.get(code, '')}".rstrip(": ")
                console.print(line, highlight=False)
    n_served = result.requests - result.n_without_audio
    if not n_served:
        return
    if n_served < result.requests:
        console.print(f"the times are those of the other {n_served}:")
    if result.waits:
        console.print(
            f"{_counted(result.waits, 'time')} a listener waited and asked again; its time counts from the start"
        )
    table = Table("ms", "avg", "min", "p50", "p95", "p99", "max", box=None, pad_edge=False)
    for name, row in (("first audio", result.first_s), ("whole answer", result.total_s)):
        table.add_row(name, *(f"{1000 * s:.1f}" for s in (row.avg, row.min, row.p50, row.p95, row.p99, row.max)))
    console.print(table)
    speech = f", {result.audio_per_s:.1f} s of speech per second" if result.audio_per_s else ""
    console.print(f"{result.requests_per_s:.1f} requests/s{speech}")
    if speech:
        stalled = _counted(result.listeners_stalled, "listener")
        console.print(f"{stalled} heard a gap, {result.stalled_s:.2f} s in total")
        served = _counted(int(result.audio_per_s), "listener")
        console.print(f"this is enough for {served} at a time who play what they hear; those here ask again at once")
    if bins := histogram(result.firsts, 12):
        most = max(n for _, _, n in bins)
        console.print("first audio")
        for start, _, n in bins:
            console.print(f"{1000 * start:8.1f} ms {'█' * round(40 * n / most)} {n}", highlight=False)
