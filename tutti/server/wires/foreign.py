"""Names of other services for voices, models and languages, and what they stand for here."""

import re

from tutti.cloud_voices import LETTERS, STAND_INS
from tutti.errors import InvalidInput, UnknownFormat, UnknownVoice, did_you_mean
from tutti.model.prosody import EMOTIONS
from tutti.server.aliases import Aliases
from tutti.text.language import find_language
from tutti.voices import VoiceInfo

# Ids of ElevenLabs' own voices, as found in its examples, and voices of Kokoro that are like them.
VOICES = {
    **{"JBFqnCBsd6RMkjVDRZzb": "bm_george", "onwK4e9ZLuTAKqWW03F9": "bm_daniel", "pFZP5JQG7iQjIQuC4Bku": "bf_lily"},
    **{"Xb7hH8MSUJpSbSDYk0k2": "bf_alice", "EXAVITQu4vr4xnSDxMaL": "af_sarah", "cgSgspJ2msm6clMCkdW9": "af_jessica"},
    **{"SAz9YHcvj6GT2YYXdXww": "af_river", "cjVigY5qzO86Huf0OWal": "am_eric", "TX3LPaxmHKxFdv7VOQHJ": "am_liam"},
    **{"pNInz6obpgDQGcFmaJgB": "am_adam", "21m00Tcm4TlvDq8ikWAM": "af_heart", "9BWtsMINqrJLrRacOk9x": "af_bella"},
}
# An id that says nothing of its voice: Cartesia's, ElevenLabs' others, Deepgram's models. Kokoro's names are shorter.
_FOREIGN_ID = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=.*\d)(?=.*[A-Z])[0-9A-Za-z]{20}|(aura|flux)(-[a-z0-9]+)*", re.ASCII
)
ENCODINGS = {"linear16": "pcm", "pcm_s16le": "pcm", "pcm_f32le": "pcm", "pcm_mulaw": "mulaw", "pcm_alaw": "alaw"}


def foreign_voice(name: str, aliases: Aliases) -> str:
    """Return the voice for an id of another service, which is the default voice if it is unknown; other names stay."""
    if name in aliases.known or not _FOREIGN_ID.fullmatch(name):
        return VOICES.get(name, name)
    letter = LETTERS.get(name.rpartition("-")[2])  # aura-2-celeste-es
    return VOICES.get(name) or (STAND_INS[letter]["f"][0] if letter else aliases.default_voice)


def foreign_model(name: str | None, aliases: Aliases) -> str | None:
    """Return a checkpoint of this server by its name; every other name stands for the default one."""
    return name if name in aliases.checkpoints else None


def known_voice(id: str, aliases: Aliases, param: str) -> VoiceInfo:
    """Return what is known of the voice for an id; raise if there is none."""
    name, voices = foreign_voice(id, aliases), aliases.known.all()
    if name not in voices:
        raise UnknownVoice(f"unknown voice {id[:80]!r}{did_you_mean(id, voices)}", param=param)
    return voices[name]


def language_of(code: str | None, voice: str, aliases: Aliases) -> str | None:
    """Return the language to ask for; none if it is the voice's own: `en` with a British voice stays British."""
    if code is None:
        return None
    own = next((info.language for name, info in aliases.known.all().items() if voice.startswith(name)), None)
    if own and own.split("-")[0] == code.lower():
        return None
    return find_language(code).code


def known_emotion(name: object) -> str | None:
    """Return a preset of this name; none if there is none, since other services have many more."""
    return name.lower() if isinstance(name, str) and name.lower() in EMOTIONS else None


def encoding_format(encoding: str, param: str) -> str:
    """Return the format of raw audio in an encoding."""
    name = ENCODINGS.get(encoding, encoding)
    if name not in ("pcm", "mulaw", "alaw"):
        raise UnknownFormat(f"unknown encoding {encoding[:40]!r}; raw audio is {', '.join(ENCODINGS)}", param=param)
    return name


def positive(value: object, param: str) -> float | None:
    """Return a number of a message."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise InvalidInput(f"{param} must be a number that is not negative", param=param)
    return float(value)


def speed_of(value: object, param: str) -> float | None:
    """Return a speed of a message."""
    speed = positive(value, param)
    if speed is not None and not 0.25 <= speed <= 4:
        raise InvalidInput(f"{param} must be from 0.25 to 4, not {speed:g}", param=param)
    return speed
