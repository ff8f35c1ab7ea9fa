"""Voices of the operator's own: named, blended and listed like Kokoro's, and always as their files are now."""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.fakes import Spelling, silent_voices
from tutti.errors import InvalidInput, UnknownVoice
from tutti.own_voices import AT_ONCE, MAX_TABLES, OwnVoices
from tutti.text import chunks
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Pronunciation
from tutti.text.options import TextOptions
from tutti.voices import NAMES, Voices


class Clock:
    """Seconds that a test lets pass."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def table(value: float) -> np.ndarray:
    return np.full((510, 256), value, np.float32)


def write(folder: Path, name: str, value: float = 1.0) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    np.save(folder / ".new.npy", table(value))
    os.replace(folder / ".new.npy", path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "own"


@pytest.fixture
def kokoro(tmp_path: Path) -> Path:
    (tmp_path / "voices").mkdir()
    silent_voices(tmp_path / "voices")
    return tmp_path / "voices"


def test_a_file_is_a_voice_of_its_name(folder: Path, kokoro: Path) -> None:
    write(folder, "af_jadzia.npy", 2.0)
    voices = Voices(kokoro, folder)
    assert [*voices.all()] == [*NAMES, "af_jadzia"]
    assert voices.all()["af_jadzia"].label == "Jadzia (American English, your own)"
    assert np.array_equal(voices.get("AF_Jadzia").table, table(2.0))
    assert voices.of_label("jadzia (american english, your own)") == "af_jadzia"


def test_own_voices_blend_with_all_others(folder: Path, kokoro: Path) -> None:
    write(folder, "af_jadzia.npy", 2.0)
    write(folder, "gurney.npy", 4.0)
    voices = Voices(kokoro, folder)
    assert np.allclose(voices.get("gurney(3)+af_jadzia").table, 3.5)
    assert np.allclose(voices.get("af_heart+af_jadzia").table, 1.0)  # Kokoro's are zeros here
    crossed = voices.get("af_heart", style="gurney").style(5)
    assert crossed[0] == 0
    assert crossed[-1] == 4


@pytest.mark.parametrize(
    ("file", "language", "gender"),
    [
        ("af_jadzia.npy", "en-us", "female"),
        ("zm_li.npy", "zh", "male"),
        ("gurney.npy", "en-us", "neutral"),
        ("gurney.en-gb.npy", "en-gb", "neutral"),
        ("gurney.en-in.npy", "en-in", "neutral"),
    ],
)
def test_the_name_of_the_file_says_the_language(
    folder: Path, kokoro: Path, file: str, language: str, gender: str
) -> None:
    write(folder, file)
    voices = Voices(kokoro, folder)
    name = file.partition(".")[0]
    assert (voices.all()[name].language, voices.all()[name].gender) == (language, gender)
    assert voices.get(name).language == voices.language_of(f"{name}+af_heart") == language


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("Jadzia.npy", "is not a name"),
        ("af_heart.npy", "stands for another voice already"),
        ("alloy.npy", "stands for another voice already"),
        ("default.npy", "stands for another voice already"),
        ("gurney.tlh.npy", "unknown language"),
        ("af_jadzia.fr.npy", "begins with af_ is American English"),
        (f"{'a' * 41}.npy", "is not a name"),
    ],
)
def test_a_bad_file_is_named_and_disturbs_no_other(folder: Path, file: str, reason: str) -> None:
    write(folder, "af_jadzia.npy")
    write(folder, file)
    (folder / "README.md").write_text("about these voices")
    own = OwnVoices(folder, taken=NAMES)
    assert [*own.all()] == ["af_jadzia"]
    assert [*own.problems()] == [file]
    assert reason in own.problems()[file]
    assert file[:20] in own.problems()[file]


def test_of_two_files_for_one_name_the_first_counts(folder: Path) -> None:
    write(folder, "jadzia.bin.npy")  # a language that is none
    write(folder, "kira.en-gb.npy", 1.0)
    write(folder, "kira.npy", 2.0)
    own = OwnVoices(folder)
    assert own.all()["kira"].language == "en-gb"
    assert "kira.en-gb.npy has this name already" in own.problems()["kira.npy"]


def test_a_file_that_is_added_or_removed_counts_within_a_second(folder: Path) -> None:
    clock = Clock()
    own = OwnVoices(folder, clock=clock)
    clock.now_s = -1.0
    write(folder, "tom.npy")
    os.utime(folder, (1e9, 1e9))  # it has been as it is for long
    own = OwnVoices(folder, clock=clock)
    clock.now_s = 0.0
    assert own.find("tom") is not None
    path = write(folder, "kira.npy")
    clock.now_s = 0.9
    assert own.find("kira") is None
    clock.now_s = 1.0
    assert own.find("kira") is not None
    path.unlink()
    assert own.find("kira") is None


def test_a_replaced_file_speaks_from_its_next_use_on(folder: Path, kokoro: Path) -> None:
    write(folder, "kira.npy", 1.0)
    voices = Voices(kokoro, folder)
    before = voices.hashes(["af_heart(2)+kira"])
    assert np.allclose(voices.get("kira+af_heart").table, 0.5)
    write(folder, "kira.npy", 3.0)
    assert np.allclose(voices.get("kira+af_heart").table, 1.5)
    after = voices.hashes(["af_heart(2)+kira"])
    assert before.keys() == after.keys() == {"kira"}
    assert before != after
    write(folder, "kira.npy", 1.0)
    assert voices.hashes(["kira"]) == before


def test_a_file_that_went_bad_is_an_error_of_its_voice(folder: Path, kokoro: Path) -> None:
    path = write(folder, "kira.npy")
    voices = Voices(kokoro, folder)
    path.write_bytes(b"hello")
    with pytest.raises(UnknownVoice, match="kira"):
        voices.get("kira")
    assert "damaged" in voices.own.problems()["kira.npy"]
    assert voices.get("af_heart").name == "af_heart"


def test_many_new_files_are_read_a_few_at_a_time(folder: Path) -> None:
    clock = Clock()
    own = OwnVoices(folder, clock=clock)
    for n in range(AT_ONCE + 3):
        write(folder, f"v{n}.npy")
    counts = []
    for second in (1, 2, 3):
        clock.now_s = second
        counts.append(len(own.all()))
    assert counts == [AT_ONCE, AT_ONCE + 3, AT_ONCE + 3]


def test_more_voices_than_fit_into_memory_take_turns(folder: Path, kokoro: Path) -> None:
    for n in range(MAX_TABLES + 10):
        write(folder, f"v{n}.npy", 1 + n / 10)
    voices = Voices(kokoro, folder)
    for _ in range(2):
        for n in range(0, MAX_TABLES + 10, 7):
            assert voices.get(f"v{n}").style(3)[0] == np.float32(1 + n / 10)
    assert voices.own._table.cache_info().currsize <= MAX_TABLES


def test_a_voice_is_added_and_removed(folder: Path) -> None:
    own = OwnVoices(folder, taken=NAMES)
    assert own.add("kira", "en-gb", table(2.0)).language == "en-gb"
    assert OwnVoices(folder).all().keys() == {"kira"}
    for name, language, reason in (
        ("kira", None, "already"),
        ("af_sky", None, "already"),
        ("rachel", None, "such as af_rachel"),
        ("../x", None, "not a name"),
        ("af_x", "fr", "American English"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            own.add(name, language, table(1.0))
    own.remove("kira")
    assert not own.all()
    assert not list(folder.glob("*.bin"))
    with pytest.raises(UnknownVoice, match="no own voice"):
        own.remove("kira")


def test_a_mark_brings_the_language_of_its_voice(folder: Path, kokoro: Path) -> None:
    write(folder, "gurney.en-gb.npy")
    write(folder, "zf_li.npy")
    languages = Voices(kokoro, folder).languages()
    assert languages == {"gurney": "en-gb"}  # the other's begins with it
    assert Voices(kokoro, folder).languages(["af_heart+zf_li"]) == {}
    spoken: dict[str, str] = {}

    def pronounce(aligned: AlignedText, code: str, ipa: Mapping[int, str]) -> Pronunciation:
        spoken[aligned.text.strip(" .").lower()] = code
        return Spelling().pronounce(aligned, code, ipa)

    text = "one. [voice:Gurney]two. [voice:narrator]three. [lang:fr]four. [voice:zf_li]five. [voice:af_heart]six."
    options = TextOptions(voice_names={"narrator": "gurney(2)+zf_li"}, voice_languages=languages)
    list(chunks(text, "en-us", pronounce, options=options))
    assert [*spoken.values()] == ["en-us", "en-gb", "en-gb", "fr", "zh", "en-us"]


def test_unknown_names_are_compared_with_own_ones(folder: Path, kokoro: Path) -> None:
    write(folder, "af_jadzia.npy")
    voices = Voices(kokoro, folder)
    with pytest.raises(UnknownVoice, match="did you mean af_jadzia"):
        voices.parse("jadzya")
