"""Flags that several commands have, each named and explained once."""

from pathlib import Path
from typing import Annotated

import typer

Voice = Annotated[str | None, typer.Option("--voice", "-v", help="A name, or af_bella(2)+af_sky(1).")]
Speed = Annotated[float, typer.Option(help="0.25 to 4.")]
Pitch = Annotated[float, typer.Option(help="Semitones up or down, -12 to 12.")]
PitchRange = Annotated[float, typer.Option(help="How far the pitch moves: 0 is a monotone, 2 twice as far.")]
Energy = Annotated[float, typer.Option(help="Decibels of effort, -3 to 3.")]
Emotion = Annotated[str | None, typer.Option(help="A preset: calm happy excited sad angry serious gentle.")]
Language = Annotated[str | None, typer.Option("--language", "-l", help="Of the text; else the voice's.")]
Captions = Annotated[Path | None, typer.Option(help="Write captions: a .srt, .vtt or .json file.")]
CaptionsByWord = Annotated[bool, typer.Option("--captions-by-word", help="Time each word in .vtt.")]
Lexicon = Annotated[Path | None, typer.Option(help="Pronunciations of your own: .tsv, .json, .toml.")]
Home = Annotated[Path | None, typer.Option(help="Folder of the model files.")]
Offline = Annotated[bool | None, typer.Option("--offline", help="Never touch the network.")]
Threads = Annotated[int | None, typer.Option(help="Cores the model may use.")]
G2PUrl = Annotated[str | None, typer.Option(help="Ask this G2P service how words sound.")]
