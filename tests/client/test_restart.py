"""The server dies in the middle of a batch and comes back: every text is heard once, or its error has a name."""

import threading
from concurrent.futures import ThreadPoolExecutor

from tests.third_party.process import tone_server
from tutti.client import Audio, Call, Client
from tutti.errors import TuttiError

TEXTS = [f"{'deep ' * (n % 7 + 1)}water{' runs' * (n % 3)}" for n in range(100)]


def test_a_hundred_texts_outlive_their_server() -> None:
    some, n_done = threading.Event(), 0

    def counted(call: Call) -> None:
        nonlocal n_done
        n_done += 1
        if n_done == 20:
            some.set()

    with ThreadPoolExecutor(1) as pool:
        with tone_server() as first:
            port = first.url.rpartition(":")[2]
            expected = speak(first.url, TEXTS[:21])
            client = Client(first.url, on_call=counted, retries=7, memory_cache_bytes=0)
            batch = pool.submit(client.speak_many, TEXTS, format="pcm")
            assert some.wait(60)
        # killed; now another one at the same address
        with tone_server("--port", port) as second, client:
            heard = batch.result(120)
            again = speak(second.url, TEXTS[:21])
    assert len(heard) == len(TEXTS)
    assert again == expected
    assert all(isinstance(audio, Audio | TuttiError) for audio in heard)
    whole = [audio.data if isinstance(audio, Audio) else None for audio in heard]
    for n, data in enumerate(whole):
        assert data in (None, expected[n % 21]), n  # texts repeat after 21
    assert sum(data is not None for data in whole) >= 20


def speak(url: str, texts: list[str]) -> list[bytes]:
    with Client(url, prewarm=False) as client:
        return [client.speak(text, format="pcm").data for text in texts]
