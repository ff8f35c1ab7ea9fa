"""Both faces against a real server: what is heard is what was said, over connections that are kept."""

import asyncio
import gc
import io
import threading
import wave
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pytest

from tests.server.harness import LONG, SHORT, RunningServer, expected_samples
from tutti.client import AsyncClient, Audio, Client, ClientClosed, Piece
from tutti.errors import InvalidInput, TuttiError, UnknownVoice

T = TypeVar("T")


def pcm(server: RunningServer, text: str, **asked: object) -> bytes:
    samples = expected_samples(server, text, **asked)
    return (np.clip(samples, -1, 1) * 32767).round().astype("<i2").tobytes()


def alike(heard: bytes, said: bytes) -> bool:
    a, b = (np.frombuffer(data, "<i2").astype(int) for data in (heard, said))
    return len(a) == len(b) and bool(np.abs(a - b).max() <= 2)


def awaited(server: RunningServer, work: Callable[[AsyncClient], Awaitable[T]]) -> T:
    async def run() -> T:
        async with AsyncClient(server.url, memory_cache_bytes=0) as client:
            return await work(client)

    return asyncio.run(run())


@pytest.mark.parametrize("text", [SHORT, LONG])
@pytest.mark.parametrize("stream", [None, True, False])
def test_a_text_is_heard_as_it_was_said(server: RunningServer, client: Client, text: str, stream: bool | None) -> None:
    audio = client.speak(text, format="pcm", stream=stream)
    assert alike(audio.data, pcm(server, text, delivery="whole" if stream is False else "live"))
    assert audio.duration_s == len(audio.data) / 48_000


def test_both_faces_hear_the_same(server: RunningServer, client: Client) -> None:
    async def all_pieces(other: AsyncClient) -> list[Piece]:
        return [piece async for piece in other.stream(LONG)]

    assert client.speak(LONG).data == awaited(server, lambda other: other.speak(LONG)).data
    assert list(client.stream(LONG)) == awaited(server, all_pieces)


def test_a_wav_has_true_lengths_however_it_came(client: Client) -> None:
    for stream in (True, False):
        audio = client.speak(LONG, stream=stream)
        with wave.open(io.BytesIO(audio.data)) as file:
            assert file.getnframes() * 2 == len(audio.data) - 44
            assert audio.duration_s == file.getnframes() / 24_000


@pytest.mark.parametrize("chunk_bytes", [2, 512, 4097, 1 << 20])
def test_pieces_join_to_the_whole_and_none_is_too_large(server: RunningServer, chunk_bytes: int) -> None:
    with Client(server.url, chunk_bytes=chunk_bytes, memory_cache_bytes=0) as client:
        pieces = [piece for piece in client.stream(SHORT) if piece.audio]
    assert alike(b"".join(piece.audio for piece in pieces), pcm(server, SHORT))
    assert all(len(piece.audio) <= chunk_bytes and len(piece.audio) % 2 == 0 for piece in pieces)
    starts = np.cumsum([0, *(len(piece.audio) for piece in pieces)])[:-1] / 48_000
    assert [piece.start_s for piece in pieces] == list(starts)


def test_words_come_with_their_times_in_order(client: Client) -> None:
    words = [word for piece in client.stream(LONG) for word in piece.words]
    assert [word.word.strip(".") for word in words] == LONG.replace(".", "").split()
    assert all(word.start_s < word.end_s for word in words)
    assert all(a.end_s <= b.start_s for a, b in pairwise(words))


def test_without_words_it_is_the_same_sound(client: Client) -> None:
    plain, told = (b"".join(p.audio for p in client.stream(LONG, words=words)) for words in (False, True))
    assert plain == told


def test_the_first_piece_comes_before_the_rest_is_made(server: RunningServer) -> None:
    server.engine.hold_from = 1
    try:
        with Client(server.url) as client, client.stream(LONG) as stream:
            first = next(stream)
            server.engine.release()
            rest = b"".join(piece.audio for piece in stream)
        assert alike(first.audio + rest, pcm(server, LONG))
    finally:
        server.engine.reset()


@pytest.mark.parametrize("leave", ["with", "drop", "close"])
def test_who_leaves_a_stream_stops_the_server(server: RunningServer, client: Client, leave: str) -> None:
    server.engine.hold_from = 1
    try:
        stream = client.stream(LONG)
        next(stream)
        match leave:
            case "with":
                with stream:
                    pass
            case "drop":
                del stream
                gc.collect()
            case "close":
                client.close()
        assert server.engine.streams_cancelled.acquire(timeout=60)
    finally:
        server.engine.release()
        server.engine.reset()


def test_every_request_after_the_first_finds_a_connection(client: Client) -> None:
    for _ in range(5):
        client.speak(SHORT)
    list(client.stream(SHORT))
    list(client.stream(LONG, words=False))
    stats = client.stats()
    assert (stats.count, stats.connections, stats.errors) == (7, 1, 0)
    assert stats.reuse_rate == 6 / 7
    client.reset_stats()
    client.speak(SHORT)
    assert client.stats().reuse_rate == 1


def test_a_warm_client_needs_no_connection_for_its_first_call(server: RunningServer) -> None:
    with Client(server.url, prewarm=False, health_timeout_s=60) as client:
        assert client.warm()
        client.speak(SHORT)
        assert client.stats().connections == 0


def test_many_texts_come_back_in_order_and_one_failure_harms_no_other(server: RunningServer, client: Client) -> None:
    texts = [f"{'deep ' * n}water" for n in range(1, 9)]
    texts[3] = "   "
    heard = client.speak_many(texts, format="pcm", max_concurrency=3)
    assert isinstance(heard[3], InvalidInput)
    for n, (text, audio) in enumerate(zip(texts, heard, strict=True)):
        if n != 3:
            assert isinstance(audio, Audio)
            assert alike(audio.data, pcm(server, text))
    assert client.stats().connections <= 3


def test_a_server_s_error_is_the_same_class_here(client: Client) -> None:
    with pytest.raises(UnknownVoice, match="did you mean af_heart") as told:
        client.speak(SHORT, voice="af_hart")
    assert (told.value.status, told.value.code, told.value.param) == (400, "voice_not_found", "voice")
    with pytest.raises(UnknownVoice):
        next(client.stream(SHORT, voice="af_hart"))
    assert client.stats().retries == 0


def test_a_callback_gets_the_sound_and_the_future_has_it_too(client: Client) -> None:
    got: list[Audio] = []
    future = client.speak_async(SHORT, on_audio_ready=got.append)
    assert future.result(60) == got[0]
    failed = client.speak_async(SHORT, got.append, voice="nobody")
    assert isinstance(failed.exception(60), TuttiError)
    assert len(got) == 1


def test_an_awaited_callback_too(server: RunningServer) -> None:
    got: list[Audio] = []

    async def later(audio: Audio) -> None:
        got.append(audio)

    async def work(client: AsyncClient) -> list[Audio]:
        return [await client.speak_async(SHORT, later), await client.speak_async(SHORT, got.append)]

    assert [audio.data for audio in awaited(server, work)] == [audio.data for audio in got]


def test_threads_share_one_client(server: RunningServer) -> None:
    heard: dict[int, bytes] = {}
    with Client(server.url, memory_cache_bytes=0) as client:

        def speak(n: int) -> None:
            heard[n] = client.speak("deep " * n, format="pcm").data

        threads = [threading.Thread(target=speak, args=(n,)) for n in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(alike(heard[n], pcm(server, "deep " * n)) for n in range(1, 9))


def test_what_the_server_tells_about_itself(client: Client) -> None:
    assert {"id", "language", "gender"} <= client.voices()[0].keys()
    assert client.health()["status"]
    assert client.workers().keys() >= {"totalWorkers", "readyWorkers", "busyWorkers", "queueSize", "batchingEnabled"}


def test_wishes_reach_the_engine(server: RunningServer, client: Client) -> None:
    server.engine.requests.clear()
    client.speak(SHORT, voice="am_adam", speed=2.0, language="en-gb", optimize_for_latency=True, use_gpu=True)
    asked = server.engine.requests[-1]
    assert (asked["voice"], asked["speed"], asked["language"]) == ("am_adam", 2.0, "en-gb")


def test_a_closed_client_says_so(server: RunningServer) -> None:
    client = Client(server.url)
    with client:
        client.speak(SHORT)
    client.close()
    for call in (lambda: client.speak(SHORT), lambda: next(client.stream(SHORT)), client.voices):
        with pytest.raises(ClientClosed):
            call()
    assert "tutti-client" not in {thread.name for thread in threading.enumerate()}


def test_closing_ends_the_calls_of_other_threads(server: RunningServer) -> None:
    server.engine.hold_from = 0
    errors: list[BaseException] = []
    client = Client(server.url)

    def speak() -> None:
        try:
            client.speak("still water", stream=True)
        except TuttiError as error:
            errors.append(error)

    while server.engine.streams_opened.acquire(blocking=False):
        pass
    thread = threading.Thread(target=speak)
    thread.start()
    try:
        assert server.engine.streams_opened.acquire(timeout=60)
        client.close()
        thread.join(60)
        assert [type(error) for error in errors] == [ClientClosed]
    finally:
        server.engine.release()
        server.engine.reset()


@pytest.mark.parametrize("url", ["localhost:8880", "ftp://x"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="http://host:8880"):
        Client(url)


def test_openai_s_address_is_understood(server: RunningServer) -> None:
    with Client(server.url + "/v1/") as client:
        assert client.url == server.url
        assert client.speak(SHORT).data
