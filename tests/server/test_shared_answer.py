"""An answer is computed once for all who wait for it, and always after they asked."""

import asyncio

import pytest

from tutti.server import shared_answer
from tutti.server.shared_answer import MANY, SharedAnswer


class Counted:
    """Computes the number of its run; each run waits until it may go on."""

    def __init__(self) -> None:
        self.n_runs = 0
        self.n_running = 0
        self.may_go_on = asyncio.Event()

    async def __call__(self) -> bytes:
        self.n_runs += 1
        self.n_running += 1
        assert self.n_running == 1
        number = self.n_runs
        await self.may_go_on.wait()
        self.n_running -= 1
        if number == 3:
            raise ValueError("the third run fails")
        return str(number).encode()


async def asked(answer: SharedAnswer, n: int) -> list[asyncio.Task[bytes]]:
    """So many callers who have asked."""
    tasks = [asyncio.create_task(answer()) for _ in range(n)]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


def test_who_asks_during_a_run_gets_the_next_one() -> None:
    async def run() -> None:
        counted = Counted()
        answer = SharedAnswer(counted)
        first, during = await asked(answer, 50), await asked(answer, 50)
        counted.may_go_on.set()
        assert await asyncio.gather(*first, *during) == [b"1"] * 50 + [b"2"] * 50
        assert counted.n_runs == 2

    asyncio.run(run())


@pytest.mark.parametrize(("n_callers", "pauses"), [(MANY - 1, False), (MANY, True)])
def test_after_an_answer_for_many_the_next_has_to_wait(
    n_callers: int, pauses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_answer, "PAUSE_S", 3600.0)

    async def run() -> None:
        counted = Counted()
        counted.may_go_on.set()
        answer = SharedAnswer(counted)
        await asyncio.gather(*await asked(answer, n_callers))
        (again,) = await asked(answer, 1)
        assert again.done() is not pauses
        assert counted.n_runs == 2 - pauses
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    asyncio.run(run())


def test_a_caller_that_leaves_takes_nothing_from_the_others() -> None:
    async def run() -> None:
        counted = Counted()
        leaving, *staying = await asked(SharedAnswer(counted), 3)
        leaving.cancel()
        counted.may_go_on.set()
        assert await asyncio.gather(*staying) == [b"1", b"1"]

    asyncio.run(run())


def test_a_run_that_fails_is_not_the_last() -> None:
    async def run() -> None:
        counted = Counted()
        counted.may_go_on.set()
        answer = SharedAnswer(counted)
        assert [await answer(), await answer()] == [b"1", b"2"]
        for task in await asked(answer, 2):
            with pytest.raises(ValueError, match="third"):
                await task
        assert await answer() == b"4"

    asyncio.run(run())
