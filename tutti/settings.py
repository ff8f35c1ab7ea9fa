"""All settings: one frozen object, read once at the edge, each value with the place it came from."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from dotenv import dotenv_values
from platformdirs import user_cache_path
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tutti.errors import InvalidInput, did_you_mean


class Settings(BaseModel):
    """What can be chosen. Each field is also TUTTI_<NAME> in the environment and in .env."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Path = Field(user_cache_path("tutti"), description="folder of the model files")
    offline: bool = Field(False, description="never touch the network")
    backend: Literal["auto", "onnx", "torch"] = Field("auto", description="who runs the model; auto = torch on CUDA")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where the model runs")
    precision: Literal["auto", "fp32", "int8", "fp16"] = Field("auto", description="numbers the model computes with")
    compile: Literal["off", "reduced", "full"] = Field("off", description="shapes made fast at start, on CUDA")
    threads: int = Field(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
                         ge=1, le=256, description="cores the model may use")  # fmt: skip
    voice: str = Field("af_heart", description="the voice when none is asked for")
    g2p_url: str | None = Field(None, description="a G2P service; none = pronounce in this process")
    g2p_timeout_s: float = Field(5.0, gt=0, le=600, description="how long to wait for that service")


# Names that older set-ups use for the same thing.
ALIASES = {"g2p_url": ("G2P_SERVICE_URL",), "g2p_timeout_s": ("G2P_TIMEOUT",)}


def load(
    flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ, dotenv: Path = Path(".env")
) -> tuple[Settings, dict[str, str]]:
    """Settings and where each came from: a flag wins over the environment, that over .env, that over the default."""
    values: dict[str, Any] = {}
    sources = dict.fromkeys(Settings.model_fields, "default")
    file = (
        {name: value for name, value in dotenv_values(dotenv).items() if value is not None} if dotenv.exists() else {}
    )
    for place, given in ((str(dotenv), file), ("environment", environ)):
        _refuse_typos(place, given)
        for field in Settings.model_fields:
            for name in (*reversed(ALIASES.get(field, ())), f"TUTTI_{field.upper()}"):  # a TUTTI_ name always wins
                if given.get(name):
                    values[field], sources[field] = given[name], f"{place} ({name})"
    for field, value in flags.items():
        if value is not None:
            values[field], sources[field] = value, f"--{field.replace('_', '-')}"
    try:
        return Settings(**values), sources
    except ValidationError as exc:
        wrong = exc.errors()[0]
        field = str(wrong["loc"][0])
        raise InvalidInput(
            f"{field} from {sources[field]}: {wrong['msg']}, got {wrong['input']!r}", param=field
        ) from exc


def _refuse_typos(place: str, given: Mapping[str, str]) -> None:
    known = [f"TUTTI_{field.upper()}" for field in Settings.model_fields]
    for name in given:
        if name.startswith("TUTTI_") and name not in known:
            hint = did_you_mean(name.removeprefix("TUTTI_"), Settings.model_fields).replace("?", "")
            raise InvalidInput(f"{place}: {name} is not a setting{hint}; list them with: tutti config", param=name)
