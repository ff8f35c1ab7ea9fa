"""The acoustic half: the duration and the features of each token, and the pitch and energy of each frame."""

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.kokoro import masks
from tutti.model.torch.kokoro.adain import STYLE, AdaLayerNorm, StyleProjections, moments_of
from tutti.model.torch.kokoro.convs import Conv, ResBlock
from tutti.model.torch.kokoro.linear import SplitFp16Linear, add_layer_norm
from tutti.model.torch.kokoro.lstm import BiLSTM
from tutti.model.torch.kokoro.masks import RowMask
from tutti.model.torch.kokoro.side_streams import run_parallel

N_SYMBOLS, MAX_TOKENS = 178, 512
TEXT = 512  # channels of the text features
PROSODY = TEXT + STYLE
LAYERS, HEADS, HIDDEN, FEED = 12, 12, 768, 2048  # of PL-BERT
MAX_DURATION = 50  # frames a token, at speed 1


class Embeddings(nn.Module):
    """PL-BERT's token, position and type embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(N_SYMBOLS, STYLE)
        self.position_embeddings = nn.Embedding(MAX_TOKENS, STYLE)
        self.token_type_embeddings = nn.Embedding(2, STYLE)
        self.LayerNorm = nn.LayerNorm(STYLE, eps=1e-12)

    def forward(self, tokens: Tensor) -> Tensor:  # [B, N] -> [B, N, 128]
        positions = self.position_embeddings.weight[: tokens.shape[1]]
        return cast(
            Tensor, self.LayerNorm(self.word_embeddings(tokens) + self.token_type_embeddings.weight[0] + positions)
        )


class Attention(nn.Module):
    """Multi-head self-attention within each row."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(HIDDEN, HIDDEN) for _ in range(3))
        self.dense = nn.Linear(HIDDEN, HIDDEN)
        self.LayerNorm = nn.LayerNorm(HIDDEN, eps=1e-12)
        self.qkv, self.out = SplitFp16Linear(), SplitFp16Linear()

    def fuse(self) -> None:
        self.qkv.fuse(self.query, self.key, self.value)
        self.out.fuse(self.dense)

    def forward(self, x: Tensor, mask: RowMask) -> Tensor:  # [B, N, 768]
        return add_layer_norm(x, self._attend(self.qkv(x, mask), mask), self.out, self.LayerNorm, mask)

    def _attend(self, qkv: Tensor, mask: RowMask) -> Tensor:  # [B, N, 3 * 768] -> [B, N, 768]
        if masks.has_kernels(qkv):
            from tutti.model.torch import kernels

            if mask.valid.numel() <= kernels.FEW:
                return kernels.attention(qkv, HEADS, mask.lengths)
        q, k, v = qkv.view(*qkv.shape[:2], 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        attention_mask = torch.where(mask.valid[:, None, None, :, 0], 0.0, float("-inf"))
        attention_mask = attention_mask.expand(-1, HEADS, qkv.shape[1], -1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=attention_mask)  # [B, heads, N, 64]
        return y.transpose(1, 2).flatten(2)


class AlbertLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.ffn, self.ffn_output = nn.Linear(HIDDEN, FEED), nn.Linear(FEED, HIDDEN)
        self.full_layer_layer_norm = nn.LayerNorm(HIDDEN, eps=1e-12)
        self.up, self.down = SplitFp16Linear(), SplitFp16Linear()

    def fuse(self) -> None:
        self.up.fuse(self.ffn)
        self.down.fuse(self.ffn_output)

    def forward(self, x: Tensor, mask: RowMask) -> Tensor:
        x = self.attention(x, mask)
        return add_layer_norm(x, self.up(x, mask, gelu=True), self.down, self.full_layer_layer_norm, mask)


class PLBert(nn.Module):
    """ALBERT over phonemes: one layer, applied twelve times."""

    def __init__(self) -> None:
        super().__init__()
        group = nn.ModuleDict({"albert_layers": nn.ModuleList([AlbertLayer()])})
        self.embeddings = Embeddings()
        self.encoder = nn.ModuleDict(
            {
                "embedding_hidden_mapping_in": nn.Linear(STYLE, HIDDEN),
                "albert_layer_groups": nn.ModuleList([group]),
            }
        )

    def forward(self, tokens: Tensor, mask: RowMask) -> Tensor:  # [B, N] -> [B, N, 768]
        layer = self.get_submodule("encoder.albert_layer_groups.0.albert_layers.0")
        x = self.encoder["embedding_hidden_mapping_in"](self.embeddings(tokens))
        for _ in range(LAYERS):
            x = layer(x, mask)
        return cast(Tensor, x)


class DurationEncoder(nn.Module):
    """Three blocks of BiLSTM and adaptive layer norm, with the style appended before each."""

    def __init__(self) -> None:
        super().__init__()
        self.lstms = nn.ModuleList(layer for _ in range(3) for layer in (BiLSTM(PROSODY, TEXT), AdaLayerNorm(TEXT)))

    def forward(self, x: Tensor, style: Tensor, mask: RowMask) -> Tensor:  # [B, N, 512] -> [B, N, 640]
        appended = style[:, None].expand(-1, x.shape[1], -1)
        x = torch.cat([x, appended], dim=-1)
        for lstm, norm in zip(self.lstms[::2], self.lstms[1::2], strict=True):
            x = torch.cat([norm(lstm(x, mask), style), appended], dim=-1)
        return x


class LinearNorm(nn.Module):
    """A linear layer under the checkpoint's name for it."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.linear_layer = nn.Linear(n_in, n_out)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.linear_layer(x))


class Predictor(nn.Module):
    """Durations of tokens; pitch and energy of frames."""

    def __init__(self) -> None:
        super().__init__()
        self.text_encoder = DurationEncoder()
        self.lstm = BiLSTM(PROSODY, TEXT)
        self.duration_proj = LinearNorm(TEXT, MAX_DURATION)
        self.shared = BiLSTM(PROSODY, TEXT)
        self.F0, self.N = (
            nn.ModuleList([ResBlock(TEXT, TEXT), ResBlock(TEXT, TEXT // 2, up=True), ResBlock(TEXT // 2, TEXT // 2)])
            for _ in range(2)
        )
        self.F0_proj, self.N_proj = Conv(TEXT // 2, 1), Conv(TEXT // 2, 1)
        self.style_projections = StyleProjections()

    def durations(self, prosody: Tensor, speed: Tensor, mask: RowMask) -> Tensor:  # [B, N, 640] -> [B, N] frames
        probabilities = torch.sigmoid(self.duration_proj(self.lstm(prosody, mask)))  # [B, N, 50]
        frames = torch.round(probabilities.sum(-1) / speed[:, None]).clamp(min=1)
        return (frames * mask.valid[:, :, 0]).long()

    def curves(self, prosody: Tensor, style: Tensor, mask: RowMask) -> Tensor:  # [B, T, 640] -> [B, 2T, 2] Hz, energy
        shared, styles = self.shared(prosody, mask), self.style_projections(style)
        shared_moments, upsampled = moments_of(shared, mask), mask.upsample()

        def predict(blocks: nn.ModuleList, projection: Conv) -> Tensor:  # [B, 2T, 1]
            x, moments = blocks[0](shared, shared_moments, styles, mask, torch.float32)
            x, moments = blocks[1](x, moments, styles, mask, torch.float32)
            x, _ = blocks[2](x, moments, styles, upsampled, torch.float32)
            return cast(Tensor, projection(x, upsampled))

        branches = [partial(predict, self.F0, self.F0_proj), partial(predict, self.N, self.N_proj)]
        curves = run_parallel(branches, "curves", prosody.shape[0] * prosody.shape[1], prosody.device)
        return torch.where(upsampled.valid, torch.cat(curves, dim=-1), 0)


class ChannelNorm(nn.LayerNorm):
    """A layer norm under the checkpoint's names for its parameters."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, elementwise_affine=False)
        self.gamma, self.beta = nn.Parameter(torch.empty(channels)), nn.Parameter(torch.empty(channels))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.gamma, self.beta, self.eps)


class TextEncoder(nn.Module):
    """The features of each token for the vocoder."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_SYMBOLS, TEXT)
        self.cnn = nn.ModuleList(nn.ModuleList([Conv(TEXT, TEXT, 5), ChannelNorm(TEXT)]) for _ in range(3))
        self.lstm = BiLSTM(TEXT, TEXT)

    def forward(self, tokens: Tensor, mask: RowMask) -> Tensor:  # [B, N] -> [B, N, 512]
        x = self.embedding(tokens) * mask.valid
        for layer in self.cnn:
            conv, norm = cast(nn.ModuleList, layer)
            x = torch.where(mask.valid, F.leaky_relu(norm(conv(x, mask).float()), 0.2), 0)
        return cast(Tensor, self.lstm(x, mask))


class Acoustic(nn.Module):
    """Two passes, since the first finds the number of frames: `encode_tokens`, then `predict_curves`."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = PLBert()
        self.bert_encoder = nn.Linear(HIDDEN, TEXT)
        self.predictor = Predictor()
        self.text_encoder = TextEncoder()
        self.bert_projection = SplitFp16Linear()

    def fuse(self) -> None:
        """Fuse the layers that share an input; once, after the weights were loaded."""
        for part in self.modules():
            if isinstance(part, Attention | AlbertLayer):
                part.fuse()
        self.bert_projection.fuse(self.bert_encoder)
        self.predictor.style_projections.fuse(self)

    def use_fp16(self) -> None:
        """Use fp16 for the convolutions of text features, pitch and energy; all else, and all durations, stay fp32."""
        for part in chain(self.text_encoder.modules(), self.predictor.F0.modules(), self.predictor.N.modules()):
            if isinstance(part, Conv):
                part.use_fp16()

    def encode_tokens(
        self, tokens: Tensor, n_tokens: Tensor, style: Tensor, speed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """tokens [B, N], n_tokens [B], style [B, 256], speed [B]
        -> durations [B, N], prosody [B, N, 640], text [B, N, 512]."""
        mask = RowMask.of(n_tokens, tokens.shape[1])

        def predict_durations() -> tuple[Tensor, Tensor]:
            x = self.bert_projection(self.bert(tokens, mask), mask)
            prosody = self.predictor.text_encoder(x, style[:, STYLE:], mask)
            return self.predictor.durations(prosody, speed, mask), prosody

        if tokens.shape[0] > 1:  # each branch has LSTMs, which need more of the device at once than both may find
            return *predict_durations(), self.text_encoder(tokens, mask)

        def encode_text() -> tuple[Tensor, ...]:
            return (self.text_encoder(tokens, mask),)

        branches: list[Callable[[], tuple[Tensor, ...]]] = [predict_durations, encode_text]
        (durations, prosody), (text,) = run_parallel(branches, "tokens", tokens.shape[1], tokens.device)
        return durations, prosody, text

    def predict_curves(self, prosody: Tensor, n_frames: Tensor, style: Tensor) -> Tensor:
        """prosody of each frame [B, T, 640], n_frames [B], style [B, 256] -> pitch (Hz) and energy [B, 2T, 2]."""
        return self.predictor.curves(prosody, style[:, STYLE:], RowMask.of(n_frames, prosody.shape[1]))
