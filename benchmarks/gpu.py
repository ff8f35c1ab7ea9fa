"""Kokoro on a CUDA device: upstream's way, one row after the other, against padded batches in CUDA graphs.

python -m benchmarks.gpu export --weights model.onnx --voices voices --to parts    three parts, some voices
python -m benchmarks.gpu run --weights parts --out results                         about eight minutes on one H200
python -m benchmarks.gpu run --weights parts --out results --device cpu --tiny     the same steps, small

Needs torch and numpy alone. Each step writes what it found, so a run that is cut short loses only the rest.
"""

import argparse
import json
import os
import statistics
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import torch

from tests.model.mel import distance_db
from tutti.model.buckets import groups
from tutti.model.kokoro import weights
from tutti.model.torch_model import TorchModel
from tutti.speech import Frames, Samples, Utterance
from tutti.text.vocab import encode

PHONEMES = json.loads((Path(__file__).parent / "data" / "phonemes.json").read_text(encoding="utf-8"))
PHONEMES_PER_S = 13
VOICES = ("af_heart", "am_michael", "bf_emma", "bm_george")
PART_BYTES = 54 << 20
BATCHES = (1, 4, 16, 32, 64, 128)
HEAD = 64  # the batch of the headline numbers


class Bench:
    """The rows, the clock, and the report that grows step by step."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.started = time.perf_counter()
        self.report: dict[str, Any] = {"torch": torch.__version__, "device": args.device}
        args.out.mkdir(parents=True, exist_ok=True)
        self.path = joined(args.weights, args.out)
        self.styles = [np.fromfile(args.weights / f"{name}.bin", np.float32).reshape(510, 256) for name in VOICES]
        self.scale = 0.1 if args.tiny else 1.0
        self.batches = (1, 2) if args.tiny else BATCHES
        self.head = 2 if args.tiny else HEAD
        self.reps = 1 if args.tiny else 5

    @property
    def left_s(self) -> float:
        return float(self.args.budget - (time.perf_counter() - self.started))

    def say(self, text: str) -> None:
        print(f"[{time.perf_counter() - self.started:6.1f} s] {text}", flush=True)

    def step(self, name: str, act: Callable[[], object], needs_s: float = 0) -> None:
        """Runs one step; a step that fails, or for which no time is left, must not cost the others."""
        if self.left_s < needs_s:
            self.say(f"{name}: skipped, {self.left_s:.0f} s left")
            return
        began = time.perf_counter()
        try:
            self.report[name] = act()
        except Exception:  # noqa: BLE001
            self.report[name] = {"failed": traceback.format_exc()[-2000:]}
            self.say(f"{name}: FAILED\n{traceback.format_exc()[-900:]}")
        else:
            self.say(f"{name}: {json.dumps(self.report[name])[:1500]}  ({time.perf_counter() - began:.1f} s)")
        (self.args.out / "gpu.json").write_text(json.dumps(self.report, indent=1))

    def row(self, seconds: float, seed: int) -> Utterance:
        """About this many seconds of speech, whole words, in some voice."""
        wanted = max(3, int(seconds * self.scale * PHONEMES_PER_S))
        words: list[str] = []
        place = seed
        while sum(map(len, words)) + len(words) < wanted:
            words += PHONEMES[place % len(PHONEMES)].split(" ")
            place += 1
        said = " ".join(words)[:wanted].strip()
        return Utterance(encode(said), self.styles[seed % len(VOICES)][len(said) - 1])

    def uniform(self, n: int) -> list[Utterance]:
        return [self.row(5, seed) for seed in range(n)]

    def mixed(self, n: int) -> list[Utterance]:
        lengths = np.random.default_rng(0).uniform(1, 15, size=128)
        return [self.row(float(seconds), seed) for seed, seconds in enumerate(lengths[:n])]


def speak(model: TorchModel, rows: Sequence[Utterance]) -> tuple[list[Frames], list[Samples]]:
    frames = model.acoustic(rows)
    return frames, model.vocoder(frames)


def timed(act: Callable[[], object], reps: int) -> float:
    """Median seconds; both stages end with all on the host, so a plain clock will do."""
    act()
    times = []
    for _ in range(reps):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def seconds(frames: Sequence[Frames]) -> float:
    return sum(row.n_frames for row in frames) / 40


def ceilings() -> dict[str, float]:
    """What the device can do at best: fp16 and tf32 matrix products, and copies within its memory."""
    found = {}
    for name, dtype in (("fp16_tflops", torch.float16), ("tf32_tflops", torch.float32)):
        torch.set_float32_matmul_precision("high")
        a = torch.randn(8192, 8192, device="cuda", dtype=dtype)
        found[name] = 2 * 8192**3 / timed(lambda a=a: ((a @ a), torch.cuda.synchronize()), 10) / 1e12
    big = torch.empty(1 << 31, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(big)
    found["copy_gb_s"] = 2 * big.nbytes / timed(lambda: (other.copy_(big), torch.cuda.synchronize()), 10) / 1e9
    return found


def one_by_one(bench: Bench, model: TorchModel) -> dict[str, float]:
    """Upstream's way: eager, fp32, a row at a time."""
    rows = bench.uniform(min(bench.head, 8))
    frames, _ = speak(model, rows[:1])
    took = timed(lambda: [speak(model, [row]) for row in rows], 1 if bench.args.tiny else 2)
    lone = timed(lambda: speak(model, rows[:1]), bench.reps)
    total = seconds(model.acoustic(rows))
    return {"audio_s_per_s": total / took, "latency_ms": 1000 * lone, "row_s": seconds(frames)}


def gflop_per_second(model: TorchModel, rows: Sequence[Utterance]) -> float:
    """Arithmetic of the vocoder for one second of audio."""
    from torch.utils.flop_counter import FlopCounterMode

    frames = model.acoustic(rows)
    with FlopCounterMode(display=False) as counter:
        model.vocoder(frames)
    (group,) = groups([frames[0].n_frames], model.plan.frames, model.max_padded_frames, model.plan.rows)
    return counter.get_total_flops() / (group.padded / 40) / 1e9


def prepare(bench: Bench, model: TorchModel, batches: Sequence[Sequence[Utterance]]) -> dict[str, float]:
    """Captures exactly the shapes that these batches need."""
    if model.plan.longest_frames == 0:
        return {"shapes": 0}
    wanted: set[tuple[str, int, int]] = set()
    plan, cap = model.plan, model.max_padded_frames
    for rows in batches:
        tokens = [len(row.tokens) for row in rows]
        frames = [row.n_frames for row in model.acoustic(rows)]
        for kind, lengths, ladder in (("tokens", tokens, plan.tokens), ("frames", frames, plan.frames)):
            wanted |= {(kind, group.n_rows, group.length) for group in groups(lengths, ladder, cap, plan.rows)}
    start = time.perf_counter()
    for kind, n_rows, length in sorted(wanted, key=lambda shape: -shape[1] * shape[2]):
        if bench.left_s < 40:
            bench.say("  no time for more shapes; the rest runs eagerly")
            break
        began = time.perf_counter()
        model.capture(kind, n_rows, length)
        if (took := time.perf_counter() - began) > 2:
            bench.say(f"  captured {kind} {n_rows} x {length} in {took:.1f} s")
    return {"shapes": len(wanted), "took_s": time.perf_counter() - start}


def measure(bench: Bench, model: TorchModel, rows: Sequence[Utterance]) -> dict[str, float]:
    """Tokens on the host to samples on the host, one stage after the other."""
    if bench.args.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    frames, _ = speak(model, rows)
    acoustic = timed(lambda: model.acoustic(rows), bench.reps)
    vocoder = timed(lambda: model.vocoder(frames), bench.reps)
    whole = timed(lambda: speak(model, rows), bench.reps)
    lengths = [row.n_frames for row in frames]
    shapes = groups(lengths, model.plan.frames, model.max_padded_frames, model.plan.rows)
    return {
        "rows": len(rows),
        "audio_s": seconds(frames),
        "audio_s_per_s": seconds(frames) / whole,
        "latency_ms": 1000 * whole,
        "acoustic_ms": 1000 * acoustic,
        "vocoder_ms": 1000 * vocoder,
        "groups": len(shapes),
        "padded_frames": sum(group.padded for group in shapes),
        "padding": sum(group.padded for group in shapes) / sum(lengths) - 1,
        "peak_gb": torch.cuda.max_memory_allocated() / 1e9 if bench.args.device == "cuda" else 0.0,
        "reserved_gb": torch.cuda.max_memory_reserved() / 1e9 if bench.args.device == "cuda" else 0.0,
    }


def pipelined(model: TorchModel, rows: Sequence[Utterance], n_batches: int) -> float:
    """Audio seconds a second when the next batch is read while this one sounds: each stage in a thread of its own."""
    between: Queue[list[Frames] | None] = Queue(maxsize=2)

    def read() -> None:
        try:
            for _ in range(n_batches):
                between.put(model.acoustic(rows))
        finally:
            between.put(None)

    start = time.perf_counter()
    thread = threading.Thread(target=read)
    thread.start()
    total = 0.0
    while frames := between.get():
        total += len(model.vocoder(frames)) and seconds(frames)
    thread.join()
    return total / (time.perf_counter() - start)


def compared(ours: Sequence[tuple[Frames, Samples]], exact: Sequence[tuple[Frames, Samples]]) -> dict[str, float]:
    """Batched and fast against alone and exact."""
    same = [np.array_equal(a.durations, b.durations) for (a, _), (b, _) in zip(ours, exact, strict=True)]
    off = sum(int((a.durations != b.durations).sum()) for (a, _), (b, _) in zip(ours, exact, strict=True))
    far = [distance_db(a, b) for (_, a), (_, b), equal in zip(ours, exact, same, strict=True) if equal]
    return {
        "rows": len(same),
        "rows_with_equal_durations": sum(same),
        "tokens_off": off,
        "tokens": sum(len(a.durations) for a, _ in ours),
        "log_mel_db_median": float(np.median(far)) if far else -1.0,
        "log_mel_db_max": max(far, default=-1.0),
        "f0_hz_max": max(
            (
                float(np.abs(a.f0 - b.f0).max())
                for (a, _), (b, _), equal in zip(ours, exact, same, strict=True)
                if equal
            ),
            default=-1.0,
        ),
    }


def fit(measured: dict[str, dict[str, float]]) -> dict[str, float]:
    """Vocoder milliseconds = fixed for each group + for each thousand padded frames."""
    found = [row for row in measured.values() if "vocoder_ms" in row]
    a = np.array([[row["groups"], row["padded_frames"] / 1000] for row in found])
    b = np.array([row["vocoder_ms"] for row in found])
    (fixed, slope), *_ = np.linalg.lstsq(a, b, rcond=None)
    return {
        "ms_per_group": float(fixed),
        "ms_per_1000_frames": float(slope),
        "worst_ms": float(np.abs(a @ (fixed, slope) - b).max()),
    }


def run(args: argparse.Namespace) -> None:
    os.environ.setdefault("CUDNN_CONV_WSCAP_DBG", "4096")  # MiB: unbounded, the search takes all memory there is
    bench = Bench(args)
    cuda = args.device == "cuda"
    cache = Path(args.cache) if args.cache else None
    exact: list[tuple[Frames, Samples]] = []
    judged = bench.mixed(2 if args.tiny else 16)
    if cuda:
        bench.report["device"] = torch.cuda.get_device_name()
        bench.step("ceilings", ceilings)
        torch.backends.cudnn.benchmark = False

    def reference() -> dict[str, float]:
        model = TorchModel(bench.path, args.device, acoustic_precision="fp32", vocoder_precision="fp32")
        for row in judged:
            ((frames,), (samples,)) = speak(model, [row])
            exact.append((Frames(frames.durations, frames.features, frames.f0, frames.energy, frames.style), samples))
        bench.report["vocoder_gflop_per_audio_s"] = gflop_per_second(model, bench.uniform(1))
        torch.backends.cudnn.allow_tf32 = True  # as PyTorch comes
        return one_by_one(bench, model)

    bench.step("upstreams_way", reference)

    def variant(
        name: str, compilation: str, search: bool, acoustic: str, batches: Sequence[Sequence[Utterance]]
    ) -> None:
        torch.compiler.reset()
        torch.backends.cudnn.benchmark = search
        graphs = "full" if cuda else "off"
        model = TorchModel(
            bench.path, args.device, graphs, compilation=compilation, acoustic_precision=acoustic, cache=cache
        )  # type: ignore[arg-type]
        bench.step(f"{name}: capture", lambda: prepare(bench, model, batches))
        for rows in batches:
            bench.step(f"{name}: {len(rows)} x 5 s", lambda rows=rows: measure(bench, model, rows))
        if exact:
            frames, samples = speak(model, judged)
            bench.step(f"{name}: against fp32 alone", lambda: compared(list(zip(frames, samples, strict=True)), exact))

    head = [bench.uniform(bench.head), bench.uniform(1)]
    bench.step("plain kernels", lambda: variant("plain kernels", "off", False, "tf32", head))

    def main() -> dict[str, float]:
        torch.backends.cudnn.benchmark = False
        model = TorchModel(bench.path, args.device, "full" if cuda else "off", cache=cache)
        short = [bench.row(1, 0)]
        kinds = {"uniform": bench.uniform, "mixed": bench.mixed}
        batches = {f"{kind} {n}": make(n) for n in bench.batches for kind, make in kinds.items()} | {
            "one 1 s row": short
        }
        bench.step("capture", lambda: prepare(bench, model, list(batches.values())))
        measured: dict[str, dict[str, float]] = {}
        for name, rows in batches.items():
            bench.step(name, lambda rows=rows: measure(bench, model, rows))
            measured[name] = bench.report[name]
        bench.step("against fp32 alone", lambda: compared(list(zip(*speak(model, judged), strict=True)), exact))
        bench.step("cost", lambda: fit(measured))
        n_batches = 2 if args.tiny else 12
        for kind, make in kinds.items():
            bench.step(
                f"pipelined {kind} {bench.head}", lambda make=make: pipelined(model, make(bench.head), n_batches)
            )
        if cuda:
            top = measured[f"uniform {bench.head}"]
            work = bench.report["vocoder_gflop_per_audio_s"] * top["padded_frames"] / 40 / 1000  # TFLOP
            rate = work / (top["vocoder_ms"] / 1000)
            bench.report["vocoder_tflops"] = rate
            bench.report["share_of_matmul_ceiling"] = rate / bench.report["ceilings"]["fp16_tflops"]
        return {"speedup_over_upstreams_way": measured[f"uniform {bench.head}"]["audio_s_per_s"]
                / bench.report["upstreams_way"]["audio_s_per_s"]}  # fmt: skip

    bench.step("main", main)
    if cuda:
        bench.step("searched", lambda: variant("cuDNN search", "once", True, "tf32", head), needs_s=120)
        bench.step("exact", lambda: variant("acoustic in fp32", "once", False, "fp32", head), needs_s=100)
        bench.step("each", lambda: variant("compiled for each shape", "each", False, "tf32", head), needs_s=200)
    bench.say(f"done; {bench.args.out / 'gpu.json'}")


def export(args: argparse.Namespace) -> None:
    """The weights as fp16 in parts, and the voices of this benchmark."""
    args.to.mkdir(parents=True, exist_ok=True)
    archive = args.to / "kokoro.npz"
    weights.export(weights.read(args.weights), archive)
    data = archive.read_bytes()
    archive.unlink()
    for i, start in enumerate(range(0, len(data), PART_BYTES)):
        (args.to / f"kokoro.npz.{i}").write_bytes(data[start : start + PART_BYTES])
    for name in VOICES:
        (args.to / f"{name}.bin").write_bytes((args.voices / f"{name}.bin").read_bytes())


def joined(folder: Path, to: Path) -> Path:
    whole = folder / "kokoro.npz"
    if not whole.exists():
        whole.write_bytes(b"".join(part.read_bytes() for part in sorted(folder.glob("kokoro.npz.*"))))
    return whole


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    one = verbs.add_parser("export")
    one.set_defaults(act=export)
    one.add_argument("--weights", type=Path, required=True)
    one.add_argument("--voices", type=Path, required=True)
    one.add_argument("--to", type=Path, required=True)
    two = verbs.add_parser("run")
    two.set_defaults(act=run)
    two.add_argument("--weights", type=Path, required=True, help="the folder that export has filled")
    two.add_argument("--out", type=Path, required=True)
    two.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    two.add_argument("--tiny", action="store_true")
    two.add_argument("--cache", help="folder for compiled kernels")
    two.add_argument("--budget", type=float, default=520, help="seconds; steps that no longer fit are left out")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = arguments()
    chosen.act(chosen)
