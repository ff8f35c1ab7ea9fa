"""Kokoro in PyTorch: rows of any lengths, voices and speeds in one padded pass, on a CUDA device or a processor."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tutti.errors import MissingExtra
from tutti.model.buckets import MAX_PADDED_FRAMES, PLANS, Group
from tutti.model.protocol import Model, OnStep, Ran, Traits, speak_in_stages
from tutti.model.torch.cuda_graphs import Function, GraphedFunction, cuda_capture, no_capture, set_kernel_cache
from tutti.model.torch.kokoro import masks, weights
from tutti.model.torch.kokoro.acoustic import PROSODY, Acoustic
from tutti.model.torch.kokoro.linear import SplitFp16Linear
from tutti.model.torch.kokoro.lstm import BiLSTM
from tutti.model.torch.kokoro.padding import FEATURES, Arrays, DeviceFrames, StageStream, joined, pad_frames, pad_tokens
from tutti.model.torch.kokoro.vocoder import Vocoder, to_pcm
from tutti.model.torch.lone_row import LoneRowGraphs
from tutti.model.types import Compile, Device
from tutti.model.validation import check_utterances, in_format, not_finite
from tutti.speech import SAMPLES_PER_FRAME, STYLE_SIZE, Frames, Samples, Utterance

Precision = Literal["fp32", "fp16"]
PadRows = Callable[[Sequence[Frames], Group, StageStream], tuple[tuple[Tensor, ...], Arrays]]

BYTES_PER_FRAME = {"fp32": 1_000_000, "fp16": 500_000}  # device memory of the vocoder while it runs


class Prepare(Protocol):
    """Captures a shape of one pass, or only runs it."""

    def __call__(self, n_rows: int, length: int, *, capture: bool) -> None: ...


class TorchModel(Model):
    """Two stages over one checkpoint. Each may run in its own thread: they share the device, not memory."""

    def __init__(
        self,
        path: Path,
        device: Device = "cuda",
        graphs: Compile = "off",
        *,
        acoustic_precision: Precision = "fp16",
        vocoder_precision: Precision = "fp16",
        cache: Path | None = None,
        max_padded_frames: int | None = None,
    ) -> None:
        """fp16 is for convolutions only; durations are always fp32. `cache` keeps compiled kernels."""
        if device == "cuda" and not torch.cuda.is_available():
            raise MissingExtra("PyTorch finds no CUDA device here; install a CUDA build of torch, or choose device=cpu")
        if device == "cpu":
            acoustic_precision = vocoder_precision = "fp32"
        self.plan = PLANS[graphs if device == "cuda" else "cpu"]
        # With its number: tensors report it, and only equal devices share features without a copy.
        self.device = torch.device("cuda", torch.cuda.current_device()) if device == "cuda" else torch.device("cpu")
        if device == "cuda":  # tf32 would change durations
            torch.set_float32_matmul_precision("highest")
            torch.backends.cudnn.allow_tf32 = False
            if cache is not None:
                set_kernel_cache(cache)
            masks.use_kernels(graphs != "plain")
        acoustic, vocoder = weights.build(weights.read_state(path))
        acoustic.to(self.device)
        vocoder.to(self.device)
        for module in acoustic.modules() if device == "cuda" else ():
            if isinstance(module, BiLSTM):
                module.flatten()
            elif isinstance(module, SplitFp16Linear) and module.weight.numel():
                module.split()
        if acoustic_precision == "fp16":
            acoustic.use_fp16()
        if vocoder_precision == "fp16":
            vocoder.use_fp16()
        self.vocoder_network = vocoder
        self.max_padded_frames = max_padded_frames or _max_padded_frames(device, vocoder_precision)
        self.traits = Traits(stages_overlap=device == "cuda")
        self._acoustic_stream, self.vocoder_stream = StageStream(self.device), StageStream(self.device)
        # One memory pool for each stage.
        acoustic_pool, self.vocoder_pool = (cuda_capture() if device == "cuda" else no_capture for _ in range(2))
        self._encode_tokens = GraphedFunction(acoustic.encode_tokens, acoustic_pool)
        self._predict_curves = GraphedFunction(_curves_function(acoustic), acoustic_pool)
        self._vocode = GraphedFunction(_vocoder_function(vocoder), self.vocoder_pool)
        self._lone_row: LoneRowGraphs | None = None
        if device == "cuda" and self.plan.frames.longest:
            self._lone_row = LoneRowGraphs(
                acoustic, _vocoder_function(vocoder), self._acoustic_stream, cuda_capture(), self.plan
            )

    def acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        frames = self.start_acoustic(rows)
        with self._acoustic_stream.activate(sum(len(row.tokens) for row in rows)) as stream:
            stream.wait()
        return frames

    def vocoder(self, rows: Sequence[Frames]) -> list[Samples]:
        return vocode_rows(rows, self, self._vocode, pad_frames)

    def speak(self, rows: Sequence[Utterance]) -> Ran:
        """A row alone is launched as a whole if it can be; else the vocoder is prepared beside pitch and energy."""
        alone = self._lone_row.speak(rows[0]) if self._lone_row is not None and len(rows) == 1 else None
        return alone or speak_in_stages(rows, self.start_acoustic, self.vocoder)

    def start_acoustic(self, rows: Sequence[Utterance]) -> list[Frames]:
        """As `acoustic`, but pitch and energy may still be computed: the vocoder waits for them on the device."""
        check_utterances(rows)
        if not rows:
            return []
        with self._acoustic_stream.activate(sum(len(row.tokens) for row in rows)) as stream:
            durations, prosody, text, offsets = self._run_tokens(rows, stream)
            # For each frame of a row, the index of its token among all tokens.
            indices = [np.repeat(offset + np.arange(len(n)), n) for n, offset in zip(durations, offsets, strict=True)]
            curves = self._start_curves(rows, indices, prosody, stream)
            (all_indices,) = stream.upload(np.concatenate(indices))
            features = torch.split(text.index_select(0, all_indices), [len(index) for index in indices])  # [T, 512]
            ready = stream.record()
        return [
            DeviceFrames(durations[i], features[i], curves[i], row.style, row.pcm_volume, ready)
            for i, row in enumerate(rows)
        ]

    def warm_up(
        self,
        progress: OnStep = lambda _n_captured, _n_shapes: None,
        prepare_frames: Prepare | None = None,
    ) -> None:
        """Capture every shape of the plan, the largest first: smaller ones fit into its memory.

        `prepare_frames`: prepares a shape of another vocoder instead of this one.
        """
        todo = [
            (prepare, n_rows, length)
            for shapes, prepare in (
                (self.plan.tokens, self._prepare_tokens),
                (self.plan.curves, self._prepare_curves),
                (self.plan.frames, prepare_frames or self._prepare_frames),
            )
            for n_rows, length in shapes.captured_shapes(self.max_padded_frames)
        ]
        todo.sort(key=lambda item: -item[1] * item[2])
        if todo:
            self._compile(todo)
        captures: list[Callable[[], None]] = [
            partial(prepare, n_rows, length, capture=True) for prepare, n_rows, length in todo
        ]
        if self._lone_row is not None and prepare_frames is None:
            captures += self._lone_row.captures()
        for n_captured, capture in enumerate(captures, start=1):
            capture()
            progress(n_captured, len(captures))
        if todo:
            torch.cuda.empty_cache()  # memory that was needed outside the graphs

    def _compile(self, todo: Sequence[tuple[Prepare, int, int]]) -> None:
        """Compile the kernels of all shapes, many at once: first those of the extremes, which need nearly all."""
        if not masks.device_has_kernels(self.device):
            return
        from tutti.model.torch import kernels

        extremes = {prepare: [item for item in todo if item[0] == prepare] for prepare, _, _ in todo}.values()
        for some in ([item for items in extremes for item in (items[0], items[len(items) // 2], items[-1])], todo):
            with kernels.compiling():
                for prepare, n_rows, length in some:
                    prepare(n_rows, length, capture=False)

    def _prepare_tokens(self, n_rows: int, length: int, *, capture: bool) -> None:
        with self._acoustic_stream.activate(n_rows * length) as stream:
            blank = Utterance(np.zeros(length, np.int64), np.zeros(STYLE_SIZE, np.float32))
            arrays = pad_tokens([blank] * n_rows, Group((), n_rows, length))
            self._encode_tokens.prepare(stream, arrays, capture=capture)

    def _prepare_curves(self, n_rows: int, length: int, *, capture: bool) -> None:
        with self._acoustic_stream.activate(n_rows * length) as stream:
            prosody = torch.zeros(n_rows, length, PROSODY, device=stream.device)
            arrays = np.full(n_rows, length), np.zeros((n_rows, STYLE_SIZE), np.float32)
            self._predict_curves.prepare(stream, arrays, prosody, capture=capture)

    def _prepare_frames(self, n_rows: int, length: int, *, capture: bool) -> None:
        with self.vocoder_stream.activate(n_rows * length) as stream:
            tensors, arrays = pad_frames([silent_frames(length)] * n_rows, Group((), n_rows, length), stream)
            self._vocode.prepare(stream, arrays, *tensors, capture=capture)

    def enter_thread(self) -> None:
        """Use the device of this model in the present thread, too."""
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)

    def _run_tokens(
        self, rows: Sequence[Utterance], stream: StageStream
    ) -> tuple[list[NDArray[np.int64]], Tensor, Tensor, list[int]]:
        """Durations of each row; prosody [M, 640] and text [M, 512] of all tokens; where in M each row starts."""
        durations: dict[int, NDArray[np.int64]] = {}
        offsets: dict[int, int] = {}
        prosody, text, downloads = [], [], []
        start = 0
        for group in self.plan.tokens.group([len(row.tokens) for row in rows], self.max_padded_frames):
            n_frames, group_prosody, group_text = self._encode_tokens(
                stream, pad_tokens([rows[i] for i in group.members], group)
            )
            prosody.append(group_prosody.flatten(0, 1))
            text.append(group_text.flatten(0, 1))
            downloads.append((group, stream.download(n_frames)))
            offsets |= {i: start + place * group.length for place, i in enumerate(group.members)}
            start += group.padded
        stream.wait()
        for group, n_frames in downloads:
            for i, row_frames in zip(group.members, n_frames.numpy(), strict=False):
                durations[i] = row_frames[: len(rows[i].tokens)].copy()
        order = range(len(rows))
        return [durations[i] for i in order], joined(prosody), joined(text), [offsets[i] for i in order]

    def _start_curves(
        self, rows: Sequence[Utterance], indices: list[NDArray[np.int64]], prosody: Tensor, stream: StageStream
    ) -> dict[int, Tensor]:
        """Pitch and energy [2T, 2] of each row."""
        by_row: dict[int, Tensor] = {}
        for group in self.plan.curves.group([len(index) for index in indices], self.max_padded_frames):
            index = np.zeros((group.n_rows, group.length), np.int64)
            style = np.zeros((group.n_rows, STYLE_SIZE), np.float32)
            counts = np.ones(group.n_rows, np.int64)
            for place, i in enumerate(group.members):
                counts[place] = len(indices[i])
                index[place, : len(indices[i])] = indices[i]
                style[place] = rows[i].style
            (device_index,) = stream.upload(index.reshape(-1))
            frame_prosody = prosody.index_select(0, device_index).view(*index.shape, PROSODY)
            (curves,) = self._predict_curves(stream, (counts, style), frame_prosody)
            by_row |= {i: curves[place, : 2 * len(indices[i])] for place, i in enumerate(group.members)}
        return by_row


def vocode_rows(rows: Sequence[Frames], model: TorchModel, vocode: GraphedFunction, pad: PadRows) -> list[Samples]:
    """Run a vocoder on whole rows, in padded groups by length.

    Integers that all rows ask for are made on the device: half as many bytes to copy.
    """
    if not rows:
        return []
    volumes = np.array([np.nan if row.gain is not None else row.pcm_volume for row in rows], np.float32)  # none: NaN
    on_device = bool(np.isfinite(volumes).all())
    outputs: list[tuple[Group, Tensor, Tensor]] = []
    with model.vocoder_stream.activate(sum(row.n_frames for row in rows)) as stream:
        for group in model.plan.frames.group([row.n_frames for row in rows], model.max_padded_frames):
            tensors, arrays = pad([rows[i] for i in group.members], group, stream)
            samples, finite = vocode(stream, arrays, *tensors)
            if on_device:
                samples = to_pcm(samples[: len(group.members)], *stream.upload(volumes[list(group.members)]))
            outputs.append((group, stream.download(samples), stream.download(finite)))
        stream.wait()
    by_row: dict[int, Samples] = {}
    for group, samples, finite in outputs:
        for i, row, is_finite in zip(group.members, samples.numpy(), finite.tolist(), strict=False):
            if not is_finite:
                raise not_finite()
            own = row[: rows[i].n_frames * SAMPLES_PER_FRAME]
            by_row[i] = own if on_device else in_format(rows[i], own)
    return [by_row[i] for i in range(len(rows))]


def silent_frames(length: int) -> Frames:
    """A row to capture a shape with."""
    silence, style = np.zeros(2 * length, np.float32), np.zeros(STYLE_SIZE, np.float32)
    return Frames(np.array([length]), np.zeros((FEATURES, length), np.float32), silence, silence, style)


def _curves_function(acoustic: Acoustic) -> Function:
    def predict_curves(*inputs: Tensor) -> tuple[Tensor]:
        return (acoustic.predict_curves(*inputs),)

    return predict_curves


def _vocoder_function(vocoder: Vocoder) -> Function:
    """The vocoder, and whether each row is finite: checked on the device, where it costs nothing."""

    def vocode(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        samples = vocoder(*inputs)
        return samples, torch.isfinite(samples).all(dim=1)

    return vocode


def _max_padded_frames(device: Device, precision: Precision) -> int:
    """The limit of the device; on CUDA at most what fits into half of the free memory, as graphs need the rest."""
    if device == "cpu":
        return MAX_PADDED_FRAMES[device]
    free, _ = torch.cuda.mem_get_info(device)
    return min(MAX_PADDED_FRAMES[device], int(free / 2 / BYTES_PER_FRAME[precision]))
