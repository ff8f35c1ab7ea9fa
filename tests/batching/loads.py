"""Ten loads for a simulated device: who asks for what and when, and what goes wrong. Plain values.

All times are whole microseconds and all draws are of `Random.random`, whose sequence Python guarantees, so that every
machine simulates the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal, TypeVar

Item = TypeVar("Item")
S = 1_000_000  # microseconds
Flaw = Literal["", "fails", "kills"]  # what a row of a text does: fail in the vocoder, or end the worker
PAUSE = "-"  # a sentence that is a pause
LETTERS = "aeioubdklmnprstvz"  # f and j tell a worker what a row does


@dataclass(frozen=True)
class Device:
    """Microseconds of a call, of a token and of a frame; `layout` says how rows lie in a pass."""

    name: str
    layout: Literal["padded", "regrouped", "side by side"]
    call: int
    token: int
    frame: int
    target: int  # until the first audio is due
    max_rows: int
    frames: int = 1_000_000  # that fit its memory
    cores: int = 1
    prefetches: bool = False
    overlaps: bool = False  # an acoustic batch runs beside one of the vocoder


@dataclass(frozen=True)
class Request:
    """One text, and what its client does with it."""

    at: int
    text: Sequence[str]  # sentences
    caller: str = "one"
    delivery: Literal["live", "whole", "bulk"] = "live"
    model: str = "kokoro"
    speed: float = 1.0
    max_start: int | None = None  # how long it may wait for its first audio
    leaves: int | None = None  # how long it listens at most
    takes: int | None = None  # pieces of audio after which it leaves
    reads_on: bool = True  # takes each piece at once; else when the one before it has been played
    writes: int | None = None  # the text is being written: from one sentence to the next
    has_arrived: int | None = None  # how long before the engine sees it


@dataclass(frozen=True)
class Load:
    device: Device
    requests: Sequence[Request]
    policy: str = "deadline"
    switches: Sequence[tuple[int, str]] = ()  # from when on another policy is used
    deaths: Sequence[tuple[int, int]] = ()  # when a worker dies by itself, and its number
    speeds: Sequence[tuple[int, int]] = ()  # from when on the device takes so many percent of its usual time
    workers: int = 1
    light: Sequence[str] = ()  # checkpoints that deliver spans
    models: Sequence[str] = ("kokoro",)
    timeout: int = 20 * S  # after which a client has left that does not say how long it waits
    max_waiting: int = 1000
    max_text: int | None = None  # letters in a batch
    max_frames: int | None = None  # in a batch
    reading: int = 900  # of the text front end for a chunk


@dataclass
class Draws:
    """Numbers at random, always the same."""

    seed: int
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)

    def number(self, low: int, high: int) -> int:
        return low + int(self._random.random() * (high - low + 1))

    def one_of(self, items: Sequence[Item]) -> Item:
        return items[self.number(0, len(items) - 1)]

    def is_in(self, percent: int) -> bool:
        return self.number(0, 99) < percent

    def sentence(self, length: int, flaw: Flaw = "") -> str:
        """About so many letters, in words."""
        words, left = [{"": "", "fails": "f", "kills": "j"}[flaw]], length
        while left > 0:
            words.append("".join(self.one_of(LETTERS) for _ in range(self.number(2, 9))))
            left -= len(words[-1]) + 1
        return " ".join(filter(None, words))

    def text(self, sentences: int, low: int = 20, high: int = 110) -> list[str]:
        return [self.sentence(self.number(low, high)) for _ in range(sentences)]

    def times(self, start: int, end: int, mean: int) -> list[int]:
        """Arrivals, so far apart on average."""
        found, at = [], start
        while (at := at + self.number(1, 2 * mean)) < end:
            found.append(at)
        return found


GPU = Device("GPU", "regrouped", 5_000, 40, 35, S // 5, 64, prefetches=True)
FAST = Device("GPU with overlap", "regrouped", 5_000, 40, 35, S // 5, 64, prefetches=True, overlaps=True)
SLOW = Device("slow GPU", "padded", 16_000, 80, 70, S // 5, 16, prefetches=True)
SLOW_BESIDE = Device("slow GPU with overlap", "padded", 16_000, 80, 70, S // 5, 12, prefetches=True, overlaps=True)
SMALL = Device("small GPU", "padded", 16_000, 80, 70, S // 5, 16, frames=1_700)
CPU = Device("CPU", "side by side", 11_000, 1_450, 5_300, 3 * S // 2, 4, cores=2)
CORES = Device("two cores", "side by side", 4_000, 1_450, 1_300, 3 * S // 2, 4, cores=2)


def crowd() -> Load:
    """Twice what an overlapping GPU can do: callers with and without patience, some of whom leave."""
    draws = Draws(1)
    requests = [
        Request(
            at,
            draws.text(draws.number(1, 4)),
            draws.one_of("aaaabcdefg"),
            max_start=draws.one_of([None, None, 0, S // 3, 2 * S, 9 * S]),
            leaves=draws.number(S // 20, 2 * S) if draws.is_in(15) else None,
            takes=1 if draws.is_in(8) else None,
            has_arrived=draws.number(0, S // 6) if draws.is_in(30) else None,
        )
        for at in draws.times(0, 4 * S, 10_500)
    ]
    return Load(FAST, requests, reading=9_000)


def texts() -> Load:
    """Long texts with look-ahead and pauses, texts that are being written, whole answers and bulk, on a GPU."""
    draws = Draws(2)
    requests = [
        Request(at, [part for sentence in draws.text(draws.number(9, 24)) for part in (sentence, PAUSE)], "reader")
        for at in draws.times(0, 3 * S, 300_000)
    ]
    requests += [
        Request(at, draws.text(draws.number(2, 9)), "writer", writes=draws.number(S // 20, S))
        for at in draws.times(0, 6 * S, 250_000)
    ]
    requests += [
        Request(at, draws.text(draws.number(3, 12)), "answer", "whole", speed=draws.one_of([0.5, 1.0, 1.25]))
        for at in draws.times(0, 6 * S, 300_000)
    ]
    requests += [Request(at, draws.text(20), "bulk", "bulk") for at in draws.times(0, 2 * S, 300_000)]
    requests += [
        Request(at, draws.text(draws.number(1, 3)), draws.one_of("xyz"), reads_on=draws.is_in(50))
        for at in draws.times(0, 8 * S, 60_000)
    ]
    return Load(GPU, requests, max_text=2_000)


def deaths() -> Load:
    """The worker of an overlapping GPU dies, rows kill it, others fail, and two checkpoints share it."""
    draws = Draws(3)
    requests = []
    for number, at in enumerate(draws.times(0, 6 * S, 22_000)):
        text = draws.text(draws.number(1, 4))
        if number % 90 == 40:
            text[-1] = draws.sentence(40, "kills")
        elif number % 24 == 10:
            text[draws.number(0, len(text) - 1)] = draws.sentence(50, "fails")
        model, leaves = draws.one_of(["kokoro", "kokoro", "other"]), draws.number(1, S) if draws.is_in(10) else None
        requests.append(Request(at, text, draws.one_of("abcd"), model=model, leaves=leaves))
    died = [(at, 0) for at in (411_111, 1_300_007, 1_300_507, 3_700_001)]
    return Load(FAST, requests, deaths=died, models=("kokoro", "other"))


def slower() -> Load:
    """A slow GPU takes four times as long for a while: what was accepted becomes late, and some streams hopeless."""
    draws = Draws(4)
    requests = [
        Request(
            at,
            draws.text(draws.number(1, 2)),
            draws.one_of("abcdefgh"),
            draws.one_of(["live", "live", "live", "whole"]),  # type: ignore[arg-type]
            max_start=draws.one_of([None, None, S, 3 * S, 4 * S]),
        )
        for at in draws.times(0, 12 * S, 26_000)
    ]
    return Load(SLOW, requests, speeds=[(3 * S, 400), (7 * S, 90), (10 * S, 180)], timeout=6 * S)


def spans() -> Load:
    """Listeners of a light vocoder on two cores: spans, look-ahead that nobody takes, and a caller that crowds."""
    draws = Draws(5)
    requests = [Request(at, draws.text(6), "crowd", model="light") for at in draws.times(0, S, 90_000)]
    requests += [
        Request(
            at,
            draws.text(draws.number(1, 3), 20, 150),
            draws.one_of("abcdefgh"),
            model="light",
            max_start=draws.one_of([None, S, 10 * S]),
            leaves=draws.number(S // 4, 4 * S) if draws.is_in(20) else None,
            takes=draws.number(1, 3) if draws.is_in(15) else None,
            reads_on=draws.is_in(60),
            writes=draws.number(S // 4, S) if draws.is_in(15) else None,
        )
        for at in draws.times(0, 90 * S, 700_000)
    ]
    return Load(CORES, requests, light=("light",), models=("light",), deaths=[(39 * S + 77, 0)])


def cores() -> Load:
    """The exact vocoder on a processor, with a greedy caller, bulk work and patient clients, which becomes slower."""
    draws = Draws(6)
    requests = [Request(at, draws.text(3), "greedy", max_start=60 * S) for at in draws.times(0, 60 * S, 2_500_000)]
    requests += [Request(at, draws.text(4), "bulk", "bulk") for at in draws.times(0, 9 * S, 1_500_000)]
    requests += [
        Request(
            at,
            draws.text(draws.number(1, 3), 15, 60),
            draws.one_of("abcde"),
            max_start=draws.one_of([None, None, 40 * S]),
            reads_on=draws.is_in(50),
        )
        for at in draws.times(S, 240 * S, 2_000_000)
    ]
    return Load(CPU, requests, timeout=60 * S, speeds=[(90 * S, 140)], max_waiting=60)


def arrival() -> Load:
    """`fifo` on a GPU with little memory and a short queue, on which rows fail and the worker dies."""
    draws = Draws(7)
    requests = []
    for number, at in enumerate(draws.times(0, 13 * S, 60_000)):
        text = draws.text(draws.number(1, 4))
        if number % 20 == 7:
            text[0] = draws.sentence(30, "fails")
        delivery = draws.one_of(["live", "live", "whole", "bulk"])
        leaves = draws.number(1, 2 * S) if draws.is_in(20) else None
        requests.append(Request(at, text, draws.one_of("abc"), delivery, leaves=leaves))  # type: ignore[arg-type]
    return Load(SMALL, requests, "fifo", deaths=[(2_500_003, 0), (5_100_009, 0)], max_waiting=36, max_frames=2_000)


def window() -> Load:
    """`window` on two GPU workers with two checkpoints."""
    draws = Draws(8)
    requests = [
        Request(
            at,
            draws.text(draws.number(1, 5)),
            draws.one_of("abc"),
            model=draws.one_of(["kokoro", "other"]),
            writes=draws.number(1, S // 2) if draws.is_in(20) else None,
            leaves=draws.number(1, 2 * S) if draws.is_in(10) else None,
        )
        for at in draws.times(0, 7 * S, 35_000)
    ]
    return Load(GPU, requests, "window", models=("kokoro", "other"), workers=2, deaths=[(3 * S + 1, 1)])


def bypass() -> Load:
    """`bypass` on a processor, with texts that are being written and spans."""
    draws = Draws(9)
    requests = [
        Request(
            at,
            draws.text(draws.number(1, 5)),
            draws.one_of("abc"),
            draws.one_of(["live", "live", "whole"]),  # type: ignore[arg-type]
            model=draws.one_of(["light", "light", "kokoro"]),
            writes=draws.number(1, S) if draws.is_in(30) else None,
            leaves=draws.number(1, 3 * S) if draws.is_in(10) else None,
        )
        for at in draws.times(0, 90 * S, 1_700_000)
    ]
    return Load(CPU, requests, "bypass", models=("light", "kokoro"), light=("light",))


def switched() -> Load:
    """The operator tries one policy after another on a slow GPU that overlaps, while the worker dies."""
    draws = Draws(10)
    requests = []
    for number, at in enumerate(draws.times(0, 12 * S, 75_000)):
        text = draws.text(draws.number(1, 4))
        if number % 40 == 17:
            text[0] = draws.sentence(60, "fails")
        delivery = draws.one_of(["live", "live", "live", "whole", "bulk"])
        max_start, leaves = draws.one_of([None, S, 5 * S]), draws.number(1, 2 * S) if draws.is_in(10) else None
        model = draws.one_of(["kokoro", "light"])
        requests.append(Request(at, text, draws.one_of("abcd"), delivery, model, 1.0, max_start, leaves))  # type: ignore[arg-type]
    switches = [
        (at * S, name) for at, name in ((2, "bypass"), (4, "deadline"), (6, "fifo"), (7, "window"), (9, "deadline"))
    ]
    died = [(3_100_003, 0), (6_500_001, 0), (9_900_007, 0)]
    return Load(SLOW_BESIDE, requests, switches=switches, deaths=died, models=("kokoro", "light"), light=("light",))


LOADS = {
    load.__name__: load for load in (crowd, texts, deaths, slower, spans, cores, arrival, window, bypass, switched)
}
