"""Options that several commands share, each defined once, and those that always come together as groups."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tutti.settings import Settings, load

if TYPE_CHECKING:
    from tutti.speech import SpeechParams

Captions = Annotated[Path | None, typer.Option(help="Also write captions: a .srt, .vtt or .json file.")]
CaptionsByWord = Annotated[bool, typer.Option("--captions-by-word", help="Time each word (.vtt only).")]
Home = Annotated[Path | None, typer.Option(help="Folder of the model files.")]
Offline = Annotated[bool | None, typer.Option("--offline", help="Never use the network.")]
Precision = Annotated[Literal["auto", "fp32", "int8", "fp16"] | None, typer.Option(help="Number format of the model.")]
Vocoder = Annotated[
    Literal["auto", "exact", "light", "nano"] | None,
    typer.Option(help="Kokoro's own vocoder, our light one, or our smallest."),
]


@dataclass(frozen=True, slots=True)
class Manner:
    """How something is spoken."""

    voice: Annotated[str | None, typer.Option("--voice", "-v", help="A voice, or a blend: af_bella(2)+af_sky(1).")] = (
        None
    )
    style: Annotated[str | None, typer.Option(help="Use the prosody of this other voice.")] = None
    speed: Annotated[float, typer.Option(help="Speaking rate, 0.25 to 4.")] = 1.0
    pitch: Annotated[float, typer.Option(help="Semitones up or down, -12 to 12.")] = 0.0
    pitch_range: Annotated[float, typer.Option(help="How far the pitch moves: 0 is a monotone, 2 twice as far.")] = 1.0
    energy: Annotated[float, typer.Option(help="Vocal effort in decibels, -3 to 3.")] = 0.0
    emotion: Annotated[str | None, typer.Option(help="Preset: calm happy excited sad angry serious gentle.")] = None
    language: Annotated[
        str | None, typer.Option("--language", "-l", help="Language of the text; default: the voice's.")
    ] = None
    code_blocks: Annotated[
        Literal["read", "skip", "announce"] | None,
        typer.Option(help="Blocks of code in Markdown; default: announce."),
    ] = None

    pauses: Annotated[
        str | None, typer.Option(help="Milliseconds of silence: sentence=200,paragraph=500; also comma, chapter.")
    ] = None

    def params(self, settings: Settings) -> "SpeechParams":
        """The parameters of speech; the voice is that of the settings, which know its default."""
        from tutti.speech import SpeechParams

        return SpeechParams(
            *(settings.voice, self.style, self.speed, self.pitch, self.pitch_range, self.energy),
            *(self.emotion, self.language),
        )


@dataclass(frozen=True, slots=True)
class OneModel:
    """A model: its files, its library and its device."""

    home: Home = None
    offline: Offline = None
    backend: Annotated[Literal["auto", "onnx", "torch"] | None, typer.Option(help="Library that runs the model.")] = (
        None
    )
    device: Annotated[Literal["auto", "cpu", "cuda"] | None, typer.Option(help="Device that runs the model.")] = None
    precision: Precision = None
    compile: Annotated[
        Literal["auto", "off", "reduced", "full"] | None,
        typer.Option(help="Shapes compiled at start on CUDA; full takes longest, auto is off but in the server."),
    ] = None
    threads: Annotated[int | None, typer.Option(help="CPU cores the model may use.")] = None

    def settings(self, **others: str | None) -> Settings:
        """The settings with these options, and with others that are settings too."""
        return load({**asdict(self), **others})[0]


@dataclass(frozen=True, slots=True)
class Means(OneModel):
    """What speaks it: a model, and how it pronounces."""

    vocoder: Vocoder = None
    text: Annotated[
        Literal["auto", "exact", "light"] | None, typer.Option(help="Kokoro's own text encoder, or our light one.")
    ] = None
    lexicon: Annotated[Path | None, typer.Option(help="Your own pronunciations: a .tsv, .json or .toml file.")] = None
    g2p_url: Annotated[str | None, typer.Option(help="URL of a G2P service; default: built in.")] = None

    def speaking(self, manner: Manner) -> tuple[Settings, "SpeechParams"]:
        """The settings with these options and those of the manner that are settings too, and how it is spoken."""
        settings = self.settings(voice=manner.voice, code_blocks=manner.code_blocks, pauses=manner.pauses)
        return settings, manner.params(settings)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of its parameters that are groups."""
    parameters: list[Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in signature(command).parameters.values():
        if is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            parameters += [
                Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
                for field in fields(parameter.annotation)
            ]
        else:
            parameters.append(parameter)

    @wraps(command)
    def run(**flags: Any) -> None:
        for name, group in groups.items():
            flags[name] = group(**{field.name: flags.pop(field.name) for field in fields(group)})
        command(**flags)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run
