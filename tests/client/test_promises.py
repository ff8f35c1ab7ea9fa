"""The client's documented defaults, and that `Client` and `AsyncClient` offer the same."""

import inspect
import threading

import pytest

from tests.client.faults import FaultServer, respond
from tutti.client import AsyncClient, AsyncLive, AsyncStream, Client, Live, Stream
from tutti.client.options import ClientSettings
from tutti.client.request import STREAM_ABOVE
from tutti.client.transport import retry_wait_s


def names(kind: type) -> set[str]:
    """Return the public names, those of an async class under the names of its blocking twin."""
    same = {"aclose": "close", "__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__"}
    public = {name for name in dir(kind) if not name.startswith("_") or name in same or name in same.values()}
    return {same.get(name, name) for name in public}


@pytest.mark.parametrize(
    ("asynchronous", "blocking", "only"),
    [
        (AsyncClient, Client, set()),
        (AsyncStream, Stream, {"batch"}),
        (AsyncLive, Live, {"batch"}),
    ],
)
def test_both_clients_have_the_same_calls(asynchronous: type, blocking: type, only: set[str]) -> None:
    assert names(asynchronous) ^ names(blocking) <= only


@pytest.mark.parametrize("call", ["speak", "stream", "speak_many", "prefetch", "live", "__init__"])
def test_both_clients_take_the_same_parameters(call: str) -> None:
    asynchronous, blocking = (inspect.signature(getattr(kind, call)).parameters for kind in (AsyncClient, Client))
    assert list(asynchronous.values()) == list(blocking.values())


def test_the_documented_defaults_hold() -> None:
    settings = ClientSettings()
    assert (settings.health_timeout_s, settings.synthesis_timeout_s, settings.streaming_timeout_s) == (0.5, 10.0, 15.0)
    assert (settings.chunk_bytes, settings.prewarm, STREAM_ABOVE) == (512, True, 50)
    assert retry_wait_s(1, settings.retries, 3.0, None, 0.5) == 3.0


@pytest.mark.server
def test_a_client_warms_up_and_the_first_call_reuses_the_connection(faults: FaultServer) -> None:
    warmed = threading.Event()
    healthy = respond(b"{}", content_type="application/json")
    faults.script = [lambda sock: healthy(sock) and not warmed.set(), respond(bytes(100))]
    with Client(faults.url, health_timeout_s=60) as client:
        assert warmed.wait(60)
        client.speak("deep water", format="pcm")
    assert [request.line.split()[:2] for request in faults.requests] == [
        ["GET", "/health"],
        ["POST", "/v1/audio/speech"],
    ]
