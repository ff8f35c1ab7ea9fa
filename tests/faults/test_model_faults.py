"""A model that fails on some rows, in a worker process: the request of that row fails, and no other hears of it."""

import asyncio
from collections.abc import Iterator

import httpx2
import pytest

from tests.faults.limited_server import LimitedServer, limited_server
from tests.faults.misbehaving import BROKEN, NOT_A_NUMBER, RAISES, WRONG_LENGTH

pytestmark = [pytest.mark.process, pytest.mark.server]

HEALTHY = tuple(f"Deep water runs {word} under the bridge." for word in ("still", "old", "on", "slow", "far"))


@pytest.fixture(scope="module")
def misbehaving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedServer]:
    folder = tmp_path_factory.mktemp("misbehaving")
    with limited_server(folder, "--cache-mb", "0", TONE_MISBEHAVES="on") as server:
        yield server


async def speak_at_once(server: LimitedServer, texts: list[str]) -> list[httpx2.Response]:
    async with httpx2.AsyncClient(base_url=server.url, timeout=120) as client:
        bodies = [{"input": text, "response_format": "pcm", "stream": False} for text in texts]
        return await asyncio.gather(*(client.post("/v1/audio/speech", json=body) for body in bodies))


@pytest.mark.parametrize(
    "letter", [RAISES, NOT_A_NUMBER, WRONG_LENGTH, BROKEN], ids=["raises", "not a number", "wrong length", "a bug"]
)
def test_one_bad_row_among_sixteen_fails_alone(misbehaving: LimitedServer, letter: str) -> None:
    """Rows are also more than fit on the device: they run in smaller batches, and none fails for that."""
    alone = {text: misbehaving.speak(text, stream=False).content for text in HEALTHY}
    texts = [*HEALTHY * 3, f"The {letter}{letter} fails."]
    *good, bad = asyncio.run(speak_at_once(misbehaving, texts))
    assert [answer.status_code for answer in good] == [200] * len(good)
    assert [answer.content for answer in good] == [alone[text] for text in texts[:-1]]
    assert bad.status_code == 500
    assert bad.json()["error"]["code"] in ("model_failed", "internal_error")
    assert misbehaving.client.get("/readyz").status_code == 200


def test_a_full_device_gets_smaller_batches_and_no_request_fails(misbehaving: LimitedServer) -> None:
    retried = misbehaving.metric("tutti_retried_total", why="device_full")
    while misbehaving.metric("tutti_retried_total", why="device_full") == retried:
        answers = asyncio.run(speak_at_once(misbehaving, [*HEALTHY * 4]))
        assert {answer.status_code for answer in answers} == {200}
