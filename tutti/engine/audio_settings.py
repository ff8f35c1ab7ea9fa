"""The settings that change the audio, so that stored audio is used again only while they stay the same."""

from collections.abc import Container, Mapping
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any

from tutti.engine.checkpoints import choose_checkpoints
from tutti.errors import InvalidInput
from tutti.model.choice import Choice
from tutti.settings import Settings
from tutti.text.options import TextOptions
from tutti.text.user_lexicon import file_stamp

# Fields that always count; one that was added later counts only if it is not at its default.
FIRST_OF_MODEL = ("backend", "device", "precision", "compile")


def audio_settings(settings: Settings) -> Mapping[str, object]:
    """The settings that change the audio: the resolved models, the G2P service, the lexicon, how code is read."""
    try:
        lexicon = sha256(settings.lexicon.read_bytes()).hexdigest() if settings.lexicon else None
    except OSError as exc:
        raise InvalidInput(f"cannot read {settings.lexicon}: {exc.strerror}", param="lexicon") from exc
    models = {name: _model(choice) for name, choice in choose_checkpoints(settings).items()}
    later = used_values({"code_blocks": settings.code_blocks}, {"code_blocks": TextOptions().code_blocks}, ())
    return {"models": models, "g2p": settings.g2p_url, "lexicon": lexicon, **later}


def _model(choice: Choice) -> dict[str, object]:
    """A checkpoint with the time and size of a file of the operator's own."""
    stamp = {"path": [str(choice.path), *file_stamp(choice.path)]} if choice.path else {}
    default = Choice(choice.backend, choice.device, choice.precision)
    return {**used_values(asdict(replace(choice, path=None)), asdict(default), FIRST_OF_MODEL), **stamp}


def used_values(values: dict[str, Any], defaults: dict[str, Any], first: Container[str]) -> dict[str, object]:
    """The values that always count, and those that are not at their default."""
    return {name: value for name, value in values.items() if name in first or value != defaults[name]}
