"""The fingerprint of a narration: stored passages are used again only while it stays the same."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from hashlib import sha256

from tutti import __version__
from tutti.audiobook.book import Chapter
from tutti.audiobook.passages import Passage
from tutti.engine.checkpoints import used_values
from tutti.speech import SpeechParams
from tutti.text.marks import voices_named
from tutti.voices import Voices, resolve_aliases

# Fields that always count. One that was added later counts only if it is not at its default: so a book that an
# earlier version began is resumed.
FIRST_PARAMS = (
    "voice", "style", "speed", "pitch", "pitch_range", "energy", "emotion", "language", "lexicon", "voice_names",
    "seed", "model",
)  # fmt: skip


def voice_hashes(params: SpeechParams, chapters: Iterable[Chapter], voices: Voices) -> dict[str, str]:
    """Return what the own voices are made of that speak in a book."""
    marked = (name for chapter in chapters for name in voices_named(chapter.text))
    names = (params.voice, params.style or "", *marked)
    return voices.hashes([*names, *(resolve_aliases(name, params.voice_names) for name in names)])


def fingerprint(
    params: SpeechParams,
    chapters: Iterable[Chapter],
    plan: Iterable[Passage],
    settings: Mapping[str, object],
    own_voices: Mapping[str, str],
) -> str:
    """Hash all that the audio depends on: version, `params`, `settings`, own voices, the text and where it is cut."""
    defaults = asdict(SpeechParams(params.voice))
    models = settings.get("models")
    if isinstance(models, Mapping):  # other checkpoints may come and go
        settings = {**settings, "models": models.get(params.model or next(iter(models), ""))}
    if own_voices:
        settings = {**settings, "own_voices": own_voices}
    digest = sha256()
    for text in (
        __version__,
        json.dumps({**used_values(asdict(params), defaults, FIRST_PARAMS), "sound": settings}, sort_keys=True),
        *(chapter.text for chapter in chapters),
        *(repr(passage) for passage in plan),
    ):
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return digest.hexdigest()
