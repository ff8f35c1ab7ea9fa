"""Judges of speech from optional packages: DNSMOS for quality, Resemblyzer for the speaker, Whisper for words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tutti.errors import InvalidInput, MissingExtra, install_hint
from tutti.speech import SAMPLE_RATE, Samples
from tutti.verify import Recogniser
from tutti.verify.recogniser import NO_RECOGNISER, RECOGNISER_RATE, prepare_for_recogniser

DNSMOS_S = 9.01  # seconds that DNSMOS reads at once
VOICE_WINDOW = RECOGNISER_RATE * 30 // 1000  # samples that the detector of voice hears at once


class QualityMeter(Protocol):
    def __call__(self, samples: Samples) -> tuple[float, float]:
        """Mean opinion scores, 1 to 5: overall, and P.808."""


class SpeakerMeter(Protocol):
    def __call__(self, one: Samples, other: Samples) -> float:
        """Similarity of two speakers, at most 1; silence is where the other is silent."""


@dataclass(frozen=True, slots=True)
class Meters:
    """What is installed here; a measure without its meter is left out of the report, which says so."""

    recognisers: Mapping[str, Recogniser] = field(default_factory=dict)
    quality: QualityMeter | None = None
    speaker: SpeakerMeter | None = None

    def __str__(self) -> str:
        judges = {"DNSMOS": self.quality, "speaker": self.speaker}
        return ", ".join([*sorted(self.recognisers), *(name for name, judge in judges.items() if judge)])

    @property
    def missing(self) -> list[str]:
        hints = []
        if not self.recognisers:
            hints.append(NO_RECOGNISER)
        if self.quality is None:
            hints.append(f"DNSMOS was not measured: {install_hint('verify')}.")
        if self.speaker is None:
            hints.append("Speakers were not compared: pip install webrtcvad-wheels; pip install --no-deps Resemblyzer.")
        return hints


def installed_meters(recognisers: Mapping[str, Recogniser]) -> Meters:
    return Meters(
        recognisers,
        Dnsmos() if find_spec("speechmos") else None,
        Resemblyzer() if find_spec("resemblyzer") else None,
    )


class Dnsmos:
    """Microsoft's estimate of a mean opinion score, without a reference."""

    def __call__(self, samples: Samples) -> tuple[float, float]:
        from speechmos import dnsmos

        clip = np.clip(prepare_for_recogniser(samples, SAMPLE_RATE), -1, 1)
        # It would double a short clip until that is long enough, and then read it five times: repeat it only so far.
        n = max(len(clip), int(DNSMOS_S * RECOGNISER_RATE))
        scores = dnsmos.run(np.resize(clip, n), sr=RECOGNISER_RATE)
        return float(scores["ovrl_mos"]), float(scores["p808_mos"])


class Resemblyzer:
    """The cosine similarity of two embeddings of speakers, each of the same places of its wave.

    Resemblyzer embeds what its detector of voice leaves, in parts of 1.6 s, and would ask it about each wave by itself.
    One window of 30 ms more or less may then decide whether a part counts: the same wave, 0.1 dB louder, is at 0.95.
    So the second wave decides for both.
    """

    def __init__(self) -> None:
        from resemblyzer import VoiceEncoder

        self._encoder = VoiceEncoder("cpu", verbose=False)

    def __call__(self, one: Samples, other: Samples) -> float:
        pair = [_prepare_for_resemblyzer(samples) for samples in (one, other)]
        spoken = spoken_places(pair[1])[: len(pair[0])]
        a, b = (self._encoder.embed_utterance(samples[: len(spoken)][spoken]) for samples in pair)
        return float(a @ b)


def _prepare_for_resemblyzer(samples: Samples) -> Samples:
    """Its own resampling, and its own level for quiet speech."""
    from librosa import resample
    from resemblyzer.audio import audio_norm_target_dBFS, normalize_volume

    resampled = resample(samples, orig_sr=SAMPLE_RATE, target_sr=RECOGNISER_RATE)
    prepared: Samples = normalize_volume(resampled, audio_norm_target_dBFS, increase_only=True)
    return prepared


def spoken_places(samples: Samples) -> NDArray[np.bool_]:  # 16 kHz, [n] -> [n less the rest of a window]
    """Where Resemblyzer hears speech: most of eight windows around a place are voiced, or a near one's are."""
    import webrtcvad

    detector, n = webrtcvad.Vad(3), len(samples) // VOICE_WINDOW
    windows = np.round(samples[: n * VOICE_WINDOW] * 32767).astype(np.int16).reshape(n, VOICE_WINDOW)
    voiced = [detector.is_speech(window.tobytes(), RECOGNISER_RATE) for window in windows]
    most = np.convolve(voiced, np.ones(8))[4 : n + 4] > 4
    near = np.convolve(most, np.ones(7))[3 : n + 3] > 0
    return np.repeat(near, VOICE_WINDOW)


class Whisper:
    """Whisper through faster-whisper, int8; `folder` holds the converted model."""

    def __init__(self, folder: Path) -> None:
        if find_spec("faster_whisper") is None:
            raise MissingExtra("--whisper needs faster-whisper; run: pip install faster-whisper")
        if not (folder / "model.bin").exists():
            raise InvalidInput(f"{folder} holds no model of faster-whisper", param="whisper")
        from faster_whisper import WhisperModel

        self._model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=2)

    def transcribe(self, samples: Samples, sample_rate: int) -> str:
        segments, _ = self._model.transcribe(
            prepare_for_recogniser(samples, sample_rate),
            language="en",
            beam_size=5,
            condition_on_previous_text=False,
            without_timestamps=True,
        )
        return " ".join(segment.text.strip() for segment in segments)
