"""Servers that refuse, break, stall and die: nothing is played twice, nothing is lost silently."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.client.faults import FaultServer, delta, events, refuse, reset, respond, stream
from tutti.client import Client, ClientClosed, CutShort, Refused, TimedOut, Unreachable
from tutti.client.errors import parse_error_response, retry_after_s
from tutti.client.transport import MAX_WAIT_S, retry_wait_s
from tutti.errors import DeadlineExceeded, InvalidInput, ModelFailed, NotReady, QueueFull, TuttiError

pytestmark = [pytest.mark.server, pytest.mark.process]

PCM = bytes(range(256)) * 8
DONE = {"type": "speech.audio.done", "usage": {}}


@pytest.fixture
def client(faults: FaultServer) -> Iterator[Client]:
    with Client(faults.url, memory_cache_bytes=0, prewarm=False) as client:
        yield client


def speak(client: Client, **options: object) -> bytes:
    return client.speak("deep water", format="pcm", **options).data  # type: ignore[arg-type]


def test_retry_after_is_respected(faults: FaultServer, client: Client) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    client._client._transport._sleep = sleep
    faults.script = [refuse(429, "queue_full", retry_after="3"), refuse(503, "draining", retry_after="2"), respond(PCM)]
    assert speak(client) == PCM
    assert waits == [3.0, 2.0]
    assert client.stats().retries == 2


def test_a_retry_after_beyond_the_limit_fails_at_once(faults: FaultServer, client: Client) -> None:
    faults.script = [refuse(429, "queue_full", retry_after="3600")]
    with pytest.raises(QueueFull) as raised:
        speak(client)
    assert raised.value.retry_after_s == 3600
    assert len(faults.requests) == 1


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (refuse(400, "voice_not_found"), InvalidInput),
        (refuse(500, "model_failed", x_should_retry="false"), ModelFailed),
        (respond(b"plain words", 404), Exception),
    ],
)
def test_permanent_errors_are_not_retried(faults: FaultServer, client: Client, act: object, kind: type) -> None:
    faults.script = [act, respond(PCM)]  # type: ignore[list-item]
    with pytest.raises(kind):
        speak(client)
    assert len(faults.requests) == 1


@pytest.mark.parametrize(
    "broken", [reset, stream(PCM[:100], ends=False), respond(b"", 502)], ids=["reset", "cut", "bad gateway"]
)
def test_a_broken_complete_response_is_retried(faults: FaultServer, client: Client, broken: object) -> None:
    faults.script = [broken, respond(PCM)]  # type: ignore[list-item]
    assert speak(client) == PCM
    assert [request.body["input"] for request in faults.requests] == ["deep water"] * 2


def test_it_gives_up_after_the_configured_retries(faults: FaultServer, client: Client) -> None:
    faults.script = [reset] * 9
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
        speak(client)
    assert len(faults.requests) == 3
    assert client.stats().errors == 1


@pytest.mark.parametrize("words", [True, False])
def test_a_broken_stream_is_not_retried(faults: FaultServer, client: Client, words: bool) -> None:
    part = events(delta(PCM)) if words else PCM
    kind = "text/event-stream" if words else "audio/pcm"
    faults.script = [stream(part, ends=False, content_type=kind), respond(PCM)]
    received: list[bytes] = []
    pieces = client.stream("deep water", words=words)
    with pytest.raises(CutShort) as raised:
        received.extend(piece.audio for piece in pieces)
    assert b"".join(received) == PCM
    assert raised.value.n_bytes == len(PCM)
    assert len(faults.requests) == 1


def test_a_stream_that_has_not_begun_is_retried(faults: FaultServer, client: Client) -> None:
    faults.script = [
        reset,
        refuse(503, "not_ready"),
        stream(events(delta(PCM), DONE), content_type="text/event-stream"),
    ]
    assert b"".join(piece.audio for piece in client.stream("deep water")) == PCM
    assert len(faults.requests) == 3


def test_events_without_a_last_event_are_cut_short(faults: FaultServer, client: Client) -> None:
    faults.script = [stream(events(delta(PCM)), content_type="text/event-stream")]
    with pytest.raises(CutShort):
        list(client.stream("deep water"))


def test_an_error_event_raises_that_error(faults: FaultServer, client: Client) -> None:
    error = {"type": "speech.audio.error", "error": {"message": "late", "code": "deadline_exceeded", "param": None}}
    faults.script = [stream(events(delta(PCM), error), content_type="text/event-stream")]
    with pytest.raises(DeadlineExceeded, match="late"):
        list(client.stream("deep water"))


@pytest.mark.parametrize("size", [1, 3, 7, 4096])
def test_events_may_be_split_anywhere(faults: FaultServer, client: Client, size: int) -> None:
    word = {"type": "speech.audio.words", "words": [{"word": "deep", "start": 0.1, "end": 0.2}]}
    whole = b": hello\n\n" + events(delta(PCM[:100]), word, delta(PCM[100:200]), DONE)
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    faults.script = [stream(*parts, content_type="text/event-stream")]
    pieces = list(client.stream("deep water"))
    assert b"".join(piece.audio for piece in pieces) == PCM[:200]
    assert [word.word for piece in pieces for word in piece.words] == ["deep"]


def test_a_server_that_ignores_sse_is_played_too(faults: FaultServer, client: Client) -> None:
    faults.script = [stream(PCM[:101], PCM[101:])]
    pieces = list(client.stream("deep water"))
    assert b"".join(piece.audio for piece in pieces) == PCM
    assert all(len(piece.audio) % 2 == 0 for piece in pieces)  # no sample is split


def test_a_silent_server_times_out(faults: FaultServer) -> None:
    never = threading.Event()
    held = stream(PCM, PCM, between=lambda: never.wait(20))
    with Client(faults.url, synthesis_timeout_s=0.2, streaming_timeout_s=0.2, retries=0, prewarm=False) as client:
        faults.script = [held, held]
        with pytest.raises(TimedOut):
            speak(client)
        with pytest.raises(TimedOut):
            speak(client, stream=True)
        faults.script = [held] * 100
        error: TuttiError = TimedOut("nothing yet")
        while isinstance(error, TimedOut):  # on a slow machine the first audio may already be too late
            with pytest.raises(TuttiError) as caught:
                list(client.stream("deep water"))
            error = caught.value
        assert isinstance(error, CutShort)
        assert "stalled" in error.message
    never.set()


def test_the_deadline_is_sent_to_the_server(faults: FaultServer, client: Client) -> None:
    faults.script = [respond(PCM)] * 3
    speak(client)
    speak(client, deadline_s=2)
    speak(client, stream=True)
    timeouts = [request.headers.get("x-request-timeout") for request in faults.requests]
    assert timeouts[2] is None  # a stream has no deadline by default
    assert 2 < float(timeouts[0] or 0) <= 10  # what is left of the default
    assert 0 < float(timeouts[1] or 0) <= 2


@pytest.mark.parametrize(("length", "streamed"), [(50, False), (51, True)])
def test_streaming_is_chosen_by_length_by_default(
    faults: FaultServer, client: Client, length: int, streamed: bool
) -> None:
    faults.script = [respond(PCM)] * 2
    client.speak("x" * length)
    client.speak("x" * length, stream=not streamed)
    assert ["stream" not in request.body for request in faults.requests] == [streamed, not streamed]


def test_an_unreachable_server_is_named_with_its_address() -> None:
    with Client("http://127.0.0.1:9", retries=0) as client:
        with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:9"):
            client.speak("hello")
        assert not client.warm()


def test_health_has_a_short_timeout(faults: FaultServer, client: Client) -> None:
    never = threading.Event()
    faults.script = [lambda _: never.wait(20)]
    with pytest.raises(TimedOut, match=r"0\.5 s"):
        client.health()
    never.set()


def test_the_api_key_is_sent_and_not_in_the_repr(faults: FaultServer) -> None:
    faults.script = [respond(PCM)]
    with Client(faults.url, api_key="secret", prewarm=False) as client:
        speak(client)
        assert "secret" not in repr(client._client._settings)
    assert faults.requests[0].headers["authorization"] == "Bearer secret"


def test_many_texts_survive_an_unstable_server(faults: FaultServer) -> None:
    faults.script = [act for _ in range(20) for act in (respond(PCM), reset, respond(PCM))]
    texts = [f"text {n}" for n in range(20)]
    with Client(faults.url, prewarm=False, retries=6) as client:
        results = client.speak_many(texts, format="pcm")
    assert all(not isinstance(audio, Exception) and audio.data == PCM for audio in results)
    assert {request.body["input"] for request in faults.requests} == set(texts)


@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
def test_retry_waits_grow_and_end(jitter: float) -> None:
    waits = [retry_wait_s(failed, 4, None, None, jitter) for failed in range(1, 6)]
    known = [wait for wait in waits if wait is not None]
    assert known == sorted(known)
    assert waits[4] is None
    assert retry_wait_s(1, 4, 5.0, 4.0, jitter) is None
    assert retry_wait_s(1, 4, MAX_WAIT_S + 1, None, jitter) is None
    assert retry_wait_s(1, 4, 5.0, None, jitter) == 5.0


def test_retry_after_may_be_a_date() -> None:
    from datetime import UTC, datetime

    now = datetime(2026, 11, 15, 7, 0, tzinfo=UTC)
    assert retry_after_s("Sun, 15 Nov 2026 07:00:09 GMT", now) == 9
    assert retry_after_s("soon", now) is None


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"error":"x"}', b'{"detail":"y"}', b"\xff", b'{"error":{}}'])
def test_any_error_response_has_a_message(body: bytes) -> None:
    response = parse_error_response(503, {"retry-after": "1"}, body)
    assert response.error.message
    assert (response.error.status, response.may_retry, response.retry_after_s) == (503, True, 1.0)


def test_the_message_of_another_server_is_its_own_words() -> None:
    body = b'{"detail":{"error":"validation_error","message":"no such voice","type":"invalid_request_error"}}'
    error = parse_error_response(400, {}, body).error
    assert (error.message, error.code) == ("no such voice", "validation_error")


def test_error_codes_map_to_their_classes() -> None:
    body = b'{"error":{"message":"wait","code":"not_ready"}}'
    assert type(parse_error_response(503, {}, body).error) is NotReady


def test_importing_the_client_loads_no_heavy_library() -> None:
    heavy = ("numpy", "onnxruntime", "fastapi", "starlette", "pydantic", "av", "torch", "typer", "rich")
    code = f"import sys, tutti.client; print(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    "answer",
    [
        respond(b"<html>hello</html>", content_type="text/html"),
        respond(b'{"ok": true}', content_type="application/json"),
        respond(b"", content_type="audio/pcm"),
        respond(b"", 307, location="/elsewhere"),
    ],
    ids=["page", "json", "nothing", "elsewhere"],
)
def test_a_response_without_audio_is_an_error(faults: FaultServer, client: Client, answer: object) -> None:
    faults.script = [answer] * 2  # type: ignore[list-item]
    with pytest.raises(Refused):
        speak(client)
    with pytest.raises(Refused):
        next(client.stream("deep water", words=False))
    assert client.stats().errors == 2


def test_a_client_raises_after_a_fork(faults: FaultServer, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.getpid()
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: here + 1)
        with pytest.raises(ClientClosed, match="fork"):
            speak(client)


def test_a_client_closed_in_its_loop_thread_ends_the_thread(faults: FaultServer) -> None:
    client = Client(faults.url, prewarm=False)
    thread, loop = client._loop._thread, client._loop._loop
    loop.call_soon_threadsafe(client._close)  # as if the garbage collector had run in the loop's own thread
    thread.join(60)
    assert not thread.is_alive()
    with pytest.raises(ClientClosed):
        speak(client)
