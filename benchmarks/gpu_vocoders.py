"""`python -m benchmarks.gpu vocoders`: the exact and the light vocoder in one process, with the same acoustic half.

Only the shapes that are measured are captured as CUDA graphs, so it takes less than a minute.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from benchmarks.gpu import pipelined, seconds, speak, stage_times, timed, warm_up
from tutti.model.buckets import CURVES, FRAMES, TOKENS, Plan
from tutti.model.torch.light_model import LightTorchModel
from tutti.model.torch.model import TorchModel

if TYPE_CHECKING:
    from benchmarks.gpu import Bench
    from tutti.speech import Utterance

N_KERNELS = 20  # of a pass of the light vocoder, in the report
N_BATCHES = 20


def compare_vocoders(bench: Bench) -> None:
    cuda = bench.args.device == "cuda"
    if cuda:
        bench.report["device"] = torch.cuda.get_device_name()
    base = TorchModel(bench.path, bench.args.device, "full" if cuda else "off", cache=bench.args.cache)
    rows = (1, bench.head)
    if cuda:  # the shapes of rows of five seconds in the full plan
        base.plan = Plan(
            replace(TOKENS, rows=rows, longest=112),
            replace(CURVES, rows=rows, longest=256),
            replace(FRAMES, rows=rows, longest=256),
        )
    n_batches, batch = 2 if bench.args.tiny else N_BATCHES, bench.uniform(bench.head)
    models: dict[str, TorchModel | LightTorchModel] = {"exact": base, "light": LightTorchModel(base)}
    bench.log("loaded")
    for name, model in models.items():
        if cuda:
            bench.step(f"{name}, warm-up", lambda model=model: warm_up(bench, model))
        for n in rows:
            bench.step(f"{name}, {n} rows of 5 s", lambda model=model, n=n: measure(bench, model, bench.uniform(n)))
        if cuda and isinstance(model, TorchModel):
            bench.step(f"{name}, a row alone", lambda model=model: measure_alone(bench, model, bench.row(5, 0)))
        bench.step(f"{name}, pipelined", lambda model=model: pipelined(model, batch, n_batches))
    if cuda:
        bench.step("light, kernels", lambda: kernels(models["light"], bench.uniform(bench.head)))
    print_comparison(bench.report)


def measure(bench: Bench, model: TorchModel | LightTorchModel, rows: list[Utterance]) -> dict[str, float]:
    return stage_times(bench, model, rows, speak(model, rows)[0])


def measure_alone(bench: Bench, model: TorchModel, row: Utterance) -> dict[str, float]:
    """A row as the server runs it when it is alone, and how far it is from the same row one stage after the other."""
    row = replace(row, pcm_volume=1.0)
    spoken = model.speak_row(row)
    assert spoken is not None
    frames = model.acoustic([row])
    (samples,) = model.vocoder_pcm(frames, [1.0])
    took = timed(lambda: model.speak_row(row), bench.reps)
    return {
        "rows": 1,
        "audio_s": seconds(frames),
        "audio_s_per_s": seconds(frames) / took,
        "latency_ms": 1000 * took,
        "acoustic_ms": 1000 * spoken.acoustic_s,
        "vocoder_ms": 1000 * (took - spoken.acoustic_s),
        "durations_off": int((spoken.durations != frames[0].durations).sum()),
        "samples_off": int((spoken.samples != samples).sum()),
    }


def kernels(model: TorchModel | LightTorchModel, rows: list[Utterance]) -> dict[str, float]:
    """Milliseconds of the longest kernels of a pass of the vocoder."""
    frames, _ = speak(model, rows)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        model.vocoder(frames)
    events = sorted(profile.key_averages(), key=lambda event: -event.self_device_time_total)
    return {f"{event.count} x {event.key[:90]}": event.self_device_time_total / 1000 for event in events[:N_KERNELS]}


def print_comparison(report: dict[str, Any]) -> None:
    print("\n| | audio s | ms (acoustic + vocoder) | audio s per s |\n|---|---|---|---|")
    for name, row in report.items():
        if isinstance(row, dict) and "audio_s_per_s" in row:
            parts, audio = "both stages at once", ""
            if "rows" in row:
                parts = f"{row['latency_ms']:.2f} ({row['acoustic_ms']:.2f} + {row['vocoder_ms']:.2f})"
                audio = f"{row['audio_s']:.1f}"
            print(f"| {name} | {audio} | {parts} | {row['audio_s_per_s']:,.0f} |")
