"""Independent branches of the network on parallel CUDA streams: a few rows alone do not fill a device."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

import torch

Result = TypeVar("Result")
MAX_PARALLEL_FRAMES = 2048  # padded frames; above, one branch fills the device and parallel ones only need more memory


def run_parallel(
    branches: Sequence[Callable[[], Result]], owner: str, n_frames: int, device: torch.device
) -> list[Result]:
    """Run each branch on its own stream, which a CUDA graph captures as a branch.

    Streams are cached by `owner`: two threads must not use the same one. Every stream first waits for the caller's, so
    memory freed by a branch is not overwritten before it was read.
    """
    if device.type != "cuda" or n_frames > MAX_PARALLEL_FRAMES:
        return [branch() for branch in branches]
    main, results = torch.cuda.current_stream(device), []
    streams = [_stream(owner, index, device) for index in range(len(branches))]
    for stream, branch in zip(streams, branches, strict=True):
        stream.wait_stream(main)
        with torch.cuda.stream(stream):
            results.append(branch())
    for stream in streams:
        main.wait_stream(stream)
    return results


@cache
def _stream(owner: str, index: int, device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
