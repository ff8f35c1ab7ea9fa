"""`tutti top` shows the state of the server within the terminal, reports a lost server, and reconnects."""

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
from tutti.client.top import NoView, follow, run_top, show_once
from tutti.client.top_view import FULL, PAD, Event, TopState, bar, render, sparkline

PAGE = (Path(__file__).parents[2] / "docs/stats.md").read_text(encoding="utf-8")
HELLO, TICK = (
    json.loads(block) for block in re.findall(r"```json\n(\{.*?\})\n```", PAGE, re.DOTALL) if "\n{" not in block
)
ROWS = st.lists(st.tuples(st.sampled_from(["first", "next", "bulk"]), st.integers(1, 900)), min_size=1, max_size=64)
BATCH = TICK["batches"][0]


def lines(state_after: TopState, width: int, height: int, problem: str = "") -> list[str]:
    console = Console(width=width, height=height, record=True, file=io.StringIO())
    console.print(render(state_after, "http://127.0.0.1:8880", problem, width, height))
    return console.export_text().splitlines()


def state_after(*events: Event) -> TopState:
    state = TopState()
    for event in events:
        state.apply(event)
    return state


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("voices")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[RunningServer]:
    with serving(tone_engine(silent_voices(folder)), api_keys=("secret",)) as running:
        yield running


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 50), (140, 40), (200, 60)])
@pytest.mark.parametrize("problem", ["", "the server is gone (" + "because " * 30 + ")"])
def test_it_fits_the_terminal(width: int, height: int, problem: str) -> None:
    batches = [{**BATCH, "id": number, "stage": ("acoustic", "vocoder")[number % 2]} for number in range(300)]
    job = TICK["queue"]["acoustic"]["jobs"][0]
    crowd = {**TICK["queue"]["acoustic"], "first": 4321, "jobs": [job] * 40}
    ticks = [{**TICK, "queue": dict.fromkeys(TICK["queue"], crowd), "batches": batches}] * 100
    drawn = lines(state_after(HELLO, *ticks), width, height, problem)
    assert len(drawn) <= height
    assert all(len(line.rstrip()) <= width for line in drawn)
    assert problem[:15] in "\n".join(drawn)
    assert "deadline" in drawn[0]


def test_the_numbers_are_those_of_the_server() -> None:
    drawn = "\n".join(lines(state_after(HELLO, TICK), 140, 40))
    for text in (
        "1 first",
        "p50 310",
        "p95 702",
        "p99 820 ms",
        "3.21 s/s",
        "93 % busy",
        "84 ms (90)",
        "2.0 rows a batch",
    ):
        assert text in drawn
    trial = {**TICK, "policy": "window", "trial": {"policy": "window", "left_s": 97.0}}
    assert "trial, 97 s left: window" in lines(state_after(HELLO, trial), 140, 40)[0]


def test_without_a_server_it_shows_the_problem() -> None:
    assert "no server" in "\n".join(lines(TopState(), 80, 24, "no server at http://127.0.0.1:8880"))


@given(rows=ROWS, room=st.integers(1, 200), extra=st.integers(0, 500), stretch=st.floats(1, 5))
def test_a_bar_has_the_length_of_its_share_and_shows_its_speech(
    rows: list[tuple[str, int]], room: int, extra: int, stretch: float
) -> None:
    longest = max(size for _, size in rows)
    sizes = [{"class": kind, "size": size, "padded": longest} for kind, size in rows]
    padded = longest * len(rows) + extra
    scale = round(padded * stretch)
    drawn = bar({"rows": sizes, "padded": padded}, room, scale).plain
    assert set(drawn) <= {FULL, PAD}
    assert len(drawn) == round(room * padded / scale)
    speech = room * sum(size for _, size in rows) / scale
    assert abs(drawn.count(FULL) - speech) <= len(rows)


def test_a_batch_whose_end_was_lost_is_not_shown_as_running() -> None:
    running = {**BATCH, "outcome": "running", "ms": None}
    state = state_after(HELLO, {**TICK, "batches": [running], "running": [BATCH["id"]]})
    assert state.latest_batches("vocoder", 5) == [running]
    state.apply({"type": "lost", "ticks": 3})
    state.apply({**TICK, "batches": [], "running": []})
    assert state.latest_batches("vocoder", 5) == []
    assert "3 updates missed" in lines(state, 100, 30)[-1]


@given(st.lists(st.floats(0, 1e6), max_size=100), st.integers(1, 60))
def test_a_sparkline_has_a_column_for_each_of_the_last_values(values: list[float], width: int) -> None:
    drawn = sparkline(values, width)
    assert len(drawn) == min(len(values), width)
    if drawn and max(values[-width:]) > 0:
        assert "█" in drawn


class Done(Exception):
    """The expected state was shown."""


def until(wanted: Callable[[TopState, str], Any]) -> Callable[[TopState, str], None]:
    def show(state: TopState, problem: str) -> None:
        if wanted(state, problem):
            raise Done

    return show


async def connect(url: str, view: Callable[..., Any], show: Callable[[TopState, str], None], **headers: str) -> None:
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
        await view(client, show)


@pytest.mark.server
def test_it_follows_a_server_with_a_key(server: RunningServer) -> None:
    with pytest.raises(Done):
        asyncio.run(connect(server.url, follow, until(lambda state, _: state.tick), authorization="Bearer secret"))


@pytest.mark.server
def test_without_a_key_it_names_the_option(server: RunningServer) -> None:
    with pytest.raises(NoView, match="--api-key, or TUTTI_API_KEY"):
        asyncio.run(connect(server.url, follow, until(lambda *_: False)))
    with pytest.raises(NoView, match="--api-key, or TUTTI_API_KEY"):
        run_top(server.url, "wrong")


@pytest.mark.server
def test_a_server_without_statistics_is_an_error(server: RunningServer) -> None:
    with pytest.raises(NoView, match="older tutti, or another server"):
        asyncio.run(connect(f"{server.url}/nowhere", follow, until(lambda *_: False)))


@pytest.mark.server
def test_without_a_terminal_it_prints_the_state_once(server: RunningServer, capsys: pytest.CaptureFixture[str]) -> None:
    run_top(server.url, "secret")
    printed = capsys.readouterr().out
    assert "first audio" in printed
    assert "\x1b" not in printed


def test_printing_once_without_a_server_names_the_address() -> None:
    with pytest.raises(Unreachable, match=r"no server at http://127\.0\.0\.1:1"):
        asyncio.run(connect("http://127.0.0.1:1", show_once, until(lambda *_: False)))


@pytest.mark.server
def test_it_reconnects_after_a_restart_of_the_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "RETRY_WAITS_S", (0.05,))
    problems: list[str] = []
    live, gone, back = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def show(state: TopState, problem: str) -> None:
        problems.append(problem)
        if problem:
            gone.set()
        elif state.tick:
            (back if gone.is_set() else live).set()

    async def run() -> None:
        first = serving(tone_engine(silent_voices(folder)))
        running = await asyncio.to_thread(first.__enter__)
        url, port = running.url, running.host_port[1]
        following = asyncio.create_task(connect(url, follow, show))
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
    first = next(filter(None, problems))
    assert re.match(r"the server (is gone \(.*\)|shut down); trying again \(1\)", first)
