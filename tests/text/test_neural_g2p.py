import threading
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.text import vocab
from tutti.text.g2p.neural import NeuralG2P

US, GB = NeuralG2P("en-us"), NeuralG2P("en-gb")


@given(st.text("abcdefghijklmnopqrstuvwxyz'", max_size=40))
def test_any_spelling_gives_kokoros_symbols(word: str) -> None:
    for network in (US, GB):
        sound = network.guess(word)
        assert vocab.split_known(sound.replace("ɾ", "T"))[1] == ()
        assert sound.count("ˈ") <= 1


@given(st.text(max_size=20))
def test_other_characters_are_ignored(text: str) -> None:
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
def test_invented_words_have_a_plausible_pronunciation(word: str, us: str, gb: str) -> None:
    assert (US.guess(word), GB.guess(word)) == (us, gb)


def test_threads_get_the_same_result() -> None:
    words = ["kubernetes", "flanbert", "zorgify", "quillon"] * 5
    expected = [US.guess(word) for word in words]
    results: list[list[str]] = []
    threads = [threading.Thread(target=lambda: results.append([US.guess(word) for word in words])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


def test_the_weights_are_small() -> None:
    assert len(resources.files("tutti.text.g2p").joinpath("data/letters.npz").read_bytes()) < 900_000
