"""`tutti serve`: every setting is an option, in the groups of the settings."""

from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from tutti.settings import Settings, notes
from tutti.settings import load as load_settings

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

# The first setting of each group of `--help`; a setting that is added belongs to the group of its place in Settings.
GROUPS = {
    "home": "Model and text",
    "preset": "Batching",
    "host": "Server",
    "api_keys": "Keys and limits",
    "timeout_s": "Times and cache",
    "data": "Audiobook jobs",
    "log_format": "Log and Home Assistant",
}
METAVARS = {int: "<number>", float: "<number>", Path: "<path>", str: "<text>", tuple: "<a,b,…>"}


def with_every_setting(command: Callable[..., None], others: Iterable[Parameter] = ()) -> Callable[..., None]:
    """Give a command an option for each setting, behind `others`; the settings validate the values."""
    parameters, group = list(others), ""
    for name, field in Settings.model_fields.items():
        group = GROUPS.get(name, group)
        parameters.append(make_option(name, field, group))
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return command


def make_option(name: str, field: "FieldInfo", group: str) -> Parameter:
    kind: Any = field.annotation
    text = str(field.description)
    default = field.get_default(call_default_factory=True)
    shown = "" if default in (None, ()) else f" Default: {str(default).lower() if kind is bool else default}."
    info = typer.Option(help=f"{text[0].upper()}{text[1:]}.{shown}", show_default=False, rich_help_panel=group)
    if kind is not bool and get_origin(kind) is not Literal:
        plain = next(part for part in (*get_args(kind), kind) if part is not type(None))
        info.metavar = METAVARS[get_origin(kind) if get_origin(kind) is tuple else plain]
        kind = str
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, info])


@with_every_setting
def serve(**flags: str | bool | None) -> None:
    """Serve speech over HTTP: [bold]tutti serve --port 8880 --preset latency[/]

    Each option is also a variable: --max-queue is TUTTI_MAX_QUEUE, in the environment or in the file .env.
    """
    from tutti.server.run import serve

    settings, sources = load_settings(flags)
    serve(settings, notes(settings, sources))
