"""HTTP connections of an HTTP process: requests for speech are answered here, others go to the server's process."""

import re
from collections.abc import Callable

import h11

from tutti.server.middleware.http_protocol import HttpProtocol
from tutti.server.service import Service

SPEECH_LINE = re.compile(rb"POST (?:/v1/audio/speech|/tts|/tts/stream) HTTP/1\.1\r\n")  # the routes of `speech_app`

HandOn = Callable[[int, bytes], None]  # takes the descriptor of a connection, and what was read from it


class SpeechProtocol(HttpProtocol):
    """Looks at the first line of each request, and hands the connection on if it does not ask for speech."""

    hand_on: HandOn

    def handle_events(self) -> None:
        unread = self.conn.trailing_data[0] if self.conn.their_state is h11.IDLE else b""
        if unread and not SPEECH_LINE.match(unread):
            self._hand_on(unread)
        else:
            super().handle_events()

    def _hand_on(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self.transport.pause_reading()
        self.hand_on(self.transport.get_extra_info("socket").fileno(), data)
        self.transport.abort()  # the other process has a descriptor of its own, so the connection stays open


def speech_protocol(idle_s: float, service: Service, hand_on: HandOn) -> type[SpeechProtocol]:
    """Return a protocol class for this service, which hands other connections on."""
    return type(
        "SpeechProtocol",
        (SpeechProtocol,),
        {"idle_s": idle_s, "service": service, "hand_on": staticmethod(hand_on)},
    )
