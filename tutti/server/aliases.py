"""The names clients call models and voices by, and what they mean here."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tutti.errors import InvalidInput, did_you_mean
from tutti.server.errors import UnknownModel, fields
from tutti.voices import parse, resolve_aliases

MODELS = ("kokoro", "tts-1", "tts-1-hd", "gpt-4o-mini-tts")  # one network answers to all of them
ALSO = ("kokoro-82m", "kokoro-v1.0", "hexgrad/kokoro-82m")  # as other servers spell it
DATE = re.compile(r"-(\d{4}|\d{4}-\d{2}-\d{2})\Z", re.ASCII)  # tts-1-1106, gpt-4o-mini-tts-2025-12-15
MODEL = re.compile(r"[\w.:-]{1,64}(/[\w.:-]{1,64})?\Z", re.ASCII)

# The thirteen voices of OpenAI; the five first exist here by the same name.
OPENAI_VOICES = {
    **{"alloy": "af_alloy", "echo": "am_echo", "fable": "bm_fable", "onyx": "am_onyx", "nova": "af_nova"},
    **{"ash": "am_michael", "ballad": "bm_george", "cedar": "am_fenrir", "verse": "am_puck"},
    **{"coral": "af_bella", "marin": "af_heart", "sage": "af_sarah", "shimmer": "af_kore"},
}

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cast:
    """Who can speak here: the models, and the voices by all their names."""

    checkpoints: tuple[str, ...]
    names: Mapping[str, str]
    voice: str  # when none is asked for


def checkpoint(name: str, here: Sequence[str]) -> str:
    """The engine's checkpoint that a client means: the first, for most names. A path or an address is none."""
    if not MODEL.match(name) or ".." in name:
        raise InvalidInput(f"{name[:80]!r} is not the name of a model; use kokoro", param="model")
    if name in here:
        return name
    if DATE.sub("", name.lower()) not in (*MODELS, *ALSO):
        raise UnknownModel(f"unknown model {name!r}{did_you_mean(name, MODELS) or '; use kokoro'}", param="model")
    return here[0]


def own_names(pairs: Iterable[str]) -> dict[str, str]:
    """The voice names of the settings, `narrator=am_adam`, beside those of OpenAI."""
    named = dict(OPENAI_VOICES)
    for pair in pairs:
        name, equals, voice = pair.partition("=")
        if not equals or not _NAME.fullmatch(name.strip()) or not voice.strip():
            raise InvalidInput(f"voice_names: write name=voice, got {pair!r}", param="voice_names")
        with fields(voice="voice_names"):
            parse(voice.strip())
        named[name.strip().lower()] = voice.strip()
    return named


def voice_expression(asked: str, names: Mapping[str, str]) -> str:
    """The voice in Kokoro's own names, also inside a blend; what is unknown stays for the engine to refuse."""
    return resolve_aliases(asked, names)
