"""Nano: one network from what the decoder reads to light's spectra, instead of decoder and light.

Most of its blocks run once a frame, 40 times a second; one block and the head run at light's 80 steps. It has no norm
over time: a step depends on the steps around it, on the timbre, and on statistics of the whole row's inputs, which are
added to the timbre once. So windows continue bit for bit, and rows of any length share a batch.
"""

from collections.abc import Mapping
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.kokoro import masks
from tutti.model.torch.light import TAPS, LightBlock, SpectralNetwork, masked, network_inputs

TEXT = 512  # text features of a frame
READ = TEXT + 1  # features of a step: those of its frame, and the energy
CURVES = 3  # of a step: energy, voiced or not, the logarithm of the pitch
STEPS_PER_FRAME = 2
FRAME_TAPS = 5


def text_and_energy(features: Tensor, energy: Tensor) -> Tensor:  # [B, T, 512], [B, 2T] -> [B, 2T, 513]
    """What the network reads of each step, besides the pitch."""
    return torch.cat([masks.upsample_nearest(features), energy[:, :, None].to(features.dtype)], dim=-1)


class NanoNetwork(SpectralNetwork):
    """Text features, energy, pitch and timbre, steered by the row's statistics -> samples. Rows have whole frames."""

    def __init__(self, width: int = 512, n_frame_blocks: int = 6, n_step_blocks: int = 1, expansion: int = 2) -> None:
        super().__init__(width, READ)
        of_frames = -(-n_step_blocks * (TAPS // 2) // STEPS_PER_FRAME) + n_frame_blocks * (FRAME_TAPS // 2)
        self.context = max((n_step_blocks + 1) * (TAPS // 2), STEPS_PER_FRAME * of_frames)
        self.entry = nn.Linear(TEXT + STEPS_PER_FRAME * CURVES, width)
        self.frame_blocks = nn.ModuleList(LightBlock(width, expansion, FRAME_TAPS) for _ in range(n_frame_blocks))
        self.split = nn.Linear(width, STEPS_PER_FRAME * width)
        self.curves = nn.Conv1d(CURVES, width, TAPS, padding=TAPS // 2)
        self.step_blocks = nn.ModuleList(LightBlock(width, expansion) for _ in range(n_step_blocks))

    @classmethod
    def of(cls, state: Mapping[str, Tensor]) -> Self:
        width = len(state["entry.bias"])
        n_frame_blocks, n_step_blocks = (
            sum(name.startswith(kind) and name.endswith(".gain") for name in state)
            for kind in ("frame_blocks.", "step_blocks.")
        )
        expansion = len(state["frame_blocks.0.expand.bias"]) // width
        network = cls(width, n_frame_blocks, n_step_blocks, expansion)
        network.load_state_dict(dict(state))
        return network

    def hidden(self, x: Tensor, f0: Tensor, timbre: Tensor, valid: Tensor | None = None) -> Tensor:
        text, curves = torch.split(masked(network_inputs(x, f0), valid), [TEXT, CURVES], dim=-1)
        of_frame = curves.reshape(len(x), -1, STEPS_PER_FRAME * CURVES)
        h = aligned_linear(self.entry, torch.cat([text[:, ::STEPS_PER_FRAME], of_frame], dim=-1))
        frames = None if valid is None else valid[:, ::STEPS_PER_FRAME].contiguous()
        for block in self.frame_blocks:
            h = block(h, timbre, frames)
        h = self.split(h).view(*x.shape[:2], -1) + self.curves(curves.transpose(1, 2)).transpose(1, 2)
        for block in self.step_blocks:
            h = block(h.contiguous(), timbre, valid)
        return F.layer_norm(h, h.shape[-1:])


def aligned_linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """With a multiple of eight inputs: without them the product takes far longer on a CUDA device."""
    missing = (0, -x.shape[-1] % 8)
    return F.linear(F.pad(x, missing), F.pad(layer.weight, missing), layer.bias)
