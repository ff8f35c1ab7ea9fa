"""One budget for the audio that the server holds in memory: whole answers, the cache, and the chunks of streams."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Gauge

from tutti.errors import TuttiError

CALLER_SHARE = 0.5  # of the budget that one caller may fill; a larger share leaves less to the others


class MemoryFull(TuttiError):
    """The budget is used up; it is free again when others have read their answers."""

    status, code = 503, "memory_full"


class AudioMemory:
    """Counts the bytes of all audio that is held, in total and for each caller."""

    def __init__(self, max_bytes: float) -> None:
        self.max_bytes = max_bytes
        self.n_bytes = 0
        self._by_caller: Counter[str] = Counter()

    def register(self, registry: CollectorRegistry) -> None:
        """Publish how much is held."""
        gauge = Gauge("tutti_audio_held_bytes", "Audio held in memory for all answers.", registry=registry)
        gauge.set_function(lambda: self.n_bytes)

    def check(self) -> None:
        """Raise MemoryFull if nothing more may be started."""
        if self.n_bytes >= self.max_bytes:
            raise MemoryFull(
                f"the server holds {self.max_bytes / 1e6:g} MB of audio, its limit (TUTTI_MAX_AUDIO_MB); retry soon"
            )

    def fits(self, n_bytes: int, caller: str) -> bool:
        of_caller = self._by_caller[caller] + n_bytes
        return self.n_bytes + n_bytes <= self.max_bytes and of_caller <= CALLER_SHARE * self.max_bytes

    def count(self, n_bytes: int, caller: str) -> None:
        """Add to what is held; less than 0 releases."""
        self.n_bytes += n_bytes
        self._by_caller[caller] += n_bytes
        if self._by_caller[caller] <= 0:
            del self._by_caller[caller]


class HeldAudio:
    """The audio of one answer, counted until it is released or this object is collected."""

    def __init__(self, memory: AudioMemory, caller: str) -> None:
        self._memory = memory
        self._caller = caller
        self.n_bytes = 0

    def grow(self, n_bytes: int) -> None:
        """Hold more of a whole answer; raise MemoryFull if that does not fit."""
        if not self._memory.fits(n_bytes, self._caller):
            raise MemoryFull(
                "there is no memory left for whole answers (TUTTI_MAX_AUDIO_MB); retry soon, or stream the audio"
            )
        self.set(self.n_bytes + n_bytes)

    def set(self, n_bytes: int) -> None:
        """Hold so many bytes from now on, whether they fit or not: a stream that has begun goes on."""
        self._memory.count(n_bytes - self.n_bytes, self._caller)
        self.n_bytes = n_bytes

    def release(self) -> None:
        self.set(0)

    @contextmanager
    def released_on_error(self) -> Iterator[None]:
        """Release if the block fails: the traceback may keep this object until a garbage collection."""
        try:
            yield
        except BaseException:
            self.release()
            raise

    def __del__(self) -> None:
        self.release()
