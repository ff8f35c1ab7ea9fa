"""`tutti voices`: list all voices; add and remove your own."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli.terminal import print_table
from tutti.client.commands import Command, CommandGroup
from tutti.settings import load

if TYPE_CHECKING:
    from tutti.voices import VoiceInfo, Voices

app = typer.Typer(cls=CommandGroup, invoke_without_command=True, rich_markup_mode="rich")
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
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
