"""Kokoro in PyTorch: rows of any lengths, voices and speeds in one padded pass, on a CUDA device or a processor."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tutti.errors import MissingExtra, ModelFailed
from tutti.model.buckets import FRAMES, ROWS, TOKENS, Group, Ladder, groups, shapes
from tutti.model.contract import check_utterances
from tutti.model.graphs import Function, Replays, compiled, cuda_capture, no_capture
from tutti.model.kokoro import weights
from tutti.model.kokoro.acoustic import PROSODY, Acoustic
from tutti.model.kokoro.batches import FEATURES, DeviceFrames, Lane, frames_batch, tokens_batch
from tutti.model.kokoro.layers import BiLSTM
from tutti.model.kokoro.vocoder import Vocoder
from tutti.speech import SAMPLES_PER_FRAME, STYLE_SIZE, Frames, Samples, Utterance

Graphs = Literal["off", "reduced", "full"]
Device = Literal["cuda", "cpu"]
Precision = Literal["fp32", "tf32", "fp16"]
Compilation = Literal[
    "off", "once", "each"
]  # graphs of plain kernels; one compilation for all shapes; one for each shape
Progress = Callable[[int, int], None]  # shapes ready, shapes in all

BYTES_PER_FRAME = {"fp32": 1_400_000, "tf32": 1_400_000, "fp16": 700_000}  # that the vocoder holds while it runs
MAX_PADDED_FRAMES = 120_000  # beyond this an index into the widest tensor passes 32 bits
CPU_PADDED_FRAMES = 2_000
LANES = {"cuda": 64, "cpu": 1}


@dataclass(frozen=True, slots=True)
class Plan:
    """The shapes of one mode, and how long a row may be and still be replayed."""

    rows: tuple[int, ...]
    tokens: Ladder
    frames: Ladder
    longest_tokens: int
    longest_frames: int


PLANS: dict[Graphs, Plan] = {
    "off": Plan(ROWS, TOKENS, FRAMES, 0, 0),
    "reduced": Plan((1, 4, 16, 64), Ladder(32, 128), Ladder(32, 256), 256, 512),
    "full": Plan(ROWS, TOKENS, FRAMES, 512, 1024),
}


class TorchModel:
    """Two stages over one checkpoint. Each may run in a thread of its own: they share weights' device, not memory."""

    def __init__(
        self,
        path: Path,
        device: Device = "cuda",
        graphs: Graphs = "off",
        *,
        acoustic_precision: Precision = "tf32",
        vocoder_precision: Precision = "fp16",
        compilation: Compilation = "once",
        cache: Path | None = None,
        max_padded_frames: int | None = None,
    ) -> None:
        if device == "cuda" and not torch.cuda.is_available():
            raise MissingExtra("PyTorch finds no CUDA device here; install a CUDA build of torch, or choose device=cpu")
        if device == "cpu":
            graphs, acoustic_precision, vocoder_precision = "off", "fp32", "fp32"
        self.lanes = LANES[device]
        self.plan = PLANS[graphs]
        self._device = torch.device(device)
        if device == "cuda":
            torch.set_float32_matmul_precision("high" if acoustic_precision == "tf32" else "highest")
            torch.backends.cudnn.allow_tf32 = "fp32" not in (acoustic_precision, vocoder_precision)
        acoustic, vocoder = weights.build(weights.read(path))
        acoustic.to(self._device)
        vocoder.to(self._device)
        for module in acoustic.modules() if device == "cuda" else ():
            if isinstance(module, BiLSTM):
                module.flatten()
        if vocoder_precision == "fp16":
            vocoder.halve()
        self.max_padded_frames = max_padded_frames or _cap(self._device, vocoder_precision)
        self._read_stage, self._speak_stage = Lane(self._device), Lane(self._device)
        capture = [cuda_capture() if device == "cuda" else no_capture for _ in range(2)]  # one memory for each stage
        fused = partial(compiled, cache=cache, dynamic=compilation == "once")
        functions: tuple[Function, ...] = (acoustic.read, _intoned(acoustic), _sound(vocoder))
        self._read, self._intone, self._speak = (
            Replays(function, function if "off" in (graphs, compilation) else fused(function), memory)
            for function, memory in zip(functions, (capture[0], *capture), strict=True)
        )
        self._prime = compilation == "once"
        self._primed: set[tuple[str, bool]] = set()

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        check_utterances(rows)
        if not rows:
            return []
        with self._read_stage.running(sum(len(row.tokens) for row in rows)) as lane:
            durations, prosody, text, offsets = self._tokens(rows, lane)
            places = [np.repeat(offset + np.arange(len(n)), n) for n, offset in zip(durations, offsets, strict=True)]
            features = text.index_select(0, lane.upload(np.concatenate(places)))  # [all frames, 512]
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
            for group in self._frame_groups([row.n_frames for row in rows]):
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
        """Compiles and captures every shape of the plan, the largest first: smaller ones fit into its memory."""
        if not self.plan.longest_frames:
            return
        plan, cap = self.plan, self.max_padded_frames
        todo = [
            *(("tokens", shape) for shape in shapes(plan.tokens, plan.longest_tokens, cap, plan.rows)),
            *(("frames", shape) for shape in shapes(plan.frames, plan.longest_frames, cap, plan.rows)),
        ]
        todo.sort(key=lambda item: -item[1][0] * item[1][1])
        for done, (kind, (n_rows, length)) in enumerate(todo):
            self.capture(kind, n_rows, length)
            progress(done + 1, len(todo))

    def capture(self, kind: str, n_rows: int, length: int) -> None:
        """One shape: `tokens` for the reading, `frames` for the intonation and the vocoder."""
        if self._prime and (kind, n_rows > 1) not in self._primed:
            self._primed.add((kind, n_rows > 1))
            self._shape(kind, min(n_rows, 3), 80, Replays.prime)
        self._shape(kind, n_rows, length, Replays.capture)

    def _shape(self, kind: str, n_rows: int, length: int, act: Callable[..., None]) -> None:
        """Primes or captures with rows of silence."""
        group = Group(tuple(range(n_rows)), n_rows, length)
        style = np.zeros((n_rows, STYLE_SIZE), np.float32)
        if kind == "tokens":
            with self._read_stage.running(group.padded) as lane:
                blank = Utterance(np.zeros(length, np.int64), style[0])
                act(self._read, *tokens_batch([blank] * n_rows, group, lane))
            return
        with self._read_stage.running(group.padded) as lane:
            prosody = torch.zeros(n_rows, length, PROSODY, device=lane.device)
            act(self._intone, prosody, lane.upload(np.full(n_rows, length)), lane.upload(style))
        with self._speak_stage.running(group.padded) as lane:
            silence = np.zeros(2 * length, np.float32)
            frames = Frames(np.array([length]), np.zeros((FEATURES, length), np.float32), silence, silence, style[0])
            act(self._speak, *frames_batch([frames] * n_rows, group, lane))

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
        for group in groups(
            [len(row.tokens) for row in rows], self.plan.tokens, self.max_padded_frames, self.plan.rows
        ):
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
        for group in self._frame_groups([len(place) for place in places]):
            index = np.zeros((group.n_rows, group.length), np.int64)
            style = np.zeros((group.n_rows, STYLE_SIZE), np.float32)
            counts = np.ones(group.n_rows, np.int64)
            for place, i in enumerate(group.members):
                counts[place] = len(places[i])
                index[place, : len(places[i])] = places[i]
                style[place] = rows[i].style
            told = prosody.index_select(0, lane.upload(index.reshape(-1))).view(*index.shape, PROSODY)
            (curves,) = self._intone(told, lane.upload(counts), lane.upload(style))
            later.append((group, lane.download(curves)))
        lane.wait()
        found: dict[int, NDArray[np.float32]] = {}
        for group, curves in later:
            for i, both in zip(group.members, curves.numpy(), strict=False):
                found[i] = both[: 2 * len(places[i])]
        return [found[i] for i in range(len(rows))]

    def _frame_groups(self, n_frames: Sequence[int]) -> list[Group]:
        return groups(n_frames, self.plan.frames, self.max_padded_frames, self.plan.rows)


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
