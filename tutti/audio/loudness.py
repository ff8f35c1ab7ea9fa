"""Loudness of finished audio: measured by EBU R128, brought to a target by one gain, with a limit of the peaks."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import nan

from tutti.audio.filters import FilterChain, joined
from tutti.errors import InvalidInput
from tutti.speech import Samples

QUIETEST, LOUDEST = -36.0, -9.0  # LUFS of a target
SILENT = -69.0  # LUFS; what is quieter has no loudness
LIMITER = "level=false:latency=true:attack=5:release=80"  # milliseconds; shorter ones distort


@dataclass(frozen=True, slots=True)
class Loudness:
    """How loud audio shall be."""

    lufs: float  # integrated, gated
    peak_db: float = -1.0  # of full scale, which no sample exceeds


# acx: RMS of -23 to -18 dB, peaks below -3 dB also after a lossy codec; ebu: broadcast; podcast: what players expect.
PRESETS = {"acx": Loudness(-19.0, -3.5), "ebu": Loudness(-23.0), "podcast": Loudness(-16.0)}


def parse_loudness(written: str) -> Loudness:
    """Return a preset by its name, or a target in LUFS."""
    if preset := PRESETS.get(written.strip().lower()):
        return preset
    try:
        lufs = float(written)
    except ValueError:
        lufs = nan
    if not QUIETEST <= lufs <= LOUDEST:
        choices = f"{', '.join(PRESETS)}, or {QUIETEST:g} to {LOUDEST:g} (LUFS)"
        raise InvalidInput(f"{written[:20]!r} is no loudness; write {choices}", param="loudness")
    return Loudness(lufs)


def measure_lufs(pieces: Iterable[Samples]) -> float:
    """Return the integrated loudness of audio."""
    meter, lufs = FilterChain(("ebur128", "metadata=1")), SILENT
    for piece in pieces:
        for frame in meter.push(piece):
            lufs = float(frame.metadata["lavfi.r128.I"])
    return lufs


class Finisher:
    """Brings audio of a measured loudness to a target; as many samples come out as go in."""

    def __init__(self, measured_lufs: float, target: Loudness) -> None:
        self.gain_db = target.lufs - measured_lufs if measured_lufs > SILENT else 0.0
        limit = 10 ** (target.peak_db / 20)
        self._filters = FilterChain(
            ("volume", f"volume={self.gain_db:.3f}dB"), ("alimiter", f"limit={limit:.5f}:{LIMITER}")
        )

    def write(self, samples: Samples) -> Samples:
        """Return what is finished by now."""
        return joined(self._filters.push(samples))

    def flush(self) -> Samples:
        return joined(self._filters.end())
