"""`tutti voices`: list all voices; add and remove your own; make one like a clip."""

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli.terminal import print_table
from tutti.client.commands import Command, CommandGroup
from tutti.errors import InvalidInput
from tutti.settings import load

if TYPE_CHECKING:
    from tutti.speech import Samples
    from tutti.voice_file import Table
    from tutti.voices import VoiceInfo, Voices

app = typer.Typer(cls=CommandGroup, invoke_without_command=True, rich_markup_mode="rich")
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
# What a new voice says, in Kokoro's symbols, so that its likeness can be told.
SENTENCES = (
    "ðə hˈɑɹbəɹ wʌz kwˈIət, ænd ðə bˈOts ɹˈɑkt ʤˈɛntli.",
    "wˌi ʃˌʊd lˈiv bəfˈɔɹ ðə ɹˈAn bəɡˈɪnz ðɪs ˈivnɪŋ.",
    "nˈObˌɑdi nˈu wˌI ði ˈOld klˈɑk hæd stˈɑpt æt nˈun.",
)
CONSENT = "A voice like this, not a clone. Use it only with the consent of the speaker."
HEAD = ("voice", "language", "gender", "grade", "description")


def open_voices() -> "Voices":
    from tutti.voices import Voices

    return Voices.of(load({})[0])


@app.callback()
def voices(
    context: typer.Context,
    language: Annotated[str | None, typer.Option("--language", "-l", help="Only this language.")] = None,
    as_json: Json = False,
) -> None:
    """List all voices with language, gender, grade and description. Hear one: [bold]tutti speak Hello -v af_heart[/]

    The grade is that of the voice's training, by its authors: A is best. Your own voices have none.
    """
    if context.invoked_subcommand is not None:
        return
    from tutti.text.language import find_language

    known = open_voices()
    only = find_language(language).letter if language else ""
    rows = [_row(voice) for voice in known.all().values() if only in ("", find_language(voice.language).letter)]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    print_table(HEAD, (list(row.values()) for row in rows))
    for problem in known.own.problems().values():
        typer.echo(f"refused: {problem}", err=True)


def _row(voice: "VoiceInfo") -> dict[str, str]:
    return {
        "id": voice.name,
        "language": voice.language,
        "gender": voice.gender,
        "grade": voice.grade,
        "description": voice.description,
    }


@app.command(cls=Command)
def add(
    file: Annotated[Path, typer.Argument(help="A .pt, .npy, .bin or .safetensors file with one voice.")],
    name: Annotated[str | None, typer.Option(help="Its name; default: that of the file.")] = None,
    language: Annotated[
        str | None, typer.Option("--language", "-l", help="If its name does not begin like af_; default: en-us.")
    ] = None,
) -> None:
    """Add a voice of your own, for all commands and for the servers of this folder."""
    from tutti.own_voices import name_and_language
    from tutti.voice_file import read_voice

    table = read_voice(file)
    own = open_voices().own
    voice = own.add(name or name_and_language(file.name)[0], language, table)
    print(f"{voice.name}, {voice.language}: {voice.path}")


@app.command(cls=Command)
def remove(name: Annotated[str, typer.Argument(help="The name of a voice of your own.")]) -> None:
    """Remove a voice of your own: its file is deleted."""
    print(f"deleted {open_voices().own.remove(name).path}")


@app.command(cls=Command)
def like(
    clip: Annotated[Path, typer.Argument(help="A recording of one speaker, 3 to 30 s.")],
    name: Annotated[str | None, typer.Option(help="Also add it to your own voices, by this name.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The voice file; default: the clip's name, .pt.")
    ] = None,
) -> None:
    """Make a voice like the one in a clip, a blend of Kokoro's. It is not a clone, and needs the speaker's consent.

    The speaker encoder comes from another package: pip install --no-deps Resemblyzer
    """
    import numpy as np

    from tutti.audio.clip import read_clip
    from tutti.files import save
    from tutti.likeness import blend_like, likeness, speaker_encoder, stock_similarities
    from tutti.torch_file import torch_file
    from tutti.voices import NAMES

    path = out or Path(f"{clip.stem}.pt")
    if path.suffix != ".pt":
        raise InvalidInput(f"{path}: the file of the voice ends with .pt", param="out")
    encode, known = speaker_encoder(), open_voices()
    target = encode(read_clip(clip))
    table = blend_like(target, np.stack([known.get(stock).table for stock in NAMES]))
    reached = float(encode(np.concatenate(speak_sentences(table))) @ target)
    save(path, torch_file(table[:, None]), param="out")
    stock = stock_similarities(target)
    nearest = NAMES[int(stock.argmax())]
    print(f"{path}: likeness {likeness(reached, stock):.2f}", end="; ")
    print(f"of {nearest}, the nearest stock voice, {likeness(float(stock.max()), stock):.2f}")
    print("(0: an average stock voice, 1: another clip of the speaker; by the encoder that the blend was chosen by)")
    print(CONSENT)
    if name:
        add(path, name, None)


def speak_sentences(table: "Table") -> "list[Samples]":
    from tutti.model import choice
    from tutti.speech import Utterance
    from tutti.text import vocab
    from tutti.weights import MODELS, Store, required_files, show_progress, sources

    settings, chosen = load({})[0], choice.choose("onnx", "cpu")
    store = Store(settings.home)
    with show_progress() as progress:
        files = required_files(chosen.weights)
        store.ensure(files, sources=sources(offline=settings.offline), progress=progress)
    rows = [Utterance(vocab.encode(symbols), table[len(symbols) - 1]) for symbols in SENTENCES]
    with closing(choice.load(store.path(MODELS[chosen.weights]), chosen, settings.threads)) as model:
        return list(model.speak(rows).samples)
