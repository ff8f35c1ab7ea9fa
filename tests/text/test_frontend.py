"""Threads and processes give the same chunks as the front end itself, whatever happens to a process."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.live_text import alive
from tests.text.scripted_g2p import ScriptedG2P
from tutti import text as front
from tutti.errors import G2PUnavailable, InvalidInput, NotReady, TuttiError
from tutti.text.chunk import Chunk
from tutti.text.frontend import MAX_CHUNKS_AT_ONCE, G2PPool, G2PThread, TextFrontend
from tutti.text.g2p import G2P
from tutti.text.g2p_messages import OpenText

pytestmark = pytest.mark.process

TIMEOUT_S = 30.0
KINDS = (G2PThread, G2PPool)
Started = tuple[asyncio.Runner, TextFrontend, ScriptedG2P]
LONG = " ".join(f"Sentence {word} has some words of its own." for word in map("abcdefghij".__getitem__, range(10))) * 20


async def read(frontend: TextFrontend, text: str, code: str = "en-us", *, whole_text: bool = False) -> list[Chunk]:
    return [chunk async for chunk in frontend.chunks(OpenText(text, code, whole_text=whole_text))]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def started_frontend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """A started front end of each kind, with its event loop."""
    reciter = ScriptedG2P(tmp_path_factory.mktemp("reciter"))
    with asyncio.Runner() as runner:
        frontend: TextFrontend = request.param(reciter.pronounce, 2)
        runner.run(frontend.start())
        yield runner, frontend, reciter
        runner.run(frontend.close())


def test_concurrent_texts_each_become_their_own_chunks(started_frontend: Started) -> None:
    runner, frontend, reciter = started_frontend
    texts = ["", "Hi.", "One two. Three! [pause:2s] Four?", LONG, *(f"Text number {n}. " * n for n in range(12))]

    async def all_at_once() -> list[list[Chunk]]:
        return await asyncio.gather(*(read(frontend, text, code) for text in texts for code in ("en-us", "fr")))

    results = iter(runner.run(all_at_once()))
    for text in texts:
        for code in ("en-us", "fr"):
            assert next(results) == list(front.chunks(text, code, reciter.pronounce))


def test_the_option_for_a_whole_text_reaches_the_chunker(started_frontend: Started) -> None:
    runner, frontend, reciter = started_frontend
    chunks = runner.run(read(frontend, LONG, whole_text=True))
    assert chunks == list(front.chunks(LONG, "en-us", reciter.pronounce, whole_text=True))
    assert chunks[0] != next(front.chunks(LONG, "en-us", reciter.pronounce))


def test_the_first_chunk_of_a_long_text_does_not_wait_for_the_rest(started_frontend: Started) -> None:
    runner, frontend, reciter = started_frontend
    n_chunks = len(list(front.chunks(LONG, "en-us", reciter.pronounce)))

    async def only_the_first() -> int:
        before = reciter.n_sentences()
        chunks = frontend.chunks(OpenText(LONG, "en-us"))
        await anext(chunks)
        n_sentences = reciter.n_sentences() - before
        await chunks.aclose()  # type: ignore[attr-defined]
        return n_sentences

    assert runner.run(only_the_first()) < n_chunks / 10


def test_a_wrong_mark_raises_with_the_first_chunk_and_a_g2p_error_where_it_occurs(
    started_frontend: Started,
) -> None:
    runner, frontend, _ = started_frontend

    async def scenario() -> None:
        with pytest.raises(InvalidInput) as raised:
            await read(frontend, "One. [pause:3000s] Two.")
        assert raised.value.param == "input"
        n_chunks = 0

        async def listen() -> None:
            nonlocal n_chunks
            async for _ in frontend.chunks(OpenText(LONG + " Now stumble.", "en-us")):
                n_chunks += 1

        with pytest.raises((TuttiError, KeyError), match="stumbled"):
            await listen()
        assert n_chunks > 10
        assert await read(frontend, "Well.")

    runner.run(scenario())


def run_scenario(scenario: Callable[[G2PPool], Coroutine[None, None, None]], pool: G2PPool) -> None:
    async def run() -> None:
        await pool.start()
        try:
            await scenario(pool)
        finally:
            pids = pool.pids
            await pool.close()
            assert not any(map(psutil.pid_exists, pids))

    asyncio.run(run())


@pytest.mark.parametrize("whole_text", [False, True])
def test_a_process_that_dies_costs_other_texts_no_chunk(tmp_path: Path, whole_text: bool) -> None:
    reciter = ScriptedG2P(tmp_path)

    async def scenario(pool: G2PPool) -> None:
        chunks = []
        async for chunk in pool.chunks(OpenText(LONG, "en-us", whole_text=whole_text)):
            chunks.append(chunk)
            if len(chunks) == 3:
                with pytest.raises(G2PUnavailable, match="twice"):
                    await read(pool, "Now die.")
            if len(chunks) == 20:
                (pid,) = pool.pids
                os.kill(pid, signal.SIGKILL)
        assert chunks == list(front.chunks(LONG, "en-us", reciter.pronounce, whole_text=whole_text))

    run_scenario(scenario, G2PPool(reciter.pronounce, 1))


def test_a_text_that_is_due_is_served_before_the_rest_of_others(tmp_path: Path) -> None:
    reciter = ScriptedG2P(tmp_path)
    per_chunk = LONG.count(".") / len(list(front.chunks(LONG, "en-us", reciter.pronounce)))

    async def scenario(pool: G2PPool) -> None:
        at_speed, n_received = asyncio.Event(), 0

        async def listen_on() -> None:
            nonlocal n_received
            while True:
                async for _ in pool.chunks(OpenText(LONG, "en-us")):
                    n_received += 1
                    if n_received == 120:
                        at_speed.set()

        listeners = [asyncio.create_task(listen_on()) for _ in range(12)]
        await at_speed.wait()
        before = reciter.n_sentences()
        await anext(pool.chunks(OpenText("Short and new.", "en-us"), time.monotonic))
        sentences = (tmp_path / "sentences").read_text().splitlines()
        for listener in listeners:
            listener.cancel()
        await asyncio.wait(listeners)
        assert sentences.index("Short and new.") - before <= 4 * MAX_CHUNKS_AT_ONCE * per_chunk

    run_scenario(scenario, G2PPool(reciter.pronounce, 1))


def test_texts_are_refused_while_no_process_can_be_started(tmp_path: Path) -> None:
    """Those that wait and those that come; without any of them it is tried again, and then texts are read."""

    async def scenario(pool: G2PPool) -> None:
        (tmp_path / "broken").touch()
        waiting = [asyncio.create_task(read(pool, LONG)) for _ in range(5)]
        await asyncio.sleep(0)
        (pid,) = pool.pids
        os.kill(pid, signal.SIGKILL)
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(result) for result in results] == [NotReady] * 5, results
        assert not pool.ready
        with pytest.raises(NotReady, match="SIGKILL"):
            await read(pool, "Hi.")
        (tmp_path / "broken").unlink()
        while not pool.ready:
            await asyncio.sleep(0.01)
        assert len(await read(pool, "Hi.")) == 1

    run_scenario(scenario, G2PPool(ScriptedG2P(tmp_path).pronounce, 1))


def test_one_failed_start_costs_no_text(tmp_path: Path) -> None:
    async def scenario(pool: G2PPool) -> None:
        (pid,) = pool.pids
        os.kill(pid, signal.SIGKILL)
        reading = asyncio.create_task(read(pool, "Hi."))
        while pool.pids in ([], [pid]):
            await asyncio.sleep(0.001)
        (starting,) = pool.pids
        os.kill(starting, signal.SIGKILL)
        assert len(await reading) == 1
        assert pool.pids not in ([], [starting])

    run_scenario(scenario, G2PPool(ScriptedG2P(tmp_path).pronounce, 1))


def test_processes_have_a_low_priority_and_ignore_signals(tmp_path: Path) -> None:
    async def scenario(pool: G2PPool) -> None:
        (child,) = map(psutil.Process, pool.pids)
        assert child.nice() > psutil.Process().nice()
        os.kill(child.pid, signal.SIGINT)
        os.kill(child.pid, signal.SIGTERM)
        assert await read(pool, "Still here.")
        assert child.is_running()

    run_scenario(scenario, G2PPool(ScriptedG2P(tmp_path).pronounce, 1))


def test_cancelled_streams_do_not_block_the_next_one(tmp_path: Path) -> None:
    async def scenario(pool: G2PPool) -> None:
        async def leave(n_chunks: int) -> None:
            async for _ in pool.chunks(OpenText(LONG, "en-us")):
                n_chunks -= 1
                if n_chunks == 0:
                    raise asyncio.CancelledError

        cancelled = [asyncio.create_task(leave(n)) for n in range(1, 9)]
        immediate = [asyncio.create_task(read(pool, LONG)) for _ in range(3)]
        await asyncio.sleep(0)
        for task in immediate:
            task.cancel()
        await asyncio.wait([*cancelled, *immediate])
        assert len(await read(pool, "Hi.")) == 1

    run_scenario(scenario, G2PPool(ScriptedG2P(tmp_path).pronounce, 1))


def test_a_start_without_dictionaries_names_what_is_missing(tmp_path: Path) -> None:
    def error_of(act: Callable[[], object]) -> TuttiError:
        with pytest.raises(TuttiError) as raised:
            act()
        return raised.value

    g2p = G2P(tmp_path)
    expected = error_of(lambda: list(front.chunks("1", "en-us", g2p.pronounce)))

    async def start() -> None:
        pool = G2PPool(g2p.pronounce, 1)
        try:
            await pool.start()
        finally:
            await pool.close()
            with pytest.raises(G2PUnavailable, match="closed"):
                await read(pool, "Hi.")

    actual = error_of(lambda: asyncio.run(start()))
    assert (type(actual), str(actual)) == (type(expected), str(expected))


def test_a_process_gives_the_chunks_of_the_real_front_end(small_home: Path) -> None:
    text = "The dog and the cat want an apple. A zebu is known to walk every day; it is 10% music! " * 5
    g2p = G2P(small_home)

    async def scenario(pool: G2PPool) -> None:
        assert await read(pool, text, "en-gb") == list(front.chunks(text, "en-gb", g2p.pronounce))

    run_scenario(scenario, G2PPool(g2p.pronounce, 1, warm=("en-us", "en-gb")))


PARENT = """
    import asyncio, sys
    from pathlib import Path
    import psutil
    from tests.text.scripted_g2p import ScriptedG2P
    from tutti.text.frontend import G2PPool

    async def main(folder, action):
        pool = G2PPool(ScriptedG2P(folder).pronounce, 1)
        await pool.start()
        print(*(child.pid for child in psutil.Process().children()), flush=True)
        if action == "waits":
            await asyncio.sleep(600)

    if __name__ == "__main__":
        asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("action", ["waits", "exits"])
def test_no_process_outlives_its_parent(action: str, tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent(PARENT))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, script, tmp_path, action]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout
        assert parent.stderr
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        try:
            if action == "exits":
                assert parent.wait(TIMEOUT_S) == 0
            parent.kill()
            while any(map(alive, pids)):
                time.sleep(0.005)
            assert parent.stderr.read() == ""
        finally:
            for pid in (parent.pid, *pids):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
