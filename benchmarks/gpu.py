"""Kokoro on a CUDA device: one row after the other, as upstream does, against padded batches in CUDA graphs.

python -m benchmarks.gpu export --weights model.onnx --voices voices --to parts    three parts, some voices
python -m benchmarks.gpu run --weights parts --out results                         about three minutes on one H200
python -m benchmarks.gpu run --weights parts --out results --device cpu --tiny     the same steps, small
python -m benchmarks.gpu vocoders --home ~/.cache/tutti --out results              exact and light, under a minute
python -m benchmarks.gpu plot --results gpu.json --to docs/images/gpu.svg          needs matplotlib

`run` needs only torch and numpy. Each step writes its results, so an interrupted run loses only the rest.
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tutti.model.buckets import CURVES, FRAMES, TOKENS, Plan
from tutti.model.torch.kokoro import masks, weights
from tutti.model.torch.light_model import LightTorchModel
from tutti.model.torch.model import TorchModel
from tutti.speech import Frames, Samples, Utterance
from tutti.text.vocab import encode
from tutti.verify.mel import distance_db

PHONEMES = json.loads((Path(__file__).parent / "data" / "phonemes.json").read_text(encoding="utf-8"))
PHONEMES_PER_S = 16
VOICES = ("af_heart", "am_michael", "bf_emma", "bm_george")
PART_BYTES = 54 << 20
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
HEADLINE_ROWS = 64  # batch size of the headline numbers
# Memory traffic of the generator in fp16: 112 passes over 20 x 256 and 120 x 128 values a frame.
BYTES_PER_FRAME = 112 * 2 * (20 * 256 + 120 * 128)


class Bench:
    """The test rows, the clock, and the report, which is written after each step."""

    def __init__(self, args: argparse.Namespace, weights: Path, voices: Path) -> None:
        self.args, self.path = args, weights
        self.started = time.perf_counter()
        self.report: dict[str, Any] = {"torch": torch.__version__, "device": args.device}
        args.out.mkdir(parents=True, exist_ok=True)
        self.styles = [np.fromfile(voices / f"{name}.bin", np.float32).reshape(510, 256) for name in VOICES]
        self.scale = 0.1 if args.tiny else 1.0
        self.batches = (1, 2) if args.tiny else BATCHES
        self.head = 2 if args.tiny else HEADLINE_ROWS
        self.reps = 1 if args.tiny else 15

    def log(self, text: str) -> None:
        print(f"[{time.perf_counter() - self.started:6.1f} s] {text}", flush=True)

    def step(self, name: str, measure: Callable[[], object]) -> Any:
        """Run one step; if it fails, record the error and go on."""
        started = time.perf_counter()
        try:
            self.report[name] = measure()
        except Exception:  # noqa: BLE001
            self.report[name] = {"failed": traceback.format_exc()[-2000:]}
            self.log(f"{name}: FAILED\n{traceback.format_exc()[-900:]}")
        else:
            self.log(f"{name}: {json.dumps(self.report[name])[:900]}  ({time.perf_counter() - started:.1f} s)")
        (self.args.out / "gpu.json").write_text(json.dumps(self.report, indent=1))
        return self.report[name]

    def row(self, seconds: float, seed: int) -> Utterance:
        """About this many seconds of speech."""
        n_phonemes = max(3, int(seconds * self.scale * PHONEMES_PER_S))
        words: list[str] = []
        place = seed
        while sum(map(len, words)) + len(words) < n_phonemes:
            words += PHONEMES[place % len(PHONEMES)].split(" ")
            place += 1
        phonemes = " ".join(words)[:n_phonemes].strip()
        return Utterance(encode(phonemes), self.styles[seed % len(VOICES)][len(phonemes) - 1])

    def uniform(self, n: int) -> list[Utterance]:
        return [self.row(5, seed) for seed in range(n)]

    def mixed(self, n: int) -> list[Utterance]:
        lengths = np.random.default_rng(0).uniform(1, 15, size=128)
        return [self.row(float(seconds), seed) for seed, seconds in enumerate(lengths[:n])]

    def first_chunk(self) -> list[Utterance]:
        return [self.row(0.4, 0)]  # silence at both ends makes it one second


def speak(model: TorchModel | LightTorchModel, rows: Sequence[Utterance]) -> tuple[list[Frames], list[Samples]]:
    """Both stages, as the server runs a few rows that are alone."""
    frames = (model.base if isinstance(model, LightTorchModel) else model).start_acoustic(rows)
    return frames, model.vocoder(frames)


def timed(call: Callable[[], object], reps: int) -> float:
    """Median seconds; both stages end with all results on the host, so a plain clock is exact."""
    call()
    times = []
    for _ in range(reps):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def seconds(frames: Sequence[Frames]) -> float:
    return sum(row.n_frames for row in frames) / 40


def ceilings() -> dict[str, float]:
    """The peak of the device: fp16 matrix products, and copies within its memory."""
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    product = timed(lambda: ((a @ a), torch.cuda.synchronize()), 10)
    big = torch.empty(1 << 31, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(big)
    copy = timed(lambda: (other.copy_(big), torch.cuda.synchronize()), 10)
    return {"fp16_tflops": 2 * 8192**3 / product / 1e12, "copy_gb_s": 2 * big.nbytes / copy / 1e9}


@contextmanager
def plain_pytorch() -> Iterator[None]:
    """Disable our own kernels."""
    real = masks.has_kernels
    masks.has_kernels = lambda _: False
    try:
        yield
    finally:
        masks.has_kernels = real


def one_by_one(bench: Bench, exact: list[tuple[Frames, Samples]], judged: Sequence[Utterance]) -> dict[str, float]:
    """As upstream does: eager, fp32, one row at a time. Fast models are compared with this one without tf32."""
    from torch.utils.flop_counter import FlopCounterMode

    model = TorchModel(bench.path, bench.args.device, acoustic_precision="fp32", vocoder_precision="fp32")
    for row in judged:
        ((frames,), (samples,)) = speak(model, [row])
        exact.append((Frames(frames.durations, frames.features, frames.f0, frames.energy, frames.style), samples))
    torch.backends.cudnn.allow_tf32 = True  # PyTorch's default
    rows = bench.uniform(min(bench.head, 8))
    took = timed(lambda: [speak(model, [row]) for row in rows], 1 if bench.args.tiny else 3)
    frames = model.acoustic(rows)
    with FlopCounterMode(display=False) as counter:
        model.vocoder(frames[:1])
    (group,) = model.plan.frames.group([frames[0].n_frames], model.max_padded_frames)
    return {
        "audio_s_per_s": seconds(frames) / took,
        "latency_ms": 1000 * timed(lambda: speak(model, rows[:1]), bench.reps),
        "row_s": seconds(frames[:1]),
        "vocoder_gflop_per_audio_s": counter.get_total_flops() / (group.padded / 40) / 1e9,
    }


def warm_up(bench: Bench, model: TorchModel) -> dict[str, float]:
    start = logged = time.perf_counter()
    shapes = 0

    def progress(done: int, n_shapes: int) -> None:
        nonlocal logged, shapes
        shapes = n_shapes
        if time.perf_counter() - logged > 10:
            logged = time.perf_counter()
            bench.log(f"  {done} of {n_shapes} shapes")

    model.warm_up(progress)
    return {"shapes": shapes, "took_s": time.perf_counter() - start, "graphs_gb": reserved_gb(bench)}


def reserved_gb(bench: Bench) -> float:
    return torch.cuda.memory_reserved() / 1e9 if bench.args.device == "cuda" else 0.0


def stage_times(bench: Bench, model: Any, rows: Sequence[Utterance], frames: Sequence[Frames]) -> dict[str, float]:
    """Tokens on the host to samples on the host, one stage after the other."""
    acoustic = timed(lambda: model.acoustic(rows), bench.reps)
    vocoder = timed(lambda: model.vocoder(frames), bench.reps)
    whole = timed(lambda: speak(model, rows), bench.reps)
    return {
        "rows": len(rows),
        "audio_s": seconds(frames),
        "audio_s_per_s": seconds(frames) / whole,
        "latency_ms": 1000 * whole,
        "acoustic_ms": 1000 * acoustic,
        "vocoder_ms": 1000 * vocoder,
    }


def measure(bench: Bench, model: TorchModel, rows: Sequence[Utterance]) -> dict[str, float]:
    """The times of both stages, and what they computed."""
    frames, _ = speak(model, rows)
    lengths, plan, cap = [row.n_frames for row in frames], model.plan, model.max_padded_frames
    groups = plan.frames.group(lengths, cap)
    tokens, curves = plan.tokens.group([len(row.tokens) for row in rows], cap), plan.curves.group(lengths, cap)
    padded = sum(group.padded for group in groups)
    return {
        **stage_times(bench, model, rows, frames),
        "groups": len(groups),
        "frames": sum(lengths),
        "padded_frames": padded,
        "padding": padded / sum(lengths) - 1,
        "tokens": sum(len(row.tokens) for row in rows),
        "reading_groups": len(tokens) + len(curves),
        "steps": sum(5 * group.length for group in tokens) + sum(group.length for group in curves),  # of LSTMs
        "pairs": sum(group.padded * group.length for group in tokens) / 1000,  # thousands of token pairs in attention
        "reserved_gb": reserved_gb(bench),
    }


def pipelined(model: TorchModel, rows: Sequence[Utterance], n_batches: int) -> dict[str, float]:
    """Both stages in parallel, each in its own thread: the acoustic stage works on the next batch."""
    queue: Queue[list[Frames] | None] = Queue(maxsize=2)

    def run_acoustic() -> None:
        try:
            for _ in range(n_batches):
                queue.put(model.acoustic(rows))
        finally:
            queue.put(None)

    start = time.perf_counter()
    thread = threading.Thread(target=run_acoustic)
    thread.start()
    total = 0.0
    while frames := queue.get():
        total += len(model.vocoder(frames)) and seconds(frames)
    thread.join()
    return {"audio_s_per_s": total / (time.perf_counter() - start)}


def compare(ours: Sequence[tuple[Frames, Samples]], exact: Sequence[tuple[Frames, Samples]]) -> dict[str, float]:
    """Batched fp16 against single rows in fp32."""
    pairs = list(zip(ours, exact, strict=True))
    same = [(one, other) for one, other in pairs if np.array_equal(one[0].durations, other[0].durations)]
    distances = [distance_db(a, b) for (_, a), (_, b) in same]
    return {
        "rows": len(pairs),
        "rows_with_equal_durations": len(same),
        "tokens": sum(len(a.durations) for (a, _), _ in pairs),
        "tokens_off": sum(int((a.durations != b.durations).sum()) for (a, _), (b, _) in pairs),
        "log_mel_db_median": float(np.median(distances)),
        "log_mel_db_max": max(distances),
        "f0_hz_max": max(float(np.abs(a.f0 - b.f0).max()) for (a, _), (b, _) in same),
    }


def fit(points: Sequence[dict[str, float]], target: str, causes: dict[str, str]) -> dict[str, float]:
    """Milliseconds of a stage as a sum of causes, by least relative squares."""
    a = np.array(
        [[row[key] if key.endswith("groups") else row[key] / 1000 for key in causes.values()] for row in points]
    )
    b = np.array([row[target] for row in points])
    coefficients, *_ = np.linalg.lstsq(a / b[:, None], np.ones(len(b)), rcond=None)
    off = np.abs(a @ coefficients / b - 1)
    return dict(zip(causes, coefficients.tolist(), strict=True)) | {
        "median_off": float(np.median(off)),
        "worst_off": float(off.max()),
    }


def run(args: argparse.Namespace) -> None:
    bench = Bench(args, join_parts(args.weights), args.weights)
    cuda = args.device == "cuda"
    exact: list[tuple[Frames, Samples]] = []
    judged = bench.mixed(bench.head)
    if cuda:
        bench.report["device"] = torch.cuda.get_device_name()
        bench.step("ceilings", ceilings)
    with plain_pytorch():
        bench.step("upstreams_way", lambda: one_by_one(bench, exact, judged))
    model = TorchModel(bench.path, args.device, "full" if cuda else "off", cache=args.cache)
    bench.step("warm_up", lambda: warm_up(bench, model))
    kinds = {"uniform": bench.uniform, "mixed": bench.mixed}
    batches = {f"{kind} {n}": make(n) for n in bench.batches for kind, make in kinds.items()}
    batches |= {"first chunk": bench.first_chunk()}
    results = {name: bench.step(name, lambda rows=rows: measure(bench, model, rows)) for name, rows in batches.items()}
    bench.step("against_fp32_alone", lambda: compare(list(zip(*speak(model, judged), strict=True)), exact))
    points = [row for row in results.values() if "failed" not in row]
    causes = {"ms_per_group": "groups", "ms_per_1000_frames": "frames", "ms_per_1000_padded": "padded_frames"}
    bench.step("vocoder_cost", lambda: fit(points, "vocoder_ms", causes))
    causes = {
        "ms_per_group": "reading_groups",
        "ms_per_1000_steps": "steps",
        "ms_per_1000_tokens": "tokens",
        "ms_per_million_pairs": "pairs",
    }
    bench.step("acoustic_cost", lambda: fit(points, "acoustic_ms", causes))
    for kind, make in kinds.items():
        name = f"pipelined {kind} {bench.head}"
        bench.step(name, lambda make=make: pipelined(model, make(bench.head), 2 if args.tiny else 20))
    if cuda:
        bench.step("shares", lambda: utilisation(bench.report, f"uniform {bench.head}"))
    print_table(bench.report)


def utilisation(report: dict[str, Any], name: str) -> dict[str, float]:
    """How near the vocoder comes to the peak of the device."""
    top, best = report[name], report["ceilings"]
    took_s = top["vocoder_ms"] / 1000
    tflops = report["upstreams_way"]["vocoder_gflop_per_audio_s"] * top["audio_s"] / 1000 / took_s
    gb_s = BYTES_PER_FRAME * top["frames"] / 1e9 / took_s
    return {
        "vocoder_tflops": tflops,
        "of_matrix_ceiling": tflops / best["fp16_tflops"],
        "vocoder_gb_s": gb_s,
        "of_copy_ceiling": gb_s / best["copy_gb_s"],
        "speedup_over_upstreams_way": top["audio_s_per_s"] / report["upstreams_way"]["audio_s_per_s"],
    }


def print_table(report: dict[str, Any]) -> None:
    print("\n| rows | audio s | ms (acoustic + vocoder) | audio s per s | padding |\n|---|---|---|---|---|")
    for name, row in report.items():
        if isinstance(row, dict) and "acoustic_ms" in row:
            parts = f"{row['latency_ms']:.1f} ({row['acoustic_ms']:.1f} + {row['vocoder_ms']:.1f})"
            print(f"| {name} | {row['audio_s']:.1f} | {parts} | {row['audio_s_per_s']:,.0f} | {row['padding']:.0%} |")


def plot(args: argparse.Namespace) -> None:
    """Audio seconds a second by batch size, with upstream's one row at a time."""
    import matplotlib.pyplot as plt

    report = json.loads(args.results.read_text())
    figure, axes = plt.subplots(figsize=(7, 3.6))
    for kind, label in (("uniform", "rows of 5 s"), ("mixed", "rows of 1 to 15 s")):
        speeds = {n: report[f"{kind} {n}"]["audio_s_per_s"] for n in BATCHES if f"{kind} {n}" in report}
        axes.plot(list(speeds), list(speeds.values()), marker="o", label=label)
    axes.axhline(report["upstreams_way"]["audio_s_per_s"], color="gray", linestyle="--", label="upstream's way")
    axes.set_xscale("log", base=2)
    axes.set_xticks(BATCHES, [str(n) for n in BATCHES])
    axes.set(xlabel="rows in a batch", ylabel="audio seconds a second", ylim=(0, None))
    axes.set_title(f"Kokoro-82M on one {report['device']}, tokens to samples on the host", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    args.to.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(args.to, metadata={"Date": None})


# -- the exact and the light vocoder in one process, with the same acoustic half ---------------------------------------


if TYPE_CHECKING:
    from benchmarks.gpu import Bench
    from tutti.speech import Utterance

N_KERNELS = 20  # of a pass of the light vocoder, in the report
N_BATCHES = 20


def vocoders(args: argparse.Namespace) -> None:
    bench = Bench(args, args.home / "model.onnx", args.home / "voices")
    cuda = args.device == "cuda"
    if cuda:
        bench.report["device"] = torch.cuda.get_device_name()
    base = TorchModel(bench.path, args.device, "full" if cuda else "off", cache=args.cache)
    rows = (1, bench.head)
    if cuda:  # the shapes of rows of five seconds in the full plan
        base.plan = Plan(
            replace(TOKENS, rows=rows, longest=112),
            replace(CURVES, rows=rows, longest=256),
            replace(FRAMES, rows=rows, longest=256),
        )
    n_batches, batch = 2 if args.tiny else N_BATCHES, bench.uniform(bench.head)
    models: dict[str, TorchModel | LightTorchModel] = {"exact": base, "light": LightTorchModel(base)}
    bench.log("loaded")
    for name, model in models.items():
        if cuda:
            bench.step(f"{name}, warm-up", lambda model=model: warm_up(bench, model))
        for n in rows:
            bench.step(
                f"{name}, {n} rows of 5 s", lambda model=model, n=n: measure_stages(bench, model, bench.uniform(n))
            )
        if cuda and isinstance(model, TorchModel):
            bench.step(f"{name}, a row alone", lambda model=model: measure_alone(bench, model, bench.row(5, 0)))
        bench.step(f"{name}, pipelined", lambda model=model: pipelined(model, batch, n_batches))
    if cuda:
        bench.step("light, kernels", lambda: kernels(models["light"], bench.uniform(bench.head)))
    print_comparison(bench.report)


def measure_stages(bench: Bench, model: TorchModel | LightTorchModel, rows: list[Utterance]) -> dict[str, float]:
    return stage_times(bench, model, rows, speak(model, rows)[0])


def measure_alone(bench: Bench, model: TorchModel, row: Utterance) -> dict[str, float]:
    """A row as the server runs it when it is alone, and how far it is from the same row one stage after the other."""
    row = replace(row, pcm_volume=1.0)
    spoken = model.speak([row])
    frames = model.acoustic([row])
    (samples,) = model.vocoder(frames)
    took = timed(lambda: model.speak([row]), bench.reps)
    return {
        "rows": 1,
        "audio_s": seconds(frames),
        "audio_s_per_s": seconds(frames) / took,
        "latency_ms": 1000 * took,
        "acoustic_ms": 1000 * spoken.acoustic_s,
        "vocoder_ms": 1000 * (took - spoken.acoustic_s),
        "durations_off": int((spoken.durations[0] != frames[0].durations).sum()),
        "samples_off": int((spoken.samples[0] != samples).sum()),
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


# -- the command line --------------------------------------------------------------------------------------------------


def export(args: argparse.Namespace) -> None:
    """Write the weights as fp16 in parts, and the voices of this benchmark."""
    args.to.mkdir(parents=True, exist_ok=True)
    archive = args.to / "kokoro.npz"
    weights.write_archive(weights.read_state(args.weights), archive)
    data = archive.read_bytes()
    archive.unlink()
    for i, start in enumerate(range(0, len(data), PART_BYTES)):
        (args.to / f"kokoro.npz.{i}").write_bytes(data[start : start + PART_BYTES])
    for name in VOICES:
        (args.to / f"{name}.bin").write_bytes((args.voices / f"{name}.bin").read_bytes())


def join_parts(folder: Path) -> Path:
    whole = folder / "kokoro.npz"
    if not whole.exists():
        whole.write_bytes(b"".join(part.read_bytes() for part in sorted(folder.glob("kokoro.npz.*"))))
    return whole


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    export_parser = commands.add_parser("export")
    export_parser.set_defaults(command=export)
    export_parser.add_argument("--weights", type=Path, required=True)
    export_parser.add_argument("--voices", type=Path, required=True)
    export_parser.add_argument("--to", type=Path, required=True)
    run_parser = commands.add_parser("run")
    run_parser.set_defaults(command=run)
    run_parser.add_argument("--weights", type=Path, required=True, help="the folder written by export")
    vocoders_parser = commands.add_parser("vocoders")
    vocoders_parser.set_defaults(command=vocoders)
    vocoders_parser.add_argument("--home", type=Path, required=True, help="the folder with model.onnx and voices")
    for each in (run_parser, vocoders_parser):
        each.add_argument("--out", type=Path, required=True)
        each.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
        each.add_argument("--tiny", action="store_true")
        each.add_argument("--cache", type=Path, help="folder for compiled kernels")
    plot_parser = commands.add_parser("plot")
    plot_parser.set_defaults(command=plot)
    plot_parser.add_argument("--results", type=Path, required=True)
    plot_parser.add_argument("--to", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    args = parse_arguments()
    args.command(args)
