# mypy: ignore-errors
"""The recurrent half of a BiLSTM for a few rows, in CUDA C++: Triton has no way to share memory within a cluster.

A cluster of eight thread blocks takes one direction of one row, each block an eighth of the units, with their weights
in registers. The blocks write their states into each other's shared memory: a step takes two thirds of the time that it
takes through the device's memory, as in lstm.py.
"""

from functools import cache

import torch
from torch import Tensor

HIDDEN = 256  # units of each direction in Kokoro's layers
MAX_ROWS = 6  # clusters of so many rows run at the same time; for more rows lstm.py shares each step between them

SOURCE = r"""
const int BLOCKS = 8, HIDDEN = 256, HALF = HIDDEN / 2, WARP_UNITS = 4, BLOCK_UNITS = HIDDEN / BLOCKS;
const int PADDED = HALF + 4;  // so that the two halves of a state lie in different banks

__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

__device__ void wait_for_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Eight lanes for each unit: four gates, of each the two halves of its sum over the states.
extern "C" __global__ void __attribute__((cluster_dims(8, 1, 1))) __launch_bounds__(256, 1)
lstm_cluster(const float* gates, const float* weights, float* out, const int* lengths, int n_times) {
  const int block = blockIdx.x, direction = blockIdx.y, row = blockIdx.z;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int half = lane & 1, gate = lane >> 1 & 3;
  const int unit = block * BLOCK_UNITS + warp * WARP_UNITS + (lane >> 3);
  const int end = lengths[row];

  float weight[HALF];
  const float* own = weights + ((direction * 4 + gate) * HIDDEN + half * HALF) * HIDDEN + unit;
#pragma unroll
  for (int k = 0; k < HALF; ++k) weight[k] = own[k * HIDDEN];

  __shared__ __align__(16) float state[2][2][PADDED];  // of this step and the next, in halves
  for (int i = threadIdx.x; i < 4 * PADDED; i += blockDim.x) (&state[0][0][0])[i] = 0.0f;
  wait_for_cluster();

  // Lane n of a unit writes its state into block n.
  unsigned here = static_cast<unsigned>(__cvta_generic_to_shared(&state[0][unit / HALF][unit % HALF])), there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(lane & 7));

  const int first = direction == 0 ? 0 : end - 1, forward = direction == 0 ? 1 : -1;
  const int stride = 2 * HIDDEN;  // of a time step in `out`; the gates of a unit are four values
  long place = (static_cast<long>(row) * n_times + first) * stride + direction * HIDDEN + unit;
  float input = end > 0 ? gates[place * 4 + gate] : 0.0f, cell = 0.0f;
  for (int step = 0; step < end; ++step) {
    const long next = place + forward * stride;
    const float next_input = step + 1 < end ? gates[next * 4 + gate] : 0.0f;
    const float4* before = reinterpret_cast<const float4*>(state[step & 1][half]);
    float a = half == 0 ? input : 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
#pragma unroll
    for (int k = 0; k < HALF / 4; ++k) {
      const float4 h = before[k];
      a = fmaf(h.x, weight[4 * k], a);
      b = fmaf(h.y, weight[4 * k + 1], b);
      c = fmaf(h.z, weight[4 * k + 2], c);
      d = fmaf(h.w, weight[4 * k + 3], d);
    }
    float total = (a + b) + (c + d);
    total += __shfl_xor_sync(~0u, total, 1);
    const float value = gate == 2 ? 2.0f * sigmoid(2.0f * total) - 1.0f : sigmoid(total);
    const int own_lanes = lane & 24;
    const float g_in = __shfl_sync(~0u, value, own_lanes), g_forget = __shfl_sync(~0u, value, own_lanes + 2);
    const float g_cell = __shfl_sync(~0u, value, own_lanes + 4), g_out = __shfl_sync(~0u, value, own_lanes + 6);
    cell = g_forget * cell + g_in * g_cell;
    const float hidden = g_out * (2.0f * sigmoid(2.0f * cell) - 1.0f);
    const unsigned target = there + ((step + 1) & 1) * static_cast<unsigned>(sizeof(state[0]));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(target), "f"(hidden) : "memory");
    if ((lane & 7) == 0) out[place] = hidden;
    wait_for_cluster();
    place = next;
    input = next_input;
  }
}
"""


def fits_cluster(n_rows: int, hidden: int) -> bool:
    """Whether this kernel is for so many rows, and PyTorch can compile it: older versions cannot."""
    return n_rows <= MAX_ROWS and hidden == HIDDEN and hasattr(torch.cuda, "_compile_kernel")


def lstm_cluster(gates: Tensor, weights: Tensor, lengths: Tensor) -> Tensor:
    """gates [B, T, 2, H, 4], weights [2, 4, H, H] -> [B, T, 2H], undefined after each row's end."""
    n_rows, n_times = gates.shape[:2]
    out = torch.empty(n_rows, n_times, 2 * HIDDEN, device=gates.device)
    _compiled(gates.device)((8, 2, n_rows), (256, 1, 1), (gates, weights, out, lengths, n_times))
    return out


@cache
def _compiled(_device: torch.device):
    return torch.cuda._compile_kernel(SOURCE, "lstm_cluster")
