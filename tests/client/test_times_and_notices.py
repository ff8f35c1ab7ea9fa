"""Times of phonemes and visemes, and what was not spoken as written: in streams, live sessions and whole audio."""

from collections.abc import Iterable

import pytest

from tutti.client import Client, Piece

pytestmark = pytest.mark.server

TEXT = "The old bridge 😀 stands still. Under it the water runs deep. Привет!"


def facts(pieces: Iterable[Piece]) -> tuple[list[str], str, list[str], list[str]]:
    """Words, phonemes, visemes and notices."""
    words, phonemes, visemes, notices = list[str](), "", list[str](), list[str]()
    for piece in pieces:
        words += [word.word for word in piece.words]
        phonemes += "".join(sound.name for sound in piece.phonemes)
        visemes += [sound.name for sound in piece.visemes]
        notices += piece.notices
    return words, phonemes, visemes, notices


def assert_all_facts(words: list[str], phonemes: str, visemes: list[str], notices: list[str]) -> None:
    assert words[:3] == ["The", "old", "bridge"]
    assert phonemes.startswith("theoldbridɡe")  # the tone model speaks letters
    assert visemes[0] == "DD"
    assert any("😀" in notice for notice in notices)
    assert any("Russian" in notice for notice in notices)


def test_a_stream_has_them_and_the_cache_keeps_them(engine_url: str) -> None:
    with Client(engine_url, prewarm=False) as client:
        first, again = (facts(client.stream(TEXT, timestamps=["phoneme", "viseme"])) for _ in range(2))
        assert client.stats().cached == 1
        assert_all_facts(*first)
        assert again == first
        words, phonemes, visemes, _ = facts(client.stream(TEXT, words=False, timestamps=["viseme"]))
        assert (words, phonemes) == ([], "")
        assert visemes == first[2]
        assert facts(client.stream(TEXT))[1:3] == ("", [])


def test_a_live_session_has_them(engine_url: str) -> None:
    with Client(engine_url, prewarm=False) as client:
        with client.live(timestamps=["phoneme", "viseme"]) as live:
            live.say([TEXT])
            assert_all_facts(*facts(live))
        with client.live() as live:
            live.say([TEXT])
            words, phonemes, visemes, _ = facts(live)
            assert words
            assert (phonemes, visemes) == ("", [])


def test_whole_audio_has_notices(engine_url: str) -> None:
    with Client(engine_url, prewarm=False) as client:
        notices = client.speak(TEXT, stream=False).notices
        assert any("1 in all: 😀" in notice for notice in notices)
        assert any("Russian" in notice for notice in notices)
        assert client.speak("Deep water.", stream=False).notices == ()
