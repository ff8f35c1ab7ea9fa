"""Reads server-sent events as a page would."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from tests.server.harness import RunningServer

Event = dict[str, Any]


class Watcher:
    """One open stream of events."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.seen: list[Event] = []
        self._events = self._read()

    def next(self) -> Event:
        """The next one; StopIteration at the end."""
        event = next(self._events)
        self.seen.append(event)
        return event

    def until(self, wanted: Callable[[Event], Any]) -> Event:
        """Reads on until there is such a one. The test's own time limit is what ends a vain wait."""
        while True:
            event = self.next()
            if wanted(event):
                return event

    def rest(self) -> list[Event]:
        return list(self._events)

    def _read(self) -> Iterator[Event]:
        for line in self.response.iter_lines():
            if line:
                assert line.startswith("data: "), line
                yield json.loads(line.removeprefix("data: "))


@contextmanager
def watching(
    server: RunningServer, method: str = "GET", path: str = "/v1/stats/stream", **asked: Any
) -> Iterator[Watcher]:
    """Over a connection of its own, which is closed at the end."""
    with (
        httpx2.Client(base_url=server.url, timeout=60) as client,
        client.stream(method, path, **asked) as response,
    ):
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Watcher(response)


@contextmanager
def trying(server: RunningServer, policy: str, **asked: Any) -> Iterator[Watcher]:
    """A trial; at the end, the server has seen that it was left."""
    with watching(server, "POST", "/v1/stats/trial", json={"policy": policy}, **asked) as trial:
        yield trial
        left = not trial.response.is_closed
    if left:
        with watching(server, **asked) as watcher:
            watcher.until(lambda event: event["trial"] is None)
