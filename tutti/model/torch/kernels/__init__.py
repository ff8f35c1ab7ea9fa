# mypy: ignore-errors
"""What runs on a CUDA device beside cuBLAS, as Triton kernels that know where each row ends.

    convs.py    convolutions, with the sum and the statistics that follow them
    norms.py    sums, statistics, instance norm by style, Snake and LeakyReLU
    lstm.py     the recurrent half of a BiLSTM
    linear.py   linear layers as exact as fp32 on fp16 matrix units
    waves.py    the harmonic source, its spectrum, and the sound of spectra

A tensor is [B, T, C]; `ends` [B] int32 counts each row's own times. What lies far behind a row's end is neither read
nor written, so padding costs next to nothing, and nothing is compiled anew for a new shape. The files beside this
folder say the same in plain PyTorch.
"""

from tutti.model.torch.kernels.adain import bent, blended, joined
from tutti.model.torch.kernels.convs import convolved
from tutti.model.torch.kernels.linear import linear, normed
from tutti.model.torch.kernels.lstm import fits_lstm, lstm
from tutti.model.torch.kernels.stft import analysed, hum, sound

__all__ = ["analysed", "bent", "blended", "convolved", "fits_lstm", "hum", "joined", "linear", "lstm",
           "normed", "sound"]  # fmt: skip
