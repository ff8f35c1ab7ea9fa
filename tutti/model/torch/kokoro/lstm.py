"""The bidirectional LSTM over padded rows."""

import torch
from torch import Tensor, nn

from tutti.model.torch.kokoro import masks
from tutti.model.torch.kokoro.linear import SplitFp16Linear, split_fp16
from tutti.model.torch.kokoro.masks import RowMask

GATE_CHANNELS = 8  # extra input channels that mark padding; one would do, eight keep the input aligned
CUDNN_LSTM = 2  # cuDNN's id of this cell type


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
        for name in ("recurrent", "high", "low"):  # the recurrent weights in the kernel's layouts
            self.register_buffer(name, torch.empty(0), persistent=False)
        self.input_gates, self.scale = SplitFp16Linear(), 1.0
        self.register_load_state_dict_pre_hook(self._add_gate_channels)  # type: ignore[no-untyped-call]

    recurrent: Tensor
    high: Tensor
    low: Tensor

    def forward(self, x: Tensor, mask: RowMask) -> Tensor:  # [B, T, n_in] -> [B, T, n_out]
        if masks.has_kernels(x) and self.recurrent.is_cuda:
            from tutti.model.torch import kernels

            hidden = self.recurrent.shape[2]
            if kernels.fits_lstm(x.shape[0], hidden, x.device):
                gates = self.input_gates(x, mask).view(*x.shape[:2], 2, hidden, 4)
                states = kernels.lstm(gates, self.recurrent, self.high, self.low, self.scale, mask.lengths)
                return states.masked_fill(~mask.valid, 0)
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
            self._interleave(*(torch.stack([weights[i], weights[i + len(weights) // 2]]) for i in range(4)))

    def _interleave(self, weight_in: Tensor, recurrent: Tensor, bias_in: Tensor, bias_state: Tensor) -> None:
        """Put the four gates of each unit next to each other. All [2, 4H, ...]."""
        hidden = recurrent.shape[2]

        def by_unit(x: Tensor) -> Tensor:  # [2, 4H, n] -> [2, H * 4, n]
            return x.view(2, 4, hidden, -1).transpose(1, 2).reshape(2, 4 * hidden, -1)

        weight_in = weight_in[:, :, :-GATE_CHANNELS].contiguous()
        self.input_gates.weight = by_unit(weight_in).flatten(0, 1).contiguous()  # [2 * 4H, n_in]
        self.input_gates.bias = by_unit((bias_in + bias_state)[:, :, None]).flatten()
        self.recurrent = recurrent.view(2, 4, hidden, hidden).transpose(2, 3).contiguous()  # [2, 4, H, H]
        self.high, self.low, self.scale = split_fp16(by_unit(recurrent).transpose(1, 2).contiguous())  # [2, H, H * 4]
        self.input_gates.split()

    @staticmethod
    def _add_gate_channels(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
        for name in ("weight_ih_l0", "weight_ih_l0_reverse"):
            weight = state[prefix + name]  # [4H, n_in], gates i, f, g, o
            closing = weight.new_zeros(len(weight), GATE_CHANNELS)
            closing[: len(weight) // 4] = -1e4
            state[prefix + name] = torch.cat([weight, closing], dim=1)
