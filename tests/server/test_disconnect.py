"""Work for a request runs in its task, and ends when its client disconnects."""

import asyncio

import pytest
from starlette.types import Message

from tutti.server.disconnect import ClientDisconnected, cancel_on_disconnect


class Client:
    """Says that it has left when it is told to."""

    def __init__(self) -> None:
        self.has_left = asyncio.Event()

    async def receive(self) -> Message:
        await self.has_left.wait()
        return {"type": "http.disconnect"}


async def turns(n: int = 5) -> None:
    for _ in range(n):
        await asyncio.sleep(0)


def test_the_result_is_returned_while_the_client_is_there() -> None:
    async def run() -> None:
        assert await cancel_on_disconnect(Client().receive, asyncio.sleep(0, "audio")) == "audio"

    asyncio.run(run())


def test_a_disconnect_cancels_the_work_and_nothing_else() -> None:
    async def run() -> None:
        client, cancelled = Client(), False

        async def work() -> None:
            nonlocal cancelled
            client.has_left.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled = True
                raise

        with pytest.raises(ClientDisconnected):
            await cancel_on_disconnect(client.receive, work())
        assert cancelled
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    asyncio.run(run())


def test_a_connection_that_fails_counts_as_left() -> None:
    async def run() -> None:
        async def receive() -> Message:
            raise ConnectionResetError

        with pytest.raises(ClientDisconnected):
            await cancel_on_disconnect(receive, asyncio.Event().wait())

    asyncio.run(run())


def test_a_cancelled_request_stays_cancelled_though_its_client_leaves_too() -> None:
    async def run() -> None:
        client = Client()
        request = asyncio.create_task(cancel_on_disconnect(client.receive, asyncio.Event().wait()))
        await turns()
        client.has_left.set()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    asyncio.run(run())


def test_a_disconnect_in_the_turn_in_which_the_work_ends_cancels_nothing_later() -> None:
    async def run() -> None:
        client = Client()

        async def work() -> str:
            await turns()  # the watch waits
            client.has_left.set()
            await asyncio.sleep(0)  # the watch ends, and would cancel in the next turn
            return "audio"

        assert await cancel_on_disconnect(client.receive, work()) == "audio"
        await turns()

    asyncio.run(run())
