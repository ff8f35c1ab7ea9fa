"""Rows <-> padded tensors, and their transfer between the host and the device."""

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
ALIGNMENT = 64  # bytes, of each array within one upload


class DeviceFrames(Frames):
    """Frames whose features stay on the device until `features` is read."""

    __slots__ = ("device_features",)
    device_features: Tensor  # [T, 512]

    def __init__(
        self,
        durations: NDArray[np.int64],
        features: Tensor | NDArray[np.float32],
        f0: NDArray[np.float32],
        energy: NDArray[np.float32],
        style: NDArray[np.float32],
    ) -> None:
        device_features = features if isinstance(features, Tensor) else torch.from_numpy(features.T)
        names = ("durations", "device_features", "f0", "energy", "style")
        for name, value in zip(names, (durations, device_features, f0, energy, style), strict=True):
            object.__setattr__(self, name, value)  # the base class is frozen

    @property
    def features(self) -> NDArray[np.float32]:
        features: NDArray[np.float32] = self.device_features.cpu().numpy().T
        return features

    @property
    def n_frames(self) -> int:
        return len(self.device_features)

    def __reduce__(self) -> tuple[type[Frames], tuple[NDArray[np.generic], ...]]:
        return Frames, (self.durations, self.features, self.f0, self.energy, self.style)


class StageStream:
    """The CUDA streams of one stage, one for work and one for copies, and the lock that lets one caller run."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._lock = threading.Lock()
        on_cuda = device.type == "cuda"
        self._compute = torch.cuda.Stream(device) if on_cuda else None  # type: ignore[no-untyped-call]
        self._copy = torch.cuda.Stream(device) if on_cuda else None  # type: ignore[no-untyped-call]

    @contextmanager
    def activate(self, n_values: int) -> Iterator["StageStream"]:
        """Run the block on this stage's stream, alone, then wait for it; turn PyTorch's errors into ours."""
        try:
            on_stream = torch.cuda.stream(self._compute) if self._compute else nullcontext()
            with self._lock, torch.inference_mode(), on_stream:
                yield self
                self.wait()
        except torch.OutOfMemoryError as exc:
            torch.cuda.empty_cache()
            raise DeviceFull(f"the device has no memory for {n_values} values at once; send fewer rows") from exc
        except RuntimeError as exc:
            raise ModelFailed(f"the model failed: {exc}") from exc

    def upload(self, *arrays: NDArray[np.generic]) -> list[Tensor]:
        """Copy all arrays to the device in one asynchronous transfer."""
        if self._compute is None:
            return [torch.from_numpy(array) for array in arrays]
        starts = np.cumsum([0, *(-(-array.nbytes // ALIGNMENT) * ALIGNMENT for array in arrays)])
        host = torch.empty(int(starts[-1]), dtype=torch.uint8, pin_memory=True)
        for array, start in zip(arrays, starts, strict=False):
            host.numpy()[start : start + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        device = host.to(self.device, non_blocking=True)
        return [
            device[start : start + array.nbytes].view(torch.from_numpy(array).dtype).view(array.shape)
            for array, start in zip(arrays, starts.tolist(), strict=False)
        ]

    def download(self, tensor: Tensor) -> Tensor:
        """Start a copy to the host, complete after `wait`; it overlaps with the computation of the next group."""
        if self._copy is None or self._compute is None:
            return tensor
        self._copy.wait_stream(self._compute)
        with torch.cuda.stream(self._copy):
            host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            host.copy_(tensor, non_blocking=True)
        tensor.record_stream(self._copy)
        return host

    def wait(self) -> None:
        if self._compute is not None and self._copy is not None:
            self._compute.synchronize()
            self._copy.synchronize()


def pad_tokens(rows: Sequence[Utterance], group: Group, stream: StageStream) -> tuple[Tensor, ...]:
    """tokens [B, N], n_tokens [B], style [B, 256], speed [B]; rows that only fill the shape are one pad token."""
    tokens = np.zeros((group.n_rows, group.length), np.int64)
    counts = np.ones(group.n_rows, np.int64)
    style = np.zeros((group.n_rows, STYLE_SIZE), np.float32)
    speed = np.ones(group.n_rows, np.float32)
    for i, row in enumerate(rows):
        tokens[i, : len(row.tokens)] = row.tokens
        counts[i], style[i], speed[i] = len(row.tokens), row.style, row.speed
    return tuple(stream.upload(tokens, counts, style, speed))


def pad_frames(rows: Sequence[Frames], group: Group, stream: StageStream) -> tuple[Tensor, ...]:
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
            row.device_features
            if isinstance(row, DeviceFrames) and row.device_features.device == stream.device
            else torch.from_numpy(np.ascontiguousarray(row.features.T)).to(stream.device, non_blocking=True)
        )
    starts = np.append(np.cumsum(counts[: len(rows)]) - counts[: len(rows)], np.zeros(group.n_rows - len(rows), int))
    index = starts[:, None] + np.minimum(np.arange(group.length), counts[:, None] - 1)  # [B, T] into all rows' frames
    *inputs, device_index = stream.upload(f0, energy, counts, style, index)
    features = torch.cat(parts).index_select(0, device_index.view(-1)).view(*index.shape, FEATURES)
    return features, *inputs
