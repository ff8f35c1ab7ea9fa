"""PL-BERT as the teacher of the text student, and the frozen predictor that judges both."""

from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from tutti.model.torch.kokoro import masks
from tutti.model.torch.kokoro.acoustic import Acoustic
from tutti.model.torch.kokoro.adain import STYLE
from tutti.model.torch.kokoro.convs import pack_weights
from tutti.model.torch.kokoro.lstm import GATE_CHANNELS, BiLSTM
from tutti.model.torch.kokoro.masks import RowMask

NOT_READ = "text_encoder."  # the vocoder's features, which do not depend on PL-BERT


class TextTeacher:
    """Kokoro's acoustic half: what the student should say, and what becomes of what it says. Gradients flow back."""

    def __init__(self, acoustic: Acoustic, device: torch.device) -> None:
        masks.use_kernels(False)  # they know no gradients
        self._acoustic = acoustic.to(device)
        for part in acoustic.modules():
            if isinstance(part, BiLSTM):
                replace_forward(part)

    @staticmethod
    def read(path: Path, device: torch.device) -> "TextTeacher":
        """From an archive of `training.text_distil pack`."""
        acoustic = Acoustic()
        acoustic.text_encoder = nn.Identity()  # type: ignore[assignment]
        with np.load(path, allow_pickle=False) as archive:
            acoustic.load_state_dict({name: torch.from_numpy(archive[name].astype(np.float32)) for name in archive})
        pack_weights(acoustic)
        acoustic.fuse()
        return TextTeacher(acoustic.eval().requires_grad_(False), device)

    @torch.no_grad()
    def features(self, tokens: Tensor, mask: RowMask) -> Tensor:  # [B, N] -> [B, N, 512]
        return self._acoustic.bert_projection(self._acoustic.bert(tokens, mask), mask)

    def gates(self, features: Tensor) -> Tensor:  # [..., 512] -> [..., 2048]
        """What the first layer of the predictor makes of the features, but for the style."""
        lstm = self._acoustic.predictor.text_encoder.lstms[0]
        weights = torch.cat([getattr(lstm, name) for name in lstm.names if "weight_ih" in name])
        return features @ weights[:, : features.shape[-1]].T

    def prosody(self, features: Tensor, style: Tensor, mask: RowMask) -> tuple[Tensor, Tensor]:
        """features [B, N, 512], style [B, 256] -> prosody [B, N, 640], durations at speed 1, not rounded [B, N]."""
        predictor = self._acoustic.predictor
        prosody = predictor.text_encoder(features, style[:, STYLE:], mask)
        durations = torch.sigmoid(predictor.duration_proj(predictor.lstm(prosody, mask))).sum(-1)
        return prosody, durations

    def curves(self, prosody: Tensor, frames: Tensor, style: Tensor) -> Tensor:
        """prosody [B, N, 640], frames of each token [B, N] -> pitch (Hz) and energy [B, 2T, 2]."""
        n_frames = frames.sum(1)
        mask = RowMask.of(n_frames, int(n_frames.max()))
        return cast(Tensor, self._acoustic.predictor.curves(repeat(prosody, frames, mask), style[:, STYLE:], mask))


def repeat(prosody: Tensor, frames: Tensor, mask: RowMask) -> Tensor:  # [B, N, 640] -> [B, T, 640]
    """Repeat each token by its frames."""
    times = torch.arange(mask.valid.shape[1], device=frames.device).expand(len(frames), -1).contiguous()
    index = torch.searchsorted(frames.cumsum(1), times, right=True).clamp(max=frames.shape[1] - 1)
    return prosody.gather(1, index[:, :, None].expand(-1, -1, prosody.shape[2]))


def replace_forward(lstm: BiLSTM) -> None:
    """cuDNN keeps what a backward pass needs only in training mode, and reads weights that lie in one block fastest."""
    weights = nn.ParameterList([getattr(lstm, name) for name in lstm.names])
    n_hidden = weights[1].shape[1]
    if weights[0].is_cuda:
        with torch.no_grad():
            torch._cudnn_rnn_flatten_weight(list(weights), 4, weights[0].shape[1], 2, n_hidden, 0, 1, True, True)

    def forward(x: Tensor, mask: RowMask) -> Tensor:
        padding = (~mask.valid).to(x.dtype).expand(-1, -1, GATE_CHANNELS)
        zeros = x.new_zeros(2, x.shape[0], n_hidden)
        return torch.lstm(torch.cat([x, padding], -1), (zeros, zeros), list(weights), True, 1, 0.0, True, True, True)[0]

    lstm.forward = forward  # type: ignore[method-assign]
