"""The server dies in the middle of a batch and comes back: every text has its audio or its error."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.third_party.process import tone_server
from tutti.client import Audio, Call, Client
from tutti.errors import TuttiError

pytestmark = [pytest.mark.process, pytest.mark.server]

TEXTS = [f"{'deep ' * (n % 7 + 1)}water{' runs' * (n % 3)}" for n in range(100)]


def test_a_hundred_texts_survive_a_restart_of_the_server() -> None:
    enough, n_done = threading.Event(), 0

    def count(call: Call) -> None:
        nonlocal n_done
        n_done += 1
        if n_done == 20:
            enough.set()

    with ThreadPoolExecutor(1) as pool:
        with tone_server() as first:
            port = first.url.rpartition(":")[2]
            expected = speak(first.url, TEXTS[:21])
            client = Client(first.url, on_call=count, retries=7, memory_cache_bytes=0)
            batch = pool.submit(client.speak_many, TEXTS, format="pcm")
            assert enough.wait(60)
        # killed; now another one at the same address
        with tone_server("--port", port) as second, client:
            results = batch.result(120)
            again = speak(second.url, TEXTS[:21])
    assert len(results) == len(TEXTS)
    assert again == expected
    assert all(isinstance(audio, Audio | TuttiError) for audio in results)
    received = [audio.data if isinstance(audio, Audio) else None for audio in results]
    for n, data in enumerate(received):
        assert data in (None, expected[n % 21]), n  # texts repeat after 21
    assert sum(data is not None for data in received) >= 20


def speak(url: str, texts: list[str]) -> list[bytes]:
    with Client(url, prewarm=False) as client:
        return [client.speak(text, format="pcm").data for text in texts]
