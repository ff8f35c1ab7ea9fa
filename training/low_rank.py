"""Kokoro's decoder with low-rank convolutions in PyTorch, as the light vocoder has it on processors."""

import math
from collections.abc import Mapping
from copy import deepcopy
from typing import cast

import torch
from torch import Tensor, nn

from tutti.model.light.weights import CORRECTION, CORRECTION_BIAS
from tutti.model.torch.kokoro.convs import Conv, ResBlock
from tutti.model.torch.kokoro.vocoder import Vocoder


def low_rank_decoder(vocoder: Vocoder, bases: Mapping[str, Tensor]) -> Vocoder:
    """A copy whose convolutions, by name, keep of their output only what their basis [n_out, rank] spans; if there is a
    correction of the output, with it.

    Its generator is the same, not a copy.
    """
    copy = deepcopy(vocoder, {id(vocoder.generator): vocoder.generator})
    for name, basis in bases.items():
        if basis.ndim == 2 and name != CORRECTION:
            conv = cast(Conv, copy.get_submodule(name))
            weight = conv.weight.data
            conv.set_weight(project(weight, basis.to(weight.device)).to(weight.dtype))
    if CORRECTION in bases:
        correct(cast(ResBlock, copy.decode[-1]), bases[CORRECTION], bases[CORRECTION_BIAS])
    return copy.eval().requires_grad_(False)


def correct(last: ResBlock, weight: Tensor, bias: Tensor) -> None:
    """Add to the output of the decoder's last block its product with a matrix, and a bias."""
    factor = torch.eye(len(weight)) + weight.float().cpu()
    for conv in (last.conv1x1, last.conv2):
        old = cast(Conv, conv).weight.data
        new = torch.einsum("po,oik->pik", factor, old[: len(factor)].float().cpu())
        cast(Conv, conv).set_weight(new.to(old))
    old_bias = cast(Tensor, last.conv2.bias).data
    new_bias = factor @ old_bias[: len(factor)].float().cpu() + math.sqrt(2) * bias.float().cpu()
    last.conv2.bias = nn.Parameter(new_bias.to(old_bias), requires_grad=False)


def project(weight: Tensor, basis: Tensor) -> Tensor:  # [n_out, n_in, taps], [n_out, rank] -> as the weight
    """The product of both factors of the low-rank convolution, in fp32."""
    with torch.autocast(weight.device.type, enabled=False):
        return (basis.float() @ (basis.float().T @ weight.float().flatten(1))).view_as(weight)
