"""Recent refusals of a typical stream, which all processes of a server read: under overload each request asks for one.

That a stream was accepted is not kept: it takes the place of the next.
"""

import multiprocessing
from collections.abc import MutableSequence
from ctypes import Structure, c_char, c_double, c_uint64
from hashlib import blake2b
from typing import NamedTuple

from tutti.errors import QueueFull

REFUSAL_S = 0.02  # for which a refusal holds; larger costs less under overload, but reacts later
PLACES = 256  # callers share them by chance: then the later refusal holds, and the other caller is judged again


class _Refusal(Structure):
    """Another process may read it while it is written: then one stream is judged again, or refused by the old one."""

    _fields_ = (("key", c_uint64), ("until_s", c_double), ("retry_after_s", c_double), ("message", c_char * 96))


class Asking(NamedTuple):
    """Whose streams are refused together."""

    model: str
    caller: str | None  # none: all callers
    max_start_s: float | None = None  # how long they say that they may wait

    @property
    def key(self) -> int:
        """The same in all processes."""
        return int.from_bytes(blake2b(repr(tuple(self)).encode(), digest_size=8).digest(), "little")


class Refusals:
    """Until when streams are refused, for all callers or for one.

    The engine's process writes it, with the time of the monotonic clock, which all processes of a machine have.
    """

    def __init__(self) -> None:
        self._places: MutableSequence[_Refusal] = (_Refusal * PLACES)()  # type: ignore[assignment]

    def share(self) -> None:
        """Move to memory that child processes can read: as an argument of their main function."""
        self._places = multiprocessing.get_context("spawn").RawArray(_Refusal, PLACES)  # type: ignore[assignment]

    def known(self, asking: Asking, now: float) -> QueueFull | None:
        """Why a stream of this caller was refused a moment ago, or one of any caller would have been."""
        for key in (asking._replace(caller=None).key, asking.key):
            place = self._places[key % PLACES]
            if now < place.until_s and place.key == key:
                return QueueFull(place.message.decode(), retry_after_s=place.retry_after_s)
        return None

    def keep(self, refusal: QueueFull, asking: Asking, now: float) -> None:
        """Note a refusal."""
        key = asking.key
        place = self._places[key % PLACES]
        place.until_s = 0.0
        place.key, place.retry_after_s = key, refusal.retry_after_s
        place.message = refusal.message.encode()[: _Refusal.message.size - 1]
        place.until_s = now + REFUSAL_S
