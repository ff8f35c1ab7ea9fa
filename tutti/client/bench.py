"""Load generator for any server with OpenAI's speech route: simulated listeners that play what they receive."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from tutti.client.audio import SAMPLE_BYTES, SAMPLE_RATE
from tutti.client.call_stats import Call, Clock, Summary, summarise
from tutti.errors import QueueFull, TuttiError

if TYPE_CHECKING:
    from tutti.client.async_client import AsyncClient
    from tutti.client.request import SpeechOptions

TEXTS = (
    "Good morning.",
    "The train to the coast leaves in four minutes from platform nine.",
    "Yes, I can do that for you.",
    "Three things are needed for a good loaf of bread: time, warm hands, and the patience to leave the dough alone.",
    "Turn left at the lights, then keep to the right-hand lane.",
    "Rain is expected in the afternoon. Take an umbrella if you go out, and remember that the bridge is closed today.",
    "Your order has been sent.",
    "She closed the book, looked out over the harbour for a while, and then began to tell the story from its very end.",
)


@dataclass(frozen=True, slots=True)
class RequestResult:
    """One request as its listener experienced it, further attempts included; times count from when it was due."""

    first_s: float | None = None
    total_s: float | None = None
    audio_s: float = 0.0
    stalls: int = 0
    stalled_s: float = 0.0
    error: str | None = None  # error code
    message: str = ""  # of the error
    is_refused: bool = False  # the error says that the server has no room now
    waits: int = 0  # further attempts, each after a wait


@dataclass(frozen=True, slots=True)
class LoadResult:
    """All requests of a run."""

    requests: int
    refusals: dict[str, int]  # by error code: the server had no room, also after the waits
    errors: dict[str, int]  # by error code: everything else that failed
    waits: int  # before further attempts
    took_s: float
    requests_per_s: float
    audio_per_s: float  # seconds of speech per second
    first_s: Summary
    total_s: Summary
    listeners_stalled: int
    stalled_s: float
    firsts: tuple[float, ...]  # every first_s, sorted, for the histogram
    messages: dict[str, str]  # by error code, one message as an example

    @property
    def n_without_audio(self) -> int:
        return sum(self.refusals.values()) + sum(self.errors.values())


def playback_stalls(arrivals: Sequence[tuple[float, float]]) -> tuple[int, float]:
    """Return number and seconds of the gaps of a player that starts with the first of (arrival time, audio_s)."""
    stalls, stalled_s = 0, 0.0
    empty_at = arrivals[0][0] if arrivals else 0.0  # when the buffer runs out
    for arrived_at, audio_s in arrivals:
        if arrived_at > empty_at:
            stalls, stalled_s = stalls + 1, stalled_s + arrived_at - empty_at
            empty_at = arrived_at
        empty_at += audio_s
    return stalls, stalled_s


Speak = Callable[[str, float], Coroutine[Any, Any, RequestResult]]  # a text, and when it was due


def listener(client: "AsyncClient", clock: Clock, **options: Unpack["SpeechOptions"]) -> Speak:
    """Return a function that requests a text and plays it. Gaps are known only if bytes are samples: PCM and WAV."""
    samples = options.get("format", "pcm") in ("pcm", "wav")

    async def speak(text: str, due: float) -> RequestResult:
        arrivals: list[tuple[float, float]] = []
        stream = client.stream(text, words=False, **options)
        try:
            async with stream:
                while pieces := await stream.batch():
                    n_bytes = sum(len(piece.audio) for piece in pieces)
                    arrivals.append((clock() - due, samples * n_bytes / SAMPLE_BYTES / SAMPLE_RATE))
        except TuttiError as error:
            is_refused = error.status == 429 or isinstance(error, QueueFull)
            return RequestResult(
                error=error.code, message=error.message, is_refused=is_refused, waits=_waits(stream.call)
            )
        if not arrivals:
            return RequestResult(error="no_audio", message="the server answered without audio")
        stalls, stalled_s = playback_stalls(arrivals) if samples else (0, 0.0)
        audio_s = sum(s for _, s in arrivals)
        return RequestResult(arrivals[0][0], clock() - due, audio_s, stalls, stalled_s, waits=_waits(stream.call))

    return speak


def _waits(call: Call) -> int:
    return max(0, call.attempts - 1)


async def warm_up(client: "AsyncClient", text: str, **options: Unpack["SpeechOptions"]) -> None:
    """Send one request that is not measured; raise if there is no speech server. A busy server may refuse it."""
    try:
        async with client.stream(text, words=False, **options) as stream:
            while await stream.batch():
                pass
    except TuttiError as error:
        if error.status != 429:
            raise


async def closed_loop(
    speak: Speak, texts: Sequence[str], n: int, concurrency: int, clock: Clock
) -> list[RequestResult]:
    """Run `concurrency` listeners; each sends its next request when its last response has ended."""
    pending = iter([texts[at % len(texts)] for at in range(n)])
    results: list[RequestResult] = []

    async def listen() -> None:
        for text in pending:
            results.append(await speak(text, clock()))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, n)):
            group.create_task(listen())
    return results


async def open_loop(
    speak: Speak, texts: Sequence[str], n: int, rate: float, clock: Clock, seed: int = 0
) -> list[RequestResult]:
    """Send requests as a Poisson process of `rate` per second, whether or not the server keeps up."""
    rng = random.Random(seed)
    due = clock()
    async with asyncio.TaskGroup() as group:
        tasks = []
        for at in range(n):
            due += rng.expovariate(rate)
            await asyncio.sleep(max(0.0, due - clock()))
            tasks.append(group.create_task(speak(texts[at % len(texts)], due)))
    return [task.result() for task in tasks]


def summarise_load(results: Sequence[RequestResult], took_s: float) -> LoadResult:
    """Summarise a run that took `took_s` seconds; refused and failed requests count as such only."""
    good = [result for result in results if result.error is None]
    firsts = tuple(sorted(result.first_s for result in good if result.first_s is not None))
    return LoadResult(
        len(results),
        dict(Counter(result.error for result in results if result.error and result.is_refused)),
        dict(Counter(result.error for result in results if result.error and not result.is_refused)),
        sum(result.waits for result in results),
        took_s,
        len(good) / took_s if took_s else 0.0,
        sum(result.audio_s for result in good) / took_s if took_s else 0.0,
        summarise(firsts),
        summarise([result.total_s for result in good]),
        sum(result.stalls > 0 for result in good),
        sum(result.stalled_s for result in good),
        firsts,
        {result.error: result.message for result in reversed(results) if result.error},
    )


def histogram(ordered: Sequence[float], n: int) -> list[tuple[float, float, int]]:
    """Return (from, to, count) of n equal bins between the smallest and the largest value."""
    if not ordered:
        return []
    low, high = ordered[0], ordered[-1]
    step = (high - low) / n
    if step == 0:
        return [(low, high, len(ordered))]
    counts = Counter(min(int((value - low) / step), n - 1) for value in ordered)
    return [(low + step * at, low + step * (at + 1), counts[at]) for at in range(n)]
