"""Tags of other services are never read aloud; brackets that are no tag are text."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import Spelling, word_styles
from tutti.errors import InvalidInput
from tutti.model.prosody import EMOTIONS
from tutti.speech import EMOTION_NAMES
from tutti.text import chunks
from tutti.text.chunk import Chunk
from tutti.text.incremental import Segmenter
from tutti.text.tags import FEELINGS, TAG, tag_notices


def read(text: str) -> list[Chunk]:
    return list(chunks(text, "en-us", Spelling().pronounce))


def words(read_chunks: Iterable[Chunk]) -> list[str]:
    return [word.phonemes for chunk in read_chunks for word in chunk.words]


def emotions(text: str) -> list[tuple[str, str | None]]:
    """Each word with its emotion."""
    return [(word.phonemes, chunk.inline_style.emotion) for chunk in read(text) for word in chunk.words]


def notices(text: str) -> list[str]:
    return [notice for chunk in read(text) for notice in chunk.notices]


@pytest.mark.parametrize(
    ("tag", "emotion"),
    [
        ("[excited]", "excited"),
        ("[Excitedly]", "excited"),
        ("[sad]", "sad"),
        ("[calm tone]", "calm"),
        ("[speaking softly]", "gentle"),
        ("[happy and warm]", "happy"),
        ('<emotion value="angry"/>', "angry"),
        ("<emotion value='enthusiastic' />", "excited"),
        ("[emotion:serious]", "serious"),
    ],
)
def test_a_tag_of_a_feeling_is_a_preset_until_the_next(tag: str, emotion: str) -> None:
    text = f"one {tag} two. Three [neutral] four"
    assert emotions(text) == [("one", None), ("two", emotion), ("three", emotion), ("four", "neutral")]
    assert notices(text) == []
    assert emotions(f"[laughs]{tag}two") == [("two", emotion)]
    assert emotions(f"{tag} two [/emotion] three") == [("two", emotion), ("three", None)]


@pytest.mark.parametrize(
    "tag",
    [
        *("[laughs]", "[Laughs softly]", "[sighs]", "[clears throat]", "[takes a deep breath]", "[curious]"),
        *("[nervous laughter]", "[strong French accent]", "<laugh>", "<chuckle/>", '<emotion value="jaded"/>'),
        *("<prosody rate='slow'>", '<emphasis level="strong">'),
    ],
)
def test_what_kokoro_cannot_follow_is_left_out_and_named(tag: str) -> None:
    text = f"One {tag} two {tag} three."
    assert words(read(text)) == ["one", "two", "three"]
    (notice,) = notices(text)
    assert tag[:8] in notice
    assert "left out" in notice


@pytest.mark.parametrize("tag", ["[whispers]", "[shouting]", "[in a whisper]"])
def test_what_is_followed_from_afar_is_named(tag: str) -> None:
    assert words(read(f"{tag} one two")) == ["one", "two"]
    assert emotions(f"{tag} one")[0][1] in EMOTIONS
    assert len(notices(f"{tag} one {tag} two")) == (tag != "[in a whisper]")


def test_pauses_rates_and_volumes_of_tags_act() -> None:
    pauses = [
        chunk.pause_s for chunk in read("One [pause] two [long pause] three <break time='2s'/> four [short pause] five")
    ]
    assert pauses == [0.5, 1.0, 2.0, 0.3, 0.0]
    text = 'One <speed ratio="1.5"/> two <volume ratio="0.5">three</volume> four [slows down] five'
    styles = [(style.rate, style.volume) for _, style in word_styles(read(text))]
    assert styles == [(1.0, 1.0), (1.5, 1.0), (1.5, 0.5), (1.5, 1.0), (0.75, 1.0)]
    assert words(read("Say <spell>ab</spell> now")) == ["say", "a", "b", "now"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("See [Smith] there", "see smith there"),
        ("array[happy] is it", "arrayhappy is it"),
        ("the [content] here", "the content here"),
        ("[a] or [b]", "a or b"),
        ("[to do] first", "to do first"),
        ("[happy or not] here", "happy or not here"),
        ("a note [see laughs] ok", "a note see laughs ok"),
        ("[[sad]] brackets", "sad brackets"),
    ],
)
def test_other_brackets_are_text(text: str, said: str) -> None:
    assert words(read(text.replace("g", ""))) == said.replace("g", "").split()
    assert notices(text) == []
    assert {chunk.inline_style.emotion for chunk in read(text)} == {None}


def test_html_is_removed_without_a_notice() -> None:
    assert words(read("H<sub>2</sub> <mark>so</mark> <b>it</b> <s>is</s>"))[-3:] == ["so", "it", "is"]
    assert notices("H<sub>2</sub>O <mark>so</mark> <b>it</b> <s>is</s>") == []


def test_a_link_and_a_pronunciation_are_no_tags() -> None:
    assert emotions("a [sad](https://x.y/z) b") == [("a", None), ("sad", None), ("b", None)]
    assert words(read("a [sad](/sˈæd/) b"))[1] == "sˈæd"


def test_an_unknown_emotion_in_a_mark_is_refused() -> None:
    with pytest.raises(InvalidInput, match="write one of neutral, calm"):
        read("a [emotion:jaded] b")


def test_the_presets_have_one_list_of_names() -> None:
    assert tuple(EMOTIONS) == EMOTION_NAMES
    assert set(FEELINGS.values()) == set(EMOTION_NAMES)


def test_a_tag_holds_in_text_that_arrives_in_pieces() -> None:
    segmenter = Segmenter()
    told: list[tuple[str, str | None]] = []
    for char in "[excited] We won the match. [laughs] It was a long day. [whispers] Now we sleep. ":
        segmenter.add(char)
        while segment := segmenter.take():
            told += emotions(segment.marked_text)
    segmenter.flush()
    while segment := segmenter.take():
        told += emotions(segment.marked_text)
    assert [emotion for _, emotion in told] == ["excited"] * 9 + ["gentle"] * 3


@given(st.text(alphabet='[]<>/ "=abelmnostughv', max_size=60))
def test_any_text_is_searched_for_tags_and_what_is_none_stays(text: str) -> None:
    assert all(notice for notice in tag_notices(text))
    assert all(tag[0] in text for tag in TAG.finditer(text))


@pytest.mark.parametrize(
    "text", ["[" * 50_000, "[a " * 30_000, "<emotion " * 20_000, "<spell>" * 20_000, "[laughs" * 20_000]
)
def test_hostile_brackets_take_no_time(text: str) -> None:
    assert tag_notices(text) == ()
