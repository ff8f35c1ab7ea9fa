"""Which checkpoints an engine serves, from which files, on which device, and how they and the settings sound."""

import logging
import re
import shutil
from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from tutti import __version__
from tutti.engine.checkpoint_folder import CheckpointFolder, read_folder
from tutti.errors import InvalidInput, WeightsUnavailable
from tutti.model.choice import Auto, Choice, choose, choose_for_file, load
from tutti.model.protocol import Model
from tutti.model.translated import TranslatedModel
from tutti.model.types import Precision
from tutti.speech import VocoderName
from tutti.text.options import TextOptions
from tutti.text.user_lexicon import file_stamp
from tutti.voices import Voices
from tutti.weights import LEXICONS, MODELS, VOICES, File, Store
from tutti.weights.repository import KNOWN, fetch, find_repository

if TYPE_CHECKING:
    from tutti.settings import Settings

log = logging.getLogger(__name__)

CHECKPOINT = "kokoro"  # the official weights, in the precision and with the vocoder of the settings
LIGHT, EXACT, NANO = "kokoro-light", "kokoro-exact", "kokoro-nano"  # the same with this vocoder
VOCODERS: dict[str, VocoderName] = {LIGHT: "light", EXACT: "exact", NANO: "nano"}
NAME = re.compile(r"[\w.:-]{1,64}", re.ASCII)
PRECISIONS = ("auto", *get_args(Precision))
# Fields of a choice that always count for its sound; one that was added later counts only if it is not at its default.
FIRST_OF_MODEL = ("backend", "device", "precision", "compile")


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Loads every checkpoint of one worker; a value, so that it can be sent to the worker's process."""

    home: Path
    choices: tuple[tuple[str, Choice], ...]  # by name
    threads: int
    cuda_index: int | None = None

    def __call__(self) -> Mapping[str, Model]:
        """Load each choice once; models that differ only in our own networks share the rest."""
        models: dict[Choice, Model] = {}
        for _, choice in self.choices:
            if choice not in models:
                twins = (
                    model
                    for other, model in models.items()
                    if replace(other, vocoder=choice.vocoder, text=choice.text, light=choice.light) == choice
                )
                models[choice] = self._load(choice, next(twins, None))
        return {name: models[choice] for name, choice in self.choices}

    def _load(self, choice: Choice, sharing: Model | None) -> Model:
        path = choice.path or Store(self.home).path(MODELS[choice.weights])
        cache = file_cache(self.home, choice.path) if choice.path else None
        model = load(path, choice, self.threads, sharing, cache=cache, cuda_index=self.cuda_index)
        return TranslatedModel(model, choice.ids) if choice.ids else model


def choose_checkpoints(settings: "Settings") -> dict[str, Choice]:
    """Every checkpoint to serve, by name; the first is the default. Raises InvalidInput for a wrong entry."""
    if not settings.models:
        light, default = (
            choose(settings.backend, settings.device, settings.precision, settings.compile, vocoder, settings.text)
            for vocoder in ("light", settings.vocoder)
        )
        entries = [f"{CHECKPOINT}-{precision}" for precision in settings.extra_precisions]
        return {CHECKPOINT: default, LIGHT: light, **_choices(entries, settings)}
    choices = _choices(settings.models, settings)
    if settings.compile not in ("auto", "off") and all(choice.device == "cpu" for choice in choices.values()):
        raise InvalidInput(f"compile={settings.compile} is for a CUDA device, and no model uses one", param="compile")
    return choices


def only_checkpoint(choices: Mapping[str, Choice], name: str, settings: "Settings") -> dict[str, Choice]:
    """One checkpoint by name, or the default one for an empty name; Kokoro with one of the vocoders needs no entry."""
    name = name or next(iter(choices))
    if name in VOCODERS and name not in choices:
        return _choices([name], settings)
    if name not in choices:
        raise InvalidInput(f"unknown model {name!r}; available: {', '.join(choices)}", param="model")
    return {name: choices[name]}


def _choices(entries: Iterable[str], settings: "Settings") -> dict[str, Choice]:
    choices: dict[str, Choice] = {}
    for name, source in map(_parts, entries):
        if not NAME.fullmatch(name) or name in choices:
            cause = "is there twice" if name in choices else "is not a name"
            raise InvalidInput(f"models: {name!r} {cause}; write name=int8 or name=/path/model.pth", param="models")
        choice = _choice(name, source or _source_in(name), settings)
        compile = "off" if settings.compile == "auto" or choice.device == "cpu" else settings.compile
        choices[name] = replace(choice, compile=compile)
    return choices


def _parts(entry: str) -> tuple[str, str]:
    """The name and the source of an entry, "" if it has none."""
    name, _, source = entry.partition("=")
    return name.strip(), source.strip()


def checkpoint_folders(settings: "Settings") -> dict[str, CheckpointFolder]:
    """The checkpoints that are folders with voices and symbols of their own, by name."""
    folders = ((name, folder_of(name, source or name, settings)) for name, source in map(_parts, settings.models))
    return {name: folder for name, folder in folders if folder is not None}


def folder_of(name: str, source: str, settings: "Settings") -> CheckpointFolder | None:
    """The folder of an entry, none if its source is something else; raise if it is not downloaded yet."""
    card = KNOWN.get(source)
    if repository := find_repository(source):
        path = repository.folder(settings.home)
        if not path.is_dir():
            raise WeightsUnavailable(f"models: {name}={source} is not in {path}; run: tutti pull", param="models")
    elif not source or not (path := Path(source).expanduser()).is_dir():
        return None
    return read_folder(path, name, card.language if card else None)


def log_folders(settings: "Settings", served: Mapping[str, Choice], voices: Voices) -> None:
    """Log what each of them is, and what of it cannot be used here."""
    for name, folder in checkpoint_folders(settings).items():
        language = folder.language or "not read here, so texts are read as en-us"
        log.info(
            "model %s: weights=%s licence=%s voices=%d vocoder=%s missing_symbols=%d language=%s",
            name, folder.weights, folder.licence or "unknown", len(voices.of_model(name)), served[name].vocoder,
            len(folder.missing), language,
        )  # fmt: skip
        for problem in voices.of_model(name).own.problems().values():
            log.warning("model %s: voice refused: %s", name, problem)


def fetch_repositories(settings: "Settings") -> None:
    """Download the checkpoints of the settings that are on the hub, and not here yet."""
    for name, source in map(_parts, settings.models):
        if repository := find_repository(source or name):
            fetch(repository, settings.home, offline=settings.offline)


def open_voices(settings: "Settings") -> Voices:
    """All voices: Kokoro's, the operator's, and those of each checkpoint that has its own; others share the first."""
    folders = checkpoint_folders(settings)
    models = {
        name: Voices.of_folder(folder.voices, folder.language) for name, folder in folders.items() if folder.voices
    }
    first = _parts(settings.models[0])[0] if settings.models else ""
    return Voices.of(settings).with_models(models, first)


def _source_in(name: str) -> str:
    """What a name stands for that has no source: kokoro, kokoro-light, kokoro-int8 and such, or a known checkpoint."""
    if name in KNOWN:
        return name
    if name == CHECKPOINT or name in VOCODERS:
        return VOCODERS.get(name, "auto")
    root, _, precision = name.rpartition("-")
    if root == CHECKPOINT and precision in PRECISIONS:
        return precision
    raise InvalidInput(
        f"models: say what {name!r} is: {name}=int8, {name}=/path/model.pth or {name}=hub:owner/name@revision; "
        f"known by name: {', '.join(KNOWN)}",
        param="models",
    )


def _choice(name: str, source: str, settings: "Settings") -> Choice:
    """The official weights at a precision or with one of the vocoders, or a file."""
    if source in VOCODERS.values():
        vocoder = cast(VocoderName, source)
        return choose(settings.backend, settings.device, settings.precision, vocoder=vocoder, text=settings.text)
    if source in PRECISIONS:
        precision = cast(Precision | Auto, settings.precision if source == "auto" else source)
        if precision == "int8":  # runs there only, also where `backend` and `device` are meant for the others
            return choose("onnx", "cpu", precision, vocoder=settings.vocoder, text=settings.text)
        return choose(settings.backend, settings.device, precision, vocoder=settings.vocoder, text=settings.text)
    if folder := folder_of(name, source, settings):
        choice = replace(choose_for_file(folder.weights.resolve(), settings.backend, settings.device), ids=folder.ids)
        return replace(choice, vocoder="light", light=folder.light) if _runs_light(folder, choice) else choice
    path = Path(source).expanduser()
    if not path.is_file():
        names = ", ".join((*PRECISIONS, *VOCODERS.values()))
        raise WeightsUnavailable(f"models: {name}={source} is neither a file nor one of {names}", param="models")
    return choose_for_file(path.resolve(), settings.backend, settings.device)


def _runs_light(folder: CheckpointFolder, choice: Choice) -> bool:
    """Whether the folder has a light vocoder that can run: on ONNX Runtime light also needs a decoder of ours."""
    return folder.light is not None and choice.backend == "torch"


def files_of(choices: Iterable[Choice]) -> list[File]:
    """The official files of these choices, with the voices and lexicons, which all need."""
    models = {choice.weights: MODELS[choice.weights] for choice in choices if choice.path is None}
    return [*models.values(), *VOICES.values(), *LEXICONS]


def cuda_index_of_workers(
    choices: Iterable[Choice], n_workers: int | None, n_devices: int, n_cores: int
) -> list[int | None]:
    """The CUDA device of each worker: one for each device, or this number, device by device; none on a processor."""
    if all(choice.device == "cpu" for choice in choices):
        n = n_workers or 1
        if n > n_cores:
            log.warning(
                "workers=%d instead of %d, one for each core: further ones would take memory and wait for the same "
                "cores; requests are concurrent with one, too (TUTTI_WORKERS, CONCURRENT_REQUESTS)",
                n_cores, n,
            )  # fmt: skip
        return [None] * min(n, n_cores)
    return [number % n_devices for number in range(n_workers or n_devices)]


def file_cache(home: Path, path: Path) -> Path:
    """The folder for what is derived from a file of the operator's own; another one when the file has changed."""
    stat = path.stat()
    return home / "own" / sha256(str(path).encode()).hexdigest()[:16] / f"{stat.st_mtime_ns}-{stat.st_size}"


def make_file_caches(home: Path, choices: Iterable[Choice]) -> None:
    """Make those folders, and delete what was derived from earlier versions of the files."""
    for path in {choice.path for choice in choices if choice.path}:
        cache = file_cache(home, path)
        if not cache.exists():
            shutil.rmtree(cache.parent, ignore_errors=True)
            cache.mkdir(parents=True, exist_ok=True)


def upgrade_choices(
    choices: Mapping[str, Choice], compile: str, *, kernels_ready: bool
) -> tuple[Mapping[str, Choice], Mapping[str, Choice] | None]:
    """The checkpoints to start with, and those to change to when they are ready; none if there is nothing to gain.

    Without compiled kernels (at the very first start) the first ones run without: compiling takes a minute.
    """
    if compile != "auto" or all(choice.device != "cuda" for choice in choices.values()):
        return choices, None
    first = {
        name: replace(choice, compile="off" if kernels_ready else "plain") if choice.device == "cuda" else choice
        for name, choice in choices.items()
    }
    second = {
        name: replace(choice, compile="full") if choice.device == "cuda" else choice for name, choice in choices.items()
    }
    return first, second


def kernel_marker(home: Path) -> Path:
    """The file that says that all kernels of these versions are compiled."""
    try:
        torch = version("torch")
    except PackageNotFoundError:
        torch = "none"
    return home / "compiled" / f"complete-{__version__}-torch-{torch}"


def audio_fingerprint(settings: "Settings") -> Mapping[str, object]:
    """The settings that change the audio, so that stored audio is used again only while they stay the same."""
    try:
        lexicon = sha256(settings.lexicon.read_bytes()).hexdigest() if settings.lexicon else None
    except OSError as exc:
        raise InvalidInput(f"cannot read {settings.lexicon}: {exc.strerror}", param="lexicon") from exc
    models = {name: _model(choice) for name, choice in choose_checkpoints(settings).items()}
    later = used_values(
        {"code_blocks": settings.code_blocks, "pauses": settings.pauses},
        {"code_blocks": TextOptions().code_blocks, "pauses": ()},
        (),
    )
    return {"models": models, "g2p": settings.g2p_url, "lexicon": lexicon, **later}


def _model(choice: Choice) -> dict[str, object]:
    """A checkpoint with the time and size of a file of the operator's own."""
    files = {"path": choice.path, "light": choice.light}
    stamp = {field: [str(path), *file_stamp(path)] for field, path in files.items() if path}
    default = Choice(choice.backend, choice.device, choice.precision)
    return {**used_values(asdict(replace(choice, path=None, light=None)), asdict(default), FIRST_OF_MODEL), **stamp}


def used_values(values: dict[str, Any], defaults: dict[str, Any], first: Container[str]) -> dict[str, object]:
    """The values that always count, and the others where they are not the default."""
    return {name: value for name, value in values.items() if name in first or value != defaults[name]}
