"""What a new stream waits for outside the device: the event loop and the text front end, which can be queues."""

import asyncio

INTERVAL_S = 0.05  # between two measurements; smaller reacts sooner, and costs more
DECAY = 0.8  # of an earlier delay at each measurement; larger remembers a stall longer
TURNS = 8  # turns of the loop from a request to its first audio; larger refuses streams sooner


class StartDelay:
    """Measures the delay of a timer again and again, and remembers how long the text of recent streams took."""

    def __init__(self) -> None:
        self.n_starting = 0  # streams whose first chunk is not queued yet, so that no backlog counts them
        self._loop_s = 0.0
        self._text_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def seconds(self) -> float:
        """What a new stream loses until its first audio, beside its time on the device."""
        return TURNS * self._loop_s + self._text_s

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        due_s = loop.time() + INTERVAL_S
        self._timer = loop.call_at(due_s, self._measure, loop, due_s)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def record_text(self, seconds: float) -> None:
        """Note how long the first chunk of a stream took in the text front end."""
        self._text_s = max(self._text_s, seconds)

    def record_loop(self, delay_s: float) -> None:
        """Note one delay; a timer is never exact to the millisecond, so less does not count."""
        self._loop_s = max(delay_s if delay_s > 0.002 else 0.0, DECAY * self._loop_s)
        self._text_s *= DECAY

    def _measure(self, loop: asyncio.AbstractEventLoop, due_s: float) -> None:
        self.record_loop(loop.time() - due_s)
        self.start()
