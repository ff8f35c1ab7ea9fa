"""Load for any server with OpenAI's speech route, heard by simulated players."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from tutti.client.audio import SAMPLE_BYTES, SAMPLE_RATE
from tutti.client.call_stats import Clock, Summary, summary
from tutti.errors import TuttiError

if TYPE_CHECKING:
    from tutti.client.async_client import AsyncClient
    from tutti.client.request import Wishes

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
class Heard:
    """One request as its listener lived it, counted from when it was due."""

    first_s: float | None = None
    total_s: float | None = None
    audio_s: float = 0.0
    stalls: int = 0
    stalled_s: float = 0.0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """What many listeners lived."""

    requests: int
    errors: dict[str, int]
    took_s: float
    requests_per_s: float
    audio_per_s: float  # seconds of speech made each second
    first_s: Summary
    total_s: Summary
    listeners_stalled: int
    stalled_s: float
    firsts: tuple[float, ...]  # sorted, for a histogram


def played(arrivals: Sequence[tuple[float, float]]) -> tuple[int, float]:
    """How often and how long a player stood still that began with the first audio: (when it came, seconds of it)."""
    stalls, stalled_s = 0, 0.0
    dry_at = arrivals[0][0] if arrivals else 0.0  # when the buffer is empty
    for came_at, audio_s in arrivals:
        if came_at > dry_at:
            stalls, stalled_s = stalls + 1, stalled_s + came_at - dry_at
            dry_at = came_at
        dry_at += audio_s
    return stalls, stalled_s


Speak = Callable[[str, float], Awaitable[Heard]]  # a text, and when it was due


def listener(client: "AsyncClient", clock: Clock, **wishes: Unpack["Wishes"]) -> Speak:
    """A player for each text. Only where bytes are samples does it know how much it has and when it stands still."""
    samples = wishes.get("format", "pcm") in ("pcm", "wav")

    async def speak(text: str, due: float) -> Heard:
        arrivals: list[tuple[float, float]] = []
        try:
            async with client.stream(text, words=False, **wishes) as stream:
                while pieces := await stream.batch():
                    n_bytes = sum(len(piece.audio) for piece in pieces)
                    arrivals.append((clock() - due, samples * n_bytes / SAMPLE_BYTES / SAMPLE_RATE))
        except TuttiError as error:
            return Heard(error=error.code)
        if not arrivals:
            return Heard(error="no_audio")
        stalls, stalled_s = played(arrivals) if samples else (0, 0.0)
        return Heard(arrivals[0][0], clock() - due, sum(s for _, s in arrivals), stalls, stalled_s)

    return speak


async def closed_loop(speak: Speak, texts: Sequence[str], n: int, concurrency: int, clock: Clock) -> list[Heard]:
    """So many listeners, each of whom asks again when the last answer has ended."""
    waiting = iter([texts[at % len(texts)] for at in range(n)])
    heard: list[Heard] = []

    async def one() -> None:
        for text in waiting:
            heard.append(await speak(text, clock()))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, n)):
            group.create_task(one())
    return heard


async def open_loop(
    speak: Speak, texts: Sequence[str], n: int, rate: float, clock: Clock, seed: int = 0
) -> list[Heard]:
    """Listeners come by chance, so many a second, whether or not the server keeps up. Their wait counts from then."""
    chance = random.Random(seed)
    due = clock()
    async with asyncio.TaskGroup() as group:
        tasks = []
        for at in range(n):
            due += chance.expovariate(rate)
            await asyncio.sleep(max(0.0, due - clock()))
            tasks.append(group.create_task(_spoken(speak, texts[at % len(texts)], due)))
    return [task.result() for task in tasks]


async def _spoken(speak: Speak, text: str, due: float) -> Heard:
    return await speak(text, due)


def load(heard: Sequence[Heard], took_s: float) -> Load:
    right = [one for one in heard if one.error is None]
    firsts = tuple(sorted(one.first_s for one in right if one.first_s is not None))
    return Load(
        len(heard),
        dict(Counter(one.error for one in heard if one.error)),
        took_s,
        len(right) / took_s if took_s else 0.0,
        sum(one.audio_s for one in right) / took_s if took_s else 0.0,
        summary(firsts),
        summary([one.total_s for one in right]),
        sum(one.stalls > 0 for one in right),
        sum(one.stalled_s for one in right),
        firsts,
    )


def bins(ordered: Sequence[float], n: int) -> list[tuple[float, float, int]]:
    """(from, to, how many) over n equal steps from the least to the most."""
    if not ordered:
        return []
    least, most = ordered[0], ordered[-1]
    step = (most - least) / n
    if step == 0:
        return [(least, most, len(ordered))]
    counts = Counter(min(int((seconds - least) / step), n - 1) for seconds in ordered)
    return [(least + step * at, least + step * (at + 1), counts[at]) for at in range(n)]
