"""Run the real scheduler on a virtual clock: capacity of each policy, overload and fairness of `deadline`.

python -m benchmarks.simulate                   5 minutes; writes benchmarks/results/policies-simulated.json
python -m benchmarks.simulate --seconds 20     3 minutes, less exact
python -m benchmarks.simulate --only "50 ms" --only deadline --device GPU-like       these capacities, beside the others

A stream is good if its first audio comes within the target and its player never runs dry; a rejected one is not good.
Capacity: the highest rate of new streams (Poisson) of which at least 99 % are good, without admission control. Every
policy but `deadline`, which takes the most rows of the device, runs with 4, 32 and the most rows.
Overload: `deadline` with admission control at twice its capacity; then at twice and four times, with streams that may
start late (`max_start_s`, the default of the server): served means spoken to the end within that patience.
Fairness: one caller sends nine tenths of the streams, more than the device can serve; the nine others share the rest.
Newcomer: one caller opens 64 streams of six minutes at once and four a second from then on; another one asks for two
chunks every three seconds.
"""

import itertools
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import progress
from tutti.batching.cost import CostModel
from tutti.batching.job import Key, StageName
from tutti.batching.layout import SideBySide
from tutti.batching.policies import Bypass, Deadline, Fifo, Policy, Window
from tutti.batching.scheduler import Limits, Scheduler
from tutti.plan.simulation import PER_S, Padded, SimulatedStream, Simulation

RESULTS = Path(__file__).parent / "results" / "policies-simulated.json"
PART: dict[StageName, float] = {"acoustic": 0.3, "vocoder": 0.7}  # share of the cost of a row


@dataclass(frozen=True, slots=True)
class Device:
    """A device described by two numbers: each stage takes its part of base + slope * seconds of audio with padding."""

    name: str
    base_s: float
    per_audio_s: float
    target_s: float  # to first audio
    lanes: int | None = None  # rows side by side instead of padded
    max_rows: int = 64

    def seconds(self, stage: StageName, sizes: Sequence[int]) -> float:
        audio = sum(sizes) if self.lanes else len(sizes) * max(sizes)
        return PART[stage] * (self.base_s + self.per_audio_s * audio / PER_S[stage])

    def cost(self, key: Key) -> CostModel:
        """The cost model after a warm-up sweep on this device."""
        cost = CostModel(SideBySide(self.lanes) if self.lanes else Padded(), (0.01, 0.0, 1e-5, 1e-5))
        sweep = [[PER_S[key.stage] * s] * rows for s in (1, 3, 10) for rows in (1, 2, 4, 8)]
        cost.seed((sizes, self.seconds(key.stage, sizes)) for sizes in sweep)
        return cost


DEVICES = (
    Device("GPU-like, 15 ms + 0.8 ms/s", 0.015, 0.0008, 0.2),
    Device("slow GPU, 40 + 4", 0.040, 0.004, 0.2),
    Device("CPU, 80 + 60", 0.080, 0.060, 1.5, lanes=1, max_rows=8),
)
UNFAIR = ((100.0, 6000), (20.0, 4000), (2.0, 3000))  # for each device: streams per second, streams; 2-3 x its capacity
SETTLED_S = 20.0  # until the fair shares know how much each caller uses


def random_chunks(rng: random.Random) -> list[float]:
    """Chunks of one text in seconds: a short first one, then a geometric number of longer ones."""
    chunks = [rng.uniform(1.5, 3.5)]
    while rng.random() < 0.75:
        chunks.append(rng.uniform(3.0, 10.0))
    return chunks


AUDIO_S = 2.5 + 3 * 6.5  # their mean sum


def poisson(
    rate: float, n: int, seed: int = 1, chunks: Callable[[random.Random], list[float]] = random_chunks
) -> list[SimulatedStream]:
    """Streams that arrive at random at this rate."""
    rng = random.Random(seed)
    times = itertools.accumulate(rng.expovariate(rate) for _ in range(n))
    return [SimulatedStream(i, at, chunks(rng)) for i, at in enumerate(times)]


def scheduler(
    device: Device,
    policy: Policy,
    max_rows: int | None = None,
    max_waiting: int = 100_000,
    max_start_s: float | None = 0.0,
) -> Scheduler:
    """A scheduler as the server configures it; by default it refuses every stream that could not start in time."""
    limits = Limits(
        max_rows or device.max_rows, max_waiting=max_waiting, cap_s=0.4 * device.target_s, max_start_s=max_start_s
    )
    return Scheduler(limits, device.cost, policy)


def deadline(device: Device) -> Policy:
    """The default policy, configured as the server does."""
    return Deadline(0.4 * device.target_s)


def policies(device: Device) -> Iterator[tuple[str, Policy, int]]:
    """Name, policy and row limit: every policy with every setting that an operator might choose."""
    for rows, name in ((4, "4 rows"), (32, "32 rows"), (device.max_rows, "most rows")):
        for wait_ms in (10, 50):
            window = {"max_wait_s": wait_ms / 1000, "early_rows": max(1, int(0.8 * rows))}
            yield f"window {wait_ms} ms, {name}", Window(**window), rows
            yield f"bypass, window {wait_ms} ms, {name}", Bypass(**window), rows
        yield f"fifo, {name}", Fifo(), rows
    yield "deadline without cap", Deadline(), device.max_rows
    yield "deadline", deadline(device), device.max_rows


def good_share(device: Device, streams: Sequence[SimulatedStream]) -> float:
    return sum(stream.good(device.target_s) for stream in streams) / len(streams)


def is_served(device: Device, policy: Policy, rows: int, rate: float, seconds: float) -> bool:
    """Whether 99 % of the streams at this rate are good without admission control."""
    streams = poisson(rate, max(300, int(rate * seconds)))
    Simulation(device, scheduler(device, policy, rows), admission=False).run(streams)
    return good_share(device, streams) >= 0.99


def capacity(device: Device, policy: Policy, rows: int, seconds: float) -> float:
    """The highest rate, to 3 %, that is served; 0 if it is below a fiftieth of what the device computes."""
    high = 1.0 / (device.per_audio_s * AUDIO_S)  # if batches had no fixed cost and no padding
    low = high / 50
    if not is_served(device, policy, rows, low, seconds):
        return 0.0
    while high > 1.03 * low:
        middle = sqrt(low * high)
        if is_served(device, policy, rows, middle, seconds):
            low = middle
        else:
            high = middle
    return low


def overload(device: Device, rate: float, seconds: float) -> dict[str, float]:
    """The `deadline` policy with admission control at more than its capacity."""
    streams = poisson(rate, max(1000, int(rate * seconds)), seed=7)
    Simulation(device, scheduler(device, deadline(device))).run(streams)
    accepted = [stream for stream in streams if not stream.rejected]
    share_good = good_share(device, accepted)
    return {
        "offered_per_s": rate,
        "accepted": len(accepted) / len(streams),
        "good_of_accepted": share_good,
        "good_per_s": share_good * len(accepted) / streams[-1].arrived_s,
    }


def late_overload(device: Device, rate: float, seconds: float) -> dict[str, float]:
    """The same with streams that may start late, as is the default of the server."""
    streams = poisson(rate, max(1000, int(rate * seconds)), seed=7)
    Simulation(device, scheduler(device, deadline(device), max_start_s=None)).run(streams)
    served = [stream for stream in streams if not stream.rejected and stream.done_s < inf]
    waits_s = sorted(stream.wait_s for stream in served)
    return {
        "served_per_s": len(served) / streams[-1].arrived_s,
        "p95_wait_s": waits_s[int(0.95 * len(waits_s))],
        "without_gap": sum(stream.dry_s <= 1e-9 for stream in served) / len(served),
    }


def fairness(device: Device, rate: float, n: int) -> dict[str, float]:
    """Wait of nine callers for their first audio, beside a greedy caller with nine tenths of the streams, and alone."""
    result = {"offered_per_s": rate}
    for case, has_greedy in (("alone", False), ("beside", True)):
        streams, rng = poisson(rate, n, seed=3), random.Random(5)
        for stream in streams:
            stream.caller = "greedy" if rng.random() < 0.9 else f"other {rng.randrange(9)}"
        streams = [stream for stream in streams if has_greedy or stream.caller != "greedy"]
        Simulation(device, scheduler(device, deadline(device))).run(streams)
        others = [stream for stream in streams if stream.caller != "greedy" and stream.arrived_s > SETTLED_S]
        waits_ms = sorted(1000 * stream.wait_s for stream in others if not stream.rejected)
        result[f"p99_ms_{case}"] = waits_ms[int(0.99 * len(waits_ms))]
        result[f"rejected_{case}"] = sum(stream.rejected for stream in others)
    return result | {"ratio": result["p99_ms_beside"] / result["p99_ms_alone"]}


def newcomer(device: Device) -> dict[str, float]:
    """Wait of a caller that has no stream, beside one that has all it can get and asks for more all the time."""
    asked_s = [*(0.001 * n for n in range(64)), *(1.0 + 0.25 * n for n in range(240))]
    busy = [SimulatedStream(i, at, [2.0, *[6.5] * 55], caller="busy") for i, at in enumerate(asked_s)]
    new = [SimulatedStream(1000 + i, 5.0 + 3.0 * i, [2.5, 6.0], caller="new") for i in range(18)]
    limits = Limits(device.max_rows, cap_s=0.4 * device.target_s, timeout_s=60.0)
    simulation = Simulation(device, Scheduler(limits, device.cost, deadline(device)), ahead=3, is_paced=False)
    simulation.run([*busy, *new], until_s=90.0)
    served = [stream for stream in new if stream.done_s < inf]
    return {
        "served": len(served) / len(new),
        "longest_wait_s": max((stream.wait_s for stream in served), default=inf),
        "busy_accepted": sum(not stream.rejected for stream in busy),
        "busy_gap_s": sum(stream.dry_s for stream in busy if not stream.rejected),
    }


def print_table(console: Console, title: str, rows: Mapping[str, Mapping[str, float]]) -> None:
    """Print named rows of one value for each device."""
    table = Table("", *(device.name for device in DEVICES), title=title)
    for name, values in rows.items():
        table.add_row(name, *(f"{values[device.name]:.3g}" for device in DEVICES))
    console.print(table)


def update_capacities(seconds: float, only: Sequence[str], device_name: str, out: Path) -> None:
    """Simulate the capacities whose policy has one of these words in its name, and leave the rest of the file."""
    report = json.loads(out.read_text("utf-8"))
    wanted = [
        (device, each)
        for device in DEVICES
        for each in policies(device)
        if device_name in device.name and any(words in each[0] for words in only)
    ]
    with progress(len(wanted)) as step:
        for device, (name, policy, rows) in wanted:
            step(f"{device.name}: {name}")
            found = capacity(device, policy, rows, seconds)
            report["capacity"].setdefault(name, {})[device.name] = found
            print(f"{device.name}: {name}: {found:.3g} streams per second", flush=True)
    out.write_text(json.dumps(report, indent=1) + "\n")


def main(
    seconds: Annotated[float, typer.Option(help="Seconds of arrivals in each simulated run.")] = 90.0,
    out: Annotated[Path, typer.Option(help="Result file.")] = RESULTS,
    only: Annotated[list[str] | None, typer.Option(help="Words of the policies whose capacity is simulated.")] = None,
    only_device: Annotated[str, typer.Option("--device", help="With --only: a word of its name.")] = "",
) -> None:
    """Print capacity, overload and fairness, and write them to a file."""
    if only:
        update_capacities(seconds, only, only_device, out)
        return
    capacities: defaultdict[str, dict[str, float]] = defaultdict(dict)  # by policy, then by device
    overloads: defaultdict[str, dict[str, float]] = defaultdict(dict)  # by measure, then by device
    patient: defaultdict[str, dict[str, float]] = defaultdict(dict)
    shares: defaultdict[str, dict[str, float]] = defaultdict(dict)
    newcomers: defaultdict[str, dict[str, float]] = defaultdict(dict)
    with progress(sum(len(list(policies(device))) + 5 for device in DEVICES)) as step:
        for device, unfair in zip(DEVICES, UNFAIR, strict=True):
            for name, policy, rows in policies(device):
                step(f"{device.name}: {name}")
                capacities[name][device.name] = capacity(device, policy, rows, seconds)
            step(f"{device.name}: overload")
            for name, value in overload(device, 2 * capacities["deadline"][device.name], seconds).items():
                overloads[name][device.name] = value
            for factor in (2, 4):
                step(f"{device.name}: {factor} times its capacity, patient")
                rate = factor * capacities["deadline"][device.name]
                for name, value in late_overload(device, rate, seconds).items():
                    patient[f"{factor} x: {name}"][device.name] = value
            step(f"{device.name}: fairness")
            for name, value in fairness(device, *unfair).items():
                shares[name][device.name] = value
            step(f"{device.name}: newcomer")
            for name, value in newcomer(device).items():
                newcomers[name][device.name] = value
    console = Console()
    print_table(console, "capacity: streams per second, 99 % of them good", capacities)
    print_table(console, "overload: deadline at twice its capacity, with admission control", overloads)
    print_table(console, "overload: the same with streams that may start late", patient)
    print_table(console, "fairness: nine callers beside a greedy one, and alone", shares)
    print_table(console, "newcomer: a caller without a stream beside one with many long ones", newcomers)
    report = {
        "seconds": seconds, "capacity": capacities, "overload": overloads, "patient": patient, "fairness": shares,
        "newcomer": newcomers,
    }  # fmt: skip
    out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
