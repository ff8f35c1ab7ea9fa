"""The fingerprint of a narration: stored passages are used again only while it stays the same."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from hashlib import sha256

from tutti import __version__
from tutti.audiobook.book import Chapter
from tutti.audiobook.passages import Passage
from tutti.engine.checkpoints import choose_checkpoints
from tutti.errors import InvalidInput
from tutti.model.choice import Choice
from tutti.settings import Settings
from tutti.speech import SpeechParams
from tutti.text.user_lexicon import file_stamp


def audio_settings(settings: Settings) -> Mapping[str, object]:
    """The settings that change the audio: the resolved model, the G2P service, the lexicon's content."""
    try:
        lexicon = sha256(settings.lexicon.read_bytes()).hexdigest() if settings.lexicon else None
    except OSError as exc:
        raise InvalidInput(f"cannot read {settings.lexicon}: {exc.strerror}", param="lexicon") from exc
    models = {name: _model(choice) for name, choice in choose_checkpoints(settings).items()}
    return {"models": models, "g2p": settings.g2p_url, "lexicon": lexicon}


def _model(choice: Choice) -> dict[str, object]:
    """A checkpoint with the time and size of a file of the operator's own."""
    stamp = {"path": [str(choice.path), *file_stamp(choice.path)]} if choice.path else {}
    return {**asdict(replace(choice, path=None)), **stamp}


def fingerprint(
    params: SpeechParams, chapters: Iterable[Chapter], plan: Iterable[Passage], settings: Mapping[str, object]
) -> str:
    """Hash all that the audio depends on: the version, `params`, `settings`, the text and where it is cut."""
    digest = sha256()
    for text in (
        __version__,
        json.dumps({**asdict(params), "sound": settings}, sort_keys=True),
        *(chapter.text for chapter in chapters),
        *(repr(passage) for passage in plan),
    ):
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return digest.hexdigest()
