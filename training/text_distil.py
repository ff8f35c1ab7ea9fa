"""Distil a small text encoder from Kokoro's PL-BERT.

python -m training.text_distil pack --home ~/.cache/tutti --to data      the predictor and the voices in fp16
python -m training.text_distil train --data data --out runs/text --seconds 500 [--start runs/text/text.npz]
python -m training.text_distil score --data data --weights runs/text/text.npz

`data` also holds `texts.npz`, which `training.texts` makes. First the student learns the teacher's features by
regression, which is fast, since they are computed once; then also what the frozen predictor makes of them: prosody
features, durations, pitch and energy, for random styles. `--tiny` runs the same code in seconds on a processor.
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from training import checkpoint, texts
from training.arguments import allow_tf32, find_device
from training.optimiser import AdamBetas, FlatParameters, Optimiser
from training.rows import VoiceTables
from training.run import Run, wait_for_previous
from training.schedule import Schedule
from training.text_evaluation import held_out_rows, score
from training.text_pool import TextPool
from training.text_student import TextStudent, is_block_matrix
from training.text_teacher import NOT_READ, TextTeacher
from tutti.model.torch.kokoro import weights as kokoro_weights
from tutti.model.torch.kokoro.masks import RowMask

PREDICTOR, VOICES, TEXTS = "predictor.npz", "voices.npz", "texts.npz"  # in the data folder
HELD_OUT = Path(__file__).parent / "verify" / "held_out.tsv"
LOG_S, SCORE_S = 15.0, 60.0
AVERAGE = 0.999  # of the weights
BLEND = 0.4  # share of rows whose style is a blend of two voices
PITCH_HZ, ENERGY = 40.0, 0.5  # differences that count as much as one frame of a duration
CURVE_ROWS = 48  # of a batch, whose pitch and energy are compared
CURVE_STEPS = 6  # every so many steps: their LSTM over frames takes five times as long as all those over tokens
PROSODY_WEIGHT, DURATION_WEIGHT, LENGTH_WEIGHT, CURVE_WEIGHT = 2.0, 2.0, 0.5, 0.5


class TextTraining:
    """The losses of one batch, and the step."""

    def __init__(self, student: TextStudent, teacher: TextTeacher, pool: TextPool, voices: VoiceTables) -> None:
        self.student, self._teacher, self._pool = student, teacher, pool
        device = pool.device
        self._tables = torch.from_numpy(voices.tables).to(device)  # [voices, 510, 256]
        self._deviation = pool.deviation()
        self._gate_deviation = teacher.gates(pool.draw(4_000)[2]).flatten(0, 1).std(0).clamp(min=1e-2)
        flat = FlatParameters(student, is_block_matrix)
        self.optimiser = Optimiser(flat, AdamBetas(), AVERAGE)
        self.log: dict[str, list[Tensor]] = defaultdict(list)

    def step(self, n_tokens: int, through_predictor: bool, with_curves: bool = True) -> None:
        tokens, mask, features = self._pool.draw(n_tokens)
        with torch.autocast(tokens.device.type, torch.bfloat16, enabled=tokens.is_cuda):
            read = self.student(tokens, mask)
        losses = self._feature_losses(read, features, mask)
        if through_predictor:
            losses |= self._predictor_losses(read, features, mask, with_curves)
        flat = self.optimiser.flat
        flat.set_gradients(torch.autograd.grad(sum(losses.values(), read.new_zeros(())), flat.parameters))
        self.optimiser.step()
        for name, loss in losses.items():
            self.log[name].append(loss.detach())

    def _feature_losses(self, read: Tensor, features: Tensor, mask: RowMask) -> dict[str, Tensor]:
        error = (read - features) * mask.valid
        n = mask.lengths.sum()
        # The predictor's first layer weighs the features: what it does not see need not be right.
        gates = self._teacher.gates(error) / self._gate_deviation
        return {"features": (error / self._deviation).square().mean(-1).sum() / n,
                "gates": gates.square().mean(-1).sum() / n}  # fmt: skip

    def _predictor_losses(self, read: Tensor, features: Tensor, mask: RowMask, with_curves: bool) -> dict[str, Tensor]:
        teacher, inner, n = self._teacher, mask.valid[:, :, 0], mask.lengths.sum()
        style = self._styles(mask.lengths)
        with torch.no_grad():
            prosody, durations = teacher.prosody(features, style, mask)
            deviation = prosody[inner].std(0).clamp(min=1e-2)
        own_prosody, own_durations = teacher.prosody(read, style, mask)
        error = ((own_prosody - prosody) / deviation) * mask.valid
        off = (own_durations - durations) * inner
        losses = {
            "prosody": PROSODY_WEIGHT * error.square().mean(-1).sum() / n,
            "durations": DURATION_WEIGHT * off.abs().sum() / n,
            "lengths": LENGTH_WEIGHT * (off.sum(1).abs() / mask.lengths.sqrt()).mean(),
        }
        if with_curves:
            losses["curves"] = CURVE_WEIGHT * self._curve_loss(own_prosody, prosody, durations * inner, style)
        return losses

    def _curve_loss(self, own_prosody: Tensor, prosody: Tensor, durations: Tensor, style: Tensor) -> Tensor:
        """Pitch and energy of some rows, with the teacher's durations, so that both curves have the same steps."""
        teacher, some = self._teacher, slice(0, CURVE_ROWS)
        inner = durations[some] > 0
        frames = (durations[some].round().clamp(min=1) * inner).long()
        with torch.no_grad():
            curves = teacher.curves(prosody[some], frames, style[some])
        error = (teacher.curves(own_prosody[some], frames, style[some]) - curves).abs()
        steps = RowMask.of(2 * frames.sum(1), curves.shape[1]).valid
        per_step = (error[..., :1] / PITCH_HZ + error[..., 1:] / ENERGY) * steps
        return per_step.sum() / steps.sum()

    def _styles(self, lengths: Tensor) -> Tensor:  # [B] -> [B, 256]
        """A random voice for each row, or a blend of two."""
        device, n = lengths.device, len(lengths)
        voices = torch.randint(len(self._tables), (2, n), device=device)
        place = (lengths.long() - 3).clamp(0, self._tables.shape[1] - 1)  # of the style of so many phonemes
        share = torch.rand(n, 1, device=device)
        share = torch.where(torch.rand(n, 1, device=device) < BLEND, share, torch.ones_like(share))
        return share * self._tables[voices[0], place] + (1 - share) * self._tables[voices[1], place]


def train(args: argparse.Namespace) -> None:
    run, device = Run(args.out), find_device(args)
    run.say(f"torch {torch.__version__} on {device}; {' '.join(sys.argv[1:])}")
    allow_tf32()
    torch.manual_seed(args.seed)
    teacher, voices = TextTeacher.read(args.data / PREDICTOR, device), VoiceTables.read(args.data / VOICES)
    pool = TextPool(texts.read(args.data / TEXTS), teacher, device, args.seed)
    run.say(f"{pool.n_rows:,} rows, {pool.n_tokens:,} tokens with their padding")
    size = (64, 2) if args.tiny else (args.width, args.blocks)
    student = TextStudent.of(checkpoint.read(args.start)).grown(args.blocks) if args.start else TextStudent(*size)
    training = TextTraining(student.to(device), teacher, pool, voices)
    judged = TextStudent.of(student.state_dict()).to(device).eval().requires_grad_(False)
    rows = held_out_rows(HELD_OUT, voices, device)[:: 20 if args.tiny else 1]

    def note(seconds: float, steps: int) -> None:
        average = training.optimiser.flat.named(training.optimiser.average)
        judged.load_state_dict(average)
        run.note(seconds=seconds, steps=steps, **asdict(score(rows, teacher, judged)))
        checkpoint.write(average, args.out / "text.npz")

    schedule = Schedule(args.seconds, critic_part=0.0, rate=args.rate)
    began = logged = scored = time.perf_counter()
    steps = n_logged = 0
    waiting = None
    while (now := time.perf_counter()) - began < args.seconds:
        part = (now - began) / args.seconds
        training.optimiser.rate.fill_(schedule.student_rate(now - began))
        through_predictor = part >= args.regression_part
        n_tokens = args.predictor_tokens if through_predictor else args.tokens
        training.step(n_tokens, through_predictor, with_curves=steps % CURVE_STEPS == 0)
        waiting = wait_for_previous(waiting)
        steps += 1
        if now - logged > LOG_S:
            means = {name: float(torch.stack(each).mean()) for name, each in training.log.items()}
            training.log.clear()
            run.say(f"{now - began:6.0f} s, step {steps}, {(steps - n_logged) / (now - logged):.1f}/s: "
                    + ", ".join(f"{name} {mean:.4g}" for name, mean in means.items()))  # fmt: skip
            logged, n_logged = time.perf_counter(), steps
        if now - scored > SCORE_S:
            note(now - began, steps)
            scored = time.perf_counter()
    note(time.perf_counter() - began, steps)


def score_weights(args: argparse.Namespace) -> None:
    """Score weights as they are and in int8."""
    device = find_device(args)
    teacher, voices = TextTeacher.read(args.data / PREDICTOR, device), VoiceTables.read(args.data / VOICES)
    rows = held_out_rows(HELD_OUT, voices, device)[:: 20 if args.tiny else 1]
    state = checkpoint.read(args.weights)
    for name, tensors in (("fp16", state), ("int8", checkpoint.quantised(state))):
        student = TextStudent.of(tensors).to(device).eval().requires_grad_(False)
        print(name, json.dumps(asdict(score(rows, teacher, student))), flush=True)


def pack(args: argparse.Namespace) -> None:
    args.to.mkdir(parents=True, exist_ok=True)
    state = kokoro_weights.read_state(args.home / "model.onnx")
    own = {name: tensor for name, tensor in state.items() if not name.startswith(("decoder.", NOT_READ))}
    kokoro_weights.write_archive(own, args.to / PREDICTOR)
    VoiceTables.read(args.home / "voices").write(args.to / VOICES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    train_parser = commands.add_parser("train")
    train_parser.set_defaults(command=train)
    train_parser.add_argument("--out", type=Path, required=True)
    train_parser.add_argument("--seconds", type=float, required=True, help="of training")
    train_parser.add_argument("--start", type=Path, help="weights to go on from, with no more blocks")
    train_parser.add_argument("--width", type=int, default=256)
    train_parser.add_argument("--blocks", type=int, default=4)
    train_parser.add_argument("--rate", type=float, default=2e-3)
    train_parser.add_argument("--regression-part", type=float, default=0.25, help="of the time, without the predictor")
    train_parser.add_argument("--tokens", type=int, default=40_000, help="of a batch, with their padding")
    train_parser.add_argument("--predictor-tokens", type=int, default=24_000, help="likewise, through the predictor")
    train_parser.add_argument("--seed", type=int, default=0)
    score_parser = commands.add_parser("score")
    score_parser.set_defaults(command=score_weights)
    score_parser.add_argument("--weights", type=Path, required=True)
    for command in (train_parser, score_parser):
        command.add_argument("--data", type=Path, required=True)
        command.add_argument("--tiny", action="store_true", help="a small network on the processor")
    pack_parser = commands.add_parser("pack")
    pack_parser.set_defaults(command=pack)
    pack_parser.add_argument("--home", type=Path, required=True, help="where `tutti pull` put the official files")
    pack_parser.add_argument("--to", type=Path, required=True)
    args = parser.parse_args()
    args.command(args)


if __name__ == "__main__":
    main()
