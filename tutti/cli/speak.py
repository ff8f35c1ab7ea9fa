"""`tutti speak`: one text into a file or a pipe."""

import asyncio
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli import options
from tutti.cli.terminal import ShowProgress, print_dropped, print_notices, progress_bar
from tutti.cli.text_source import read_text
from tutti.errors import InvalidInput

if TYPE_CHECKING:
    from tutti.cli.record import Recording


@options.with_groups
def speak(
    spoken: Annotated[
        list[str], typer.Argument(metavar="TEXT", help="The text; a text file; or - for standard input.")
    ],
    *,
    out: Annotated[str, typer.Option("--out", "-o", help="A file, or - to stream to standard output.")] = "speech.wav",
    encoding: Annotated[str | None, typer.Option(help="Of a text that is not UTF-8: latin-1, cp1252.")] = None,
    live: Annotated[bool, typer.Option("--live", help="With -: speak while the text is still arriving.")] = False,
    play: Annotated[bool, typer.Option("--play", help="Through the sound card, as soon as it is spoken.")] = False,
    manner: options.Manner,
    format: Annotated[str | None, typer.Option("--format", "-f", help="wav mp3 opus flac aac pcm mulaw alaw.")] = None,
    sample_rate: Annotated[int | None, typer.Option(help="In hertz; default: that of the format.")] = None,
    words: Annotated[Path | None, typer.Option(help="Also write the time of each word, as JSON.")] = None,
    captions: options.Captions = None,
    captions_by_word: options.CaptionsByWord = False,
    means: options.Means,
    model: Annotated[str | None, typer.Option(help="kokoro, kokoro-light, or a name in TUTTI_MODELS.")] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Write OUT twice, with both vocoders: NAME-exact and NAME-light.")
    ] = False,
) -> None:
    """Speak a text: [bold]tutti speak "Hello there" -o hello.mp3[/]"""
    from tutti.admission.ticket import Ticket
    from tutti.audio import find_format, format_of_file
    from tutti.captions import caption_format, cues, render
    from tutti.cli.record import record, record_file, save_text, save_words
    from tutti.cli.stdin import ArrivingText
    from tutti.client.sound_card import Player, sound_card
    from tutti.engine.build import open_engine
    from tutti.engine.checkpoints import LIGHT
    from tutti.engine.request import StreamRequest

    settings, params = means.speaking(manner)
    to_stdout = out == "-"
    player = Player(sound_card()) if play else None
    if player and compare:
        raise InvalidInput("--compare writes two files; leave out --play", param="play")
    path = with_vocoder(Path(out), "exact") if compare else Path(out)
    audio = find_format(format) if format else find_format("wav") if to_stdout else format_of_file(out)
    audio.rate(sample_rate)
    kind = caption_format(captions.name) if captions else None
    if to_stdout and sys.stdout.isatty():
        raise InvalidInput("standard output is a terminal; pipe the audio: tutti speak … -o - | aplay", param="out")
    arriving = ArrivingText.of(spoken) if live else None
    whole = "" if live else read_text(spoken, encoding)
    if compare:
        if to_stdout or live or model or settings.models:
            raise InvalidInput(
                "--compare writes two files of one whole text; leave out --model and -o -", param="compare"
            )
        settings = settings.model_copy(update={"vocoder": "exact"})
    opened = open_engine(settings, model=None if compare else model or "")

    async def run(show: ShowProgress) -> "tuple[Recording, float]":
        def on_progress(n_characters: int) -> None:
            show("speaking", n_characters, len(whole))

        show("loading the model", 0, 0)
        async with opened as engine:
            on_progress(0)
            started_s = time.monotonic()
            ticket = Ticket(delivery="live" if to_stdout or live or play else "whole")
            stream = engine.stream(StreamRequest(arriving.pieces() if arriving else whole, params, ticket))
            if player:
                recording = await record(stream, player, "pcm", None, on_progress)
                await asyncio.to_thread(player.finish)
            elif to_stdout:
                recording = await record(stream, sys.stdout.buffer, audio.name, sample_rate, on_progress)
            else:
                recording = await record_file(stream, path, audio.name, sample_rate, on_progress)
            if compare:
                other = engine.stream(StreamRequest(whole, replace(params, model=LIGHT), ticket))
                await record_file(other, with_vocoder(Path(out), "light"), audio.name, sample_rate, on_progress)
            return recording, time.monotonic() - started_s

    with progress_bar() as show:
        recording, took_s = asyncio.run(run(show))
    if words is not None:
        save_words(words, recording.words)
    if captions is not None and kind is not None:
        cue_list = cues(arriving.text if arriving else whole, recording.words)
        save_text(captions, render(cue_list, kind, by_word=captions_by_word))
    name = "" if to_stdout or play else f"{path} and {with_vocoder(Path(out), 'light')}: " if compare else f"{out}: "
    print(f"{name}{recording.duration_s:.1f} s of speech in {took_s:.1f} s", file=sys.stderr)
    print_dropped(recording.dropped)
    print_notices(recording.notices)


def with_vocoder(path: Path, vocoder: str) -> Path:
    """speech.wav becomes speech-light.wav."""
    return path.with_stem(f"{path.stem}-{vocoder}")
