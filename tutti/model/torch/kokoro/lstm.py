"""The BiLSTM of padded rows."""

import torch
from torch import Tensor, nn

from tutti.model.torch.kokoro import masks as rows
from tutti.model.torch.kokoro.linear import Exact, halves
from tutti.model.torch.kokoro.masks import Ends

GATE_CHANNELS = 8  # one would do; eight keep the input aligned
CUDNN_LSTM = 2  # cuDNN's number for this kind of cell


class BiLSTM(nn.Module):
    """An LSTM in both directions, the backward one from each row's own end.

    Our own kernel knows where rows end. Where it does not run, a padded batch needs no packing either: an extra input,
    on in the padding alone, shuts the input gate, and the backward state stays zero until the row's last value.
    """

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        hidden = n_out // 2
        shapes = {"weight_ih": (n_in + GATE_CHANNELS,), "weight_hh": (hidden,), "bias_ih": (), "bias_hh": ()}
        self.names = [f"{kind}_l0{way}" for way in ("", "_reverse") for kind in shapes]
        for name in self.names:
            self.register_parameter(name, nn.Parameter(torch.empty(4 * hidden, *shapes[name.split("_l0")[0]])))
        for name in ("recurrent", "high", "low"):  # the same, as our own kernel reads them
            self.register_buffer(name, torch.empty(0), persistent=False)
        self.entering, self.scale = Exact(), 1.0
        self.register_load_state_dict_pre_hook(self._widen)  # type: ignore[no-untyped-call]

    recurrent: Tensor
    high: Tensor
    low: Tensor

    def forward(self, x: Tensor, ends: Ends) -> Tensor:  # [B, T, n_in] -> [B, T, n_out]
        if rows.has_kernels(x) and self.recurrent.is_cuda:
            from tutti.model.torch import kernels

            hidden = self.recurrent.shape[2]
            if kernels.fits_lstm(x.shape[0], hidden, x.device):
                gates = self.entering(x, ends).view(*x.shape[:2], 2, hidden, 4)
                told = kernels.lstm(gates, self.recurrent, self.high, self.low, self.scale, ends.n)
                return told.masked_fill(~ends.mask, 0)
        gate = (~ends.mask).to(x.dtype).expand(-1, -1, GATE_CHANNELS)
        weights = [getattr(self, name) for name in self.names]
        zeros = x.new_zeros(2, x.shape[0], weights[1].shape[1])
        return torch.lstm(torch.cat([x, gate], dim=-1), (zeros, zeros), weights, True, 1, 0.0, False, True, True)[0]

    def flatten(self) -> None:
        """Lays the weights out on a CUDA device: for cuDNN side by side, for our own kernel by units."""
        weights = [getattr(self, name) for name in self.names]
        n_in, hidden = weights[0].shape[1], weights[1].shape[1]
        with torch.no_grad():
            torch._cudnn_rnn_flatten_weight(weights, 4, n_in, CUDNN_LSTM, hidden, 0, 1, True, True)
            self._interleave(*(torch.stack([weights[i], weights[i + len(weights) // 2]]) for i in range(4)))

    def _interleave(self, entering: Tensor, recurrent: Tensor, bias_in: Tensor, bias_state: Tensor) -> None:
        """The four gates of a unit side by side. All [2, 4H, ...]."""
        hidden = recurrent.shape[2]

        def by_unit(x: Tensor) -> Tensor:  # [2, 4H, n] -> [2, H * 4, n]
            return x.view(2, 4, hidden, -1).transpose(1, 2).reshape(2, 4 * hidden, -1)

        entering = entering[:, :, :-GATE_CHANNELS].contiguous()
        self.entering.weight = by_unit(entering).flatten(0, 1).contiguous()  # [2 * 4H, n_in]
        self.entering.bias = by_unit((bias_in + bias_state)[:, :, None]).flatten()
        self.recurrent = recurrent.view(2, 4, hidden, hidden).transpose(2, 3).contiguous()  # [2, 4, H, H]
        self.high, self.low, self.scale = halves(by_unit(recurrent).transpose(1, 2).contiguous())  # [2, H, H * 4]
        self.entering.split()

    @staticmethod
    def _widen(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
        for name in ("weight_ih_l0", "weight_ih_l0_reverse"):
            weight = state[prefix + name]  # [4H, n_in], gates i, f, g, o
            shut = weight.new_zeros(len(weight), GATE_CHANNELS)
            shut[: len(weight) // 4] = -1e4
            state[prefix + name] = torch.cat([weight, shut], dim=1)
