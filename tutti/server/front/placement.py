"""Which process answers a request. Pure, but for the time."""

import multiprocessing
import re
import time
from collections.abc import Callable
from ctypes import c_double
from typing import Literal

Place = Literal["here", "engine", "close"]

SPEECH_PATHS = ("/v1/audio/speech", "/v1/audio/dialogue", "/tts", "/tts/stream")  # the routes of an HTTP process
_SPEECH = re.compile(rb"POST (?:%s) HTTP/1\.1\r\n" % "|".join(SPEECH_PATHS).encode())
MAX_DIRECT = 4  # streams at once up to which the engine's process answers; more would take computing from the engine
# For which it does not after more streams than that were there. Longer leaves connections where they are between two
# bursts, shorter serves a lone client sooner after one.
BUSY_S = 2.0


def placement(head: bytes, *, in_engine: bool, is_busy: bool) -> Place:
    """Where the request with this head is answered: here, in the engine's process, or here for the last time.

    HTTP processes answer the requests for speech while the engine is busy, since else that costs two hops each. The
    engine's process answers all others; it then closes a connection for speech, whose client connects again.
    """
    is_speech = _SPEECH.match(head) is not None
    if in_engine:
        return "close" if is_speech and is_busy else "here"
    # Only the parser knows the end of a body in chunks, and then it has the next request, which may be for the engine.
    return "here" if is_speech and is_busy and b"\r\ntransfer-encoding:" not in head.lower() else "engine"


class EngineLoad:
    """Whether many streams run. The engine's process counts them, and all processes read it.

    It goes to an HTTP process as an argument of its main function; nowhere else can it be pickled.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._busy_until_s = multiprocessing.get_context("spawn").RawValue(c_double, 0.0)

    @property
    def is_busy(self) -> bool:
        return self._clock() < self._busy_until_s.value

    def count(self, n_streams: int) -> None:
        """Note that so many streams run at once."""
        if n_streams > MAX_DIRECT:
            self._busy_until_s.value = self._clock() + BUSY_S
