"""The API reference at /docs: every route, listed and tried in a browser that reaches no other host."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.page.browser import Visitor
from tests.server.harness import RunningServer
from tutti.server.routes.page import page_routes

pytestmark = pytest.mark.browser

Visit = Callable[..., Visitor]


ANSWER = ".live-responses-table .response .response-col_description"


def try_out(visitor: Visitor, path: str) -> None:
    visitor.page.locator(".opblock-summary-path", has_text=path).first.click()
    visitor.press("Try it out")
    visitor.press("Execute")
    visitor.wait(ANSWER)


def test_every_operation_is_listed_and_can_be_tried(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server, "docs")
    visitor.wait(".opblock")
    paths = server.get("/openapi.json").json()["paths"]
    assert visitor.page.locator(".opblock").count() == sum(map(len, paths.values()))
    try_out(visitor, "/v1/models")
    assert '"kokoro"' in visitor.text(ANSWER)


def test_every_operation_says_what_it_does(server: RunningServer) -> None:
    operations = [one for path in server.get("/openapi.json").json()["paths"].values() for one in path.values()]
    unexplained = [one["operationId"] for one in operations if " " not in one["summary"] or "description" not in one]
    assert unexplained == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_has_the_theme_of_the_page_and_a_way_back(server: RunningServer, visit: Visit, scheme: str) -> None:
    visitor = visit(server, color_scheme=scheme)
    background = "getComputedStyle(document.querySelector(%r)).backgroundColor"
    paper = visitor.page.evaluate(background % "body")
    visitor.page.goto(f"{server.url}/docs")
    visitor.wait(".opblock")
    assert visitor.page.evaluate(background % ".swagger-ui") == paper
    assert visitor.page.evaluate(background % "body") == paper
    visitor.page.get_by_role("link", name="Speak", exact=True).click()
    visitor.wait("#text")


def test_audio_can_be_played_in_the_reference(server: RunningServer, visit: Visit) -> None:
    visitor = visit(server, "docs")
    try_out(visitor, "/v1/audio/speech")
    visitor.page.wait_for_function("document.querySelector('audio').duration > 0.5")


def test_without_a_page_the_server_names_the_openapi_document(tmp_path: Path) -> None:
    app = FastAPI(docs_url=None)
    app.include_router(page_routes(tmp_path / "missing"))
    assert "/openapi.json" in TestClient(app).get("/docs").text
