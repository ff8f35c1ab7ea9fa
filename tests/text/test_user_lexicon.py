"""User lexicon: the right words get their pronunciation, and no pattern takes exponential time."""

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
from tutti.text.chunk import Chunk, PhonemeWord
from tutti.text.g2p import G2P
from tutti.text.user_lexicon import MAX_PATTERNS, LexiconFile, UserLexicon, parse_entries


def read(text: str, entries: dict[str, str]) -> Chunk:
    (chunk,) = chunks(text, "en-us", Spelling().pronounce, UserLexicon.of(entries))
    return chunk


def phonemes(text: str, entries: dict[str, str]) -> list[str]:
    return [word.phonemes for word in read(text, entries).words]


def test_a_word_has_the_pronunciation_of_the_lexicon() -> None:
    assert phonemes("my nginx runs", {"nginx": "/ˈɛnʤɪn/"}) == ["my", "ˈɛnʤɪn", "runs"]
    assert phonemes("my nginx runs", {"nginx": "engine x"}) == ["my", "enɡine", "x", "runs"]


@given(
    st.dictionaries(
        st.sampled_from(["nginx", "NASA", "New York", "/v[0-9]+/", "ok"]), st.sampled_from(["/ˈɛn/", "a b"])
    )
)
def test_a_lexicon_is_the_same_in_the_g2p_process(entries: dict[str, str]) -> None:
    lexicon = UserLexicon.of(entries)
    assert pickle.loads(pickle.dumps(lexicon)) == lexicon


def test_words_go_to_the_g2p_process_without_an_object_for_each() -> None:
    """The event loop sends them, and serves nobody else meanwhile."""
    assert b"LexiconEntry" not in pickle.dumps(UserLexicon.of({"nginx": "engine x", "NASA": "/ˈnæsə/"}))


def test_its_source_is_that_of_the_written_word() -> None:
    text = "see the New  York nginx"
    words = read(text, {"new york": "/nˈu jˈɔɹk/".replace(" ", ""), "nginx": "engine x"}).words
    assert [text[slice(*word.source)] for word in words] == ["see", "the", "New  York", "nginx", "nginx"]


@pytest.mark.parametrize(
    ("entry", "matching", "not_matching"),
    [
        ("cat", ["cat", "Cat", "CAT"], ["cats", "concat", "cat2"]),
        ("US", ["US"], ["us", "Us", "USA"]),
        ("e-mail", ["e-mail", "E-Mail"], ["e", "mail", "e-mails"]),
        ("c++", ["c++", "C++"], ["c", "cc"]),
        ("/colou?r/", ["color", "colour"], ["Color"]),
        (r"/\bv\d+\b/", ["v1", "v22"], ["v", "av1", "v1é"]),
        (r"/\bé\w+/", ["école", "éß"], ["aéole"]),
        (r"/[\w]+-san/", ["日-san", "ö-san"], ["-san"]),
        ("日本", ["日本", "日本語"], ["日"]),
    ],
)
def test_an_entry_matches_only_the_word_itself(entry: str, matching: list[str], not_matching: list[str]) -> None:
    for word in matching:
        assert "ææ" in phonemes(f"a {word} b", {entry: "/ææ/"})
    for word in not_matching:
        assert "ææ" not in phonemes(f"a {word} b", {entry: "/ææ/"})


@pytest.mark.parametrize(("ipa", "ending"), [("kˈæt", "s"), ("dˈɔɡ", "z"), ("fˈɑks", "ᵻz"), ("zˈu", "z")])
def test_a_possessive_gets_its_ending(ipa: str, ending: str) -> None:
    assert phonemes("the animal's den", {"animal": f"/{ipa}/"}) == ["the", ipa + ending, "den"]


def test_a_latin_g_is_taken_for_the_ipa_symbol() -> None:
    assert phonemes("x", {"x": "/gˈO/"}) == ["ɡˈO"]


def test_marks_and_replaced_words_are_not_replaced_again() -> None:
    text = "[read](/ɹˈɛd/) [rate:2] rate read"
    matching = list(chunks(text, "en-us", Spelling().pronounce, UserLexicon.of({"read": "/bb/", "rate": "read"})))
    assert [word.phonemes for chunk in matching for word in chunk.words] == ["ɹˈɛd", "read", "bb"]


def test_the_request_wins_over_the_file() -> None:
    file = UserLexicon.of(
        {"a": "/b/", "c": "/d/", "x y": "/f/", "i j": "/h/", "/o+/": "/k/", "/u+/": "/m/", "E": "/p/"}
    )
    both = file | UserLexicon.of({"a": "/e/", "x y": "/ɡ/", "/o+/": "/l/"})
    words: tuple[PhonemeWord, ...] = next(
        iter(chunks("a c x y i j oo uu E", "en-us", Spelling().pronounce, both))
    ).words
    assert [word.phonemes for word in words] == ["e", "d", "ɡ", "h", "l", "m", "p"]


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ({"x": "/日y7/"}, "no symbol for 日 7"),
        ({"x": "/ˈ/"}, "no sound"),
        ({"x": "  "}, "how it is said"),
        ({" ": "x"}, "1 to 200"),
        ({"x" * 201: "x"}, "1 to 200"),
        ({"/(/": "x"}, "not a regular expression"),
        ({"/x*/": "y"}, "must not match the empty string"),
        ({"/(?=a)b/": "y"}, "linear time"),
        ({r"/(a)\1/": "y"}, "linear time"),
        ({"/(?x)#[\n(a+)+b\n#]/": "y"}, "linear time"),
        ({"/\ud800/": "y"}, "surrogate"),
        ({f"/a{i}/": "x" for i in range(MAX_PATTERNS + 1)}, "patterns"),
    ],
)
def test_a_bad_entry_is_an_error_that_says_why(entries: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as error:
        UserLexicon.of(entries)
    assert error.value.param == "lexicon"


@pytest.mark.parametrize(
    "source", ["(a+)+b", "(a|a)*b", "a*a*b", "(a|aa)+b", "a{1,9}a{1,9}b", "(?:a?){9}b", "(?:a?a?a?)+b", "a?" * 90 + "b"]
)
def test_a_pattern_that_takes_exponential_time_elsewhere_is_searched_to_the_end(source: str) -> None:
    re.compile(source)  # Python would need years for the text below
    assert phonemes("a" * 60 + " " + "a" * 40 + "b", {f"/{source}/": "o"})[-1].endswith("o")


def test_entries_that_match_each_other_cannot_make_a_text_of_any_length() -> None:
    entries = {f"/a{n}?/": "a" * 200 for n in range(4)}
    with pytest.raises(InvalidInput, match="10,000 characters") as error:
        phonemes("a b", entries)
    assert error.value.param == "lexicon"
    assert len(phonemes("a b", {"a": "o " * 99 + "o"})) == 101


@given(st.text("ab|?*+{}()[]\\1,^$.-", max_size=12))
def test_any_pattern_is_accepted_or_refused(source: str) -> None:
    try:
        user_lexicon = UserLexicon.of({f"/{source}/": "x"})
    except InvalidInput:
        return
    list(chunks("a" * 60 + " ab" * 300, "en-us", Spelling().pronounce, user_lexicon))


def test_it_works_in_other_languages(tmp_path: Path) -> None:
    pytest.importorskip("jieba")
    user_lexicon = UserLexicon.of({"你好": "/nˈi/"})
    (chunk,) = chunks("你好。", "zh", G2P(tmp_path).pronounce, user_lexicon)
    assert "nˈi" in chunk.phonemes
    assert chunk.words[0].source == (0, 2)


def test_it_can_be_pickled() -> None:
    user_lexicon = UserLexicon.of({"a": "/b/", "c d": "e", "/f+/": "g"})
    assert pickle.loads(pickle.dumps(user_lexicon)) == user_lexicon


ENTRIES = {"nginx": "/ˈɛnʤɪn/", "new york": "big apple", "/v\\d/": "version"}
FILES = {
    "tsv": "# ours\n\n" + "".join(f"{word}\t{sound}\n" for word, sound in ENTRIES.items()),
    "json": json.dumps(ENTRIES),
    "toml": "".join(f"'{word}' = '{sound}'\n" for word, sound in ENTRIES.items()),
}


@pytest.mark.parametrize("kind", FILES)
def test_all_file_types_hold_the_same(kind: str, tmp_path: Path) -> None:
    assert parse_entries(FILES[kind], kind) == ENTRIES
    path = tmp_path / f"words.{kind}"
    path.write_text("\ufeff" + FILES[kind], "utf-8")
    assert LexiconFile(path).words() == UserLexicon.of(ENTRIES)


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.tsv", "x y"), ("a.json", "[1]"), ("a.json", "{"), ("a.toml", "x = 1"), ("a.txt", ""), ("a.json", "\xff")],
)
def test_a_bad_file_at_the_start_is_an_error_with_its_name(name: str, data: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data.encode("latin-1"))
    with pytest.raises(InvalidInput, match=name) as error:
        LexiconFile(tmp_path / name)
    assert error.value.param == "lexicon"
    with pytest.raises(InvalidInput, match=r"missing\.tsv"):
        LexiconFile(tmp_path / "missing.tsv")


def test_a_changed_file_is_read_again_and_a_bad_one_leaves_the_last_good_in_use(
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


def test_an_engine_uses_the_lexicons_of_the_operator_and_of_the_request(tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_text("deep\twide\nwater\tsand\n")
    with running(tone_engine(silent_voices(tmp_path), lexicon=tmp_path / "words.tsv")) as engine:
        phonemes = engine.speak("deep water", lexicon={"water": "stone"})
        assert [word.word for word in phonemes.words] == ["deep", "water"]
    with running(tone_engine(silent_voices(tmp_path))) as engine:
        assert np.array_equal(phonemes.samples, engine.speak("wide stone").samples)
        with pytest.raises(InvalidInput, match="no symbol"):
            engine.speak("deep", lexicon={"deep": "/日/"})
