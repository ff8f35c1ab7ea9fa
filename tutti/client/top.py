"""`tutti top`: the batching of a server, live in the terminal. A server that is gone is waited for."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import httpx2
from rich.console import Console, RenderableType
from rich.live import Live

from tutti.client.errors import Unreachable, refusal
from tutti.client.top_view import Event, Scene, draw
from tutti.errors import TuttiError

SILENT_S = 5.0  # a server says something every second
AGAIN_S = (0.5, 1.0, 2.0, 3.0)  # before each new try; the last for all that follow
Show = Callable[[Scene, str], None]  # with what is wrong, if anything


class NoView(TuttiError):
    """It will not get better by asking again."""

    status, code, exit_code = 400, "no_view", 2


async def events(client: httpx2.AsyncClient) -> AsyncGenerator[Event]:
    """What the server tells, until it says goodbye or is gone (Unreachable)."""
    try:
        async with client.stream("GET", "/v1/stats/stream") as response:
            if response.status_code != 200:
                raise _refused(response.status_code, dict(response.headers), await response.aread())
            async for line in response.aiter_lines():
                if line.startswith("data:"):
                    yield json.loads(line.removeprefix("data:"))
    except httpx2.HTTPError as error:
        raise Unreachable(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__) from error


async def follow(client: httpx2.AsyncClient, show: Show) -> None:
    """Shows what comes; where the server is gone, says so over the last picture and tries again, until cancelled."""
    scene, n_tries = Scene(), 0
    while True:
        why = "the server went down"
        try:
            async with aclosing(events(client)) as told:
                async for event in told:
                    if event["type"] == "bye":
                        break
                    n_tries = 0
                    scene.take(event)
                    show(scene, "")
        except Unreachable as error:
            why = f"no server at {client.base_url}".rstrip("/") if not scene.hello else "the server is gone"
            why = f"{why} ({error.message})"
        after_s = AGAIN_S[min(n_tries, len(AGAIN_S) - 1)]
        n_tries += 1
        show(scene, f"{why}; trying again ({n_tries})")
        await asyncio.sleep(after_s)


async def once(client: httpx2.AsyncClient, show: Show) -> None:
    """One picture of how things stand now."""
    try:
        response = await client.get("/v1/stats")
    except httpx2.HTTPError as error:
        raise Unreachable(f"no server at {client.base_url}: {error}") from error
    if response.status_code != 200:
        raise _refused(response.status_code, dict(response.headers), response.content)
    scene = Scene()
    scene.take(response.json())
    show(scene, "")


def watch(url: str, api_key: str | None, *, one: bool = False) -> None:
    """On a terminal until Ctrl-C; elsewhere, or for `one`, a single picture."""
    console = Console()
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    timeout = httpx2.Timeout(SILENT_S)

    async def run(look: Callable[[httpx2.AsyncClient, Show], Awaitable[None]], show: Show) -> None:
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=timeout) as client:
            await look(client, show)

    if one or not console.is_terminal:
        asyncio.run(run(once, lambda scene, trouble: console.print(_drawn(scene, url, trouble, console))))
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:

        def show(scene: Scene, trouble: str) -> None:
            live.update(_drawn(scene, url, trouble, console), refresh=True)

        show(Scene(), "")
        asyncio.run(run(follow, show))


def _drawn(scene: Scene, url: str, trouble: str, console: Console) -> RenderableType:
    return draw(scene, url, trouble, console.width, console.height)


def _refused(status: int, headers: dict[str, str], body: bytes) -> TuttiError:
    error = refusal(status, headers, body).error
    if status == 401:
        return NoView(f"{error.message}: --api-key, or TUTTI_API_KEY")
    if status == 404:
        return NoView("this server has no /v1/stats/stream: it is an older tutti, or another server")
    return Unreachable(error.message) if status >= 500 or status == 429 else NoView(error.message)
