"""The text student and what trains it, on a network of two small blocks and a teacher that is a table."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.training.fakes import silent_voices
from training import texts
from training.text_distil import TextTraining
from training.text_evaluation import TextRow, score
from training.text_pool import HELD_OUT, TextPool, mixed, split, with_cuts
from training.text_student import TextStudent, is_block_matrix
from tutti.model.torch.kokoro.masks import RowMask
from tutti.text.vocab import encode

CPU = torch.device("cpu")


class TableTeacher:
    """Says of each token what a table says of it and of the token before; its predictor adds up a few features."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self._table = torch.randn(178, 512, generator=generator)
        self._gates = torch.randn(512, 16, generator=generator) / 20

    def features(self, tokens: Tensor, mask: RowMask) -> Tensor:
        own = self._table[tokens]
        return (own + 0.5 * own.roll(1, dims=1)) * mask.valid

    def gates(self, features: Tensor) -> Tensor:
        return features @ self._gates

    def prosody(self, features: Tensor, style: Tensor, mask: RowMask) -> tuple[Tensor, Tensor]:
        prosody = torch.cat([features, style[:, None, :128].expand(-1, features.shape[1], -1)], -1)
        return prosody, 2 + 4 * torch.sigmoid(self.gates(features).mean(-1))

    def curves(self, prosody: Tensor, frames: Tensor, style: Tensor) -> Tensor:
        n = 2 * int(frames.sum(1).max())
        return (100 + self.gates(prosody[..., :512]).mean((1, 2)))[:, None, None].expand(-1, n, 2)


def rows_of(*phonemes: str) -> list[np.ndarray]:
    return [encode(each).astype(np.uint8) for each in phonemes]


ROWS = rows_of(*(f"ə {a} kˈæt {b} ðə wˈɔɹm {a} ɹˈuf." for a in ("sˈæt", "ɹˈæn", "slˈɛpt") for b in "abdefhijklmn"))


def test_a_row_does_not_hear_its_neighbours() -> None:
    student = TextStudent(64, 2).eval()
    short, long = (torch.from_numpy(row).long() for row in rows_of("kˈæt.", "ə wˈɔɹm ɹˈuf ʌv ðə bˈAkəɹi."))
    padded = torch.nn.utils.rnn.pad_sequence([short, long], batch_first=True)
    together = student(padded, RowMask.of(torch.tensor([len(short), len(long)]), padded.shape[1]))
    for i, row in enumerate((short, long)):
        alone = student(row[None], RowMask.of(torch.tensor([len(row)]), len(row)))
        torch.testing.assert_close(together[i : i + 1, : len(row)], alone, rtol=1e-4, atol=1e-5)


def test_weights_alone_say_what_network_they_belong_to() -> None:
    student = TextStudent(128, 3)
    other = TextStudent.of(student.state_dict())
    tokens = torch.from_numpy(ROWS[0]).long()[None]
    mask = RowMask.of(torch.tensor([tokens.shape[1]]), tokens.shape[1])
    torch.testing.assert_close(student(tokens, mask), other(tokens, mask))
    matrices = [name for name, _ in student.named_parameters() if is_block_matrix(name)]
    assert len(matrices) == 3 * 4


def test_rows_come_back_from_their_archive(tmp_path: Path) -> None:
    texts.write({"a": ROWS, "e": ROWS[:3]}, tmp_path / "texts.npz")
    found = texts.read(tmp_path / "texts.npz")
    assert [len(each) for each in found.values()] == [len(ROWS), 3]
    assert all((a == b).all() for a, b in zip(found["a"], ROWS, strict=True))


def test_cut_and_mixed_rows_have_padding_at_both_ends_and_only_whole_words() -> None:
    words = {tuple(word) for row in ROWS for word in split(row)}
    for row in (*with_cuts(ROWS, Random(0))[len(ROWS) :], *mixed(ROWS, 40, Random(0))):
        assert row[0] == row[-1] == 0
        assert (row[1:-1] > 0).all()
        assert {tuple(word) for word in split(row)} <= words


def test_rows_that_are_held_out_are_never_drawn() -> None:
    secret = rows_of("zˈuzuzu.")[0]
    rows = [ROWS[i % len(ROWS)] for i in range(HELD_OUT + 5)]
    rows[0] = rows[HELD_OUT] = secret
    pool = TextPool({"a": rows}, TableTeacher(), CPU, seed=1)  # type: ignore[arg-type]
    z = int(secret[1])
    for _ in range(50):
        assert not (pool.draw(500)[0] == z).any()


@pytest.mark.slow
@pytest.mark.parametrize("through_predictor", [False, True])
def test_the_student_learns(through_predictor: bool) -> None:
    torch.manual_seed(0)
    teacher = TableTeacher()
    pool = TextPool({"a": ROWS}, teacher, CPU, seed=1)  # type: ignore[arg-type]
    training = TextTraining(TextStudent(64, 2), teacher, pool, silent_voices())  # type: ignore[arg-type]
    training.optimiser.rate.fill_(3e-3)
    for _ in range(60):
        training.step(400, through_predictor)
    assert set(training.log) == ({"features", "gates"} | ({"prosody", "durations", "lengths", "curves"}
                                                          if through_predictor else set()))  # fmt: skip
    for name, losses in training.log.items():
        assert torch.isfinite(torch.stack(losses)).all(), name
    first, last = (float(torch.stack(training.log["features"][part]).mean()) for part in (slice(5), slice(-5, None)))
    assert last < 0.7 * first


def test_the_teacher_itself_has_the_best_score_and_noise_a_worse_one() -> None:
    teacher = TableTeacher()
    rows = [TextRow("a", row.tolist(), torch.zeros(256), 1.0) for row in ROWS[:8]]
    own = score(rows, teacher, teacher.features)  # type: ignore[arg-type]
    assert (own.same_durations, own.length_mean, own.pitch_cents, own.energy) == (1, 0, 0, 0)
    noisy = score(rows, teacher, lambda tokens, mask: 3 * torch.randn(*tokens.shape, 512))  # type: ignore[arg-type]
    assert noisy.same_durations < 0.9
    assert noisy.length_mean > 0
