"""How many devices a load needs, by simulation of one of them at its share of the load. Pure."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from tutti.batching.job import Key
from tutti.batching.policies import Deadline
from tutti.batching.scheduler import Limits, Scheduler
from tutti.engine.build import CAP
from tutti.engine.playback import Pacing, chunk_pace
from tutti.engine.stream import SAFETY_S
from tutti.errors import InvalidInput
from tutti.percentile import percentile
from tutti.plan.devices import DeviceCosts
from tutti.plan.simulation import MODEL, PER_S, SimulatedStream, Simulation
from tutti.plan.workload import CHARACTERS_PER_S, arrivals
from tutti.text.chunk import ChunkPace

N_STREAMS = 2000  # simulated for each answer; more is exacter, and takes longer
MAX_STREAMS = 8000  # at a high rate: so many that most of them are still being played when the last ones arrive
SETTLED = 0.1  # share of them that arrives before the queue has settled, and does not count
SHARE = 0.95  # of the requests that must start in time, and of those that must never run dry
MAX_BACKLOG_S = 0.4  # when the last request arrives; beyond it the queue grows with every minute
EXACT = 0.02  # of the number of devices; smaller takes longer
MAX_DEVICES = 1_000_000
OnStep = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Forecast:
    """How one device would do at this rate."""

    rate: float  # requests per second
    p50_s: float
    p95_s: float  # of the first audio; infinite if more than 5 % are refused
    busy: float  # share of the time in which the device has a batch
    refused: float  # share of the requests
    with_gaps: float  # share of the requests whose listener hears one
    backlog_s: float  # from the arrival of the last request to the end of all work

    def keeps(self, target_s: float, request_s: float) -> bool:
        """Whether requests start in time and are played without gaps, today and in an hour.

        `request_s`: what one of them takes alone. The busy share says nothing of that: a device that is never idle may
        only run smaller batches than it could.
        """
        backlog_s = max(MAX_BACKLOG_S, 2 * target_s, 4 * request_s)
        return self.p95_s <= target_s and self.with_gaps <= 1 - SHARE and self.backlog_s <= backlog_s


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """The devices that a load needs."""

    device: str
    rps: float
    seconds: float
    target_s: float
    n_devices: int
    forecast: Forecast  # of each of them

    def cost_per_million(self, price_per_hour: float) -> float:
        """Price of a million characters at this load."""
        characters_per_hour = 3600 * self.rps * self.seconds * CHARACTERS_PER_S
        return 1e6 * price_per_hour * self.n_devices / characters_per_hour

    def as_dict(self, price_per_hour: float | None) -> dict[str, Any]:
        each = {name: None if value == inf else value for name, value in asdict(self.forecast).items()}
        cost = None if price_per_hour is None else self.cost_per_million(price_per_hour)
        return {**asdict(self), "forecast": each, "cost_per_million_characters": cost}


def simulate(device: DeviceCosts, streams: list[SimulatedStream]) -> Simulation:
    """Run these streams on the device as a server would, with admission control; each then knows how it went."""
    simulation = Simulation(
        device, scheduler_of(device), safety_s=SAFETY_S, ahead=1 + Pacing().ahead, is_paced=False, fuses=True
    )
    simulation.run(streams)
    return simulation


def scheduler_of(device: DeviceCosts) -> Scheduler:
    """A scheduler as the server configures it for this device and target."""
    cap_s = CAP * device.target_s
    policy = Deadline(cap_s, can_prefetch=device.cores is None)
    return Scheduler(Limits(device.max_rows, cap_s=cap_s), device.cost, policy)


def forecast(device: DeviceCosts, rate: float, seconds: float, n_streams: int | None = None) -> Forecast:
    """How the device does with requests of about `seconds` of audio at this rate."""
    n_streams = n_streams or max(N_STREAMS, min(MAX_STREAMS, int(2 * rate * seconds)))
    streams = arrivals(rate, n_streams, seconds, pace_of(device))
    return outcome(device, rate, streams, simulate(device, streams))


def pace_of(device: DeviceCosts) -> ChunkPace:
    """How the engine would cut texts on this device."""
    return chunk_pace(scheduler_of(device), MODEL, device.target_s, 0.0, is_incremental=False)


def outcome(device: DeviceCosts, rate: float, streams: list[SimulatedStream], simulation: Simulation) -> Forecast:
    """What a simulation says, without the requests from before the queue had settled."""
    counted = streams[int(SETTLED * len(streams)) :]
    waits_s = sorted(stream.wait_s + device.overhead_s for stream in counted)
    end_s = max(streams[-1].arrived_s, simulation.free_s)
    return Forecast(
        rate,
        percentile(waits_s, 50) or 0.0,
        percentile(waits_s, 95) or 0.0,
        min(1.0, simulation.busy_s / end_s),
        sum(stream.rejected for stream in counted) / len(counted),
        sum(not stream.rejected and stream.dry_s > 1e-9 for stream in counted) / len(counted),
        end_s - streams[-1].arrived_s,
    )


def plan(
    device: DeviceCosts, rps: float, seconds: float, target_s: float, on_step: OnStep, headroom: float = 0.0
) -> CapacityPlan:
    """The fewest devices, each with an equal random share of the load, that serve 95 % in time and without gaps.

    `headroom`: the share of what they could serve that is left free; the forecast is that of the load itself.
    Raises InvalidInput if one request alone takes longer.
    """
    device = replace(device, target_s=target_s, _models={})
    request_s = _request_s(device, seconds)
    on_step("one request alone")
    alone = forecast(device, 0.01 / request_s, seconds, N_STREAMS // 10)
    if alone.p95_s > target_s:
        raise InvalidInput(
            f"one request alone takes {1000 * alone.p95_s:.0f} ms on {device.name}: no number of devices reaches "
            f"{1000 * target_s:.0f} ms; allow more time or choose a faster device",
            param="ttfa_ms",
        )
    most_rps = rps / (1 - headroom)

    def is_enough(n: int) -> bool:
        on_step(f"{n:,} devices" if n > 1 else "1 device")
        return forecast(device, most_rps / n, seconds).keeps(target_s, request_s)

    # Fewer could not even do the work in full batches.
    n = low = max(1, int(most_rps * _request_s(device, seconds, full=True)))
    while not is_enough(n):
        if n > MAX_DEVICES:
            raise InvalidInput(f"more than {MAX_DEVICES:,} devices would be needed", param="rps")
        low, n = n + 1, 2 * n
    high = n
    while high - low >= max(1, EXACT * high):
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle + 1
    return CapacityPlan(device.name, rps, seconds, target_s, high, forecast(device, rps / high, seconds))


def _request_s(device: DeviceCosts, seconds: float, *, full: bool = False) -> float:
    """Device seconds of a request in one row, alone or in full batches."""
    sizes = {stage: max(1, round(per_s * seconds)) for stage, per_s in PER_S.items()}
    if full:
        cap_s = CAP * device.target_s
        costs = {stage: device.cost(Key(MODEL, stage)) for stage in sizes}
        return sum(costs[stage].per_row(size, device.max_rows, cap_s, inf) for stage, size in sizes.items())
    return sum(device.seconds(stage, [size]) for stage, size in sizes.items())
