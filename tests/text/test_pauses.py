"""Pauses by rule: at commas inside a row, else between chunks; each may be changed, for one request or for all."""

import pytest

from tests.fakes import Spelling
from tutti.audiobook.book import Chapter
from tutti.audiobook.passages import passages
from tutti.engine.inflection import PAUSE, token_inflection
from tutti.errors import InvalidInput
from tutti.text import chunks
from tutti.text.chunk import Chunk, PhonemeWord
from tutti.text.incremental import Segmenter
from tutti.text.options import DEFAULT_PAUSES, MAX_PAUSES, Pauses, TextOptions, find_pauses, parse_pauses

TEXT = """He came (she said). "Who?" Nobody, then

Mr. Smith left. [pause:2s] The [voice:am_adam]end."""


def pauses_of(text: str, pauses: Pauses) -> list[tuple[str, float]]:
    spoken = chunks(text, "en-us", Spelling().pronounce, whole_text=True, options=TextOptions(pauses=pauses))
    return [(chunk.phonemes[-6:], chunk.pause_s) for chunk in spoken]


def test_sentences_and_paragraphs_have_their_pauses_and_a_mark_replaces_them() -> None:
    assert [pause_s for _, pause_s in pauses_of(TEXT, DEFAULT_PAUSES)] == [0.35, 2.0, 0.0, 0.0]
    longer = pauses_of(TEXT, Pauses(sentence=200, paragraph=900))
    assert [pause_s for _, pause_s in longer] == [0.2, 0.2, 0.9, 2.0, 0.0, 0.0]


def test_a_text_that_is_still_written_has_the_same_pauses() -> None:
    segmenter = Segmenter(pauses=Pauses(sentence=200, paragraph=900))
    found = []
    for delta in ("The first one. The sec", "ond.\n\nAnd the third, ", "which ends it.", None):
        if delta is None:
            segmenter.flush()
        else:
            segmenter.add(delta, 0.0)
        while segment := segmenter.take(0.0):
            found.append((segment.text.strip(), segment.pause_s))
    assert found == [("The first one.", 0.0), ("The second.", 0.2), ("And the third, which ends it.", 0.9)]


def test_a_comma_pauses_inside_its_row() -> None:
    words = (
        PhonemeWord("wˈʌn", (0, 3), after=", "),
        PhonemeWord("tˈu", (5, 8), after="; "),
        PhonemeWord("θɹˈi", (10, 15)),
    )
    chunk = Chunk(words)
    assert token_inflection(chunk, 1.0) is None
    for each in (chunk, chunk.joined()):
        tokens = token_inflection(each, 1.0, 110)
        assert tokens is not None
        symbols = " " + each.phonemes + " "
        assert {symbols[i]: tokens[i, PAUSE] for i in tokens[:, PAUSE].nonzero()[0]} == {",": 4, ";": 4}


def test_passages_of_a_book_have_the_same_rule_and_one_for_chapters() -> None:
    long = "It rained on the hills and on the sea. " * 30
    chapters = [Chapter("One", f"{long.strip()}\n\n{long}"), Chapter("Two", "The end.")]
    found = [passage.pause_s for passage in passages(chapters, Pauses(sentence=100, paragraph=600, chapter=3000))]
    assert set(found) == {0.1, 0.6, 3.0}
    assert (found.count(0.6), found.count(3.0), found[-1]) == (1, 2, 3.0)


@pytest.mark.parametrize("name", Pauses._fields)
def test_a_pause_out_of_its_range_is_refused_by_name(name: str) -> None:
    most = getattr(MAX_PAUSES, name)
    assert getattr(find_pauses({name: most}), name) == most
    for wrong in (-1, most + 1, float("nan")):
        with pytest.raises(InvalidInput, match=f"{name} is 0 to {most} milliseconds") as refused:
            find_pauses({name: wrong})
        assert refused.value.param == f"pauses.{name}"


@pytest.mark.parametrize(("written", "cure"), [("sentense=2", "did you mean sentence"), ("sentence", "sentence=200,")])
def test_a_wrong_setting_says_how_to_write_it(written: str, cure: str) -> None:
    with pytest.raises(InvalidInput, match=cure):
        parse_pauses([written])


def test_a_request_changes_what_the_operator_set() -> None:
    of_operator = find_pauses(parse_pauses(["sentence=200", "paragraph = 500"]))
    assert find_pauses({"sentence": 50}, of_operator) == Pauses(sentence=50, paragraph=500)
