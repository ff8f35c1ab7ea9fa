"""Words of a row spoken otherwise than the rest of it, changed between the stages: the same for every backend.

Durations, pitch, energy and loudness of each token are scaled; what lies outside keeps its values. The edges are
smooth: a change begins one frame before the words are heard, and ends one after.
"""

import numpy as np
from numpy.typing import NDArray

from tutti.model.prosody import ENERGY_PER_DB, HIGHEST_HZ, VOICED_HZ
from tutti.speech import LAG_FRAMES, NO_INFLECTION, SAMPLE_RATE, SAMPLES_PER_FRAME, Frames, Inflection

EDGE_STEPS = 5  # half frames over which a change comes and goes; fewer clicks, more is heard in the neighbours
# The pitch of changed words is bent so far at most that the voice goes on in phase after them: the exact vocoder hears
# phases. More would be heard itself.
MAX_BEND = 0.05
CYCLE_HZ = SAMPLE_RATE / (SAMPLES_PER_FRAME // 2)  # the pitch of a half frame that is one cycle
EMPHASES = {
    "strong": Inflection(rate=0.87, pitch=2.0, energy=0.6, volume=1.2),
    "moderate": Inflection(rate=0.91, pitch=1.0, energy=0.3, volume=1.1),
    "reduced": Inflection(rate=1.15, pitch=-1.0, energy=-0.3, volume=0.85),
    "whispered": Inflection(voiced=0.0),  # both vocoders make a noise of the same sounds, 6 dB quieter
}

Curve = NDArray[np.float32]


def inflect(frames: Frames, inflection: NDArray[np.float32]) -> Frames:  # [n + 2, 6], the fields of Inflection
    """The row with these changes of its tokens."""
    rate, pitch, energy, volume, voiced, pause = inflection.T
    durations = paced(frames.durations, rate)
    place = _places(frames.durations, durations)
    f0 = _pitch_at(frames.f0, place)
    has_pitch = f0 > VOICED_HZ
    shifted = f0 * 2 ** (_curve(pitch, durations) / 12)
    f0[has_pitch] = np.clip(shifted, VOICED_HZ + 0.01, HIGHEST_HZ)[has_pitch]
    f0[_curve(voiced, durations) < 0.5] = 0
    _keep_phase(f0, frames.f0, durations, frames.durations, (inflection != NO_INFLECTION).any(axis=1))
    louder = np.interp(place, np.arange(len(frames.energy)), frames.energy) + ENERGY_PER_DB * _curve(energy, durations)
    tokens = np.repeat(np.cumsum(frames.durations) - 1, durations)  # of each frame the last old one of its token
    gain = None if (volume == 1).all() else _curve(volume, durations)
    features = np.ascontiguousarray(frames.features[:, tokens])
    row = Frames(durations, features, f0, louder.astype(np.float32), frames.style, frames.pcm_volume, gain)
    return _with_pauses(row, pause.astype(np.int64)) if pause.any() else row


def _with_pauses(row: Frames, pauses: NDArray[np.int64]) -> Frames:  # [n] frames of silence after each token
    """The row with more frames of the last sound of these tokens, without pitch and inaudible."""
    last = np.repeat(np.cumsum(row.durations) - 1, pauses)
    order = np.sort(np.concatenate([np.arange(row.n_frames), last]))  # of each frame the one that it is made from
    is_new = np.diff(order, prepend=-1) == 0
    f0, energy = row.f0.reshape(-1, 2)[order], row.energy.reshape(-1, 2)[order]
    f0[is_new], energy[is_new] = 0.0, energy[is_new, 1:]
    heard = np.repeat(np.append(is_new[LAG_FRAMES:], [False] * LAG_FRAMES), 2)
    silent = heard & np.append(False, heard[:-1]) & np.append(heard[1:], False)  # the edges fade
    gain = np.ones_like(row.f0) if row.gain is None else row.gain
    gain = np.where(silent, np.float32(0), gain.reshape(-1, 2)[order].ravel())
    features = np.ascontiguousarray(row.features[:, order])
    return Frames(row.durations + pauses, features, f0.ravel(), energy.ravel(), row.style, row.pcm_volume, gain)


def paced(durations: NDArray[np.int64], rate: NDArray[np.float32]) -> NDArray[np.int64]:
    """Frames of each token at its rate: those of consecutive tokens together to half a frame, each has one at least."""
    scaled = durations.copy()
    owed = 0.0  # frames that were rounded away
    for i in np.flatnonzero(rate != 1):
        if i and rate[i - 1] == 1:
            owed = 0.0
        exact = durations[i] / float(rate[i]) + owed
        scaled[i] = max(1, round(exact))
        owed = exact - float(scaled[i])
    return scaled


def _places(before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.float64]:  # [n], [n] -> [2T]
    """For each half frame the old one that it is made from, with a fraction."""
    steps = 2 * after
    within = np.arange(steps.sum()) - np.repeat(np.cumsum(steps) - steps, steps)  # its number in its token
    starts = np.repeat(2 * (np.cumsum(before) - before), steps)
    places = starts + (within + 0.5) * np.repeat(before / after, steps) - 0.5
    return np.clip(places, 0, 2 * int(before.sum()) - 1)


def _pitch_at(f0: Curve, place: NDArray[np.float64]) -> Curve:
    """The pitch at these places; between voice and silence the nearer one, since there is no pitch between them."""
    low = place.astype(np.int64)
    high = np.minimum(low + 1, len(f0) - 1)
    share = place - low
    between = (1 - share) * f0[low] + share * f0[high]
    is_edge = (f0[low] > VOICED_HZ) != (f0[high] > VOICED_HZ)
    pitch: Curve = np.where(is_edge, f0[np.where(share < 0.5, low, high)], between).astype(np.float32)
    return pitch


def _keep_phase(
    f0: Curve, old_f0: Curve, durations: NDArray[np.int64], old_durations: NDArray[np.int64], changed: NDArray[np.bool_]
) -> None:
    """Bend the pitch of each run of changed tokens, in place, by the part of a cycle that they gained or lost."""
    ends, old_ends = (2 * np.cumsum(np.append(0, each)) for each in (durations, old_durations))
    edges = np.flatnonzero(np.diff(changed, prepend=False, append=False))
    before = 0
    for first, end in edges.reshape(-1, 2):
        begin = max(before, ends[first] - 2 * LAG_FRAMES - EDGE_STEPS // 2)
        before = ends[end]
        region = f0[begin : ends[end]]
        old_region = old_f0[begin - ends[first] + old_ends[first] : old_ends[end]]
        gained = float(region.sum(dtype=np.float64) - old_region.sum(dtype=np.float64))
        voiced = region > VOICED_HZ
        bend = (round(gained / CYCLE_HZ) * CYCLE_HZ - gained) / max(float(region[voiced].sum(dtype=np.float64)), 1.0)
        if abs(bend) <= MAX_BEND:
            region[voiced] *= 1 + bend


def _curve(values: NDArray[np.float32], durations: NDArray[np.int64]) -> Curve:  # [n], [n] -> [2T]
    """A value of each token as a curve with smooth edges, where the tokens are heard."""
    if (values == values[0]).all():
        return np.full(2 * int(durations.sum()), values[0], np.float32)
    heard = np.repeat(values, 2 * durations)[2 * LAG_FRAMES :]
    half = EDGE_STEPS // 2
    padded = np.pad(heard, (half, half + 2 * LAG_FRAMES), mode="edge")
    curve: Curve = np.convolve(padded, np.full(EDGE_STEPS, 1 / EDGE_STEPS), "valid").astype(np.float32)
    return curve
