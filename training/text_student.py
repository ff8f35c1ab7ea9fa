"""The text student: a small transformer from phonemes to the features that Kokoro's predictor reads, for PL-BERT."""

from collections.abc import Mapping
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.light.text import HEAD, KERNEL, waves
from tutti.model.torch.kokoro.acoustic import N_SYMBOLS, TEXT
from tutti.model.torch.kokoro.masks import RowMask


class Block(nn.Module):
    """Attention with rotary positions, a depth-wise convolution, and two wide layers; each is added to its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention_norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.conv = nn.Conv1d(width, width, KERNEL, padding=KERNEL // 2, groups=width)
        self.expand, self.contract = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: RowMask, turns: tuple[Tensor, Tensor]) -> Tensor:  # [B, N, width]
        x = x + self._attend(self.attention_norm(x), mask, turns)
        x = x + self.conv((x * mask.valid).transpose(1, 2)).transpose(1, 2)
        y = F.gelu(self.expand(self.feed_norm(x)), approximate="tanh")
        return cast(Tensor, x + self.contract(y))

    def _attend(self, x: Tensor, mask: RowMask, turns: tuple[Tensor, Tensor]) -> Tensor:
        rows, n, width = x.shape
        q, k, v = self.qkv(x).view(rows, n, 3, width // HEAD, HEAD).permute(2, 0, 3, 1, 4)  # [B, heads, N, 64]
        valid = mask.valid[:, None, None, :, 0]
        y = F.scaled_dot_product_attention(rotate(q, turns), rotate(k, turns), v, attn_mask=valid)
        return cast(Tensor, self.out(y.transpose(1, 2).reshape(rows, n, width)))


class TextStudent(nn.Module):
    """Tokens to the 512 features that `Acoustic.bert_projection` gives; one pass for rows of any length."""

    def __init__(self, width: int = 256, n_blocks: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_SYMBOLS, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(n_blocks))
        self.norm, self.features = nn.LayerNorm(width), nn.Linear(width, TEXT)
        for name, parameter in self.blocks.named_parameters():
            if parameter.dim() == 2:
                # What a block adds starts small, so that the sum of all keeps its size.
                nn.init.normal_(parameter, std=0.02 if name.endswith(("qkv.weight", "expand.weight")) else 0.01)

    @staticmethod
    def of(state: Mapping[str, Tensor]) -> "TextStudent":
        """The network that has these weights."""
        n_blocks = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("blocks."))
        student = TextStudent(state["embedding.weight"].shape[1], n_blocks)
        student.load_state_dict(dict(state))
        return student

    @torch.no_grad()
    def grown(self, n_blocks: int) -> "TextStudent":
        """The same function with more blocks: the new ones, spread among the others, add nothing yet."""
        width, n_own = self.embedding.embedding_dim, len(self.blocks)
        places = [round(i * (n_blocks - 1) / max(1, n_own - 1)) for i in range(n_own)]
        student = TextStudent(width, n_blocks)
        for block in student.blocks:
            for part in (block.out, block.conv, block.contract):
                nn.init.zeros_(part.weight)
                nn.init.zeros_(part.bias)
        own = {f"blocks.{place}": f"blocks.{i}" for i, place in enumerate(places)}
        state = {name: tensor for name, tensor in self.state_dict().items() if not name.startswith("blocks.")}
        for new, old in own.items():
            state |= {new + name[len(old) :]: tensor for name, tensor in self.state_dict().items()
                      if name.startswith(old + ".")}  # fmt: skip
        student.load_state_dict(state, strict=False)
        return student

    def forward(self, tokens: Tensor, mask: RowMask) -> Tensor:  # [B, N] -> [B, N, 512]
        x = self.embedding(tokens) * mask.valid
        turns = rotary_waves(tokens.shape[1], tokens.device)
        for block in self.blocks:
            x = block(x, mask, turns)
        return cast(Tensor, self.features(self.norm(x).float()))


def rotary_waves(n: int, device: torch.device) -> tuple[Tensor, Tensor]:  # [N, 32]
    """Cosine and sine of each position, by which pairs of channels are rotated."""
    cos, sin = (torch.from_numpy(wave[:n]).to(device) for wave in waves())
    return cos, sin


def rotate(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:  # [..., N, 64]
    a, b = x.chunk(2, dim=-1)
    cos, sin = (wave.to(x.dtype) for wave in turns)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


def is_block_matrix(name: str) -> bool:
    """The linear layers of the blocks, for Muon."""
    return name.startswith("blocks.") and name.endswith(".weight") and not name.endswith(("norm.weight", "conv.weight"))
