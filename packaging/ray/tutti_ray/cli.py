"""`tutti cluster`: several replicas of the server with Ray Serve."""

import os
import shlex
from functools import partial
from inspect import Parameter
from typing import Annotated, Any

import typer

from tutti.cli.serve import make_option, with_every_setting
from tutti.client.commands import Command, CommandGroup
from tutti.settings import load as load_settings
from tutti_ray.environment import ensure_token, variables
from tutti_ray.options import ClusterOptions, Ingress, parse_options

cluster = typer.Typer(
    cls=CommandGroup, no_args_is_help=True, help="Several replicas of the server, on one or more machines (Ray)."
)
FLAGS = ("replicas", "max_replicas", "gpus", "cpus", "shrink_after_s", "ingress")
_ADDRESS = typer.Option(
    help="A Ray cluster: auto, or host:port. Default: Ray on this machine alone.",
    metavar="<address>",
    rich_help_panel="Cluster",
)
_PARAMETERS = (
    *(make_option(name, ClusterOptions.model_fields[name], "Cluster") for name in FLAGS),
    Parameter("address", Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, _ADDRESS]),
)


@partial(with_every_setting, others=_PARAMETERS)
def serve(address: str | None = None, **flags: Any) -> None:
    """Serve with several replicas: [bold]tutti cluster serve --replicas 2[/]

    Each replica has one device. The settings of [bold]tutti serve[/] apply to every replica.
    """
    from tutti_ray.run import serve

    chosen = {name: value for name in FLAGS if (value := flags.pop(name)) is not None}
    settings, sources = load_settings(flags)
    values = settings.model_dump(include={name for name, source in sources.items() if source != "default"})
    serve(parse_options({**chosen, "settings": values}), address)


def env(ingress: Annotated[Ingress, typer.Option(help="As for [bold]tutti cluster serve[/].")] = "proxy") -> None:
    """Print the variables that [bold]ray start[/] needs on each machine: eval "$(tutti cluster env)"."""
    ensure_token(os.environ)
    for name, value in variables(ingress).items():
        print(f"export {name}={shlex.quote(value)}")


cluster.command(cls=Command)(serve)
cluster.command(cls=Command)(env)
