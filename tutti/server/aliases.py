"""Names that clients use for models and voices, and what they stand for."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tutti.cloud_voices import OPENAI_VOICES, stand_in, stand_in_notice
from tutti.errors import InvalidInput, did_you_mean
from tutti.lexicons import LexiconsOfCaller
from tutti.server.errors import UnknownModel, rename_param
from tutti.voices import Voices, resolve_aliases

MODELS = ("kokoro", "tts-1", "tts-1-hd", "gpt-4o-mini-tts")  # all stand for the default checkpoint
OTHER_SPELLINGS = (  # used by other servers
    *("kokoro-82m", "kokoro-v1.0", "hexgrad/kokoro-82m"),
    *(f"{owner}/kokoro-82m-v1.0-onnx" for owner in ("speaches-ai", "onnx-community")),
    *(f"speaches-ai/kokoro-82m-v1.0-onnx-{precision}" for precision in ("fp16", "int8")),
)
DATE = re.compile(r"-(\d{4}|\d{4}-\d{2}-\d{2})\Z", re.ASCII)  # tts-1-1106, gpt-4o-mini-tts-2025-12-15
MODEL_NAME = re.compile(r"[\w.:-]{1,64}(/[\w.:-]{1,64})?\Z", re.ASCII)

_ALIAS = re.compile(r"[A-Za-z]\w*", re.ASCII)
_REQUEST_ALIAS = re.compile(r"[^\[\]\n<>\"'&]{1,100}")  # a name that fits into a mark and into SSML


@dataclass(frozen=True, slots=True)
class Aliases:
    """The models and voices of this server under all their names."""

    checkpoints: tuple[str, ...]
    voices: Mapping[str, str]  # alias to voice expression
    default_voice: str
    known: Voices  # Kokoro's, and those of the operator
    any_model: bool = False  # every other name of a model stands for the first checkpoint
    rates: Mapping[str, float] = field(default_factory=dict)  # times the speed, of an alias
    checkpoint: str | None = None  # with voices of its own; none: Kokoro's
    root: "Aliases | None" = None  # those of Kokoro, if these are of such a checkpoint
    lexicons: LexiconsOfCaller | None = None  # stored ones, by id

    def stored_entries(self, ids: Sequence[str], param: str = "lexicon_id") -> dict[str, str]:
        """Return the entries of lexicons that are stored on this server; raise if one does not exist."""
        return self.lexicons.merged(ids, param) if self.lexicons and ids else {}

    def of_model(self, model: str | None) -> "Aliases":
        """Return the voices of a model: of one with voices of its own, and their names alone."""
        checkpoint = self.checkpoints[0] if model is None else find_checkpoint(model, self)
        known, root = self.known.of_model(checkpoint), self.root or self
        if (None if known.is_official else checkpoint) == self.checkpoint:
            return self
        if known.is_official:
            return replace(root, known=known)
        default = next(iter(known), "default")
        names = dict.fromkeys((*OPENAI_VOICES, "default"), default)
        return replace(root, known=known, default_voice=default, voices=names, checkpoint=checkpoint, root=root)


def find_checkpoint(name: str, aliases: Aliases) -> str:
    """Return the checkpoint that a model name stands for, mostly the first. Paths and URLs are refused."""
    checkpoints = aliases.checkpoints
    if aliases.any_model:
        return name if name in checkpoints else checkpoints[0]
    if not MODEL_NAME.match(name) or ".." in name:
        raise InvalidInput(f"{name[:80]!r} is not the name of a model; use kokoro", param="model")
    if name in checkpoints:
        return name
    if DATE.sub("", name.lower()) not in (*MODELS, *OTHER_SPELLINGS):
        raise UnknownModel(f"unknown model {name!r}{did_you_mean(name, MODELS) or '; use kokoro'}", param="model")
    return checkpoints[0]


def voice_of_model(model: str | None, aliases: Aliases) -> str | None:
    """Return the voice that some clients send as the model, where any name of a model is accepted."""
    if not aliases.any_model or model is None:
        return None
    return model if resolve_name(model, aliases).lower() in aliases.known else None


def voice_aliases(pairs: Iterable[str], known: Voices) -> dict[str, str]:
    """Return the aliases of the settings (`narrator=am_adam`) and those of OpenAI."""
    aliases = dict(OPENAI_VOICES)
    for pair in pairs:
        name, equals, voice = pair.partition("=")
        if not equals or not _ALIAS.fullmatch(name.strip()) or not voice.strip():
            raise InvalidInput(f"voice_names: write name=voice, got {pair!r}", param="voice_names")
        with rename_param(voice="voice_names"):
            known.parse(voice.strip())
        aliases[name.strip().lower()] = voice.strip()
    return aliases


def resolve_voice(name: str, aliases: Aliases) -> tuple[str, tuple[str, ...]]:
    """Return a voice with its aliases resolved, and a notice if it stands for the voice of another service."""
    voice = None if name.strip().lower() in aliases.voices else stand_in(name)
    if voice is None:
        return resolve_name(name, aliases), ()
    return voice, (stand_in_notice(name, voice),)


def add_voices(aliases: Aliases, targets: Mapping[str, tuple[str, float | None]]) -> tuple[Aliases, tuple[str, ...]]:
    """Return the aliases with those of a request, each for a voice and a rate, and notices of voices that stand in.

    A voice that does not exist is an error only where it speaks.
    """
    voices, rates, notices = dict[str, str](), dict[str, float](), list[str]()
    for written, (target, rate) in targets.items():
        name = written.strip().lower()
        if not _REQUEST_ALIAS.fullmatch(name):
            message = f"{written[:40]!r} is not a name for a voice: up to 100 characters without brackets and quotes"
            raise InvalidInput(message, param="voice")
        voices[name], notices_of_voice = resolve_voice(target, aliases)
        notices += notices_of_voice
        if rate is not None:
            rates[name] = rate
    return replace(aliases, voices={**aliases.voices, **voices}, rates=rates), tuple(notices)


def resolve_name(name: str, aliases: Aliases) -> str:
    """Return the voice or blend of a label, or of an expression with aliases; unknown names stay."""
    return aliases.known.of_label(name) or resolve_aliases(name, aliases.voices)
