"""Under overload the quick test at the door refuses nearly all that must be refused: a text that is read costs more."""

from random import Random

import pytest

from tests.batching.fakes import VOCODER, new_scheduler
from tutti.admission.refusals import Asking
from tutti.batching.job import Batch, Job, Key
from tutti.batching.scheduler import SENTENCE, SENTENCE_S, Scheduler
from tutti.errors import QueueFull

ACOUSTIC = Key("kokoro", "acoustic")
TARGET_S = 0.2


class Server:
    """A device that takes the predicted time, and streams of sentences whose listeners play at once."""

    def __init__(self) -> None:
        self.scheduler: Scheduler = new_scheduler(cost=(0.02, 0.0, 1e-4, 0.0), max_start_s=2.0, max_waiting=5000)
        self.running: tuple[Batch, float] | None = None
        self.n_left: dict[int, int] = {}  # sentences of each stream that were not spoken
        self.next_due_s: dict[int, float] = {}

    def passes_the_door(self, now: float) -> bool:
        try:
            self.scheduler.check_wait(Asking("kokoro", ""), TARGET_S, now)
        except QueueFull:
            return False
        return True

    def accepts(self, stream: int, n_sentences: int, now: float) -> bool:
        self.scheduler.streams.opened(stream, "")
        job = self._sentence(stream, n_sentences - 1, now + TARGET_S, is_first=True)
        try:
            self.scheduler.admit(job, now)
        except QueueFull:
            self.scheduler.stream_ended(stream)
            return False
        self.scheduler.add(job, now)
        self.n_left[stream] = n_sentences
        return True

    def run_until(self, end_s: float) -> None:
        """Run all batches that end before this time."""
        while self.running and self.running[1] < end_s:
            batch, now = self.running
            self.scheduler.ended(batch)
            self.scheduler.finished(batch, batch.predicted_s, now)
            for job in batch.jobs:
                self._advance(job, now)
            self.running = None
            self.start(now)

    def start(self, now: float) -> None:
        if self.running is None and (batch := self.scheduler.next_batch(now)):
            self.running = batch, now + batch.predicted_s

    def _sentence(self, stream: int, n_remaining: int, deadline_s: float, *, is_first: bool = False) -> Job:
        later_s = self.scheduler.predict(VOCODER, SENTENCE["vocoder"])
        priority = "first" if is_first else "next"
        job = Job(ACOUSTIC, stream, priority, SENTENCE["acoustic"], deadline_s, later_s, starts_stream=is_first)
        job.remaining = self.scheduler.remaining_of_text("kokoro", n_remaining * SENTENCE["acoustic"])
        return job

    def _advance(self, job: Job, now: float) -> None:
        """The row goes on to the vocoder; after it the next sentence of its stream is queued."""
        stream = job.stream
        if job.key == ACOUSTIC:
            size = SENTENCE["vocoder"]
            heard = Job(VOCODER, stream, job.priority, size, job.deadline_s, starts_stream=job.starts_stream)
            heard.starts_late = job.starts_late
            self.scheduler.add(heard, now)
            return
        self.n_left[stream] -= 1
        if self.n_left[stream] == 0:
            self.scheduler.stream_ended(stream)
            return
        self.next_due_s[stream] = self.next_due_s.get(stream, now) + SENTENCE_S
        self.scheduler.add(self._sentence(stream, self.n_left[stream] - 1, self.next_due_s[stream]), now)


@pytest.mark.parametrize("most_sentences", [1, 3, 6])
@pytest.mark.parametrize("every_s", [0.004, 0.016])  # 2 to 30 times as many as can be spoken
def test_hardly_a_stream_is_refused_after_its_text_was_read(most_sentences: int, every_s: float) -> None:
    random, server, now = Random(0), Server(), 0.0
    n_at_the_door = n_read_in_vain = n_accepted = 0
    for stream in range(int(20 / every_s)):
        now += random.expovariate(1 / every_s)
        server.run_until(now)
        if not server.passes_the_door(now):
            n_at_the_door += 1
        elif server.accepts(stream, random.randint(1, most_sentences), now):
            n_accepted += 1
        else:
            n_read_in_vain += 1
        server.start(now)
    assert min(n_at_the_door, n_accepted) > 100
    assert n_read_in_vain <= 0.03 * n_accepted
