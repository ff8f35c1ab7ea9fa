"""Pitch, pitch range and energy of one row, changed between the stages: the same for every backend."""

from dataclasses import dataclass

import numpy as np

from tutti.errors import InvalidInput, did_you_mean
from tutti.model.validation import MAX_SPEED, MIN_SPEED
from tutti.speech import Frames, Prosody

VOICED_HZ = 10.0  # Kokoro's own threshold: below, its source is silent
STEADY_HZ = 50.0  # no voice speaks below; the curve only passes through on its way to silence
HIGHEST_HZ = 1000.0  # a changed pitch is clipped here
# Kokoro's energy curve is logarithmic. Raising all of it makes speech louder, brighter and breathier, by 0.28 to 0.41
# dB a unit over +-8 units (two voices); beyond that it distorts.
ENERGY_PER_DB = 2.7

LIMITS = {"pitch": (-12.0, 12.0), "pitch_range": (0.0, 2.0), "energy": (-3.0, 3.0)}


@dataclass(frozen=True, slots=True)
class Emotion:
    """A preset of speed and prosody."""

    speed: float
    prosody: Prosody


EMOTIONS = {
    "neutral": Emotion(1.0, Prosody()),
    "calm": Emotion(0.92, Prosody(-0.5, 0.8, -1.0)),
    "happy": Emotion(1.06, Prosody(1.5, 1.3, 1.0)),
    "excited": Emotion(1.15, Prosody(2.5, 1.5, 2.0)),
    "sad": Emotion(0.85, Prosody(-1.5, 0.6, -2.0)),
    "angry": Emotion(1.1, Prosody(0.5, 1.4, 3.0)),
    "serious": Emotion(0.95, Prosody(-1.5, 0.8, 0.5)),
    "gentle": Emotion(0.94, Prosody(0.5, 0.9, -2.0)),
}


def check_prosody(prosody: Prosody) -> None:
    for name, (low, high) in LIMITS.items():
        value = getattr(prosody, name)
        if not low <= value <= high:  # also refuses nan
            raise InvalidInput(f"{name} must be a number from {low:g} to {high:g}, not {value:g}", param=name)


def find_emotion(name: str) -> Emotion:
    preset = EMOTIONS.get(name.strip().lower())
    if preset is None:
        hint = did_you_mean(name, EMOTIONS, cutoff=0.7)  # sad is near glad only in letters
        raise InvalidInput(f"unknown emotion {name[:40]!r}{hint}; known: {', '.join(EMOTIONS)}", param="emotion")
    return preset


def combine(first: Prosody, second: Prosody) -> Prosody:
    """Apply both, clamped to the limits."""
    return Prosody(
        _clamp("pitch", first.pitch + second.pitch),
        _clamp("pitch_range", first.pitch_range * second.pitch_range),
        _clamp("energy", first.energy + second.energy),
    )


# Above this speed the model drops sounds: words are understood better if it speaks at this one and its audio is made
# shorter (docs/log/2026-11-19-fast-listening.md).
FASTEST_MODEL = 1.25


def model_speed(speed: float) -> float:
    """The part of a speed that the model is asked for."""
    return min(speed, FASTEST_MODEL)


def clamp_speed(speed: float) -> float:
    """A product of several speeds, clamped to the limits."""
    return min(max(speed, MIN_SPEED), MAX_SPEED)


def apply_prosody(frames: Frames, prosody: Prosody) -> None:
    """Change the row's pitch and energy curves in place, so that features on a device need not move.

    Unvoiced values stay unvoiced and voiced ones voiced; a neutral prosody changes nothing.
    """
    if prosody.pitch or prosody.pitch_range != 1:
        voiced = frames.f0 > VOICED_HZ
        steady = frames.f0[frames.f0 > STEADY_HZ]
        if len(steady):
            median = float(np.median(steady))
            shifted = median * (frames.f0[voiced] / median) ** prosody.pitch_range * 2 ** (prosody.pitch / 12)
            frames.f0[voiced] = np.clip(shifted, VOICED_HZ + 0.01, HIGHEST_HZ)
    if prosody.energy:
        frames.energy[:] += np.float32(ENERGY_PER_DB * prosody.energy)


def _clamp(name: str, value: float) -> float:
    low, high = LIMITS[name]
    return min(max(value, low), high)
