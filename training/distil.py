"""Distil a small vocoder from Kokoro: light, or with `--student nano` the one that needs no decoder.

python -m training.distil pack --home ~/.cache/tutti --to data       weights and voices in fp16, small enough to carry
python -m training.distil bench --out runs/a                         steps a second of each mode; needs no weights
python -m training.distil bases --data data --out runs/a --seconds 200 --start light.npz
python -m training.distil train --data data --out runs/a --seconds 1200 [--start start.pt] [--bases runs/a/bases.npz]
python -m training.distil score --data data --weights runs/a/light.npz
python -m training.distil mean --weights runs/a/light.npz runs/b/light.npz --to runs/mean/light.npz

A run writes its averaged weights (in pieces), its curve and its log to --out at least every two minutes, and goes on
from any weights with --start. `--tiny` runs the same code in seconds on a processor.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path

import torch

from training import checkpoint
from training.arguments import allow_tf32, find_device, parse_arguments, step_options
from training.bases import (
    BasisTraining,
    fit_correction,
    measure_loudness,
    principal_components,
    wide_convolutions,
)
from training.bench import bench, bench_one, choose_mode
from training.critic import Critic
from training.evaluation import Evaluation
from training.filling import Filling
from training.pool import Pool
from training.rows import RowSource, VoiceTables, held_out_rows, read_words
from training.run import Run, wait_for_previous
from training.schedule import Phase, Schedule
from training.speaker import SpeakerEncoder, write_encoder
from training.step import Step
from training.students import LIGHT, STUDENTS
from training.teacher import DecoderRows, KokoroTeacher, Teacher
from tutti.model.light.weights import PATH as LIGHT_WEIGHTS
from tutti.model.torch.kokoro import weights as kokoro_weights
from tutti.model.torch.light import LightNetwork, SpectralNetwork

KOKORO, VOICES, WORDS, SPEAKER = "kokoro.npz", "voices.npz", "words.json", "speaker.npz"  # in the data folder
PART_BYTES = 40 << 20  # of Kokoro's weights
LOG_S, SCORE_S, SAVE_S = 15.0, 60.0, 90.0
YIELD_S = 0.2  # the teacher's, after a block of steps, while it is behind
FRAMES_PER_S = 40
N_COMPONENT_BATCHES = 40  # of rows, from which principal components are computed
N_FITTED_BATCHES = 100  # from which correction and loudness are
BLOCK = 20  # steps between two looks at the clock


class Distillation:
    """The loop: steps by the clock, scores and checkpoints in between."""

    def __init__(
        self, name: str, run: Run, step: Step, evaluation: Evaluation, schedule: Schedule, filling: Filling
    ) -> None:
        """`name`: of the student, and of its file of weights."""
        self._name, self._run, self._step, self._evaluation, self._schedule = name, run, step, evaluation, schedule
        self._filling = filling
        judged = step.network.of(self._average()).to(step.pool.device)
        self._judged = judged.eval().requires_grad_(False)
        self._n_steps = 0

    def train(self) -> None:
        step, schedule, run = self._step, self._schedule, self._run
        phase = schedule.phase(0)
        calls = self._prepare(phase)
        self._filling.start()  # from now on, the pool grows beside the training
        run.say(f"first phase prepared: {phase}, {step.options.mode}")
        self.score(0.0)
        began = logged = scored = saved = time.perf_counter()
        n_logged, waiting = 0, None
        while (now := time.perf_counter()) - began < schedule.seconds:
            if (upcoming := schedule.phase(now - began)) != phase:
                self._finish_phase(phase, now - began)
                with self._filling.lock:
                    phase, calls = upcoming, self._prepare(upcoming)
                began += time.perf_counter() - now  # the schedule does not run on meanwhile
                run.say(f"next phase: {phase}")
                continue
            self._set_rates(now - began)
            for call in islice(cycle(calls), BLOCK):
                call()
                waiting = wait_for_previous(waiting)
            self._n_steps += BLOCK
            if self._filling.is_behind and phase != "adversarial":  # with the critics no row is read often
                self._leave_device()
            if now - logged > LOG_S:
                rate = (self._n_steps - n_logged) / (now - logged)
                run.say(f"{now - began:6.0f} s, step {self._n_steps}, {rate:.1f}/s, pool {step.pool.seconds:,.0f} s, "
                        f"rate {schedule.student_rate(now - began):.1e}, norm {float(step.student.norm):.3g}: "
                        + ", ".join(f"{name} {mean:.4g}" for name, mean in step.read_log().items()))  # fmt: skip
                logged, n_logged = time.perf_counter(), self._n_steps
            if now - scored > SCORE_S:
                self.score(now - began)
                scored = time.perf_counter()
            if now - saved > SAVE_S:
                self.save(self._name)
                saved = time.perf_counter()
        self._finish_phase(self._name, time.perf_counter() - began)

    def _prepare(self, phase: Phase) -> list[Callable[[], None]]:
        """The steps of a phase, to be taken in turn."""
        step = self._step
        calls = [step.prepare(getattr(step, phase))]
        if phase == "regression" and step.speaker is not None and step.options.speaker_every > 1:
            calls += [step.prepare(step.regression_without_speaker)] * (step.options.speaker_every - 1)
        return calls

    def _leave_device(self) -> None:
        """Nothing of the training runs or waits on the device for a while."""
        if self._step.pool.device.type == "cuda":
            torch.cuda.current_stream().synchronize()
        time.sleep(YIELD_S)

    def score(self, now_s: float) -> None:
        """Measure the averaged weights on the held-out rows."""
        self._judged.load_state_dict(self._average())
        score = self._evaluation.score(self._judged)
        self._run.note(seconds=now_s, steps=self._n_steps, **asdict(score))

    def save(self, name: str) -> None:
        checkpoint.write(self._average(), self._run.out / f"{name}.npz")
        if self._step.judge is not None and self._step.critic is not None and self._schedule.critic_part:
            checkpoint.write(self._step.judge.flat.named(self._step.judge.flat.values), self._run.out / "critic.npz")

    def _finish_phase(self, name: str, now_s: float) -> None:
        self.score(now_s)
        self.save(name)
        self._judged.load_state_dict(checkpoint.quantised(self._average()))
        score = self._evaluation.score(self._judged)
        self._run.say(f"{name} saved; with weights in int8: {score.mel_db:.4f} dB, worst {score.worst_db:.4f}")

    def _average(self) -> dict[str, torch.Tensor]:
        student = self._step.student
        return {**self._step.network.state_dict(), **student.flat.named(student.average)}

    def _set_rates(self, now_s: float) -> None:
        self._step.student.rate.fill_(self._schedule.student_rate(now_s))
        if self._step.judge is not None:
            self._step.judge.rate.fill_(self._schedule.judge_rate(now_s))


def train(args: argparse.Namespace) -> None:
    run, device = Run(args.out), find_device(args)
    run.say(f"torch {torch.__version__} on {device}; {' '.join(sys.argv[1:])}")
    student, imitated = STUDENTS[args.student], open_imitated(args, device)
    teacher, words = open_teacher(args, device, imitated), read_words(args.data / WORDS)
    voices = VoiceTables.read(args.data / VOICES)
    run.say(f"teacher ready; {len(voices.names)} voices, {sum(map(len, words.values()))} words")
    allow_tf32()
    held_out = held_out_rows(words, voices, args.held_out)[:: 20 if args.tiny else 1]
    speaker = open_speaker(args, device)
    evaluation = Evaluation([example for batch in teacher.speak(held_out) for example in batch], speaker)
    run.say(f"{len(held_out)} held-out rows")
    torch.manual_seed(args.seed)
    network = open_network(args, imitated).to(device)
    pool = Pool(args.pool_seconds, device, network.n_features, imitated.head.in_features if imitated else 0)
    filling = Filling(teacher, RowSource(words, voices, args.seed), pool, args.batch, args.pace)
    filling.fill(args.first_seconds)
    run.say(f"pool: {pool.seconds:,.0f} s")
    if not network.row.scale.any():
        network.row.measure(pool.statistics)
    critic = Critic(8 if args.tiny else 1).to(device)
    if args.critic is not None:
        critic.load_state_dict(checkpoint.read(args.critic))
    mode, every = choose_mode(args, device)
    options = replace(step_options(args), mode=mode, speaker_every=max(1, every))
    held = speaker if every and options.weights.speaker else None
    run.say(f"{mode}; the speaker is held {f'every {every} steps' if held else 'nowhere'}")
    critics = critic if args.critic_part > 0 else None
    step = Step(network, pool, options, critics, held, imitated.head if imitated else None)
    schedule = Schedule(args.seconds, args.critic_part, args.rate, args.critic_phase_rate, args.critic_rate,
                        args.warm_up, args.critic_alone, args.imitation_part)  # fmt: skip
    try:
        Distillation(student.name, run, step, evaluation, schedule, filling).train()
    finally:
        filling.stop()
        run.say(f"ended; pool {pool.seconds:,.0f} s, {filling.error or 'no error'}")


def open_network(args: argparse.Namespace, imitated: LightNetwork | None) -> SpectralNetwork:
    """The student; a new one has the head of the network that it imitates."""
    student = STUDENTS[args.student]
    if args.start is not None:
        return student.network.of(checkpoint.read(args.start))
    network = student.network(**(student.tiny if args.tiny else {}))
    if imitated is not None:
        network.head.load_state_dict(imitated.head.state_dict())
    return network


def open_imitated(args: argparse.Namespace, device: torch.device) -> LightNetwork | None:
    """The light vocoder of the package, if the run begins by imitating it."""
    if not args.imitation_part:
        return None
    network = LightNetwork(**LIGHT.tiny) if args.tiny else LightNetwork.of(checkpoint.read(LIGHT_WEIGHTS))
    return network.to(device).eval().requires_grad_(False)


def open_speaker(args: argparse.Namespace, device: torch.device) -> SpeakerEncoder | None:
    """None if `pack` found no Resemblyzer."""
    path = args.data / SPEAKER
    return SpeakerEncoder.read(path).to(device) if path.exists() else None


def open_teacher(args: argparse.Namespace, device: torch.device, imitated: LightNetwork | None = None) -> Teacher:
    bases, student = checkpoint.read(args.bases) if args.bases else {}, STUDENTS[args.student]
    return KokoroTeacher(find_kokoro(args), device, bases, student, imitated)


def find_kokoro(args: argparse.Namespace) -> Path:
    """Kokoro's weights, put together from their parts at first use."""
    kokoro: Path = args.data / KOKORO
    if not kokoro.exists():
        kokoro.write_bytes(b"".join(part.read_bytes() for part in sorted(args.data.glob(f"{KOKORO}.[0-9]"))))
    return kokoro


def bases(args: argparse.Namespace) -> None:
    """Learn the bases of the decoder's convolutions; score the light network with them."""
    run, device, kokoro = Run(args.out), find_device(args), find_kokoro(args)
    words, voices = read_words(args.data / WORDS), VoiceTables.read(args.data / VOICES)
    teacher, source, rows = KokoroTeacher(kokoro, device), RowSource(words, voices, args.seed), list[DecoderRows]()
    allow_tf32()
    while sum(int(each.n_frames.sum()) for each in rows) < args.data_seconds * FRAMES_PER_S:
        rows += teacher.decode(source.take(args.batch))
    run.say(f"{sum(len(each.n_frames) for each in rows)} rows")
    _, vocoder = kokoro_weights.build(kokoro_weights.read_state(kokoro))
    network = LightNetwork.of(checkpoint.read(args.start)).to(device).eval().requires_grad_(False)
    convolutions = wide_convolutions(vocoder.to(device))
    if args.bases is not None:
        start = {name: basis.to(device) for name, basis in checkpoint.read(args.bases).items() if name in convolutions}
    else:
        components = principal_components(vocoder, rows[:: max(1, len(rows) // N_COMPONENT_BATCHES)])
        ranks = {name: args.shortcut_rank if name.endswith("conv1x1") else args.rank for name in components}
        start = {name: each[:, : ranks[name]] for name, each in components.items()}
    training = BasisTraining(vocoder, network, start)
    run.say("bases to start from")
    schedule = Schedule(args.seconds, critic_part=0.0, rate=args.rate)
    training.train(run, rows, schedule, lambda: teacher.decode(source.take(args.batch)), args.seed)
    some = rows[-N_FITTED_BATCHES:]
    learned = {**training.bases, **fit_correction(vocoder, some), **measure_loudness(vocoder, some)}
    checkpoint.write(learned, args.out / "bases.npz")
    held_out = held_out_rows(words, voices, args.held_out)[:: 20 if args.tiny else 1]
    if held_out:
        examples = [each for batch in KokoroTeacher(kokoro, device, learned).speak(held_out) for each in batch]
        evaluation = Evaluation(examples, open_speaker(args, device))
        run.note(seconds=args.seconds, rank=args.rank, **asdict(evaluation.score(network)))


def score(args: argparse.Namespace) -> None:
    """Measure weights on the held-out rows, as they are and in int8."""
    device = find_device(args)
    words, voices = read_words(args.data / WORDS), VoiceTables.read(args.data / VOICES)
    teacher = open_teacher(args, device)
    held_out = held_out_rows(words, voices, args.held_out)[:: args.every]
    examples = [example for batch in teacher.speak(held_out) for example in batch]
    evaluation = Evaluation(examples, open_speaker(args, device))
    state = checkpoint.read(args.weights)
    for name, tensors in (("fp16", state), ("int8", checkpoint.quantised(state))):
        network = STUDENTS[args.student].network.of(tensors).to(device).eval().requires_grad_(False)
        print(name, json.dumps(asdict(evaluation.score(network))), flush=True)


def mean(args: argparse.Namespace) -> None:
    """The mean of weights that started from each other: often nearer to the teacher than each of them."""
    states = [checkpoint.read(path) for path in args.weights]
    checkpoint.write({name: torch.stack([state[name] for state in states]).mean(0) for name in states[0]}, args.to)


def pack(args: argparse.Namespace) -> None:
    """Kokoro in fp16 in parts, the voices, the encoder of speakers; words.json is made by training.phonemes."""
    args.to.mkdir(parents=True, exist_ok=True)
    archive = args.to / KOKORO
    kokoro_weights.write_archive(kokoro_weights.read_state(args.home / "model.onnx"), archive)
    data = archive.read_bytes()
    archive.unlink()
    for i, start in enumerate(range(0, len(data), PART_BYTES)):
        (args.to / f"{KOKORO}.{i}").write_bytes(data[start : start + PART_BYTES])
    VoiceTables.read(args.home / "voices").write(args.to / VOICES)
    if find_spec("resemblyzer"):
        write_encoder(args.to / SPEAKER)


COMMANDS = {
    "train": train,
    "bases": bases,
    "bench": bench,
    "bench-one": bench_one,
    "score": score,
    "mean": mean,
    "pack": pack,
}

if __name__ == "__main__":
    arguments = parse_arguments(__doc__, COMMANDS)
    arguments.command(arguments)
