"""The options of a cluster; in a config file they are `args` of the application."""

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tutti.errors import InvalidInput
from tutti.settings import Settings
from tutti.settings import load as load_settings

DRAIN_S = 600.0  # how long streams and WebSockets of a replica may continue that is replaced or removed
Ingress = Literal["proxy", "haproxy"]


class ClusterOptions(BaseModel):
    """What a cluster needs beside the settings of the server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    replicas: int = Field(1, ge=1, description="replicas; each has one device")
    max_replicas: int | None = Field(
        None, ge=1, description="add replicas up to this number when requests wait; none = a fixed number"
    )
    gpus: float | None = Field(None, ge=0, description="GPUs of a replica; none = 1 if the cluster has any")
    cpus: float = Field(1, gt=0, description="CPU cores of a replica; without a GPU, those of its model")
    resources: dict[str, float] = Field({}, description="other resources of a replica, by their names in Ray")
    shrink_after_s: float = Field(180, ge=0, description="remove a replica after this long with too little to do")
    ingress: Ingress = Field("proxy", description="proxy = routed by predicted wait; haproxy = see docs/scale.md")
    settings: dict[str, Any] = Field({}, description="settings of the server, by name")

    @property
    def server_settings(self) -> Settings:
        """The settings of each replica: those in the options, then the environment, then the defaults of a cluster."""
        settings, sources = load_settings(self.settings, os.environ, Path(os.devnull))
        # HAProxy asks another replica after 503, but not after 429.
        defaults: dict[str, Any] = {"grace_s": DRAIN_S, "replica": self.ingress == "haproxy"}
        if not self.gpus:
            defaults["threads"] = max(1, int(self.cpus))
        return settings.model_copy(
            update={name: value for name, value in defaults.items() if sources[name] == "default"}
        )


def parse_options(args: dict[str, Any]) -> ClusterOptions:
    """Check the options and the settings in them; raise InvalidInput."""
    try:
        options = ClusterOptions(**args)
    except ValidationError as exc:
        wrong = exc.errors()[0]
        field = ".".join(map(str, wrong["loc"]))
        raise InvalidInput(f"{field}: {wrong['msg']}, got {wrong['input']!r}", param=field) from exc
    settings = options.server_settings
    if options.max_replicas is not None and options.max_replicas < options.replicas:
        raise InvalidInput("max_replicas is less than replicas", param="max_replicas")
    if settings.workers not in (None, 1):
        raise InvalidInput("a replica has one device: set replicas instead of workers", param="workers")
    for name in ("wyoming_port", "agent_check_port"):
        if getattr(settings, name, None) is not None:
            raise InvalidInput(f"{name}: replicas have no ports of their own; run `tutti serve` for it", param=name)
    return options
