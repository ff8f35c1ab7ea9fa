# mypy: ignore-errors
"""Triton kernels for CUDA devices that read the length of each row.

    convs.py      convolutions, with the sum and the statistics after them
    adain.py      sums, statistics, AdaIN, Snake and LeakyReLU
    lstm.py       the recurrent half of a BiLSTM; lstm_cluster.py for a few rows
    attention.py  self-attention
    linear.py     linear layers with fp32 accuracy on fp16 matrix units
    stft.py       the harmonic source, its spectrum, and the samples of spectra
    light.py      blocks and filters of the light vocoder
    launch.py     all of them launched, or only compiled

A tensor is [B, T, C]; `lengths` [B] int32 counts each row's own time steps. What lies far after a row's end is neither
read nor written, so padding costs next to nothing, and nothing is recompiled for a new shape. The files in ../kokoro do
the same in plain PyTorch.
"""

from tutti.model.torch.kernels.adain import adain, mean_leaky_relu, sum_with_moments
from tutti.model.torch.kernels.attention import attention
from tutti.model.torch.kernels.convs import Filters, conv
from tutti.model.torch.kernels.launch import compiling
from tutti.model.torch.kernels.light import filter_sources, steered_conv
from tutti.model.torch.kernels.linear import FEW, add_layer_norm, linear, n_parts
from tutti.model.torch.kernels.lstm import fits_lstm, lstm
from tutti.model.torch.kernels.stft import harmonic_source, istft, stft

__all__ = ["FEW", "Filters", "adain", "add_layer_norm", "attention", "compiling", "conv", "filter_sources",
           "fits_lstm", "harmonic_source", "istft", "linear", "lstm", "mean_leaky_relu", "n_parts", "steered_conv",
           "stft", "sum_with_moments"]  # fmt: skip
