"""The fingerprint of a narration: stored passages are used again only while it stays the same."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256

from tutti import __version__
from tutti.audiobook.book import Chapter
from tutti.audiobook.passages import Passage
from tutti.engine.checkpoints import used_values
from tutti.speech import SpeechParams
from tutti.text.marks import voices_named
from tutti.voices import Voices, resolve_aliases

FEW_WORDS = 500  # in a lexicon up to this size, a changed entry changes only the passages that have its word
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


def fingerprints(
    params: SpeechParams,
    chapters: Sequence[Chapter],
    plan: Sequence[Passage],
    settings: Mapping[str, object],
    own_voices: Mapping[str, str],
) -> tuple[str, list[str]]:
    """Hash all that the audio depends on: of the whole book, and of each passage its own text and its words only."""
    whole = _hash(
        __version__,
        _sound(params, settings, own_voices),
        *(chapter.text for chapter in chapters),
        *(repr(passage) for passage in plan),
    )
    per_passage = len(params.lexicon) <= FEW_WORDS
    sound = _sound(replace(params, lexicon={}) if per_passage else params, settings, own_voices)
    words = {word: _first_part(word) for word in params.lexicon} if per_passage else {}
    counts = Counter[str]()
    keys = []
    for text in (passage.text(chapters) for passage in plan):
        plain = _plain(text)
        used = {word: params.lexicon[word] for word, part in words.items() if part in plain}
        key = _hash(__version__, sound, json.dumps(used, sort_keys=True), text)
        counts[key] += 1  # passages with the same text
        keys.append(f"{key} {counts[key]}")
    return whole, keys


def _sound(params: SpeechParams, settings: Mapping[str, object], own_voices: Mapping[str, str]) -> str:
    """What the sound depends on beside the text, as JSON."""
    defaults = asdict(SpeechParams(params.voice))
    models = settings.get("models")
    if isinstance(models, Mapping):  # other checkpoints may come and go
        settings = {**settings, "models": models.get(params.model or next(iter(models), ""))}
    if own_voices:
        settings = {**settings, "own_voices": own_voices}
    return json.dumps({**used_values(asdict(params), defaults, FIRST_PARAMS), "sound": settings}, sort_keys=True)


def _first_part(word: str) -> str:
    """What a text must contain if an entry of a lexicon applies to it; "" for a pattern, which may apply anywhere."""
    if word.startswith("/"):
        return ""
    found = re.search(r"[^\W_]+", _plain(word))
    return found[0] if found else ""


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().replace("\u00ad", "")


def _hash(*texts: str) -> str:
    digest = sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return digest.hexdigest()
