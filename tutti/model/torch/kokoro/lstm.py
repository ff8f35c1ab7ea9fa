"""The bidirectional LSTM over padded rows."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tutti.model.torch.kokoro import masks
from tutti.model.torch.kokoro.linear import SplitFp16Linear, split_fp16
from tutti.model.torch.kokoro.masks import RowMask

GATE_CHANNELS = 8  # extra input channels that mark padding; one would do, eight keep the input aligned
CUDNN_LSTM = 2  # cuDNN's id of this cell type


class RecurrentWeights(NamedTuple):
    """The recurrent weights of both directions, as the CUDA kernels read them; H units."""

    by_gate: Tensor  # [2, 4, H, H]: direction, gate, unit before, unit
    by_thread: Tensor  # [2, 8, 4, H / 32, H / 8, 8, 4]: direction, block, gate, quad, unit of the block, thread, place
    high: Tensor  # [2, H, H * 4] fp16: direction, unit before, unit and gate
    low: Tensor
    scale: float

    @staticmethod
    def of(recurrent: Tensor) -> "RecurrentWeights":  # [2, 4H, H]
        hidden = recurrent.shape[2]
        by_gate = recurrent.view(2, 4, hidden, hidden).transpose(2, 3).contiguous()
        # A unit's eight threads take every eighth quad of the units before.
        by_thread = by_gate.view(2, 4, hidden // 32, 8, 4, 8, hidden // 8).permute(0, 5, 1, 2, 6, 3, 4).contiguous()
        return RecurrentWeights(by_gate, by_thread, *split_fp16(_by_unit(recurrent).transpose(1, 2).contiguous()))


class BiLSTM(nn.Module):
    """An LSTM in both directions; the backward one starts at each row's own end.

    The CUDA kernel reads row lengths. Elsewhere a padded batch needs no packing either: an extra input that is 1 only
    in padding closes the input gate, so the backward state stays zero until the row's last value.
    """

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        hidden = n_out // 2
        shapes = {"weight_ih": (n_in + GATE_CHANNELS,), "weight_hh": (hidden,), "bias_ih": (), "bias_hh": ()}
        self.names = [f"{kind}_l0{direction}" for direction in ("", "_reverse") for kind in shapes]
        for name in self.names:
            self.register_parameter(name, nn.Parameter(torch.empty(4 * hidden, *shapes[name.split("_l0")[0]])))
        self.input_gates, self.recurrent = SplitFp16Linear(), None
        self.register_load_state_dict_pre_hook(self._add_gate_channels)  # type: ignore[no-untyped-call]

    recurrent: RecurrentWeights | None  # on a CUDA device

    def forward(self, x: Tensor, mask: RowMask) -> Tensor:  # [B, T, n_in] -> [B, T, n_out]
        if masks.has_kernels(x) and self.recurrent is not None:
            from tutti.model.torch import kernels

            hidden = self.recurrent.by_gate.shape[2]
            if kernels.fits_lstm(x.shape[0], hidden, x.device):
                gates = self.input_gates(x, mask).view(*x.shape[:2], 2, hidden, 4)
                return kernels.lstm(gates, self.recurrent, mask.lengths)
        padding = (~mask.valid).to(x.dtype).expand(-1, -1, GATE_CHANNELS)
        weights = [getattr(self, name) for name in self.names]
        zeros = x.new_zeros(2, x.shape[0], weights[1].shape[1])
        return torch.lstm(torch.cat([x, padding], dim=-1), (zeros, zeros), weights, True, 1, 0.0, False, True, True)[0]

    def flatten(self) -> None:
        """Lay the weights out on a CUDA device: in one block for cuDNN, by unit for our kernel."""
        weights = [getattr(self, name) for name in self.names]
        n_in, hidden = weights[0].shape[1], weights[1].shape[1]
        with torch.no_grad():
            torch._cudnn_rnn_flatten_weight(weights, 4, n_in, CUDNN_LSTM, hidden, 0, 1, True, True)
            both = (torch.stack([weights[i], weights[i + len(weights) // 2]]) for i in range(4))  # [2, 4H, ...]
            weight_in, recurrent, bias_in, bias_state = both
            self.recurrent = RecurrentWeights.of(recurrent)
            self.input_gates.weight = _by_unit(weight_in[:, :, :-GATE_CHANNELS]).flatten(0, 1).contiguous()
            self.input_gates.bias = _by_unit((bias_in + bias_state)[:, :, None]).flatten()
            self.input_gates.split()

    @staticmethod
    def _add_gate_channels(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
        for name in ("weight_ih_l0", "weight_ih_l0_reverse"):
            weight = state[prefix + name]  # [4H, n_in], gates i, f, g, o
            closing = weight.new_zeros(len(weight), GATE_CHANNELS)
            closing[: len(weight) // 4] = -1e4
            state[prefix + name] = torch.cat([weight, closing], dim=1)


def _by_unit(x: Tensor) -> Tensor:  # [2, 4H, n] -> [2, H * 4, n]
    """Put the four gates of each unit next to each other."""
    return x.reshape(2, 4, -1, x.shape[2]).transpose(1, 2).reshape(2, -1, x.shape[2])
