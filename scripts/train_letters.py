"""Train tutti/text/g2p/data/letters.npz from the pronunciation dictionaries (needs PyTorch; minutes on a GPU).

    python scripts/train_letters.py LEXICON_FOLDER OUT.npz [--epochs 18]

One word in fifty is held out, with all words that share its first five letters, so that "walked" does not teach
"walking". The phoneme error rate printed at the end counts stress marks.
"""

import argparse
import json
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tutti.text.g2p.neural import ALPHABET, PHONE, SLOTS, STYLES

BATCH = 512
Pair = tuple[int, str, tuple[str, ...]]  # style, word, phones


def pairs(folder: Path) -> list[Pair]:
    """Return every plain word with its phones; acronyms and phrases say nothing about letters.

    The silver lists are machine-made: they are trained as separate styles, and inference uses the gold ones.
    """
    phones_of: dict[tuple[int, str], tuple[str, ...]] = {}
    for style, name in enumerate(STYLES):
        for word, sound in json.loads((folder / f"{name}.json").read_text()).items():
            sound = sound["DEFAULT"] if isinstance(sound, dict) else sound
            lower = word.lower()
            if not sound or (word.isupper() and len(word) > 1) or not set(lower) <= set(ALPHABET):
                continue
            phones = tuple(PHONE.findall(sound))
            n_slots = len(phones) + sum(map(str.__eq__, phones, phones[1:]))  # CTC needs a blank between equal phones
            if 2 <= len(lower) <= 24 and n_slots <= SLOTS * len(lower):
                phones_of[style, lower] = phones
    return [(style, word, phones) for (style, word), phones in phones_of.items()]


def is_held_out(word: str) -> bool:
    return zlib.crc32(word[:5].encode()) % 50 == 0


class Net(nn.Module):
    def __init__(self, n_phones: int, size: int, dropout: float = 0.3) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(ALPHABET) + 1, 56)
        self.styles = nn.Embedding(len(STYLES), 8)
        self.gru = nn.GRU(64, size, num_layers=2, bidirectional=True, batch_first=True, dropout=dropout)
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(2 * size, SLOTS * n_phones)

    def forward(self, letters: Tensor, styles: Tensor, lengths: Tensor) -> Tensor:  # [B, T], [B], [B] -> [B, T*S, P]
        x = torch.cat([self.letters(letters), self.styles(styles)[:, None].expand(-1, letters.shape[1], -1)], -1)
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        x, _ = nn.utils.rnn.pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return functional.log_softmax(self.out(self.drop(x)).reshape(len(x), x.shape[1] * SLOTS, -1).float(), -1)


class Table:
    """All rows as padded tensors on the device, so that a batch is one gather."""

    def __init__(self, rows: list[Pair], ids: dict[str, int], device: str) -> None:
        letters = [torch.tensor([0, *(ALPHABET.index(c) + 1 for c in word), 0]) for _, word, _ in rows]
        phones = [torch.tensor([ids[p] for p in phones]) for _, _, phones in rows]
        self.letters = nn.utils.rnn.pad_sequence(letters, batch_first=True).to(device)
        self.phones = nn.utils.rnn.pad_sequence(phones, batch_first=True).to(device)
        self.styles = torch.tensor([style for style, _, _ in rows], device=device)
        self.lengths = torch.tensor([len(x) for x in letters])
        self.n_phones = torch.tensor([len(p) for p in phones])

    def score(self, net: nn.Module, pick: Tensor) -> Tensor:  # -> [B, T * SLOTS, P]
        lengths = self.lengths[pick]
        where = pick.to(self.letters.device)
        return net(self.letters[where, : int(lengths.max())], self.styles[where], lengths)

    def loss(self, net: nn.Module, pick: Tensor) -> Tensor:
        scores = self.score(net, pick).transpose(0, 1)
        targets = self.phones[pick.to(self.phones.device)]
        lengths, n_phones = self.lengths[pick] * SLOTS, self.n_phones[pick]
        return functional.ctc_loss(scores, targets, lengths, n_phones, zero_infinity=True)


def distance(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


@torch.no_grad()
def error_rate(net: nn.Module, rows: list[Pair], phones: list[str], device: str) -> tuple[float, float]:
    """Return wrong symbols and wrong words, in per cent."""
    net.eval()
    wrong = total = words = 0
    table = Table(rows, {p: i for i, p in enumerate(phones)}, device)
    for pick in torch.arange(len(rows)).split(1024):
        batch, lengths = [rows[i] for i in pick.tolist()], table.lengths[pick]
        best = table.score(net, pick).argmax(-1).cpu()
        for (_, _, truth), path, n in zip(batch, best.tolist(), lengths.tolist(), strict=True):
            path = path[: n * SLOTS]
            predicted = "".join(phones[p] for i, p in enumerate(path) if p and (i == 0 or p != path[i - 1]))
            expected = "".join(truth)
            n_edits = distance(tuple(predicted), tuple(expected))
            wrong, total, words = wrong + n_edits, total + len(expected), words + (n_edits > 0)
    net.train()
    return 100 * wrong / total, 100 * words / len(rows)


def save(net: nn.Module, phones: list[str], path: Path) -> None:
    """Save the weights as int8 with one scale per row."""
    stored: dict[str, np.ndarray] = {"phones": np.array(phones)}
    for name, weight in net.state_dict().items():
        w = weight.float().cpu().numpy()
        if w.ndim == 1:
            stored[name], stored[f"{name}.scale"] = w.astype(np.float16), np.ones(1, np.float16)
        else:
            scale = (np.abs(w).max(1, keepdims=True) / 127).astype(np.float16)
            stored[name] = np.clip(np.round(w / np.maximum(scale.astype(np.float32), 1e-8)), -127, 127).astype(np.int8)
            stored[f"{name}.scale"] = scale
    np.savez_compressed(path, **stored)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lexicon", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--epochs", type=int, default=18)
    parser.add_argument("--size", type=int, default=176)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    rows = pairs(options.lexicon)
    train, test = [r for r in rows if not is_held_out(r[1])], [r for r in rows if is_held_out(r[1])]
    gold = [r for r in test if STYLES[r[0]].endswith("gold")]
    phones = ["", *sorted({p for _, _, ps in rows for p in ps})]
    ids = {p: i for i, p in enumerate(phones)}
    print(f"train={len(train)} held_out={len(test)} phones={len(phones)}", flush=True)
    net = Net(len(phones), options.size).to(device)
    average = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9995))
    adam = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-4)
    table, n_steps, step = Table(train, ids, device), options.epochs * -(-len(train) // BATCH), 0
    for epoch in range(options.epochs):
        for pick in torch.randperm(len(train)).split(BATCH):
            for group in adam.param_groups:
                group["lr"] = 2e-3 * min(1.0, (step + 1) / 500) * (1 - step / n_steps) + 1e-5
            loss = table.loss(net, pick)
            adam.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            adam.step()
            average.update_parameters(net)
            step += 1
        per, wer = error_rate(average.module, gold, phones, device)
        print(f"epoch={epoch} loss={loss.item():.4f} per={per:.2f}% words_wrong={wer:.1f}%", flush=True)
    for style, name in enumerate(STYLES):
        per, wer = error_rate(average.module, [r for r in test if r[0] == style], phones, device)
        print(f"{name}: held-out phoneme error rate {per:.2f}%, words wrong {wer:.1f}%")
    save(average.module, phones, options.out)


if __name__ == "__main__":
    main()
