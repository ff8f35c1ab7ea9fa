"""The Triton kernels do what plain PyTorch does, in Triton's interpreter; skipped where it is not installed."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(find_spec("triton") is None or find_spec("torch") is None, reason="needs PyTorch and Triton"),
]

# Two rows, of 40 and 23 steps.
START = """
import torch
import torch.nn.functional as F
from tutti.model.torch import kernels

torch.manual_seed(0)
torch.set_grad_enabled(False)
n_rows, n_times = 2, 40
lengths = torch.tensor([40, 23], dtype=torch.int32)
valid = (torch.arange(n_times) < lengths[:, None])[:, :, None]

def check(ours, plain):
    assert torch.isfinite(ours).all()
    assert torch.allclose(ours * valid.view(n_rows, n_times, *[1] * (ours.dim() - 2)), plain, rtol=1e-4, atol=1e-4)
"""

ATTENTION = """
qkv = torch.randn(n_rows, n_times, 3 * 2 * 64)
q, k, v = qkv.view(n_rows, n_times, 3, 2, 64).permute(2, 0, 3, 1, 4)
y = F.scaled_dot_product_attention(q, k, v, attn_mask=torch.where(valid[:, None, None, :, 0], 0.0, float("-inf")))
check(kernels.attention(qkv, 2, lengths), y.transpose(1, 2).flatten(2) * valid)
"""

LINEAR = """
from tutti.model.torch.kokoro.linear import split_fp16

x, weight, bias = torch.randn(n_rows, n_times, 512), 0.05 * torch.randn(512, 64), torch.randn(64)
norm, residual = torch.nn.LayerNorm(64), torch.randn(n_rows, n_times, 64)
high, low, scale = split_fp16(weight)
for n_parts in (1, 2, 4):
    y = kernels.linear(x, high, low, bias, scale, lengths, parts=n_parts)
    assert len(y) == n_parts
    check(y.sum(0), (x @ weight + bias) * valid)
    z = kernels.add_layer_norm(residual, y, norm.weight, norm.bias, norm.eps)
    check(z, norm(residual + x @ weight + bias) * valid)
"""

LIGHT_BLOCK = """
x, conv = torch.randn(n_rows, n_times, 64), torch.nn.Conv1d(64, 64, 7, padding=3, groups=64)
steering = torch.randn(n_rows, 128)
scale, shift = steering[:, None].chunk(2, dim=-1)
y = conv((x * valid).transpose(1, 2)).transpose(1, 2)
y = F.layer_norm(y, (64,), eps=1e-5) * (1 + scale) + shift
check(kernels.steered_conv(x, valid, conv.weight, conv.bias, steering, 1e-5), y * valid)
"""

LIGHT_FILTER = """
from tutti.model.light.signal import BINS, MAX_LOG_MAGNITUDE
from tutti.model.torch.light import LightNetwork

network, hidden = LightNetwork(64, 1), torch.randn(n_rows, n_times, 64)
source, noise = torch.randn(2, n_rows, n_times, BINS, 2)
predictable, filtered_noise = network.spectra(hidden, source, noise)
predicted = F.linear(hidden, *network._aligned_head())
ours = kernels.filter_sources(predicted, source, noise, valid, MAX_LOG_MAGNITUDE)
check(ours, (predictable + filtered_noise) * valid[..., None])
assert not ours[1, 23:].any()
"""


@pytest.mark.parametrize(
    "case", [ATTENTION, LINEAR, LIGHT_BLOCK, LIGHT_FILTER], ids=["attention", "linear", "block", "filter"]
)
def test_a_kernel_computes_what_plain_pytorch_does(case: str) -> None:
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", START + case], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
