"""Nothing that fits the limits keeps the event loop from other requests: benchmarks.loop_hold sends many more."""

from collections.abc import Callable

import pytest

from benchmarks.hostile import MAX_BODY, long_texts, messages, pad, post
from tests.faults.limited_server import LimitedServer
from tests.faults.test_hostile_requests import MAX_HELD_MS

pytestmark = [pytest.mark.process, pytest.mark.server]

SPEECH, LIVE = "/v1/audio/speech", "/v1/audio/speech/stream"
LONG_NAME = "af_sky+" * (MAX_BODY // 8)
BLENDS = long_texts()["blends in marks"]
MARKS = pad("[rate:1.1]a[/rate] ")


@pytest.mark.parametrize(
    "send",
    [
        pytest.param(post(SPEECH, {"input": "deep", "voice": LONG_NAME}), id="a voice of 4 MB"),
        pytest.param(post(SPEECH, {"input": "deep", "language": LONG_NAME}), id="a language of 4 MB"),
        pytest.param(post("/v1/audio/voices/combine", LONG_NAME), id="a blend of 4 MB"),
        pytest.param(post(SPEECH, {"input": "deep", "timestamps": [""] * 49_000}), id="49,000 wrong items"),
        pytest.param(post(SPEECH, {"input": BLENDS}), id="30,000 blends in marks"),
        pytest.param(post("/dev/generate_from_phonemes", {"phonemes": "a" * 3_900_000}), id="4 MB of phonemes"),
        pytest.param(messages(LIVE, {"type": "input.text", "text": MARKS}, n_answers=1), id="a live text of marks"),
    ],
)
def test_nothing_that_is_sent_holds_the_event_loop(server: LimitedServer, send: Callable[[LimitedServer], str]) -> None:
    assert server.loop is not None
    server.loop.reset()
    send(server)
    server.wait_until_ready()  # two answers later: the loop has had a turn
    server.wait_until_ready()
    assert server.loop.held_ms < MAX_HELD_MS
