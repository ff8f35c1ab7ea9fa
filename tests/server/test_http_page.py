"""docs/http.md: every route is documented, and the curl examples work."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.server.harness import RunningServer
from tutti.settings import Settings

pytestmark = pytest.mark.server

PAGE = (Path(__file__).parents[2] / "docs/http.md").read_text(encoding="utf-8")
EXAMPLES = [
    (path, json.loads(body))
    for path, body in re.findall(r"curl (?:-N )?localhost:8880(\S+).*?-d '(.*?)'", PAGE, re.DOTALL)
]


@pytest.mark.parametrize(("path", "body"), EXAMPLES, ids=lambda value: str(value)[:40])
def test_the_curl_examples_work(server: RunningServer, path: str, body: dict[str, Any]) -> None:
    assert len(EXAMPLES) == 4
    assert server.post(path, body).status_code == 200


def test_every_route_is_documented(server: RunningServer) -> None:
    missing = [path for path in server.get("/openapi.json").json()["paths"] if path not in PAGE]
    assert not missing


def test_the_documented_settings_exist() -> None:
    named = set(re.findall(r"TUTTI_([A-Z_]+)", PAGE))
    assert named
    assert {name.lower() for name in named} <= set(Settings.model_fields)
