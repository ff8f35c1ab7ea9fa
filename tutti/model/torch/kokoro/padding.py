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
Arrays = tuple[NDArray[np.generic], ...]


class DeviceFrames(Frames):
    """Frames that stay on the device until they are read here.

    Pitch and energy may be changed where they are read: from then on the row has those.
    """

    __slots__ = ("device_curves", "device_features", "host_curves", "ready")
    device_features: Tensor  # [T, 512]
    device_curves: Tensor  # [2T, 2]: pitch and energy
    host_curves: NDArray[np.float32] | None  # [2, 2T], once they were read
    ready: torch.cuda.Event | None  # when the device has computed them; none: they are there

    def __init__(
        self,
        durations: NDArray[np.int64],
        features: Tensor,
        curves: Tensor,
        style: NDArray[np.float32],
        pcm_volume: float | None = None,
        ready: torch.cuda.Event | None = None,
    ) -> None:
        names = ("durations", "device_features", "device_curves", "style", "pcm_volume", "ready", "host_curves")
        for name, value in zip(names, (durations, features, curves, style, pcm_volume, ready, None), strict=True):
            object.__setattr__(self, name, value)  # the base class is frozen
        object.__setattr__(self, "gain", None)

    @property
    def features(self) -> NDArray[np.float32]:
        return self._read(self.device_features).T

    @property
    def f0(self) -> NDArray[np.float32]:
        f0: NDArray[np.float32] = self._curves()[0]
        return f0

    @property
    def energy(self) -> NDArray[np.float32]:
        energy: NDArray[np.float32] = self._curves()[1]
        return energy

    @property
    def n_frames(self) -> int:
        return len(self.device_features)

    def on_device(self, stream: "StageStream") -> tuple[Tensor | None, Tensor | None]:
        """Features and curves, for use on this stream; none for what is on another device or was read here."""
        if self.device_features.device != stream.device:
            return None, None
        stream.wait_for(self.ready)
        return self.device_features, self.device_curves if self.host_curves is None else None

    def __reduce__(self) -> tuple[type[Frames], tuple[NDArray[np.generic] | float | None, ...]]:
        return Frames, (self.durations, self.features, self.f0, self.energy, self.style, self.pcm_volume)

    def _curves(self) -> NDArray[np.float32]:
        if self.host_curves is None:
            object.__setattr__(self, "host_curves", self._read(self.device_curves).T.copy())
        assert self.host_curves is not None
        return self.host_curves

    def _read(self, tensor: Tensor) -> NDArray[np.float32]:
        if self.ready is not None:
            self.ready.synchronize()
        values: NDArray[np.float32] = tensor.cpu().numpy()
        return values


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
        """Run the block on this stage's stream, alone; turn PyTorch's errors into ours."""
        try:
            on_stream = torch.cuda.stream(self._compute) if self._compute else nullcontext()
            with self._lock, torch.inference_mode(), on_stream:
                yield self
        except torch.OutOfMemoryError as exc:
            torch.cuda.empty_cache()
            raise DeviceFull(f"the device has no memory for {n_values} values at once; send fewer rows") from exc
        except RuntimeError as exc:
            raise ModelFailed(f"the model failed: {exc}") from exc

    def upload(self, *arrays: NDArray[np.generic]) -> list[Tensor]:
        """Copy all arrays to the device in one asynchronous transfer."""
        if self._compute is None:
            return [torch.from_numpy(array) for array in arrays]
        block = self.new_block(arrays)
        self.write(block, arrays)
        return split_block(block, arrays)

    def new_block(self, arrays: Sequence[NDArray[np.generic]]) -> Tensor:
        """Memory of the device for these arrays."""
        return torch.empty(_places(arrays)[-1], dtype=torch.uint8, device=self.device)

    def on_host(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """Memory of the host that can be copied to and from the device while other work goes on."""
        return torch.empty(shape, dtype=dtype, pin_memory=self._compute is not None)

    def write(self, block: Tensor, arrays: Sequence[NDArray[np.generic]]) -> None:
        """Start a copy of these arrays into their block."""
        host = self.on_host(block.shape, block.dtype)
        values = host.numpy()
        for array, start in zip(arrays, _places(arrays), strict=False):
            values[start : start + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        block.copy_(host, non_blocking=True)

    def download(self, tensor: Tensor) -> Tensor:
        """Start a copy to the host, complete after `wait`; it overlaps with the computation of the next group."""
        if self._copy is None or self._compute is None:
            return tensor
        self._copy.wait_stream(self._compute)
        with torch.cuda.stream(self._copy):
            host = self.on_host(tensor.shape, tensor.dtype)
            host.copy_(tensor, non_blocking=True)
        tensor.record_stream(self._copy)
        return host

    def record(self) -> torch.cuda.Event | None:
        """An event after all that was started so far; none where everything is computed at once."""
        return self._compute.record_event() if self._compute is not None else None

    def wait_for(self, event: torch.cuda.Event | None) -> None:
        """Start nothing more on the device before this event."""
        if self._compute is not None and event is not None:
            self._compute.wait_event(event)

    def wait(self) -> None:
        """Until all that was started is computed and copied."""
        if self._compute is not None and self._copy is not None:
            self._compute.synchronize()
            self._copy.synchronize()


def split_block(block: Tensor, arrays: Sequence[NDArray[np.generic]]) -> list[Tensor]:
    """The tensors of these arrays in a block that was made for them."""
    return [
        block[start : start + array.nbytes].view(torch.from_numpy(array).dtype).view(array.shape)
        for array, start in zip(arrays, _places(arrays), strict=False)
    ]


def joined(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(parts)) if len(parts) > 1 else parts[0]  # of one it would only be a copy


def _places(arrays: Sequence[NDArray[np.generic]]) -> list[int]:
    """Where each array starts in one block, and where the block ends."""
    places = [0]
    for array in arrays:
        places.append(places[-1] - -array.nbytes // ALIGNMENT * ALIGNMENT)
    return places


def pad_tokens(rows: Sequence[Utterance], group: Group) -> Arrays:
    """tokens [B, N], n_tokens [B], style [B, 256], speed [B]; rows that only fill the shape are one pad token."""
    tokens = np.zeros((group.n_rows, group.length), np.int64)
    counts = np.ones(group.n_rows, np.int64)
    style = np.zeros((group.n_rows, STYLE_SIZE), np.float32)
    speed = np.ones(group.n_rows, np.float32)
    for i, row in enumerate(rows):
        tokens[i, : len(row.tokens)] = row.tokens
        counts[i], style[i], speed[i] = len(row.tokens), row.style, row.speed
    return tokens, counts, style, speed


def pad_frames(rows: Sequence[Frames], group: Group, stream: StageStream) -> tuple[tuple[Tensor, Tensor], Arrays]:
    """features [B, T, 512], pitch and energy [B, 2T, 2]; n_frames [B], style [B, 256].

    After its end a row repeats its last frame; rows that only fill the shape repeat a frame of the first row.
    """
    counts = np.ones(group.n_rows, np.int64)
    style = np.zeros((group.n_rows, STYLE_SIZE), np.float32)
    features, curves = [], []
    for i, row in enumerate(rows):
        counts[i], style[i] = row.n_frames, row.style
        row_features, row_curves = row.on_device(stream) if isinstance(row, DeviceFrames) else (None, None)
        features.append(_tensor(row.features.T, stream) if row_features is None else row_features)
        curves.append(_tensor(np.stack([row.f0, row.energy], 1), stream) if row_curves is None else row_curves)
    starts = np.append(np.cumsum(counts[: len(rows)]) - counts[: len(rows)], np.zeros(group.n_rows - len(rows), int))
    index = starts[:, None] + np.minimum(np.arange(group.length), counts[:, None] - 1)  # [B, T] into all rows' frames
    (device_index,) = stream.upload(index.reshape(-1))
    padded_features = joined(features).index_select(0, device_index).view(*index.shape, FEATURES)
    padded_curves = joined(curves).view(-1, 4).index_select(0, device_index).view(len(index), -1, 2)
    return (padded_features, padded_curves), (counts, style)


def _tensor(values: NDArray[np.float32], stream: StageStream) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(stream.device, non_blocking=True)
