"""A body route answers every request as FastAPI would."""

import json
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from tutti.server.errors import install_error_handlers
from tutti.server.routes.body_route import BodyRoute
from tutti.server.schemas import SpeechBody

JSON = "application/json"
NESTED = b"[" * 3000 + b"]" * 3000
BODIES = [
    (JSON, b'{"input": "deep", "voice": {"id": "af_sky"}, "speed": 2}'),
    (JSON, b'{"input": "deep", "speed": "1.5", "seed": 1.0, "unknown": [1]}'),
    (JSON, b'{"input": "a", "input": "b"}'),
    (JSON, '{"input": "Süß"}'.encode()),
    (JSON, '{"input": "Süß"}'.encode("utf-16")),
    (JSON, b'{"input": "\\ud800"}'),
    (JSON, b'{"input": "deep", "pitch": NaN}'),
    (JSON, b'{"input": "deep", "speed": 9}'),
    (JSON, b'{"input": 3}'),
    (JSON, b'{"voice": "af_sky"}'),
    (JSON, b"[]"),
    (JSON, b'"deep"'),
    (JSON, b"null"),
    (JSON, b'{"input": '),
    (JSON, b"\xff\xfe"),
    (JSON, NESTED),
    (JSON, b""),
    ("application/json; charset=utf-8", b'{"input": "deep"}'),
    ("application/vnd.api+json", b'{"input": "deep"}'),
    ("APPLICATION/JSON", b'{"input": "deep"}'),
    ("text/plain", b'{"input": "deep"}'),
    ("", b'{"input": "deep"}'),
]


def client(route_class: type[APIRoute]) -> TestClient:
    routes = APIRouter(route_class=route_class)

    @routes.post("/speech")
    async def speech(request: Request, body: SpeechBody) -> Response:
        return JSONResponse(json.loads(json.dumps(body.model_dump())) | {"path": request.url.path})

    @routes.post("/other")
    async def other(request: Request, body: dict[str, Any], n: int = 1) -> Response:
        return JSONResponse([request.url.path, body, n])

    app = FastAPI()
    app.include_router(routes)
    install_error_handlers(app)
    return TestClient(app, raise_server_exceptions=False)


@pytest.mark.parametrize(("content_type", "body"), BODIES, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("path", ["/speech", "/other", "/other?n=2", "/other?n=x"])
def test_it_answers_as_fastapi_does(path: str, content_type: str, body: bytes) -> None:
    headers = {"content-type": content_type} if content_type else {}
    ours, theirs = (each.post(path, content=body, headers=headers) for each in (client(BodyRoute), client(APIRoute)))
    assert (ours.status_code, ours.content) == (theirs.status_code, theirs.content)
