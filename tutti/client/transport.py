"""The one place that speaks HTTP: pooled connections, attempts, timeouts, and bytes as they come."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import httpx2

from tutti.client.call_stats import Watch
from tutti.client.errors import CutShort, Refused, TimedOut, Unreachable, refusal
from tutti.client.retries import Retries
from tutti.errors import TuttiError

SPEECH = "/v1/audio/speech"
KEEP_ALIVE_S = 60.0  # shorter than the server's, so that it is never the server who hangs up on a new request
T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for what."""

    connect_s: float = 3.0
    health_s: float = 0.5
    synthesis_s: float = 10.0  # for a whole answer
    streaming_s: float = 15.0  # between two bytes of a stream


@dataclass(frozen=True, slots=True)
class Ask:
    """One request on its way, and when it must be over, on the event loop's clock."""

    body: Mapping[str, object]
    gap_s: float
    until: float | None = None

    def left_s(self) -> float | None:
        return None if self.until is None else self.until - asyncio.get_running_loop().time()


class Failed(Exception):
    """An attempt went wrong in a way that another might not."""

    def __init__(self, error: TuttiError, retry_after_s: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.retry_after_s = retry_after_s


class Opened:
    """An answer whose first bytes have come."""

    def __init__(self, response: httpx2.Response, ask: Ask, watch: Watch) -> None:
        self.headers = response.headers
        self._response = response
        self._raw = response.aiter_bytes()
        self._ask = ask
        self._watch = watch
        self._first: bytes | None = None

    async def begin(self) -> None:
        """Waits for the first bytes; an answer that has none, or that is a page, is no sound."""
        self._first = await self._next()
        kind = self.headers.get("content-type", "")
        if self._first is None or kind.startswith(("text/html", "application/json")):
            raise Refused(f"the server answered without audio ({kind or 'no content type'}); is it a speech server?")
        self._watch.answered(self.headers.get("server-timing", ""))

    async def chunks(self) -> AsyncIterator[bytes]:
        """All bytes. Raises where the server stopped before its end."""
        clock = self._watch.clock
        chunk = self._first
        while chunk is not None:
            yield chunk
            asked = clock()
            chunk = await self._next()
            self._watch.waited(clock() - asked)

    async def _next(self) -> bytes | None:
        async with asyncio.timeout_at(self._ask.until):
            return await anext(self._raw, None)

    async def aclose(self) -> None:
        await self._response.aclose()


class Wire:
    """Connections to one server."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None,
        headers: Mapping[str, str],
        pool_size: int,
        http2: bool,
        verify: ssl.SSLContext | bool,
        timeouts: Timeouts,
        retries: Retries,
        sleep: Sleep,
    ) -> None:
        known = {**headers, **({"authorization": f"Bearer {api_key}"} if api_key else {})}
        limits = httpx2.Limits(
            max_connections=pool_size, max_keepalive_connections=pool_size, keepalive_expiry=KEEP_ALIVE_S
        )
        self.url = url
        self.timeouts = timeouts
        make = partial(httpx2.AsyncClient, base_url=url, headers=known, limits=limits, verify=verify)
        self.http = make(http2=http2)
        self.sockets = make() if http2 else self.http  # a WebSocket begins as HTTP/1.1
        self._retries = retries
        self._sleep = sleep

    async def whole(self, ask: Ask, watch: Watch) -> tuple[httpx2.Headers, bytes]:
        """The complete answer. What an attempt received before it broke was heard by nobody and is thrown away."""

        async def once() -> tuple[httpx2.Headers, bytes]:
            opened = await self._open(ask, watch)
            try:
                data = b"".join([chunk async for chunk in opened.chunks()])
            except (httpx2.TransportError, httpx2.StreamError) as error:
                raise Failed(self._worded(error)) from error
            finally:
                await opened.aclose()
            watch.n_bytes = len(data)
            return opened.headers, data

        return await self._attempts(once, ask, watch)

    async def open(self, ask: Ask, watch: Watch) -> Opened:
        """An answer that has begun; from here on nothing is asked again."""
        return await self._attempts(lambda: self._open(ask, watch), ask, watch)

    async def get(self, path: str, timeout_s: float) -> object:
        """A small answer in JSON, asked for once."""
        try:
            async with asyncio.timeout(timeout_s):
                response = await self.http.get(path, timeout=timeout_s)
        except (httpx2.TimeoutException, TimeoutError) as error:
            raise TimedOut(f"{self.url}{path} did not answer within {timeout_s:g} s") from error
        except httpx2.TransportError as error:
            raise self._worded(error) from error
        if not response.is_success:
            raise refusal(response.status_code, response.headers, response.content).error
        try:
            return response.json()
        except ValueError as error:
            raise Unreachable(
                f"{self.url}{path} answered something that is not JSON; is this a speech server?"
            ) from error

    async def aclose(self) -> None:
        await self.http.aclose()
        await self.sockets.aclose()

    async def _attempts(self, once: Callable[[], Awaitable[T]], ask: Ask, watch: Watch) -> T:
        while True:
            watch.begin_attempt()
            try:
                async with asyncio.timeout_at(ask.until):
                    return await once()
            except TimeoutError:
                raise TimedOut(f"{self.url} had not answered in full when the time given was over") from None
            except Failed as failed:
                wait_s = self._retries.wait_s(watch.attempts, failed.retry_after_s, ask.left_s(), random.random())
                if wait_s is None:
                    raise failed.error from failed
            await self._sleep(wait_s)

    async def _open(self, ask: Ask, watch: Watch) -> Opened:
        async def trace(event: str, _: dict[str, object]) -> None:
            watch.new_connections += event == "connection.connect_tcp.complete"

        left_s = ask.left_s()
        told = {} if left_s is None else {"x-request-timeout": f"{max(left_s, 0.0):.3f}"}
        timeout = httpx2.Timeout(ask.gap_s, connect=self.timeouts.connect_s)
        request = self.http.build_request(
            "POST", SPEECH, json=ask.body, headers=told, timeout=timeout, extensions={"trace": trace}
        )
        try:
            response = await self.http.send(request, stream=True)
        except httpx2.TransportError as error:
            raise Failed(self._worded(error)) from error
        try:
            if not response.is_success:
                refused = refusal(response.status_code, response.headers, await response.aread())
                raise Failed(refused.error, refused.retry_after_s) if refused.may_retry else refused.error
            opened = Opened(response, ask, watch)
            await opened.begin()
            return opened
        except httpx2.TransportError as error:
            await response.aclose()
            raise Failed(self._worded(error)) from error
        except BaseException:
            await response.aclose()
            raise

    def _worded(self, error: Exception) -> TuttiError:
        if isinstance(error, httpx2.PoolTimeout):
            return TimedOut("every connection of the pool is in use; end a stream first, or raise pool_size")
        if isinstance(error, httpx2.TimeoutException):
            return TimedOut(f"{self.url} was silent for too long")
        return Unreachable(f"{self.url} did not answer: {str(error) or type(error).__name__}")


def cut_short(error: Exception, n_bytes: int) -> TuttiError:
    """What a listener must know of a stream that broke while it played."""
    kind = "fell silent" if isinstance(error, httpx2.TimeoutException | TimeoutError) else "broke off"
    return CutShort(f"the stream {kind} after {n_bytes} bytes of audio; it was not asked for again", n_bytes=n_bytes)
