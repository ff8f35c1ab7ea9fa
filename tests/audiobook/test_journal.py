"""A journal with any damage is opened again: it has the same audio as before, or says what is spoken again."""

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tutti.audiobook import journal as journal_module
from tutti.audiobook.journal import Journal
from tutti.errors import InvalidInput, TuttiError
from tutti.speech import Speech, WordTime

N_PASSAGES = 16
PAGE = 4096


def speech(n: int) -> Speech:
    samples = np.sin(np.arange(1500 + 700 * (n % 4), dtype=np.float32) / (20 + n))
    return Speech(
        samples, (WordTime(f"wörd{n}", 0.0, 0.1, (n, n + 5)),), (n, n + 5), ("☃",) * n, notices=(f"note {n}",)
    )


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[int, bytes]]:
    """The bytes of a journal, and the audio in it."""
    path = tmp_path_factory.mktemp("journal") / "reading"
    with Journal(path, "same") as journal:
        for n in range(N_PASSAGES):
            journal.save(n, speech(n))
        audio = {n: journal.load(n).samples.tobytes() for n in journal.n_samples}
    return path.read_bytes(), audio


def overwrite_page(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data) // PAGE) * PAGE
    data[at : at + PAGE] = chance.randbytes(PAGE)


def overwrite_across_pages(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    data[at : at + PAGE] = chance.randbytes(len(data[at : at + PAGE]))


def flip_bits(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randrange(1, 40)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def flip_in_heads(data: bytearray, chance: random.Random) -> None:
    """Where pages say what is on them: keys, lengths, types and pointers."""
    for _ in range(chance.randrange(1, 10)):
        data[chance.randrange(len(data) // PAGE) * PAGE + chance.randrange(120)] ^= 1 << chance.randrange(8)


def clear(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    data[at : at + 3 * PAGE] = bytes(len(data[at : at + 3 * PAGE]))


def cut_off(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def swap_pages(data: bytearray, chance: random.Random) -> None:
    a, b = (chance.randrange(1, len(data) // PAGE) * PAGE for _ in range(2))
    data[a : a + PAGE], data[b : b + PAGE] = data[b : b + PAGE], data[a : a + PAGE]


DAMAGES = (overwrite_page, overwrite_across_pages, flip_bits, flip_in_heads, clear, cut_off, swap_pages)


@pytest.mark.parametrize("damage", DAMAGES)
def test_any_damage_leaves_the_same_audio_or_says_what_is_spoken_again(
    damage: Callable[[bytearray, random.Random], None],
    sound: tuple[bytes, dict[int, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, (content, audio) = tmp_path / "reading", sound
    n_kept = 0
    for seed in range(25):
        damaged = bytearray(content)
        damage(damaged, random.Random(seed))
        path.write_bytes(damaged)
        with Journal(path, "same") as journal:
            assert set(journal.n_samples) <= set(audio)
            for n, n_samples in journal.n_samples.items():
                assert journal.load(n).samples.tobytes() == audio[n]
                assert 4 * n_samples == len(audio[n])
            missing = set(audio) - set(journal.n_samples)
            assert bool(missing) <= bool(journal.repair or journal.restart_reason), f"seed {seed} says nothing"
            n_kept += len(journal.n_samples)
            for n in missing:
                journal.save(n, speech(n))
            assert journal.dropped()["☃"] == sum(range(N_PASSAGES))
            journal.notices()
        with Journal(path, "same") as journal:
            assert (journal.repair, journal.restart_reason) == ("", "")
            assert {n: journal.load(n).samples.tobytes() for n in journal.n_samples} == audio
        journal.remove()
    # SQLite opens no file that is shorter than it should be.
    assert n_kept > 0.3 * 25 * N_PASSAGES or damage is cut_off, "what is sound is kept"
    assert not list(tmp_path.iterdir())


def test_a_damaged_page_costs_the_passages_on_it_only(sound: tuple[bytes, dict[int, bytes]], tmp_path: Path) -> None:
    path, (content, audio) = tmp_path / "reading", sound
    middle = len(content) // PAGE // 2 * PAGE
    path.write_bytes(content[:middle] + random.Random(0).randbytes(PAGE) + content[middle + PAGE :])
    with Journal(path, "same") as journal:
        assert len(audio) - 4 <= len(journal.n_samples) < len(audio)
        assert "spoken again" in journal.repair


def test_a_passage_is_not_taken_for_another_one_or_for_one_of_another_book(tmp_path: Path) -> None:
    path = tmp_path / "reading"
    with Journal(path, "same") as journal:
        journal.save(0, speech(0))
        journal.save(1, speech(1))
    with sqlite3.connect(path) as db:
        db.execute("UPDATE passages SET n = 7 WHERE n = 1")
    db.close()
    with Journal(path, "same") as journal:
        assert set(journal.n_samples) == {0}
    with sqlite3.connect(path) as db:
        db.execute("UPDATE about SET value = 'other' WHERE key = 'fingerprint'")
    db.close()
    with Journal(path, "other") as journal:
        assert not journal.n_samples


def test_a_journal_that_cannot_be_opened_is_not_locked_and_its_folder_is_not_named(
    sound: tuple[bytes, dict[int, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "reading"
    path.write_bytes(sound[0])

    def fail(_: object) -> None:
        raise sqlite3.DatabaseError("the disk broke")

    with monkeypatch.context() as patched:
        patched.setattr(journal_module.Journal, "_index", fail)
        with pytest.raises(TuttiError) as failed:
            Journal(path, "same")
    assert str(tmp_path) not in failed.value.message
    with Journal(path, "same") as journal:
        assert len(journal.n_samples) == N_PASSAGES
        with pytest.raises(InvalidInput, match="another process"):
            Journal(path, "same")
