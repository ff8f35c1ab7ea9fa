"""The acoustic half: how long each token sounds, what it sounds like, and the pitch and energy of every frame."""

from functools import partial
from itertools import chain
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tutti.model.torch.kokoro.adain import STYLE, Manners, StyledNorm, moments
from tutti.model.torch.kokoro.convs import Conv, ResBlock
from tutti.model.torch.kokoro.linear import Exact, normed_sum
from tutti.model.torch.kokoro.lstm import BiLSTM
from tutti.model.torch.kokoro.masks import Ends
from tutti.model.torch.kokoro.side_streams import side_by_side

N_SYMBOLS, MAX_TOKENS = 178, 512
TEXT = 512  # channels of the text features
PROSODY = TEXT + STYLE
LAYERS, HEADS, HIDDEN, FEED = 12, 12, 768, 2048  # of PL-BERT
MAX_DURATION = 50  # frames a token, at speed 1


class Embeddings(nn.Module):
    """What PL-BERT knows of a token before it reads the others."""

    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(N_SYMBOLS, STYLE)
        self.position_embeddings = nn.Embedding(MAX_TOKENS, STYLE)
        self.token_type_embeddings = nn.Embedding(2, STYLE)
        self.LayerNorm = nn.LayerNorm(STYLE, eps=1e-12)

    def forward(self, tokens: Tensor) -> Tensor:  # [B, N] -> [B, N, 128]
        places = self.position_embeddings.weight[: tokens.shape[1]]
        return cast(
            Tensor, self.LayerNorm(self.word_embeddings(tokens) + self.token_type_embeddings.weight[0] + places)
        )


class Attention(nn.Module):
    """Every token looks at every token of its own row."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(HIDDEN, HIDDEN) for _ in range(3))
        self.dense = nn.Linear(HIDDEN, HIDDEN)
        self.LayerNorm = nn.LayerNorm(HIDDEN, eps=1e-12)
        self.looks, self.tells = Exact(), Exact()

    def gather(self) -> None:
        self.looks.gather(self.query, self.key, self.value)
        self.tells.gather(self.dense)

    def forward(self, x: Tensor, bar: Tensor, ends: Ends) -> Tensor:  # [B, N, 768]
        q, k, v = self.looks(x, ends).view(*x.shape[:2], 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=bar)  # [B, heads, N, 64]
        return normed_sum(x, self.tells(seen.transpose(1, 2).flatten(2), ends), self.LayerNorm)


class AlbertLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.ffn, self.ffn_output = nn.Linear(HIDDEN, FEED), nn.Linear(FEED, HIDDEN)
        self.full_layer_layer_norm = nn.LayerNorm(HIDDEN, eps=1e-12)
        self.wider, self.back = Exact(), Exact()

    def gather(self) -> None:
        self.wider.gather(self.ffn)
        self.back.gather(self.ffn_output)

    def forward(self, x: Tensor, bar: Tensor, ends: Ends) -> Tensor:
        x = self.attention(x, bar, ends)
        return normed_sum(x, self.back(self.wider(x, ends, gelu=True), ends), self.full_layer_layer_norm)


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

    def forward(self, tokens: Tensor, ends: Ends) -> Tensor:  # [B, N] -> [B, N, 768]
        layer = self.get_submodule("encoder.albert_layer_groups.0.albert_layers.0")
        x = self.encoder["embedding_hidden_mapping_in"](self.embeddings(tokens))
        bar = torch.where(ends.mask[:, None, None, :, 0], 0.0, float("-inf")).expand(-1, HEADS, tokens.shape[1], -1)
        for _ in range(LAYERS):
            x = layer(x, bar, ends)
        return cast(Tensor, x)


class DurationEncoder(nn.Module):
    """Three times: a BiLSTM, a norm that listens to the style, and the style appended again."""

    def __init__(self) -> None:
        super().__init__()
        self.lstms = nn.ModuleList(layer for _ in range(3) for layer in (BiLSTM(PROSODY, TEXT), StyledNorm(TEXT)))

    def forward(self, x: Tensor, style: Tensor, ends: Ends) -> Tensor:  # [B, N, 512] -> [B, N, 640]
        manner = style[:, None].expand(-1, x.shape[1], -1)
        x = torch.cat([x, manner], dim=-1)
        for lstm, norm in zip(self.lstms[::2], self.lstms[1::2], strict=True):
            x = torch.cat([norm(lstm(x, ends), style), manner], dim=-1)
        return x


class LinearNorm(nn.Module):
    """A linear layer under the name that the checkpoint gives it."""

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
        self.manners = Manners()

    def durations(self, prosody: Tensor, speed: Tensor, ends: Ends) -> Tensor:  # [B, N, 640] -> [B, N] frames
        chances = torch.sigmoid(self.duration_proj(self.lstm(prosody, ends)))  # [B, N, 50]
        frames = torch.round(chances.sum(-1) / speed[:, None]).clamp(min=1)
        return (frames * ends.mask[:, :, 0]).long()

    def curves(self, prosody: Tensor, style: Tensor, ends: Ends) -> Tensor:  # [B, T, 640] -> [B, 2T, 2] Hz and energy
        shared, manner = self.shared(prosody, ends), self.manners(style)
        first, later = moments(shared, ends), ends.doubled()

        def climb(tower: nn.ModuleList, last: Conv) -> Tensor:  # [B, 2T, 1]
            x, its = tower[0](shared, first, manner, ends, torch.float32)
            x, its = tower[1](x, its, manner, ends, torch.float32)
            x, _ = tower[2](x, its, manner, later, torch.float32)
            return cast(Tensor, last(x, later))

        acts = [partial(climb, self.F0, self.F0_proj), partial(climb, self.N, self.N_proj)]
        found = side_by_side(acts, "towers", prosody.shape[0] * prosody.shape[1], prosody.device)
        return torch.where(later.mask, torch.cat(found, dim=-1), 0)


class ChannelNorm(nn.LayerNorm):
    """A layer norm under the names that the checkpoint gives its numbers."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, elementwise_affine=False)
        self.gamma, self.beta = nn.Parameter(torch.empty(channels)), nn.Parameter(torch.empty(channels))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.gamma, self.beta, self.eps)


class TextEncoder(nn.Module):
    """What each token sounds like, for the vocoder."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_SYMBOLS, TEXT)
        self.cnn = nn.ModuleList(nn.ModuleList([Conv(TEXT, TEXT, 5), ChannelNorm(TEXT)]) for _ in range(3))
        self.lstm = BiLSTM(TEXT, TEXT)

    def forward(self, tokens: Tensor, ends: Ends) -> Tensor:  # [B, N] -> [B, N, 512]
        x = self.embedding(tokens) * ends.mask
        for layer in self.cnn:
            conv, norm = cast(nn.ModuleList, layer)
            x = torch.where(ends.mask, F.leaky_relu(norm(conv(x, ends).float()), 0.2), 0)
        return cast(Tensor, self.lstm(x, ends))


class Acoustic(nn.Module):
    """Two passes, as only the first knows the number of frames: `read` the tokens, then `intone` the frames."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = PLBert()
        self.bert_encoder = nn.Linear(HIDDEN, TEXT)
        self.predictor = Predictor()
        self.text_encoder = TextEncoder()
        self.narrower = Exact()

    def gather(self) -> None:
        """Lays out what is computed together; once, after the weights have come."""
        for part in self.modules():
            if isinstance(part, Attention | AlbertLayer):
                part.gather()
        self.narrower.gather(self.bert_encoder)
        self.predictor.manners.gather(self)

    def halve(self) -> None:
        """fp16 for the convolutions of sounds, pitch and energy; what lies between, and all durations, stay fp32."""
        for part in chain(self.text_encoder.modules(), self.predictor.F0.modules(), self.predictor.N.modules()):
            if isinstance(part, Conv):
                part.halve()

    def read(self, tokens: Tensor, n_tokens: Tensor, style: Tensor, speed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """tokens [B, N], n_tokens [B], style [B, 256], speed [B]
        -> durations [B, N], prosody [B, N, 640], text [B, N, 512]."""
        ends = Ends.of(n_tokens, tokens.shape[1])
        x = self.narrower(self.bert(tokens, ends), ends)
        prosody = self.predictor.text_encoder(x, style[:, STYLE:], ends)
        return self.predictor.durations(prosody, speed, ends), prosody, self.text_encoder(tokens, ends)

    def intone(self, prosody: Tensor, n_frames: Tensor, style: Tensor) -> Tensor:
        """prosody of each frame [B, T, 640], n_frames [B], style [B, 256] -> pitch (Hz) and energy [B, 2T, 2]."""
        return self.predictor.curves(prosody, style[:, STYLE:], Ends.of(n_frames, prosody.shape[1]))
