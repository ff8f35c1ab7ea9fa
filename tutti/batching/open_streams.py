"""How many streams each caller has open, from the moment at which its text is read."""

from collections import Counter

# A caller with more than these streams, and more than this share of all, crowds out others. Smaller makes streams late
# more often that were accepted in time.
FEW_STREAMS, MOST = 1, 0.5


class OpenStreams:
    """Counts the streams of each caller. To ask who has most of them takes no time, however many callers there are."""

    def __init__(self) -> None:
        self._callers: dict[int, str] = {}  # of each stream
        self._n_streams: Counter[str] = Counter()
        self._leader = ""  # had the most streams when one of its own was opened

    def opened(self, stream: int, caller: str) -> None:
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

    def crowding(self) -> str | None:
        """The caller with most of all streams, if there is one."""
        n = self._n_streams.get(self._leader, 0)
        return self._leader if n > max(FEW_STREAMS, MOST * len(self._callers)) else None

    def is_newcomer(self, caller: str) -> bool:
        """Whether a caller has few streams beside one that has most of all."""
        return self._n_streams[caller] <= FEW_STREAMS and self.crowding() not in (None, caller)
