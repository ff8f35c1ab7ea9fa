"""docs/http.md is true: every route is in it, and what it shows with curl works."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.server.harness import RunningServer
from tutti.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs/http.md").read_text(encoding="utf-8")
SHOWN = [
    (path, json.loads(body))
    for path, body in re.findall(r"curl (?:-N )?localhost:8880(\S+).*?-d '(.*?)'", PAGE, re.DOTALL)
]


@pytest.mark.parametrize(("path", "body"), SHOWN, ids=lambda value: str(value)[:40])
def test_what_it_shows_works(server: RunningServer, path: str, body: dict[str, Any]) -> None:
    assert len(SHOWN) == 4
    assert server.post(path, body).status_code == 200


def test_it_names_every_route(server: RunningServer) -> None:
    missing = [path for path in server.get("/openapi.json").json()["paths"] if path not in PAGE]
    assert not missing


def test_its_settings_exist() -> None:
    named = set(re.findall(r"TUTTI_([A-Z_]+)", PAGE))
    assert named
    assert {name.lower() for name in named} <= set(Settings.model_fields)
