"""The fingerprint of a narration: stored passages are used again only while it stays the same."""

import json
from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any

from tutti import __version__
from tutti.audiobook.book import Chapter
from tutti.audiobook.passages import Passage
from tutti.engine.checkpoints import choose_checkpoints
from tutti.errors import InvalidInput
from tutti.model.choice import Choice
from tutti.settings import Settings
from tutti.speech import SpeechParams
from tutti.text.options import TextOptions
from tutti.text.user_lexicon import file_stamp

# Fields that always count. One that was added later counts only if it is not at its default: so a book that an
# earlier version began is resumed.
FIRST_PARAMS = (
    "voice", "style", "speed", "pitch", "pitch_range", "energy", "emotion", "language", "lexicon", "voice_names",
    "seed", "model",
)  # fmt: skip
FIRST_OF_MODEL = ("backend", "device", "precision", "compile")


def audio_settings(settings: Settings) -> Mapping[str, object]:
    """The settings that change the audio: the resolved models, the G2P service, the lexicon, how code is read."""
    try:
        lexicon = sha256(settings.lexicon.read_bytes()).hexdigest() if settings.lexicon else None
    except OSError as exc:
        raise InvalidInput(f"cannot read {settings.lexicon}: {exc.strerror}", param="lexicon") from exc
    models = {name: _model(choice) for name, choice in choose_checkpoints(settings).items()}
    later = _used({"code_blocks": settings.code_blocks}, {"code_blocks": TextOptions().code_blocks}, ())
    return {"models": models, "g2p": settings.g2p_url, "lexicon": lexicon, **later}


def _model(choice: Choice) -> dict[str, object]:
    """A checkpoint with the time and size of a file of the operator's own."""
    stamp = {"path": [str(choice.path), *file_stamp(choice.path)]} if choice.path else {}
    default = Choice(choice.backend, choice.device, choice.precision)
    return {**_used(asdict(replace(choice, path=None)), asdict(default), FIRST_OF_MODEL), **stamp}


def _used(values: dict[str, Any], defaults: dict[str, Any], first: Container[str]) -> dict[str, object]:
    """The values that always count, and those that are not at their default."""
    return {name: value for name, value in values.items() if name in first or value != defaults[name]}


def fingerprint(
    params: SpeechParams, chapters: Iterable[Chapter], plan: Iterable[Passage], settings: Mapping[str, object]
) -> str:
    """Hash all that the audio depends on: the version, `params`, `settings`, the text and where it is cut."""
    defaults = asdict(SpeechParams(params.voice))
    models = settings.get("models")
    if isinstance(models, Mapping):  # other checkpoints may come and go
        settings = {**settings, "models": models.get(params.model or next(iter(models), ""))}
    digest = sha256()
    for text in (
        __version__,
        json.dumps({**_used(asdict(params), defaults, FIRST_PARAMS), "sound": settings}, sort_keys=True),
        *(chapter.text for chapter in chapters),
        *(repr(passage) for passage in plan),
    ):
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return digest.hexdigest()
