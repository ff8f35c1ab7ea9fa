# mypy: ignore-errors
"""The recurrent half of a BiLSTM for a few rows, in CUDA C++: Triton has no way to share memory within a cluster.

A cluster of eight thread blocks takes one direction of one row, each block an eighth of the units, with their weights
in registers. A step takes 0.6 microseconds, a third of what it takes through the device's memory as in lstm.py:

- Eight threads share a unit. Each adds up an eighth of the states for all four gates, so that a state is read from
  shared memory once for four products, and not for one.
- A block writes its states into the memory of the others by stores that count as arrivals there (`st.async`): a block
  goes on when it has them all. No block waits for the others to have read: what a block sends next but one, which
  replaces these states, needs the next states of all others, and they have read before they sent those.
"""

from functools import cache

import torch
from torch import Tensor

HIDDEN = 256  # units of each direction in Kokoro's layers
MAX_ROWS = 6  # clusters of so many rows run at the same time; for more rows lstm.py shares each step between them

SOURCE = r"""
constexpr int HIDDEN = 256, BLOCKS = 8, THREADS = 256, WARP_UNITS = 4, BLOCK_UNITS = HIDDEN / BLOCKS;
constexpr int GATES = 4, QUADS = HIDDEN / 4 / 8;  // of four states each, that one of a unit's eight threads adds up
constexpr unsigned STATE_BYTES = HIDDEN * sizeof(float), BARRIER_BYTES = 8;

__device__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
__device__ float tanh_of(float x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

__device__ unsigned address_of(const void* here) { return static_cast<unsigned>(__cvta_generic_to_shared(here)); }

__device__ unsigned address_in(int block, unsigned here) {
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(block));
  return there;
}

__device__ void expect_states(unsigned barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(STATE_BYTES) : "memory");
}

__device__ void wait_for_states(unsigned barrier, unsigned parity) {
  asm volatile("{\n\t.reg .pred done;\n\tagain:\n\t"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@!done bra again;\n\t}"
               ::"r"(barrier), "r"(parity) : "memory");
}

__device__ void send_state(unsigned place, float value, unsigned barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
               ::"r"(place), "r"(__float_as_uint(value)), "r"(barrier) : "memory");
}

extern "C" __global__ void __attribute__((cluster_dims(8, 1, 1))) __launch_bounds__(THREADS, 1)
lstm_cluster(const float* gates, const float4* weights, float* out, const int* lengths, int n_times) {
  const int block = blockIdx.x, direction = blockIdx.y, row = blockIdx.z;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, part = lane & 7, unit_lane = lane & 24;
  const int unit = block * BLOCK_UNITS + warp * WARP_UNITS + (lane >> 3);
  const int odd = lane & 1, upper = lane >> 1 & 1, gate = 2 * odd + upper;  // the gate that this thread adds up
  const int end = lengths[row];

  float4 weight[GATES][QUADS];
  const float4* own = weights + (direction * BLOCKS + block) * GATES * QUADS * THREADS + threadIdx.x;
#pragma unroll
  for (int i = 0; i < GATES * QUADS; ++i) weight[i / QUADS][i % QUADS] = own[i * THREADS];

  __shared__ __align__(16) float state[2][HIDDEN];  // of this step and the next
  __shared__ __align__(8) unsigned long long arrived[2];
  const unsigned barrier = address_of(arrived);
  state[0][threadIdx.x] = 0.0f;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier + i * BARRIER_BYTES) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int i = 0; i < 2; ++i) expect_states(barrier + i * BARRIER_BYTES);
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  // Each of a unit's eight threads sends its state to one block.
  const unsigned place_there = address_in(part, address_of(&state[0][unit])), barrier_there = address_in(part, barrier);

  const int first = direction == 0 ? 0 : end - 1, forward = direction == 0 ? 1 : -1;
  const int stride = 2 * HIDDEN;  // of a time step in `out`; the gates of a unit are four values
  long place = (static_cast<long>(row) * n_times + first) * stride + direction * HIDDEN + unit;
  float input = end > 0 ? gates[place * GATES + gate] : 0.0f, cell = 0.0f;
  for (int step = 0; step < end; ++step) {
    const long next = place + forward * stride;
    const float next_input = step + 1 < end ? gates[next * GATES + gate] : 0.0f;
    const unsigned now = step & 1, then = now ^ 1;
    if (step > 0) {
      wait_for_states(barrier + now * BARRIER_BYTES, (step - 1) >> 1 & 1);
      if (threadIdx.x == 0) expect_states(barrier + now * BARRIER_BYTES);  // of the step after the next
    }
    const float4* before = reinterpret_cast<const float4*>(state[now]) + part;
    float sum[GATES] = {}, more[GATES] = {};
#pragma unroll
    for (int i = 0; i < QUADS; ++i) {
      const float4 h = before[8 * i];
#pragma unroll
      for (int g = 0; g < GATES; ++g) {
        sum[g] = fmaf(h.x, weight[g][i].x, sum[g]);
        more[g] = fmaf(h.y, weight[g][i].y, more[g]);
        sum[g] = fmaf(h.z, weight[g][i].z, sum[g]);
        more[g] = fmaf(h.w, weight[g][i].w, more[g]);
      }
    }
#pragma unroll
    for (int g = 0; g < GATES; ++g) sum[g] += more[g];
    // Neighbours exchange the gates that the other adds up: two of four, then one of two.
    const float first_half = (odd ? sum[2] : sum[0]) + __shfl_xor_sync(~0u, odd ? sum[0] : sum[2], 1);
    const float second_half = (odd ? sum[3] : sum[1]) + __shfl_xor_sync(~0u, odd ? sum[1] : sum[3], 1);
    float total = upper ? second_half : first_half;
    total += __shfl_xor_sync(~0u, upper ? first_half : second_half, 2);
    total += __shfl_xor_sync(~0u, total, 4) + input;
    const float value = gate == 2 ? tanh_of(total) : sigmoid(total);
    const float g_in = __shfl_sync(~0u, value, unit_lane), g_forget = __shfl_sync(~0u, value, unit_lane + 2);
    const float g_cell = __shfl_sync(~0u, value, unit_lane + 1), g_out = __shfl_sync(~0u, value, unit_lane + 3);
    cell = g_forget * cell + g_in * g_cell;
    const float hidden = g_out * tanh_of(cell);
    if (step + 1 < end) send_state(place_there + then * STATE_BYTES, hidden, barrier_there + then * BARRIER_BYTES);
    if (part == 0) out[place] = hidden;
    place = next;
    input = next_input;
  }
  float* after = out + static_cast<long>(row) * n_times * stride + direction * HIDDEN + unit;
  for (int time = end + part; time < n_times; time += 8) after[time * stride] = 0.0f;
}
"""


def fits_cluster(n_rows: int, hidden: int) -> bool:
    """Whether this kernel is for so many rows, and PyTorch can compile it: older versions cannot."""
    return n_rows <= MAX_ROWS and hidden == HIDDEN and hasattr(torch.cuda, "_compile_kernel")


def lstm_cluster(gates: Tensor, weights: Tensor, lengths: Tensor) -> Tensor:
    """gates [B, T, 2, H, 4], weights by thread -> [B, T, 2H], zero after each row's end."""
    n_rows, n_times = gates.shape[:2]
    out = torch.empty(n_rows, n_times, 2 * HIDDEN, device=gates.device)
    _compiled(gates.device)((8, 2, n_rows), (256, 1, 1), (gates, weights, out, lengths, n_times))
    return out


@cache
def _compiled(_device: torch.device):
    return torch.cuda._compile_kernel(SOURCE, "lstm_cluster")
