"""All settings: one frozen object, loaded once at start, each value with its source."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from dotenv import dotenv_values
from platformdirs import user_cache_path, user_data_path
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, StringConstraints, ValidationError

from tutti.errors import InvalidInput, did_you_mean

AMBIGUOUS = "MAX_BATCH_SIZE"  # rows in a pass, or items in a request: two servers gave it two meanings


def _split_list(value: object) -> object:
    """Split a comma-separated list, as written in a variable: a, b."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_split_list)]
KeyId = Annotated[str, StringConstraints(pattern="^[0-9a-f]{12}$")]
KeyIds = Annotated[tuple[KeyId, ...], BeforeValidator(_split_list)]
Secrets = Annotated[tuple[SecretStr, ...], BeforeValidator(_split_list)]


class Settings(BaseModel):
    """Every setting. A field is also TUTTI_<NAME> in the environment and in .env."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Path = Field(default_factory=lambda: user_cache_path("tutti"), description="folder of the model files")
    offline: bool = Field(default=False, description="never use the network")
    backend: Literal["auto", "onnx", "torch"] = Field(
        default="auto", description="library that runs the model; auto = torch on CUDA, else onnx"
    )
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="device that runs the model")
    precision: Literal["auto", "fp32", "int8", "fp16"] = Field(
        default="auto", description="number format of the model; auto = best for the device"
    )
    vocoder: Literal["auto", "exact", "light", "nano"] = Field(
        default="auto",
        description="exact = Kokoro's own; light = ours, six times as fast on a processor; auto = light there; "
        "nano = ours, for half of light's time",
    )
    text: Literal["auto", "exact", "light"] = Field(
        default="auto",
        description="text encoder: exact = Kokoro's PL-BERT; light = ours, a sixth of its cost; auto = as the vocoder",
    )
    compile: Literal["auto", "off", "reduced", "full"] = Field(
        default="auto", description="shapes compiled on CUDA; auto = all, while the server already serves"
    )
    threads: int = Field(
        default=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        ge=1, le=256, description="CPU cores the model may use",
    )  # fmt: skip
    voice: str = Field(default="af_heart", description="default voice")
    voices: Path | None = Field(
        default=None, description="folder of your own voices; none = voices in the folder of TUTTI_DATA"
    )
    max_voices: int = Field(
        default=50, ge=0, description="voices that each key may add over HTTP, 0.5 MB each; 0 = none"
    )
    voice_adders: KeyIds = Field(
        default=(), description="keys that may add voices over HTTP, by their ids in the log; none = every key"
    )
    max_lexicons: int = Field(
        default=50, ge=0, description="lexicons that each key may store over HTTP, up to 4 MB each; 0 = none"
    )
    lexicon: Path | None = Field(default=None, description="your own pronunciations: a .tsv, .json or .toml file")
    code_blocks: Literal["read", "skip", "announce"] = Field(
        default="announce", description="blocks of code in Markdown: read aloud, skipped, or announced"
    )
    pauses: Names = Field(
        default=(), description="milliseconds of silence: comma=100,sentence=200,paragraph=350,chapter=1500"
    )
    g2p_url: str | None = Field(default=None, description="URL of a G2P service; none = built in")
    g2p_timeout_s: float = Field(default=5.0, gt=0, le=600, description="timeout of a request to the G2P service")

    max_chunk_tokens: int = Field(
        default=250, ge=10, le=510, description="most phonemes in a chunk; fewer if it is spoken slowly"
    )
    min_chunk_tokens: int = Field(
        default=100, ge=1, le=510, description="a chunk that has so many phonemes takes no further sentence"
    )

    # Batching.
    preset: Literal["none", "throughput", "latency", "off"] = Field(
        default="none", description="a set of batching values; a value set by itself wins"
    )
    batching: bool = Field(
        default=True, description="run rows of several requests in one pass; false = one row at a time"
    )
    policy: Literal["deadline", "fifo", "window", "bypass"] = Field(
        default="deadline", description="which rows run next: by deadline, in order, or by a timer"
    )
    max_batch_size: int | None = Field(
        default=None, ge=1, le=1024, description="maximum rows in one pass; none = set by the device"
    )
    max_wait_ms: float = Field(default=50, ge=0, le=10_000, description="window, bypass: longest wait for more rows")
    min_wait_ms: float = Field(
        default=2, ge=0, le=10_000, description="window, bypass: a lone row runs after this long without another"
    )
    early_fire: float = Field(
        default=0.8, gt=0, le=1, description="window, bypass: run when this share of a full batch waits"
    )
    max_batch_text: int | None = Field(
        default=None, ge=1, description="maximum characters in one pass; none = no limit"
    )
    max_batch_frames: int | None = Field(
        default=None, ge=1, description="maximum padded frames in one pass; none = set by memory"
    )
    max_queue: int = Field(default=1000, ge=1, description="maximum waiting rows; further requests get 429")
    stream_bypass_chunks: int = Field(
        default=2, ge=0, le=100, description="bypass: chunks at the start of a stream that run at once and alone"
    )
    first_audio_ms: float | None = Field(
        default=None, gt=0, description="target for the first audio of a stream; none = set by the device"
    )
    max_start_s: float | None = Field(
        default=None, ge=0, description="longest wait for the first audio, else 429; none = set by the device"
    )
    workers: int | None = Field(
        default=None, ge=1, le=64, description="model processes; none = one for each CUDA device, or one on a processor"
    )
    worker_memory_mb: float | None = Field(
        default=None,
        gt=0,
        description="a model process that holds more memory is replaced between batches; none = no limit",
    )
    models: Names = Field(
        default=(),
        description="checkpoints to serve, the first by default: kokoro-int8, my=/path/model.pth, fr=hub:owner/name@v1",
    )
    extra_precisions: Names = Field(
        default=(), description="without models: further precisions, such as int8 as kokoro-int8"
    )

    # The server.
    host: str = Field(default="127.0.0.1", description="address to listen on; 0.0.0.0 = all")
    port: int = Field(default=8880, ge=0, le=65535, description="port to listen on; 0 = any free one")
    http_processes: int | None = Field(
        default=None,
        ge=0,
        le=64,
        description="processes that speak HTTP in front of the engine; none = 3 with a CUDA device and 8 cores, else 0",
    )
    agent_check_port: int | None = Field(
        default=None, ge=0, le=65535, description="port that tells HAProxy the load of this server; none = off"
    )
    replica: bool = Field(
        default=False, description="one of several behind a balancer: 503 replica_full instead of 429 queue_full"
    )
    api_keys: Secrets = Field(default=(), description="accepted API keys, plain or sha256:<hex>; none = no key needed")
    rate_requests: float = Field(default=0, ge=0, description="requests a minute and key; 0 = no limit")
    rate_characters: float = Field(default=0, ge=0, description="characters a minute and key; 0 = no limit")
    cors_origins: Names = Field(default=(), description="origins of web pages that may call the API; * = all")
    allowed_hosts: Names = Field(
        default=(), description="host names by which the server may be called; see docs/security.md"
    )
    trusted_proxies: Names = Field(default=(), description="addresses of proxies whose X-Forwarded-For is believed")
    voice_names: Names = Field(default=(), description="your own voice names: narrator=am_adam, duo=af_sky+am_echo")
    any_model: bool = Field(
        default=False, description="an unknown name of a model stands for the default one, instead of 404"
    )
    max_text: int = Field(default=1_000_000, ge=1, le=2_000_000, description="maximum characters in one request")
    max_body: int = Field(default=4 << 20, ge=1024, description="maximum bytes in the body of a request")
    max_whole_mb: float = Field(default=64, gt=0, description="maximum size of a response that is not streamed")
    max_audio_mb: float = Field(
        default=512, gt=0, description="maximum audio held in memory for all; further requests get 503"
    )
    max_request_items: int = Field(default=50, ge=1, le=1000, description="maximum items in one POST /tts/batch")
    max_connections: int = Field(
        default=4096, ge=1, description="maximum open connections of an HTTP process; further ones get 503"
    )
    timeout_s: float = Field(
        default=60,
        gt=0,
        description="timeout for the first audio, then 504; a client may name its own, up to 10 times this",
    )
    idle_s: float = Field(default=10, gt=0, description="close a connection after this long without sending or reading")
    socket_idle_s: float = Field(
        default=600, gt=0, description="close a WebSocket after this long without text or audio"
    )
    idle_unload_s: float | None = Field(
        default=None, gt=0, description="unload the model after this long without a request; none = never"
    )
    grace_s: float = Field(default=30, ge=0, description="how long streams may continue after SIGTERM")
    cache_mb: float = Field(default=64, ge=0, description="cache of responses that are not streamed; 0 = off")
    data: Path = Field(default_factory=lambda: user_data_path("tutti"), description="folder of the server's jobs")
    max_job_mb: float = Field(default=100, gt=0, description="maximum size of an uploaded book")
    max_jobs: int = Field(default=100, ge=0, description="maximum stored jobs of each key; 0 = no jobs")
    max_jobs_gb: float = Field(default=20, gt=0, description="maximum disk space of all jobs")
    log_format: Literal["text", "json"] = Field(default="text", description="format of the server log")
    wyoming_port: int | None = Field(
        default=None, ge=0, le=65535, description="port for Home Assistant, usually 10200; none = off"
    )
    wyoming_host: str | None = Field(default=None, description="address for Home Assistant; none = same as host")


# Values that belong together. A value that is set by itself wins over its preset.
PRESETS: dict[str, dict[str, Any]] = {
    "throughput": {"first_audio_ms": 5_000, "max_queue": 10_000},
    "latency": {"first_audio_ms": 100, "max_queue": 200, "max_start_s": 0},
    "off": {"batching": False},
}

# Environment variables of other servers and older versions that are still accepted.
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
    "max_chunk_tokens": ("MAX_TOKENS_PER_CHUNK",),
    "min_chunk_tokens": ("MIN_TOKENS_PER_CHUNK",),
    "host": ("HOST",),
    "port": ("PORT",),
}


def load(
    flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ, dotenv: Path = Path(".env")
) -> tuple[Settings, dict[str, str]]:
    """Settings, and the source of each: option before environment before .env before preset before default."""
    values: dict[str, Any] = {}
    sources = dict.fromkeys(Settings.model_fields, "default")
    file = (
        {name: value for name, value in dotenv_values(dotenv).items() if value is not None} if dotenv.exists() else {}
    )
    for place, variables in ((str(dotenv), file), ("environment", environ)):
        _refuse_typos(place, variables)
        for field in Settings.model_fields:
            for name in (*reversed(_aliases(field, variables)), f"TUTTI_{field.upper()}"):  # a TUTTI_ name always wins
                if variables.get(name):
                    values[field], sources[field] = variables[name], f"{place} ({name})"
    for field, value in flags.items():
        if value is not None:
            values[field], sources[field] = value, f"--{field.replace('_', '-')}"
    if "api_keys" in values and not _split_list(values["api_keys"]):
        raise InvalidInput(  # as from --api-keys "$KEY" with a KEY that is not set: the server would be open to all
            f"{sources['api_keys']} has no key in it; make one with KEY=$(openssl rand -hex 16), or leave it out",
            param="api_keys",
        )
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


def notes(settings: Settings, sources: Mapping[str, str]) -> list[str]:
    """What the operator should know: values that have no effect, and a name that has two meanings."""
    lines = []
    for field, source in sources.items():
        name = source.rpartition("(")[2].rstrip(")") if "(" in source else source
        if name == AMBIGUOUS:
            lines.append(f"{name} is read as TUTTI_{field.upper()}; set that instead to be unambiguous")
        if source != "default" and not source.startswith("preset ") and (why := _why_inert(field, settings)):
            lines.append(f"{name} has no effect: {why}")
    return lines


def _why_inert(field: str, settings: Settings) -> str | None:
    """Why a value does nothing beside the others; none if it does something."""
    if field in ("max_wait_ms", "min_wait_ms", "early_fire") and settings.policy not in ("window", "bypass"):
        return f"only the policies window and bypass wait for more rows, and the policy is {settings.policy}"
    if field == "stream_bypass_chunks" and settings.policy != "bypass":
        return f"only the policy bypass runs first chunks alone, and the policy is {settings.policy}"
    if field in ("max_batch_size", "max_batch_text", "max_batch_frames") and not settings.batching:
        return "batching is off, so every pass has one row"
    if field == "http_processes" and (settings.rate_requests or settings.rate_characters):
        return "rate limits are counted in one process, which then speaks HTTP itself"
    if field == "extra_precisions" and settings.models:
        return "TUTTI_MODELS names every checkpoint"
    if field == "g2p_timeout_s" and settings.g2p_url is None:
        return "there is no G2P service, its URL is not set"
    return None


def _aliases(field: str, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Accepted older names of a field. MAX_BATCH_SIZE is ambiguous: beside ENABLE_BATCHING and such it means rows."""
    rows = any(
        name in variables for name in ("ENABLE_BATCHING", "BATCH_TIMEOUT_MS", "MAX_BATCH_TEXT_LENGTH")
    ) and not any(name.startswith("KOKORO_") or name == "ENABLE_KOKORO_BATCHING" for name in variables)
    if field == ("max_batch_size" if rows else "max_request_items"):
        return (*ALIASES.get(field, ()), AMBIGUOUS)
    return ALIASES.get(field, ())


def _refuse_typos(place: str, variables: Mapping[str, str]) -> None:
    variable_names = ["TUTTI_URL", *(f"TUTTI_{field.upper()}" for field in Settings.model_fields)]  # the client's URL
    # The client's key, too; but alone it may be meant for the keys of a server, which would then be open to everybody.
    variable_names += ["TUTTI_API_KEY"] * ("TUTTI_API_KEYS" in variables)
    for name in variables:
        if name.startswith("TUTTI_") and name not in variable_names:
            hint = did_you_mean(name.removeprefix("TUTTI_"), Settings.model_fields).replace("?", "")
            raise InvalidInput(f"{place}: {name} is not a setting{hint}; list them with: tutti config", param=name)
