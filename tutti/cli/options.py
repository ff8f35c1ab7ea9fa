"""Options that several commands share, each defined once."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Voice = Annotated[str | None, typer.Option("--voice", "-v", help="A voice, or a blend: af_bella(2)+af_sky(1).")]
Style = Annotated[str | None, typer.Option(help="Use the prosody of this other voice.")]
Speed = Annotated[float, typer.Option(help="Speaking rate, 0.25 to 4.")]
Pitch = Annotated[float, typer.Option(help="Semitones up or down, -12 to 12.")]
PitchRange = Annotated[float, typer.Option(help="How far the pitch moves: 0 is a monotone, 2 twice as far.")]
Energy = Annotated[float, typer.Option(help="Vocal effort in decibels, -3 to 3.")]
Emotion = Annotated[str | None, typer.Option(help="Preset: calm happy excited sad angry serious gentle.")]
Language = Annotated[str | None, typer.Option("--language", "-l", help="Language of the text; default: the voice's.")]
CodeBlocks = Annotated[
    Literal["read", "skip", "announce"] | None,
    typer.Option(help="Blocks of code in Markdown; default: announce."),
]
Captions = Annotated[Path | None, typer.Option(help="Also write captions: a .srt, .vtt or .json file.")]
CaptionsByWord = Annotated[bool, typer.Option("--captions-by-word", help="Time each word (.vtt only).")]
Lexicon = Annotated[Path | None, typer.Option(help="Your own pronunciations: a .tsv, .json or .toml file.")]
Home = Annotated[Path | None, typer.Option(help="Folder of the model files.")]
Offline = Annotated[bool | None, typer.Option("--offline", help="Never use the network.")]
Backend = Annotated[Literal["auto", "onnx", "torch"] | None, typer.Option(help="Library that runs the model.")]
Device = Annotated[Literal["auto", "cpu", "cuda"] | None, typer.Option(help="Device that runs the model.")]
Precision = Annotated[Literal["auto", "fp32", "int8", "fp16"] | None, typer.Option(help="Number format of the model.")]
Vocoder = Annotated[
    Literal["auto", "exact", "light"] | None, typer.Option(help="Kokoro's own vocoder, or our light one.")
]
Compile = Annotated[
    Literal["auto", "off", "reduced", "full"] | None,
    typer.Option(help="Shapes compiled at start on CUDA; full takes longest, auto is off but in the server."),
]
Threads = Annotated[int | None, typer.Option(help="CPU cores the model may use.")]
G2PUrl = Annotated[str | None, typer.Option(help="URL of a G2P service; default: built in.")]
