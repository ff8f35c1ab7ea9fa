"""HTTP: pooled connections, attempts, timeouts, and response bytes as they arrive."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TypeVar

import httpx2

from tutti.client.call_stats import Stopwatch
from tutti.client.errors import CutShort, Refused, TimedOut, Unreachable, parse_error_response
from tutti.client.options import ClientSettings
from tutti.errors import TuttiError

SPEECH_PATH = "/v1/audio/speech"
FIRST_WAIT_S = 0.2  # before the first retry, if the server named no time; doubles each time
MAX_WAIT_S = 30.0  # give up at once if the server asks for more
KEEP_ALIVE_S = 60.0  # shorter than the server's, so that the server never closes a connection as it is reused
T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class TimedRequest:
    """A request body, how long one read may take, and its deadline on the event loop's clock."""

    body: Mapping[str, object]
    read_timeout_s: float
    deadline: float | None = None

    def left_s(self) -> float | None:
        return None if self.deadline is None else self.deadline - asyncio.get_running_loop().time()


class AttemptFailed(Exception):
    """An attempt failed in a way that may succeed when repeated."""

    def __init__(self, error: TuttiError, retry_after_s: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.retry_after_s = retry_after_s


class AudioResponse:
    """A response whose first bytes have arrived."""

    def __init__(self, response: httpx2.Response, request: TimedRequest, watch: Stopwatch) -> None:
        self.headers = response.headers
        self._response = response
        self._raw = response.aiter_bytes()
        self._request = request
        self._watch = watch
        self._first: bytes | None = None

    async def begin(self) -> None:
        """Wait for the first bytes; an empty response or an HTML or JSON page is an error."""
        self._first = await self._read()
        kind = self.headers.get("content-type", "")
        if self._first is None or kind.startswith(("text/html", "application/json")):
            raise Refused(f"the server answered without audio ({kind or 'no content type'}); is it a speech server?")
        self._watch.mark_first_byte(self.headers.get("server-timing", ""))

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield all bytes; raise if the connection breaks before the end."""
        clock = self._watch.clock
        chunk = self._first
        while chunk is not None:
            yield chunk
            started = clock()
            chunk = await self._read()
            self._watch.add_wait(clock() - started)

    async def _read(self) -> bytes | None:
        async with asyncio.timeout_at(self._request.deadline):
            return await anext(self._raw, None)

    async def aclose(self) -> None:
        await self._response.aclose()


class Transport:
    """Connections to one server."""

    def __init__(self, url: str, settings: ClientSettings, sleep: Sleep) -> None:
        key = {"authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
        size = settings.pool_size
        create = partial(
            httpx2.AsyncClient,
            base_url=url,
            headers={**settings.headers, **key},
            limits=httpx2.Limits(max_connections=size, max_keepalive_connections=size, keepalive_expiry=KEEP_ALIVE_S),
            verify=settings.verify,
        )
        http2 = settings.http2
        if http2 is None:
            http2 = bool(find_spec("h2")) and url.startswith("https")
        self.url = url
        self.http = create(http2=http2)
        self.websockets = create() if http2 else self.http  # a WebSocket starts as HTTP/1.1
        self._connect_timeout_s = settings.connect_timeout_s
        self._max_retries = settings.retries
        self._sleep = sleep

    async def fetch(self, request: TimedRequest, watch: Stopwatch) -> tuple[httpx2.Headers, bytes]:
        """Return the complete response. What a failed attempt received is discarded and fetched again."""

        async def attempt() -> tuple[httpx2.Headers, bytes]:
            response = await self._open(request, watch)
            try:
                data = b"".join([chunk async for chunk in response.chunks()])
            except (httpx2.TransportError, httpx2.StreamError) as error:
                raise AttemptFailed(self._connection_error(error)) from error
            finally:
                await response.aclose()
            watch.n_bytes = len(data)
            return response.headers, data

        return await self._with_retries(attempt, request, watch)

    async def open(self, request: TimedRequest, watch: Stopwatch) -> AudioResponse:
        """Return a response that has begun; from here on nothing is retried."""
        return await self._with_retries(lambda: self._open(request, watch), request, watch)

    async def get_json(self, path: str, timeout_s: float) -> object:
        """Return a small JSON response; never retried."""
        try:
            async with asyncio.timeout(timeout_s):
                response = await self.http.get(path, timeout=timeout_s)
        except (httpx2.TimeoutException, TimeoutError) as error:
            raise TimedOut(f"{self.url}{path} did not answer within {timeout_s:g} s") from error
        except httpx2.TransportError as error:
            raise self._connection_error(error) from error
        if not response.is_success:
            raise parse_error_response(response.status_code, response.headers, response.content).error
        try:
            return response.json()
        except ValueError as error:
            raise Unreachable(
                f"{self.url}{path} answered something that is not JSON; is this a speech server?"
            ) from error

    async def aclose(self) -> None:
        await self.http.aclose()
        await self.websockets.aclose()

    async def _with_retries(self, attempt: Callable[[], Awaitable[T]], request: TimedRequest, watch: Stopwatch) -> T:
        while True:
            watch.begin_attempt()
            try:
                async with asyncio.timeout_at(request.deadline):
                    return await attempt()
            except TimeoutError:
                raise TimedOut(f"{self.url} did not answer completely before the deadline") from None
            except AttemptFailed as failed:
                wait_s = retry_wait_s(
                    watch.attempts, self._max_retries, failed.retry_after_s, request.left_s(), random.random()
                )
                if wait_s is None:
                    raise failed.error from failed
            await self._sleep(wait_s)

    async def _open(self, request: TimedRequest, watch: Stopwatch) -> AudioResponse:
        async def trace(event: str, _: dict[str, object]) -> None:
            watch.new_connections += event == "connection.connect_tcp.complete"

        left_s = request.left_s()
        http_request = self.http.build_request(
            "POST",
            SPEECH_PATH,
            json=request.body,
            headers={} if left_s is None else {"x-request-timeout": f"{max(left_s, 0.0):.3f}"},
            timeout=httpx2.Timeout(request.read_timeout_s, connect=self._connect_timeout_s),
            extensions={"trace": trace},
        )
        try:
            response = await self.http.send(http_request, stream=True)
        except httpx2.TransportError as error:
            raise AttemptFailed(self._connection_error(error)) from error
        try:
            if not response.is_success:
                refusal = parse_error_response(response.status_code, response.headers, await response.aread())
                raise AttemptFailed(refusal.error, refusal.retry_after_s) if refusal.may_retry else refusal.error
            audio = AudioResponse(response, request, watch)
            await audio.begin()
            return audio
        except httpx2.TransportError as error:
            await response.aclose()
            raise AttemptFailed(self._connection_error(error)) from error
        except BaseException:
            await response.aclose()
            raise

    def _connection_error(self, error: Exception) -> TuttiError:
        if isinstance(error, httpx2.PoolTimeout):
            return TimedOut("every connection of the pool is in use; end a stream first, or raise pool_size")
        if isinstance(error, httpx2.TimeoutException):
            return TimedOut(f"{self.url} sent nothing for too long")
        return Unreachable(f"{self.url} did not answer: {str(error) or type(error).__name__}")


def retry_wait_s(
    n_failed: int, max_retries: int, retry_after_s: float | None, left_s: float | None, jitter: float
) -> float | None:
    """Return the seconds until the next attempt, or None to give up. `jitter` from 0 to 1 spreads clients. Pure."""
    if n_failed > max_retries:
        return None
    backoff_s = FIRST_WAIT_S * 2 ** (n_failed - 1) * (0.5 + jitter / 2)
    wait_s = backoff_s if retry_after_s is None else retry_after_s
    if wait_s > MAX_WAIT_S or (left_s is not None and wait_s >= left_s):
        return None  # an error now is better than the same error later
    return wait_s


def cut_short(error: Exception, n_bytes: int) -> TuttiError:
    """Return the error for a stream that broke while it was played."""
    kind = "stalled" if isinstance(error, httpx2.TimeoutException | TimeoutError) else "broke off"
    return CutShort(f"the stream {kind} after {n_bytes} bytes of audio; it was not retried", n_bytes=n_bytes)
