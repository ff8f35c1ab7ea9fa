"""One row on its way: what was asked for, how far it is, how it is cut where it sounds before its end is made."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tutti.batching.job import Job, Priority
from tutti.model.onnx.incremental.spans import CONTEXT_FRAMES, FIRST_FRAMES, MIN_FRAMES, split_spans
from tutti.model.onnx.incremental.statistics import first_span_overhead
from tutti.speech import SAMPLE_RATE, SAMPLES_PER_FRAME, Samples, Timing, Utterance
from tutti.worker.messages import FrameRange

FRAMES_PER_TOKEN = 2.9  # of speech at its own pace, before the durations are known
LEAST_GROWTH, MOST_GROWTH = 1.5, 3.0  # of stretches: each costs a little more than its frames, so they stay few
IN_HAND = 0.8  # of what a listener has to hear: the time in which the next stretch should be made
MOST = 100  # frames of a stretch, or more if those take no longer than a batch may: newcomers wait for it
FRAME_S = SAMPLES_PER_FRAME / SAMPLE_RATE


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """One row, who wants it and when."""

    utterance: Utterance
    checkpoint: str
    stream: int
    kind: Priority
    deadline_s: float
    caller: str = ""
    n_characters: int = 0
    early: bool = False  # its beginning may sound before its end is made
    opens: bool = False  # of its stream nothing was heard before

    @property
    def likely_frames(self) -> int:
        return round(FRAMES_PER_TOKEN * len(self.utterance.tokens) / self.utterance.speed)

    @property
    def first_frames(self) -> int:
        """Frames that the vocoder likely makes before anything of it is heard."""
        n_frames = self.likely_frames
        return FIRST_FRAMES + first_span_overhead(n_frames) if self.early and n_frames >= MIN_FRAMES else n_frames


@dataclass(frozen=True, slots=True, eq=False)
class Take:
    """What came of one row, or of its next stretch: a take, as it is called in a studio."""

    samples: Samples
    durations: NDArray[np.int64]  # of the whole row
    timing: Timing
    then: "asyncio.Future[Take] | None" = None  # the stretch that follows; cancelled, the rest is forgotten


@dataclass(slots=True, eq=False)
class Row:
    """A row between its arrival and its samples."""

    id: int
    ask: Ask
    answer: "asyncio.Future[Take]"
    job: Job | None = None  # its place in the line, or in the batch that runs
    durations: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    queue_s: float = 0.0
    acoustic_s: float = 0.0
    n_lost: int = 0
    spans: deque[FrameRange] = field(default_factory=deque)  # stretches that have not sounded
    plays_s: float = 0.0  # when its listener hears the first of them

    @property
    def n_frames(self) -> int:
        return int(self.durations.sum())

    @property
    def span(self) -> FrameRange | None:
        """The stretch that sounds next; none where that is the whole row."""
        return None if self.spans[0] == (0, self.n_frames) else self.spans[0]

    @property
    def n_worked(self) -> int:
        """Frames that the vocoder works through for the stretch that sounds next."""
        start, end = self.spans[0]
        if self.span is None:
            return self.n_frames
        return end - start + 2 * CONTEXT_FRAMES if start else end + first_span_overhead(self.n_frames)

    @property
    def heard_until_s(self) -> float | None:
        """When the stretch that sounds next must be there; none before the first."""
        start, _ = self.spans[0]
        return self.plays_s + start * FRAME_S if start else None

    def cut(self, whole_s: float, a_frame_s: float, cap_s: float, now: float) -> None:
        """In one piece, unless its listener waits for the first word or would hear a gap, or others would wait long.

        `whole_s`, `a_frame_s`: what the vocoder takes for the whole row, and for a frame of a long one.
        """
        most = max(MOST, cap_s / a_frame_s)
        late = now + whole_s > self.ask.deadline_s
        if self.ask.early and (self.ask.opens or late or self.n_frames > most):
            # Each may be so much longer than the last as to be ready when that one has been played.
            growth = min(max(FRAME_S / a_frame_s, LEAST_GROWTH), MOST_GROWTH)
            self.spans.extend(split_spans(self.n_frames, growth, most))
        else:
            self.spans.append((0, self.n_frames))

    def sounded(self, samples: Samples, a_frame_s: float, now: float) -> bool:
        """The next stretch begins where this one really ended, and is made while its listener hears what is there.

        False: there is none.
        """
        start, _ = self.spans.popleft()
        if not self.spans:
            return False
        if start == 0:
            self.plays_s = now if self.ask.opens else max(now, self.ask.deadline_s)
        start += len(samples) // SAMPLES_PER_FRAME
        _, end = self.spans.popleft()
        in_time = int(IN_HAND * (self.plays_s + start * FRAME_S - now) / a_frame_s) - 2 * CONTEXT_FRAMES
        middle = start + max(in_time, FIRST_FRAMES // 2)
        if end - middle >= FIRST_FRAMES // 2:
            self.spans.appendleft((middle, end))
            end = middle
        self.spans.appendleft((start, end))
        return True
