"""Measure the light text encoder against PL-BERT, both before the light vocoder, on rows that no training has seen.

The two speak with slightly different rhythm, so nothing is compared place by place.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from training.verify.held_out import HeldOutRow
from training.verify.light import Transcripts, level_db, loss_check, transcripts, words_check
from training.verify.meters import Meters
from training.verify.recordings import RecordedRow, row_key, speak_row
from tutti.files import write_file
from tutti.model.protocol import Model
from tutti.verify import Check, OnStep
from tutti.voices import Voices


@dataclass(frozen=True, slots=True)
class TextGates:
    """The largest difference that passes, light text against exact."""

    length_mean: float = 1.0  # percent of a row
    length_p95: float = 3.0
    words_points: float = 0.3  # percentage points of wrong words
    mos: float = 0.03  # of DNSMOS overall
    p808: float = 0.05
    speaker_mean: float = 0.04  # one less the similarity; the same voice at another rhythm is not the same wave
    level_db: float = 0.5


@dataclass(frozen=True, slots=True)
class TextMeasures:
    """One row, light text against exact. Values without a meter are None."""

    length: float  # light, as a share of exact
    level_db: float
    mos: tuple[float, float] | None = None  # light, exact
    p808: tuple[float, float] | None = None
    speaker: float | None = None  # similarity
    words: dict[str, Transcripts] = field(default_factory=dict)  # by recogniser


@dataclass(frozen=True, slots=True)
class TextVerification:
    """Both models and the judges. `folder` keeps the measures, so that a run that was stopped resumes."""

    light: Model
    exact: Model
    name: str  # what the sound of both depends on
    voices: Voices
    meters: Meters
    folder: Path | None = None

    def measure_rows(
        self, rows: Sequence[HeldOutRow], on_step: OnStep = lambda _name, _done, _all: None
    ) -> list[TextMeasures]:
        measured = []
        for i, row in enumerate(rows):
            on_step("light text against exact", i, len(rows))
            measured.append(self._measure(row))
        return measured

    def _measure(self, held_out: HeldOutRow) -> TextMeasures:
        row = held_out.utterance(self.voices)
        path = self.folder / f"{row_key(row, f'{self.name} {self.meters}')}.json" if self.folder else None
        if path and path.exists():
            fields = json.loads(path.read_text())
            heard = {name: Transcripts(**value) for name, value in fields.pop("words").items()}
            return TextMeasures(**fields, words=heard)
        light, exact = (RecordedRow(frames.durations, samples) for frames, samples in
                        (speak_row(model, row) for model in (self.light, self.exact)))  # fmt: skip
        measures = measure(held_out, light, exact, self.meters)
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, json.dumps(asdict(measures)))
        return measures


def measure(row: HeldOutRow, light: RecordedRow, exact: RecordedRow, meters: Meters) -> TextMeasures:
    one, other = light.samples, exact.samples
    quality = [meters.quality(samples) for samples in (one, other)] if meters.quality else None
    heard = meters.recognisers if row.is_english else {}
    return TextMeasures(
        float(light.durations.sum() / exact.durations.sum()),
        level_db(one) - level_db(other),
        (quality[0][0], quality[1][0]) if quality else None,
        (quality[0][1], quality[1][1]) if quality else None,
        meters.speaker(one, other) if meters.speaker else None,
        {name: transcripts(row.text, recogniser.transcribe, one, other) for name, recogniser in heard.items()},
    )


def text_checks(rows: Sequence[TextMeasures], gates: TextGates) -> list[Check]:
    """The gates, over all rows."""
    off = 100 * np.abs(np.array([row.length for row in rows]) - 1)
    level = [row.level_db for row in rows]
    results = [
        Check("length of a row, mean", float(off.mean()), gates.length_mean, "%", f"{len(rows)} rows"),
        Check("length of a row, p95", float(np.quantile(off, 0.95)), gates.length_p95, "%"),
        Check("level, mean", abs(float(np.mean(level))), gates.level_db, "dB", f"worst {np.abs(level).max():.2f}"),
    ]
    results += loss_check("DNSMOS, overall", [row.mos for row in rows if row.mos], gates.mos)
    results += loss_check("DNSMOS, P.808", [row.p808 for row in rows if row.p808], gates.p808)
    if speakers := [row.speaker for row in rows if row.speaker is not None]:
        note = f"similarity {np.mean(speakers):.4f}, worst {np.min(speakers):.4f}"
        results.append(Check("speaker distance, mean", float(1 - np.mean(speakers)), gates.speaker_mean, note=note))
    results += _words_check(rows, gates.words_points)
    return results


def _words_check(rows: Sequence[TextMeasures], limit: float) -> list[Check]:
    """Over all recognisers: one alone tells less than the limit, since it may not hear a short row at all."""
    heard = [(name, words) for row in rows for name, words in row.words.items()]
    if not heard:
        return []
    check = words_check("all recognisers", [words for _, words in heard], limit)
    each = []
    for name in sorted({name for name, _ in heard}):
        wrong, exact = (
            sum(getattr(w, field) for of, w in heard if of == name) for field in ("n_wrong", "n_wrong_exact")
        )
        each.append(f"{name} {wrong}, exact {exact}")
    return [replace(check, note=f"{check.note} ({'; '.join(each)})")]
