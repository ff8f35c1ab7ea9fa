"""Distil the light vocoder from Kokoro.

python -m training.distil pack --home ~/.cache/tutti --to data       weights and voices in fp16, small enough to carry
python -m training.distil bench --out runs/a                         steps a second of each mode; needs no weights
python -m training.distil train --data data --out runs/a --seconds 1200 [--start start.pt]
python -m training.distil score --data data --weights runs/a/light.npz

A run writes its averaged weights (in pieces), its curve and its log to --out at least every two minutes, and goes on
from any weights with --start. `--tiny` runs the same code in seconds on a processor.
"""

import argparse
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from training import checkpoint
from training.critic import Critic
from training.evaluation import Evaluation
from training.filling import Filling
from training.losses import LossWeights
from training.pool import Pool
from training.rows import RowSource, VoiceTables, held_out_rows, read_words
from training.schedule import Schedule
from training.step import Step, StepOptions
from training.teacher import Example, KokoroTeacher, Teacher
from tutti.model.light.signal import HOP
from tutti.model.torch.kokoro import weights as kokoro_weights
from tutti.model.torch.light import FEATURES, TIMBRE, LightNetwork

KOKORO, VOICES, WORDS = "kokoro.npz", "voices.npz", "words.json"  # in the data folder
PART_BYTES = 40 << 20  # of Kokoro's weights
LOG_S, SCORE_S, SAVE_S = 15.0, 45.0, 90.0
BLOCK = 20  # steps that are queued on the device before the host waits for those before
TINY_NETWORK = {"width": 32, "n_blocks": 2, "expansion": 2}


class Run:
    """A run's folder and clock: the log, the curve and the weights are written there."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self._began = time.perf_counter()
        out.mkdir(parents=True, exist_ok=True)
        before = out / "curve.json"  # of a run that was interrupted
        self.curve: list[dict[str, Any]] = json.loads(before.read_text()) if before.exists() else []

    def say(self, text: str) -> None:
        line = f"[{time.perf_counter() - self._began:7.1f}] {text}"
        print(line, flush=True)
        with (self.out / "log.txt").open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def note(self, **values: Any) -> None:
        """Add a point to the curve."""
        self.curve.append(values)
        partial = self.out / "curve.json.partial"
        partial.write_text(json.dumps(self.curve, indent=0), encoding="utf-8")
        partial.rename(self.out / "curve.json")
        self.say(
            json.dumps({key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()})
        )


class Distillation:
    """The loop: steps by the clock, scores and checkpoints in between."""

    def __init__(self, run: Run, step: Step, evaluation: Evaluation, schedule: Schedule, filling: Filling) -> None:
        self._run, self._step, self._evaluation, self._schedule = run, step, evaluation, schedule
        self._filling = filling
        self._judged = LightNetwork(**_sizes(self._average())).to(step.pool.device).eval().requires_grad_(False)
        self._n_steps = 0

    def train(self) -> None:
        step, schedule, run = self._step, self._schedule, self._run
        function, adversarial = step.regression, False
        if schedule.is_adversarial(0):
            function, adversarial = step.adversarial, True
        call = step.prepare(function)
        self._filling.start()  # from now on, the pool grows beside the training
        run.say(f"first phase prepared: {function.__name__}, {step.options.mode}")
        self.score(0.0)
        began = logged = scored = saved = time.perf_counter()
        n_logged, waiting = 0, None
        while (now := time.perf_counter()) - began < schedule.seconds:
            if schedule.is_adversarial(now - began) and not adversarial:
                self._finish_phase("regression", now - began)
                with self._filling.lock:
                    call, adversarial = step.prepare(step.adversarial), True
                began += time.perf_counter() - now  # the schedule does not run on meanwhile
                run.say("the critics join")
                continue
            self._set_rates(now - began)
            for _ in range(BLOCK):
                call()
            self._n_steps += BLOCK
            waiting = _wait_for_previous(waiting)
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
                self.save("light")
                saved = time.perf_counter()
        self._finish_phase("light", time.perf_counter() - began)

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
        return student.flat.named(student.average)

    def _set_rates(self, now_s: float) -> None:
        self._step.student.rate.fill_(self._schedule.student_rate(now_s))
        if self._step.judge is not None:
            self._step.judge.rate.fill_(self._schedule.judge_rate(now_s))


def _wait_for_previous(waiting: "torch.cuda.Event | None") -> "torch.cuda.Event | None":
    """Let the host be one block ahead of the device, not more: the schedule follows the clock."""
    if not torch.cuda.is_available():
        return None
    event = torch.cuda.Event()
    event.record()
    if waiting is not None:
        waiting.synchronize()
    return event


def train(args: argparse.Namespace) -> None:
    run, device = Run(args.out), find_device(args)
    run.say(f"torch {torch.__version__} on {device}; {' '.join(sys.argv[1:])}")
    teacher, words = open_teacher(args, device), read_words(args.data / WORDS)
    voices = VoiceTables.read(args.data / VOICES)
    run.say(f"teacher ready; {len(voices.names)} voices, {sum(map(len, words.values()))} words")
    allow_tf32()
    held_out = held_out_rows(words, voices, args.held_out)[:: 20 if args.tiny else 1]
    evaluation = Evaluation([example for batch in teacher.speak(held_out) for example in batch])
    run.say(f"{len(held_out)} held-out rows")
    filling = Filling(teacher, RowSource(words, voices, args.seed), Pool(args.pool_seconds, device), args.batch)
    filling.fill(args.first_seconds)
    run.say(f"pool: {filling.pool.seconds:,.0f} s")
    torch.manual_seed(args.seed)
    network = open_network(args).to(device)
    critic = Critic(8 if args.tiny else 1).to(device)
    if args.critic is not None:
        critic.load_state_dict(checkpoint.read(args.critic))
    options = replace(step_options(args), mode=find_mode(args, device))
    step = Step(network, filling.pool, options, critic if args.critic_part > 0 else None)
    schedule = Schedule(args.seconds, args.critic_part, args.rate, args.critic_phase_rate, args.critic_rate,
                        args.warm_up, args.critic_alone)  # fmt: skip
    try:
        Distillation(run, step, evaluation, schedule, filling).train()
    finally:
        filling.stop()
        run.say(f"ended; pool {filling.pool.seconds:,.0f} s, {filling.error or 'no error'}")


def open_network(args: argparse.Namespace) -> LightNetwork:
    if args.start is None:
        return LightNetwork(**(TINY_NETWORK if args.tiny else {}))
    state = checkpoint.read(args.start)
    network = LightNetwork(**_sizes(state))
    network.load_state_dict(state)
    return network


def step_options(args: argparse.Namespace) -> StepOptions:
    options = StepOptions(rows=args.rows, steps=args.steps, critic_rows=args.critic_rows, muon=not args.adam,
                          critic_share=args.critic_share, average=args.average,
                          weights=LossWeights(**json.loads(args.loss_weights)))  # fmt: skip
    return replace(options, rows=4, steps=32, critic_rows=2, critic_steps=32) if args.tiny else options


def open_teacher(args: argparse.Namespace, device: torch.device) -> Teacher:
    kokoro = args.data / KOKORO
    if not kokoro.exists():
        kokoro.write_bytes(b"".join(part.read_bytes() for part in sorted(args.data.glob(f"{KOKORO}.[0-9]"))))
    return KokoroTeacher(kokoro, device)


def find_device(args: argparse.Namespace) -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() and not args.tiny else "cpu")


def allow_tf32() -> None:
    """For the training; the exact durations for which the model disabled it do not matter here."""
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True


def find_mode(args: argparse.Namespace, device: torch.device) -> Any:
    """The mode that was fastest in `bench`, if it ran with this --out; else a plain CUDA graph."""
    if device.type == "cpu":
        return "eager"
    results = args.out / "bench.json"
    if args.mode != "auto" or not results.exists():
        return "graph" if args.mode == "auto" else args.mode
    speeds = json.loads(results.read_text())
    both = {mode: each["regression"] for mode, each in speeds.items() if {"regression", "adversarial"} <= each.keys()}
    return max(both, key=both.__getitem__, default="graph")


def bench(args: argparse.Namespace) -> None:
    """Run each mode in a process of its own: a mode that fails does not touch the others."""
    run, speeds = Run(args.out), {}
    for mode in ["eager"] if args.tiny else args.modes.split(","):
        command = [sys.executable, "-m", "training.distil", "bench-one", "--mode", mode, "--out", str(args.out)]
        command += ["--rows", str(args.rows), "--steps", str(args.steps), *(["--tiny"] if args.tiny else [])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=args.limit, check=False)
            lines, error = done.stdout.strip().splitlines(), done.stderr
        except subprocess.TimeoutExpired:
            lines, error = [], "too slow"
        speeds[mode] = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
        speeds[mode] |= {} if "adversarial" in speeds[mode] else {"failed": error[-1500:]}
        run.say(f"{mode}: {json.dumps(speeds[mode])[:1800]}")
        (args.out / "bench.json").write_text(json.dumps(speeds))


def bench_one(args: argparse.Namespace) -> None:
    device = find_device(args)
    allow_tf32()
    pool = Pool(60 if args.tiny else 600, device)
    torch.manual_seed(0)
    while not pool.is_full:
        pool.add([random_example(400, device) for _ in range(4)])
    network, critic = LightNetwork(**(TINY_NETWORK if args.tiny else {})).to(device), Critic(8 if args.tiny else 1)
    options = replace(step_options(args), mode="eager" if device.type == "cpu" else args.mode)
    step = Step(network, pool, options, critic.to(device))
    speeds: dict[str, float] = {}
    for function in (step.regression, step.adversarial):
        began = time.perf_counter()
        try:
            call = step.prepare(function)
            speeds[f"{function.__name__}_prepare_s"] = round(time.perf_counter() - began, 1)
            step.student.rate.fill_(1e-4)
            speeds[function.__name__] = round(_steps_per_s(call, 2.0 if args.tiny else 4.0), 2)
            speeds[f"{function.__name__}_loss"] = round(step.read_log()["loss"], 3)
        except Exception:  # noqa: BLE001
            print(traceback.format_exc()[-3000:], file=sys.stderr)
            break
    if device.type == "cuda":
        speeds["memory_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 1)
    print(json.dumps(speeds), flush=True)


def _steps_per_s(call: Any, seconds: float) -> float:
    began, n_steps, waiting = time.perf_counter(), 0, None
    while time.perf_counter() - began < seconds:
        call()
        n_steps += 1
        if n_steps % BLOCK == 0:
            waiting = _wait_for_previous(waiting)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return n_steps / (time.perf_counter() - began)


def random_example(n_steps: int, device: torch.device) -> Example:
    """Numbers in the shape of speech, where only the speed counts."""
    wave = 0.1 * torch.randn(HOP * n_steps, device=device)
    f0 = torch.full((n_steps,), 150.0, device=device)
    return Example(
        torch.randn(n_steps, FEATURES, device=device).half(), f0, torch.randn(TIMBRE, device=device), wave.half()
    )


def score(args: argparse.Namespace) -> None:
    """Measure weights on the held-out rows, as they are and in int8."""
    device = find_device(args)
    words, voices = read_words(args.data / WORDS), VoiceTables.read(args.data / VOICES)
    teacher = open_teacher(args, device)
    held_out = held_out_rows(words, voices, args.held_out)[:: args.every]
    evaluation = Evaluation([example for batch in teacher.speak(held_out) for example in batch])
    state = checkpoint.read(args.weights)
    network = LightNetwork(**_sizes(state)).to(device).eval().requires_grad_(False)
    for name, tensors in (("fp16", state), ("int8", checkpoint.quantised(state))):
        network.load_state_dict(tensors)
        print(name, json.dumps(asdict(evaluation.score(network))), flush=True)


def pack(args: argparse.Namespace) -> None:
    """Kokoro's weights in fp16 in parts, and the voices; words.json comes from `python -m training.phonemes`."""
    args.to.mkdir(parents=True, exist_ok=True)
    archive = args.to / KOKORO
    kokoro_weights.write_archive(kokoro_weights.read_state(args.home / "model.onnx"), archive)
    data = archive.read_bytes()
    archive.unlink()
    for i, start in enumerate(range(0, len(data), PART_BYTES)):
        (args.to / f"{KOKORO}.{i}").write_bytes(data[start : start + PART_BYTES])
    VoiceTables.read(args.home / "voices").write(args.to / VOICES)


def _sizes(state: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """The arguments of the network that these weights belong to."""
    width = len(state["entry.bias"])
    n_blocks = sum(name.endswith(".gain") for name in state)
    return {"width": width, "n_blocks": n_blocks, "expansion": len(state["blocks.0.expand.bias"]) // width}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    defaults, schedule = StepOptions(), Schedule(1.0)

    def add(name: str, function: Any) -> argparse.ArgumentParser:
        command = commands.add_parser(name)
        command.set_defaults(command=function)
        command.add_argument("--tiny", action="store_true", help="a small network on the processor")
        return command

    def add_step(command: argparse.ArgumentParser) -> None:
        command.add_argument("--rows", type=int, default=defaults.rows)
        command.add_argument("--steps", type=int, default=defaults.steps, help="of a row, 80 a second")
        command.add_argument("--critic-rows", type=int, default=defaults.critic_rows)
        command.add_argument("--critic-share", type=float, default=defaults.critic_share)
        command.add_argument("--average", type=float, default=defaults.average)
        command.add_argument("--adam", action="store_true", help="instead of Muon")
        command.add_argument("--loss-weights", default="{}", help='as JSON: {"mel": 2}')
        command.add_argument("--out", type=Path, required=True)

    train_parser = add("train", train)
    add_step(train_parser)
    train_parser.add_argument("--data", type=Path, required=True)
    train_parser.add_argument("--seconds", type=float, required=True, help="of training")
    train_parser.add_argument("--start", type=Path, help="weights to go on from")
    train_parser.add_argument("--critic", type=Path, help="critics to go on from")
    train_parser.add_argument("--critic-part", type=float, default=schedule.critic_part, help="of the time")
    train_parser.add_argument("--rate", type=float, default=schedule.rate)
    train_parser.add_argument("--critic-phase-rate", type=float, default=schedule.critic_phase_rate)
    train_parser.add_argument("--critic-rate", type=float, default=schedule.critic_rate)
    train_parser.add_argument("--warm-up", type=float, default=schedule.warm_up_s, help="seconds")
    train_parser.add_argument("--critic-alone", type=float, default=schedule.critic_alone_s, help="seconds")
    train_parser.add_argument("--pool-seconds", type=float, default=250_000, help="of speech; the oldest is replaced")
    train_parser.add_argument("--first-seconds", type=float, default=40_000, help="of speech before training begins")
    train_parser.add_argument("--batch", type=int, default=960, help="rows that the teacher gets at once")
    train_parser.add_argument("--held-out", type=int, default=6, help="rows of each voice")
    train_parser.add_argument("--mode", choices=("auto", "eager", "graph", "compiled"), default="auto")
    train_parser.add_argument("--seed", type=int, default=0)
    bench_parser = add("bench", bench)
    add_step(bench_parser)
    bench_parser.add_argument("--modes", default="graph,compiled")
    bench_parser.add_argument("--limit", type=float, default=150, help="seconds for each mode")
    one_parser = add("bench-one", bench_one)
    add_step(one_parser)
    one_parser.add_argument("--mode", default="eager")
    score_parser = add("score", score)
    score_parser.add_argument("--data", type=Path, required=True)
    score_parser.add_argument("--weights", type=Path, required=True)
    score_parser.add_argument("--held-out", type=int, default=6)
    score_parser.add_argument("--every", type=int, default=1, help="take each n-th row")
    pack_parser = add("pack", pack)
    pack_parser.add_argument("--home", type=Path, required=True, help="where `tutti pull` put the official files")
    pack_parser.add_argument("--to", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parse_arguments()
    arguments.command(arguments)
