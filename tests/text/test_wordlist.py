"""Own pronunciations: the right words, said as their author says, and no pattern that could hang a reader."""

import json
import logging
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import Spelling, running, silent_voices, tone_engine
from tutti.errors import InvalidInput
from tutti.text import chunks
from tutti.text.chunk import Chunk, Word
from tutti.text.g2p import G2P
from tutti.text.lexicon_file import LexiconFile
from tutti.text.user_lexicon import MAX_PATTERNS, UserLexicon, parsed


def read(text: str, entries: dict[str, str]) -> Chunk:
    (chunk,) = chunks(text, "en-us", Spelling().pronounce, UserLexicon.of(entries))
    return chunk


def said(text: str, entries: dict[str, str]) -> list[str]:
    return [word.phonemes for word in read(text, entries).words]


def test_a_word_sounds_as_its_author_says() -> None:
    assert said("my nginx runs", {"nginx": "/ˈɛnʤɪn/"}) == ["my", "ˈɛnʤɪn", "runs"]
    assert said("my nginx runs", {"nginx": "engine x"}) == ["my", "enɡine", "x", "runs"]


def test_it_is_tied_to_what_was_written() -> None:
    text = "see the New  York nginx"
    words = read(text, {"new york": "/nˈu jˈɔɹk/".replace(" ", ""), "nginx": "engine x"}).words
    assert [text[slice(*word.span)] for word in words] == ["see", "the", "New  York", "nginx", "nginx"]


@pytest.mark.parametrize(
    ("entry", "found", "not_found"),
    [
        ("cat", ["cat", "Cat", "CAT"], ["cats", "concat", "cat2"]),
        ("US", ["US"], ["us", "Us", "USA"]),
        ("e-mail", ["e-mail", "E-Mail"], ["e", "mail", "e-mails"]),
        ("c++", ["c++", "C++"], ["c", "cc"]),
        ("/colou?r/", ["color", "colour"], ["Color"]),
        (r"/\bv\d+\b/", ["v1", "v22"], ["v", "av1"]),
        ("日本", ["日本", "日本語"], ["日"]),
    ],
)
def test_only_the_word_itself_is_found(entry: str, found: list[str], not_found: list[str]) -> None:
    for word in found:
        assert "ææ" in said(f"a {word} b", {entry: "/ææ/"})
    for word in not_found:
        assert "ææ" not in said(f"a {word} b", {entry: "/ææ/"})


@pytest.mark.parametrize(("ipa", "ending"), [("kˈæt", "s"), ("dˈɔɡ", "z"), ("fˈɑks", "ᵻz"), ("zˈu", "z")])
def test_a_possessive_is_said_with_its_ending(ipa: str, ending: str) -> None:
    assert said("the animal's den", {"animal": f"/{ipa}/"}) == ["the", ipa + ending, "den"]


def test_keyboards_have_no_script_g() -> None:
    assert said("x", {"x": "/gˈO/"}) == ["ɡˈO"]


def test_marks_are_not_touched_and_later_entries_do_not_change_earlier_ones() -> None:
    text = "[read](/ɹˈɛd/) [rate:2] rate read"
    found = list(chunks(text, "en-us", Spelling().pronounce, UserLexicon.of({"read": "/bb/", "rate": "read"})))
    assert [word.phonemes for chunk in found for word in chunk.words] == ["ɹˈɛd", "read", "bb"]


def test_the_request_is_over_the_file() -> None:
    file = UserLexicon.of(
        {"a": "/b/", "c": "/d/", "x y": "/f/", "i j": "/h/", "/o+/": "/k/", "/u+/": "/m/", "E": "/p/"}
    )
    both = file | UserLexicon.of({"a": "/e/", "x y": "/ɡ/", "/o+/": "/l/"})
    words: tuple[Word, ...] = next(iter(chunks("a c x y i j oo uu E", "en-us", Spelling().pronounce, both))).words
    assert [word.phonemes for word in words] == ["e", "d", "ɡ", "h", "l", "m", "p"]


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ({"x": "/日y7/"}, "no symbol for 日 7"),
        ({"x": "/ˈ/"}, "no sound"),
        ({"x": "  "}, "how it is said"),
        ({" ": "x"}, "1 to 200"),
        ({"x" * 201: "x"}, "1 to 200"),
        ({"/(/": "x"}, "no regular expression"),
        ({"/x*/": "y"}, "must not match nothing"),
        ({"/[[a]/": "y"}, "sets of sets"),
        ({f"/a{i}/": "x" for i in range(MAX_PATTERNS + 1)}, "patterns"),
    ],
)
def test_what_is_wrong_is_named(entries: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as error:
        UserLexicon.of(entries)
    assert error.value.param == "lexicon"


@pytest.mark.parametrize(
    "source", ["(a+)+b", "(a|a)*b", "a*a*b", "(a|aa)+b", "a{1,9}a{1,9}b", "(?:a?){9}b", r"(a)\1+b+", "a?" * 9 + "b"]
)
def test_a_pattern_that_could_run_away_is_refused(source: str) -> None:
    re.compile(source)
    with pytest.raises(InvalidInput, match="too free"):
        UserLexicon.of({f"/{source}/": "x"})


@given(st.text("ab|?*+{}()[]\\1,^$.-", max_size=12))
def test_any_pattern_is_taken_or_refused(source: str) -> None:
    try:
        own = UserLexicon.of({f"/{source}/": "x"})
    except InvalidInput:
        return
    list(chunks("a" * 60 + " ab" * 300, "en-us", Spelling().pronounce, own))


def test_other_languages_take_them_too(tmp_path: Path) -> None:
    pytest.importorskip("jieba")
    own = UserLexicon.of({"你好": "/nˈi/"})
    (chunk,) = chunks("你好。", "zh", G2P(tmp_path).pronounce, own)
    assert "nˈi" in chunk.phonemes
    assert chunk.words[0].span == (0, 2)


def test_it_travels_to_another_process() -> None:
    own = UserLexicon.of({"a": "/b/", "c d": "e", "/f+/": "g"})
    assert pickle.loads(pickle.dumps(own)) == own


ENTRIES = {"nginx": "/ˈɛnʤɪn/", "new york": "big apple", "/v\\d/": "version"}
FILES = {
    "tsv": "# ours\n\n" + "".join(f"{word}\t{sound}\n" for word, sound in ENTRIES.items()),
    "json": json.dumps(ENTRIES),
    "toml": "".join(f"'{word}' = '{sound}'\n" for word, sound in ENTRIES.items()),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_any_kind_says_the_same(kind: str, tmp_path: Path) -> None:
    assert parsed(FILES[kind], kind) == ENTRIES
    path = tmp_path / f"words.{kind}"
    path.write_text("\ufeff" + FILES[kind], "utf-8")
    assert LexiconFile(path).words() == UserLexicon.of(ENTRIES)


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.tsv", "x y"), ("a.json", "[1]"), ("a.json", "{"), ("a.toml", "x = 1"), ("a.txt", ""), ("a.json", "\xff")],
)
def test_a_broken_file_is_refused_at_the_start_by_its_name(name: str, data: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data.encode("latin-1"))
    with pytest.raises(InvalidInput, match=name) as error:
        LexiconFile(tmp_path / name)
    assert error.value.param == "lexicon"
    with pytest.raises(InvalidInput, match=r"missing\.tsv"):
        LexiconFile(tmp_path / "missing.tsv")


def test_a_file_is_read_again_when_it_changes_and_the_last_good_one_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "words.tsv"
    path.write_text("a\tb\n")
    file = LexiconFile(path)
    first = file.words()
    assert file.words() is first
    rewrite(path, "a\tc\n", 1)
    second = file.words()
    assert second == UserLexicon.of({"a": "c"})
    with caplog.at_level(logging.ERROR):
        rewrite(path, "a\t/日/\n", 2)
        assert file.words() is second
        path.unlink()
        assert file.words() is second
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 2
    assert all(str(path) in error for error in errors)
    rewrite(path, "a\td\n", 3)
    assert file.words() == UserLexicon.of({"a": "d"})


def rewrite(path: Path, text: str, second: int) -> None:
    path.write_text(text, "utf-8")
    os.utime(path, (second, second))


def test_an_engine_knows_the_operators_words_and_the_requests(tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_text("deep\twide\nwater\tsand\n")
    with running(tone_engine(silent_voices(tmp_path), lexicon=tmp_path / "words.tsv")) as engine:
        said = engine.speak("deep water", lexicon={"water": "stone"})
        assert [word.word for word in said.words] == ["deep", "water"]
    with running(tone_engine(silent_voices(tmp_path))) as engine:
        assert np.array_equal(said.samples, engine.speak("wide stone").samples)
        with pytest.raises(InvalidInput, match="no symbol"):
            engine.speak("deep", lexicon={"deep": "/日/"})
