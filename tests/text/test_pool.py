"""Texts read beside the event loop give the same chunks as texts read at the desk, whatever happens to the process."""

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
from tests.text.scripted_g2p import ScriptedG2P as Reciter
from tutti import text as front
from tutti.errors import G2PUnavailable, InvalidInput, TuttiError
from tutti.text.chunk import Chunk
from tutti.text.frontend import MAX_CHUNKS_AT_ONCE, G2PPool, G2PThread, TextFrontend
from tutti.text.g2p import G2P

PATIENCE_S = 30.0
KINDS = (G2PThread, G2PPool)
LONG = " ".join(f"Sentence {word} has some words of its own." for word in map("abcdefghij".__getitem__, range(10))) * 40


async def read(reader: TextFrontend, text: str, code: str = "en-us", *, patient: bool = False) -> list[Chunk]:
    return [chunk async for chunk in reader.chunks(text, code, None, patient)]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def desk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[asyncio.Runner, TextFrontend, Reciter]]:
    """A reader of each kind, and the event loop that it belongs to."""
    reciter = Reciter(tmp_path_factory.mktemp("reciter"))
    with asyncio.Runner() as runner:
        reader: TextFrontend = request.param(reciter.pronounce, 2)
        runner.run(reader.start())
        yield runner, reader, reciter
        runner.run(reader.close())


def test_many_texts_at_once_each_become_their_own_chunks(desk: tuple[asyncio.Runner, TextFrontend, Reciter]) -> None:
    runner, reader, reciter = desk
    texts = ["", "Hi.", "One two. Three! [pause:2s] Four?", LONG, *(f"Text number {n}. " * n for n in range(12))]

    async def all_at_once() -> list[list[Chunk]]:
        return await asyncio.gather(*(read(reader, text, code) for text in texts for code in ("en-us", "fr")))

    aligned = iter(runner.run(all_at_once()))
    for text in texts:
        for code in ("en-us", "fr"):
            assert next(aligned) == list(front.chunks(text, code, reciter.pronounce))


def test_one_who_is_patient_gets_the_chunks_of_the_patient(desk: tuple[asyncio.Runner, TextFrontend, Reciter]) -> None:
    runner, reader, reciter = desk
    made = runner.run(read(reader, LONG, patient=True))
    assert made == list(front.chunks(LONG, "en-us", reciter.pronounce, whole_text=True))
    assert made[0] != next(front.chunks(LONG, "en-us", reciter.pronounce))


def test_a_long_text_arrives_piece_by_piece(desk: tuple[asyncio.Runner, TextFrontend, Reciter]) -> None:
    runner, reader, reciter = desk
    whole = len(list(front.chunks(LONG, "en-us", reciter.pronounce)))

    async def only_the_first() -> int:
        before = reciter.n_sentences()
        chunks = reader.chunks(LONG, "en-us")
        await anext(chunks)
        made = reciter.n_sentences() - before
        await chunks.aclose()  # type: ignore[attr-defined]
        return made

    assert runner.run(only_the_first()) < whole / 10


def test_a_wrong_mark_is_told_with_the_first_chunk_and_a_stumble_where_it_falls(
    desk: tuple[asyncio.Runner, TextFrontend, Reciter],
) -> None:
    runner, reader, _ = desk

    async def scene() -> None:
        with pytest.raises(InvalidInput) as raised:
            await read(reader, "One. [pause:3000s] Two.")
        assert raised.value.param == "input"
        heard = 0

        async def listen() -> None:
            nonlocal heard
            async for _ in reader.chunks(LONG + " Now stumble.", "en-us"):
                heard += 1

        with pytest.raises((TuttiError, KeyError), match="stumbled"):
            await listen()
        assert heard > 10
        assert await read(reader, "Well.")

    runner.run(scene())


def play(scene: Callable[[G2PPool], Coroutine[None, None, None]], pool: G2PPool) -> None:
    async def played() -> None:
        await pool.start()
        try:
            await scene(pool)
        finally:
            pids = pool.pids
            await pool.close()
            assert not any(map(psutil.pid_exists, pids))

    asyncio.run(played())


@pytest.mark.parametrize("patient", [False, True])
def test_a_process_that_dies_costs_no_other_text_a_chunk(tmp_path: Path, patient: bool) -> None:
    reciter = Reciter(tmp_path)

    async def scene(pool: G2PPool) -> None:
        heard = []
        async for chunk in pool.chunks(LONG, "en-us", None, patient):
            heard.append(chunk)
            if len(heard) == 3:
                with pytest.raises(G2PUnavailable, match="twice"):
                    await read(pool, "Now die.")
            if len(heard) == 20:
                (pid,) = pool.pids
                os.kill(pid, signal.SIGKILL)
        assert heard == list(front.chunks(LONG, "en-us", reciter.pronounce, whole_text=patient))

    play(scene, G2PPool(reciter.pronounce, 1))


def test_a_new_text_does_not_wait_for_all_the_long_ones(tmp_path: Path) -> None:
    reciter = Reciter(tmp_path)
    per_chunk = LONG.count(".") / len(list(front.chunks(LONG, "en-us", reciter.pronounce)))

    async def scene(pool: G2PPool) -> None:
        at_speed, n_heard = asyncio.Event(), 0

        async def listen_on() -> None:
            nonlocal n_heard
            while True:
                async for _ in pool.chunks(LONG, "en-us"):
                    n_heard += 1
                    if n_heard == 120:
                        at_speed.set()

        listeners = [asyncio.create_task(listen_on()) for _ in range(12)]
        await at_speed.wait()
        before = reciter.n_sentences()
        await anext(pool.chunks("Short and new.", "en-us"))
        said = (tmp_path / "sentences").read_text().splitlines()
        for listener in listeners:
            listener.cancel()
        await asyncio.wait(listeners)
        assert said.index("Short and new.") - before <= 4 * MAX_CHUNKS_AT_ONCE * per_chunk

    play(scene, G2PPool(reciter.pronounce, 1))


def test_the_processes_give_way_and_leave_signals_to_the_parent(tmp_path: Path) -> None:
    async def scene(pool: G2PPool) -> None:
        (child,) = map(psutil.Process, pool.pids)
        assert child.nice() > psutil.Process().nice()
        os.kill(child.pid, signal.SIGINT)
        os.kill(child.pid, signal.SIGTERM)
        assert await read(pool, "Still here.")
        assert child.is_running()

    play(scene, G2PPool(Reciter(tmp_path).pronounce, 1))


def test_whoever_leaves_early_leaves_nothing_undone(tmp_path: Path) -> None:
    async def scene(pool: G2PPool) -> None:
        async def leave(n_chunks: int) -> None:
            async for _ in pool.chunks(LONG, "en-us"):
                n_chunks -= 1
                if n_chunks == 0:
                    raise asyncio.CancelledError

        gone = [asyncio.create_task(leave(n)) for n in range(1, 9)]
        hasty = [asyncio.create_task(read(pool, LONG)) for _ in range(3)]
        await asyncio.sleep(0)
        for task in hasty:
            task.cancel()
        await asyncio.wait([*gone, *hasty])
        assert len(await read(pool, "Hi.")) == 1

    play(scene, G2PPool(Reciter(tmp_path).pronounce, 1))


def test_a_start_without_dictionaries_says_what_is_missing(tmp_path: Path) -> None:
    def error(act: Callable[[], object]) -> TuttiError:
        with pytest.raises(TuttiError) as raised:
            act()
        return raised.value

    g2p = G2P(tmp_path)
    here = error(lambda: list(front.chunks("1", "en-us", g2p.pronounce)))

    async def start() -> None:
        pool = G2PPool(g2p.pronounce, 1)
        try:
            await pool.start()
        finally:
            await pool.close()
            with pytest.raises(G2PUnavailable, match="closed"):
                await read(pool, "Hi.")

    there = error(lambda: asyncio.run(start()))
    assert (type(there), str(there)) == (type(here), str(here))


def test_the_real_front_end_reads_the_same_there(small_home: Path) -> None:
    text = "The dog and the cat want an apple. A zebu is known to walk every day; it is 10% music! " * 5
    g2p = G2P(small_home)

    async def scene(pool: G2PPool) -> None:
        assert await read(pool, text, "en-gb") == list(front.chunks(text, "en-gb", g2p.pronounce))

    play(scene, G2PPool(g2p.pronounce, 1, warm=("en-us", "en-gb")))


PARENT = """
    import asyncio, sys
    from pathlib import Path
    import psutil
    from tests.text.scripted_g2p import ScriptedG2P as Reciter
    from tutti.text.frontend import G2PPool

    async def main(folder, does):
        pool = G2PPool(Reciter(folder).pronounce, 1)
        await pool.start()
        print(*(child.pid for child in psutil.Process().children()), flush=True)
        if does == "stays":
            await asyncio.sleep(600)

    if __name__ == "__main__":
        asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("does", ["stays", "leaves"])
def test_no_process_outlives_its_parent(does: str, tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent(PARENT))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, script, tmp_path, does]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout
        assert parent.stderr
        born = [int(pid) for pid in parent.stdout.readline().split()]
        try:
            if does == "leaves":
                assert parent.wait(PATIENCE_S) == 0
            parent.kill()
            while any(map(alive, born)):
                time.sleep(0.005)
            assert parent.stderr.read() == ""
        finally:
            for pid in (parent.pid, *born):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
