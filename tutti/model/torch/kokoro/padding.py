"""Rows to padded tensors and back: what travels between the host and the device, and when."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tutti.errors import DeviceFull, ModelFailed
from tutti.model.buckets import Group
from tutti.speech import STYLE_SIZE, Frames, Utterance

FEATURES = 512
ALIGNED = 64  # bytes


class DeviceFrames(Frames):
    """Frames whose features stay on the device until somebody on the host asks for them."""

    __slots__ = ("resident",)
    resident: Tensor  # [T, 512]

    def __init__(
        self,
        durations: NDArray[np.int64],
        features: Tensor | NDArray[np.float32],
        f0: NDArray[np.float32],
        energy: NDArray[np.float32],
        style: NDArray[np.float32],
    ) -> None:
        resident = features if isinstance(features, Tensor) else torch.from_numpy(features.T)
        for name, value in zip(
            ("durations", "resident", "f0", "energy", "style"), (durations, resident, f0, energy, style), strict=True
        ):
            object.__setattr__(self, name, value)

    @property
    def features(self) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self.resident.cpu().numpy().T
        return found

    @property
    def n_frames(self) -> int:
        return len(self.resident)

    def __reduce__(self) -> tuple[type[Frames], tuple[NDArray[np.generic], ...]]:
        return Frames, (self.durations, self.features, self.f0, self.energy, self.style)


class Lane:
    """One stage's place on the device: its streams, and the right to run."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._lock = threading.Lock()
        on_cuda = device.type == "cuda"
        self._work = torch.cuda.Stream(device) if on_cuda else None  # type: ignore[no-untyped-call]
        self._copies = torch.cuda.Stream(device) if on_cuda else None  # type: ignore[no-untyped-call]

    @contextmanager
    def running(self, size: int) -> Iterator["Lane"]:
        """On this stage's stream, alone; all is on the host, or done, at the end. Failures are named."""
        try:
            with self._lock, torch.inference_mode(), torch.cuda.stream(self._work) if self._work else nullcontext():
                yield self
                self.wait()
        except torch.OutOfMemoryError as exc:
            torch.cuda.empty_cache()
            raise DeviceFull(f"the device has no memory for {size} values at once; send fewer rows") from exc
        except RuntimeError as exc:
            raise ModelFailed(f"the model broke: {exc}") from exc

    def upload(self, *arrays: NDArray[np.generic]) -> list[Tensor]:
        """All arrays in one copy, which the host does not wait for."""
        if self._work is None:
            return [torch.from_numpy(array) for array in arrays]
        places = np.cumsum([0, *(-(-array.nbytes // ALIGNED) * ALIGNED for array in arrays)])
        host = torch.empty(int(places[-1]), dtype=torch.uint8, pin_memory=True)
        for array, place in zip(arrays, places, strict=False):
            host.numpy()[place : place + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        there = host.to(self.device, non_blocking=True)
        return [
            there[place : place + array.nbytes].view(torch.from_numpy(array).dtype).view(array.shape)
            for array, place in zip(arrays, places.tolist(), strict=False)
        ]

    def download(self, tensor: Tensor) -> Tensor:
        """A copy on the host, complete after `wait`; it travels while the next group computes."""
        if self._copies is None or self._work is None:
            return tensor
        self._copies.wait_stream(self._work)
        with torch.cuda.stream(self._copies):
            host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            host.copy_(tensor, non_blocking=True)
        tensor.record_stream(self._copies)
        return host

    def wait(self) -> None:
        if self._work is not None and self._copies is not None:
            self._work.synchronize()
            self._copies.synchronize()


def tokens_batch(rows: Sequence[Utterance], group: Group, lane: Lane) -> tuple[Tensor, ...]:
    """tokens [B, N], n_tokens [B], style [B, 256], speed [B]; rows that only fill the shape say one pad."""
    tokens = np.zeros((group.n_rows, group.length), np.int64)
    counts = np.ones(group.n_rows, np.int64)
    style = np.zeros((group.n_rows, STYLE_SIZE), np.float32)
    speed = np.ones(group.n_rows, np.float32)
    for i, row in enumerate(rows):
        tokens[i, : len(row.tokens)] = row.tokens
        counts[i], style[i], speed[i] = len(row.tokens), row.style, row.speed
    return tuple(lane.upload(tokens, counts, style, speed))


def frames_batch(rows: Sequence[Frames], group: Group, lane: Lane) -> tuple[Tensor, ...]:
    """features [B, T, 512], f0 and energy [B, 2T], n_frames [B], style [B, 256]; filling rows are one silent frame."""
    f0, energy = np.zeros((2, group.n_rows, 2 * group.length), np.float32)
    counts = np.ones(group.n_rows, np.int64)
    style = np.zeros((group.n_rows, STYLE_SIZE), np.float32)
    parts = []
    for i, row in enumerate(rows):
        n = row.n_frames
        counts[i], style[i] = n, row.style
        f0[i, : 2 * n], energy[i, : 2 * n] = row.f0, row.energy
        parts.append(
            row.resident
            if isinstance(row, DeviceFrames) and row.resident.device == lane.device
            else torch.from_numpy(np.ascontiguousarray(row.features.T)).to(lane.device, non_blocking=True)
        )
    starts = np.append(np.cumsum(counts[: len(rows)]) - counts[: len(rows)], np.zeros(group.n_rows - len(rows), int))
    places = starts[:, None] + np.minimum(np.arange(group.length), counts[:, None] - 1)  # [B, T] in all rows' frames
    f0_there, energy_there, counts_there, style_there, index = lane.upload(f0, energy, counts, style, places)
    features = torch.cat(parts).index_select(0, index.view(-1)).view(*places.shape, FEATURES)
    return features, f0_there, energy_there, counts_there, style_there
