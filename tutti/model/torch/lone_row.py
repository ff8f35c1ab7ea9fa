"""A row that is alone on a CUDA device: all of it is launched before its durations are known.

In model.py the host reads the durations and prepares the next pass, and the device waits for it: in caches that are
cold after a pause, for a third of the time. Here the number of frames is guessed from that of the tokens, and two CUDA
graphs follow each other without the host: tokens to durations, durations to samples. Kernels skip padding, so a guess
may be generous. A row that turns out longer is spoken like any other.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tutti.model.buckets import Plan
from tutti.model.protocol import Ran
from tutti.model.torch.cuda_graphs import Capture, Function, Replay
from tutti.model.torch.kokoro.acoustic import PROSODY, TEXT, Acoustic
from tutti.model.torch.kokoro.padding import StageStream, split_block
from tutti.model.torch.kokoro.vocoder import to_pcm
from tutti.model.validation import check_utterances, not_finite
from tutti.speech import NO_CHANGE, SAMPLES_PER_FRAME, STYLE_SIZE, Samples, Utterance

MAX_TOKENS, MAX_FRAMES = 256, 512  # of longer rows the device computes for so long that the host's share matters little
# The guess, which is then padded: too low for 12 of 1,620 rows of 54 voices, 7 of them of one that whispers.
GUESS_PER_TOKEN, GUESS_SPARE = 2.6, 40.0  # frames at speed 1


class LoneRowGraphs:
    """The graphs and their memory. They run on the stream of the acoustic stage, one row at a time."""

    def __init__(self, acoustic: Acoustic, vocode: Function, stream: StageStream, capture: Capture, plan: Plan) -> None:
        self._acoustic, self._vocode, self._stream, self._capture = acoustic, vocode, stream, capture
        self._tokens, self._frames = plan.tokens.ladder, plan.frames.ladder
        self._token_graphs: dict[int, Replay] = {}
        self._frame_graphs: dict[int, tuple[Replay, tuple[Tensor, ...]]] = {}
        # What a row is made of lies in one block, on the host and on the device.
        number, numbers = np.zeros(1, np.float32), np.zeros((1, STYLE_SIZE), np.float32)
        arrays = np.zeros((1, MAX_TOKENS), np.int64), np.zeros(1, np.int64), numbers, number, number
        self._block = stream.new_block(arrays)
        self._host_block = stream.on_host(self._block.shape, self._block.dtype)
        self._row = split_block(self._block, arrays)  # tokens, n_tokens, style, speed, volume
        self._host_row = [part.numpy() for part in split_block(self._host_block, arrays)]
        # To capture with:
        self._write(Utterance(np.zeros(1, np.int64), np.zeros(STYLE_SIZE, np.float32), pcm_volume=1.0))
        # What the first graph hands to the second.
        self._durations = torch.ones(1, MAX_TOKENS, dtype=torch.int64, device=stream.device)
        self._prosody = torch.zeros(1, MAX_TOKENS, PROSODY, device=stream.device)
        self._text = torch.zeros(1, MAX_TOKENS, TEXT, device=stream.device)
        self._host_durations = stream.on_host(self._durations.shape, self._durations.dtype)

    def captures(self) -> list[Callable[[], None]]:
        """Calls that capture one graph each, the largest first: smaller ones fit into its memory."""
        frames = [partial(self._capture_frames, length) for length in self._frames.up_to(MAX_FRAMES)]
        tokens = [partial(self._capture_tokens, length) for length in self._tokens.up_to(MAX_TOKENS)]
        return [*frames[::-1], *tokens[::-1]]

    def _capture_tokens(self, n_tokens: int) -> None:
        """The first graph for a padded number of tokens."""
        tokens, *rest = self._row[:4]

        def encode() -> tuple[Tensor, ...]:
            durations, prosody, text = self._acoustic.encode_tokens(tokens[:, :n_tokens], *rest)
            self._durations.zero_()[:, :n_tokens] = durations
            self._prosody[:, :n_tokens] = prosody
            self._text[:, :n_tokens] = text
            return ()

        with self._stream.activate(n_tokens):
            self._token_graphs[n_tokens] = self._capture(encode, ())[0]

    def _capture_frames(self, n_frames: int) -> None:
        """The second graph for a padded number of frames."""
        style, _, volume = self._row[2:]
        places = torch.arange(n_frames, device=self._stream.device)

        def speak() -> tuple[Tensor, ...]:
            ends = self._durations.cumsum(1)
            # A row with more frames is not used, nor one without a valid duration: they only must stay within memory.
            count = ends[:, -1].clamp(1, n_frames)
            index = torch.searchsorted(ends[0], torch.minimum(places, count - 1), right=True).clamp(max=MAX_TOKENS - 1)
            curves = self._acoustic.predict_curves(self._prosody.index_select(1, index), count, style)
            samples, finite = self._vocode(self._text.index_select(1, index), curves, count, style)
            return to_pcm(samples, volume)[0], finite

        with self._stream.activate(n_frames):
            self._frame_graphs[n_frames] = self._capture(speak, ())

    def speak(self, row: Utterance) -> Ran | None:
        """None if the row has to go the usual way: no graph is captured for it, or it is longer than guessed.

        The acoustic seconds last until the durations are known.
        """
        start_s, n_tokens = time.perf_counter(), len(row.tokens)
        if row.prosody != NO_CHANGE or row.inflection is not None or row.pcm_volume is None:
            return None
        check_utterances([row])
        guess = self._frames.fit(guessed_frames(n_tokens, row.speed))
        replay_tokens, graph = self._token_graphs.get(self._tokens.fit(n_tokens)), self._frame_graphs.get(guess)
        if replay_tokens is None or graph is None:
            return None
        replay_frames, (samples, finite) = graph
        with self._stream.activate(n_tokens) as stream:
            self._write(row)
            replay_tokens()
            self._host_durations.copy_(self._durations, non_blocking=True)
            known = stream.record()
            replay_frames()
            host_samples, host_finite = stream.download(samples), stream.download(finite)
            if known is not None:
                known.synchronize()
            acoustic_s = time.perf_counter() - start_s
            durations: NDArray[np.int64] = self._host_durations[0, :n_tokens].numpy().copy()
            n_frames = int(durations.sum())
            if not 0 < n_frames <= guess:
                return None
            stream.wait()
        if not host_finite.item():
            raise not_finite()
        row_samples: Samples = host_samples.numpy()[: n_frames * SAMPLES_PER_FRAME]
        return Ran([durations], [row_samples], acoustic_s, time.perf_counter() - start_s - acoustic_s)

    def _write(self, row: Utterance) -> None:
        tokens, n_tokens, style, speed, host_volume = self._host_row
        tokens[0, : len(row.tokens)], tokens[0, len(row.tokens) :] = row.tokens, 0
        n_tokens[0], style[0], speed[0], host_volume[0] = len(row.tokens), row.style, row.speed, row.pcm_volume
        self._block.copy_(self._host_block, non_blocking=True)


def guessed_frames(n_tokens: int, speed: float) -> int:
    """A number of frames that few rows of so many tokens exceed."""
    return int((GUESS_PER_TOKEN * n_tokens + GUESS_SPARE) / speed)
