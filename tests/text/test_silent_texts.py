"""Long texts of signs that no language speaks are passed over in windows, not read sentence by sentence."""

import cProfile
import random
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import Spelling
from tutti.text import chunks
from tutti.text.aligned_text import AlignedText
from tutti.text.chunk import Pronunciation
from tutti.text.g2p import G2P
from tutti.text.language import LANGUAGES
from tutti.text.split import LONG, is_silent
from tutti.text.user_lexicon import UserLexicon

SIGNS = ' \n.,;:!?…—|"“”()-*_'
NEVER = re.compile("(?!)")  # matches nothing
TEXTS = {"items": "- \n", "bars": "|", "dashes": "-- ", "dots": "…\n", "brackets": "( ) ", "stars": "* \n"}


class CountingSpelling(Spelling):
    """Counts the sentences that it is given."""

    n_sentences = 0

    def pronounce(self, *args: object) -> object:
        self.n_sentences += 1
        return super().pronounce(*args)


@pytest.mark.parametrize("name", TEXTS)
def test_a_long_text_without_a_word_costs_next_to_nothing(name: str) -> None:
    text = TEXTS[name] * (200_000 // len(TEXTS[name]))
    spelling, profile = CountingSpelling(), cProfile.Profile()
    made = profile.runcall(lambda: list(chunks(text, "en-us", spelling.pronounce)))
    assert all(chunk.is_empty for chunk in made)
    assert spelling.n_sentences < 50  # of what a window leaves; else thousands
    n_calls = sum(entry.callcount for entry in profile.getstats())
    assert n_calls < 4 * len(text)  # of a sentence each: more than ten for a character


@pytest.mark.parametrize("name", TEXTS)
def test_words_behind_it_are_spoken(name: str) -> None:
    text = TEXTS[name] * (20_000 // len(TEXTS[name])) + "\nThe old bridge."
    words = [word for chunk in chunks(text, "en-us", Spelling().pronounce) for word in chunk.words]
    assert [text[slice(*word.source)] for word in words] == ["The", "old", "bridge."]


LONG_PARTS = st.builds(lambda signs: signs * (LONG // len(signs) + 1), st.text(SIGNS, min_size=1, max_size=40))


@given(parts=st.lists(st.one_of(LONG_PARTS, st.sampled_from(["deep ", "[pause:1s]", "\n\n", "[rate:2]"])), max_size=6))
def test_a_part_without_a_word_is_heard_as_if_read_sentence_by_sentence(parts: list[str]) -> None:
    """But for the mark that ends the word before it: a full stop or a comma, a pause that a thousand signs end."""

    def heard() -> tuple[list[object], float, list[str]]:
        made = list(chunks("".join(parts), "en-us", Spelling().pronounce))
        words: list[object] = [
            (word.phonemes, word.source, chunk.inline_style) for chunk in made for word in chunk.words
        ]
        return words, sum(chunk.pause_s for chunk in made), [symbol for chunk in made for symbol in chunk.dropped]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tutti.text.split._SILENT", NEVER)
        slowly = heard()
    assert heard() == slowly


def test_a_lexicon_may_speak_any_sign() -> None:
    lexicon = UserLexicon.of({"/[-]/": "bar"})
    (chunk,) = chunks("-", "en-us", Spelling().pronounce, lexicon)
    assert chunk.phonemes == "baɹ".replace("ɹ", "r")


@given(text=st.text(SIGNS + "a1#é", max_size=40))
def test_a_text_with_a_word_is_not_silent(text: str) -> None:
    text += " " * LONG + "."
    assert is_silent(text) <= (not any(map(str.isalnum, text)) and "#" not in text)


def test_a_few_signs_may_be_a_pause_between_words() -> None:
    assert is_silent(SIGNS.replace("\n", "") * LONG)
    assert not is_silent("- : -")


@pytest.mark.weights
@pytest.mark.parametrize("code", [language.code for language in LANGUAGES])
def test_no_language_speaks_or_reports_these_signs(code: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.text.split._SILENT", NEVER)
    pronounce, chance = G2P(home).pronounce, random.Random(0)
    for _ in range(300):
        text = "".join(chance.choice(SIGNS) for _ in range(chance.randrange(1, 30)))
        made = list(chunks(text, code, pronounce))
        assert not any(chunk.words or chunk.dropped or chunk.notices for chunk in made), repr(text)


@pytest.mark.parametrize("line", ["- \n", "* \n", "#\n", "## \n", "> \n", "***\n"])
def test_lines_of_empty_markup_are_not_read(line: str) -> None:
    read: list[str] = []

    def pronounce(aligned: AlignedText, code: str, given: Mapping[int, str]) -> Pronunciation:
        read.append(aligned.text)
        return Pronunciation(())

    assert not [chunk for chunk in chunks(line * (60_000 // len(line)), "en-us", pronounce) if chunk.words]
    assert len(read) < 100  # not once for each line
