"""The `tutti` command, and its small subcommands; the larger ones have a module each."""

import json
import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tutti import __version__
from tutti.cli import options
from tutti.cli.bulk import bulk
from tutti.cli.mcp import mcp
from tutti.cli.on_ray import add_cluster
from tutti.cli.plan import plan
from tutti.cli.read import read
from tutti.cli.serve import serve
from tutti.cli.speak import speak
from tutti.cli.terminal import print_table
from tutti.cli.verify import verify
from tutti.cli.voices import app as voices
from tutti.client.commands import Command, CommandGroup, register
from tutti.errors import TuttiError
from tutti.settings import Settings, notes
from tutti.settings import load as load_settings

app = typer.Typer(
    cls=CommandGroup,
    help="Text to speech with Kokoro-82M: on the command line, and as a server that batches requests.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def main() -> None:
    """Run a command; a TuttiError becomes one line on stderr and an exit code."""
    debug = "--debug" in sys.argv  # also behind the subcommand: `tutti speak … --debug`
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    _set_up_logging(debug)
    try:
        app(arguments)
    except TuttiError as exc:
        if debug:
            raise
        print(f"tutti: {exc.message}", file=sys.stderr)
        raise SystemExit(exc.exit_code) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python's last flush prints an error
        raise SystemExit(141) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _print_version(requested: bool) -> None:
    if requested:
        print(f"tutti {__version__}")
        raise typer.Exit


@app.callback()
def common_options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the log, and the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    _set_up_logging(debug)


def _set_up_logging(debug: bool) -> None:
    level = logging.INFO if debug else logging.ERROR
    logging.basicConfig(level=level, format="%(asctime)s %(name)s %(levelname)s %(message)s")


def pull(
    folder: Annotated[Path | None, typer.Option("--from", help="Copy the files from this folder.")] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check the bytes of the files already here; what is made from them goes.")
    ] = False,
    home: options.Home = None,
    offline: options.Offline = None,
    precision: options.Precision = None,
) -> None:
    """Download the model, the voices and the lexicons."""
    from tutti.engine.checkpoints import choose_checkpoints, fetch_repositories, files_of
    from tutti.model.choice import file_precision
    from tutti.model.onnx.split import derived_graphs
    from tutti.weights import Store, required_files, show_progress, sources

    settings, _ = load_settings({"home": home, "offline": offline, "precision": precision})
    store = Store(settings.home)
    fetch_repositories(settings)
    if settings.precision == "auto" or settings.models:
        files = files_of(choose_checkpoints(settings).values())
    else:  # for whatever machine will use them
        files = required_files(file_precision(settings.precision))
    with show_progress() as progress:
        if verify:
            for file in files:  # the right bytes of what was made from them are not known: they are made again
                for part in derived_graphs(store.path(file)):
                    part.unlink(missing_ok=True)
            store.verify(files, progress)
        store.ensure(files, sources=sources(folder, offline=settings.offline), progress=progress)
    print(f"{len(files)} files, {sum(file.size for file in files) / 1e6:.0f} MB, in {settings.home}")


def config(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show every setting: its value, where it comes from, what it means."""
    settings, sources = load_settings({})
    values = settings.model_dump(mode="json")
    rows = [
        {"setting": f"TUTTI_{name.upper()}", "value": values[name], "from": sources[name], "meaning": field.description}
        for name, field in Settings.model_fields.items()
    ]
    if as_json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    shown = [{**row, "value": _as_written(row["value"])} for row in rows]
    print_table(("setting", "value", "from", "meaning"), ([str(value) for value in row.values()] for row in shown))
    for note in notes(settings, sources):
        print(note)


def _as_written(value: object) -> str:
    """Return a value as it would be written in a variable."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case list():
            return ",".join(map(str, value))
    return str(value)


def g2p_serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8881,
    home: options.Home = None,
    offline: options.Offline = None,
) -> None:
    """Serve G2P over HTTP, for engines started with [bold]--g2p-url http://host:8881[/]."""
    import uvicorn

    from tutti.server.routes.g2p import g2p_app
    from tutti.text.g2p import G2P
    from tutti.weights import LEXICONS, Store, show_progress, sources

    settings, _ = load_settings({"home": home, "offline": offline})
    with show_progress() as progress:
        Store(settings.home).ensure(LEXICONS, sources=sources(offline=settings.offline), progress=progress)
    uvicorn.run(g2p_app(G2P(settings.home).pronounce), host=host, port=port, log_level="info")


for command in (serve, speak, read, bulk, plan, pull, verify, config, mcp, g2p_serve):
    app.command(cls=Command)(command)
app.add_typer(voices, name="voices", cls=CommandGroup)
add_cluster(app)
register(app)  # say, bench, top
