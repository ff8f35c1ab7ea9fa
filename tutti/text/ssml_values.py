"""The values of SSML's prosody: names, factors, semitones, decibels."""

import math
import re

RATES = {"x-slow": 0.5, "slow": 0.75, "medium": 1.0, "default": 1.0, "fast": 1.25, "x-fast": 1.5}
PITCHES = {"x-low": -6.0, "low": -3.0, "medium": 0.0, "default": 0.0, "high": 3.0, "x-high": 6.0}
VOLUMES = {"silent": 0.0, "x-soft": 0.25, "soft": 0.5, "medium": 1.0, "default": 1.0, "loud": 1.5, "x-loud": 2.0}
# Styles of other services: factor of the rate, semitones.
STYLES = {
    **dict.fromkeys(("cheerful", "happy", "friendly", "hopeful"), (1.06, 1.5)),
    **dict.fromkeys(("excited", "shouting"), (1.15, 2.5)),
    **dict.fromkeys(("sad", "depressed", "disappointed", "lyrical"), (0.85, -1.5)),
    **dict.fromkeys(("angry", "disgruntled", "unfriendly"), (1.1, 0.5)),
    **dict.fromkeys(("calm", "empathetic", "affectionate"), (0.92, -0.5)),
    **dict.fromkeys(("serious", "newscast", "news", "narration-professional"), (0.95, -1.5)),
    **dict.fromkeys(("gentle", "whispering"), (0.94, 0.5)),
}
_NUMBER = re.compile(r"[+-]?(?:\d{1,6}(?:\.\d{0,6})?|\.\d{1,6})", re.ASCII)
_DECIBELS = re.compile(r"([+-]?\d{1,3}(?:\.\d{0,3})?)\s*dB", re.IGNORECASE)


def parse_rate(value: str) -> float:
    """Return the factor of 1.2, 120%, +20% or slow; nan for anything else."""
    if value in RATES:
        return RATES[value]
    number = value.removesuffix("%")
    if not _NUMBER.fullmatch(number):
        return math.nan
    if number == value:
        return float(value)
    return float(number) / 100 + (1 if number[0] in "+-" else 0)


def parse_volume(value: str, current: float) -> float:
    """Return the factor of +6dB, 80 (of 100), -20% or loud, applied to the current one; nan for anything else."""
    if value in VOLUMES:
        return current * VOLUMES[value]
    if decibels := _DECIBELS.fullmatch(value):
        return current * 10 ** (float(decibels[1]) / 20)
    number = value.removesuffix("%")
    if not _NUMBER.fullmatch(number):
        return math.nan
    if number[0] in "+-":  # relative, of 100
        return current + float(number) / 100
    return current * float(number) / 100


def parse_pitch(value: str) -> float:
    """Return the semitones of +2st, +10% or high; nan for anything else."""
    if value in PITCHES:
        return PITCHES[value]
    if value.endswith("%") and _NUMBER.fullmatch(value[:-1]):
        factor = 1 + float(value[:-1]) / 100
        return 12 * math.log2(factor) if factor > 0 else math.nan
    number = value.removesuffix("st")
    return float(number) if number != value and _NUMBER.fullmatch(number) else math.nan
