"""How far the text student is from PL-BERT on the rows of `tutti verify`: durations, pitch, energy."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from training.rows import VoiceTables
from training.text_teacher import TextTeacher
from tutti.model.torch.kokoro.masks import RowMask
from tutti.text.vocab import encode

BATCH_ROWS = 12
VOICED_HZ = 10.0
Network = Callable[[Tensor, RowMask], Tensor]


@dataclass(frozen=True, slots=True)
class TextRow:
    letter: str  # of the language
    tokens: list[int]
    style: Tensor  # [256]
    speed: float


@dataclass(frozen=True, slots=True)
class TextScore:
    """The differences from the teacher, over all rows."""

    same_durations: float  # share of tokens
    length_mean: float  # difference of a row's length, as a share of it
    length_p95: float
    pitch_cents: float  # rms, where both are voiced
    voicing: float  # share of steps that only one of them voices
    energy: float  # rms
    worst_letter: str  # the language with the fewest equal durations
    worst_durations: float


def held_out_rows(path: Path, voices: VoiceTables, device: torch.device) -> list[TextRow]:
    """The rows of `verify/held_out.tsv` that are spoken by one voice alone."""
    with path.open(encoding="utf-8") as file:
        lines = [line for line in csv.DictReader(file, delimiter="\t") if line["voice"] in voices.names]
    rows = []
    for line in lines:
        style = voices.tables[voices.names.index(line["voice"]), len(line["phonemes"]) - 1]
        tokens = encode(line["phonemes"]).tolist()
        rows.append(TextRow(line["voice"][0], tokens, torch.from_numpy(style).to(device), float(line["speed"])))
    return rows


@torch.no_grad()
def score(rows: Sequence[TextRow], teacher: TextTeacher, student: Network) -> TextScore:
    """Let both read the rows. Pitch and energy are compared with the teacher's durations."""
    same: dict[str, list[float]] = {}
    lengths, pitch, voicing, energy = [], [], [], []
    ordered = sorted(rows, key=lambda row: len(row.tokens))
    for start in range(0, len(ordered), BATCH_ROWS):
        part = ordered[start : start + BATCH_ROWS]
        device = part[0].style.device
        tokens = torch.nn.utils.rnn.pad_sequence([torch.tensor(row.tokens) for row in part], batch_first=True)
        tokens = tokens.to(device)
        mask = RowMask.of(torch.tensor([len(row.tokens) for row in part], device=device), tokens.shape[1])
        style = torch.stack([row.style for row in part])
        speed = torch.tensor([row.speed for row in part], device=device)
        inner = mask.valid[:, :, 0]
        read = [teacher.prosody(each(tokens, mask), style, mask) for each in (teacher.features, student)]
        frames = [((durations / speed[:, None]).round().clamp(min=1) * inner).long() for _, durations in read]
        totals = [each.sum(1) for each in frames]
        lengths += ((totals[1] - totals[0]).abs() / totals[0]).tolist()
        for i, row in enumerate(part):
            n = len(row.tokens)
            same.setdefault(row.letter, []).extend((frames[0][i, :n] == frames[1][i, :n]).float().tolist())
        curves = [teacher.curves(prosody, frames[0], style) for prosody, _ in read]
        steps = RowMask.of(totals[0], curves[0].shape[1] // 2).upsample().valid[:, :, 0]
        f0 = [each[..., 0] for each in curves]
        voiced = [(each > VOICED_HZ) & steps for each in f0]
        both = voiced[0] & voiced[1]
        pitch.append((1200 * torch.log2(f0[1][both] / f0[0][both])).cpu())
        voicing.append((voiced[0] != voiced[1])[steps].float().cpu())
        energy.append((curves[1][..., 1] - curves[0][..., 1])[steps].cpu())
    shares = {letter: float(np.mean(each)) for letter, each in same.items()}
    worst = min(shares, key=lambda letter: shares[letter])
    return TextScore(
        float(np.mean([value for each in same.values() for value in each])),
        float(np.mean(lengths)),
        float(np.quantile(lengths, 0.95)),
        float(torch.cat(pitch).square().mean().sqrt()),
        float(torch.cat(voicing).mean()),
        float(torch.cat(energy).square().mean().sqrt()),
        worst,
        shares[worst],
    )
