"""Servers that refuse, break, stall and die: nothing is doubled, nothing is lost without a word."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.client.faults import FaultServer, delta, events, refuse, reset, say, stream
from tutti.client import Client, ClientClosed, CutShort, Refused, TimedOut, Unreachable
from tutti.client.errors import refusal, retry_after_s
from tutti.client.retries import Retries
from tutti.errors import DeadlineExceeded, InvalidInput, ModelFailed, NotReady, QueueFull, TuttiError

PCM = bytes(range(256)) * 8
DONE = {"type": "speech.audio.done", "usage": {}}


@pytest.fixture
def client(faults: FaultServer) -> Iterator[Client]:
    with Client(faults.url, memory_cache_bytes=0, prewarm=False) as client:
        yield client


def speak(client: Client, **options: object) -> bytes:
    return client.speak("deep water", format="pcm", **options).data  # type: ignore[arg-type]


def test_a_busy_server_is_asked_again_when_it_said(faults: FaultServer, client: Client) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    client._client._wire._sleep = sleep
    faults.script = [refuse(429, "queue_full", retry_after="3"), refuse(503, "draining", retry_after="2"), say(PCM)]
    assert speak(client) == PCM
    assert waited == [3.0, 2.0]
    assert client.stats().retries == 2


def test_a_server_that_asks_for_more_time_than_there_is_fails_at_once(faults: FaultServer, client: Client) -> None:
    faults.script = [refuse(429, "queue_full", retry_after="3600")]
    with pytest.raises(QueueFull) as told:
        speak(client)
    assert told.value.retry_after_s == 3600
    assert len(faults.asked) == 1


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (refuse(400, "voice_not_found"), InvalidInput),
        (refuse(500, "model_failed", x_should_retry="false"), ModelFailed),
        (say(b"plain words", 404), Exception),
    ],
)
def test_what_would_fail_again_is_asked_once(faults: FaultServer, client: Client, act: object, kind: type) -> None:
    faults.script = [act, say(PCM)]  # type: ignore[list-item]
    with pytest.raises(kind):
        speak(client)
    assert len(faults.asked) == 1


@pytest.mark.parametrize(
    "broken", [reset, stream(PCM[:100], ends=False), say(b"", 502)], ids=["reset", "cut", "bad gateway"]
)
def test_a_whole_answer_that_broke_is_asked_again_and_is_right(
    faults: FaultServer, client: Client, broken: object
) -> None:
    faults.script = [broken, say(PCM)]  # type: ignore[list-item]
    assert speak(client) == PCM
    assert [asked.body["input"] for asked in faults.asked] == ["deep water"] * 2


def test_it_gives_up_after_the_attempts_it_was_given(faults: FaultServer, client: Client) -> None:
    faults.script = [reset] * 9
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
        speak(client)
    assert len(faults.asked) == 3
    assert client.stats().errors == 1


@pytest.mark.parametrize("words", [True, False])
def test_a_stream_that_broke_is_never_played_twice(faults: FaultServer, client: Client, words: bool) -> None:
    part = events(delta(PCM)) if words else PCM
    kind = "text/event-stream" if words else "audio/pcm"
    faults.script = [stream(part, ends=False, content_type=kind), say(PCM)]
    heard: list[bytes] = []
    pieces = client.stream("deep water", words=words)
    with pytest.raises(CutShort) as told:
        heard.extend(piece.audio for piece in pieces)
    assert b"".join(heard) == PCM
    assert told.value.n_bytes == len(PCM)
    assert len(faults.asked) == 1


def test_a_stream_that_has_not_begun_is_asked_again(faults: FaultServer, client: Client) -> None:
    faults.script = [
        reset,
        refuse(503, "not_ready"),
        stream(events(delta(PCM), DONE), content_type="text/event-stream"),
    ]
    assert b"".join(piece.audio for piece in client.stream("deep water")) == PCM
    assert len(faults.asked) == 3


def test_events_without_an_end_are_cut_short(faults: FaultServer, client: Client) -> None:
    faults.script = [stream(events(delta(PCM)), content_type="text/event-stream")]
    with pytest.raises(CutShort):
        list(client.stream("deep water"))


def test_an_error_among_events_is_that_error(faults: FaultServer, client: Client) -> None:
    told = {"type": "speech.audio.error", "error": {"message": "late", "code": "deadline_exceeded", "param": None}}
    faults.script = [stream(events(delta(PCM), told), content_type="text/event-stream")]
    with pytest.raises(DeadlineExceeded, match="late"):
        list(client.stream("deep water"))


@pytest.mark.parametrize("size", [1, 3, 7, 4096])
def test_events_may_be_torn_anywhere(faults: FaultServer, client: Client, size: int) -> None:
    word = {"type": "speech.audio.words", "words": [{"word": "deep", "start": 0.1, "end": 0.2}]}
    whole = b": hello\n\n" + events(delta(PCM[:100]), word, delta(PCM[100:200]), DONE)
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    faults.script = [stream(*parts, content_type="text/event-stream")]
    pieces = list(client.stream("deep water"))
    assert b"".join(piece.audio for piece in pieces) == PCM[:200]
    assert [word.word for piece in pieces for word in piece.words] == ["deep"]


def test_a_server_without_events_is_heard_all_the_same(faults: FaultServer, client: Client) -> None:
    faults.script = [stream(PCM[:101], PCM[101:])]
    pieces = list(client.stream("deep water"))
    assert b"".join(piece.audio for piece in pieces) == PCM
    assert all(len(piece.audio) % 2 == 0 for piece in pieces)  # no sample is torn


def test_a_silent_server_runs_out_of_time(faults: FaultServer) -> None:
    never = threading.Event()
    held = stream(PCM, PCM, between=lambda: never.wait(20))
    with Client(faults.url, synthesis_timeout_s=0.2, streaming_timeout_s=0.2, retries=0, prewarm=False) as client:
        faults.script = [held, held]
        with pytest.raises(TimedOut):
            speak(client)
        with pytest.raises(TimedOut):
            speak(client, stream=True)
        faults.script = [held] * 100
        told: TuttiError = TimedOut("nothing yet")
        while isinstance(told, TimedOut):  # on a slow machine the first sound may be too late already
            with pytest.raises(TuttiError) as caught:
                list(client.stream("deep water"))
            told = caught.value
        assert isinstance(told, CutShort)
        assert "fell silent" in told.message
    never.set()


def test_the_deadline_goes_to_the_server(faults: FaultServer, client: Client) -> None:
    faults.script = [say(PCM)] * 3
    speak(client)
    speak(client, deadline_s=2)
    speak(client, stream=True)
    told = [asked.headers.get("x-request-timeout") for asked in faults.asked]
    assert told[2] is None  # a stream may take its time
    assert 9 < float(told[0] or 0) <= 10
    assert 1 < float(told[1] or 0) <= 2


@pytest.mark.parametrize(("length", "streamed"), [(50, False), (51, True)])
def test_streaming_is_chosen_by_length_unless_told(
    faults: FaultServer, client: Client, length: int, streamed: bool
) -> None:
    faults.script = [say(PCM)] * 2
    client.speak("x" * length)
    client.speak("x" * length, stream=not streamed)
    assert ["stream" not in asked.body for asked in faults.asked] == [streamed, not streamed]


def test_nobody_there_is_one_sentence_with_the_address() -> None:
    with Client("http://127.0.0.1:9", retries=0) as client:
        with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:9"):
            client.speak("hello")
        assert not client.warm()


def test_health_has_little_patience(faults: FaultServer, client: Client) -> None:
    never = threading.Event()
    faults.script = [lambda _: never.wait(20)]
    with pytest.raises(TimedOut, match=r"0\.5 s"):
        client.health()
    never.set()


def test_the_key_is_sent_and_never_shown(faults: FaultServer) -> None:
    faults.script = [say(PCM)]
    with Client(faults.url, api_key="secret", prewarm=False) as client:
        speak(client)
        assert "secret" not in repr(client._client._options)
    assert faults.asked[0].headers["authorization"] == "Bearer secret"


def test_many_texts_survive_a_server_that_comes_and_goes(faults: FaultServer) -> None:
    faults.script = [act for _ in range(20) for act in (say(PCM), reset, say(PCM))]
    texts = [f"text {n}" for n in range(20)]
    with Client(faults.url, prewarm=False, retries=6) as client:
        heard = client.speak_many(texts, format="pcm")
    assert all(not isinstance(audio, Exception) and audio.data == PCM for audio in heard)
    assert {asked.body["input"] for asked in faults.asked} == set(texts)


@pytest.mark.parametrize("luck", [0.0, 0.5, 1.0])
def test_waits_grow_and_end(luck: float) -> None:
    rule = Retries(times=4)
    waits = [rule.wait_s(failed, None, None, luck) for failed in range(1, 6)]
    known = [wait for wait in waits if wait is not None]
    assert known == sorted(known)
    assert waits[4] is None
    assert rule.wait_s(1, 5.0, 4.0, luck) is None
    assert rule.wait_s(1, rule.patience_s + 1, None, luck) is None
    assert rule.wait_s(1, 5.0, None, luck) == 5.0


def test_a_date_is_a_time_to_come_again_too() -> None:
    from datetime import UTC, datetime

    now = datetime(2026, 11, 15, 7, 0, tzinfo=UTC)
    assert retry_after_s("Sun, 15 Nov 2026 07:00:09 GMT", now) == 9
    assert retry_after_s("soon", now) is None


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"error":"x"}', b'{"detail":"y"}', b"\xff", b'{"error":{}}'])
def test_any_refusal_is_an_error_with_a_message(body: bytes) -> None:
    told = refusal(503, {"retry-after": "1"}, body)
    assert told.error.message
    assert (told.error.status, told.may_retry, told.retry_after_s) == (503, True, 1.0)


def test_codes_keep_their_classes() -> None:
    body = b'{"error":{"message":"wait","code":"not_ready"}}'
    assert type(refusal(503, {}, body).error) is NotReady


def test_the_client_alone_is_light() -> None:
    heavy = ("numpy", "onnxruntime", "fastapi", "starlette", "pydantic", "av", "torch", "typer", "rich")
    code = f"import sys, tutti.client; print(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    "answer",
    [
        say(b"<html>hello</html>", content_type="text/html"),
        say(b'{"ok": true}', content_type="application/json"),
        say(b"", content_type="audio/pcm"),
        say(b"", 307, location="/elsewhere"),
    ],
    ids=["page", "json", "nothing", "elsewhere"],
)
def test_what_is_no_sound_is_never_taken_for_one(faults: FaultServer, client: Client, answer: object) -> None:
    faults.script = [answer] * 2  # type: ignore[list-item]
    with pytest.raises(Refused):
        speak(client)
    with pytest.raises(Refused):
        next(client.stream("deep water", words=False))
    assert client.stats().errors == 2


def test_a_client_does_not_hang_after_a_fork(
    faults: FaultServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = os.getpid()
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: here + 1)
        with pytest.raises(ClientClosed, match="fork"):
            speak(client)


def test_a_dropped_client_ends_its_thread_whoever_drops_it(faults: FaultServer) -> None:
    client = Client(faults.url, prewarm=False)
    thread, loop = client._loop._thread, client._loop._loop
    loop.call_soon_threadsafe(client._close)  # as if the garbage collector had come by in the loop's own thread
    thread.join(60)
    assert not thread.is_alive()
    with pytest.raises(ClientClosed):
        speak(client)
