"""Kokoro's 54 voices and your own, blends of them, and the timbre of one with the prosody of another."""

import copy
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from tutti.additions import Addition
from tutti.cloud_voices import hint
from tutti.errors import (
    MAX_COMPARED,
    InvalidInput,
    UnknownVoice,
    WeightsCorrupt,
    WeightsUnavailable,
    did_you_mean,
)
from tutti.own_voices import DEFAULT_LANGUAGE, MAX_DIGESTS, OwnVoice, OwnVoices, has_prefix
from tutti.speech import MAX_PHONEMES, STYLE_SIZE
from tutti.text.language import find_language
from tutti.voice_traits import TRAITS

if TYPE_CHECKING:
    from tutti.settings import Settings

# Names and the grades by Kokoro's author ("-": none). The first letter is the language, the second the gender.
GRADES = {
    **{"af_heart": "A", "af_alloy": "C", "af_aoede": "C+", "af_bella": "A-", "af_jessica": "D", "af_kore": "C+"},
    **{"af_nicole": "B-", "af_nova": "C", "af_river": "D", "af_sarah": "C+", "af_sky": "C-"},
    **{"am_adam": "F+", "am_echo": "D", "am_eric": "D", "am_fenrir": "C+", "am_liam": "D", "am_michael": "C+"},
    **{"am_onyx": "D", "am_puck": "C+", "am_santa": "D-"},
    **{"bf_alice": "D", "bf_emma": "B-", "bf_isabella": "C", "bf_lily": "D"},
    **{"bm_daniel": "D", "bm_fable": "C", "bm_george": "C", "bm_lewis": "D+"},
    **{"ef_dora": "-", "em_alex": "-", "em_santa": "-", "ff_siwis": "B-"},
    **{"hf_alpha": "C", "hf_beta": "C", "hm_omega": "C", "hm_psi": "C", "if_sara": "C", "im_nicola": "C"},
    **{"jf_alpha": "C+", "jf_gongitsune": "C", "jf_nezumi": "C-", "jf_tebukuro": "C", "jm_kumo": "C-"},
    **{"pf_dora": "-", "pm_alex": "-", "pm_santa": "-"},
    **{"zf_xiaobei": "D", "zf_xiaoni": "D", "zf_xiaoxiao": "D", "zf_xiaoyi": "D"},
    **{"zm_yunjian": "D", "zm_yunxi": "D", "zm_yunxia": "D", "zm_yunyang": "D"},
}
NAMES = tuple(GRADES)

# A name with its sign and weight: "af_bella(2)", "+ af_sky", "-am_adam(0.5)".
_TERM = re.compile(r"\s*([+-]?)\s*(\w{1,40})\s*(?:\(\s*([^()\s]{1,20})\s*\))?\s*", re.ASCII)
_HYPHENATED = re.compile(r"\w{1,40}(?:-\w{1,40}){1,4}", re.ASCII)
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
MAX_BLEND = 8  # voices


Gender = Literal["female", "male", "neutral"]


@dataclass(frozen=True, slots=True)
class VoiceInfo:
    """What lists say of a voice."""

    name: str
    language: str  # code
    gender: Gender  # neutral: the name of an own voice does not say it
    grade: str = "-"
    description: str = ""
    is_own: bool = False
    addition: Addition | None = None  # of an own voice: who has added it over HTTP

    @property
    def short_name(self) -> str:
        """The name for people, such as "Heart"."""
        name = self.name[3:] if has_prefix(self.name) else self.name
        return name.replace("_", " ").strip().title() or self.name

    @property
    def label(self) -> str:
        """The name for people with what tells voices apart, such as "Heart (American English, female)"."""
        kind = "your own" if self.is_own else self.gender
        return f"{self.short_name} ({find_language(self.language).name}, {kind})"


@dataclass(frozen=True, slots=True, eq=False)
class Voice:
    """A table of style vectors, one row for each number of phonemes."""

    name: str
    table: NDArray[np.float32]  # [510, 256]
    language: str  # code; that of the first voice of a blend

    def style(self, n_phonemes: int) -> NDArray[np.float32]:
        """Return the row for this many phonemes: n - 1, like upstream's PyTorch code (kokoro-onnx takes row n)."""
        row: NDArray[np.float32] = self.table[n_phonemes - 1]
        return row


def gender(name: str) -> Gender:
    """Return what the second letter of a name of Kokoro's says."""
    return "female" if name[1] == "f" else "male"


OFFICIAL = {
    name: VoiceInfo(name, find_language(name[0]).code, gender(name), grade, TRAITS[name])
    for name, grade in GRADES.items()
}
_LABELS = {info.label.lower(): name for name, info in OFFICIAL.items()}


class Voices:
    """Knows all voices, and finds one by name, blend or cross-style; each table of Kokoro's is read once."""

    def __init__(self, folder: Path, own: OwnVoices | Path | None = None) -> None:
        """`folder`: Kokoro's tables. `own`: the files of further voices."""
        self._folder = folder
        self._official = OFFICIAL
        self._table = lru_cache(maxsize=None)(self._read)
        self._cached_blend = lru_cache(maxsize=64)(self._blend)
        self.own = own if isinstance(own, OwnVoices) else OwnVoices(own, taken=OFFICIAL)
        self._mean = lru_cache(maxsize=None)(lambda name: self._table(name).mean(axis=0))
        self._own_mean = lru_cache(MAX_DIGESTS)(lambda voice: self.own.table(voice).mean(axis=0))
        self._caller = ""  # sees only what all may use
        self._models: dict[str | None, Voices] = {}  # of checkpoints with voices of their own; none: the default's
        self._root = self

    @classmethod
    def of(cls, settings: "Settings") -> "Voices":
        return cls(settings.home / "voices", settings.voices or settings.data / "voices")

    @classmethod
    def of_folder(cls, folder: Path, language: str | None) -> "Voices":
        """Return the voices of a checkpoint: files that have any names, and speak this language unless they say so."""
        own = OwnVoices(folder, taken=None, language=language or DEFAULT_LANGUAGE)
        voices = cls(folder, own)
        voices._official = {}
        return voices

    def with_models(self, models: Mapping[str, "Voices"], default: str) -> "Voices":
        """Return the same voices with those of checkpoints that have their own; `default`: the first checkpoint."""
        self._models.update(models)
        if default in models:
            self._models[None] = models[default]
        for voices in models.values():
            voices._models, voices._root = self._models, self
        return self

    def of_model(self, checkpoint: str | None) -> "Voices":
        """Return the voices of a checkpoint for the same caller; none: of the first."""
        voices = self._models.get(checkpoint, self._root)
        return voices.seen_by(self._caller) if self._models else self

    @property
    def is_official(self) -> bool:
        """Whether Kokoro's are among them."""
        return bool(self._official)

    def seen_by(self, caller: str) -> "Voices":
        """Return the same voices with the private ones of a caller."""
        view = copy.copy(self)
        view._caller = caller
        return view

    def all(self) -> Mapping[str, VoiceInfo]:
        """Return every voice by name, Kokoro's first."""
        self.own.refresh(now=True)
        own = {name: own_info(voice) for name, voice in self._own_voices().items()}
        return {**self._official, **own} if own else self._official

    def __contains__(self, name: object) -> bool:
        if name in self._official or name in self._own_voices():
            return True
        self.own.refresh(now=True)  # another process may just have added it
        return name in self._own_voices()

    def __iter__(self) -> Iterator[str]:
        yield from self._official
        yield from self._own_voices()

    def __len__(self) -> int:
        return len(self._official) + len(self._own_voices())

    def _own_voices(self) -> Mapping[str, OwnVoice]:
        return self.own.all(self._caller)

    def of_label(self, label: str) -> str | None:
        """Return the voice with this label: clients show labels, and may send what they show."""
        key = label.strip().lower()
        if "(" not in key:
            return None
        own = map(own_info, self._own_voices().values())
        return (_LABELS.get(key) if self._official else None) or next(
            (info.name for info in own if info.label.lower() == key), None
        )

    def parse(self, expression: str) -> list[tuple[str, float]]:
        """Return names and signed weights of a blend; raise UnknownVoice or InvalidInput that names the bad part."""
        return parse_blend(expression, self)

    def language_of(self, expression: str) -> str:
        """Return the code of the language of a voice, or of the first voice of a blend."""
        (name, _weight), *_ = self.parse(expression)
        return self.all()[name].language

    def languages(self, expressions: Iterable[str] | None = None) -> dict[str, str]:
        """Return the language of each own voice whose name does not begin with it; of those in `expressions`."""
        words = None if expressions is None else set(map(str.lower, _words(expressions)))
        return {
            name: voice.language
            for name, voice in self._own_voices().items()
            if (words is None or name in words) and not has_prefix(name)
        }

    def get(self, name: str, style: str | None = None) -> Voice:
        """Return the voice `name`; with `style`, its timbre and the prosody of that other voice."""
        voice = self._find(name)
        if style is None:
            return voice
        half = STYLE_SIZE // 2
        prosody = self._find(style).table[:, half:]
        return Voice(f"{voice.name}/{style}", np.hstack((voice.table[:, :half], prosody)), voice.language)

    def similar(self, name: str) -> list[tuple[str, float]]:
        """Return the other voices and their likeness, from -1 to 1, the most alike first: the angle of mean styles."""
        own = self._own_voices()
        means = {
            each: self._own_mean(own[each]) if each in own else self._mean(each) for each in (*self._official, *own)
        }
        centre = np.mean([means[each] for each in self._official or own], axis=0)
        turned = {each: mean - centre for each, mean in means.items()}
        lengths = {each: float(np.linalg.norm(vector)) or 1.0 for each, vector in turned.items()}
        likeness = {
            each: float(turned[name] @ vector) / lengths[name] / lengths[each] for each, vector in turned.items()
        }
        return sorted(((each, value) for each, value in likeness.items() if each != name), key=lambda pair: -pair[1])

    def hashes(self, expressions: Iterable[str]) -> dict[str, str]:
        """Return what own voices in these names and blends are made of: audio made with them changes with it."""
        own = self._own_voices()
        if not own:
            return {}
        words = set(map(str.lower, _words(expressions)))
        voices = {name: self.own.find(name, self._caller) for name in sorted(words & own.keys())}
        return {name: self.own.digest(voice) if voice else "" for name, voice in voices.items()}

    def _find(self, expression: str) -> Voice:
        terms = tuple(self.parse(expression))
        return self._cached_blend(expression, terms, tuple(self._own_voice(name) for name, _ in terms))

    def _own_voice(self, name: str) -> OwnVoice | None:
        """Return the file of an own voice, none for one of Kokoro's."""
        if name in self._official:
            return None
        voice = self.own.find(name, self._caller)
        if voice is None:
            raise UnknownVoice(f"the file of voice {name} is gone or bad; see: tutti voices", param="voice")
        return voice

    def _blend(self, expression: str, terms: tuple[tuple[str, float], ...], own: tuple[OwnVoice | None, ...]) -> Voice:
        """Return one voice, or a weighted mean: `a(2)+b(1)`. A minus moves away from a voice: `a-b`."""
        language = own[0].language if own[0] else self._official[terms[0][0]].language
        tables = [
            self.own.table(voice) if voice else self._table(name) for (name, _), voice in zip(terms, own, strict=True)
        ]
        if len(terms) == 1:
            return Voice(terms[0][0], tables[0], language)
        weights = [weight for _, weight in terms]
        towards = sum(weight for weight in weights if weight > 0)
        away = -sum(weight for weight in weights if weight < 0)
        # a - b moves half a step from a away from b, a(3) - b a quarter. The weights still add up to one, so that
        # the sum is a style; a plain difference would be nearly silent.
        push = away / (towards + away)
        mixed = sum(
            (
                table * (weight / towards * (1 + push) if weight > 0 else weight / away * push)
                for table, weight in zip(tables, weights, strict=True)
            ),
            start=np.zeros((MAX_PHONEMES, STYLE_SIZE), np.float32),
        )
        return Voice(expression.replace(" ", ""), mixed.astype(np.float32), language)

    def _read(self, name: str) -> NDArray[np.float32]:
        path = self._folder / f"{name}.bin"
        try:
            table = np.fromfile(path, dtype="<f4")
        except FileNotFoundError:
            raise WeightsUnavailable(f"the file of voice {name} is not at {path}; run: tutti pull") from None
        if table.size != MAX_PHONEMES * STYLE_SIZE or not np.isfinite(table).all():
            raise WeightsCorrupt(f"the file of voice {name} is damaged; delete {path} and run: tutti pull")
        return table.reshape(MAX_PHONEMES, STYLE_SIZE)


def _words(expressions: Iterable[str]) -> Iterator[str]:
    return (word for expression in expressions for word in _NAME.findall(expression))


def own_info(voice: OwnVoice) -> VoiceInfo:
    kind: Gender = gender(voice.name) if has_prefix(voice.name) else "neutral"
    return VoiceInfo(voice.name, voice.language, kind, description="your own", is_own=True, addition=voice.addition)


def parse_blend(expression: str, names: Collection[str] = OFFICIAL) -> list[tuple[str, float]]:
    """Return names and signed weights of a blend; raise UnknownVoice or InvalidInput that names the bad part.

    `names`: of all voices, in lower case.
    """
    name = expression.strip()
    if cure := hint(expression):
        raise UnknownVoice(f"unknown voice {name[:80]!r}; {cure}", param="voice")
    if _HYPHENATED.fullmatch(name) and not any(part in names for part in name.lower().split("-")):
        _check_name(name, names)  # no blend: a name of another service
    terms: list[tuple[str, float]] = []
    at = 0
    while at < len(expression):
        match = _TERM.match(expression, at)
        if match is None or (at > 0) != bool(match[1]):
            break
        terms.append((_check_name(match[2], names), _weight(match) * (-1 if match[1] == "-" else 1)))
        at = match.end()
    if at < len(expression) or not terms:
        raise UnknownVoice(
            f"cannot read voice {expression[:80]!r}; write a name (af_heart) or a blend (af_bella(2)+af_sky(1))",
            param="voice",
        )
    if len(terms) > MAX_BLEND:
        raise InvalidInput(f"a blend takes at most {MAX_BLEND} voices, got {len(terms)}", param="voice")
    return terms


def resolve_aliases(expression: str, names: Mapping[str, str]) -> str:
    """Replace aliases in a voice or blend by Kokoro's names; unknown names stay."""
    if whole := names.get(expression.strip().lower()):  # which may have a space or a hyphen
        return whole
    return _NAME.sub(lambda match: names.get(match[0].lower(), match[0]), "".join(expression.split()))


def _check_name(name: str, names: Collection[str]) -> str:
    if name.lower() not in names:
        cure = _similar(name.lower(), names) or "; list them with: tutti voices"
        raise UnknownVoice(f"unknown voice {name!r}{cure}", param="voice")
    return name.lower()


def _similar(name: str, names: Collection[str]) -> str:
    """A hint to voices that are spelled alike; a name without its prefix (`emma`) is compared with theirs."""
    if len(name) > MAX_COMPARED:
        return ""
    if name[1:3] in ("f_", "m_"):
        return did_you_mean(name, names) if get_close_matches(name[3:], (n[3:] for n in names), 1, 0.6) else ""
    bare = {each: each[3:] if has_prefix(each) else each for each in names}
    alike = get_close_matches(name, bare.values(), 3, 0.75)
    similar = [each for each, short in bare.items() if short in alike][:3]
    return f"; did you mean {' or '.join(similar)}?" if similar else ""


def _weight(match: re.Match[str]) -> float:
    written = match[3] or "1"
    try:
        weight = float(written) if written.isascii() else 0.0  # the voice is repeated in a header
    except ValueError:
        weight = 0.0
    if not 0 < weight <= 100:
        raise InvalidInput(
            f"weight {match[3]!r} of voice {match[2]} must be a number above 0, at most 100", param="voice"
        )
    return weight
