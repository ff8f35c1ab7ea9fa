"""Both clients against a real server: the right audio, over reused connections."""

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
from tutti.client import AsyncClient, Audio, Client, ClientClosed, Piece, SpeechOptions, Wishes
from tutti.errors import InvalidInput, TuttiError, UnknownVoice

pytestmark = pytest.mark.server

T = TypeVar("T")


def pcm(server: RunningServer, text: str, **options: object) -> bytes:
    samples = expected_samples(server, text, **options)
    return (np.clip(samples, -1, 1) * 32767).round().astype("<i2").tobytes()


def same_audio(received: bytes, expected: bytes) -> bool:
    a, b = (np.frombuffer(data, "<i2").astype(int) for data in (received, expected))
    return len(a) == len(b) and bool(np.abs(a - b).max() <= 2)


def run_async(server: RunningServer, work: Callable[[AsyncClient], Awaitable[T]]) -> T:
    async def run() -> T:
        async with AsyncClient(server.url, memory_cache_bytes=0) as client:
            return await work(client)

    return asyncio.run(run())


@pytest.mark.parametrize("text", [SHORT, LONG])
@pytest.mark.parametrize("stream", [None, True, False])
def test_the_audio_is_that_of_the_engine(server: RunningServer, client: Client, text: str, stream: bool | None) -> None:
    audio = client.speak(text, format="pcm", stream=stream)
    assert same_audio(audio.data, pcm(server, text, delivery="whole" if stream is False else "live"))
    assert audio.duration_s == len(audio.data) / 48_000


def test_both_clients_return_the_same(server: RunningServer, client: Client) -> None:
    async def all_pieces(other: AsyncClient) -> list[Piece]:
        return [piece async for piece in other.stream(LONG)]

    assert client.speak(LONG).data == run_async(server, lambda other: other.speak(LONG)).data
    assert list(client.stream(LONG)) == run_async(server, all_pieces)


def test_a_wav_has_true_lengths_streamed_or_not(client: Client) -> None:
    for stream in (True, False):
        audio = client.speak(LONG, stream=stream)
        with wave.open(io.BytesIO(audio.data)) as file:
            assert file.getnframes() * 2 == len(audio.data) - 44
            assert audio.duration_s == file.getnframes() / 24_000


@pytest.mark.parametrize("chunk_bytes", [2, 512, 4097, 1 << 20])
def test_pieces_join_to_the_whole_and_respect_chunk_bytes(server: RunningServer, chunk_bytes: int) -> None:
    with Client(server.url, chunk_bytes=chunk_bytes, memory_cache_bytes=0) as client:
        pieces = [piece for piece in client.stream(SHORT) if piece.audio]
    assert same_audio(b"".join(piece.audio for piece in pieces), pcm(server, SHORT))
    assert all(len(piece.audio) <= chunk_bytes and len(piece.audio) % 2 == 0 for piece in pieces)
    starts = np.cumsum([0, *(len(piece.audio) for piece in pieces)])[:-1] / 48_000
    assert [piece.start_s for piece in pieces] == list(starts)


def test_words_arrive_in_order_with_their_times(client: Client) -> None:
    words = [word for piece in client.stream(LONG) for word in piece.words]
    assert [word.word.strip(".") for word in words] == LONG.replace(".", "").split()
    assert all(word.start_s < word.end_s for word in words)
    assert all(a.end_s <= b.start_s for a, b in pairwise(words))


def test_the_audio_is_the_same_without_words(client: Client) -> None:
    without, with_words = (b"".join(p.audio for p in client.stream(LONG, words=words)) for words in (False, True))
    assert without == with_words


def test_the_first_piece_arrives_before_the_rest_is_synthesised(server: RunningServer) -> None:
    server.engine.hold_from = 1
    try:
        with Client(server.url) as client, client.stream(LONG) as stream:
            first = next(stream)
            server.engine.release()
            rest = b"".join(piece.audio for piece in stream)
        assert same_audio(first.audio + rest, pcm(server, LONG))
    finally:
        server.engine.reset()


@pytest.mark.parametrize("leave", ["with", "drop", "close"])
def test_leaving_a_stream_stops_the_server(server: RunningServer, client: Client, leave: str) -> None:
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


def test_every_request_after_the_first_reuses_the_connection(client: Client) -> None:
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


def test_a_warm_client_opens_no_connection_for_its_first_call(server: RunningServer) -> None:
    with Client(server.url, prewarm=False, health_timeout_s=60) as client:
        assert client.warm()
        client.speak(SHORT)
        assert client.stats().connections == 0


def test_many_texts_return_in_order_and_one_failure_affects_no_other(server: RunningServer, client: Client) -> None:
    texts = [f"{'deep ' * n}water" for n in range(1, 9)]
    texts[3] = "   "
    results = client.speak_many(texts, format="pcm", max_concurrency=3)
    assert isinstance(results[3], InvalidInput)
    for n, (text, audio) in enumerate(zip(texts, results, strict=True)):
        if n != 3:
            assert isinstance(audio, Audio)
            assert same_audio(audio.data, pcm(server, text))
    assert client.stats().connections <= 3


def test_an_error_of_the_server_has_the_same_class_in_the_client(client: Client) -> None:
    with pytest.raises(UnknownVoice, match="did you mean af_heart") as raised:
        client.speak(SHORT, voice="af_hart")
    assert (raised.value.status, raised.value.code, raised.value.param) == (400, "voice_not_found", "voice")
    with pytest.raises(UnknownVoice):
        next(client.stream(SHORT, voice="af_hart"))
    assert client.stats().retries == 0


def test_callback_and_future_receive_the_audio(client: Client) -> None:
    received: list[Audio] = []
    future = client.speak_async(SHORT, on_audio_ready=received.append)
    assert future.result(60) == received[0]
    failed = client.speak_async(SHORT, received.append, voice="nobody")
    assert isinstance(failed.exception(60), TuttiError)
    assert len(received) == 1


def test_an_async_callback_receives_the_audio(server: RunningServer) -> None:
    received: list[Audio] = []

    async def later(audio: Audio) -> None:
        received.append(audio)

    async def work(client: AsyncClient) -> list[Audio]:
        return [await client.speak_async(SHORT, later), await client.speak_async(SHORT, received.append)]

    assert [audio.data for audio in run_async(server, work)] == [audio.data for audio in received]


def test_threads_share_one_client(server: RunningServer) -> None:
    results: dict[int, bytes] = {}
    with Client(server.url, memory_cache_bytes=0) as client:

        def speak(n: int) -> None:
            results[n] = client.speak("deep " * n, format="pcm").data

        threads = [threading.Thread(target=speak, args=(n,)) for n in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(same_audio(results[n], pcm(server, "deep " * n)) for n in range(1, 9))


def test_voices_health_and_workers_are_available(client: Client) -> None:
    assert {"id", "language", "gender"} <= client.voices()[0].keys()
    assert client.health()["status"]
    assert client.workers().keys() >= {"totalWorkers", "readyWorkers", "busyWorkers", "queueSize", "batchingEnabled"}


OPTIONS: SpeechOptions = {
    "voice": "am_adam",
    "style": "af_heart",
    "speed": 2.0,
    "pitch": -3.0,
    "pitch_range": 0.5,
    "energy": 1.5,
    "emotion": "calm",
    "language": "en-gb",
    "lexicon": {"deep": "/dip/"},
    "seed": 7,
}


@pytest.mark.parametrize("call", ["speak", "stream", "speak_many", "prefetch", "live"])
def test_options_reach_the_engine(server: RunningServer, client: Client, call: str) -> None:
    server.engine.requests.clear()
    text = f"deep {call.replace('_', ' ')}"  # another for each call: the server caches
    match call:
        case "speak":
            client.speak(text, **OPTIONS, optimize_for_latency=True, use_gpu=True)
        case "stream":
            list(client.stream(text, **OPTIONS))
        case "speak_many":
            client.speak_many([text], **OPTIONS)
        case "prefetch":
            client.prefetch([text], **OPTIONS).result(60)
        case "live":
            with client.live(**OPTIONS) as live:
                live.say([text])
                with pytest.raises(TuttiError):  # the fake engine records the request but cannot read live text
                    list(live)
    assert OPTIONS.items() <= server.engine.requests[-1].items()


@pytest.mark.parametrize(
    "options", [{"emotion": "furious"}, {"pitch": 13.0}, {"pitch_range": 3.0}, {"energy": 4.0}, {"lexicon": {"": "x"}}]
)
def test_an_invalid_option_is_named(engine_url: str, options: SpeechOptions) -> None:
    with Client(engine_url, prewarm=False) as client, pytest.raises(InvalidInput) as raised:
        client.speak(SHORT, **options)
    assert raised.value.param == next(iter(options))


def test_the_former_name_of_the_options_is_the_same_type() -> None:
    assert Wishes is SpeechOptions


def test_another_lexicon_is_another_cache_entry(server: RunningServer) -> None:
    with Client(server.url, prewarm=False) as client:
        for lexicon in ({"deep": "/dip/"}, {"deep": "/dɛp/"}, {"deep": "/dip/"}):
            client.speak(SHORT, lexicon=lexicon)
        assert client.stats().cached == 1


def test_another_stored_lexicon_is_another_cache_entry(server: RunningServer) -> None:
    server.post("/v1/lexicons/sea", {"deep": "/dip/"})
    server.post("/v1/lexicons/lake", {"deep": "/dɛp/"})
    with Client(server.url, prewarm=False) as client:
        for names in ("sea", "lake", ["sea", "lake"], "sea"):
            client.speak(SHORT, lexicon_id=names)
        assert client.stats().cached == 1
        asked = [request["lexicon"] for request in server.engine.requests[-2:]]  # the server caches by the words
        assert asked == [{"deep": "/dip/"}, {"deep": "/dɛp/"}]
        with pytest.raises(TuttiError, match="did you mean sea"):
            client.speak(SHORT, lexicon_id="seas")


def test_a_closed_client_raises(server: RunningServer) -> None:
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
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="http://host:8880"):
        Client(url)


def test_an_openai_base_url_is_accepted(server: RunningServer) -> None:
    with Client(server.url + "/v1/") as client:
        assert client.url == server.url
        assert client.speak(SHORT).data
