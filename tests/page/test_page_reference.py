"""The reference at /docs: every route of the server, drawn and tried out in a browser that can reach nobody else."""

from collections.abc import Callable
from pathlib import Path

from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.page.browser import Visitor
from tests.server.harness import RunningServer
from tutti.server.routes.page import page_routes

Visit = Callable[..., Visitor]


ANSWER = ".live-responses-table .response .response-col_description"


def tried(visitor: Visitor, path: str) -> None:
    visitor.page.locator(".opblock-summary-path", has_text=path).first.click()
    visitor.press("Try it out")
    visitor.press("Execute")
    visitor.wait(ANSWER)


def test_every_operation_is_there_and_one_is_tried(server: RunningServer, visit: Visit) -> None:
    reader = visit(server, "docs")
    reader.wait(".opblock")
    paths = server.get("/openapi.json").json()["paths"]
    assert reader.page.locator(".opblock").count() == sum(map(len, paths.values()))
    tried(reader, "/v1/models")
    assert '"kokoro"' in reader.text(ANSWER)


def test_what_is_made_there_can_be_heard_there(server: RunningServer, visit: Visit) -> None:
    reader = visit(server, "docs")
    tried(reader, "/v1/audio/speech")
    reader.page.wait_for_function("document.querySelector('audio').duration > 0.5")


def test_a_server_without_a_page_says_where_the_document_is(tmp_path: Path) -> None:
    app = FastAPI(docs_url=None)
    app.include_router(page_routes(tmp_path / "missing"))
    assert "/openapi.json" in TestClient(app).get("/docs").text
