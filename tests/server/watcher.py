"""Read server-sent events as a browser would."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from tests.server.harness import RunningServer

Event = dict[str, Any]


class Watcher:
    """An open stream of events."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.events: list[Event] = []
        self._stream = self._read()

    def next(self) -> Event:
        """Return the next event; StopIteration at the end."""
        event = next(self._stream)
        self.events.append(event)
        return event

    def until(self, condition: Callable[[Event], Any]) -> Event:
        """Read on to the first event that meets the condition. The time limit of the test ends a vain wait."""
        while True:
            event = self.next()
            if condition(event):
                return event

    def rest(self) -> list[Event]:
        return list(self._stream)

    def _read(self) -> Iterator[Event]:
        for line in self.response.iter_lines():
            if line:
                assert line.startswith("data: "), line
                yield json.loads(line.removeprefix("data: "))


@contextmanager
def watching(
    server: RunningServer, method: str = "GET", path: str = "/v1/stats/stream", **options: Any
) -> Iterator[Watcher]:
    """Open a stream of events on a new connection, and close it at the end."""
    with (
        httpx2.Client(base_url=server.url, timeout=60) as client,
        client.stream(method, path, **options) as response,
    ):
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Watcher(response)


@contextmanager
def policy_trial(server: RunningServer, policy: str, **options: Any) -> Iterator[Watcher]:
    """Run a trial; at the end the server has noticed that the connection was closed."""
    with watching(server, "POST", "/v1/stats/trial", json={"policy": policy}, **options) as trial:
        yield trial
        was_open = not trial.response.is_closed
    if was_open:
        with watching(server, **options) as watcher:
            watcher.until(lambda event: event["trial"] is None)
