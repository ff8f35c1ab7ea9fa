"""Where clients of any service put their API key: a header, the query, a subprotocol or the first message."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import HTTPConnection

SCHEMES = ("bearer", "token")  # of Authorization; the second is Deepgram's
HEADERS = ("xi-api-key", "x-api-key", "api-key", "ocp-apim-subscription-key")  # ElevenLabs, Cartesia, Azure (two)
QUERY = ("api_key", "access_token", "token", "xi-api-key", "xi_api_key", "single_use_token")
# Browsers cannot send headers with a WebSocket: OpenAI's prefix of the key, and Deepgram's name before it.
KEY_SUBPROTOCOL = "openai-insecure-api-key."
MESSAGE = ("xi_api_key", "xi-api-key")  # ElevenLabs' first message
MESSAGE_PATHS = ("/v1/text-to-speech/", "/v1/text-to-dialogue/")  # of WebSockets whose key may come in it


def find_key(headers: Mapping[str, str], query: bytes = b"", subprotocols: Sequence[str] = ()) -> str:
    """Return the key of a request from the first place that holds one; "" if none does."""
    return next(filter(None, _keys(headers, query, subprotocols)), "")


def connection_key(connection: HTTPConnection) -> str:
    """Return the key of a request or WebSocket that has a route."""
    return find_key(connection.headers, connection.scope["query_string"], connection.scope.get("subprotocols", ()))


def message_key(message: Mapping[str, Any]) -> str:
    """Return the key in the first message of a WebSocket; "" if there is none."""
    keys = (*(message.get(name) for name in MESSAGE), _key_after_scheme(str(message.get("authorization", ""))))
    return next((key for key in keys if isinstance(key, str) and key), "")


def may_send_key_later(path: str) -> bool:
    """Whether a WebSocket of this path without any key may send it in its first message."""
    return path.startswith(MESSAGE_PATHS)


def select_subprotocol(offered: Sequence[str]) -> str | None:
    """Return the subprotocol to accept: the first that is no key."""
    return next((name for name in offered if not name.startswith(KEY_SUBPROTOCOL)), None)


def _keys(headers: Mapping[str, str], query: bytes, subprotocols: Sequence[str]) -> Iterator[str]:
    yield _key_after_scheme(headers.get("authorization", ""))
    for name in HEADERS:
        yield headers.get(name, "").strip()
    for n, name in enumerate(subprotocols):
        if name.startswith(KEY_SUBPROTOCOL):
            yield name.removeprefix(KEY_SUBPROTOCOL)
        elif name.lower() in SCHEMES and n + 1 < len(subprotocols):
            yield subprotocols[n + 1]
    if query:
        values = dict(reversed(parse_qsl(query.decode("latin-1"))))
        for name in QUERY:
            yield values.get(name, "").strip()
        yield _key_after_scheme(values.get("authorization", ""))


def _key_after_scheme(authorization: str) -> str:
    scheme, _, key = authorization.strip().partition(" ")
    return key.strip() if scheme.lower() in SCHEMES else ""
