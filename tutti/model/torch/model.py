"""Kokoro in PyTorch: rows of any lengths, voices and speeds in one padded pass, on a CUDA device or a processor."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tutti.errors import MissingExtra, ModelFailed
from tutti.model.buckets import PLANS, Group
from tutti.model.torch.cuda_graphs import Function, Replays, cuda_capture, keep_kernels, no_capture
from tutti.model.torch.kokoro import weights
from tutti.model.torch.kokoro.acoustic import PROSODY, Acoustic
from tutti.model.torch.kokoro.linear import Exact
from tutti.model.torch.kokoro.lstm import BiLSTM
from tutti.model.torch.kokoro.padding import FEATURES, DeviceFrames, Lane, frames_batch, tokens_batch
from tutti.model.torch.kokoro.vocoder import Vocoder
from tutti.model.validation import check_utterances
from tutti.speech import SAMPLES_PER_FRAME, STYLE_SIZE, Frames, Samples, Utterance

Graphs = Literal["off", "reduced", "full"]
Device = Literal["cuda", "cpu"]
Precision = Literal["fp32", "fp16"]
Progress = Callable[[int, int], None]  # shapes ready, shapes in all

BYTES_PER_FRAME = {"fp32": 1_000_000, "fp16": 500_000}  # that the vocoder holds while it runs
MAX_PADDED_FRAMES = 32_768  # a device is busy long before; more would only cost memory
CPU_PADDED_FRAMES = 2_000
LANES = {"cuda": 64, "cpu": 1}


class TorchModel:
    """Two stages over one checkpoint. Each may run in a thread of its own: they share weights' device, not memory."""

    def __init__(
        self,
        path: Path,
        device: Device = "cuda",
        graphs: Graphs = "off",
        *,
        acoustic_precision: Precision = "fp16",
        vocoder_precision: Precision = "fp16",
        cache: Path | None = None,
        max_padded_frames: int | None = None,
    ) -> None:
        """fp16 touches convolutions alone; durations are fp32 always. `cache` keeps compiled kernels."""
        if device == "cuda" and not torch.cuda.is_available():
            raise MissingExtra("PyTorch finds no CUDA device here; install a CUDA build of torch, or choose device=cpu")
        if device == "cpu":
            acoustic_precision = vocoder_precision = "fp32"
        self.lanes = LANES[device]
        self.plan = PLANS[graphs if device == "cuda" else "cpu"]
        self._device = torch.device(device)
        if device == "cuda":  # tf32 moves durations
            torch.set_float32_matmul_precision("highest")
            torch.backends.cudnn.allow_tf32 = False
            if cache is not None:
                keep_kernels(cache)
        acoustic, vocoder = weights.build(weights.read(path))
        acoustic.to(self._device)
        vocoder.to(self._device)
        for module in acoustic.modules() if device == "cuda" else ():
            if isinstance(module, BiLSTM):
                module.flatten()
            elif isinstance(module, Exact) and module.weight.numel():
                module.split()
        if acoustic_precision == "fp16":
            acoustic.halve()
        if vocoder_precision == "fp16":
            vocoder.halve()
        self.max_padded_frames = max_padded_frames or _cap(self._device, vocoder_precision)
        self._read_stage, self._speak_stage = Lane(self._device), Lane(self._device)
        capture = [cuda_capture() if device == "cuda" else no_capture for _ in range(2)]  # one memory for each stage
        functions: tuple[Function, ...] = (acoustic.read, _intoned(acoustic), _sound(vocoder))
        self._read, self._intone, self._speak = (
            Replays(function, memory) for function, memory in zip(functions, (capture[0], *capture), strict=True)
        )

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        check_utterances(rows)
        if not rows:
            return []
        with self._read_stage.running(sum(len(row.tokens) for row in rows)) as lane:
            durations, prosody, text, offsets = self._tokens(rows, lane)
            places = [np.repeat(offset + np.arange(len(n)), n) for n, offset in zip(durations, offsets, strict=True)]
            (everywhere,) = lane.upload(np.concatenate(places))
            features = text.index_select(0, everywhere)  # [all frames, 512]
            curves = self._curves(rows, places, prosody, lane)
        ends = np.cumsum([len(place) for place in places])
        found: list[Frames] = []
        for i, row in enumerate(rows):
            f0, energy = curves[i].T.copy()
            found.append(
                DeviceFrames(durations[i], features[ends[i] - len(places[i]) : ends[i]], f0, energy, row.style)
            )
        return found

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        if not rows:
            return []
        spoken: list[tuple[Group, Tensor, Tensor]] = []
        with self._speak_stage.running(sum(row.n_frames for row in rows)) as lane:
            for group in self.plan.frames.group([row.n_frames for row in rows], self.max_padded_frames):
                samples, finite = self._speak(*frames_batch([rows[i] for i in group.members], group, lane))
                spoken.append((group, lane.download(samples), lane.download(finite)))
        found: dict[int, Samples] = {}
        for group, samples, finite in spoken:
            for i, row, whole in zip(group.members, samples.numpy(), finite.tolist(), strict=False):
                if not whole:
                    raise ModelFailed("the vocoder produced numbers that are not finite")
                found[i] = row[: rows[i].n_frames * SAMPLES_PER_FRAME]
        return [found[i] for i in range(len(rows))]

    def warm_up(self, progress: Progress = lambda _done, _all: None) -> None:
        """Captures every shape of the plan, the largest first: smaller ones fit into its memory."""
        cap = self.max_padded_frames
        todo = [
            (capture, n_rows, length)
            for shapes, capture in (
                (self.plan.tokens, self._capture_reading),
                (self.plan.curves, self._capture_intonation),
                (self.plan.frames, self._capture_speaking),
            )
            for n_rows, length in shapes.captured(cap)
        ]
        todo.sort(key=lambda item: -item[1] * item[2])
        for done, (capture, n_rows, length) in enumerate(todo):
            capture(n_rows, length)
            progress(done + 1, len(todo))
        if todo:
            torch.cuda.empty_cache()  # what was needed outside the graphs

    def _capture_reading(self, n_rows: int, length: int) -> None:
        with self._read_stage.running(n_rows * length) as lane:
            blank = Utterance(np.zeros(length, np.int64), np.zeros(STYLE_SIZE, np.float32))
            self._read.capture(*tokens_batch([blank] * n_rows, Group((), n_rows, length), lane))

    def _capture_intonation(self, n_rows: int, length: int) -> None:
        with self._read_stage.running(n_rows * length) as lane:
            prosody = torch.zeros(n_rows, length, PROSODY, device=lane.device)
            style = np.zeros((n_rows, STYLE_SIZE), np.float32)
            self._intone.capture(prosody, *lane.upload(np.full(n_rows, length), style))

    def _capture_speaking(self, n_rows: int, length: int) -> None:
        with self._speak_stage.running(n_rows * length) as lane:
            silence, style = np.zeros(2 * length, np.float32), np.zeros(STYLE_SIZE, np.float32)
            frames = Frames(np.array([length]), np.zeros((FEATURES, length), np.float32), silence, silence, style)
            self._speak.capture(*frames_batch([frames] * n_rows, Group((), n_rows, length), lane))

    def close(self) -> None:
        pass

    def _tokens(
        self, rows: Sequence[Utterance], lane: Lane
    ) -> tuple[list[NDArray[np.int64]], Tensor, Tensor, list[int]]:
        """Durations of each row; prosody [M, 640] and text [M, 512] of all tokens; where in M each row starts."""
        durations: dict[int, NDArray[np.int64]] = {}
        offsets: dict[int, int] = {}
        prosody, text, later = [], [], []
        start = 0
        for group in self.plan.tokens.group([len(row.tokens) for row in rows], self.max_padded_frames):
            frames, manner, sounds = self._read(*tokens_batch([rows[i] for i in group.members], group, lane))
            prosody.append(manner.flatten(0, 1))
            text.append(sounds.flatten(0, 1))
            later.append((group, lane.download(frames)))
            offsets |= {i: start + place * group.length for place, i in enumerate(group.members)}
            start += group.padded
        lane.wait()
        for group, counted in later:
            for i, counts in zip(group.members, counted.numpy(), strict=False):
                durations[i] = counts[: len(rows[i].tokens)].copy()
        everyone = range(len(rows))
        return [durations[i] for i in everyone], torch.cat(prosody), torch.cat(text), [offsets[i] for i in everyone]

    def _curves(
        self, rows: Sequence[Utterance], places: list[NDArray[np.int64]], prosody: Tensor, lane: Lane
    ) -> list[NDArray[np.float32]]:
        """Pitch and energy of each row, [2T, 2]."""
        later = []
        for group in self.plan.curves.group([len(place) for place in places], self.max_padded_frames):
            index = np.zeros((group.n_rows, group.length), np.int64)
            style = np.zeros((group.n_rows, STYLE_SIZE), np.float32)
            counts = np.ones(group.n_rows, np.int64)
            for place, i in enumerate(group.members):
                counts[place] = len(places[i])
                index[place, : len(places[i])] = places[i]
                style[place] = rows[i].style
            there, n_frames, manner = lane.upload(index, counts, style)
            told = prosody.index_select(0, there.view(-1)).view(*index.shape, PROSODY)
            (curves,) = self._intone(told, n_frames, manner)
            later.append((group, lane.download(curves)))
        lane.wait()
        found: dict[int, NDArray[np.float32]] = {}
        for group, curves in later:
            for i, both in zip(group.members, curves.numpy(), strict=False):
                found[i] = both[: 2 * len(places[i])]
        return [found[i] for i in range(len(rows))]


def _intoned(acoustic: Acoustic) -> Callable[..., tuple[Tensor]]:
    def intone(*inputs: Tensor) -> tuple[Tensor]:
        return (acoustic.intone(*inputs),)

    return intone


def _sound(vocoder: Vocoder) -> Callable[..., tuple[Tensor, Tensor]]:
    """The vocoder, and whether each row is sound: checked on the device, where it costs nothing."""

    def speak(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        samples = vocoder(*inputs)
        return samples, torch.isfinite(samples).all(dim=1)

    return speak


def _cap(device: torch.device, precision: Precision) -> int:
    """Padded frames that fit into half of the free memory; the other half is the graphs'."""
    if device.type == "cpu":
        return CPU_PADDED_FRAMES
    free, _ = torch.cuda.mem_get_info(device)
    return min(MAX_PADDED_FRAMES, int(free / 2 / BYTES_PER_FRAME[precision]))
