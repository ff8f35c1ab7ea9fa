"""The values that all layers share: parameters of a request, input and output of both stages, finished speech."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 24_000  # samples per second
SAMPLES_PER_FRAME = 600  # one frame is 25 ms
LAG_FRAMES = 1  # by which phonemes are heard before the frames of their durations
MAX_PHONEMES = 510  # in one row
STYLE_SIZE = 256  # the first half steers timbre, the second half prosody

Samples = NDArray[np.float32]
EMOTION_NAMES = ("neutral", "calm", "happy", "excited", "sad", "angry", "serious", "gentle")  # of the presets
EMPHASIS_NAMES = ("strong", "moderate", "reduced", "whispered")  # how much a word stands out
VocoderName = Literal["exact", "light", "nano"]  # Kokoro's own; our small ones, distilled from it
TextName = Literal["exact", "light"]  # PL-BERT, which reads the text for the predictor; our small one, likewise
Stages = Literal["acoustic", "vocoder", "both"]  # what one call runs
Int16Samples = NDArray[np.int16]
FULL_SCALE = 32767  # of 16-bit samples, symmetric around zero


def to_pcm(samples: Samples, volume: float = 1.0) -> Int16Samples:
    """Samples at this volume as 16-bit integers; what is over full scale is clipped."""
    scaled = np.clip(samples if volume == 1 else samples * np.float32(volume), -1, 1)
    scaled *= np.float32(FULL_SCALE)
    return np.rint(scaled, out=scaled).astype("<i2")


def is_pcm(samples: Samples | Int16Samples) -> TypeGuard[Int16Samples]:
    """Whether these samples are 16-bit integers."""
    return samples.dtype == np.int16


@dataclass(frozen=True, slots=True)
class SpeechParams:
    """How a text is spoken. `Engine.stream` checks every field and names the one that is wrong."""

    voice: str  # a name or a blend, "af_bella(2)+af_sky(1)"
    style: str | None = None  # a second voice: its prosody with the timbre of the first
    speed: float = 1.0
    pitch: float = 0.0  # semitones
    pitch_range: float = 1.0  # factor: 0 is a monotone
    energy: float = 0.0  # decibels of effort
    emotion: str | None = None  # a preset of speed, pitch, pitch_range and energy
    language: str | None = None  # default: the voice's own; "auto": that of each sentence
    lexicon: Mapping[str, str] = field(default_factory=dict)  # pronunciations, over those of the operator
    voice_names: Mapping[str, str] = field(default_factory=dict)  # further names of voices, for marks in the text
    voice_rates: Mapping[str, float] = field(default_factory=dict)  # times the speed, of such a name; "": of `voice`
    seed: int | None = None
    model: str | None = None  # a checkpoint; default: the engine's first
    pcm_volume: float | None = None  # samples as 16-bit integers at this volume; none: float, as the model makes them
    code_blocks: str | None = None  # read, skip or announce; default: the engine's
    normalization: Mapping[str, bool] = field(default_factory=dict)  # switches of tutti.text.options, all on by default
    with_words: bool = True  # whether the words and their times are wanted, too
    pauses: Mapping[str, float] = field(default_factory=dict)  # milliseconds by tutti.text.options.Pauses


class Prosody(NamedTuple):
    """Changes of a row's intonation; the defaults change nothing."""

    pitch: float = 0.0  # semitones up or down
    pitch_range: float = 1.0  # how far the pitch moves: 0 is a monotone, 2 twice the intervals
    energy: float = 0.0  # decibels of effort, through the model and not by turning up the volume


NO_CHANGE = Prosody()


class Inflection(NamedTuple):
    """How some words of a row differ from the rest of it; the defaults change nothing."""

    rate: float = 1.0  # times the speed
    pitch: float = 0.0  # semitones
    energy: float = 0.0  # decibels of effort
    volume: float = 1.0  # times the loudness
    voiced: float = 1.0  # 0: whispered, without the pitch
    pause: float = 0.0  # frames of silence after it


NO_INFLECTION = Inflection()


@dataclass(frozen=True, slots=True, eq=False)
class Utterance:
    """One row for the acoustic stage."""

    tokens: NDArray[np.int64]  # [n + 2], 0 at both ends
    style: NDArray[np.float32]  # [256]
    speed: float = 1.0
    seed: int | None = None  # for models that draw numbers; Kokoro as released draws none, so every seed sounds alike
    prosody: Prosody = NO_CHANGE  # applied between the stages
    pcm_volume: float | None = None  # samples as 16-bit integers at this volume; none: float
    inflection: NDArray[np.float32] | None = None  # [n + 2, 6] of each token, between the stages; none: no change

    @property
    def tokens_at_speed_1(self) -> float:
        """As many tokens as would take as long at speed 1."""
        n_tokens = len(self.tokens) if self.inflection is None else float((1 / self.inflection[:, 0]).sum())
        return n_tokens / self.speed

    @property
    def pause_frames(self) -> int:
        """Frames of silence inside it that are asked for."""
        return 0 if self.inflection is None else int(self.inflection[:, Inflection._fields.index("pause")].sum())

    def __reduce__(self) -> tuple[Any, ...]:
        """For the way to a worker's process: with its arrays as bytes, which are pickled faster."""
        rest = self.speed, self.seed, self.prosody, self.pcm_volume, self.inflection
        return _utterance, (self.tokens.astype("<i8").tobytes(), self.style.astype("<f4").tobytes(), *rest)


def _utterance(tokens: bytes, style: bytes, *rest: Any) -> Utterance:
    return Utterance(np.frombuffer(tokens, "<i8").copy(), np.frombuffer(style, "<f4").copy(), *rest)


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """One row between the stages: the duration of each token, pitch and energy."""

    durations: NDArray[np.int64]  # [n + 2] frames for each token
    features: NDArray[np.float32]  # [512, T]
    f0: NDArray[np.float32]  # [2T] Hz, below 10 where the voice is silent
    energy: NDArray[np.float32]  # [2T]
    style: NDArray[np.float32]  # [256]
    pcm_volume: float | None = None  # of the samples, as in its utterance
    gain: NDArray[np.float32] | None = None  # [2T] factor of the loudness; none: 1 throughout

    @property
    def n_frames(self) -> int:
        return int(self.features.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class Span(Frames):
    """A part of a row; the vocoder returns the samples of these frames only."""

    start: int = 0  # frames
    end: int = 0
    cache: dict[str, Any] = field(default_factory=dict)  # the model's own, one for all parts of a row

    @staticmethod
    def of(row: Frames, span: tuple[int, int], cache: dict[str, Any]) -> "Span":
        return Span(row.durations, row.features, row.f0, row.energy, row.style, row.pcm_volume, row.gain, *span, cache)


@dataclass(frozen=True, slots=True)
class PhonemeTime:
    """Start and end of a sound, in seconds from the start of the audio."""

    phoneme: str  # in Kokoro's symbols, with its length and without its stress
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class WordTime:
    """Start and end of a word of the original text, in seconds from the start of the audio."""

    word: str
    start_s: float
    end_s: float
    span: tuple[int, int]  # in the original text
    phonemes: tuple[PhonemeTime, ...] = ()  # without a gap
    voice: str | None = None  # as a mark in the text names it; none: that of the request


@dataclass(frozen=True, slots=True)
class Timing:
    """Where the time of one chunk went, and how many rows shared its pass through the vocoder."""

    g2p_s: float = 0.0
    queue_s: float = 0.0
    acoustic_s: float = 0.0
    vocoder_s: float = 0.0
    batch_rows: int = 0
    requested_s: float | None = None  # by the monotonic clock, of the first audio of a stream: when it was asked for


@dataclass(frozen=True, slots=True, eq=False)
class Speech:
    """The audio of one chunk, or of a span of it, with its word times."""

    samples: Samples  # 16-bit integers if `SpeechParams.pcm_volume` says so
    words: tuple[WordTime, ...]
    span: tuple[int, int]  # the part of the original text that it reads
    dropped: tuple[str, ...] = ()  # symbols that cannot be spoken
    timing: Timing = Timing()
    notices: tuple[str, ...] = ()  # what of the text has no effect or is in another language, in sentences

    def __reduce__(self) -> tuple[Any, ...]:
        """As arguments: pickled by its fields, it would take three times as long."""
        timing = self.timing
        steps = timing.g2p_s, timing.queue_s, timing.acoustic_s, timing.vocoder_s
        return _speech, (
            self.samples,
            self.words,
            self.span,
            self.dropped,
            self.notices,
            *steps,
            timing.batch_rows,
            timing.requested_s,
        )

    @property
    def duration_s(self) -> float:
        return len(self.samples) / SAMPLE_RATE


def _speech(
    samples: Samples, words: tuple[WordTime, ...], span: tuple[int, int], dropped: tuple[str, ...],
    notices: tuple[str, ...], *timing: Any,
) -> Speech:  # fmt: skip
    return Speech(samples, words, span, dropped, Timing(*timing), notices)
