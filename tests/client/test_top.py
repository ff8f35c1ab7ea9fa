"""`tutti top` draws what the server tells within the terminal it has, says when the server is gone, and comes back."""

import asyncio
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.fakes import silent_voices, tone_engine
from tests.server.harness import RunningServer, serving
from tutti.client import top
from tutti.client.errors import Unreachable
from tutti.client.top import NoView, follow, once, watch
from tutti.client.top_view import FULL, PAD, Event, Scene, bar, curve, draw

PAGE = (Path(__file__).parents[2] / "docs/stats.md").read_text(encoding="utf-8")
HELLO, TICK = (
    json.loads(block) for block in re.findall(r"```json\n(\{.*?\})\n```", PAGE, re.DOTALL) if "\n{" not in block
)
ROWS = st.lists(st.tuples(st.sampled_from(["first", "next", "bulk"]), st.integers(1, 900)), min_size=1, max_size=64)
BATCH = TICK["batches"][0]


def lines(scene: Scene, width: int, height: int, trouble: str = "") -> list[str]:
    console = Console(width=width, height=height, record=True, file=io.StringIO())
    console.print(draw(scene, "http://127.0.0.1:8880", trouble, width, height))
    return console.export_text().splitlines()


def scene(*events: Event) -> Scene:
    made = Scene()
    for event in events:
        made.take(event)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("voices")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[RunningServer]:
    with serving(tone_engine(silent_voices(folder)), api_keys=("secret",)) as running:
        yield running


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 50), (140, 40), (200, 60)])
@pytest.mark.parametrize("trouble", ["", "the server is gone (" + "because " * 30 + ")"])
def test_it_fits_the_terminal(width: int, height: int, trouble: str) -> None:
    batches = [{**BATCH, "id": number, "stage": ("acoustic", "vocoder")[number % 2]} for number in range(300)]
    job = TICK["queue"]["acoustic"]["jobs"][0]
    crowd = {**TICK["queue"]["acoustic"], "first": 4321, "jobs": [job] * 40}
    ticks = [{**TICK, "queue": dict.fromkeys(TICK["queue"], crowd), "batches": batches}] * 100
    drawn = lines(scene(HELLO, *ticks), width, height, trouble)
    assert len(drawn) <= height
    assert all(len(line.rstrip()) <= width for line in drawn)
    assert trouble[:15] in "\n".join(drawn)
    assert "deadline" in drawn[0]


def test_the_numbers_are_the_servers() -> None:
    drawn = "\n".join(lines(scene(HELLO, TICK), 140, 40))
    for told in (
        "1 first",
        "p50 310",
        "p95 702",
        "p99 820 ms",
        "3.21 s/s",
        "93 % busy",
        "84 ms (90)",
        "2.0 rows a batch",
    ):
        assert told in drawn
    trial = {**TICK, "policy": "window", "trial": {"policy": "window", "left_s": 97.0}}
    assert "trial, 97 s left: window" in lines(scene(HELLO, trial), 140, 40)[0]


def test_without_a_word_from_the_server_it_says_what_is_wrong() -> None:
    assert "no server" in "\n".join(lines(Scene(), 80, 24, "no server at http://127.0.0.1:8880"))


@given(rows=ROWS, room=st.integers(1, 200), extra=st.integers(0, 500), stretch=st.floats(1, 5))
def test_a_bar_is_as_long_as_its_share_and_shows_no_more_speech_than_there_is(
    rows: list[tuple[str, int]], room: int, extra: int, stretch: float
) -> None:
    longest = max(size for _, size in rows)
    told = [{"class": kind, "size": size, "padded": longest} for kind, size in rows]
    padded = longest * len(rows) + extra
    scale = round(padded * stretch)
    drawn = bar({"rows": told, "padded": padded}, room, scale).plain
    assert set(drawn) <= {FULL, PAD}
    assert len(drawn) == round(room * padded / scale)
    speech = room * sum(size for _, size in rows) / scale
    assert abs(drawn.count(FULL) - speech) <= len(rows)


def test_a_batch_whose_end_was_lost_is_not_shown_as_running() -> None:
    running = {**BATCH, "outcome": "running", "ms": None}
    made = scene(HELLO, {**TICK, "batches": [running], "running": [BATCH["id"]]})
    assert made.shown("vocoder", 5) == [running]
    made.take({"type": "lost", "ticks": 3})
    made.take({**TICK, "batches": [], "running": []})
    assert made.shown("vocoder", 5) == []
    assert "3 updates missed" in lines(made, 100, 30)[-1]


@given(st.lists(st.floats(0, 1e6), max_size=100), st.integers(1, 60))
def test_a_curve_has_a_column_for_each_of_the_last_values(values: list[float], width: int) -> None:
    drawn = curve(values, width)
    assert len(drawn) == min(len(values), width)
    if drawn and max(values[-width:]) > 0:
        assert "█" in drawn


class Seen(Exception):
    """Enough was seen."""


def until(wanted: Callable[[Scene, str], Any]) -> Callable[[Scene, str], None]:
    def show(made: Scene, trouble: str) -> None:
        if wanted(made, trouble):
            raise Seen

    return show


async def looked(url: str, look: Callable[..., Any], show: Callable[[Scene, str], None], **headers: str) -> None:
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
        await look(client, show)


def test_it_follows_a_server_with_a_key(server: RunningServer) -> None:
    with pytest.raises(Seen):
        asyncio.run(looked(server.url, follow, until(lambda made, _: made.tick), authorization="Bearer secret"))


def test_without_its_key_it_says_where_to_put_it(server: RunningServer) -> None:
    with pytest.raises(NoView, match="--api-key, or TUTTI_API_KEY"):
        asyncio.run(looked(server.url, follow, until(lambda *_: False)))
    with pytest.raises(NoView, match="--api-key, or TUTTI_API_KEY"):
        watch(server.url, "wrong")


def test_of_a_server_that_is_no_tutti_it_says_so(server: RunningServer) -> None:
    with pytest.raises(NoView, match="older tutti, or another server"):
        asyncio.run(looked(f"{server.url}/nowhere", follow, until(lambda *_: False)))


def test_where_nobody_watches_it_prints_one_picture(server: RunningServer, capsys: pytest.CaptureFixture[str]) -> None:
    watch(server.url, "secret")
    printed = capsys.readouterr().out
    assert "first audio" in printed
    assert "\x1b" not in printed


def test_one_picture_of_no_server_is_an_error_with_its_address() -> None:
    with pytest.raises(Unreachable, match=r"no server at http://127\.0\.0\.1:1"):
        asyncio.run(looked("http://127.0.0.1:1", once, until(lambda *_: False)))


def test_a_server_that_goes_is_said_to_be_gone_and_found_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "AGAIN_S", (0.05,))
    troubles: list[str] = []
    live, gone, back = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def show(made: Scene, trouble: str) -> None:
        troubles.append(trouble)
        if trouble:
            gone.set()
        elif made.tick:
            (back if gone.is_set() else live).set()

    async def run() -> None:
        first = serving(tone_engine(silent_voices(folder)))
        running = await asyncio.to_thread(first.__enter__)
        url, port = running.url, running.host_port[1]
        following = asyncio.create_task(looked(url, follow, show))
        await asyncio.wait_for(live.wait(), 120)
        await asyncio.to_thread(first.__exit__, None, None, None)
        await asyncio.wait_for(gone.wait(), 120)
        again = serving(tone_engine(silent_voices(folder)), port=port)
        await asyncio.to_thread(again.__enter__)
        await asyncio.wait_for(back.wait(), 120)
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await asyncio.to_thread(again.__exit__, None, None, None)

    asyncio.run(run())
    told = next(filter(None, troubles))
    assert re.match(r"the server (is gone \(.*\)|went down); trying again \(1\)", told)
