"""The commands of the package tutti-ray, and what to install where it is missing."""

from typing import Annotated

import typer

from tutti.client.commands import Command, CommandGroup
from tutti.errors import MissingExtra

Anything = Annotated[list[str] | None, typer.Argument(hidden=True)]


def add_cluster(app: typer.Typer) -> None:
    """Add `tutti cluster`; without its package, a command that says what to install."""
    try:
        from tutti_ray.cli import cluster
    except ModuleNotFoundError as exc:
        without_ray("tutti cluster", exc)
        app.command("cluster", cls=Command, context_settings={"ignore_unknown_options": True})(no_cluster)
    else:
        app.add_typer(cluster, name="cluster", cls=CommandGroup)


def no_cluster(_anything: Anything = None) -> None:
    """Several replicas of the server, on one or more machines; needs the package tutti-ray."""
    raise without_ray("tutti cluster")


def without_ray(command: str, exc: ModuleNotFoundError | None = None) -> MissingExtra:
    """Return the error of a command without its package; raise `exc` if something else is missing."""
    if exc is not None and exc.name != "tutti_ray":
        raise exc
    hint = "pip install tutti-ray, or pip install -e packaging/ray in a clone"
    return MissingExtra(f"{command} needs another package; run: {hint}")
