"""A key is found wherever a client of any service puts it, and a wrong one is refused before a socket opens."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.fakes import make_fake_engine
from tests.server.harness import RunningServer, assert_error, serving
from tutti.server.client_key import find_key, message_key, select_subprotocol

PLACES: list[tuple[Mapping[str, str], bytes, Sequence[str]]] = [
    ({"authorization": "Bearer hush"}, b"", ()),
    ({"authorization": "bearer  hush"}, b"", ()),
    ({"authorization": "Token hush"}, b"", ()),
    ({"xi-api-key": "hush"}, b"", ()),
    ({"x-api-key": "hush"}, b"", ()),
    ({"api-key": "hush"}, b"", ()),
    ({"ocp-apim-subscription-key": "hush"}, b"", ()),
    ({"authorization": "Bearer", "xi-api-key": "hush"}, b"", ()),  # SillyTavern sends a scheme without a key
    ({"authorization": "Basic dTpw", "x-api-key": "hush"}, b"", ()),  # of a proxy
    ({}, b"api_key=hush", ()),
    ({}, b"model=x&access_token=hush", ()),
    ({}, b"token=hush", ()),
    ({}, b"authorization=Bearer%20hush", ()),
    ({}, b"", ("token", "hush")),
    ({}, b"", ("realtime", "openai-insecure-api-key.hush")),
]


@pytest.mark.parametrize(("headers", "query", "subprotocols"), PLACES)
def test_the_key_is_found(headers: Mapping[str, str], query: bytes, subprotocols: Sequence[str]) -> None:
    assert find_key(headers, query, subprotocols) == "hush"


@pytest.mark.parametrize(
    ("headers", "query", "subprotocols"),
    [({}, b"", ()), ({"authorization": "hush"}, b"", ()), ({}, b"key=hush&api_key=", ()), ({}, b"", ("hush", "token"))],
)
def test_nothing_else_is_a_key(headers: Mapping[str, str], query: bytes, subprotocols: Sequence[str]) -> None:
    assert find_key(headers, query, subprotocols) == ""


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ({"text": " ", "xi_api_key": "hush"}, "hush"),
        ({"xi-api-key": "hush"}, "hush"),
        ({"authorization": "Bearer hush"}, "hush"),
        ({"xi_api_key": 5, "authorization": None}, ""),
        ({}, ""),
    ],
)
def test_the_key_of_a_first_message(message: dict[str, Any], key: str) -> None:
    assert message_key(message) == key


def test_a_key_is_never_the_subprotocol_that_is_accepted() -> None:
    assert select_subprotocol(["openai-insecure-api-key.hush", "realtime"]) == "realtime"
    assert select_subprotocol(["token", "hush"]) == "token"
    assert select_subprotocol([]) is None


@pytest.mark.server
def test_routes_and_sockets_take_it_and_refuse_another(tmp_path: Path) -> None:
    async def opened(server: RunningServer, **options: Any) -> int:
        host, port = server.host_port
        query = options.pop("query", "")
        try:
            async with connect(f"ws://{host}:{port}/v1/audio/speech/stream{query}", **options):
                return 101
        except InvalidStatus as refused:
            answer = refused.response
        assert json.loads(answer.body)["error"]["code"] == "invalid_api_key"
        return answer.status_code

    with serving(make_fake_engine(tmp_path), api_keys="hush") as server:
        for headers, query, subprotocols in PLACES:
            path = f"/tts?{query.decode()}"
            for key, status, upgrade in (("hush", 200, 101), ("other", 401, 401)):
                sent = {name: value.replace("hush", key) for name, value in headers.items()}
                protocols = [name.replace("hush", key) for name in subprotocols]
                if not protocols:
                    answer = server.post(path.replace("hush", key), {"text": "deep"}, headers=sent)
                    assert answer.status_code == status, (headers, query)
                options = {"additional_headers": sent, "subprotocols": protocols or None}
                socket = opened(server, query=f"?{query.decode()}".replace("hush", key), **options)
                assert asyncio.run(socket) == upgrade, (headers, query, subprotocols)
        assert_error(server.get("/v1/stats"), 401, "invalid_api_key")
        assert server.get("/v1/stats?api_key=hush").status_code == 200
