"""What the client promises by default, and that its two faces promise the same."""

import inspect
import threading

import pytest

from tests.client.faults import FaultServer, say
from tutti.client import AsyncClient, AsyncLive, AsyncStream, Client, Live, OptimizedKokoroHandler, Stream
from tutti.client.options import Options
from tutti.client.request import STREAMED_FROM
from tutti.client.retries import Retries


def names(face: type) -> set[str]:
    """Public ones; what only awaits or only waits has another name on the other side."""
    same = {"aclose": "close", "__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__"}
    public = {name for name in dir(face) if not name.startswith("_") or name in same or name in same.values()}
    return {same.get(name, name) for name in public}


@pytest.mark.parametrize(
    ("awaits", "waits", "only"),
    [
        (AsyncClient, Client, set()),
        (AsyncStream, Stream, {"batch"}),
        (AsyncLive, Live, {"batch"}),
    ],
)
def test_both_faces_have_the_same_calls(awaits: type, waits: type, only: set[str]) -> None:
    assert names(awaits) ^ names(waits) <= only


@pytest.mark.parametrize("call", ["speak", "stream", "speak_many", "prefetch", "live", "__init__"])
def test_a_call_takes_the_same_in_both_faces(call: str) -> None:
    ours, theirs = (inspect.signature(getattr(face, call)).parameters for face in (AsyncClient, Client))
    assert list(ours.values()) == list(theirs.values())


def test_the_defaults_are_those_that_were_asked_for() -> None:
    chosen = Options()
    assert (chosen.health_timeout_s, chosen.synthesis_timeout_s, chosen.streaming_timeout_s) == (0.5, 10.0, 15.0)
    assert (chosen.chunk_bytes, chosen.prewarm, STREAMED_FROM) == (512, True, 50)
    assert Retries(chosen.retries).wait_s(1, 3.0, None, 0.5) == 3.0


def test_the_handler_has_the_methods_of_the_requirement() -> None:
    asked = ("synthesize_sync", "synthesize_async", "synthesize_batch", "get_performance_stats")
    assert all(callable(getattr(OptimizedKokoroHandler, name)) for name in (*asked, "reset_performance_stats"))


def test_a_client_warms_itself_and_the_first_call_finds_the_connection(faults: FaultServer) -> None:
    warmed = threading.Event()
    healthy = say(b"{}", content_type="application/json")
    faults.script = [lambda sock: healthy(sock) and not warmed.set(), say(bytes(100))]
    with Client(faults.url, health_timeout_s=60) as client:
        assert warmed.wait(60)
        client.speak("deep water", format="pcm")
    assert [asked.line.split()[:2] for asked in faults.asked] == [["GET", "/health"], ["POST", "/v1/audio/speech"]]
