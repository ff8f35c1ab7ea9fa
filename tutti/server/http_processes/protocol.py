"""HTTP connections where HTTP processes answer the requests for speech, and the server's process all others.

While few streams run, the server's process answers those for speech, too: then connections go there, else away from it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import h11

from tutti.server.http_processes.direct import DirectAnswers
from tutti.server.middleware.http_protocol import HttpProtocol
from tutti.server.service import Service

SPEECH_PATHS = ("/v1/audio/speech", "/tts", "/tts/stream")  # the routes of `speech_app`
SPEECH_LINE = re.compile(rb"POST (?:%s) HTTP/1\.1\r\n" % "|".join(SPEECH_PATHS).encode())

HandOn = Callable[[int, bytes], None]  # takes the descriptor of a connection, and what was read from it


class SpeechProtocol(HttpProtocol):
    """In an HTTP process: looks at the first line of each request, and hands the connection on if it is not for it."""

    hand_on: HandOn
    direct: DirectAnswers
    _awaits_sent = False  # the end of an answer, before the connection is handed on

    def handle_events(self) -> None:
        unread = self.conn.trailing_data[0] if self.conn.their_state is h11.IDLE else b""
        if not unread or (SPEECH_LINE.match(unread) and not self.direct.are_allowed):
            super().handle_events()
        elif self.transport.get_write_buffer_size():
            self._await_sent()
        else:
            self._hand_on(unread + self._unparsed)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._awaits_sent:
            self._awaits_sent = False
            self.transport.set_write_buffer_limits()
            self.handle_events()

    def _await_sent(self) -> None:
        """Hand the connection on when all is sent: the other process would write into the answer, and end it early."""
        self._awaits_sent = True
        self._unset_keepalive_if_required()
        self.transport.pause_reading()
        self.transport.set_write_buffer_limits(0)

    def _request_overdue(self, now: float) -> bool:
        return not self._awaits_sent and super()._request_overdue(now)

    def _hand_on(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self.transport.pause_reading()
        self.hand_on(self.transport.get_extra_info("socket").fileno(), data)
        self.transport.abort()  # the other process has a descriptor of its own, so the connection stays open


class DirectProtocol(HttpProtocol):
    """In the server's process: while many streams run, a connection ends with its answer if that is speech, or is
    refused. Its client connects again, to an HTTP process.
    """

    direct: DirectAnswers

    def data_received(self, data: bytes) -> None:
        cycle = self.cycle
        super().data_received(data)
        if self.cycle is cycle or self.cycle is None or not is_speech(self.cycle.scope):
            return
        self.direct.count(self.service.engine.n_streams)
        if not self.direct.are_allowed and not self.conn.trailing_data[0]:  # which is the next request
            # As if the client had asked for it.
            self.cycle.scope["headers"] = [*self.cycle.scope["headers"], (b"connection", b"close")]

    @property
    def _closes_refused(self) -> bool:
        return not self.direct.are_allowed


def is_speech(scope: Mapping[str, Any]) -> bool:
    return bool(scope["method"] == "POST" and scope["path"] in SPEECH_PATHS)


def speech_protocol(idle_s: float, service: Service, hand_on: HandOn, direct: DirectAnswers) -> type[SpeechProtocol]:
    """Return a protocol class for this service, which hands other connections on."""
    members = {"idle_s": idle_s, "service": service, "hand_on": staticmethod(hand_on), "direct": direct}
    return type("SpeechProtocol", (SpeechProtocol,), members)


def direct_protocol(idle_s: float, service: Service, direct: DirectAnswers) -> type[DirectProtocol]:
    """Return a protocol class for the server's process."""
    return type("DirectProtocol", (DirectProtocol,), {"idle_s": idle_s, "service": service, "direct": direct})
