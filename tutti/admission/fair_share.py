"""One fair share of the device between callers: of its seconds, and of the streams that are open."""

from collections import Counter, OrderedDict
from math import inf

from tutti.decaying_sum import DecayingSum

MEMORY_S = 30.0  # time constant with which past use of the device is forgotten; larger punishes a burst longer
GRACE = 0.25  # share of the device that a caller may use beyond an even share; smaller reacts to chance differences
DEPRIORITISED_S = 2.0  # for which a caller that made room counts as over its share; larger leaves it gaps for longer
# A caller with more than these streams, and more than this share of all, is dominant. Smaller makes streams late more
# often that were accepted in time.
FEW_STREAMS, MOST = 1, 0.5


class FairShare:
    """Tells which callers recently used more than an even share of the device, and which has most of all streams.

    Callers within their share keep the order of their deadlines; the jobs of one over its share count as late.
    """

    def __init__(self) -> None:
        self._total = DecayingSum(MEMORY_S)
        self._used: OrderedDict[str, tuple[DecayingSum, float]] = OrderedDict()  # and when last seen, oldest first
        self._heavy: set[str] = set()  # callers that used more than the grace at their last charge: a few at most
        self._deprioritised: dict[str, float] = {}  # callers that had to make room, and until when
        self._callers: dict[int, str] = {}  # of each open stream
        self._n_streams: Counter[str] = Counter()
        self._leader = ""  # had the most streams when one of its own was opened

    def add_caller(self, caller: str, now: float) -> None:
        """Count this caller as present; forget callers without requests for MEMORY_S."""
        used, _ = self._used.get(caller) or (DecayingSum(MEMORY_S), now)
        self._used[caller] = used, now
        self._used.move_to_end(caller)
        while next(iter(self._used.values()))[1] < now - MEMORY_S:
            gone, (used, _) = self._used.popitem(last=False)
            self._total.add(-used.at(now), now)
            self._heavy.discard(gone)

    def charge(self, caller: str, seconds: float, now: float) -> None:
        """Charge device seconds to this caller."""
        self.add_caller(caller, now)
        used = self._used[caller][0]
        used.add(seconds, now)
        self._total.add(seconds, now)
        (self._heavy.add if used.at(now) > GRACE * MEMORY_S else self._heavy.discard)(caller)

    def deprioritise(self, caller: str, now: float) -> None:
        """Count this caller as over its share for a moment: another one that has no stream needs its place."""
        self._deprioritised = {other: until_s for other, until_s in self._deprioritised.items() if now < until_s}
        self._deprioritised[caller] = now + DEPRIORITISED_S

    def over(self, now: float) -> set[str]:
        """The callers of whom `is_over` is true; use is forgotten, so none that was not heavy at its last charge."""
        return {caller for caller in (*self._heavy, *self._deprioritised) if self.is_over(caller, now)}

    def is_over(self, caller: str, now: float) -> bool:
        """Whether a caller used more of the device than an even share and the grace, or had to make room."""
        if now < self._deprioritised.get(caller, -inf):
            return True
        if caller not in self._used:
            return False
        even_s = self._total.at(now) / len(self._used)
        return self._used[caller][0].at(now) > even_s + GRACE * MEMORY_S

    def opened(self, stream: int, caller: str) -> None:
        """Count a stream, from the moment at which its text is read."""
        self._callers[stream] = caller
        self._n_streams[caller] += 1
        if self._n_streams[caller] > self._n_streams[self._leader]:
            self._leader = caller

    def ended(self, stream: int) -> None:
        """Forget a stream, if it was open."""
        caller = self._callers.pop(stream, None)
        if caller is not None:
            self._n_streams[caller] -= 1
            if not self._n_streams[caller]:
                del self._n_streams[caller]

    @property
    def dominant_caller(self) -> str | None:
        """The caller with most of all streams, if there is one."""
        n = self._n_streams.get(self._leader, 0)
        return self._leader if n > max(FEW_STREAMS, MOST * len(self._callers)) else None

    def is_newcomer(self, caller: str) -> bool:
        """Whether a caller has few streams beside one that has most of all."""
        return self._n_streams[caller] <= FEW_STREAMS and self.dominant_caller not in (None, caller)

    def is_crowding(self, caller: str) -> bool:
        """Whether a caller has most of all streams, and others had requests in the last MEMORY_S."""
        return self.dominant_caller == caller and len(self._used) > 1
