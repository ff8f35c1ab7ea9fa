import threading
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.text import vocab
from tutti.text.g2p.neural import Letters

US, GB = Letters("en-us"), Letters("en-gb")


@given(st.text("abcdefghijklmnopqrstuvwxyz'", max_size=40))
def test_any_spelling_has_a_sound_in_kokoros_symbols(word: str) -> None:
    for letters in (US, GB):
        sound = letters.guess(word)
        assert vocab.known(sound.replace("ɾ", "T"))[1] == ()
        assert sound.count("ˈ") <= 1


@given(st.text(max_size=20))
def test_foreign_characters_change_nothing(text: str) -> None:
    assert US.guess(text) == US.guess("".join(c for c in text.lower() if c in "abcdefghijklmnopqrstuvwxyz'"))


@pytest.mark.parametrize(
    ("word", "us", "gb"),
    [
        ("blick", "blˈɪk", "blˈɪk"),
        ("snarp", "snˈɑɹp", "snˈɑːp"),
        ("webhook", "wˈɛbhˌʊk", "wˈɛbhʊk"),
        ("plone", "plˈOn", "plˈQn"),
    ],
)
def test_invented_words_sound_as_a_reader_would_say_them(word: str, us: str, gb: str) -> None:
    assert (US.guess(word), GB.guess(word)) == (us, gb)


def test_threads_agree() -> None:
    words = ["kubernetes", "flanbert", "zorgify", "quillon"] * 5
    alone = [US.guess(word) for word in words]
    heard: list[list[str]] = []
    threads = [threading.Thread(target=lambda: heard.append([US.guess(word) for word in words])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == [alone] * 4


def test_the_numbers_stay_small_enough_to_ship() -> None:
    assert len(resources.files("tutti.text.g2p").joinpath("data/letters.npz").read_bytes()) < 900_000
