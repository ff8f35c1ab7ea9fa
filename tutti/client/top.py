"""`tutti top`: a server's batching, live in the terminal. Reconnects when the server is gone."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import httpx2
from rich.console import Console, RenderableType
from rich.live import Live

from tutti.client.decoders import SseParser
from tutti.client.errors import Unreachable, parse_error_response
from tutti.client.top_view import Event, TopState, render
from tutti.errors import TuttiError

TIMEOUT_S = 5.0  # the server sends an event every second
RETRY_WAITS_S = (0.5, 1.0, 2.0, 3.0)  # before each attempt to reconnect; the last repeats
Show = Callable[[TopState, str], None]  # the second is an error message, or empty


class NoView(TuttiError):
    """The server has no statistics for this client; trying again will not help."""

    status, code, exit_code = 400, "no_view", 2


async def stats_events(client: httpx2.AsyncClient) -> AsyncGenerator[Event]:
    """Yield the server's events until the stream ends; raise Unreachable if the connection is lost."""
    parser = SseParser()
    try:
        async with client.stream("GET", "/v1/stats/stream") as response:
            if response.status_code != 200:
                raise _stats_error(response.status_code, dict(response.headers), await response.aread())
            async for chunk in response.aiter_bytes():
                for data in parser.feed(chunk):
                    yield json.loads(data)
    except httpx2.HTTPError as error:
        raise Unreachable(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__) from error


async def follow(client: httpx2.AsyncClient, show: Show) -> None:
    """Show each event until cancelled; without a server, show why above the last state and reconnect."""
    state, n_tries = TopState(), 0
    while True:
        problem = "the server shut down"
        try:
            async with aclosing(stats_events(client)) as events:
                async for event in events:
                    if event["type"] == "bye":
                        break
                    n_tries = 0
                    state.apply(event)
                    show(state, "")
        except Unreachable as error:
            problem = f"no server at {client.base_url}".rstrip("/") if not state.hello else "the server is gone"
            problem = f"{problem} ({error.message})"
        wait_s = RETRY_WAITS_S[min(n_tries, len(RETRY_WAITS_S) - 1)]
        n_tries += 1
        show(state, f"{problem}; trying again ({n_tries})")
        await asyncio.sleep(wait_s)


async def show_once(client: httpx2.AsyncClient, show: Show) -> None:
    """Show the current state."""
    try:
        response = await client.get("/v1/stats")
    except httpx2.HTTPError as error:
        raise Unreachable(f"no server at {client.base_url}: {error}") from error
    if response.status_code != 200:
        raise _stats_error(response.status_code, dict(response.headers), response.content)
    state = TopState()
    state.apply(response.json())
    show(state, "")


def run_top(url: str, api_key: str | None, *, once: bool = False) -> None:
    """Show the state until Ctrl-C; with `once`, or without a terminal, print it once."""
    console = Console()
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    timeout = httpx2.Timeout(TIMEOUT_S)

    async def run(view: Callable[[httpx2.AsyncClient, Show], Awaitable[None]], show: Show) -> None:
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=timeout) as client:
            await view(client, show)

    if once or not console.is_terminal:
        asyncio.run(run(show_once, lambda state, problem: console.print(_render(state, url, problem, console))))
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:

        def show(state: TopState, problem: str) -> None:
            live.update(_render(state, url, problem, console), refresh=True)

        show(TopState(), "")
        asyncio.run(run(follow, show))


def _render(state: TopState, url: str, problem: str, console: Console) -> RenderableType:
    return render(state, url, problem, console.width, console.height)


def _stats_error(status: int, headers: dict[str, str], body: bytes) -> TuttiError:
    error = parse_error_response(status, headers, body).error
    if status == 401:
        return NoView(f"{error.message}: use --api-key, or TUTTI_API_KEY")
    if status == 404:
        return NoView("this server has no /v1/stats/stream: it is an older tutti, or another server")
    return Unreachable(error.message) if status >= 500 or status == 429 else NoView(error.message)
