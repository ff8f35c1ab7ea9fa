"""All settings: one frozen object, read once at the edge, each value with the place it came from."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from dotenv import dotenv_values
from platformdirs import user_cache_path, user_data_path
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from tutti.errors import InvalidInput, did_you_mean

log = logging.getLogger(__name__)


def _commas(value: object) -> object:
    """A list as people write one in a variable: a, b."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_commas)]
Secrets = Annotated[tuple[SecretStr, ...], BeforeValidator(_commas)]


class Settings(BaseModel):
    """What can be chosen. Each field is also TUTTI_<NAME> in the environment and in .env."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Path = Field(default_factory=lambda: user_cache_path("tutti"), description="folder of the model files")
    offline: bool = Field(False, description="never touch the network")
    backend: Literal["auto", "onnx", "torch"] = Field("auto", description="who runs the model; auto = torch on CUDA")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where the model runs")
    precision: Literal["auto", "fp32", "int8", "fp16"] = Field("auto", description="numbers the model computes with")
    compile: Literal["off", "reduced", "full"] = Field("off", description="shapes made fast at start, on CUDA")
    threads: int = Field(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
                         ge=1, le=256, description="cores the model may use")  # fmt: skip
    voice: str = Field("af_heart", description="the voice when none is asked for")
    lexicon: Path | None = Field(None, description="pronunciations of your own: a .tsv, .json or .toml file")
    g2p_url: str | None = Field(None, description="a G2P service; none = pronounce in this process")
    g2p_timeout_s: float = Field(5.0, gt=0, le=600, description="how long to wait for that service")

    # Batching.
    preset: Literal["none", "throughput", "latency", "off"] = Field("none", description="a set of the values below")
    batching: bool = Field(True, description="rows of many requests in one pass; false = one row at a time")
    policy: Literal["deadline", "fifo", "window", "bypass"] = Field("deadline", description="which rows run next")
    max_batch_size: int | None = Field(
        None, ge=1, le=1024, description="rows in one pass; none = what the device likes"
    )
    max_wait_ms: float = Field(50, ge=0, le=10_000, description="how long window and bypass wait for company")
    min_wait_ms: float = Field(2, ge=0, le=10_000, description="their fast path: alone and quiet for so long = go")
    early_fire: float = Field(0.8, gt=0, le=1, description="their early fire: this share of a full batch waits = go")
    max_batch_text: int | None = Field(None, ge=1, description="characters in one pass; none = no limit")
    max_batch_frames: int | None = Field(
        None, ge=1, description="padded frames in one pass; none = what fits in memory"
    )
    max_queue: int = Field(1000, ge=1, description="rows that may wait, then 429")
    stream_bypass_chunks: int = Field(2, ge=0, le=100, description="chunks of a stream that count as its beginning")
    first_audio_ms: float | None = Field(None, gt=0, description="how soon a stream should start; none = by the device")
    workers: int | None = Field(None, ge=1, le=64, description="processes with a model; none = one for each device")
    extra_precisions: Names = Field((), description="further checkpoints served beside the first, as kokoro-int8")

    # The server.
    host: str = Field("127.0.0.1", description="address to listen on; 0.0.0.0 = every one")
    port: int = Field(8880, ge=0, le=65535, description="port to listen on; 0 = any that is free")
    api_keys: Secrets = Field((), description="keys that may ask for speech, plain or as sha256:<hex>; none = anyone")
    rate_requests: float = Field(0, ge=0, description="requests a minute for each key; 0 = no limit")
    rate_characters: float = Field(0, ge=0, description="characters a minute for each key; 0 = no limit")
    cors_origins: Names = Field((), description="web pages that may call from a browser; * = all")
    voice_names: Names = Field((), description="names of your own for voices: narrator=am_adam, duo=af_sky+am_echo")
    max_text: int = Field(1_000_000, ge=1, le=2_000_000, description="characters in one request: a long book")
    max_body: int = Field(4 << 20, ge=1024, description="bytes in the body of one request")
    max_whole_mb: float = Field(64, gt=0, description="encoded audio that is held back for a whole answer")
    max_request_items: int = Field(50, ge=1, le=1000, description="items in one POST /tts/batch")
    max_connections: int = Field(4096, ge=1, description="connections open at once, then 503")
    timeout_s: float = Field(60, gt=0, description="a request waits this long for its first sound, then 504")
    idle_s: float = Field(10, gt=0, description="a client that neither sends nor reads for this long is cut")
    grace_s: float = Field(30, ge=0, description="how long streams may finish after SIGTERM")
    cache_mb: float = Field(64, ge=0, description="whole answers kept for the next who asks; 0 = none")
    data: Path = Field(
        default_factory=lambda: user_data_path("tutti"), description="folder where the server keeps its jobs"
    )
    max_job_mb: float = Field(100, gt=0, description="size of a book that is sent to be read")
    max_jobs: int = Field(100, ge=0, description="jobs kept for each key; 0 = take none")
    max_jobs_gb: float = Field(20, gt=0, description="what all jobs may hold of the disk")
    log_format: Literal["text", "json"] = Field("text", description="how the server writes its log")
    wyoming_port: int | None = Field(None, ge=0, le=65535, description="port for Home Assistant, 10200; none = off")
    wyoming_host: str | None = Field(None, description="address for Home Assistant; none = host")


# Values that go together. A value given by itself wins over its preset.
PRESETS: dict[str, dict[str, Any]] = {
    "throughput": {"first_audio_ms": 5_000, "max_queue": 10_000, "stream_bypass_chunks": 1},
    "latency": {"first_audio_ms": 100, "max_queue": 200},
    "off": {"batching": False},
}

# Names that older set-ups use for the same thing.
ALIASES = {
    "batching": ("ENABLE_KOKORO_BATCHING", "ENABLE_BATCHING"),
    "max_batch_size": ("KOKORO_MAX_BATCH_SIZE",),
    "max_wait_ms": ("KOKORO_MAX_WAIT_MS", "BATCH_TIMEOUT_MS"),
    "min_wait_ms": ("KOKORO_MIN_WAIT_MS",),
    "max_batch_text": ("MAX_BATCH_TEXT_LENGTH",),
    "max_queue": ("MAX_QUEUE_SIZE",),
    "stream_bypass_chunks": ("STREAMING_BYPASS_CHUNKS",),
    "workers": ("CONCURRENT_REQUESTS",),
    "g2p_url": ("G2P_SERVICE_URL",),
    "g2p_timeout_s": ("G2P_TIMEOUT",),
    "host": ("HOST",),
    "port": ("PORT",),
}


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
            for name in (*reversed(_aliases(field, given)), f"TUTTI_{field.upper()}"):  # a TUTTI_ name always wins
                if given.get(name):
                    values[field], sources[field] = given[name], f"{place} ({name})"
    for field, value in flags.items():
        if value is not None:
            values[field], sources[field] = value, f"--{field.replace('_', '-')}"
    preset = str(values.get("preset", "none"))
    for field, value in PRESETS.get(preset, {}).items():
        if field not in values:
            values[field], sources[field] = value, f"preset {preset}"
    try:
        return Settings(**values), sources
    except ValidationError as exc:
        wrong = exc.errors()[0]
        field = str(wrong["loc"][0])
        raise InvalidInput(
            f"{field} from {sources[field]}: {wrong['msg']}, got {wrong['input']!r}", param=field
        ) from exc


def _aliases(field: str, given: Mapping[str, str]) -> tuple[str, ...]:
    """Older names of a field. MAX_BATCH_SIZE meant two things: beside its old companions it is the rows of a pass."""
    rows = any(name in given for name in ("ENABLE_BATCHING", "BATCH_TIMEOUT_MS", "MAX_BATCH_TEXT_LENGTH")) and not any(
        name.startswith("KOKORO_") or name == "ENABLE_KOKORO_BATCHING" for name in given
    )
    if field == ("max_batch_size" if rows else "max_request_items") and "MAX_BATCH_SIZE" in given:
        log.warning("MAX_BATCH_SIZE is read as TUTTI_%s here; use that name to be sure", field.upper())
        return (*ALIASES.get(field, ()), "MAX_BATCH_SIZE")
    return ALIASES.get(field, ())


def _refuse_typos(place: str, given: Mapping[str, str]) -> None:
    known = [f"TUTTI_{field.upper()}" for field in Settings.model_fields]
    for name in given:
        if name.startswith("TUTTI_") and name not in known:
            hint = did_you_mean(name.removeprefix("TUTTI_"), Settings.model_fields).replace("?", "")
            raise InvalidInput(f"{place}: {name} is not a setting{hint}; list them with: tutti config", param=name)
