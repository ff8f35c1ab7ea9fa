"""Branches of the network that do not wait for each other, side by side: few rows alone do not fill a device."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import torch

Out = TypeVar("Out")
SMALL = 2048  # padded frames; more than these keep the device busy, and side by side would only take more memory


def side_by_side(acts: Sequence[Callable[[], Out]], who: str, n_frames: int, device: torch.device) -> list[Out]:
    """Each act on a stream of its own, which a CUDA graph keeps as a branch; no two threads call as the same `who`.

    Every stream waits for the caller's first, so memory that a branch gave back is not written before it was read.
    """
    if device.type != "cuda" or n_frames > SMALL:
        return [act() for act in acts]
    main, found = torch.cuda.current_stream(device), []
    streams = [_stream(who, place, device) for place in range(len(acts))]
    for stream, act in zip(streams, acts, strict=True):
        stream.wait_stream(main)
        with torch.cuda.stream(stream):
            found.append(act())
    for stream in streams:
        main.wait_stream(stream)
    return found


@cache
def _stream(who: str, place: int, device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
