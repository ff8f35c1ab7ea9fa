"""Measure the light vocoder against the exact one on rows that no training has seen."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from training.verify.held_out import HeldOutRow
from training.verify.meters import Meters
from training.verify.pitch import pitch_shift
from training.verify.recordings import RecordedRow, Recordings, row_key, speak_row
from tutti.files import write_file
from tutti.model.choice import Choice
from tutti.model.protocol import Model
from tutti.model.spans import LIGHT_SPANS
from tutti.speech import SAMPLE_RATE, Frames, Samples, Span
from tutti.verify import Check, OnStep
from tutti.verify.mel import distance_db
from tutti.verify.word_errors import edit_distance, words
from tutti.voices import Voices

GROWTH = 2.0  # of the windows whose joins are checked


@dataclass(frozen=True, slots=True)
class LightGates:
    """The largest difference that passes, light against exact."""

    mel_mean_db: float = 1.3
    mel_worst_db: float = 2.2
    words_points: float = 0.3  # percentage points of wrong words
    mos: float = 0.03  # of DNSMOS overall
    p808: float = 0.05
    speaker_mean: float = 0.02  # one less the similarity
    speaker_worst: float = 0.05
    pitch_percent: float = 0.5
    level_db: float = 0.5
    join: float = 0.0  # largest difference of a sample, windows against the whole


# Smaller, and further away: its gates are the ear's.
NANO_GATES = LightGates(
    mel_mean_db=1.9, mel_worst_db=3.0, words_points=1.0, mos=0.08, p808=0.08, speaker_mean=0.04, speaker_worst=0.08,
    level_db=1.5,
)  # fmt: skip


def light_gates(choice: Choice) -> LightGates:
    """PyTorch chooses its kernels by shape, so windows differ from the whole by rounding errors."""
    gates = NANO_GATES if choice.vocoder == "nano" else LightGates()
    join = 0.0 if choice.backend == "onnx" else 1e-4 if choice.precision == "fp32" else 1e-2
    return replace(gates, join=join)


@dataclass(frozen=True, slots=True)
class Transcripts:
    """Wrong words of a row in both, and how many words it has."""

    n_words: int
    n_wrong: int
    n_wrong_exact: int


@dataclass(frozen=True, slots=True)
class RowMeasures:
    """One row, light against exact. Values without a meter are None."""

    n_durations_differ: int
    mel_db: float
    level_db: float
    pitch_percent: float | None  # none for a row without a clear pitch
    join: float
    mos: tuple[float, float] | None = None  # light, exact
    p808: tuple[float, float] | None = None
    speaker: float | None = None  # similarity
    words: dict[str, Transcripts] = field(default_factory=dict)  # by recogniser


@dataclass(frozen=True, slots=True)
class LightVerification:
    """Both sides and the judges. `folder` keeps the measures, so that a run that was stopped resumes."""

    light: Model
    name: str  # what the sound of `light` depends on: backend and weights
    exact: Recordings
    voices: Voices
    meters: Meters
    folder: Path | None = None

    def measure_rows(
        self, rows: Sequence[HeldOutRow], on_step: OnStep = lambda _name, _done, _all: None
    ) -> list[RowMeasures]:
        measured = []
        for i, row in enumerate(rows):
            on_step("light against exact", i, len(rows))
            measured.append(self._measure(row))
        return measured

    def _measure(self, held_out: HeldOutRow) -> RowMeasures:
        row = held_out.utterance(self.voices)
        path = self.folder / f"{row_key(row, f'{self.name} {self.meters}')}.json" if self.folder else None
        if path and (stored := _read(path)):
            return stored
        frames, samples = speak_row(self.light, row)
        join = join_error(self.light, frames, samples)
        measures = measure(held_out, self.exact(row), RecordedRow(frames.durations, samples), self.meters, join)
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, json.dumps(asdict(measures)))
        return measures


def measure(row: HeldOutRow, exact: RecordedRow, light: RecordedRow, meters: Meters, join: float) -> RowMeasures:
    one, other = light.samples, exact.samples
    same = light.durations.shape == exact.durations.shape
    n_differ = int((light.durations != exact.durations).sum()) if same else len(exact.durations)
    shift = pitch_shift(other, one) if len(one) == len(other) else np.nan
    quality = [meters.quality(samples) for samples in (one, other)] if meters.quality else None
    heard = meters.recognisers if row.is_english else {}
    return RowMeasures(
        n_differ,
        distance_db(one, other),
        level_db(one) - level_db(other),
        None if np.isnan(shift) else 100 * shift,
        join,
        (quality[0][0], quality[1][0]) if quality else None,
        (quality[0][1], quality[1][1]) if quality else None,
        meters.speaker(one, other) if meters.speaker else None,
        {name: transcripts(row.text, recogniser.transcribe, one, other) for name, recogniser in heard.items()},
    )


def join_error(model: Model, frames: Frames, whole: Samples) -> float:
    """The largest difference of a sample when the row is vocoded window by window."""
    cache: dict[str, object] = {}
    ends = [0, *(end for _, end in LIGHT_SPANS.split(frames.n_frames, GROWTH))]
    windows = [model.vocoder([Span.of(frames, span, cache)])[0] for span in pairwise(ends)]
    return float(np.abs(np.concatenate(windows) - whole).max())


def light_checks(rows: Sequence[RowMeasures], gates: LightGates) -> list[Check]:
    """The gates, over all rows."""
    mel = [row.mel_db for row in rows]
    level = [row.level_db for row in rows]
    pitch = [row.pitch_percent for row in rows if row.pitch_percent is not None]
    results = [
        Check("durations", sum(row.n_durations_differ for row in rows), 0, "differ", f"{len(rows)} rows"),
        Check("log-mel, mean", float(np.mean(mel)), gates.mel_mean_db, "dB"),
        Check("log-mel, worst row", float(np.max(mel)), gates.mel_worst_db, "dB"),
        Check("level, worst row", float(np.abs(level).max()), gates.level_db, "dB", f"mean {np.mean(level):+.2f}"),
        Check(
            "pitch, worst row",
            float(np.abs(pitch).max(initial=0)),
            gates.pitch_percent,
            "%",
            f"median {np.median(np.abs(pitch or [0])):.3f}",
        ),
        Check("windows against the whole", float(np.max([row.join for row in rows])), gates.join),
    ]
    results += loss_check("DNSMOS, overall", [row.mos for row in rows if row.mos], gates.mos)
    results += loss_check("DNSMOS, P.808", [row.p808 for row in rows if row.p808], gates.p808)
    if speakers := [row.speaker for row in rows if row.speaker is not None]:
        distances = 1 - np.array(speakers)
        results += [
            Check(
                "speaker distance, mean",
                float(distances.mean()),
                gates.speaker_mean,
                note=f"similarity {np.mean(speakers):.4f}",
            ),
            Check("speaker distance, worst row", float(distances.max()), gates.speaker_worst),
        ]
    for name in sorted({name for row in rows for name in row.words}):
        results.append(words_check(name, [row.words[name] for row in rows if name in row.words], gates.words_points))
    return results


def loss_check(name: str, pairs: Sequence[tuple[float, float]], limit: float) -> list[Check]:
    """How much lower the mean is with the light vocoder."""
    if not pairs:
        return []
    light, exact = np.mean(pairs, axis=0)
    return [Check(f"{name}, loss", float(exact - light), limit, note=f"{light:.3f}; exact {exact:.3f}")]


def words_check(name: str, rows: Sequence[Transcripts], limit: float) -> Check:
    n_words, wrong, exact = (
        sum(getattr(row, field) for row in rows) for field in ("n_words", "n_wrong", "n_wrong_exact")
    )
    note = f"{wrong} of {n_words} wrong; exact {exact}"
    return Check(f"wrong words, {name}", 100 * (wrong - exact) / n_words, limit, "points", note)


def transcripts(text: str, transcribe: Callable[[Samples, int], str], one: Samples, other: Samples) -> Transcripts:
    right = words(text)
    wrong = [edit_distance(right, words(transcribe(samples, SAMPLE_RATE))) for samples in (one, other)]
    return Transcripts(len(right), *wrong)


def level_db(samples: Samples) -> float:
    return float(10 * np.log10(np.mean(samples.astype(np.float64) ** 2) + 1e-12))


def _read(path: Path) -> RowMeasures | None:
    try:
        fields = json.loads(path.read_text())
        heard = {name: Transcripts(**value) for name, value in fields.pop("words").items()}
        mos, p808 = (tuple(fields.pop(name) or ()) or None for name in ("mos", "p808"))
        return RowMeasures(**fields, mos=mos, p808=p808, words=heard)
    except (OSError, ValueError, KeyError, TypeError):
        return None
