"""`tutti say`, `tutti bench` and `tutti top`: the client on the command line."""

import asyncio
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.errors import InvalidInput

if TYPE_CHECKING:
    from tutti.client.bench import Load

URL = "http://127.0.0.1:8880"
FORMATS = {".wav": "wav", ".mp3": "mp3", ".opus": "opus", ".ogg": "opus", ".flac": "flac", ".aac": "aac", ".pcm": "pcm"}
ApiKey = Annotated[str | None, typer.Option(envvar="TUTTI_API_KEY", help="Where the server wants one.")]
Voice = Annotated[str | None, typer.Option("--voice", "-v", help="A name or a blend; else the server's.")]


def register(app: typer.Typer) -> None:
    app.command()(say)
    app.command()(bench)
    app.command()(top)


def say(
    text: Annotated[str, typer.Argument(help="What to say, or - for standard input.")],
    url: Annotated[str, typer.Option(envvar="TUTTI_URL", help="The server.")] = URL,
    voice: Voice = None,
    speed: Annotated[float | None, typer.Option(help="0.25 to 4.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file instead of the sound card.")] = None,
    api_key: ApiKey = None,
) -> None:
    """Let a server say a text, through the sound card or into a file: [bold]tutti say "Hello there"[/]"""
    from tutti.client.client import Client
    from tutti.client.request import Wishes
    from tutti.client.sound_card import NoSoundCard, play, sound_card

    said = sys.stdin.read() if text == "-" else text
    wishes: Wishes = {} if speed is None else {"speed": speed}
    card, why = None, ""
    if out is None:
        try:
            card = sound_card()
        except NoSoundCard as missing:
            why = f" ({missing.message})"
    with Client(url, api_key=api_key, voice=voice, prewarm=False) as client:
        if card:
            with client.stream(said, words=False, **wishes) as pieces:
                print(f"{play(pieces, card):.1f} s of speech", file=sys.stderr)
            return
        path = out or Path("speech.wav")
        if path.suffix.lower() not in FORMATS:
            raise InvalidInput(f"{path}: choose one of {' '.join(FORMATS)}", param="out")
        wishes["format"] = FORMATS[path.suffix.lower()]
        audio = client.speak(said, **wishes)
        audio.save(path)
    length = f"{audio.duration_s:.1f} s" if audio.duration_s else f"{len(audio.data)} bytes"
    print(f"{path}: {length} of speech{why}", file=sys.stderr)


def bench(
    url: Annotated[str, typer.Argument(help="Any server with POST /v1/audio/speech.")],
    requests: Annotated[int, typer.Option("--requests", "-n", min=1, help="How many in all.")] = 50,
    concurrency: Annotated[int, typer.Option("--concurrency", "-c", min=1, help="Listeners at a time.")] = 4,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Listeners a second, by chance, whether it keeps up or not.")
    ] = None,
    voice: Voice = None,
    model: Annotated[str | None, typer.Option(help="As the server calls it; kokoro unless told.")] = None,
    format: Annotated[str, typer.Option(help="To ask for; gaps are seen in pcm and wav alone.")] = "pcm",
    texts: Annotated[Path | None, typer.Option(help="A file with a text in each line.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that a server may be silent.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Of the chance by which listeners come.")] = 0,
    out: Annotated[Path | None, typer.Option("--json", help="Also write the numbers there.")] = None,
    api_key: ApiKey = None,
) -> None:
    """Measure a speech server as its listeners live it: [bold]tutti bench http://localhost:8880 -c 8[/]"""
    from tutti.client import bench as load
    from tutti.client.async_client import AsyncClient
    from tutti.client.options import Choices
    from tutti.client.request import Wishes

    said = load.TEXTS if texts is None else tuple(line for line in _lines(texts) if line.strip())
    if not said:
        raise InvalidInput(f"{texts} has no text", param="texts")
    wishes: Wishes = {"format": format}
    if model:
        wishes["model"] = model
    choices: Choices = {
        "api_key": api_key,
        "voice": voice or "af_heart",  # OpenAI's route wants one
        "pool_size": 1000 if rate else concurrency,
        "chunk_bytes": 1 << 20,
        "memory_cache_bytes": 0,
        "retries": 0,
        "prewarm": False,
        "streaming_timeout_s": timeout,
    }

    async def measured() -> "Load":
        clock = time.monotonic
        async with AsyncClient(url, **choices) as client:
            speak = load.listener(client, clock, **wishes)
            await speak(said[0], clock())  # whatever is made ready at the first request is not measured
            started = clock()
            heard = await (
                load.open_loop(speak, said, requests, rate, clock, seed)
                if rate
                else load.closed_loop(speak, said, requests, concurrency, clock)
            )
            return load.load(heard, clock() - started)

    result = asyncio.run(measured())
    how = f"{rate:g} listeners a second" if rate else f"{concurrency} listeners at a time"
    _show(url, how, result)
    if out:
        from tutti.client.files import save

        save(out, json.dumps({"url": url, "load": how, **asdict(result)}, indent=1).encode())
    if sum(result.errors.values()) == result.requests:
        raise typer.Exit(1)


def top(
    url: Annotated[str, typer.Argument(envvar="TUTTI_URL", help="The server.")] = URL,
    once: Annotated[bool, typer.Option("--once", help="One picture, then go.")] = False,
    api_key: ApiKey = None,
) -> None:
    """Watch a server's batching live: [bold]tutti top http://localhost:8880[/]"""
    from tutti.client.options import server_of
    from tutti.client.top import watch

    watch(server_of(url), api_key, one=once)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {path}: {error}", param="texts") from error


def _show(url: str, how: str, result: "Load") -> None:
    from rich.console import Console
    from rich.table import Table

    from tutti.client.bench import bins

    console = Console()
    console.print(f"{url}: {result.requests} requests, {how}, {result.took_s:.1f} s")
    table = Table("ms", "avg", "min", "p50", "p95", "p99", "max", box=None, pad_edge=False)
    for name, row in (("first audio", result.first_s), ("whole answer", result.total_s)):
        table.add_row(name, *(f"{1000 * s:.1f}" for s in (row.avg, row.min, row.p50, row.p95, row.p99, row.max)))
    console.print(table)
    speech = f", {result.audio_per_s:.1f} s of speech each second" if result.audio_per_s else ""
    console.print(f"{result.requests_per_s:.1f} requests/s{speech}")
    if speech:
        console.print(f"{result.listeners_stalled} listeners heard a gap, {result.stalled_s:.2f} s in all")
    if result.errors:
        console.print("errors: " + ", ".join(f"{code} {n}" for code, n in result.errors.items()))
    if steps := bins(result.firsts, 12):
        most = max(n for _, _, n in steps)
        console.print("first audio")
        for least, _, n in steps:
            console.print(f"{1000 * least:8.1f} ms {'█' * round(40 * n / most)} {n}", highlight=False)
