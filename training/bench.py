"""How fast each mode trains on this device, and which one a run takes."""

import argparse
import json
import math
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace

import torch

from training.arguments import allow_tf32, find_device, step_options
from training.critic import Critic
from training.pool import Pool
from training.run import Run, wait_for_previous
from training.speaker import SpeakerEncoder
from training.step import Mode, Step
from training.students import STUDENTS
from training.teacher import Example
from tutti.model.light.signal import HOP
from tutti.model.torch.light import TIMBRE

WITH_SPEAKER = "+speaker"  # after the name of a mode: with the loss that holds the speaker
MAX_COST = 0.15  # of all time, for holding the speaker


def choose_mode(args: argparse.Namespace, device: torch.device) -> tuple[Mode, int]:
    """The mode, and every how many steps the speaker is held (0: never).

    The mode is the one that was fastest in `bench`, if it ran with this --out; else a plain CUDA graph.
    """
    results = args.out / "bench.json"
    if device.type == "cpu" or not results.exists():
        return ("eager" if device.type == "cpu" else "graph" if args.mode == "auto" else args.mode), 1
    speeds = {name: each.get("regression", 0.0) for name, each in json.loads(results.read_text()).items()
              if {"regression", "adversarial"} <= each.keys()}  # fmt: skip
    modes = {name: speed for name, speed in speeds.items() if not name.endswith(WITH_SPEAKER)}
    mode = max(modes, key=modes.__getitem__, default="graph") if args.mode == "auto" else args.mode
    return mode, _speaker_every(modes.get(mode), speeds.get(mode + WITH_SPEAKER))


def _speaker_every(plain: float | None, held: float | None) -> int:
    """As often as it may be for its cost; never, if it failed where the mode itself did not."""
    if plain is None:
        return 1
    return 0 if held is None else min(4, max(1, math.ceil((plain / held - 1) / MAX_COST)))


def bench(args: argparse.Namespace) -> None:
    """Run each mode in a process of its own: a mode that fails does not touch the others."""
    run, results = Run(args.out), args.out / "bench.json"
    speeds = json.loads(results.read_text()) if results.exists() else {}  # of other modes, measured before
    for mode in ["eager", "eager" + WITH_SPEAKER] if args.tiny else args.modes.split(","):
        command = [sys.executable, "-m", "training.distil", "bench-one", "--mode", mode, "--out", str(args.out)]
        command += ["--student", args.student]
        command += ["--rows", str(args.rows), "--steps", str(args.steps), *(["--tiny"] if args.tiny else [])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=args.limit, check=False)
            lines, error = done.stdout.strip().splitlines(), done.stderr
        except subprocess.TimeoutExpired:
            lines, error = [], "too slow"
        speeds[mode] = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
        speeds[mode] |= {} if "adversarial" in speeds[mode] else {"failed": error[-1500:]}
        run.say(f"{mode}: {json.dumps(speeds[mode])[:1800]}")
        results.write_text(json.dumps(speeds))


def bench_one(args: argparse.Namespace) -> None:
    device = find_device(args)
    allow_tf32()
    torch.manual_seed(0)
    student = STUDENTS[args.student]
    network, critic = student.network(**(student.tiny if args.tiny else {})).to(device), Critic(8 if args.tiny else 1)
    pool = Pool(60 if args.tiny else 600, device, network.n_features)
    while not pool.is_full:
        pool.add([random_example(400, device, network.n_features) for _ in range(4)])
    network.row.measure(pool.statistics)
    options = replace(
        step_options(args), mode="eager" if device.type == "cpu" else args.mode.removesuffix(WITH_SPEAKER)
    )
    speaker = SpeakerEncoder().to(device) if args.mode.endswith(WITH_SPEAKER) else None
    step = Step(network, pool, options, critic.to(device), speaker)
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


def _steps_per_s(call: Callable[[], None], seconds: float) -> float:
    began, n_steps, waiting = time.perf_counter(), 0, None
    while time.perf_counter() - began < seconds:
        call()
        n_steps += 1
        waiting = wait_for_previous(waiting)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return n_steps / (time.perf_counter() - began)


def random_example(n_steps: int, device: torch.device, n_features: int) -> Example:
    """Numbers in the shape of speech, where only the speed counts."""
    features, f0 = torch.randn(n_steps, n_features, device=device), torch.full((n_steps,), 150.0, device=device)
    timbre, statistics = torch.randn(TIMBRE, device=device), torch.randn(2 * (n_features + 2), device=device)
    wave = 0.1 * torch.randn(HOP * n_steps, device=device)
    return Example(features.half(), f0, timbre, wave.half(), statistics, features[:, :0].half())
